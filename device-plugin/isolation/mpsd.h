// SPDX-License-Identifier: Apache-2.0
/*
 * mpsd - NVIDIA's MPS control daemon as our child process: started while the node is in mode mps,
 * restarted when it ends.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/loop.h"

struct mpsd;

/* path: nvidia-cuda-mps-control. pipe_dir and log_dir are created if need be. changed is called
 * when it has started or ended. Does not start it. Everything is copied. */
void mpsd_new(struct mpsd **out, struct loop *loop, const char *path, const char *pipe_dir,
              const char *log_dir, void (*changed)(void *arg), void *arg);
/* Ends the daemon, and its clients with it. */
void mpsd_free(struct mpsd *m);
/* Whether it should run. */
void mpsd_want(struct mpsd *m, bool run);
