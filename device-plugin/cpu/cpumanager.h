// SPDX-License-Identifier: Apache-2.0
/* cpumanager - the kubelet's CPU manager policy, read from its state file. */
#pragma once

#include <stdbool.h>

/* KUBELET-DIR/cpu_manager_state: {"policyName":"static","defaultCpuSet":"0-7","checksum":1}. A
 * missing or unreadable file counts as another policy: there is no other source, and the kubelet
 * repairs or removes a broken file. */
bool cpumanager_is_static(const char *path);
