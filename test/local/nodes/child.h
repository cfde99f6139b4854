// SPDX-License-Identifier: Apache-2.0
/*
 * child - one child process: started, watched by a descriptor, ended by its own descriptor (so that
 * no other process that got its number is ever hit). It ends with the thread that started it.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/error.h"

struct child {
    pthread_mutex_t lock;
    pid_t pid; /* 0: none */
    int pidfd; /* readable when it has ended; -1 */
};

void child_init(struct child *c);
void child_deinit(struct child *c); /* child_stop comes first */
/* Standard output and error are appended to the file. */
int child_start(struct child *c, const char *const *argv, const char *log_path, struct error *err);
/* True, once, when it has ended: *status is waitpid's. Its starter's thread only. */
bool child_reap(struct child *c, int *status);
/* Any thread; nothing happens when there is none. */
void child_signal(struct child *c, int signo);
/* SIGTERM, then after wait_ms SIGKILL; waits for the end. */
void child_stop(struct child *c, int64_t wait_ms);
