// SPDX-License-Identifier: Apache-2.0
#include "scheduler/replay/replay_load_dump.h"

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/kube/decode_field.h"
#include "scheduler/cycle/reservation.h"
#include "scheduler/dump/dump.h"
#include "scheduler/dump/dump_demand.h"

enum { NS_PER_MS = 1000000 };

static void read_burst(struct replay_load *l, json *own, const char *where)
{
    struct error err = ERROR_INIT;
    const char *gangs = json_get_str(own, "gangBurst");
    if (str_eq(gangs, CLUSTER_GANG_WHOLE_NAME))
        l->cluster->gang_pools = CLUSTER_GANG_WHOLE;
    else if (str_eq(gangs, CLUSTER_GANG_MEMBER_NAME))
        l->cluster->gang_pools = CLUSTER_GANG_MEMBER;
    if (cluster_set_virtuals(l->cluster, json_get_str(own, "virtualNodeLabels"),
                             json_get_str(own, "virtualNodeTaints"), &err) < 0)
        replay_load_refuse(l, where, &err);
}

bool replay_load_dump_read_head(struct replay_load *l, json *own, const char *where)
{
    const char *name = json_get_str(own, "schedulerName");
    int64_t version = DUMP_VERSION;
    if (json_get_int(own, "dump", &version) && version != DUMP_VERSION) {
        struct error err = ERROR_INIT;
        error_set(&err, ERROR_UNSUPPORTED,
                  "cosched.dump: version %lld of the dump, this program reads %d",
                  (long long)version, DUMP_VERSION);
        replay_load_refuse(l, where, &err);
        return false;
    }
    if (!l->scored && str_eq(json_get_str(own, "scoring"), CLUSTER_FULLEST_NAME))
        l->cluster->packing = CLUSTER_FULLEST_FIRST;
    if (name != NULL && !l->named) {
        l->cluster->scheduler_name = arena_strdup(&l->arena, name);
        l->named = true;
    }
    struct error err = ERROR_INIT;
    if (decode_field_time(json_get(own, "policiesAt"), "cosched.policiesAt",
                          &l->cluster->policies->now_ns, &err) < 0)
        replay_load_refuse(l, where, &err);
    if (own != NULL)
        read_burst(l, own, where);
    return true;
}

static int read_ms(json *in, const char *name, int64_t *out, struct error *err)
{
    int64_t ns = 0;
    if (decode_field_time(json_get(in, name), name, &ns, err) < 0)
        return -1;
    *out = ns / NS_PER_MS;
    return 0;
}

/* NULL: err says why. */
static struct gang *find_gang(const struct replay_load *l, const char *field, const char *key,
                              struct error *err)
{
    struct gang *g = key != NULL ? map_get(&l->cluster->gangs, key) : NULL;
    if (g == NULL)
        error_set(err, ERROR_INVALID, "%s: there is no %s", field, str_or_empty(key));
    return g;
}

static int read_age(struct replay_load *l, json *j, const char *where, struct error *err)
{
    struct gang *g = find_gang(l, "gang", json_get_str(j, "gang"), err);
    int64_t since_ms = 0, lapses = 0;
    (void)where;
    if (g == NULL || (json_get(j, "since") != NULL && read_ms(j, "since", &since_ms, err) < 0))
        return -1;
    (void)json_get_int(j, "lapses", &lapses);
    reservation_restore_age(l->cluster, g, since_ms,
                            (int32_t)num_min(num_max(lapses, 0), INT32_MAX));
    return 0;
}

static int read_gangs(struct replay_load *l, json *list, struct gang ***out, size_t *len,
                      struct error *err)
{
    size_t n = 0;
    for (struct json_iter it = json_iter(list); json_next(&it);)
        n++;
    *out = arena_new(&l->arena, struct gang *, n);
    for (struct json_iter it = json_iter(list); json_next(&it); ++*len) {
        struct gang *g = find_gang(l, "gangs", json_str(it.value), err);
        if (g == NULL)
            return -1;
        (*out)[*len] = g;
    }
    return *len > 0 ? 0 : error_set(err, ERROR_INVALID, "gangs: there are none");
}

static int read_place(const struct replay_load *l, const char *node, json *pod,
                      struct reservation_place *out, struct error *err)
{
    const char *key = json_str(pod);
    out->node = cluster_find_node(l->cluster, node);
    out->member = key != NULL ? cluster_find_pod(l->cluster, key) : NULL;
    if (out->node == NULL)
        return error_set(err, ERROR_INVALID, "nodes: there is no node %s", node);
    return out->member != NULL ? 0
                               : error_set(err, ERROR_INVALID, "nodes.%s: there is no pod %s", node,
                                           str_or_empty(key));
}

static int read_places(struct replay_load *l, json *nodes, struct reservation_plan *out,
                       struct error *err)
{
    size_t n = 0;
    for (struct json_iter at = json_iter(nodes); json_next(&at);)
        for (struct json_iter it = json_iter(at.value); json_next(&it);)
            n++;
    out->places = arena_new(&l->arena, struct reservation_place, n);
    for (struct json_iter at = json_iter(nodes); json_next(&at);)
        for (struct json_iter it = json_iter(at.value); json_next(&it); out->len++)
            if (read_place(l, at.key, it.value, &out->places[out->len], err) < 0)
                return -1;
    return 0;
}

