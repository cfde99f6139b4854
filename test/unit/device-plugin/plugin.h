// SPDX-License-Identifier: Apache-2.0
/*
 * plugin - the plugin from the cards to the container, without an API server: agent, register and
 * service against the kubelet twin, over real sockets in a directory of its own. The test's thread
 * is the loop.
 */
#pragma once

#include "test/unit/lib/base/expect.h"
#include "test/unit/lib/base/scratch.h"

#include <stdatomic.h>

#include "device-plugin/agent.h"
#include "device-plugin/node/podcache.h"
#include "lib/base/clock.h"
#include "lib/base/str.h"
#include "test/fake/kubelet/kubelet.h"
#include "test/unit/device-plugin/cards.h"

#define MEM "aliyun.com/gpu-mem"
#define CORE "aliyun.com/gpu-core.percentage"
#define GPU "aliyun.com/gpu"
#define NVIDIA "nvidia.com/gpu"
#define MODE(m) "\"ack.node.gpu.schedule\":\"" m "\""
#define GRANT(x)                                       \
    "\"scheduler.framework.gpushare.allocation\":\"" x \
    "\",\"scheduler.framework.gpushare.assigned\":\"false\""

struct plugin_fixture {
    char dir[SCRATCH_PATH], state_dir[SCRATCH_PATH + 32];
    struct arena arena;
    struct gpu_inventory cards;
    struct kubelet *kubelet;
    struct loop *loop;
    struct podcache pods;
    struct service *service;
    struct agent *agent;
    struct agent_config config;
    /* What came out. */
    char inventory[2048];
    int64_t gpu_count;
    char reason[64], message[512];
    bool ready;
    _Atomic int gets, starting, refused, records, changes, unheld;
    char record[1024]; /* the last patch with a grant */
    char refusal[ERROR_TEXT_SIZE];
    /* The API server's word on pods that the watch has not brought. */
    const char *remote_name, *remote_containers, *remote_annotations;
    void (*meanwhile)(struct plugin_fixture *f); /* happens while the API server is asked */
    _Atomic int remote_error;
};

int plugin_setup(void **state);
int plugin_teardown(void **state);
/* On the cards and the state directory of the fixture, with its configuration. */
void plugin_start(struct plugin_fixture *f);
void plugin_stop(struct plugin_fixture *f);
/* The watch brings our node. */
void plugin_node(struct plugin_fixture *f, const char *labels, const char *allocatable);
/* A pod with container c0 that the watch has brought and the kubelet is admitting. */
void plugin_arrive(struct plugin_fixture *f, const char *name, const char *containers,
                   const char *annotations);
/* What the API server says of a pod that the watch has not brought. */
void plugin_remote(struct plugin_fixture *f, const char *name, const char *containers,
                   const char *annotations);
/* Admission without the kubelet's books: they never show what ordinary init containers hold. Its
 * card, or the refusal. */
const char *plugin_allocate(struct plugin_fixture *f, const char *resource, size_t count,
                            struct kubelet_answer *env, struct error *err);

/* A directory of files and sockets. 0, or -1. */
int plugin_remove_dir(const char *dir);

/* Runs the loop until the kubelet's list of the resource has this many ids, healthy ones. */
static inline void expect_list(struct plugin_fixture *f, const char *row, const char *resource,
                               int ids, int healthy)
{
    int got = -2, well = 0;
    for (int64_t end = clock_mono_ms() + 10000; clock_mono_ms() < end;) {
        got = kubelet_devices(f->kubelet, resource, &well);
        if (got == ids && well == healthy)
            return;
        loop_once(f->loop, 5);
    }
    expect_int(row, ids, got);
    expect_int(row, healthy, well);
}

static inline void expect_registered(struct plugin_fixture *f, const char *row,
                                     const char *resource, int at_least)
{
    for (int64_t end = clock_mono_ms() + 10000;
         kubelet_registrations(f->kubelet, resource) < at_least && clock_mono_ms() < end;)
        loop_once(f->loop, 5);
    expect_true(row, kubelet_registrations(f->kubelet, resource) >= at_least);
}
