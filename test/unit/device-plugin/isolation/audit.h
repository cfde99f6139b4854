// SPDX-License-Identifier: Apache-2.0
/*
 * audit - a monitor of a node with two cards and one pod with a share of card 1 (audit_trainer, 3
 * GiB), for tests of what its audit says. No driver: the tests make the scan's messages.
 */
#pragma once

#include "device-plugin/monitor/monitor.h"

#include "test/unit/device-plugin/isolation/crew.h"

/* Members of annotations. */
#define AUDIT_GRANT(x) "\"scheduler.framework.gpushare.allocation\":\"" x "\""

/* What the monitor did since audit_begin, or since a test reset it. */
extern struct audit_seen {
    int events, evictions;
    char reason[64], message[512], about[64]; /* of the last Event; its pod */
    char evicted[128];                        /* the last pod and its uid */
} audit_seen;

struct audit_fixture {
    struct arena a;
    struct gpu_inventory cards;
    struct backend_card conditions[GPU_CARDS_MAX];
    struct monitor *monitor;
    struct loop *loop;
    struct podcache pods;
    char base[SCRATCH_PATH], region[CREW_PATH];
};

/* evict: with --enforce=evict. */
void audit_begin(struct audit_fixture *f, bool evict);
void audit_free(struct audit_fixture *f);
/* Fails if a row did. */
static inline void audit_end(struct audit_fixture *f)
{
    audit_free(f);
    expect_done();
}
/* unreadable: NULL, or why this version could not be decoded. */
struct pod *audit_trainer(const char *unreadable);
/* A folder of the trainer with a region and limits for card 1. */
void audit_give_folder(struct audit_fixture *f, const char *folder, uint32_t percent,
                       uint64_t context_mib);
/* A process of the trainer on card 1. */
struct usage_process audit_process(int64_t pid, int64_t mib, const char *folder);
/* So many scans that see these processes. */
void audit_messages(struct audit_fixture *f, int times, struct usage_process *list, size_t len);
/* So many scans that see so many processes of the trainer, of 500 MiB each. */
void audit_looks(struct audit_fixture *f, int times, size_t processes);
/* Do the metrics contain this text? */
bool audit_metric(const char *line);
/* A measurement of device time; known: of card 1. */
void audit_measured(struct audit_fixture *f, struct scan_busy *busy, size_t len, bool known,
                    uint64_t at);
