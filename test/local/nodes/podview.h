// SPDX-License-Identifier: Apache-2.0
/*
 * podview - what a kubelet needs of a pod beyond lib/model/pod: commands, grace, what its status
 * says already. Decoded once, immutable.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/model/pod.h"
#include "test/local/nodes/runplan.h"

#define PODVIEW_ANN_RUN_SECONDS "local.cosched.io/run-seconds"
#define PODVIEW_ANN_EXIT_CODE "local.cosched.io/exit-code"

enum podview_restart { PODVIEW_ALWAYS, PODVIEW_ON_FAILURE, PODVIEW_NEVER };
enum podview_seen { PODVIEW_UNSEEN, PODVIEW_WAITING, PODVIEW_RUNNING, PODVIEW_EXITED };

struct podview_container {
    const struct container *model;
    bool init; /* ordinary init containers and sidecars */
    struct runplan plan;
    /* From status.(init)containerStatuses. */
    enum podview_seen seen;
    int64_t started_ns, finished_ns;
    int64_t exit_code, restarts;
    const char *id; /* without "containerd://"; NULL */
    bool has_last;  /* lastState.terminated: */
    int64_t last_started_ns, last_finished_ns, last_exit_code;
    const char *last_id;
};

struct podview {
    struct arena arena;
    struct pod *model;
    enum podview_restart restart;
    int64_t grace_s;    /* metadata.deletionGracePeriodSeconds when terminating */
    int64_t started_ns; /* status.startTime, 0 when absent */
    const char *ip;     /* status.podIP, or NULL */
    bool host_network;
    const char *qos;                      /* "Guaranteed", "Burstable", "BestEffort" */
    struct podview_container *containers; /* init containers first */
    size_t containers_len, init_len;
};

int podview_decode(json *j, struct podview **out, struct error *err);
void podview_free(struct podview *v); /* NULL is fine */
