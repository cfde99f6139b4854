// SPDX-License-Identifier: Apache-2.0
/*
 * nodes_host - simulated nodes inside the process that serves their API: on a thread of their own,
 * as they wait for replies that the loop's thread gives.
 */
#pragma once

#include "lib/base/error.h"
#include "lib/base/loop.h"
#include "test/local/faults/faults.h"
#include "test/local/nodes/nodes.h"

struct nodes_host;

/* started and stopped are called on the loop: started once with an error or NULL, stopped once
 * after nodes_host_ask_stop. What c points to lives as long as the host. */
struct nodes_host_events {
    void (*started)(void *arg, const struct error *err);
    void (*stopped)(void *arg);
    void *arg;
};
int nodes_host_start(struct nodes_host **out, struct loop *l, const struct nodes_config *c,
                     const struct nodes_host_events *events, struct error *err);
/* For faults_config.node; arg is the host. A node or card that is not there is an error at once;
 * the fault is made by the host's thread, since it may wait there, and what fails then is
 * logged. */
int nodes_host_fault(void *arg, const struct faults_node *what, struct error *err);
void nodes_host_ask_stop(struct nodes_host *h);
void nodes_host_free(struct nodes_host *h); /* after `stopped`; NULL is fine */
