// SPDX-License-Identifier: Apache-2.0
/*
 * What nodes and pods of the world are made of: few names and few values, so that they meet; some
 * of it wrong or hostile.
 */
#include "test/unit/scheduler/world_internal.h"

#include <string.h>

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/names.h"

static const char *fill_cards(struct world *w, struct fixture_node *f)
{
    static const char *const modes[] = {"cgpu", "cgpu", "core_mem", "share", "topology", "default"};
    const char *mode = modes[world_random(w, 6)];
    bool topology = str_eq(mode, "topology");
    if (world_chance(w, 80)) {
        f->gib = topology ? -1 : 15 * (1 + (int64_t)world_random(w, 4));
        f->percent = str_eq(mode, "core_mem") ? 400 : 0;
        f->cards = topology ? 4 : 0;
    }
    if (world_chance(w, 30))
        f->placement = "spread";
    return mode;
}

static void fill_inventory(struct world *w, struct fixture_node *f, const char *mode)
{
    static const char *const cards[] = {"15,15", "15", "7,15,15*,7", "15,15,15,15"};
    if (world_chance(w, 90))
        f->inventory = fixture_inventory(&w->specs, mode, cards[world_random(w, 4)]);
    if (world_chance(w, 3))
        f->inventory = "{\"v\":2}";
}

static void fill_cpu_topology(struct world *w, struct fixture_node *f)
{
    if (world_chance(w, 70))
        f->topology =
            fixture_topology(&w->specs, 1 + (unsigned)world_random(w, 2),
                             1 + (unsigned)world_random(w, 2), 1 + (unsigned)world_random(w, 2),
                             1 + (unsigned)world_random(w, 2), world_chance(w, 20) ? "0" : NULL);
    if (w->pinned && world_chance(w, 90)) /* L3 groups that are larger than most pods */
        f->topology = fixture_topology(&w->specs, 1 + (unsigned)world_random(w, 2), 1,
                                       3 + (unsigned)world_random(w, 2),
                                       1 + (unsigned)world_random(w, 2), NULL);
    if (world_chance(w, 2))
        f->topology = "{\"v\":1}";
}

static void fill_size(struct world *w, struct fixture_node *f)
{
    f->cpu_milli = 1000 + (int64_t)world_random(w, 5) * 1000;
    if (world_chance(w, w->pinned ? 80 : w->plain ? 10 : 35))
        f->cpu_milli = 16000; /* then it is CPUs to pin that are scarce, if it has a topology */
    f->memory_bytes = (INT64_C(1) + (int64_t)world_random(w, 8)) << 30;
    f->pods = 1 + (int64_t)world_random(w, 12);
    if (world_chance(w, 20)) {
        f->other = "example.com/thing";
        f->other_amount = (int64_t)world_random(w, 5);
    }
    if (world_chance(w, 20)) {
        f->image = "app:v1";
        f->image_bytes = (int64_t)world_random(w, 4) << 28;
    }
}

static void fill_taints(struct world *w, struct fixture_node *f)
{
    f->unschedulable = world_chance(w, 5);
    if (world_chance(w, w->plain ? 25 : 10))
        f->taints = "[{\"key\":\"k\",\"value\":\"v\",\"effect\":\"NoSchedule\"}]";
    if (w->bursting && world_chance(w, 50))
        f->taints = "[{\"key\":\"" NAME_TAINT_VIRTUAL "\",\"value\":\"" NAME_TAINT_VIRTUAL_VALUE
                    "\",\"effect\":\"NoSchedule\"}]";
}

static void fill_labels(struct world *w, struct fixture_node *f, const char **labels)
{
    static const char *const zones[] = {"a", "b", "c"};
    size_t l = 0;
    if (world_chance(w, w->bursting ? 40 : 8)) {
        labels[l++] = "type";
        labels[l++] = "virtual-kubelet";
    }
    if (world_chance(w, 85)) {
        labels[l++] = "zone";
        labels[l++] = zones[world_random(w, 3)];
    }
    if (world_chance(w, 95)) { /* now and then two nodes say that they are the same host */
        labels[l++] = "host";
        labels[l++] = world_chance(w, 97) ? f->name : "n0";
    }
    labels[l] = NULL;
    f->labels = labels;
}

