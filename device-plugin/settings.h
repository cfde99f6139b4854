// SPDX-License-Identifier: Apache-2.0
/* settings - the program's own options and its help text; modules define their own options. */
#pragma once

#include <stdint.h>

#include "device-plugin/kubelet/rpc.h"
#include "lib/base/error.h"
#include "lib/base/options.h"

#define SETTINGS_PROGRAM "cosched-device-plugin"

enum { SETTINGS_EXCLUSIVE_ON, SETTINGS_EXCLUSIVE_OFF };

struct settings { /* rows: settings_rows */
    const char *node;
    const char *kubelet_dir, *plugin_dir, *pod_resources;
    const char *state_dir;
    int exclusive; /* on, off */
    int64_t publish_interval_ms;
    /* Not options: set by settings_settle. */
    char plugin_path[RPC_PATH_MAX + 1], pod_resources_path[RPC_PATH_MAX + 1];
};
extern const struct option_row settings_rows[];
extern const struct option_program settings_program;

/* Fills in what depends on the environment and on other options. */
int settings_settle(struct settings *s, struct error *err);
