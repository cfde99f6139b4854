// SPDX-License-Identifier: Apache-2.0
#include "kubectl/report.h"

#include "kubectl/grid.h"
#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/model/names.h"

struct sums {
    int64_t used, total;
    int32_t top; /* highest card index */
    bool pending;
};

static bool is_shown(const struct report *r, const struct view_node *n)
{
    return view_is_shared(n) && (r->node == NULL || str_eq(n->node->name, r->node));
}

static int check_node(const struct report *r, struct error *err)
{
    const struct view_node *n = r->node != NULL ? view_find(r->view, r->node) : NULL;
    if (r->node == NULL || n != NULL)
        return 0;
    return error_set(err, ERROR_NOT_FOUND, "node %s does not exist", grid_clean(r->node, r->arena));
}

static void add_up(const struct report *r, struct sums *s)
{
    *s = (struct sums){.top = -1};
    for (size_t i = 0; i < r->view->nodes_len; i++) {
        const struct view_node *n = &r->view->nodes[i];
        if (!is_shown(r, n))
            continue;
        s->used = num_add_sat(s->used, view_used_gib(n));
        s->total = num_add_sat(s->total, view_total_gib(n));
        s->pending |= n->pending_gib > 0;
        if (n->cards_len > 0 && n->cards[n->cards_len - 1].card->index > s->top)
            s->top = n->cards[n->cards_len - 1].card->index;
    }
}

static int64_t percent_of(int64_t used, int64_t total)
{
    int64_t scaled;
    if (total <= 0 || !num_mul(used, 100, &scaled))
        return 0;
    return scaled / total;
}

static void add_summary(const struct sums *s, size_t dashes, struct strbuf *out)
{
    for (size_t i = 0; i < dashes; i++)
        strbuf_addc(out, '-');
    strbuf_addf(out, "\nAllocated/Total GPU Memory In Cluster:\n%lld/%lld (%lld%%)\n",
                (long long)s->used, (long long)s->total, (long long)percent_of(s->used, s->total));
}

static const char *address_of(const struct view_node *n)
{
    return n->node->internal_ip != NULL ? n->node->internal_ip : "unknown";
}

static enum grid_colour colour_of(int64_t used, int64_t total)
{
    return used == 0 ? GRID_PLAIN : used < total ? GRID_GREEN : GRID_RED;
}

/* ---- table ---- */

static void add_cards(const struct view_node *n, int32_t top, struct grid *g)
{
    for (int32_t i = 0; i <= top; i++) {
        const struct view_card *c = view_card(n, i);
        if (c == NULL)
            grid_add(g, GRID_PLAIN, "0/0");
        else
            grid_addf(g,
                      c->card->health == GPU_HEALTH_OK ? colour_of(c->used_gib, c->total_gib)
                                                       : GRID_YELLOW,
                      "%lld/%lld", (long long)c->used_gib, (long long)c->total_gib);
    }
}

int report_table(const struct report *r, struct strbuf *out, struct error *err)
{
    struct sums s;
    struct grid g;
    if (check_node(r, err) < 0)
        return -1;
    add_up(r, &s);
    grid_init(&g, (size_t)(s.top + 1) + 3 + s.pending, r->arena);
    grid_add(&g, GRID_BOLD, "NAME");
    grid_add(&g, GRID_BOLD, "IPADDRESS");
    for (int32_t i = 0; i <= s.top; i++)
        grid_addf(&g, GRID_BOLD, "GPU%d(Allocated/Total)", (int)i);
    if (s.pending)
        grid_add(&g, GRID_BOLD, "PENDING(Allocated)");
    grid_add(&g, GRID_BOLD, "GPU Memory(GiB)");
    for (size_t i = 0; i < r->view->nodes_len; i++) {
        const struct view_node *n = &r->view->nodes[i];
        if (!is_shown(r, n))
            continue;
        grid_add(&g, GRID_PLAIN, n->node->name);
        grid_add(&g, GRID_PLAIN, address_of(n));
        add_cards(n, s.top, &g);
        if (s.pending)
            grid_addf(&g, n->pending_gib > 0 ? GRID_YELLOW : GRID_PLAIN, "%lld",
                      (long long)n->pending_gib);
        grid_addf(&g, GRID_PLAIN, "%lld/%lld", (long long)view_used_gib(n),
                  (long long)view_total_gib(n));
    }
    size_t width = grid_print(&g, r->colours, out);
    add_summary(&s, width, out);
    return 0;
}

