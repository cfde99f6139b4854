// SPDX-License-Identifier: Apache-2.0
/*
 * What happens to the world: objects come, change and go, and others bind pods too.
 */
#include "test/unit/scheduler/world_internal.h"

#include <string.h>

#include "lib/base/json.h"
#include "lib/base/str.h"
#include "lib/kube/decode.h"
#include "lib/model/names.h"
#include "scheduler/model/nominations.h"
#include "scheduler/model/rejections.h"
#include "scheduler/cache/gangs.h"

void world_remove_node(struct world *w, uint64_t i)
{
    char name[16];
    (void)str_format(name, sizeof name, "n%llu", (unsigned long long)i);
    w->said = "node removed";
    world_spread_events(w, cluster_remove_node(&w->cluster, name));
}

void world_put_pod(struct world *w, uint64_t i)
{
    struct cluster_hooks hooks = world_hooks(w);
    world_spread_events(w, cluster_put_pod(&w->cluster, fixture_make_pod(&w->slots[i].f), &hooks));
}

static void bind_by_others(struct world *w, struct world_slot *s)
{
    (void)str_format(s->node, sizeof s->node, "n%llu",
                     (unsigned long long)world_random(w, w->nodes + 1));
    s->f.node = s->node;
    s->f.gated = false;
    world_fill_grant(w, s);
    w->foreign++;
}

void world_new_pod(struct world *w, uint64_t i)
{
    world_fill_pod(w, i);
    if (w->slots[i].f.scheduler != NULL && world_chance(w, 70))
        bind_by_others(w, &w->slots[i]);
    w->said = "pod put";
    world_put_pod(w, i);
}

void world_remove_pod(struct world *w, struct world_slot *s)
{
    struct cluster_hooks hooks = world_hooks(w);
    char key[32];
    (void)str_format(key, sizeof key, "d/%s", s->name);
    w->said = "pod removed";
    world_spread_events(
        w, cluster_remove_pod(&w->cluster, key, world_chance(w, 50) ? s->uid : NULL, &hooks));
    (void)cluster_remove_pod(&w->cluster, key, "another-uid", &hooks);
}

/* The watch says what the binder did: nodeName and grant in one event. */
static void confirm(struct world *w, struct world_slot *s, const struct cluster_pod *cp)
{
    struct labels written;
    grant_encode(&cp->grant, cp->pod, 15, &w->arena, &written);
    (void)str_format(s->node, sizeof s->node, "%s", cp->on->name);
    s->f.node = s->node;
    size_t n = s->requests;
    for (size_t i = 0; i < written.len && n < 46; i++) {
        s->annotations[n++] = arena_strdup(&w->specs, written.items[i].key);
        s->annotations[n++] = arena_strdup(&w->specs, written.items[i].value);
    }
    if (cp->grant.cpus.len > 0 &&
        world_chance(w, w->pinned ? 95 : 70)) { /* the node agent was quick */
        s->annotations[n++] = NAME_ANN_CPUSET_APPLIED;
        s->annotations[n++] = arena_strdup(&w->specs, labels_get(&written, NAME_ANN_CPUSET));
    }
    struct labels unit = policies_annotations(cp, &w->arena);
    for (size_t i = 0; i < unit.len && n < 46; i++)
        if (str_eq(unit.items[i].key, NAME_ANN_UNIT)) {
            s->annotations[n++] = NAME_ANN_UNIT;
            s->annotations[n++] = arena_strdup(&w->specs, unit.items[i].value);
        }
    s->annotations[n] = NULL;
    w->confirmed++;
}

void world_give_back(struct world *w, struct cluster_pod *cp, const char *text, bool confirmed)
{
    for (uint64_t i = 0; i < WORLD_PODS; i++) {
        struct world_slot *s = &w->slots[i];
        if (!str_eq(s->uid, cp->pod->uid))
            continue;
        for (size_t k = 0; s->annotations[k] != NULL; k += 2)
            if (str_eq(s->annotations[k], NAME_ANN_CPUSET) ||
                (confirmed && str_eq(s->annotations[k], NAME_ANN_CPUSET_APPLIED)))
                s->annotations[k + 1] = arena_strdup(&w->specs, text);
        world_put_pod(w, i);
    }
}

/* As sched_loop.c does when a Binding fails. */
static void forget(struct world *w, struct cluster_pod *cp)
{
    uint32_t events = cluster_note_freed(&w->cluster, cp->on);
    if (cp->volumes != NULL) {
        attempt_nominate(&w->attempt, cp, NULL, w->now_ms);
        events |= EVENT_VOLUME;
    }
    cluster_forget(&w->cluster, cp);
    if (cp->gang != NULL && queue_state(&w->queue, cp->gang) != GANG_BACKOFF)
        queue_retry(&w->queue, cp->gang, w->now_ms);
    world_spread_events(w, events);
}