static void put_node(struct world *w, uint64_t i)
{
    char name[16];
    const char *labels[7], *mode = NULL;
    struct fixture_node f = {.name = name};
    uint64_t random = w->random;
    (void)str_format(name, sizeof name, "n%llu", (unsigned long long)i);
    for (int aspect = 0; aspect < WORLD_ASPECTS; aspect++) {
        w->random = w->aspects[i][aspect];
        switch ((enum world_aspect)aspect) {
        case WORLD_SIZE:
            fill_size(w, &f);
            break;
        case WORLD_CARDS:
            mode = fill_cards(w, &f);
            break;
        case WORLD_INVENTORY:
            fill_inventory(w, &f, mode);
            break;
        case WORLD_CPUS:
            fill_cpu_topology(w, &f);
            break;
        case WORLD_TAINTS:
            fill_taints(w, &f);
            break;
        case WORLD_LABELS:
            fill_labels(w, &f, labels);
            break;
        case WORLD_ASPECTS:
            break;
        }
    }
    w->random = random;
    world_spread_events(w, cluster_put_node(&w->cluster, fixture_make_node(&f)));
}

void world_put_node(struct world *w, uint64_t i)
{
    for (int aspect = 0; aspect < WORLD_ASPECTS; aspect++)
        w->aspects[i][aspect] = world_random(w, UINT64_MAX);
    w->said = "node put";
    put_node(w, i);
}

void world_change_node(struct world *w, uint64_t i, enum world_aspect aspect)
{
    static const char *const said[] = {"node's size changed",      "node's cards changed",
                                       "node's inventory changed", "node's CPUs changed",
                                       "node's taints changed",    "node's labels changed"};
    char name[16];
    (void)str_format(name, sizeof name, "n%llu", (unsigned long long)i);
    const struct cluster_node *cn = cluster_find_node(&w->cluster, name);
    w->said = said[aspect];
    w->aspects[i][aspect] = world_random(w, UINT64_MAX);
    if (cn != NULL && cn->node != NULL)
        put_node(w, i);
}

static int64_t hostile(struct world *w)
{
    static const int64_t amounts[] = {INT64_MAX, INT64_MAX - 1, INT64_C(1) << 62, INT64_C(1) << 33,
                                      GPU_REQUEST_MAX};
    return amounts[world_random(w, 5)];
}

static void fill_gpu(struct world *w, struct world_slot *s, struct fixture_container *c)
{
    static const int64_t gib[] = {1, 2, 3, 4, 6, 8, 12, 15, 16};
    if (world_chance(w, 25)) {
        c->cards = 1 + (int64_t)world_random(w, 3);
        return;
    }
    c->gib = gib[world_random(w, 9)];
    if (world_chance(w, 25))
        c->percent = 5 * (int64_t)world_random(w, 21);
    else if (world_chance(w, 20) && s->f.containers < 2)
        (void)str_format(s->count, sizeof s->count, "%d", (int)world_random(w, 5));
    if (world_chance(w, 2) && s->f.containers < 2) /* a sum that overflows is refused by decode */
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
                world_chance(w, 50) ? "zone" : "host", selectors[world_random(w, 4)],
                others[world_chance(w, 70) ? 0 : world_random(w, 4)]);
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
                world_chance(w, 50) ? "zone" : "host", 1 + (int)world_random(w, 2),
                world_chance(w, 70) ? "DoNotSchedule" : "ScheduleAnyway",
                world_chance(w, 70) ? "a" : "b");
    if (world_chance(w, 20))
        strbuf_addf(b, ",\"minDomains\":%d", 1 + (int)world_random(w, 4));
    if (world_chance(w, 20))
        strbuf_adds(b, ",\"nodeAffinityPolicy\":\"Ignore\"");
    if (world_chance(w, 20))
        strbuf_adds(b, ",\"nodeTaintsPolicy\":\"Honor\"");
    strbuf_addc(b, '}');
}