/* ---- details ---- */

static void add_share(const struct view_pod *p, int32_t card, struct grid *g)
{
    int64_t gib = grant_card_gib(&p->grant, card), percent = 0;
    for (size_t i = 0; i < p->grant.shares_len; i++)
        if (p->grant.shares[i].card == card)
            percent = num_add_sat(percent, p->grant.shares[i].percent);
    if (percent > 0)
        grid_addf(g, GRID_PLAIN, "%lld (%lld%%)", (long long)gib, (long long)percent);
    else
        grid_addf(g, GRID_PLAIN, "%lld", (long long)gib);
}

static bool is_use_known(const struct view_node *n)
{
    for (size_t i = 0; i < n->pods_len; i++)
        if (n->pods[i].use_known)
            return true;
    return false;
}

/* Only memory can be exceeded; a pod that holds a whole card cannot exceed it. */
static void add_use(const struct view_pod *p, struct grid *g)
{
    int64_t asked_mib = p->request.total[GPU_REQUEST_MEM] * 1024;
    if (!p->use_known) {
        grid_add(g, GRID_PLAIN, "-");
        return;
    }
    grid_addf(g, asked_mib > 0 && p->use.mib > asked_mib ? GRID_RED : GRID_PLAIN, "%lld/%lld%s",
              (long long)p->use.mib, (long long)asked_mib,
              asked_mib > 0 && p->use.mib > asked_mib ? " over" : "");
}

static void add_node(const struct report *r, const struct view_node *n, struct strbuf *out)
{
    struct grid g;
    bool pending = n->pending_gib > 0, use = is_use_known(n);
    int64_t used = view_used_gib(n), total = view_total_gib(n);
    strbuf_addf(out, "NAME:       %s\nIPADDRESS:  %s\nMODE:       %s\n\n",
                grid_clean(n->node->name, r->arena), grid_clean(address_of(n), r->arena),
                gpu_mode_name(n->inventory.mode));
    grid_init(&g, 2 + n->cards_len + pending + use, r->arena);
    grid_add(&g, GRID_BOLD, "NAME");
    grid_add(&g, GRID_BOLD, "NAMESPACE");
    for (size_t i = 0; i < n->cards_len; i++)
        grid_addf(&g, n->cards[i].card->health == GPU_HEALTH_OK ? GRID_BOLD : GRID_YELLOW,
                  "GPU%d(Allocated)%s", (int)n->cards[i].card->index,
                  n->cards[i].card->health == GPU_HEALTH_OK ? "" : " sick");
    if (pending)
        grid_add(&g, GRID_BOLD, "PENDING(Allocated)");
    if (use)
        grid_add(&g, GRID_BOLD, "MiB(Used/Asked)");
    for (size_t i = 0; i < n->pods_len; i++) {
        grid_add(&g, GRID_PLAIN, n->pods[i].pod->name);
        grid_add(&g, GRID_PLAIN, n->pods[i].pod->ns);
        for (size_t k = 0; k < n->cards_len; k++)
            add_share(&n->pods[i], n->cards[k].card->index, &g);
        if (pending)
            grid_addf(&g, GRID_PLAIN, "%lld", (long long)n->pods[i].pending_gib);
        if (use)
            add_use(&n->pods[i], &g);
    }
    grid_print(&g, r->colours, out);
    strbuf_addf(out, "Allocated : %lld (%lld%%)\nTotal :     %lld\n", (long long)used,
                (long long)percent_of(used, total), (long long)total);
}

int report_details(const struct report *r, struct strbuf *out, struct error *err)
{
    struct sums s;
    if (check_node(r, err) < 0)
        return -1;
    add_up(r, &s);
    for (size_t i = 0; i < r->view->nodes_len; i++)
        if (is_shown(r, &r->view->nodes[i])) {
            add_node(r, &r->view->nodes[i], out);
            strbuf_addc(out, '\n');
        }
    add_summary(&s, 80, out);
    return 0;
}

/* ---- JSON ---- */

static void put_clean(struct json_writer *w, const char *key, const char *s, struct arena *a)
{
    json_kv_str(w, key, grid_clean(s, a));
}

