// SPDX-License-Identifier: Apache-2.0
/*
 * Any lines as the annotations of a pod: "key=value", where a key of one letter means one of the
 * result keys. What is decoded is bounded and sorted, and what is encoded of it is decoded as the
 * same grant.
 */
#include "lib/model/grant.h"
#include "lib/model/names.h"
#include "test/fuzz/fuzz_kit.h"

enum { ANNOTATIONS_MAX = 32 };

static int order(const void *a, const void *b)
{
    return strcmp(((const struct label *)a)->key, ((const struct label *)b)->key);
}

static struct labels annotations_of(const char *text, struct arena *a)
{
    struct labels l = {.items = arena_new(a, struct label, ANNOTATIONS_MAX)};
    size_t keys = 0, kept = 0;

    while (grant_result_keys[keys])
        keys++;
    for (const char *s = text; *s && l.len < ANNOTATIONS_MAX;) {
        const char *end = strchrnul(s, '\n'), *eq = memchr(s, '=', (size_t)(end - s));
        if (eq == s + 1 && *s >= 'a' && (size_t)(*s - 'a') < keys)
            l.items[l.len++] = (struct label){grant_result_keys[*s - 'a'],
                                              arena_strndup(a, eq + 1, (size_t)(end - eq - 1))};
        else if (eq)
            l.items[l.len++] = (struct label){arena_strndup(a, s, (size_t)(eq - s)),
                                              arena_strndup(a, eq + 1, (size_t)(end - eq - 1))};
        s = *end ? end + 1 : end;
    }
    qsort(l.items, l.len, sizeof l.items[0], order);
    for (size_t i = 0; i < l.len; i++)
        if (kept == 0 || strcmp(l.items[kept - 1].key, l.items[i].key) != 0)
            l.items[kept++] = l.items[i];
    l.len = kept;
    return l;
}

static bool same(const struct grant *a, const struct grant *b)
{
    if (a->shares_len != b->shares_len || a->group_len != b->group_len)
        return false;
    for (size_t i = 0; i < a->shares_len; i++)
        if (a->shares[i].container != b->shares[i].container ||
            a->shares[i].card != b->shares[i].card || a->shares[i].gib != b->shares[i].gib ||
            a->shares[i].percent != b->shares[i].percent)
            return false;
    return a->group_len == 0 || memcmp(a->group, b->group, a->group_len * sizeof a->group[0]) == 0;
}

static void check(const struct grant *c, struct pod *p, struct arena *a)
{
    struct gpu_card cards[] = {{.index = 0, .mib = 16160}, {.index = 1, .mib = 16160}};
    struct gpu_inventory inv = {.cards = cards, .cards_len = 2};
    struct labels out;
    struct grant again;

    for (size_t i = 0; i < c->shares_len; i++) {
        const struct grant_share *s = &c->shares[i];
        must(s->container < p->containers_len + p->init_containers_len);
        must(s->card >= 0 && s->card < GPU_CARDS_MAX);
        must(s->gib >= 0 && s->percent >= 0 && s->gib + s->percent > 0);
        must(i == 0 || s[-1].container < s->container ||
             (s[-1].container == s->container && s[-1].card < s->card));
    }
    must(c->group_len <= GPU_CARDS_MAX && c->visible_len <= GPU_CARDS_MAX);
    if (grant_check(c, p, &inv, NULL) == 0)
        must(grant_total_gib(c) == 5);
    grant_encode(c, p, 15, a, &out);
    p->annotations = out;
    must(grant_decode(p, a, &again, NULL) == 0);
    must(same(c, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct resource_extra mem[] = {{NAME_RES_GPU_MEM, 3}}, init_mem[] = {{NAME_RES_GPU_MEM, 5}};
    struct container containers[2] = {{.name = "a"}, {.name = "b"}}, init[1] = {{.name = "i"}};
    struct pod p = {.containers = containers,
                    .containers_len = 2,
                    .init_containers = init,
                    .init_containers_len = 1};
    struct error err = ERROR_INIT;
    struct arena arena;
    struct grant c;
    char *text = text_of(data, size);

    containers[0].limits = containers[0].requests =
        (struct resources){.extra = mem, .extra_len = 1};
    init[0].limits = init[0].requests = (struct resources){.extra = init_mem, .extra_len = 1};
    arena_init(&arena, 0);
    p.annotations = annotations_of(text, &arena);
    if (grant_decode(&p, &arena, &c, &err) == 0)
        check(&c, &p, &arena);
    else
        must(err.code == ERROR_INVALID && grant_is_empty(&c));
    arena_deinit(&arena);
    free(text);
    return 0;
}
