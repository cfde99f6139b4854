// SPDX-License-Identifier: Apache-2.0
/*
 * podmounts - a process's /proc/PID/mountinfo → the name of the container that it runs in. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { PODMOUNTS_NAME_SIZE = 64, PODMOUNTS_BYTES_MAX = 1024 * 1024 };

/* Of the pod with this uid, as the API server writes it. false: the process is in none of its
 * containers, or not yet. */
bool podmounts_parse(const char *text, size_t n, const char *uid, char out[PODMOUNTS_NAME_SIZE]);
/* The last part of the host's path of what is mounted at `at`; of several the last, which covers
 * the others. false: nothing is. */
bool podmounts_at(const char *text, size_t n, const char *at, char out[PODMOUNTS_NAME_SIZE]);
