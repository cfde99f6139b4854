// SPDX-License-Identifier: Apache-2.0
/*
 * What must hold of the world between two operations: everything that is kept incrementally equals
 * a recount.
 */
#include "test/unit/scheduler/world_internal.h"

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/framework/equivalence.h"
#include "test/unit/scheduler/oracle.h"

static void check_node(const struct world *w, const struct cluster_node *cn)
{
    struct resource_vector used = {0};
    struct gpu_accounts gpu_accounts;
    gpu_accounts_init(&gpu_accounts);
    gpu_accounts_set_inventory(
        &gpu_accounts, cn->node ? labels_get(&cn->node->annotations, NAME_ANN_GPU_INVENTORY) : NULL,
        NULL);
    struct cpu_accounts cpus = {0};
    cpu_accounts_set_shape(&cpus, cn->cpus.shape);
    int64_t cpu = 0, gib = 0, percent = 0, cards = 0;
    for (size_t i = 0; i < cn->pods.len; i++) {
        const struct cluster_pod *cp = cn->pods.items[i];
        MUST(w, cp->on == cn && cp->on_place == i, "%s on %s", cp->pod->key, cn->name);
        MUST(w, cp->state == CLUSTER_ASSUMED || cp->state == CLUSTER_BOUND, "%s", cp->pod->key);
        resource_vector_account_offered(&used, &cp->request, &cn->allocatable, 1);
        gpu_accounts_account(&gpu_accounts, &cp->grant, cp->grant_trusted, &cp->gpu, 1);
        cpu_accounts_account(&cpus, &cp->grant.cpus, cp->cpu, 1);
        cpu = num_add_sat(cpu, cp->request.cpu_milli);
        gib += cp->gpu.total[GPU_REQUEST_MEM];
        percent += cp->gpu.total[GPU_REQUEST_CORE];
        cards += cp->gpu.total[GPU_REQUEST_CARDS];
    }
    MUST(w, cn->node != NULL || cn->pods.len > 0, "%s is kept for nothing", cn->name);
    MUST(w, cpu == cn->used.cpu_milli, "%s: %lld and %lld", cn->name, (long long)cpu,
         (long long)cn->used.cpu_milli);
    MUST(w, resource_vector_digest(&used) == resource_vector_digest(&cn->used), "used of %s",
         cn->name);
    MUST(w, used.extra_len == cn->used.extra_len, "names of %s", cn->name);
    MUST(w, gpu_accounts_digest(&gpu_accounts) == gpu_accounts_digest(&cn->gpu_accounts),
         "cards of %s", cn->name);
    MUST(w, cpu_accounts_digest(&cpus) == cpu_accounts_digest(&cn->cpus), "CPUs of %s", cn->name);
    MUST(w, cpuset_equal(&cpus.owned, &cn->cpus.owned) && cpuset_equal(&cpus.lent, &cn->cpus.lent),
         "CPUs of %s", cn->name);
    cpu_accounts_deinit(&cpus);
    /* All that pods request is accounted on cards, or held on every card. */
    const struct gpu_accounts *l = &cn->gpu_accounts;
    for (size_t i = 0; i < l->inventory.cards_len; i++) {
        const struct gpu_accounts_card *card = &l->cards[i];
        MUST(w, card->used_gib >= 0 && card->used_percent >= 0 && card->whole_holders >= 0,
             "card %zu of %s", i, cn->name);
        gib -= card->used_gib;
        percent -= card->used_percent;
        cards -= card->whole_holders;
    }
    MUST(w, gib == l->unplaced_gib && percent == l->unplaced_percent && cards == l->unplaced_cards,
         "%s: %lld GiB, %lld %%, %lld cards are nowhere", cn->name, (long long)gib,
         (long long)percent, (long long)cards);
    resource_vector_deinit(&used);
    gpu_accounts_deinit(&gpu_accounts);
}

void world_check(const struct world *w)
{
    const struct cluster *c = &w->cluster;
    const char *key;
    void *value;
    size_t on_nodes = 0, holding = 0, members = 0, ours = 0;
    for (size_t i = 0; map_next(&c->nodes, &i, &key, &value);) {
        check_node(w, value);
        on_nodes += ((const struct cluster_node *)value)->pods.len;
    }
    for (size_t i = 0; map_next(&c->pods, &i, &key, &value);) {
        const struct cluster_pod *cp = value;
        MUST(w, key == cp->pod->key, "the key of %s is not the object's", key);
        MUST(w, (cp->on != NULL) == (cp->state == CLUSTER_ASSUMED || cp->state == CLUSTER_BOUND),
             "%s", key);
        bool is_ours = str_eq(cp->pod->scheduler, NAME_SCHEDULER);
        bool settled = cp->state == CLUSTER_BOUND && cp->said.form == GANG_NONE;
        MUST(w, (cp->gang != NULL) == (is_ours && !settled), "%s", key);
        holding += cp->on != NULL;
        ours += cp->gang != NULL;
    }
    /* Labels of namespaces are looked at when the next pod asks. */
    MUST(w,
         c->index->namespaces != c->objects->generation[API_OBJECTS_NAMESPACES] || oracle_index(c),
         "the index");
    MUST(w, oracle_gangs(c), "the gangs");
    world_check_policies(w);
    MUST(w, w->pipeline.classes->disagreed == 0, "a class and the plugins disagreed");
    MUST(w, on_nodes == holding, "%zu and %zu", on_nodes, holding);
    for (size_t i = 0; map_next(&c->gangs, &i, &key, &value);) {
        const struct gang *g = value;
        bool waiting = false;
        MUST(w, g->members.len > 0, "%s is empty", key);
        for (size_t k = 0; k < g->members.len; k++) {
            MUST(w, g->members.items[k]->gang == g, "%s", key);
            waiting |= cluster_pod_is_schedulable(g->members.items[k]);
        }
        MUST(w, !waiting || queue_state(&w->queue, g) != GANG_IDLE, "%s waits and is in no queue",
             key);
        members += g->members.len;
    }
    MUST(w, members == ours, "%zu and %zu", members, ours);
    MUST(w,
         queue_len(&w->queue, GANG_ACTIVE) + queue_len(&w->queue, GANG_BACKOFF) +
                 queue_len(&w->queue, GANG_PARKED) <=
             map_count(&c->gangs),
         "the queue has gangs that are gone");
}
