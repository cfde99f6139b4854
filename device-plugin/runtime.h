// SPDX-License-Identifier: Apache-2.0
/* runtime - the options for what containers get beside the standard environment: isolation, and how
 * the container runtime learns the cards. */
#pragma once

#include "device-plugin/agent.h"
#include "lib/base/options.h"

struct runtime_options { /* rows: runtime_option_rows */
    int isolation;       /* auto, none, or an engine */
    const char *library, *shares, *cuda_library;
    int64_t context_bytes;
    int enforce; /* report, evict */
    const char *mps_control, *mps_pipe, *mps_log, *mps_shm, *cgpu_dir;
    int device_list; /* enum agent_list */
    const char *cdi_dir;
    int cdi_spec; /* own, nvidia */
    bool mount_only;
};
extern const struct option_row runtime_option_rows[];

/* Strings are borrowed. */
void runtime_apply(const struct runtime_options *o, struct agent_config *c);
/* --mount-only. Logs what cannot be mounted: the plugin works without it. */
void runtime_mount(const struct runtime_options *o);
/* --enforce=evict */
bool runtime_evicts(const struct runtime_options *o);
