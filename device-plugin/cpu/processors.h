// SPDX-License-Identifier: Apache-2.0
/* processors - the program's CPU options, the published topology and the pinner. On the loop. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "device-plugin/cpu/pinner.h"
#include "lib/base/error.h"
#include "lib/base/loop.h"
#include "lib/base/options.h"
#include "lib/model/cpuset.h"

enum { PROCESSORS_LOOK_MS = 10 * 1000 }; /* how often the online CPUs are checked */

struct processors_options { /* rows: processors_option_rows */
    const char *topology;   /* live, xml:FILE, synthetic:TEXT, off */
    const char *reserved;   /* NULL: the kubelet's */
    const char *kubelet_config;
    const char *cgroup_mount;        /* --cgroup-root */
    const char *kubelet_cgroup_root; /* NULL: from its configuration */
    bool pin_memory, shared_pool;
};
extern const struct option_row processors_option_rows[];
/* Checks what options_parse cannot. */
int processors_check(const struct processors_options *o, struct error *err);

struct processors_config {
    const struct processors_options *options;
    const char *kubelet_dir;
    const char *sysfs;
    int64_t look_ms; /* 0: PROCESSORS_LOOK_MS */
    /* The text of cosched.io/cpu-topology, whenever it may have changed. */
    void (*publish)(void *arg, const char *topology);
    /* With the loop and the argument of both. Filled in here: what the options say, and a NULL
     * cpu_manager_state as KUBELET-DIR/cpu_manager_state. */
    struct pinner_config pinner;
};

struct processors;

/* Strings are borrowed. If the live machine cannot be read, it is retried later; for other sources
 * that is an error. */
int processors_start(struct processors **out, const struct processors_config *c, struct error *err);
/* The kubelet's cgroupRoot. Borrowed. */
const char *processors_cgroup_root(const struct processors *p);
/* After the metrics are no longer served. NULL is allowed. */
void processors_stop(struct processors *p);