static void fill_spec(struct world *w, struct world_slot *s)
{
    AUTO_STRBUF b = {0};
    if (world_chance(w, w->plain ? 20 : 10))
        strbuf_adds(&b, ",\"tolerations\":[{\"key\":\"k\",\"operator\":\"Exists\"}]");
    else if (world_chance(w, w->plain ? 30 : 10))
        strbuf_adds(&b, ",\"nodeSelector\":{\"zone\":\"a\"}");
    if (world_chance(w, w->affinity)) {
        strbuf_adds(&b, ",\"affinity\":{");
        if (world_chance(w, 50))
            add_terms(w, &b, "podAffinity");
        if (world_chance(w, 60))
            add_terms(w, &b, "podAntiAffinity");
        strbuf_addc(&b, '}');
    }
    if (world_chance(w, w->affinity)) {
        strbuf_adds(&b, ",\"topologySpreadConstraints\":[");
        add_spread(w, &b);
        if (world_chance(w, 30)) {
            strbuf_addc(&b, ',');
            add_spread(w, &b);
        }
        strbuf_addc(&b, ']');
    }
    static const char *const claims[] = {"c0", "c1", "c2"};
    if (w->stored && world_chance(w, 40))
        strbuf_addf(
            &b, ",\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"%s\"}}]",
            claims[world_random(w, 3)]);
    if (w->reserving && world_chance(w, 15))
        strbuf_addf(&b, ",\"activeDeadlineSeconds\":%d", 1 + (int)world_random(w, 30));
    if (b.len > 0)
        s->f.spec = arena_strdup(&w->specs, strbuf_str(&b) + 1);
}

/* The pod requests pinned CPUs; now and then an invalid request. */
static void fill_cpus(struct world *w, struct world_slot *s)
{
    static const char *const specs[] = {
        "{\"numaTopologyPolicy\":\"SingleNUMANode\",\"singleNUMANodeExclusive\":\"Required\"}",
        "{\"numaTopologyPolicy\":\"SingleNUMANode\"}",
        "{\"numaTopologyPolicy\":\"Restricted\"}",
        "{\"numaTopologyPolicy\":\"Restricted\",\"singleNUMANodeExclusive\":\"Preferred\"}",
        "{\"numaTopologyPolicy\":\"BestEffort\",\"singleNUMANodeExclusive\":\"Required\"}",
        "{\"numaTopologyPolicy\":\"all\"}"};
    size_t n = 0;
    s->annotations[n++] = NAME_ANN_CPUSET_SCHEDULER;
    s->annotations[n++] = world_chance(w, 60) ? "true" : world_chance(w, 90) ? "required" : "yes";
    if (world_chance(w, 40)) {
        s->annotations[n++] = NAME_ANN_NUMA_SPEC;
        s->annotations[n++] = specs[world_chance(w, 95) ? world_random(w, 5) : 5];
    }
    if (world_chance(w, w->pinned ? 50 : 25)) {
        s->annotations[n++] = NAME_ANN_CPU_POLICY;
        s->annotations[n++] = "static-burst";
    }
    if (world_chance(w, w->pinned ? 3 : 20)) {
        s->annotations[n++] = NAME_ANN_CPUSET_SHARED;
        s->annotations[n++] = "true";
    }
    s->requests = n;
    for (size_t i = 0; i < s->f.containers; i++)
        s->f.c[i].cpu_milli = (1 + (int64_t)world_random(w, 3)) * 1000;
    if (s->f.has_init && world_chance(w, 50))
        s->f.init.cpu_milli = (int64_t)world_random(w, 4) * 1000;
    if (world_chance(w, 3))
        s->f.c[0].cpu_milli += 500;
}

