// SPDX-License-Identifier: Apache-2.0
#include "scheduler/replay/replay_report.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/vec.h"
#include "lib/model/names.h"
#include "scheduler/cache/gangs.h"

static bool is_meant(const struct replay_report *r, const char *key)
{
    return r->only == NULL || map_get(r->only, key) != NULL;
}

struct replay_report_count replay_report_count(const struct replay_report *r)
{
    struct replay_report_count n = {0};
    struct replay_run_list waiting = {0};
    for (size_t i = 0; i < r->run->placed.len; i++)
        *(is_meant(r, r->run->placed.items[i]->pod->key) ? &n.placed : &n.other_placed) += 1;
    replay_run_waiting(r->run, &waiting);
    for (size_t i = 0; i < waiting.len; i++)
        *(is_meant(r, waiting.items[i]->pod->key) ? &n.waiting : &n.other_waiting) += 1;
    vec_deinit(&waiting);
    for (size_t i = 0; i < r->run->away.len; i++)
        n.away += is_meant(r, r->run->away.items[i].for_pod);
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&r->run->cluster->pods, &i, &key, &value);) {
        const struct cluster_pod *cp = value;
        n.not_ours += cp->state == CLUSTER_PENDING && cp->gang == NULL && !cp->pod->terminating;
    }
    return n;
}

struct used {
    const char *name;
    int64_t used, total;
};
struct used_list VEC(struct used);

static void add_used(struct used_list *l, const char *name, int64_t used, int64_t total)
{
    size_t i = 0;
    while (i < l->len && !str_eq(l->items[i].name, name))
        i++;
    if (i == l->len) {
        struct used row = {.name = name};
        vec_push(l, row);
    }
    l->items[i].used = num_add_sat(l->items[i].used, used);
    l->items[i].total = num_add_sat(l->items[i].total, total);
}

/* cpu, memory, then the others by name. */
static int used_order(const void *a, const void *b)
{
    const struct used *x = a, *y = b;
    int rank_x = str_eq(x->name, "cpu") ? 0 : str_eq(x->name, "memory") ? 1 : 2;
    int rank_y = str_eq(y->name, "cpu") ? 0 : str_eq(y->name, "memory") ? 1 : 2;
    return rank_x != rank_y ? rank_x - rank_y : strcmp(x->name, y->name);
}

static void count_used(const struct cluster *c, struct used_list *l)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&c->nodes, &i, &key, &value);) {
        const struct cluster_node *cn = value;
        if (cn->node == NULL)
            continue;
        add_used(l, "cpu", cn->used.cpu_milli, cn->allocatable.cpu_milli);
        add_used(l, "memory", cn->used.memory_bytes, cn->allocatable.memory_bytes);
        for (uint32_t k = 0; k < cn->allocatable.extra_len; k++) {
            const struct resource_vector_extra *e = &cn->allocatable.extra[k];
            int64_t used = 0;
            if (e->value <= 0 || str_eq(e->name, NAME_RES_GPU_COUNT)) /* no pod requests it */
                continue;
            (void)resource_vector_get(&cn->used, e->id, &used);
            add_used(l, e->name, used, e->value);
        }
    }
    if (l->len > 0)
        qsort(l->items, l->len, sizeof *l->items, used_order);
}

/* Tenths of a percent, truncated; amounts may be near INT64_MAX. */
static int64_t permille(int64_t used, int64_t total)
{
    while (used > INT64_MAX / 1000) {
        used /= 2;
        total /= 2;
    }
    return total > 0 ? used * 1000 / total : 0;
}

static void print_cards(const struct grant *c, struct strbuf *out)
{
    size_t start = out->len;
    for (size_t i = 0; i < c->group_len; i++)
        strbuf_addf(out, "%sGPU%d", i > 0 ? "," : "", (int)c->group[i]);
    for (int32_t card = 0; c->shares_len > 0 && card < GPU_CARDS_MAX; card++) {
        int64_t gib = grant_card_gib(c, card), percent = 0;
        for (size_t i = 0; i < c->shares_len; i++)
            percent += c->shares[i].card == card ? c->shares[i].percent : 0;
        if (gib == 0 && percent == 0)
            continue;
        strbuf_addf(out, "%sGPU%d: %lld GiB", out->len > start ? ", " : "", (int)card,
                    (long long)gib);
        if (percent > 0)
            strbuf_addf(out, " %lld %%", (long long)percent);
    }
    if (out->len == start)
        strbuf_addc(out, '-');
}

