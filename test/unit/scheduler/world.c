// SPDX-License-Identifier: Apache-2.0
#include "test/unit/scheduler/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/kube/decode.h"
#include "lib/model/names.h"
#include "scheduler/classes.h"
#include "scheduler/gangs.h"
#include "scheduler/nominations.h"
#include "scheduler/pipeline.h"
#include "test/unit/scheduler/oracle.h"

#define MUST(w, condition, ...)                                                \
    do {                                                                       \
        if (!(condition)) {                                                    \
            fprintf(stderr, "broken after '%s': %s: ", (w)->said, #condition); \
            fprintf(stderr, __VA_ARGS__);                                      \
            fputc('\n', stderr);                                               \
            abort();                                                           \
        }                                                                      \
    } while (0)

uint64_t world_random(struct world *w, uint64_t n)
{
    uint64_t z = (w->random += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % n;
}

static bool chance(struct world *w, uint64_t percent)
{
    return world_random(w, 100) < percent;
}

/* ---- the queue beside it, as the program has it ---- */

static void gang_changed(void *arg, struct gang *g)
{
    struct world *w = arg;
    queue_touch(&w->queue, g, w->now_ms);
}

static void gang_vanishing(void *arg, struct gang *g)
{
    struct world *w = arg;
    queue_drop(&w->queue, g);
}

struct cluster_hooks world_hooks(struct world *w)
{
    return (struct cluster_hooks){
        .gang_changed = gang_changed, .gang_vanishing = gang_vanishing, .arg = w};
}

static void spread_events(struct world *w, uint32_t events)
{
    (void)queue_wake(&w->queue, events, w->now_ms);
}

void world_init(struct world *w, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    w->random = seed;
    w->nodes = WORLD_NODES;
    w->affinity = seed % 3 == 0 ? 0 : seed % 3 == 1 ? 5 : 40;
    w->said = "nothing yet";
    cluster_init(&w->cluster, NAME_SCHEDULER);
    /* In some lives classes are forgotten all the time, in some the log is too short to follow, in some nodes are filled up. */
    if (seed % 4 == 1)
        w->cluster.classes->budget = 4096;
    if (seed % 4 == 2)
        w->cluster.table.log_len = 8;
    if (seed % 8 >= 4)
        w->cluster.packing = CLUSTER_FULLEST_FIRST;
    queue_init(&w->queue);
    arena_init(&w->arena, 0);
    arena_init(&w->specs, 0);
    for (size_t i = 0; i < WORLD_PODS; i++)
        (void)str_format(w->slots[i].name, sizeof w->slots[i].name, "p%zu", i);
}

void world_deinit(struct world *w)
{
    queue_deinit(&w->queue);
    cluster_deinit(&w->cluster);
    arena_deinit(&w->arena);
    arena_deinit(&w->specs);
}

/* ---- nodes ---- */

void world_put_node(struct world *w, uint64_t i)
{
    static const char *const modes[] = {"cgpu", "cgpu", "core_mem", "share", "topology", "default"};
    static const char *const cards[] = {"15,15", "15", "7,15,15*,7", "15,15,15,15"};
    const char *mode = modes[world_random(w, 6)];
    char name[16];
    (void)str_format(name, sizeof name, "n%llu", (unsigned long long)i);
    struct fixture_node f = {.name = name,
                             .cpu_milli = 1000 + (int64_t)world_random(w, 5) * 1000,
                             .memory_bytes = (INT64_C(1) + (int64_t)world_random(w, 8)) << 30,
                             .pods = 1 + (int64_t)world_random(w, 12),
                             .unschedulable = chance(w, 5)};
    bool topology = str_eq(mode, "topology");
    if (chance(w, 80)) {
        f.gib = topology ? -1 : 15 * (1 + (int64_t)world_random(w, 4));
        f.percent = str_eq(mode, "core_mem") ? 400 : 0;
        f.cards = topology ? 4 : 0;
    }
    if (chance(w, 90))
        f.inventory = fixture_inventory(&w->specs, mode, cards[world_random(w, 4)]);
    if (chance(w, 3))
        f.inventory = "{\"v\":2}";
    if (chance(w, 30))
        f.placement = "spread";
    if (chance(w, 10))
        f.taints = "[{\"key\":\"k\",\"value\":\"v\",\"effect\":\"NoSchedule\"}]";
    if (chance(w, 20)) {
        f.other = "example.com/thing";
        f.other_amount = (int64_t)world_random(w, 5);
    }
    static const char *const zones[] = {"a", "b", "c"};
    const char *labels[7];
    size_t l = 0;
    if (chance(w, 8)) {
        labels[l++] = "type";
        labels[l++] = "virtual-kubelet";
    }
    if (chance(w, 85)) {
        labels[l++] = "zone";
        labels[l++] = zones[world_random(w, 3)];
    }
    if (chance(w, 95)) { /* now and then two nodes say that they are the same host */
        labels[l++] = "host";
        labels[l++] = chance(w, 97) ? name : "n0";
    }
    labels[l] = NULL;
    f.labels = labels;
    if (chance(w, 20)) {
        f.image = "app:v1";
        f.image_bytes = (int64_t)world_random(w, 4) << 28;
    }
    w->said = "node put";
    spread_events(w, cluster_put_node(&w->cluster, fixture_make_node(&f)));
}

static void remove_node(struct world *w, uint64_t i)
{
    char name[16];
    (void)str_format(name, sizeof name, "n%llu", (unsigned long long)i);
    w->said = "node removed";
    spread_events(w, cluster_remove_node(&w->cluster, name));
}

/* ---- pods ---- */

static int64_t hostile(struct world *w)
{
    static const int64_t amounts[] = {INT64_MAX, INT64_MAX - 1, INT64_C(1) << 62, INT64_C(1) << 33,
                                      LEDGER_MAX};
    return amounts[world_random(w, 5)];
}

static void fill_gpu(struct world *w, struct world_slot *s, struct fixture_container *c)
{
    static const int64_t gib[] = {1, 2, 3, 4, 6, 8, 12, 15, 16};
    if (chance(w, 25)) {
        c->cards = 1 + (int64_t)world_random(w, 3);
        return;
    }
    c->gib = gib[world_random(w, 9)];
    if (chance(w, 25))
        c->percent = 5 * (int64_t)world_random(w, 21);
    else if (chance(w, 20) && s->f.containers < 2)
        (void)str_format(s->count, sizeof s->count, "%d", (int)world_random(w, 5));
    if (chance(w, 2) && s->f.containers < 2) /* a sum that overflows is refused by decode */
        c->gib = hostile(w);
}

static void add_term(struct world *w, struct strbuf *b, bool weighted)
{
    static const char *const selectors[] = {
        "{\"matchLabels\":{\"app\":\"a\"}}", "{\"matchLabels\":{\"app\":\"b\"}}",
        "{\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"Exists\"}]}", "{}"};
    static const char *const others[] = {
        "", ",\"namespaceSelector\":{}",
        ",\"namespaceSelector\":{\"matchLabels\":{\"team\":\"x\"}}",
        ",\"namespaces\":[\"elsewhere\"]"};
    if (weighted)
        strbuf_addf(b, "{\"weight\":%d,\"podAffinityTerm\":", 1 + (int)world_random(w, 100));
    strbuf_addf(b, "{\"topologyKey\":\"%s\",\"labelSelector\":%s%s}",
                chance(w, 50) ? "zone" : "host", selectors[world_random(w, 4)],
                others[chance(w, 70) ? 0 : world_random(w, 4)]);
    if (weighted)
        strbuf_addc(b, '}');
}

static void add_terms(struct world *w, struct strbuf *b, const char *kind)
{
    strbuf_addf(b, "%s\"%s\":{", b->ptr[b->len - 1] == '{' ? "" : ",", kind);
    for (int weighted = 0; weighted < 2; weighted++) {
        strbuf_addf(b, "%s\"%sDuringSchedulingIgnoredDuringExecution\":[", weighted ? "," : "",
                    weighted ? "preferred" : "required");
        uint64_t terms = world_random(w, 3);
        for (uint64_t i = 0; i < terms; i++) {
            if (i > 0)
                strbuf_addc(b, ',');
            add_term(w, b, weighted);
        }
        strbuf_addc(b, ']');
    }
    strbuf_addc(b, '}');
}

static void add_spread(struct world *w, struct strbuf *b)
{
    strbuf_addf(b,
                "{\"topologyKey\":\"%s\",\"maxSkew\":%d,\"whenUnsatisfiable\":\"%s\","
                "\"labelSelector\":{\"matchLabels\":{\"app\":\"%s\"}}",
                chance(w, 50) ? "zone" : "host", 1 + (int)world_random(w, 2),
                chance(w, 70) ? "DoNotSchedule" : "ScheduleAnyway", chance(w, 70) ? "a" : "b");
    if (chance(w, 20))
        strbuf_addf(b, ",\"minDomains\":%d", 1 + (int)world_random(w, 4));
    if (chance(w, 20))
        strbuf_adds(b, ",\"nodeAffinityPolicy\":\"Ignore\"");
    if (chance(w, 20))
        strbuf_adds(b, ",\"nodeTaintsPolicy\":\"Honor\"");
    strbuf_addc(b, '}');
}

static void fill_spec(struct world *w, struct world_slot *s)
{
    AUTO_STRBUF b = {0};
    if (chance(w, 10))
        strbuf_adds(&b, ",\"tolerations\":[{\"key\":\"k\",\"operator\":\"Exists\"}]");
    else if (chance(w, 10))
        strbuf_adds(&b, ",\"nodeSelector\":{\"zone\":\"a\"}");
    if (chance(w, w->affinity)) {
        strbuf_adds(&b, ",\"affinity\":{");
        if (chance(w, 50))
            add_terms(w, &b, "podAffinity");
        if (chance(w, 60))
            add_terms(w, &b, "podAntiAffinity");
        strbuf_addc(&b, '}');
    }
    if (chance(w, w->affinity)) {
        strbuf_adds(&b, ",\"topologySpreadConstraints\":[");
        add_spread(w, &b);
        if (chance(w, 30)) {
            strbuf_addc(&b, ',');
            add_spread(w, &b);
        }
        strbuf_addc(&b, ']');
    }
    if (b.len > 0)
        s->f.spec = arena_strdup(&w->specs, strbuf_str(&b) + 1);
}

/* A new pod of that name: new uid, not bound. */
void world_fill_pod(struct world *w, uint64_t i)
{
    struct world_slot *s = &w->slots[i];
    char name[16];
    memcpy(name, s->name, sizeof name);
    memset(s, 0, sizeof *s);
    memcpy(s->name, name, sizeof name);
    (void)str_format(s->uid, sizeof s->uid, "u%llu", (unsigned long long)++w->made);
    s->f = (struct fixture_pod){.name = s->name,
                                .uid = s->uid,
                                .containers = 1,
                                .created_s = (int32_t)world_random(w, 60),
                                .priority = (int32_t)world_random(w, 3)};
    s->f.c[0].cpu_milli = (int64_t)world_random(w, 8) * 250;
    s->f.c[0].memory_bytes = (int64_t)world_random(w, 6) << 28;
    if (chance(w, 60)) {
        if (chance(w, 15))
            s->f.containers = 2;
        fill_gpu(w, s, &s->f.c[0]);
        if (s->f.containers == 2 && chance(w, 70))
            s->f.c[1].gib = 1 + (int64_t)world_random(w, 8);
        if (chance(w, 10) && s->f.c[0].gib < 100) {
            s->f.has_init = true;
            s->f.init.gib = (int64_t)world_random(w, 16);
            s->f.init.sidecar = chance(w, 30);
        }
    } else if (chance(w, 10)) {
        s->f.c[0].other = chance(w, 50) ? "example.com/thing" : "example.com/rare";
        s->f.c[0].other_amount = chance(w, 5) ? hostile(w) : 1 + (int64_t)world_random(w, 3);
    }
    if (chance(w, 2))
        s->f.c[0].cpu_milli = hostile(w);
    if (chance(w, 2))
        s->f.c[0].memory_bytes = hostile(w);
    if (chance(w, 30))
        s->f.scheduler = "default-scheduler";
    fill_spec(w, s);
    static const char *const ports[] = {
        "{\"hostPort\":80,\"containerPort\":80}",
        "{\"hostPort\":80,\"containerPort\":80,\"hostIP\":\"10.0.0.1\"}",
        ("{\"hostPort\":80,\"containerPort\":80,\"protocol\":\"UDP\"},"
         "{\"hostPort\":81,\"containerPort\":81,\"hostIP\":\"10.0.0.2\"}")};
    if (chance(w, 10))
        s->f.ports = ports[world_random(w, 3)];
    if (chance(w, 20))
        s->f.image = chance(w, 50) ? "app:v1" : "app:v2";
    s->f.gated = chance(w, 5);
    size_t l = 0;
    if (chance(w, 40)) {
        (void)str_format(s->gang, sizeof s->gang, "g%llu",
                         (unsigned long long)world_random(w, WORLD_GANGS));
        if (!chance(w, 3)) /* members with different priorities wait for ever */
            s->f.priority = (s->gang[1] - '0') % 3;
        bool in_labels = s->gang[1] < '2'; /* g0, g1: the size is in the labels */
        s->labels[l++] = in_labels ? NAME_LABEL_GANG_NAME : NAME_LABEL_GANG_BARE;
        s->labels[l++] = s->gang;
        if (in_labels) {
            (void)str_format(s->min, sizeof s->min, "%d",
                             chance(w, 3)        ? 4
                             : s->gang[1] == '0' ? 2
                                                 : 3);
            s->labels[l++] = NAME_LABEL_GANG_MIN;
            s->labels[l++] = s->min;
        }
    }
    if (chance(w, 60)) {
        s->labels[l++] = "app";
        s->labels[l++] = chance(w, 50) ? "a" : "b";
    }
    if (s->count[0] != '\0') {
        s->labels[l++] = NAME_RES_GPU_COUNT;
        s->labels[l++] = s->count;
    }
    s->labels[l] = NULL;
    s->f.labels = s->labels;
    s->f.annotations = s->annotations;
    if (chance(w, 5)) {
        s->annotations[0] = NAME_ANN_BURST;
        s->annotations[1] = chance(w, 50) ? "eci" : "eci_only";
    }
}

void world_put_pod(struct world *w, uint64_t i)
{
    struct cluster_hooks hooks = world_hooks(w);
    spread_events(w, cluster_put_pod(&w->cluster, fixture_make_pod(&w->slots[i].f), &hooks));
}

/* A claim as somebody else may have written it: right on some card, right in sum only, wrong, or no claim at all. */
static void fill_foreign_claim(struct world *w, struct world_slot *s)
{
    uint64_t card = world_random(w, 5);
    int64_t gib = num_min(s->f.c[0].gib, 1000);
    size_t n = 0;
    switch (world_random(w, 6)) {
    case 0:
        return;
    case 1:
        s->annotations[n++] = NAME_ANN_ALLOCATION;
        s->annotations[n++] = "{\"0\":{\"1\":-3,\"0\":9}}";
        break;
    case 2:
        (void)str_format(s->text[0], WORLD_TEXT, "{\"0\":{\"%d\":%lld,\"%d\":%lld}}", (int)card,
                         (long long)(gib / 2), (int)card + 1, (long long)(gib - gib / 2));
        s->annotations[n++] = NAME_ANN_ALLOCATION;
        s->annotations[n++] = s->text[0];
        break;
    case 3:
        (void)str_format(s->text[0], WORLD_TEXT, "%d,%d", (int)card, (int)card + 1);
        s->annotations[n++] = NAME_ANN_GPU_GROUP;
        s->annotations[n++] = s->text[0];
        break;
    default:
        (void)str_format(s->text[0], WORLD_TEXT, "{\"0\":{\"%d\":%lld}}", (int)card,
                         (long long)gib);
        (void)str_format(s->text[1], WORLD_TEXT, "{\"0\":{\"%d\":%lld}}", (int)card,
                         (long long)s->f.c[0].percent);
        s->annotations[n++] = NAME_ANN_ALLOCATION;
        s->annotations[n++] = s->text[0];
        if (s->f.c[0].percent > 0) {
            s->annotations[n++] = NAME_ANN_CORE;
            s->annotations[n++] = s->text[1];
        }
    }
    s->annotations[n] = NULL;
}

static void bind_by_others(struct world *w, struct world_slot *s)
{
    (void)str_format(s->node, sizeof s->node, "n%llu",
                     (unsigned long long)world_random(w, w->nodes + 1));
    s->f.node = s->node;
    s->f.gated = false;
    fill_foreign_claim(w, s);
    w->foreign++;
}

static void new_pod(struct world *w, uint64_t i)
{
    world_fill_pod(w, i);
    if (w->slots[i].f.scheduler != NULL && chance(w, 70))
        bind_by_others(w, &w->slots[i]);
    w->said = "pod put";
    world_put_pod(w, i);
}

static void remove_pod(struct world *w, struct world_slot *s)
{
    struct cluster_hooks hooks = world_hooks(w);
    char key[32];
    (void)str_format(key, sizeof key, "d/%s", s->name);
    w->said = "pod removed";
    spread_events(w, cluster_remove_pod(&w->cluster, key, chance(w, 50) ? s->uid : NULL, &hooks));
    (void)cluster_remove_pod(&w->cluster, key, "another-uid", &hooks);
}

/* The watch says what the binder did: nodeName and claim in one event. */
static void confirm(struct world *w, struct world_slot *s, const struct cluster_pod *cp)
{
    struct labels written;
    claim_encode(&cp->claim, cp->pod, 15, &w->arena, &written);
    (void)str_format(s->node, sizeof s->node, "%s", cp->on->name);
    s->f.node = s->node;
    size_t n = 0;
    for (size_t i = 0; i < written.len && n < 38; i++) {
        s->annotations[n++] = arena_strdup(&w->specs, written.items[i].key);
        s->annotations[n++] = arena_strdup(&w->specs, written.items[i].value);
    }
    s->annotations[n] = NULL;
    w->confirmed++;
}

static void update_pod(struct world *w, uint64_t i)
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
            uint64_t used = amounts_digest(&on->used), cards = ledger_digest(&on->ledger);
            confirm(w, s, cp);
            world_put_pod(w, i);
            MUST(w, cp->state == CLUSTER_BOUND && cp->on == on, "%s", key);
            MUST(w, amounts_digest(&on->used) == used, "%s", key);
            MUST(w, ledger_digest(&on->ledger) == cards || on->node == NULL, "%s", key);
            MUST(w, cluster_digest(&w->cluster) != before, "%s", key);
            return;
        }
        s->f.phase = chance(w, 70) ? "Running" : chance(w, 70) ? "Succeeded" : "Failed";
        break;
    case 2:
        w->said = "pod bound by somebody else";
        if (!assumed && s->f.node != NULL)
            return;
        bind_by_others(w, s);
        break;
    case 3:
        if (assumed) {
            w->said = "assumed pod forgotten";
            cluster_forget(&w->cluster, cp);
            if (cp->gang != NULL)
                queue_retry(&w->queue, cp->gang, w->now_ms);
            spread_events(w, EVENT_POD_GONE);
            return;
        }
        s->f.gated = s->f.node == NULL && chance(w, 20);
        break;
    case 4:
        s->f.terminating = true;
        break;
    case 8:
        w->said = "pod nominated";
        (void)str_format(s->nominated, sizeof s->nominated, "n%llu",
                         (unsigned long long)world_random(w, w->nodes + 1));
        if (chance(w, 50)) {
            spread_events(w, nominations_set(&w->cluster, cp, chance(w, 30) ? NULL : s->nominated));
            return;
        }
        s->f.nominated = chance(w, 30) ? NULL : s->nominated;
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

static void put_namespace(struct world *w)
{
    AUTO_JSON *doc = NULL;
    struct object *o = NULL;
    struct error err = ERROR_INIT;
    const char *text = chance(w, 50) ? "{\"metadata\":{\"name\":\"d\",\"labels\":{\"team\":\"x\"}}}"
                                     : "{\"metadata\":{\"name\":\"d\"}}";
    w->said = "namespace put";
    MUST(w,
         json_parse(&doc, text, strlen(text), &err) == 0 &&
             decode_namespace(json_root(doc), &o, &err) == 0,
         "%s", err.text);
    spread_events(w, objects_put(&w->cluster.objects, OBJECTS_NAMESPACES, o));
}

static void put_group(struct world *w)
{
    struct cluster_hooks hooks = world_hooks(w);
    bool x = chance(w, 50);
    char name[16], key[32];
    (void)str_format(name, sizeof name, "g%llu", (unsigned long long)(2 + world_random(w, 2)));
    (void)str_format(key, sizeof key, "d/%s", name);
    w->said = "PodGroup put or removed";
    if (chance(w, 70))
        spread_events(
            w, cluster_put_pod_group(&w->cluster, fixture_make_group(name, x ? 3 : 2, x), &hooks));
    else
        spread_events(w, cluster_remove_pod_group(&w->cluster, key, x, &hooks));
}

/* ---- trying ---- */

static void within(const struct world *w, const char *what, int64_t asked, int64_t used,
                   int64_t total)
{
    MUST(w, asked == 0 || used <= total, "%s: %lld used of %lld", what, (long long)used,
         (long long)total);
}

/* I1, for what was just promised. */
static void check_promise(const struct world *w, const struct plan_step *step)
{
    const struct cluster_node *n = step->node;
    const struct cluster_pod *p = step->pod;
    MUST(w, p->on == n && n->node != NULL && p->state == CLUSTER_ASSUMED, "%s", p->pod->key);
    MUST(w, !n->node->unschedulable || p->pod->tolerations_len > 0, "%s", p->pod->key);
    within(w, "cpu", p->request.cpu_milli, n->used.cpu_milli, n->allocatable.cpu_milli);
    within(w, "memory", p->request.memory_bytes, n->used.memory_bytes, n->allocatable.memory_bytes);
    within(w, "pods", 1, n->used.pods, n->allocatable.pods);
    for (uint32_t i = 0; i < p->request.extra_len; i++) {
        int64_t used = 0, total = -1;
        (void)amounts_get(&n->used, p->request.extra[i].id, &used);
        (void)amounts_get(&n->allocatable, p->request.extra[i].id, &total);
        within(w, p->request.extra[i].name, p->request.extra[i].value, used, total);
    }
    if (!p->gpu.any)
        return;
    struct error err = ERROR_INIT;
    const struct ledger *l = &n->ledger;
    MUST(w, l->known && claim_check(&p->claim, p->pod, &l->inventory, &err) == 0, "%s: %s",
         p->pod->key, err.text);
    for (size_t i = 0; i < l->inventory.cards_len; i++) {
        const struct gpu_card *card = &l->inventory.cards[i];
        int64_t mine = claim_card_gib(&p->claim, card->index);
        for (size_t k = 0; k < p->claim.group_len; k++)
            if (p->claim.group[k] == card->index) {
                MUST(w, card->health == GPU_HEALTH_OK, "card %zu", i);
                MUST(w, l->cards[i].whole_holders == 1 && l->cards[i].used_gib == 0, "card %zu", i);
                MUST(w, l->unplaced_cards == 0 && l->unplaced_gib == 0, "card %zu", i);
            }
        if (mine == 0)
            continue;
        MUST(w, card->health == GPU_HEALTH_OK && l->cards[i].whole_holders == 0, "card %zu", i);
        MUST(w, l->unplaced_cards == 0, "card %zu", i);
        within(w, "card GiB", mine, l->cards[i].used_gib + l->unplaced_gib, gpu_card_gib(card));
        /* What other pods hold beyond a card's size (edited claims) is no fault of a share that asks for none of it. */
        int64_t mine_percent = 0;
        for (size_t k = 0; k < p->claim.shares_len; k++)
            if (p->claim.shares[k].card == card->index)
                mine_percent += p->claim.shares[k].percent;
        within(w, "card percent", mine_percent, l->cards[i].used_percent + l->unplaced_percent,
               100);
    }
}

static void tell(struct world *w, const char *text)
{
    w->story = (w->story ^ str_hash(text, strlen(text))) * UINT64_C(1099511628211);
}

static void take_verdict(struct world *w, struct gang *g, const struct plan *plan,
                         const struct cycle_result *r, uint64_t before)
{
    if (plan->committed) {
        spread_events(w, plan->events);
        MUST(w, r->verdict == CYCLE_PLACED || r->verdict == CYCLE_PARTLY, "%s", g->key);
        MUST(w, gangs_count_missing(g) == 0, "I2: %s", g->key);
        for (size_t i = 0; i < plan->steps.len; i++) {
            check_promise(w, &plan->steps.items[i]);
            tell(w, plan->steps.items[i].pod->pod->key);
            tell(w, plan->steps.items[i].node->name);
            w->placed++;
        }
    } else {
        MUST(w, plan->steps.len == 0 && cluster_digest(&w->cluster) == before, "I2, I3: %s",
             g->key);
        w->refused++;
    }
    if (r->sentence != NULL)
        tell(w, r->sentence);
    MUST(w, (r->sentence != NULL) == (r->verdict != CYCLE_PLACED && r->verdict != CYCLE_NOTHING),
         "I7: %s", g->key);
}

bool world_try(struct world *w)
{
    struct gang *g = queue_pop(&w->queue, w->now_ms);
    if (g == NULL)
        return false;
    w->said = "gang tried";
    arena_reset(&w->arena);
    struct plan plan;
    struct cycle_result r;
    uint64_t before = cluster_digest(&w->cluster);
    plan_begin(&plan, &w->cluster);
    cycle_run(&w->cluster, g, &plan, &w->arena, &r);
    take_verdict(w, g, &plan, &r, before);
    plan_end(&plan);
    if (r.verdict == CYCLE_PLACED || r.verdict == CYCLE_NOTHING)
        queue_succeeded(&w->queue, g);
    else if (r.verdict == CYCLE_WAITING)
        queue_wait(&w->queue, g, r.wakes);
    else
        queue_park(&w->queue, g, r.wakes, w->now_ms);
    return true;
}

/* What the class remembers and what a scan over all nodes finds are the same, in the refusal's words too. */
static void choose(struct world *w, struct cluster_pod *cp, struct pipeline_choice *out)
{
    struct pipeline_choice scanned;
    pipeline_choose(&w->cluster, cp, &w->arena, out);
    pipeline_scan(&w->cluster, cp, &w->arena, &scanned);
    MUST(w, out->node == scanned.node, "%s: the class says %s, a scan %s", cp->pod->key,
         out->node != NULL ? out->node->name : "no node",
         scanned.node != NULL ? scanned.node->name : "no node");
    if (out->node != NULL)
        return;
    MUST(w, out->wakes == scanned.wakes, "%s: %x and %x", cp->pod->key, (unsigned)out->wakes,
         (unsigned)scanned.wakes);
    MUST(w,
         str_eq(reasons_sentence(&out->why, &w->arena), reasons_sentence(&scanned.why, &w->arena)),
         "%s", cp->pod->key);
}

/* Whatever the filters allow, reserve gives; and what is tried leaves no trace (I3). */
static void try_and_undo(struct world *w)
{
    const char *key;
    void *value;
    uint64_t before = cluster_digest(&w->cluster);
    struct plan plan;
    w->said = "trial undone";
    arena_reset(&w->arena);
    plan_begin(&plan, &w->cluster);
    for (size_t i = 0; map_next(&w->cluster.pods, &i, &key, &value);) {
        struct cluster_pod *cp = value;
        if (!cluster_pod_is_schedulable(cp) || cp->gpu.illegal != NULL || !chance(w, 50))
            continue;
        struct pipeline_choice choice;
        choose(w, cp, &choice);
        size_t mark = plan_mark(&plan);
        uint64_t here = cluster_digest(&w->cluster);
        if (choice.node == NULL)
            continue;
        plan_place(&plan, cp, choice.node, &choice.claim);
        MUST(w, cluster_digest(&w->cluster) != here, "%s", key);
        if (chance(w, 30)) {
            plan_rollback(&plan, mark);
            MUST(w, cluster_digest(&w->cluster) == here, "%s", key);
        }
    }
    plan_end(&plan);
    MUST(w, cluster_digest(&w->cluster) == before, "I3");
}

static void filter_means_reserve(struct world *w)
{
    const char *key, *name;
    void *value, *node;
    w->said = "filter and reserve compared";
    arena_reset(&w->arena);
    for (size_t i = 0; map_next(&w->cluster.pods, &i, &key, &value);) {
        struct cluster_pod *cp = value;
        if (!cluster_pod_is_schedulable(cp) || cp->gpu.illegal != NULL || !chance(w, 30))
            continue;
        struct plugin_ask ask = pipeline_ask(&w->cluster, cp);
        for (size_t k = 0; map_next(&w->cluster.nodes, &k, &name, &node);) {
            const struct cluster_node *cn = node;
            if (cn->node != NULL) {
                MUST(w,
                     oracle_spread(&w->cluster, cp->pod, cn) ==
                         plugin_spread.filter(&ask, cn, &w->arena, NULL),
                     "spread of %s on %s", key, name);
                MUST(w,
                     oracle_interpod(&w->cluster, cp->pod, cn) ==
                         plugin_interpod.filter(&ask, cn, &w->arena, NULL),
                     "affinity of %s on %s", key, name);
            }
            for (const struct plugin *const *p = pipeline_plugins; cn->node != NULL && *p; p++) {
                struct reason why = {0};
                struct claim claim = {0};
                bool yes = (*p)->filter == NULL || (*p)->filter(&ask, cn, &w->arena, &why);
                bool quiet = (*p)->filter == NULL || (*p)->filter(&ask, cn, &w->arena, NULL);
                MUST(w, yes == quiet, "%s: %s on %s", (*p)->name, key, name);
                bool given = (*p)->reserve == NULL || (*p)->reserve(&ask, cn, &w->arena, &claim);
                MUST(w, !yes || given, "I3: %s: %s on %s", (*p)->name, key, name);
                MUST(w,
                     !yes || (*p)->reserve == NULL ||
                         ledger_request_is_met(&cp->gpu, &claim, &w->arena),
                     "%s on %s", key, name);
            }
        }
    }
}

/* One thing to place. With several, placing is greedy: another pod that takes room can send the first one elsewhere, so that the second fits
 * after all; no event can tell that before it was tried. */
static bool is_simple(const struct gang *g)
{
    size_t waiting = 0, shares = 0;
    for (size_t i = 0; i < g->members.len; i++) {
        const struct cluster_pod *cp = g->members.items[i];
        if (!cluster_pod_is_schedulable(cp))
            continue;
        waiting++;
        for (size_t k = 0; k < cp->pod->containers_len; k++)
            shares += ledger_request_gib(&cp->pod->containers[k]) > 0;
    }
    return waiting == 1 && shares <= 1;
}

/* A gang that sleeps must not be able to go: else an event was missed. */
static void sleepers_cannot_go(struct world *w)
{
    w->said = "sleeping gangs looked at";
    for (size_t i = 0; i < w->queue.parked.len; i++) {
        struct gang *g = w->queue.parked.items[i];
        if (!is_simple(g))
            continue;
        struct plan plan;
        struct cycle_result r;
        arena_reset(&w->arena);
        plan_begin(&plan, &w->cluster);
        cycle_run(&w->cluster, g, &plan, &w->arena, &r);
        MUST(w, !plan.committed, "%s sleeps with wake mask %x and fits", g->key, (unsigned)g->wake);
        plan_end(&plan);
    }
}

void world_step(struct world *w)
{
    uint64_t pick = world_random(w, 100);
    if (pick < 5)
        world_put_node(w, world_random(w, w->nodes));
    else if (pick < 6)
        remove_node(w, world_random(w, w->nodes));
    else if (pick < 25)
        new_pod(w, world_random(w, WORLD_PODS));
    else if (pick < 45)
        update_pod(w, world_random(w, WORLD_PODS));
    else if (pick < 55)
        remove_pod(w, &w->slots[world_random(w, WORLD_PODS)]);
    else if (pick < 56)
        put_group(w);
    else if (pick < 57)
        put_namespace(w);
    else if (pick < 59)
        try_and_undo(w);
    else if (pick < 60)
        filter_means_reserve(w);
    else if (pick < 66)
        sleepers_cannot_go(w);
    else if (pick < 76)
        w->now_ms += (int64_t)world_random(w, 4000);
    else
        (void)world_try(w);
}

/* ---- what must always hold ---- */

static void check_node(const struct world *w, const struct cluster_node *cn)
{
    struct amounts used = {0};
    struct ledger ledger;
    ledger_init(&ledger);
    ledger_set_inventory(
        &ledger, cn->node ? labels_get(&cn->node->annotations, NAME_ANN_GPU_INVENTORY) : NULL,
        NULL);
    int64_t cpu = 0, gib = 0, percent = 0, cards = 0;
    for (size_t i = 0; i < cn->pods.len; i++) {
        const struct cluster_pod *cp = cn->pods.items[i];
        MUST(w, cp->on == cn && cp->on_place == i, "%s on %s", cp->pod->key, cn->name);
        MUST(w, cp->state == CLUSTER_ASSUMED || cp->state == CLUSTER_BOUND, "%s", cp->pod->key);
        amounts_account(&used, &cp->request, 1);
        ledger_account(&ledger, &cp->claim, cp->claim_trusted, &cp->gpu, 1);
        cpu = num_add_sat(cpu, cp->request.cpu_milli);
        gib += cp->gpu.hold_gib;
        percent += cp->gpu.hold_percent;
        cards += cp->gpu.hold_cards;
    }
    MUST(w, cn->node != NULL || cn->pods.len > 0, "%s is kept for nothing", cn->name);
    MUST(w, cpu == cn->used.cpu_milli, "%s: %lld and %lld", cn->name, (long long)cpu,
         (long long)cn->used.cpu_milli);
    MUST(w, amounts_digest(&used) == amounts_digest(&cn->used), "used of %s", cn->name);
    MUST(w, used.extra_len == cn->used.extra_len, "names of %s", cn->name);
    MUST(w, ledger_digest(&ledger) == ledger_digest(&cn->ledger), "cards of %s", cn->name);
    /* Nobody rides free: what the pods ask for is on cards, or held on all of them. */
    const struct ledger *l = &cn->ledger;
    for (size_t i = 0; i < l->inventory.cards_len; i++) {
        const struct ledger_card *card = &l->cards[i];
        MUST(w, card->used_gib >= 0 && card->used_percent >= 0 && card->whole_holders >= 0,
             "card %zu of %s", i, cn->name);
        gib -= card->used_gib;
        percent -= card->used_percent;
        cards -= card->whole_holders;
    }
    MUST(w, gib == l->unplaced_gib && percent == l->unplaced_percent && cards == l->unplaced_cards,
         "%s: %lld GiB, %lld %%, %lld cards are nowhere", cn->name, (long long)gib,
         (long long)percent, (long long)cards);
    amounts_deinit(&used);
    ledger_deinit(&ledger);
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
        MUST(w, (cp->gang != NULL) == str_eq(cp->pod->scheduler, NAME_SCHEDULER), "%s", key);
        holding += cp->on != NULL;
        ours += cp->gang != NULL;
    }
    /* Labels of namespaces are looked at when the next pod asks. */
    MUST(w, c->index.namespaces != c->objects.generation[OBJECTS_NAMESPACES] || oracle_index(c),
         "the index");
    MUST(w, c->classes->disagreed == 0, "a class and the plugins disagreed");
    MUST(w, on_nodes == holding, "%zu and %zu", on_nodes, holding);
    for (size_t i = 0; map_next(&c->gangs, &i, &key, &value);) {
        const struct gang *g = value;
        bool waiting = false;
        MUST(w, g->members.len > 0, "%s is empty", key);
        for (size_t k = 0; k < g->members.len; k++) {
            MUST(w, g->members.items[k]->gang == g, "%s", key);
            waiting |= cluster_pod_is_schedulable(g->members.items[k]);
        }
        MUST(w, !waiting || g->state != GANG_IDLE, "%s waits and is in no queue", key);
        members += g->members.len;
    }
    MUST(w, members == ours, "%zu and %zu", members, ours);
    MUST(w,
         queue_len(&w->queue, GANG_ACTIVE) + queue_len(&w->queue, GANG_BACKOFF) +
                 queue_len(&w->queue, GANG_PARKED) <=
             map_count(&c->gangs),
         "the queue has gangs that are gone");
}
