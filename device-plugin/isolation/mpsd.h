// SPDX-License-Identifier: Apache-2.0
/* mpsd - runs NVIDIA's MPS control daemon as a child while the node is in mode mps. */
#pragma once

#include <stdbool.h>

#include "lib/base/loop.h"

struct mpsd;

/* path: nvidia-cuda-mps-control, started with this process's CUDA_MPS limits, if it has any.
 * Creates pipe_dir and log_dir if needed. changed is called when the daemon has started or ended.
 * Does not start it. Copies all strings. */
void mpsd_new(struct mpsd **out, struct loop *loop, const char *path, const char *pipe_dir,
              const char *log_dir, void (*changed)(void *arg), void *arg);
/* Ends the daemon, and its clients with it. */
void mpsd_free(struct mpsd *m);
/* Whether it should run. */
void mpsd_want(struct mpsd *m, bool run);
