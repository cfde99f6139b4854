// SPDX-License-Identifier: Apache-2.0
/* hardware - the program's GPU options, the backend's thread and its monitor. On the loop. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "device-plugin/monitor/monitor.h"
#include "lib/base/error.h"
#include "lib/base/loop.h"
#include "lib/base/options.h"

struct hardware_options { /* rows: hardware_option_rows */
    int backend;          /* nvml, sim, none, auto */
    const char *nvml_library, *sim_file, *sysfs, *proc;
    int64_t scan_interval_ms, scan_deadline_ms, recovery_hold_ms;
    const char *cpu_manager_state;
};
extern const struct option_row hardware_option_rows[];
/* Resolves --backend=auto. Call it first after parsing the options. */
void hardware_settle(struct hardware_options *o);
/* false: a node without cards; hardware_start is not called. */
bool hardware_has_cards(const struct hardware_options *o);
const char *hardware_backend_name(const struct hardware_options *o);

struct hardware;

/* kubelet_dir: where the CPU manager's state is by default. fatal: the backend cannot be opened, so
 * there will be no cards. Options and kubelet_dir are borrowed. If *out is set on failure, the
 * caller still stops and frees it. */
int hardware_start(struct hardware **out, struct loop *loop, const struct hardware_options *o,
                   const char *kubelet_dir, const struct monitor_hooks *hooks,
                   void (*fatal)(void *arg), struct error *err);
struct monitor *hardware_monitor(struct hardware *h);
/* Ends the scans. false: the backend does not return now; its thread is left behind, the loop must
 * not be freed, and the process should exit. */
bool hardware_stop(struct hardware *h);
/* After the metrics are no longer served, and only if hardware_stop returned true. NULL is
 * allowed. */
void hardware_free(struct hardware *h);