static int read_reservation(struct replay_load *l, json *j, const char *where, struct error *err)
{
    struct gang *g = find_gang(l, "for", json_get_str(j, "for"), err), **gangs = NULL;
    struct reservation_plan plan = {.fits = true};
    size_t len = 0;
    struct reservation_term term;
    (void)where;
    if (g == NULL || read_gangs(l, json_get(j, "gangs"), &gangs, &len, err) < 0 ||
        read_ms(j, "made", &term.made_ms, err) < 0 ||
        read_ms(j, "planned", &term.planned_ms, err) < 0 ||
        read_ms(j, "start", &term.start_ms, err) < 0 ||
        read_ms(j, "until", &term.until_ms, err) < 0 ||
        read_places(l, json_get(j, "nodes"), &plan, err) < 0)
        return -1;
    for (size_t i = 0; i < len; i++)
        if (reservations_of(l->cluster, gangs[i])->kept != NULL)
            return error_set(err, ERROR_INVALID, "gangs: capacity is reserved for %s already",
                             gangs[i]->key);
    reservation_restore(l->cluster, g, gangs, len, &plan, &term);
    return 0;
}

static int read_hold(struct replay_load *l, json *j, const char *where, struct error *err)
{
    const struct gang *g = find_gang(l, "gang", json_get_str(j, "gang"), err);
    const char *node = json_get_str(j, "node");
    if (g == NULL)
        return -1;
    if (node == NULL || cluster_find_node(l->cluster, node) == NULL)
        return error_set(err, ERROR_INVALID, "node: there is no node %s", str_or_empty(node));
    struct pod *p = replay_load_pod(l, json_get(j, "pod"), where, err);
    if (p == NULL)
        return -1;
    replacement_hold_restore(l->cluster, p, g->key, node);
    return 0;
}

static void read_list(struct replay_load *l, json *own, const char *name, const char *where,
                      int (*read)(struct replay_load *l, json *j, const char *where,
                                  struct error *err))
{
    size_t i = 0;
    for (struct json_iter it = json_iter(json_get(own, name)); json_next(&it); i++) {
        struct error err = ERROR_INIT;
        AUTO_STRBUF place = {0};
        strbuf_addf(&place, "%s: cosched.%s[%zu]", where, name, i);
        if (read(l, it.value, strbuf_str(&place), &err) < 0)
            replay_load_refuse(l, strbuf_str(&place), &err);
    }
}

/* It includes the pods of the dump, which loading has counted again. */
static void read_demand(struct replay_load *l, json *j, const char *where)
{
    struct gpu_prices *g = l->cluster->gpu_prices;
    struct demand said;
    struct error err = ERROR_INIT;
    if (j != NULL && dump_demand_read(j, g, &said, &err) < 0)
        replay_load_refuse(l, where, &err);
    else if (j != NULL)
        g->demand = said;
}

static int read_run_time(json *j, struct run_times *out, struct error *err)
{
    struct run_time one = {0};
    int64_t template = 0, last = 0;
    if (!json_get_int(j, "template", &template) || template == 0)
        return error_set(err, ERROR_INVALID, "template: not a hash");
    one.template = (uint64_t) template;
    if (!json_get_int(j, "meanMs", &one.mean_ms) || one.mean_ms < 1 ||
        one.mean_ms > RUN_TIMES_LONGEST_MS || !json_get_int(j, "deviationMs", &one.deviation_ms) ||
        one.deviation_ms < 0 || one.deviation_ms > RUN_TIMES_LONGEST_MS ||
        !json_get_int(j, "last", &last) || last < 0)
        return error_set(err, ERROR_INVALID, "%lld: no run times", (long long)template);
    one.last = (uint64_t)last;
    return run_times_restore(out, &one) == 0
               ? 0
               : error_set(err, ERROR_INVALID, "%lld: twice, or too many", (long long)template);
}

/* Of pods that are no more. */
static int read_run_times(json *j, struct run_times *out, struct error *err)
{
    enum { WEIGHT_MAX = RUN_TIMES_ONE * RUN_TIMES_FADE_EVERY * (RUN_TIMES_FADE_PART + 1) };
    int64_t ended = 0;
    if (j == NULL)
        return 0;
    run_times_deinit(out);
    if (!json_get_int(j, "ended", &ended) || ended < 1 ||
        !json_get_int(j, "weight", &out->weight) || out->weight < 0 || out->weight > WEIGHT_MAX ||
        !json_get_int(j, "totalMs", &out->total_ms) || out->total_ms < 0 ||
        out->total_ms / RUN_TIMES_LONGEST_MS > WEIGHT_MAX) {
        run_times_deinit(out);
        return error_set(err, ERROR_INVALID, "runTimes: ended, weight and totalMs do not add up");
    }
    out->ended = (uint64_t)ended;
    for (struct json_iter it = json_iter(json_get(j, "templates")); json_next(&it);)
        if (read_run_time(it.value, out, err) < 0)
            return error_wrap(err, "runTimes");
    return 0;
}

void replay_load_dump_read_rest(struct replay_load *l, json *own, const char *where)
{
    struct reservations *all = l->cluster->reservations;
    json *reserving = json_get(own, "reserving");
    struct error err = ERROR_INIT;
    read_demand(l, json_get(own, "gpuDemand"), where);
    if (read_run_times(json_get(own, "runTimes"), &all->run_times, &err) < 0)
        replay_load_refuse(l, where, &err);
    if (reserving != NULL) {
        if (read_ms(reserving, "clock", &all->clock_ms, &err) < 0)
            replay_load_refuse(l, where, &err);
    }
    read_list(l, own, "aging", where, read_age);
    read_list(l, own, "reservations", where, read_reservation);
    read_list(l, own, "slots", where, read_hold);
}
