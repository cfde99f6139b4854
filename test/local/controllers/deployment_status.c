// SPDX-License-Identifier: Apache-2.0
/*
 * deployment_status - the status that `kubectl rollout status` and `kubectl wait` read.
 */
#include "test/local/controllers/deployment.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/num.h"

static const char SECOND[] = "lastUpdateTime";

struct numbers {
    int64_t replicas, updated, ready, available, terminating, unavailable;
};

static struct numbers add_up(const struct deployment *d)
{
    struct numbers n = {0};
    int64_t wanted = 0;
    for (size_t i = 0; i < d->sets.len; i++) {
        const struct deployment_set *s = d->sets.items[i];
        n.replicas += s->has;
        n.ready += s->ready;
        n.available += s->available;
        n.terminating += s->terminating;
        wanted += s->replicas;
    }
    n.updated = d->current ? d->current->has : 0;
    n.unavailable = num_max(0, wanted - n.available);
    return n;
}

static bool is_complete(const struct deployment *d, const struct numbers *n)
{
    return n->updated == d->replicas && n->replicas == d->replicas && n->available == d->replicas;
}

bool deployment_is_complete(const struct deployment *d)
{
    struct numbers n = add_up(d);
    return is_complete(d, &n);
}

static bool has_progressed(const struct jsonnode *old, const struct numbers *n)
{
    int64_t updated = controllers_int(jsonnode_get(old, "updatedReplicas"), 0),
            replicas = controllers_int(jsonnode_get(old, "replicas"), 0);
    return n->updated > updated || n->replicas - n->updated < replicas - updated ||
           n->ready > controllers_int(jsonnode_get(old, "readyReplicas"), 0) ||
           n->available > controllers_int(jsonnode_get(old, "availableReplicas"), 0);
}

static void touch(struct jsontree *t, struct jsonnode *list, const char *type)
{
    char now[32];
    controllers_now(now);
    for (size_t i = 0; i < jsonnode_len(list); i++)
        if (str_eq(jsonnode_get_str(jsonnode_at(list, i), "type"), type))
            jsonnode_set_str(t, jsonnode_at(list, i), "lastUpdateTime", now);
}

static void remove_condition(struct jsonnode *list, const char *type)
{
    for (size_t i = 0; i < jsonnode_len(list); i++)
        if (str_eq(jsonnode_get_str(jsonnode_at(list, i), "type"), type)) {
            jsonnode_remove_at(list, i);
            return;
        }
}

/* The time in which it is paused does not count against the deadline. */
static void set_paused(const struct deployment *d, struct jsontree *t, struct jsonnode *list)
{
    static const char PAUSED[] = "DeploymentPaused";
    const char *reason = jsonnode_get_str(controllers_condition(list, "Progressing"), "reason");
    if (str_eq(reason, "ProgressDeadlineExceeded"))
        return;
    if (d->paused)
        controllers_set_condition_text(t, list, "Progressing", "Unknown", PAUSED,
                                       "Deployment is paused", SECOND);
    else if (str_eq(reason, PAUSED))
        controllers_set_condition_text(t, list, "Progressing", "Unknown", "DeploymentResumed",
                                       "Deployment is resumed", SECOND);
}

