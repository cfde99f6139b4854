// SPDX-License-Identifier: Apache-2.0
/* podmounts - finds the container of a process by its /proc/PID/mountinfo. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A process makes its mountinfo as long as it likes; with 40 volumes a container's has 10 KiB. */
enum { PODMOUNTS_NAME_SIZE = 64, PODMOUNTS_BYTES_MAX = 256 * 1024 };

/* uid: the pod's, as the API server writes it. false: the process is not (yet) in its
 * containers. */
bool podmounts_parse(const char *text, size_t n, const char *uid, char out[PODMOUNTS_NAME_SIZE]);
/* The last component of the host path mounted at `at`; of several, the last mount, which covers the
 * others. false: none. */
bool podmounts_at(const char *text, size_t n, const char *at, char out[PODMOUNTS_NAME_SIZE]);
