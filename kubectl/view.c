// SPDX-License-Identifier: Apache-2.0
#include "kubectl/view.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/names.h"

int64_t view_asks(const struct pod *p, const char *resource)
{
    return resources_get(&p->request, resource, NULL);
}

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

static struct view_card *find_card(struct view_node *n, int32_t index)
{
    for (size_t i = 0; i < n->cards_len; i++)
        if (n->cards[i].card->index == index)
            return &n->cards[i];
    return NULL;
}

static bool asks_for_cards(const struct pod *p)
{
    return view_asks(p, NAME_RES_GPU_MEM) > 0 || view_asks(p, NAME_RES_GPU_CORE) > 0 ||
           view_asks(p, NAME_RES_GPU) > 0 || view_asks(p, NAME_RES_NVIDIA_GPU) > 0;
}

static void account(struct view_node *n, const struct grant *c)
{
    struct view_card *card;
    for (size_t i = 0; i < c->shares_len; i++)
        if ((card = find_card(n, c->shares[i].card)) != NULL) {
            card->used_gib = num_add_sat(card->used_gib, c->shares[i].gib);
            card->used_percent = num_add_sat(card->used_percent, c->shares[i].percent);
        }
    for (size_t i = 0; i < c->group_len; i++)
        if ((card = find_card(n, c->group[i])) != NULL)
            card->holders++;
}

static void add_pod(struct view_node *n, const struct pod *p, struct arena *a)
{
    struct view_pod *vp = &n->pods[n->pods_len++];
    struct error err = ERROR_INIT;
    *vp = (struct view_pod){.pod = p};
    vp->use_known = gpuuse_read(p, &vp->use, &err) == 1;
    if (grant_decode(p, a, &vp->grant, &err) < 0 ||
        (!grant_is_empty(&vp->grant) && grant_check(&vp->grant, p, &n->inventory, &err) < 0))
        vp->grant = (struct grant){0};
    account(n, &vp->grant);
    if (!grant_is_empty(&vp->grant))
        return;
    vp->pending_gib = view_asks(p, NAME_RES_GPU_MEM);
    vp->pending_cards = num_add_sat(view_asks(p, NAME_RES_GPU), view_asks(p, NAME_RES_NVIDIA_GPU));
    n->pending_gib = num_add_sat(n->pending_gib, vp->pending_gib);
}

static int by_node_and_key(const void *a, const void *b)
{
    const struct pod *x = *(struct pod *const *)a, *y = *(struct pod *const *)b;
    int c = strcmp(x->node, y->node);
    return c != 0 ? c : strcmp(x->key, y->key);
}

static int by_name(const void *a, const void *b)
{
    const struct view_node *x = a, *y = b;
    return strcmp(x->node->name, y->node->name);
}

/* Both are sorted by node name. */
static void share_out(struct view *v, struct pod **held, size_t len, struct arena *a)
{
    size_t i = 0;
    v->orphans = arena_new(a, struct pod *, len);
    for (size_t k = 0; k < v->nodes_len; k++) {
        struct view_node *n = &v->nodes[k];
        while (i < len && strcmp(held[i]->node, n->node->name) < 0)
            v->orphans[v->orphans_len++] = held[i++];
        size_t end = i;
        while (end < len && str_eq(held[end]->node, n->node->name))
            end++;
        n->pods = arena_new(a, struct view_pod, end - i);
        for (; i < end; i++)
            add_pod(n, held[i], a);
    }
    while (i < len)
        v->orphans[v->orphans_len++] = held[i++];
}

void view_build(struct view *v, struct node *const *nodes, size_t nodes_len,
                struct pod *const *pods, size_t pods_len, struct arena *a)
{
    struct pod **held = arena_new(a, struct pod *, pods_len);
    size_t len = 0;
    *v = (struct view){.nodes = arena_new(a, struct view_node, nodes_len), .nodes_len = nodes_len};
    for (size_t i = 0; i < nodes_len; i++) {
        v->nodes[i] = (struct view_node){.node = nodes[i]};
        read_inventory(&v->nodes[i], a);
    }
    for (size_t i = 0; i < pods_len; i++)
        if (pods[i]->node != NULL && !pod_is_finished(pods[i]) && asks_for_cards(pods[i]))
            held[len++] = pods[i];
    if (nodes_len > 1)
        qsort(v->nodes, nodes_len, sizeof v->nodes[0], by_name);
    if (len > 1)
        qsort(held, len, sizeof held[0], by_node_and_key);
    share_out(v, held, len, a);
}
