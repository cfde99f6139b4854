// SPDX-License-Identifier: Apache-2.0
/*
 * simnode_object - the node as the API server sees it: registered when its kubelet starts, its
 * status when the devices change and once a minute, its Lease every ten seconds.
 */
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "test/local/nodes/nodeobj.h"
#include "test/local/nodes/simnode_internal.h"

enum { RETRY_MS = 500, LEASE_MS = 10 * 1000, STATUS_MS = 60 * 1000 };

static void amounts(struct simnode *n, struct nodeobj_amounts *a)
{
    if (n->devices != NULL)
        devices_amounts(n->devices, nodeobj_amounts_add, a);
}

static int send_status(struct simnode *n, json *old, struct error *err)
{
    struct nodeobj_amounts a = {0};
    AUTO_STRBUF body;
    strbuf_init(&body);
    amounts(n, &a);
    nodeobj_print_status(n->c.spec, &a, old, n->since_ns, clock_wall_ns(), &body);
    nodeobj_amounts_deinit(&a);
    return kube_patch(n->c.client, &kube_nodes, NULL, n->c.spec->name, "status",
                      KUBE_PATCH_STRATEGIC, strbuf_str(&body), body.len, NULL, err);
}

void simnode_send_status(void *arg)
{
    struct simnode *n = arg;
    struct error err = ERROR_INIT;
    if (n->ending || n->cut || !n->registered || n->deleted)
        return;
    if (send_status(n, NULL, &err) == 0) {
        n->status_unsent = false;
        n->status_ms = clock_mono_ms();
        return;
    }
    n->status_unsent = true;
    if (err.code == ERROR_NOT_FOUND) {
        /* As a real kubelet, which registers when it starts and not again. */
        log_warn("the Node was deleted; it comes back with a restart of the kubelet",
                 kv("node", n->c.spec->name));
        n->status_unsent = false;
        n->deleted = true;
        return;
    }
    if (err.code != ERROR_CANCELLED)
        log_warn("the node's status cannot be sent", kv("node", n->c.spec->name),
                 kv("error", err.text));
    loop_timer_set(n->c.loop, &n->status, RETRY_MS, simnode_send_status, n);
}

/* There is a Node of that name already, as after a restart. */
static int take_over(struct simnode *n, struct error *err)
{
    AUTO_JSON *doc = NULL;
    bool zero = n->devices != NULL && devices_is_fresh(n->devices);
    if (zero && kube_get(n->c.client, &kube_nodes, NULL, n->c.spec->name, &doc, err) < 0)
        return -1;
    return send_status(n, doc != NULL ? json_root(doc) : NULL, err);
}

void simnode_register(void *arg)
{
    struct simnode *n = arg;
    struct nodeobj_amounts a = {0};
    struct error err = ERROR_INIT;
    AUTO_STRBUF body;
    strbuf_init(&body);
    if (n->ending || n->cut || n->registered)
        return;
    if (n->since_ns == 0)
        n->since_ns = clock_wall_ns();
    amounts(n, &a);
    nodeobj_print(n->c.spec, &a, n->since_ns, clock_wall_ns(), &body);
    nodeobj_amounts_deinit(&a);
    int result =
        kube_create(n->c.client, &kube_nodes, NULL, strbuf_str(&body), body.len, NULL, &err);
    if (result < 0 && err.code == ERROR_CONFLICT) {
        error_clear(&err);
        result = take_over(n, &err);
    }
    if (result < 0) {
        if (err.code != ERROR_CANCELLED)
            log_warn("the node cannot be registered; again soon", kv("node", n->c.spec->name),
                     kv("error", err.text));
        loop_timer_set(n->c.loop, &n->register_, RETRY_MS, simnode_register, n);
        return;
    }
    n->registered = true;
    n->deleted = n->status_unsent = false;
    n->status_ms = clock_mono_ms();
    log_debug("node registered", kv("node", n->c.spec->name));
    if (n->c.spec->role != NODES_FILE_HOLLOW)
        simnode_renew(n);
    if (n->devices != NULL)
        simnode_start_kubelet(n);
}

static int renew(struct simnode *n, struct error *err)
{
    AUTO_STRBUF body;
    strbuf_init(&body);
    nodeobj_print_lease(n->c.spec, !n->lease_made, clock_wall_ns(), &body);
    if (n->lease_made)
        return kube_patch(n->c.client, &kube_leases, "kube-node-lease", n->c.spec->name, NULL,
                          KUBE_PATCH_MERGE, strbuf_str(&body), body.len, NULL, err);
    return kube_create(n->c.client, &kube_leases, "kube-node-lease", strbuf_str(&body), body.len,
                       NULL, err);
}

void simnode_renew(void *arg)
{
    struct simnode *n = arg;
    struct error err = ERROR_INIT;
    if (n->ending || n->cut || !n->registered)
        return;
    if (renew(n, &err) == 0 || err.code == ERROR_CONFLICT) {
        n->lease_made = true;
        n->lease_refused = false;
    } else if (n->lease_made && err.code == ERROR_NOT_FOUND) {
        n->lease_made = false;
    } else if (err.code != ERROR_CANCELLED) {
        if (!n->lease_refused)
            log_warn("the node's lease cannot be renewed", kv("node", n->c.spec->name),
                     kv("error", err.text));
        n->lease_refused = true;
        n->status_unsent = true; /* perhaps the node was given up meanwhile */
    }
    if (n->status_unsent || clock_mono_ms() - n->status_ms > STATUS_MS)
        simnode_send_status(n);
    loop_timer_set(n->c.loop, &n->lease, n->lease_made ? LEASE_MS : LEASE_MS / 10, simnode_renew,
                   n);
}
