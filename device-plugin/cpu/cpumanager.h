// SPDX-License-Identifier: Apache-2.0
/*
 * cpumanager - which CPU manager policy the kubelet runs, by the state file that it keeps.
 */
#pragma once

#include <stdbool.h>

/* KUBELET-DIR/cpu_manager_state: {"policyName":"static","defaultCpuSet":"0-7","checksum":1}. A file
 * that is not there or cannot be read counts as another policy: the file is the only witness, and
 * the kubelet repairs or removes a broken one. */
bool cpumanager_is_static(const char *path);