static void put_cards(const struct grant *c, struct json_writer *w)
{
    json_key(w, "cards");
    json_array_begin(w);
    for (size_t i = 0; i < c->group_len; i++) {
        json_object_begin(w);
        json_kv_int(w, "card", c->group[i]);
        json_object_end(w);
    }
    for (size_t i = 0; i < c->shares_len; i++) {
        json_object_begin(w);
        json_kv_int(w, "card", c->shares[i].card);
        json_kv_int(w, "container", c->shares[i].container);
        json_kv_int(w, "gib", c->shares[i].gib);
        if (c->shares[i].percent > 0)
            json_kv_int(w, "percent", c->shares[i].percent);
        json_object_end(w);
    }
    json_array_end(w);
}

static const char *container_name(const struct pod *p, uint32_t i)
{
    return i < p->containers_len ? p->containers[i].name
                                 : p->init_containers[i - p->containers_len].name;
}

/* "numa 0: 0-3"; where several containers have some: "c0 numa 0: 0-3; c1 numa 0: 4". */
static void print_cpus(const struct cluster_pod *cp, struct strbuf *out)
{
    const struct cpu_grant *c = &cp->grant.cpus;
    bool several = c->len > 0 && c->parts[0].container != c->parts[c->len - 1].container;
    if (c->len == 0)
        strbuf_addc(out, '-');
    for (size_t i = 0; i < c->len; i++) {
        const struct cpu_grant_part *part = &c->parts[i];
        bool next = i == 0 || c->parts[i - 1].container != part->container;
        strbuf_adds(out, i == 0 ? "" : next ? "; " : ", ");
        if (several && next)
            strbuf_addf(out, "%s ", container_name(cp->pod, part->container));
        strbuf_addf(out, "numa %d: ", (int)part->numa);
        cpuset_print(&part->cpus, out);
    }
}

static void put_set(struct json_writer *w, const struct cpuset *cpus)
{
    AUTO_STRBUF text = {0};
    cpuset_print(cpus, &text);
    json_kv_str(w, "cpus", strbuf_str(&text));
}

static void put_cpus(const struct cluster_pod *cp, struct json_writer *w)
{
    const struct cpu_grant *c = &cp->grant.cpus;
    if (c->len == 0)
        return;
    json_key(w, "cpus");
    json_array_begin(w);
    for (size_t i = 0; i < c->len; i++) {
        json_object_begin(w);
        json_kv_str(w, "container", container_name(cp->pod, c->parts[i].container));
        json_kv_int(w, "numa", c->parts[i].numa);
        put_set(w, &c->parts[i].cpus);
        json_object_end(w);
    }
    json_array_end(w);
}

/* Columns are two blanks apart; the last one is not padded. */
enum { COLUMNS_MAX = 4 };
struct columns {
    size_t columns;
    struct VEC(char *) cells;
};

/* The first row sets the number of columns; NULL cells are skipped. */
static void row(struct columns *t, const char *const cells[COLUMNS_MAX])
{
    bool first = t->columns == 0;
    for (size_t i = 0; i < COLUMNS_MAX; i++)
        if (cells[i] != NULL) {
            vec_push(&t->cells, mem_strdup(cells[i]));
            t->columns += first;
        }
}
#define ROW(t, ...) row((t), (const char *const[COLUMNS_MAX]){__VA_ARGS__})