static void set_progressing(struct deployment *d, const struct jsonnode *old,
                            const struct numbers *n, struct jsontree *t, struct jsonnode *list)
{
    int64_t deadline_s;
    if (!jsonnode_int(jsonnode_get(d->spec, "progressDeadlineSeconds"), &deadline_s) ||
        deadline_s >= INT32_MAX) {
        remove_condition(list, "Progressing");
        return;
    }
    set_paused(d, t, list);
    if (d->paused || !d->current)
        return;
    char message[400];
    const struct jsonnode *now = controllers_condition(list, "Progressing");
    const char *name = d->current->o->name, *reason = jsonnode_get_str(now, "reason");
    if (!d->made && n->replicas == n->updated && str_eq(reason, "NewReplicaSetAvailable"))
        return; /* it is rolled out: pods that come and go, by scaling too, are no rollout */
    if (is_complete(d, n)) {
        str_format(message, sizeof message, "ReplicaSet \"%s\" has successfully progressed.", name);
        controllers_set_condition(t, list, "Progressing", true, "NewReplicaSetAvailable", message,
                                  SECOND);
        return;
    }
    if (d->made || !now) {
        str_format(message, sizeof message, "%s new replica set \"%s\"",
                   d->made ? "Created" : "Found", name);
        controllers_set_condition(t, list, "Progressing", true,
                                  d->made ? "NewReplicaSetCreated" : "FoundNewReplicaSet", message,
                                  SECOND);
        return;
    }
    if (has_progressed(old, n)) {
        str_format(message, sizeof message, "ReplicaSet \"%s\" is progressing.", name);
        if (!controllers_set_condition(t, list, "Progressing", true, "ReplicaSetUpdated", message,
                                       SECOND))
            touch(t, list, "Progressing");
        return;
    }
    if (str_eq(reason, "NewReplicaSetAvailable") || str_eq(reason, "ProgressDeadlineExceeded"))
        return;
    const char *since = jsonnode_get_str(now, SECOND);
    int64_t at = since ? clock_parse_rfc3339(since) : -1;
    int64_t left_ms = at < 0 ? 0 : (at - clock_wall_ns()) / 1000000 + deadline_s * 1000;
    if (left_ms > 0) {
        if (*d->again_ms < 0 || left_ms < *d->again_ms)
            *d->again_ms = left_ms;
        return;
    }
    str_format(message, sizeof message, "ReplicaSet \"%s\" has timed out progressing.", name);
    controllers_set_condition(t, list, "Progressing", false, "ProgressDeadlineExceeded", message,
                              SECOND);
}

static void set_available(const struct deployment *d, const struct numbers *n, struct jsontree *t,
                          struct jsonnode *list)
{
    bool enough = n->available >= d->replicas - d->max_unavailable;
    controllers_set_condition(t, list, "Available", enough,
                              enough ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
                              enough ? "Deployment has minimum availability."
                                     : "Deployment does not have minimum availability.",
                              "lastUpdateTime");
}

static const struct jsonnode *failure_of(const struct deployment_set *s)
{
    return s ? controllers_condition(jsonnode_path(s->root, "status", "conditions", NULL),
                                     "ReplicaFailure")
             : NULL;
}

/* The Deployment repeats why a set cannot create pods; the current set's reason goes first. */
static void set_failure(const struct deployment *d, struct jsontree *t, struct jsonnode *list)
{
    const struct jsonnode *failure = failure_of(d->current);
    for (size_t i = 0; i < d->sets.len && !failure; i++)
        failure = failure_of(d->sets.items[i]);
    if (failure) {
        controllers_set_condition(
            t, list, "ReplicaFailure", true, str_or_empty(jsonnode_get_str(failure, "reason")),
            str_or_empty(jsonnode_get_str(failure, "message")), "lastUpdateTime");
        return;
    }
    remove_condition(list, "ReplicaFailure");
}

int deployment_status_write(struct deployment *d, struct error *err)
{
    AUTO_JSONTREE *t = jsontree_new();
    const struct jsonnode *old = jsonnode_get(d->root, "status");
    struct numbers n = add_up(d);
    struct jsonnode *status = jsonnode_object(t);
    jsontree_set_root(t, status);
    jsonnode_set_int(t, status, "observedGeneration",
                     controllers_int(jsonnode_path(d->root, "metadata", "generation", NULL), 0));
    const struct {
        const char *key;
        int64_t value;
    } list[] = {{"replicas", n.replicas},
                {"updatedReplicas", n.updated},
                {"readyReplicas", n.ready},
                {"availableReplicas", n.available},
                {"unavailableReplicas", n.unavailable}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i].value > 0)
            jsonnode_set_int(t, status, list[i].key, list[i].value);
    jsonnode_set_int(t, status, "terminatingReplicas", n.terminating);
    const struct jsonnode *before = jsonnode_get(old, "conditions");
    struct jsonnode *conditions =
        jsonnode_is_array(before) ? jsonnode_clone(t, before) : jsonnode_array(t);
    set_available(d, &n, t, conditions);
    set_progressing(d, old, &n, t, conditions);
    set_failure(d, t, conditions);
    jsonnode_set(t, status, "conditions", conditions);
    return controllers_set_status(d->c, d->o, status, err);
}
