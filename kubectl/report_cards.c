// SPDX-License-Identifier: Apache-2.0
/*
 * Reports by card: a node's links and the pods on its cards, and what keeps a pod from each card.
 *
 * The scheduler's message about a pod (condition PodScheduled) comes first, since it covers taints,
 * volumes and other nodes. The rest covers cards only, computed from the same grants.
 */
#include "kubectl/grid.h"
#include "kubectl/report.h"
#include "lib/base/num.h"
#include "lib/model/gpu_request.h"
#include "lib/model/names.h"

static bool is_sick(const struct view_card *c)
{
    return c->card->health != GPU_HEALTH_OK;
}

static bool holds(const struct view_pod *p, int32_t card)
{
    for (size_t i = 0; i < p->grant.group_len; i++)
        if (p->grant.group[i] == card)
            return true;
    return false;
}

/* Pods on one card: "default/a, default/b 3 GiB". */
static const char *holders_of(const struct view_node *n, int32_t card, struct arena *a)
{
    AUTO_STRBUF b = {0};
    for (size_t i = 0; i < n->pods_len; i++) {
        const struct view_pod *p = &n->pods[i];
        int64_t gib = grant_card_gib(&p->grant, card);
        if (gib == 0 && !holds(p, card))
            continue;
        strbuf_addf(&b, "%s%s", b.len > 0 ? ", " : "", p->pod->key);
        if (gib > 0)
            strbuf_addf(&b, " %lld GiB", (long long)gib);
    }
    return arena_strdup(a, b.len > 0 ? strbuf_str(&b) : "-");
}

/* ---- topology NODE ---- */

static enum grid_colour colour_of_link(const char *link)
{
    return str_starts(link, "NV") ? GRID_GREEN : GRID_PLAIN;
}

static void add_row(const struct view_node *n, const struct view_card *c, struct grid *g,
                    struct arena *a)
{
    const struct gpu_inventory *inv = &n->inventory;
    grid_addf(g, GRID_BOLD, "GPU%d", (int)c->card->index);
    for (size_t k = 0; k < n->cards_len; k++) {
        const char *link =
            inv->links != NULL ? inv->links[c->at * inv->cards_len + n->cards[k].at] : "?";
        grid_add(g, colour_of_link(link), link);
    }
    if (c->card->numa >= 0)
        grid_addf(g, GRID_PLAIN, "%d", (int)c->card->numa);
    else
        grid_add(g, GRID_PLAIN, "-");
    grid_add(g, GRID_PLAIN, c->card->model[0] != '\0' ? c->card->model : "-");
    grid_add(g, is_sick(c) ? GRID_YELLOW : GRID_PLAIN,
             is_sick(c) ? gpu_card_trouble(c->card, a) : "ok");
    grid_add(g, GRID_PLAIN, holders_of(n, c->card->index, a));
}

static void add_unplaced(const struct report *r, const struct view_node *n, struct strbuf *out)
{
    for (size_t i = 0; i < n->pods_len; i++) {
        const struct view_pod *p = &n->pods[i];
        if (p->pending_cards > 0)
            strbuf_addf(out, "%s holds %lld cards; which, only its kubelet knows\n",
                        grid_clean(p->pod->key, r->arena), (long long)p->pending_cards);
        else if (p->pending_gib > 0)
            strbuf_addf(out, "%s holds %lld GiB and has no card yet\n",
                        grid_clean(p->pod->key, r->arena), (long long)p->pending_gib);
    }
}

int report_topology(const struct report *r, struct strbuf *out, struct error *err)
{
    const struct view_node *n = view_find(r->view, r->node);
    struct grid g;
    if (n == NULL)
        return error_set(err, ERROR_NOT_FOUND, "node %s does not exist",
                         grid_clean(r->node, r->arena));
    if (!n->known)
        return error_set(
            err, ERROR_NOT_FOUND, "node %s: %s", grid_clean(r->node, r->arena),
            grid_clean(n->problem != NULL ? n->problem : "no annotation " NAME_ANN_GPU_INVENTORY,
                       r->arena));
    strbuf_addf(out, "%s: mode %s, %zu cards\n", grid_clean(n->node->name, r->arena),
                n->guessed ? "unknown" : gpu_mode_name(n->inventory.mode), n->cards_len);
    grid_init(&g, n->cards_len + 5, r->arena);
    grid_add(&g, GRID_BOLD, "");
    for (size_t i = 0; i < n->cards_len; i++)
        grid_addf(&g, GRID_BOLD, "GPU%d", (int)n->cards[i].card->index);
    grid_add(&g, GRID_BOLD, "NUMA");
    grid_add(&g, GRID_BOLD, "MODEL");
    grid_add(&g, GRID_BOLD, "HEALTH");
    grid_add(&g, GRID_BOLD, "HELD BY");
    for (size_t i = 0; i < n->cards_len; i++)
        add_row(n, &n->cards[i], &g, r->arena);
    grid_print(&g, r->colours, out);
    add_unplaced(r, n, out);
    return 0;
}