void world_update_pod(struct world *w, uint64_t i)
{
    struct world_slot *s = &w->slots[i];
    char key[32];
    (void)str_format(key, sizeof key, "d/%s", s->name);
    struct cluster_pod *cp = cluster_find_pod(&w->cluster, key);
    if (cp == NULL || s->f.name == NULL)
        return;
    w->said = "pod updated";
    bool assumed = cp->state == CLUSTER_ASSUMED;
    switch (world_random(w, assumed ? 5 : 9)) {
    case 0:
    case 1:
        if (assumed) {
            w->said = "assumed pod confirmed";
            uint64_t before = cluster_digest(&w->cluster);
            struct cluster_node *on = cp->on;
            uint64_t used = resource_vector_digest(&on->used),
                     cards = gpu_accounts_digest(&on->gpu_accounts),
                     cpus = cpu_accounts_digest(&on->cpus);
            confirm(w, s, cp);
            world_bind_claims(w, cp);
            world_put_pod(w, i);
            MUST(w, cp->state == CLUSTER_BOUND && cp->on == on, "%s", key);
            MUST(w, resource_vector_digest(&on->used) == used, "%s", key);
            MUST(w, gpu_accounts_digest(&on->gpu_accounts) == cards || on->node == NULL, "%s", key);
            MUST(w, cpu_accounts_digest(&on->cpus) == cpus, "%s", key);
            MUST(w, cluster_digest(&w->cluster) != before, "%s", key);
            return;
        }
        if (cp->state == CLUSTER_FINISHED)
            return; /* for good */
        s->f.phase = world_chance(w, 70) ? "Running" : world_chance(w, 70) ? "Succeeded" : "Failed";
        break;
    case 2:
        w->said = "pod bound by somebody else";
        if ((!assumed && s->f.node != NULL) || (w->pinned && world_chance(w, 90)))
            return;
        bind_by_others(w, s);
        break;
    case 3:
        if (assumed) {
            w->said = "assumed pod forgotten";
            forget(w, cp);
            return;
        }
        s->f.gated = s->f.node == NULL && world_chance(w, 20);
        break;
    case 4:
        s->f.terminating = true;
        break;
    case 8:
        w->said = "pod nominated";
        (void)str_format(s->nominated, sizeof s->nominated, "n%llu",
                         (unsigned long long)world_random(w, w->nodes + 1));
        if (cp->state == CLUSTER_PENDING && world_chance(w, 50)) {
            world_spread_events(
                w, nominations_set(&w->cluster, cp, world_chance(w, 30) ? NULL : s->nominated));
            return;
        }
        s->f.nominated = world_chance(w, 30) ? NULL : s->nominated;
        break;
    case 5:
        w->said = "pod resized";
        s->f.c[0].cpu_milli = (int64_t)world_random(w, 8) * 250;
        break;
    case 6:
        w->said = "pod labelled";
        if (s->labels[0] == NULL) {
            s->labels[0] = "a";
            s->labels[1] = "b";
        } else {
            s->labels[0] = NULL; /* leaves its gang, too */
        }
        break;
    default:
        w->said = "pod tolerates";
        s->f.spec = "\"tolerations\":[{\"operator\":\"Exists\"}]";
        break;
    }
    world_put_pod(w, i);
}

void world_put_namespace(struct world *w)
{
    AUTO_JSON *doc = NULL;
    struct object *o = NULL;
    struct error err = ERROR_INIT;
    const char *text = world_chance(w, 50)
                           ? "{\"metadata\":{\"name\":\"d\",\"labels\":{\"team\":\"x\"}}}"
                           : "{\"metadata\":{\"name\":\"d\"}}";
    if (w->bursting && world_chance(w, 50))
        text = "{\"metadata\":{\"name\":\"d\",\"labels\":{\"" NAME_LABEL_ECI "\":\"true\"}}}";
    w->said = "namespace put";
    MUST(w,
         json_parse(&doc, text, strlen(text), &err) == 0 &&
             decode_namespace(json_root(doc), &o, &err) == 0,
         "%s", err.text);
    world_spread_events(w, api_objects_put(w->cluster.objects, API_OBJECTS_NAMESPACES, o));
}

void world_put_group(struct world *w)
{
    struct cluster_hooks hooks = world_hooks(w);
    bool x = world_chance(w, 50);
    char name[16], key[32];
    (void)str_format(name, sizeof name, "g%llu", (unsigned long long)(2 + world_random(w, 2)));
    (void)str_format(key, sizeof key, "d/%s", name);
    const char *const *wishes =
        w->bundled && !world_chance(w, 10)
            ? PAIRS(NAME_ANN_GANG_GROUPS, x ? "[\"d/g3\",\"d/g2\"]" : "[\"d/g2\",\"d/g3\"]")
            : NULL;
    w->said = "PodGroup put or removed";
    if (world_chance(w, 70))
        world_spread_events(w, gangs_put_group(&w->cluster,
                                               fixture_make_group_with(name, x ? 3 : 2, x, wishes),
                                               &hooks));
    else
        world_spread_events(w, gangs_remove_group(&w->cluster, key, x, &hooks));
}

/* A kubelet rejects a pod whose capacity another pod took first. */
void world_reject(struct world *w)
{
    static const char *const reasons[] = {"OutOfcpu", "OutOfpods", "OutOfaliyun.com/gpu-mem",
                                          "UnexpectedAdmissionError"};
    char node[16];
    (void)str_format(node, sizeof node, "n%llu", (unsigned long long)world_random(w, w->nodes + 1));
    struct pod *p = fixture_make_pod(&(struct fixture_pod){
        .name = "back", .node = node, .phase = "Failed", .c = {{.gib = 1, .cpu_milli = 1}}});
    p->status_reason = reasons[world_random(w, 4)];
    w->said = "pod sent back";
    rejections_note(&w->cluster, p, 0, w->now_ms);
    pod_free(p);
}

void world_wait(struct world *w)
{
    int64_t next_ms;
    w->said = "time passed";
    w->now_ms += (int64_t)world_random(w, 4000);
    world_spread_events(w, rejections_expire(&w->cluster, w->now_ms, &next_ms));
    world_spread_events(w, replacement_hold_expire(&w->cluster, w->now_ms, &next_ms));
    world_policies_wait(w);
    world_reserve(w);
}