static void put_numbers(struct json_writer *w, const char *key, const int32_t *list, size_t n)
{
    json_key(w, key);
    json_array_begin(w);
    for (size_t i = 0; i < n; i++)
        json_put_int(w, list[i]);
    json_array_end(w);
}

static void put_card(struct json_writer *w, const struct view_card *c, struct arena *a)
{
    json_object_begin(w);
    json_kv_int(w, "index", c->card->index);
    put_clean(w, "uuid", c->card->uuid, a);
    put_clean(w, "model", c->card->model, a);
    json_kv_bool(w, "healthy", c->card->health == GPU_HEALTH_OK);
    if (c->card->health != GPU_HEALTH_OK && str_or_empty(c->card->why)[0] != '\0')
        json_kv_str(w, "why", c->card->why);
    json_kv_int(w, "numa", c->card->numa);
    json_kv_int(w, "totalGiB", c->total_gib);
    json_kv_int(w, "allocatedGiB", c->used_gib);
    json_kv_int(w, "allocatedPercent", c->used_percent);
    json_kv_int(w, "wholeHolders", c->holders);
    json_object_end(w);
}

static void put_pod(struct json_writer *w, const struct view_pod *p, struct arena *a)
{
    json_object_begin(w);
    put_clean(w, "namespace", p->pod->ns, a);
    put_clean(w, "name", p->pod->name, a);
    json_key(w, "shares");
    json_array_begin(w);
    for (size_t i = 0; i < p->grant.shares_len; i++) {
        const struct grant_share *s = &p->grant.shares[i];
        json_object_begin(w);
        json_kv_int(w, "container", s->container);
        json_kv_int(w, "card", s->card);
        json_kv_int(w, "gib", s->gib);
        json_kv_int(w, "percent", s->percent);
        json_object_end(w);
    }
    json_array_end(w);
    put_numbers(w, "cards", p->grant.group, p->grant.group_len);
    put_numbers(w, "visible", p->grant.visible, p->grant.visible_len);
    json_kv_int(w, "pendingGiB", p->pending_gib);
    json_kv_int(w, "pendingCards", p->pending_cards);
    if (p->use_known) {
        json_kv_int(w, "usedMiB", p->use.mib);
        json_kv_int(w, "processes", p->use.processes);
    }
    json_object_end(w);
}

static void put_node(struct json_writer *w, const struct view_node *n, struct arena *a)
{
    json_object_begin(w);
    put_clean(w, "name", n->node->name, a);
    put_clean(w, "address", address_of(n), a);
    json_kv_str(w, "mode", n->known && !n->guessed ? gpu_mode_name(n->inventory.mode) : NULL);
    json_key(w, "problem");
    if (n->problem != NULL)
        json_put_str(w, grid_clean(n->problem, a));
    else
        json_put_null(w);
    json_kv_int(w, "allocatedGiB", view_used_gib(n));
    json_kv_int(w, "totalGiB", view_total_gib(n));
    json_kv_int(w, "pendingGiB", n->pending_gib);
    json_key(w, "cards");
    json_array_begin(w);
    for (size_t i = 0; i < n->cards_len; i++)
        put_card(w, &n->cards[i], a);
    json_array_end(w);
    json_key(w, "pods");
    json_array_begin(w);
    for (size_t i = 0; i < n->pods_len; i++)
        put_pod(w, &n->pods[i], a);
    json_array_end(w);
    json_object_end(w);
}

int report_json(const struct report *r, struct strbuf *out, struct error *err)
{
    struct json_writer w;
    struct sums s;
    if (check_node(r, err) < 0)
        return -1;
    add_up(r, &s);
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_key(&w, "nodes");
    json_array_begin(&w);
    for (size_t i = 0; i < r->view->nodes_len; i++) {
        const struct view_node *n = &r->view->nodes[i];
        if ((n->known || n->problem != NULL) && (r->node == NULL || str_eq(r->node, n->node->name)))
            put_node(&w, n, r->arena);
    }
    json_array_end(&w);
    json_kv_int(&w, "allocatedGiB", s.used);
    json_kv_int(&w, "totalGiB", s.total);
    json_kv_int(&w, "percent", percent_of(s.used, s.total));
    json_object_end(&w);
    strbuf_addc(out, '\n');
    return 0;
}
