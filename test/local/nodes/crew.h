// SPDX-License-Identifier: Apache-2.0
/*
 * crew - a thread that serves simulated nodes: a loop, a connection to the API server, a mailbox. A
 * node with a kubelet has a crew of its own, for its admissions wait for its device plugin; nodes
 * without one share a few.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "lib/kube/config.h"
#include "lib/kube/events.h"
#include "test/local/nodes/podview.h"
#include "test/local/nodes/simnode.h"
#include "test/local/nodes/nodes_file.h"

struct crew;

struct crew_config {
    struct kube_config *kube;
    const struct kube_options *kube_options;
    struct events *events;
    const char *directory, *plugin_binary, *kubeconfig_path;
};
int crew_new(struct crew **out, const struct crew_config *c, struct error *err);
/* Before crew_start. */
int crew_add(struct crew *c, struct nodes_spec *spec, struct simnode **out, struct error *err);
int crew_start(struct crew *c, struct error *err);
/* No letters are taken any more, and what is under way comes to an end soon. Any thread. */
void crew_close(struct crew *c);
/* After crew_close: ends the nodes and the thread, frees. */
void crew_free(struct crew *c);

/* Any thread but the crew's; each takes the views. false: closed. */
bool crew_reset(struct crew *c, struct podview **views, size_t len); /* also takes the array */
bool crew_put(struct crew *c, struct simnode *n, struct podview *v);
bool crew_gone(struct crew *c, struct simnode *n, const char *uid); /* n NULL: whichever has it */
bool crew_restart_kubelet(struct crew *c, struct simnode *n);
bool crew_cut(struct crew *c, struct simnode *n, bool cut);
