// SPDX-License-Identifier: Apache-2.0
/*
 * settings - the program's own options and its help text; those of its parts are with the parts.
 */
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
    /* No options: by settings_settle. */
    char plugin_path[RPC_PATH_MAX + 1], pod_resources_path[RPC_PATH_MAX + 1];
};
extern const struct option_row settings_rows[];
extern const struct option_program settings_program;

/* What is left to the environment and to other options is filled in. */
int settings_settle(struct settings *s, struct error *err);
