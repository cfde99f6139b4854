// SPDX-License-Identifier: Apache-2.0
/*
 * shell_kit - shared by the tests of the scheduler's shell: messages as from a reflector, and
 * queries on the requests that the API server's twin received.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "scheduler/intake.h"
#include "test/fake/api/twin.h"

enum { SHELL_WAIT_MS = 60000 };

/* Hands n objects (struct node, pod, pod_group or object, taken) to intake in one message. */
void shell_message(struct intake *in, enum intake_kind kind, enum reflector_event event, size_t n,
                   void *const *objects);
#define RESET(in, kind, ...)                                                                   \
    shell_message(in, kind, REFLECTOR_RESET, sizeof((void *[]){__VA_ARGS__}) / sizeof(void *), \
                  (void *[]){__VA_ARGS__})
#define RESET_EMPTY(in, kind) shell_message(in, kind, REFLECTOR_RESET, 0, NULL)
#define SEND(in, kind, event, object) shell_message(in, kind, event, 1, (void *[]){object})
/* Posts one object, as a reflector's thread does: it is applied by the loop. */
void shell_post(struct intake *in, enum intake_kind kind, enum reflector_event event, void *object);

/* How many of the requests that are kept (the last 64) begin with `method` and contain `part`
 * (NULL: anything). */
int shell_count(struct twin *t, const char *method, const char *part);
/* Until there are n of them; fails the test when they do not come. */
void shell_await(struct twin *t, const char *method, const char *part, int n);