/* Prints nothing if there is only a heading. */
static void print_columns(struct columns *t, struct strbuf *out)
{
    size_t width[COLUMNS_MAX] = {0};
    bool any = t->cells.len > t->columns;
    for (size_t i = 0; i < t->cells.len; i++) {
        size_t *w = &width[i % t->columns], n = strlen(t->cells.items[i]);
        *w = n > *w ? n : *w;
    }
    for (size_t i = 0; i < t->cells.len; i++) {
        size_t column = i % t->columns;
        if (any && column + 1 < t->columns)
            strbuf_addf(out, "%-*s  ", (int)width[column], t->cells.items[i]);
        else if (any)
            strbuf_addf(out, "%s\n", t->cells.items[i]);
        free(t->cells.items[i]);
    }
    if (any)
        strbuf_addc(out, '\n');
    vec_deinit(&t->cells);
}

static void text_placed(const struct replay_report *r, struct strbuf *out)
{
    struct columns t = {0};
    bool pinned = false;
    for (size_t i = 0; i < r->run->placed.len; i++) {
        const struct cluster_pod *cp = r->run->placed.items[i];
        pinned |= is_meant(r, cp->pod->key) && cp->grant.cpus.len > 0;
    }
    ROW(&t, "POD", "NODE", "CARDS", pinned ? "CPUS" : NULL);
    for (size_t i = 0; i < r->run->placed.len; i++) {
        const struct cluster_pod *cp = r->run->placed.items[i];
        AUTO_STRBUF cards = {0}, cpus = {0};
        if (!is_meant(r, cp->pod->key))
            continue;
        print_cards(&cp->grant, &cards);
        print_cpus(cp, &cpus);
        ROW(&t, cp->pod->key, cp->on->name, strbuf_str(&cards), pinned ? strbuf_str(&cpus) : NULL);
    }
    print_columns(&t, out);
}

static void text_away(const struct replay_report *r, struct strbuf *out)
{
    struct columns t = {0};
    ROW(&t, "LEAVES", "FROM", "FOR");
    for (size_t i = 0; i < r->run->away.len; i++) {
        const struct replay_run_change *away = &r->run->away.items[i];
        if (is_meant(r, away->for_pod))
            ROW(&t, away->pod, away->node, away->for_pod);
    }
    print_columns(&t, out);
}

static void text_reclaimed(const struct replay_report *r, struct strbuf *out)
{
    struct columns t = {0};
    ROW(&t, "GIVES BACK", "ON", "CPUS", "FOR");
    for (size_t i = 0; i < r->run->cpu_lending.len; i++) {
        const struct replay_run_change *change = &r->run->cpu_lending.items[i];
        AUTO_STRBUF cpus = {0};
        cpuset_print(&change->cpus, &cpus);
        if (is_meant(r, change->for_pod))
            ROW(&t, change->pod, change->node, strbuf_str(&cpus), change->for_pod);
    }
    print_columns(&t, out);
}

/* Members of one gang wait for one reason: one line. */
static void text_waiting(const struct replay_report *r, struct strbuf *out)
{
    struct columns t = {0};
    struct replay_run_list waiting = {0};
    struct map told;
    map_init(&told);
    ROW(&t, "WAITING", "WHY");
    replay_run_waiting(r->run, &waiting);
    for (size_t i = 0; i < waiting.len; i++) {
        struct cluster_pod *cp = waiting.items[i];
        AUTO_STRBUF who = {0};
        bool alone = gangs_is_lone(cp->gang) || cp->pod->gated;
        if (!is_meant(r, cp->pod->key) ||
            (!alone && map_put(&told, cp->gang->key, cp->gang) != NULL))
            continue;
        size_t n = 0;
        for (size_t k = i; k < waiting.len; k++)
            n += waiting.items[k]->gang == cp->gang && !waiting.items[k]->pod->gated &&
                 is_meant(r, waiting.items[k]->pod->key);
        strbuf_addf(&who, "%s (%zu pod%s)", cp->gang->key, n, n == 1 ? "" : "s");
        ROW(&t, alone ? cp->pod->key : strbuf_str(&who), replay_run_why(r->run, cp));
    }
    print_columns(&t, out);
    map_deinit(&told);
    vec_deinit(&waiting);
}