/* A cpuset annotation as another writer may have written it. */
static size_t fill_cpuset(struct world *w, struct world_slot *s, size_t n)
{
    static const char *const claims[] = {
        "{\"c0\":{\"0\":{\"elems\":{\"0\":{},\"1\":{}}}}}",
        "{\"c0\":{\"1\":{\"elems\":{\"2\":{}}}}}",
        "{\"c0\":{\"0\":{\"elems\":{\"0\":{},\"900\":{}}},\"3\":{\"elems\":{\"3\":{}}}}}",
        "{\"other\":{\"0\":{\"elems\":{\"0\":{}}}}}",
        "[]",
        ""};
    if (s->requests == 0 && !world_chance(w, 5))
        return n;
    s->annotations[n++] = NAME_ANN_CPUSET;
    s->annotations[n++] = claims[world_random(w, 6)];
    return n;
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
    if (w->plain)
        s->f.c[0].cpu_milli *= 2;
    if (world_chance(w, w->ganged ? 5 : w->pinned || w->plain ? 15 : 60)) {
        if (world_chance(w, 15))
            s->f.containers = 2;
        fill_gpu(w, s, &s->f.c[0]);
        if (s->f.containers == 2 && world_chance(w, 70))
            s->f.c[1].gib = 1 + (int64_t)world_random(w, 8);
        if (world_chance(w, 10) && s->f.c[0].gib < 100) {
            s->f.has_init = true;
            s->f.init.gib = (int64_t)world_random(w, 16);
            s->f.init.sidecar = world_chance(w, 30);
        }
    } else if (world_chance(w, 10)) {
        s->f.c[0].other = world_chance(w, 50) ? "example.com/thing" : "example.com/rare";
        s->f.c[0].other_amount = world_chance(w, 5) ? hostile(w) : 1 + (int64_t)world_random(w, 3);
    }
    if (world_chance(w, w->pinned ? 80 : w->plain ? 5 : 25))
        fill_cpus(w, s);
    if (!w->plain && world_chance(w, 2) &&
        (s->requests == 0 || (s->f.containers < 2 && !s->f.has_init)))
        s->f.c[0].cpu_milli = hostile(w);
    if (!w->plain && world_chance(w, 2))
        s->f.c[0].memory_bytes = hostile(w);
    if (world_chance(w, w->pinned ? 5 : w->plain ? 15 : 30))
        s->f.scheduler = "default-scheduler";
    fill_spec(w, s);
    static const char *const ports[] = {
        "{\"hostPort\":80,\"containerPort\":80}",
        "{\"hostPort\":80,\"containerPort\":80,\"hostIP\":\"10.0.0.1\"}",
        ("{\"hostPort\":80,\"containerPort\":80,\"protocol\":\"UDP\"},"
         "{\"hostPort\":81,\"containerPort\":81,\"hostIP\":\"10.0.0.2\"}")};
    if (world_chance(w, 10))
        s->f.ports = ports[world_random(w, 3)];
    if (world_chance(w, 20))
        s->f.image = world_chance(w, 50) ? "app:v1" : "app:v2";
    s->f.gated = world_chance(w, 5);
    size_t l = 0;
    if (world_chance(w, w->ganged ? 80 : 40)) {
        (void)str_format(s->gang, sizeof s->gang, "g%llu",
                         (unsigned long long)world_random(w, w->ganged ? 2 : WORLD_GANGS));
        if (!world_chance(w, 3)) /* members with different priorities wait for ever */
            s->f.priority = (s->gang[1] - '0') % 3;
        bool in_labels = s->gang[1] < '2'; /* g0, g1: the size is in the labels */
        s->labels[l++] = in_labels ? NAME_LABEL_GANG_NAME : NAME_LABEL_GANG_BARE;
        s->labels[l++] = s->gang;
        if (in_labels) {
            (void)str_format(s->min, sizeof s->min, "%d",
                             world_chance(w, 3)  ? 4
                             : s->gang[1] == '0' ? 2
                                                 : 3);
            s->labels[l++] = NAME_LABEL_GANG_MIN;
            s->labels[l++] = s->min;
        }
        if (w->policy != NULL && s->gang[1] == '1') {
            s->labels[l++] = NAME_ANN_GANG_MATCH;
            s->labels[l++] = w->policy;
        }
    }
    if (world_chance(w, 60)) {
        s->labels[l++] = "app";
        s->labels[l++] = world_chance(w, 50) ? "a" : "b";
    }
    if (s->count[0] != '\0') {
        s->labels[l++] = NAME_RES_GPU_COUNT;
        s->labels[l++] = s->count;
    }
    s->labels[l] = NULL;
    s->f.labels = s->labels;
    s->f.annotations = s->annotations;
    if (world_chance(w, w->bursting ? 60 : 5)) {
        s->annotations[s->requests] = NAME_ANN_BURST;
        s->annotations[s->requests + 1] = world_chance(w, 50) ? "eci" : "eci_only";
    }
}

/* A grant as another writer may have written it: right on some card, right in sum only, wrong, or
 * absent. */
void world_fill_grant(struct world *w, struct world_slot *s)
{
    uint64_t card = world_random(w, 5);
    int64_t gib = num_min(s->f.c[0].gib, 1000);
    size_t n = fill_cpuset(w, s, s->requests);
    s->annotations[n] = NULL;
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