/* ---- why POD ---- */

/* What the pod requests of one card, or how many whole cards. */
struct want {
    int64_t gib, percent; /* of the largest share */
    int64_t cards, exclusive;
    int64_t shares; /* more than one: several containers, or several cards */
};

static int64_t whole_cards(const struct want *w)
{
    return num_add_sat(w->cards, w->exclusive);
}

static void want_of(const struct pod *p, struct arena *a, struct want *w)
{
    struct gpu_request r;
    gpu_request_read(p, a, &r, NULL);
    *w = (struct want){.cards = r.total[GPU_REQUEST_CARDS],
                       .exclusive = r.total[GPU_REQUEST_NVIDIA]};
    if (r.one_card) {
        w->shares = 1;
        w->gib = r.total[GPU_REQUEST_MEM];
        w->percent = r.total[GPU_REQUEST_CORE];
        return;
    }
    for (size_t i = 0; i < r.shares_len; i++) {
        w->shares += r.spread_over;
        w->gib = num_max(w->gib, r.shares[i].gib / r.spread_over);
        w->percent = num_max(w->percent, r.shares[i].percent);
    }
}

static void print_want(const struct want *w, struct strbuf *out)
{
    long long whole = whole_cards(w);
    if (whole > 0) {
        strbuf_addf(out, "needs %lld whole card%s (%s)\n", whole, whole == 1 ? "" : "s",
                    w->cards > 0 ? NAME_RES_GPU : NAME_RES_NVIDIA_GPU);
        return;
    }
    strbuf_addf(out, "needs %lld GiB", (long long)w->gib);
    if (w->percent > 0)
        strbuf_addf(out, " and %lld %% of the compute", (long long)w->percent);
    strbuf_addf(out, " on one card%s\n", w->shares > 1 ? ", the largest of its shares" : "");
}

/* Why the node cannot serve the pod, whatever is free on its cards. */
static const char *refusal_of(const struct view_node *n, const struct want *w, struct arena *a)
{
    enum gpu_mode mode = n->inventory.mode;
    bool fits = w->cards > 0       ? mode == GPU_MODE_TOPOLOGY
                : w->exclusive > 0 ? mode == GPU_MODE_DEFAULT
                : w->percent > 0   ? mode == GPU_MODE_CORE_MEM
                                   : gpu_mode_is_shared(mode);
    if (!n->known || n->guessed)
        return n->problem;
    if (n->inventory.switching)
        return arena_printf(a, "is being switched to mode %s",
                            gpu_mode_name(n->inventory.switching_to));
    return fits ? NULL : arena_printf(a, "mode %s", gpu_mode_name(mode));
}

static bool is_free(const struct view_card *c)
{
    return !is_sick(c) && c->holders == 0 && c->used_gib == 0 && c->used_percent == 0;
}

/* Explains one card; true if it is free or could take a share. */
static bool judge(const struct view_node *n, const struct view_card *c, const struct want *w,
                  struct arena *a, const char **why)
{
    const char *by = holders_of(n, c->card->index, a);
    int64_t gib = num_max(c->total_gib - c->used_gib, 0);
    int64_t percent = num_max(100 - c->used_percent, 0);
    if (is_sick(c)) {
        *why = gpu_card_trouble(c->card, a);
        return false;
    }
    if (whole_cards(w) > 0 || c->holders > 0) {
        *why = is_free(c) ? "free" : arena_printf(a, "held by %s", by);
        return is_free(c) && whole_cards(w) > 0;
    }
    bool fits = gib >= w->gib && percent >= w->percent;
    *why = arena_printf(
        a, "%s: %lld of %lld GiB free%s%s%s",
        fits                    ? "fits"
        : c->total_gib < w->gib ? "too small"
                                : "too full",
        (long long)gib, (long long)c->total_gib,
        w->percent > 0 ? arena_printf(a, ", %lld %% of the compute", (long long)percent) : "",
        c->used_gib > 0 ? "; held by " : "", c->used_gib > 0 ? by : "");
    return fits;
}

