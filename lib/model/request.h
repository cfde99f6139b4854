// SPDX-License-Identifier: Apache-2.0
/*
 * request - messages of gpu_request and cpu_request about fields that no program can serve. Pure.
 *
 * A message starts with the path of the field, then says what is there and what to write. The
 * webhook refuses the pod with all of them; the scheduler and the device plugin report the first.
 */
#pragma once

#include <stddef.h>

#include "lib/base/arena.h"
#include "lib/model/pod.h"

enum { REQUEST_ERRORS_MAX = 12 };

struct request_errors {
    const char *items[REQUEST_ERRORS_MAX];
    size_t len;
    size_t left_out; /* more were found */
};

/* The message lives in a. */
void request_errors_add(struct request_errors *e, struct arena *a, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The first one, or NULL. */
const char *request_errors_first(const struct request_errors *e);
/* "spec.initContainers[0]", by the index that grants use. In a. */
const char *request_container_path(const struct pod *p, size_t container, struct arena *a);
/* A user's value in quotes: at most 64 printable bytes. In a. */
const char *request_quote(const char *value, struct arena *a);