static void text_explain(const struct replay_explain *e, struct strbuf *out)
{
    struct columns t = {0};
    strbuf_addf(out, "%s%s%s\n", e->key, e->note != NULL ? ": " : "", str_or_empty(e->note));
    ROW(&t, "NODE", "SCORE", "WHY");
    for (size_t i = 0; i < e->nodes.len; i++) {
        const struct replay_explain_node *n = &e->nodes.items[i];
        char score[32] = "-";
        AUTO_STRBUF why = {0};
        if (n->no == NULL)
            (void)str_format(score, sizeof score, "%lld", (long long)n->score);
        strbuf_adds(&why, n->no != NULL ? n->no : "fits");
        if (n->no != NULL)
            strbuf_addf(&why, " [%s]", n->plugin);
        if (n->chosen)
            strbuf_adds(&why, e->bound ? "; bound here" : "; chosen");
        ROW(&t, n->name, score, strbuf_str(&why));
    }
    print_columns(&t, out);
    if (e->nodes.len == 0)
        strbuf_adds(out, "no nodes\n\n");
}

static void text_count(const struct replay_report *r, struct strbuf *out)
{
    struct replay_report_count n = replay_report_count(r);
    size_t all = n.placed + n.waiting;
    if (all == 0)
        strbuf_adds(out, "no pod waits for a node");
    else
        strbuf_addf(out, "%zu of %zu pod%s placed, %zu wait%s", n.placed, all, all == 1 ? "" : "s",
                    n.waiting, n.waiting == 1 ? "s" : "");
    if (n.other_placed + n.other_waiting > 0)
        strbuf_addf(out, " (and of the %zu that waited in the input: %zu placed, %zu wait%s)",
                    n.other_placed + n.other_waiting, n.other_placed, n.other_waiting,
                    n.other_waiting == 1 ? "s" : "");
    if (n.away > 0)
        strbuf_addf(out, "; %zu %s for them", n.away, n.away == 1 ? "leaves" : "leave");
    strbuf_addc(out, '\n');
    if (n.not_ours > 0)
        strbuf_addf(out, "%zu pod%s for another scheduler (see --any-scheduler)\n", n.not_ours,
                    n.not_ours == 1 ? " waits" : "s wait");
}

static void text_used(const struct replay_report *r, struct strbuf *out)
{
    struct used_list used = {0};
    count_used(r->run->cluster, &used);
    for (size_t i = 0; i < used.len; i++) {
        int64_t p = permille(used.items[i].used, used.items[i].total);
        strbuf_addf(out, "%s%s %lld.%lld %%", i == 0 ? "allocated: " : ", ", used.items[i].name,
                    (long long)p / 10, (long long)p % 10);
    }
    if (used.len > 0)
        strbuf_addc(out, '\n');
    vec_deinit(&used);
}

void replay_report_text(const struct replay_report *r, struct strbuf *out)
{
    if (r->explain != NULL)
        text_explain(r->explain, out);
    if (!r->summary) {
        text_placed(r, out);
        text_away(r, out);
        text_reclaimed(r, out);
        text_waiting(r, out);
    }
    text_count(r, out);
    text_used(r, out);
}

static void json_placed(const struct replay_report *r, struct json_writer *w)
{
    json_key(w, "placed");
    json_array_begin(w);
    for (size_t i = 0; i < r->run->placed.len; i++) {
        const struct cluster_pod *cp = r->run->placed.items[i];
        if (!is_meant(r, cp->pod->key))
            continue;
        json_object_begin(w);
        json_kv_str(w, "pod", cp->pod->key);
        json_kv_str(w, "node", cp->on->name);
        put_cards(&cp->grant, w);
        put_cpus(cp, w);
        json_object_end(w);
    }
    json_array_end(w);
}

static void json_changes(const struct replay_report *r, const struct replay_run_changes *list,
                         const char *key, struct json_writer *w)
{
    if (list->len == 0)
        return;
    json_key(w, key);
    json_array_begin(w);
    for (size_t i = 0; i < list->len; i++) {
        const struct replay_run_change *one = &list->items[i];
        if (!is_meant(r, one->for_pod))
            continue;
        json_object_begin(w);
        json_kv_str(w, "pod", one->pod);
        json_kv_str(w, "node", one->node);
        if (list == &r->run->cpu_lending)
            put_set(w, &one->cpus);
        json_kv_str(w, "for", one->for_pod);
        json_object_end(w);
    }
    json_array_end(w);
}