static void explain_node(const struct report *r, const struct view_node *n, const struct want *w,
                         struct grid *g)
{
    const char *no = refusal_of(n, w, r->arena), *why;
    int64_t good = 0, pending = 0;
    if (no != NULL) {
        grid_add(g, GRID_PLAIN, n->node->name);
        grid_add(g, GRID_PLAIN, "-");
        grid_add(g, GRID_RED, no);
        return;
    }
    for (size_t i = 0; i < n->cards_len; i++) {
        bool yes = judge(n, &n->cards[i], w, r->arena, &why);
        grid_add(g, GRID_PLAIN, n->node->name);
        grid_addf(g, GRID_PLAIN, "GPU%d", (int)n->cards[i].card->index);
        grid_add(g, yes ? GRID_GREEN : GRID_RED, why);
        good += yes;
    }
    for (size_t i = 0; i < n->pods_len; i++)
        pending += n->pods[i].pending_cards > 0 || n->pods[i].pending_gib > 0;
    if (pending > 0 || good < whole_cards(w)) {
        grid_add(g, GRID_PLAIN, n->node->name);
        grid_add(g, GRID_PLAIN, "all");
        if (pending > 0)
            grid_addf(g, GRID_YELLOW, "%lld pods hold cards that only the kubelet knows",
                      (long long)pending);
        else
            grid_addf(g, GRID_RED, "%lld of %lld cards free", (long long)good,
                      (long long)whole_cards(w));
    }
}

static void tell_placed(const struct report *r, const struct pod *p, struct strbuf *out)
{
    const struct view_node *n = view_find(r->view, p->node);
    strbuf_addf(out, "%s is on node %s", grid_clean(p->key, r->arena),
                grid_clean(p->node, r->arena));
    for (size_t i = 0; n != NULL && i < n->pods_len; i++) {
        const struct view_pod *vp = &n->pods[i];
        if (vp->pod != p)
            continue;
        for (size_t k = 0; k < vp->grant.shares_len; k++)
            strbuf_addf(out, "%s %lld GiB of GPU%d", k > 0 ? "," : ":",
                        (long long)vp->grant.shares[k].gib, (int)vp->grant.shares[k].card);
        for (size_t k = 0; k < vp->grant.group_len; k++)
            strbuf_addf(out, "%s GPU%d", k > 0 ? "," : ":", (int)vp->grant.group[k]);
        if (grant_is_empty(&vp->grant))
            strbuf_adds(out, ", and no grant says which card it has");
    }
    strbuf_addc(out, '\n');
}

void report_why(const struct report *r, const struct pod *p, struct strbuf *out)
{
    struct want w;
    struct grid g;
    want_of(p, r->arena, &w);
    if (p->node != NULL) {
        tell_placed(r, p, out);
        return;
    }
    if (w.gib == 0 && whole_cards(&w) == 0) {
        strbuf_addf(out, "%s asks for no card\n", grid_clean(p->key, r->arena));
        return;
    }
    strbuf_addf(out, "%s waits", grid_clean(p->key, r->arena));
    if (p->scheduled.type != NULL && str_or_empty(p->scheduled.message)[0] != '\0')
        strbuf_addf(out, ": %s", grid_clean(p->scheduled.message, r->arena));
    strbuf_adds(out, "\n");
    print_want(&w, out);
    grid_init(&g, 3, r->arena);
    grid_add(&g, GRID_BOLD, "NODE");
    grid_add(&g, GRID_BOLD, "CARD");
    grid_add(&g, GRID_BOLD, "WHY");
    for (size_t i = 0; i < r->view->nodes_len; i++)
        if ((r->view->nodes[i].known || r->view->nodes[i].problem != NULL) &&
            (r->node == NULL || str_eq(r->node, r->view->nodes[i].node->name)))
            explain_node(r, &r->view->nodes[i], &w, &g);
    grid_print(&g, r->colours, out);
}
