// SPDX-License-Identifier: Apache-2.0
/*
 * deployment - apps/v1 Deployment: one ReplicaSet for each template it ever had; the one of the
 * current template grows while the others shrink, within maxSurge and maxUnavailable.
 *
 *   sync ──► find the set of the template, or make it (deployment_sets.c)
 *        ──► spec.replicas changed, or paused: the sets follow             (deployment_scale.c)
 *            RollingUpdate: grow the new one, then shrink the old ones     (roll)
 *            Recreate: shrink the old ones, then grow the new one          (recreate)
 *        ──► complete, or paused: forget sets beyond revisionHistoryLimit
 *        ──► status                                                        (deployment_status.c)
 *
 * Each step scales some sets; changes of their status trigger the next step, until none is left. A
 * rollout may stop halfway: new pods that do not fit keep as many old ones alive, and there are up
 * to replicas + maxSurge of both (test/integration/suite_rollout.py has the real controller's
 * numbers).
 */
#include "test/local/controllers/deployment.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/num.h"

static void read_bounds(struct deployment *d)
{
    const struct jsonnode *strategy = jsonnode_get(d->spec, "strategy");
    d->recreate = str_eq(jsonnode_get_str(strategy, "type"), "Recreate");
    if (d->recreate)
        return;
    const struct jsonnode *rolling = jsonnode_get(strategy, "rollingUpdate");
    const struct jsonnode *surge = jsonnode_get(rolling, "maxSurge"),
                          *unavailable = jsonnode_get(rolling, "maxUnavailable");
    d->max_surge = controllers_scaled(surge, d->replicas, true, 0);
    d->max_unavailable = controllers_scaled(unavailable, d->replicas, false, 0);
    if (!surge)
        d->max_surge = (d->replicas + 3) / 4;
    if (!unavailable)
        d->max_unavailable = d->replicas / 4;
    if (d->max_surge == 0 && d->max_unavailable == 0)
        d->max_unavailable = 1;
    d->max_unavailable = num_min(d->max_unavailable, d->replicas);
}

/* How many the new set may have now. */
static int64_t new_size(const struct deployment *d, int64_t has)
{
    if (d->recreate)
        return d->replicas;
    if (has > d->replicas)
        return d->replicas;
    int64_t room = d->replicas + d->max_surge - deployment_sets_old(d) - has;
    return room <= 0 ? has : num_min(has + room, d->replicas);
}

static int shrink_old(struct deployment *d, struct error *err)
{
    int64_t old = deployment_sets_old(d);
    if (old == 0)
        return 0;
    int64_t min_available = d->replicas - d->max_unavailable;
    int64_t budget =
        old + d->current->replicas - min_available - (d->current->replicas - d->current->available);
    /* What is not available anyway goes first. */
    for (size_t i = 0; i < d->sets.len && budget > 0; i++) {
        struct deployment_set *s = d->sets.items[i];
        int64_t idle = num_min(s->replicas - s->available, budget);
        if (s == d->current || idle <= 0)
            continue;
        if (deployment_set_scale(d, s, s->replicas - idle, err) < 0)
            return -1;
        budget -= idle;
    }
    int64_t available = 0;
    for (size_t i = 0; i < d->sets.len; i++)
        available += num_min(d->sets.items[i]->available, d->sets.items[i]->replicas);
    int64_t spare = num_min(available - min_available, budget);
    for (size_t i = 0; i < d->sets.len && spare > 0; i++) {
        struct deployment_set *s = d->sets.items[i];
        int64_t n = num_min(s->replicas, spare);
        if (s == d->current || n <= 0)
            continue;
        if (deployment_set_scale(d, s, s->replicas - n, err) < 0)
            return -1;
        spare -= n;
    }
    return 0;
}

static int roll(struct deployment *d, struct error *err)
{
    if (!d->current && deployment_set_create(d, new_size(d, 0), err) < 0)
        return -1;
    int64_t size = new_size(d, d->current->replicas);
    if (size != d->current->replicas && deployment_set_scale(d, d->current, size, err) < 0)
        return -1;
    return shrink_old(d, err);
}

static int recreate(struct deployment *d, struct error *err)
{
    bool busy = false;
    for (size_t i = 0; i < d->sets.len; i++) {
        struct deployment_set *s = d->sets.items[i];
        if (s == d->current)
            continue;
        if (s->replicas > 0 && deployment_set_scale(d, s, 0, err) < 0)
            return -1;
        struct controllers_pods pods = {0};
        controllers_pods_of(d->c, s->o->uid, &kind_pods, &pods);
        for (size_t k = 0; k < pods.len; k++)
            busy |= pods.items[k]->phase != POD_SUCCEEDED && pods.items[k]->phase != POD_FAILED;
        vec_deinit(&pods);
    }
    if (busy)
        return 0;
    if (!d->current && deployment_set_create(d, d->replicas, err) < 0)
        return -1;
    if (d->current->replicas != d->replicas)
        return deployment_set_scale(d, d->current, d->replicas, err);
    return 0;
}

static int read_deployment(struct deployment *d, struct error *err)
{
    if (jsontree_parse(&d->t, d->o->text, d->o->text_len, err) < 0)
        return -1;
    d->root = jsontree_root(d->t);
    d->spec = jsonnode_get(d->root, "spec");
    d->replicas = num_max(0, controllers_int(jsonnode_get(d->spec, "replicas"), 1));
    d->paused = jsonnode_bool(jsonnode_get(d->spec, "paused"), false);
    read_bounds(d);
    return deployment_sets_read(d, err);
}

static int drive(struct deployment *d, struct error *err)
{
    if (jsonnode_path(d->root, "metadata", "deletionTimestamp", NULL))
        return 0;
    if (d->current && deployment_set_revise(d, err) < 0)
        return -1;
    if (d->paused)
        return deployment_scale(d, err) < 0 ? -1 : deployment_sets_forget(d, err);
    /* Recreate has no use for it: what is old goes anyway, and what is new is filled. */
    if (!d->recreate && deployment_scale_is_due(d))
        return deployment_scale(d, err); /* changed sets bring it back */
    if ((d->recreate ? recreate(d, err) : roll(d, err)) < 0)
        return -1;
    return deployment_is_complete(d) ? deployment_sets_forget(d, err) : 0;
}

int deployment_sync(struct controllers *c, const struct controllers_work *w, int64_t *again_ms,
                    struct error *err)
{
    struct deployment d = {.c = c, .again_ms = again_ms};
    d.o = store_get(c->store, w->kind, w->ns, w->name);
    if (!d.o)
        return 0;
    object_ref(d.o);
    int rc = read_deployment(&d, err);
    if (rc == 0) {
        rc = drive(&d, err);
        struct error ignored = ERROR_INIT;
        if (deployment_status_write(&d, rc < 0 ? &ignored : err) < 0)
            rc = -1;
    }
    deployment_sets_deinit(&d);
    jsontree_free(d.t);
    object_unref(d.o);
    return rc;
}
