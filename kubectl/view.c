// SPDX-License-Identifier: Apache-2.0
#include "kubectl/view.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/names.h"

bool view_is_shared(const struct view_node *n)
{
    return n->known && gpu_mode_is_shared(n->inventory.mode);
}

int64_t view_total_gib(const struct view_node *n)
{
    int64_t sum = 0;
    for (size_t i = 0; i < n->cards_len; i++)
        sum = num_add_sat(sum, n->cards[i].total_gib);
    return sum;
}

int64_t view_used_gib(const struct view_node *n)
{
    int64_t sum = n->pending_gib;
    for (size_t i = 0; i < n->cards_len; i++)
        sum = num_add_sat(sum, n->cards[i].used_gib);
    return sum;
}

const struct view_node *view_find(const struct view *v, const char *name)
{
    for (size_t i = 0; i < v->nodes_len; i++)
        if (str_eq(v->nodes[i].node->name, name))
            return &v->nodes[i];
    return NULL;
}

/* ---- cards ---- */

static int by_index(const void *a, const void *b)
{
    const struct view_card *x = a, *y = b;
    return (x->card->index > y->card->index) - (x->card->index < y->card->index);
}

static void list_cards(struct view_node *n, struct arena *a)
{
    const struct gpu_inventory *inv = &n->inventory;
    n->cards = arena_new(a, struct view_card, inv->cards_len);
    n->cards_len = inv->cards_len;
    for (size_t i = 0; i < inv->cards_len; i++)
        n->cards[i] = (struct view_card){
            .card = &inv->cards[i], .at = i, .total_gib = gpu_card_gib(&inv->cards[i])};
    if (n->cards_len > 1)
        qsort(n->cards, n->cards_len, sizeof n->cards[0], by_index);
}

/* An older plugin publishes only the total memory and the number of cards. */
static bool guess_cards(struct view_node *n, struct arena *a)
{
    int64_t gib = resources_get(&n->node->allocatable, NAME_RES_GPU_MEM, NULL);
    int64_t count = resources_get(&n->node->allocatable, NAME_RES_GPU_COUNT, NULL);
    if (gib <= 0 || count < 1 || count > GPU_CARDS_MAX || gib > GRANT_GIB_MAX * GPU_CARDS_MAX)
        return false;
    n->inventory = (struct gpu_inventory){.mode = GPU_MODE_SHARE,
                                          .cards = arena_new(a, struct gpu_card, (size_t)count),
                                          .cards_len = (size_t)count};
    for (int64_t i = 0; i < count; i++)
        n->inventory.cards[i] = (struct gpu_card){.index = (int32_t)i,
                                                  .uuid = "",
                                                  .model = "",
                                                  .pci = "",
                                                  .numa = -1,
                                                  .mib = gib / count * 1024};
    return true;
}

static void read_inventory(struct view_node *n, struct arena *a)
{
    const char *text = labels_get(&n->node->annotations, NAME_ANN_GPU_INVENTORY);
    struct error err = ERROR_INIT;
    if (text != NULL && gpu_inventory_decode(text, strlen(text), a, &n->inventory, &err) == 0) {
        n->known = true;
    } else {
        n->inventory = (struct gpu_inventory){0};
        n->guessed = n->known = guess_cards(n, a);
        if (text != NULL)
            n->problem = arena_printf(a, "annotation " NAME_ANN_GPU_INVENTORY ": %s", err.text);
        else if (n->guessed)
            n->problem = "no annotation " NAME_ANN_GPU_INVENTORY;
    }
    if (n->known)
        list_cards(n, a);
}

/* ---- pods ---- */

struct view_card *view_card(const struct view_node *n, int32_t index)
{
    for (size_t i = 0; i < n->cards_len; i++)
        if (n->cards[i].card->index == index)
            return &n->cards[i];
    return NULL;
}

static void account(struct view_node *n, const struct grant *c)
{
    struct view_card *card;
    for (size_t i = 0; i < c->shares_len; i++)
        if ((card = view_card(n, c->shares[i].card)) != NULL) {
            card->used_gib = num_add_sat(card->used_gib, c->shares[i].gib);
            card->used_percent = num_add_sat(card->used_percent, c->shares[i].percent);
        }
    for (size_t i = 0; i < c->group_len; i++)
        if ((card = view_card(n, c->group[i])) != NULL)
            card->holders++;
}

static void add_pod(struct view_node *n, struct view_pod *vp, struct arena *a)
{
    const struct pod *p = vp->pod;
    struct error err = ERROR_INIT;
    vp->use_known = gpuuse_read(p, &vp->use, &err) == 1;
    if (grant_decode(p, a, &vp->grant, &err) < 0 ||
        (!grant_is_empty(&vp->grant) && grant_check(&vp->grant, p, &n->inventory, &err) < 0))
        vp->grant = (struct grant){0};
    account(n, &vp->grant);
    if (!grant_is_empty(&vp->grant))
        return;
    vp->pending_gib = vp->request.total[GPU_REQUEST_MEM];
    vp->pending_cards =
        vp->request.total[GPU_REQUEST_CARDS] + vp->request.total[GPU_REQUEST_NVIDIA];
    n->pending_gib = num_add_sat(n->pending_gib, vp->pending_gib);
}

static int by_node_and_key(const void *a, const void *b)
{
    const struct pod *x = ((const struct view_pod *)a)->pod, *y = ((const struct view_pod *)b)->pod;
    int c = strcmp(x->node, y->node);
    return c != 0 ? c : strcmp(x->key, y->key);
}

static int by_name(const void *a, const void *b)
{
    const struct view_node *x = a, *y = b;
    return strcmp(x->node->name, y->node->name);
}

/* Both are sorted by node name. */
static void share_out(struct view *v, struct view_pod *held, size_t len, struct arena *a)
{
    size_t i = 0;
    v->orphans = arena_new(a, const struct pod *, len);
    for (size_t k = 0; k < v->nodes_len; k++) {
        struct view_node *n = &v->nodes[k];
        while (i < len && strcmp(held[i].pod->node, n->node->name) < 0)
            v->orphans[v->orphans_len++] = held[i++].pod;
        for (n->pods = held + i; i < len && str_eq(held[i].pod->node, n->node->name); i++)
            add_pod(n, &held[i], a);
        n->pods_len = (size_t)(held + i - n->pods);
    }
    while (i < len)
        v->orphans[v->orphans_len++] = held[i++].pod;
}

void view_build(struct view *v, struct node *const *nodes, size_t nodes_len,
                struct pod *const *pods, size_t pods_len, struct arena *a)
{
    struct view_pod *held = arena_new(a, struct view_pod, pods_len);
    size_t len = 0;
    *v = (struct view){.nodes = arena_new(a, struct view_node, nodes_len), .nodes_len = nodes_len};
    for (size_t i = 0; i < nodes_len; i++) {
        v->nodes[i] = (struct view_node){.node = nodes[i]};
        read_inventory(&v->nodes[i], a);
    }
    for (size_t i = 0; i < pods_len; i++)
        if (pods[i]->node != NULL && !pod_is_finished(pods[i])) {
            held[len].pod = pods[i];
            gpu_request_read(pods[i], a, &held[len].request, NULL);
            len += held[len].request.any || held[len].request.total[GPU_REQUEST_NVIDIA] > 0;
        }
    if (nodes_len > 1)
        qsort(v->nodes, nodes_len, sizeof v->nodes[0], by_name);
    if (len > 1)
        qsort(held, len, sizeof held[0], by_node_and_key);
    share_out(v, held, len, a);
}