static void json_waiting(const struct replay_report *r, struct json_writer *w)
{
    struct replay_run_list waiting = {0};
    replay_run_waiting(r->run, &waiting);
    json_key(w, "waiting");
    json_array_begin(w);
    for (size_t i = 0; i < waiting.len; i++) {
        const struct cluster_pod *cp = waiting.items[i];
        if (!is_meant(r, cp->pod->key))
            continue;
        json_object_begin(w);
        json_kv_str(w, "pod", cp->pod->key);
        if (!gangs_is_lone(cp->gang))
            json_kv_str(w, "gang", cp->gang->key + strlen("gang "));
        json_kv_str(w, "reason",
                    cp->pod->gated                                  ? "SchedulingGated"
                    : queue_why(&r->run->queue, cp->gang)->for_gang ? "WaitingForGang"
                                                                    : "Unschedulable");
        json_kv_str(w, "why", replay_run_why(r->run, cp));
        json_object_end(w);
    }
    json_array_end(w);
    vec_deinit(&waiting);
}

static void json_explain(const struct replay_explain *e, struct json_writer *w)
{
    json_key(w, "explain");
    json_object_begin(w);
    json_kv_str(w, "pod", e->key);
    if (e->note != NULL)
        json_kv_str(w, "note", e->note);
    json_key(w, "nodes");
    json_array_begin(w);
    for (size_t i = 0; i < e->nodes.len; i++) {
        const struct replay_explain_node *n = &e->nodes.items[i];
        json_object_begin(w);
        json_kv_str(w, "node", n->name);
        json_kv_bool(w, "fits", n->no == NULL);
        if (n->chosen)
            json_kv_bool(w, "chosen", true);
        if (n->no == NULL) {
            json_kv_int(w, "score", n->score);
        } else {
            json_kv_str(w, "plugin", n->plugin);
            json_kv_str(w, "why", n->no);
        }
        json_object_end(w);
    }
    json_array_end(w);
    json_object_end(w);
}

static void json_summary(const struct replay_report *r, struct json_writer *w)
{
    struct replay_report_count n = replay_report_count(r);
    struct used_list used = {0};
    json_key(w, "summary");
    json_object_begin(w);
    json_kv_int(w, "placed", (int64_t)n.placed);
    json_kv_int(w, "waiting", (int64_t)n.waiting);
    if (r->only != NULL) {
        json_kv_int(w, "otherPlaced", (int64_t)n.other_placed);
        json_kv_int(w, "otherWaiting", (int64_t)n.other_waiting);
    }
    if (n.away > 0)
        json_kv_int(w, "leaves", (int64_t)n.away);
    json_kv_int(w, "notOurs", (int64_t)n.not_ours);
    json_key(w, "allocated");
    json_object_begin(w);
    count_used(r->run->cluster, &used);
    for (size_t i = 0; i < used.len; i++) {
        json_key(w, used.items[i].name);
        json_object_begin(w);
        json_kv_int(w, "used", used.items[i].used);
        json_kv_int(w, "total", used.items[i].total);
        json_object_end(w);
    }
    json_object_end(w);
    json_object_end(w);
    vec_deinit(&used);
}

void replay_report_json(const struct replay_report *r, struct strbuf *out)
{
    struct json_writer w;
    json_writer_init(&w, out);
    json_object_begin(&w);
    if (r->explain != NULL)
        json_explain(r->explain, &w);
    if (!r->summary) {
        json_placed(r, &w);
        json_changes(r, &r->run->away, "leaves", &w);
        json_changes(r, &r->run->cpu_lending, "givesBack", &w);
        json_waiting(r, &w);
    }
    json_summary(r, &w);
    json_object_end(&w);
    strbuf_addc(out, '\n');
}
