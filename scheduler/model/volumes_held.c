// SPDX-License-Identifier: Apache-2.0
#include "scheduler/model/volumes_held.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "scheduler/model/model.h"
#include "scheduler/model/api_objects.h"

struct users {
    char *claim;
    size_t pods;
};

void volumes_held_init(struct volumes_held *h)
{
    *h = (struct volumes_held){0};
    map_init(&h->by_claim);
    map_init(&h->by_volume);
    map_init(&h->users);
}

static void promise_free(struct volumes_promise *p)
{
    free(p->claim);
    free(p->node);
    free(p->volume);
    free(p);
}

static void users_free(struct users *u)
{
    free(u->claim);
    free(u);
}

void volumes_held_deinit(struct volumes_held *h)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&h->by_claim, &i, &key, &value);) {
        (void)map_remove(&h->by_claim, key);
        promise_free(value);
    }
    for (size_t i = 0; map_next(&h->users, &i, &key, &value);) {
        (void)map_remove(&h->users, key);
        users_free(value);
    }
    map_deinit(&h->by_claim);
    map_deinit(&h->by_volume);
    map_deinit(&h->users);
}

/* Only ReadWriteOncePod claims need their users counted. An unknown claim may turn out to be
 * one. */
static bool matters(const struct cluster *c, const char *claim)
{
    const struct pvc *p = (const void *)api_objects_find(c->objects, API_OBJECTS_CLAIMS, claim);
    return p == NULL || (p->access_modes & ACCESS_READ_WRITE_ONCE_POD) != 0;
}

static void count(struct cluster *c, const char *claim, bool more)
{
    struct volumes_held *h = c->volumes;
    struct users *u = map_get(&h->users, claim);
    if (u == NULL) {
        assert(more);
        u = mem_new(struct users, 1);
        u->claim = mem_strdup(claim);
        map_put(&h->users, u->claim, u);
    }
    u->pods = more ? u->pods + 1 : u->pods - 1;
    if (u->pods == 0) {
        (void)map_remove(&h->users, u->claim);
        users_free(u);
    }
    h->version += matters(c, claim);
}

/* Only claims that the pod names; an ephemeral claim has no other user. */
static void count_all(struct cluster *c, const struct pod *p, bool more)
{
    AUTO_STRBUF key = {0};
    for (size_t i = 0; i < p->volumes_len; i++) {
        if (p->volumes[i].kind != POD_VOLUME_CLAIM)
            continue;
        strbuf_reset(&key);
        strbuf_addf(&key, "%s/%s", p->ns, p->volumes[i].claim);
        count(c, strbuf_str(&key), more);
    }
}

void volumes_held_use(struct cluster *c, const struct pod *p)
{
    count_all(c, p, true);
}

void volumes_held_leave(struct cluster *c, const struct pod *p)
{
    count_all(c, p, false);
}

bool volumes_held_is_used(const struct volumes_held *h, const char *claim)
{
    return map_get(&h->users, claim) != NULL;
}

static struct volumes_promise *give(struct volumes_held *h, const char *claim, const char *node,
                                    const char *volume)
{
    struct volumes_promise *p = map_get(&h->by_claim, claim);
    if (p == NULL) {
        p = mem_new(struct volumes_promise, 1);
        p->claim = mem_strdup(claim);
        p->node = mem_strdup(node);
        p->volume = mem_strdup(volume);
        map_put(&h->by_claim, p->claim, p);
        if (p->volume != NULL)
            map_put(&h->by_volume, p->volume, p);
    }
    /* A promise to another pod for the same claim applies here too; the filter has checked that. */
    assert(str_eq(p->volume, volume));
    p->pods++;
    return p;
}

static void take(struct volumes_held *h, struct volumes_promise *p)
{
    if (--p->pods > 0)
        return;
    if (p->volume != NULL)
        (void)map_remove(&h->by_volume, p->volume);
    (void)map_remove(&h->by_claim, p->claim);
    promise_free(p);
}

void volumes_held_give(struct cluster *c, struct cluster_pod *cp, const struct cluster_node *on,
                       const struct volumes_choice *choices, size_t len)
{
    assert(cp->volumes == NULL);
    cp->volumes = mem_array_(1, sizeof *cp->volumes + len * sizeof(struct volumes_promise *));
    cp->volumes->len = len;
    for (size_t i = 0; i < len; i++)
        cp->volumes->items[i] = give(c->volumes, choices[i].claim, on->name, choices[i].volume);
    c->volumes->version++;
}

void volumes_held_withdraw(struct cluster *c, struct cluster_pod *cp)
{
    if (cp->volumes == NULL)
        return;
    for (size_t i = 0; i < cp->volumes->len; i++)
        take(c->volumes, cp->volumes->items[i]);
    free(cp->volumes);
    cp->volumes = NULL;
    c->volumes->version++;
}

uint64_t volumes_held_version(const struct cluster *c)
{
    const uint64_t *g = c->objects->generation;
    return c->volumes->version + g[API_OBJECTS_CLAIMS] + g[API_OBJECTS_VOLUMES] +
           g[API_OBJECTS_STORAGE_CLASSES] + g[API_OBJECTS_CSI_NODES] + g[API_OBJECTS_CSI_DRIVERS] +
           g[API_OBJECTS_CSI_CAPACITIES] + g[API_OBJECTS_VOLUME_ATTACHMENTS];
}

static uint64_t mix(uint64_t h, const char *text)
{
    return (h ^ str_hash(str_or_empty(text), strlen(str_or_empty(text)))) * 1099511628211u;
}

uint64_t volumes_held_digest(const struct volumes_held *h)
{
    const char *key;
    void *value;
    uint64_t sum = 0;
    for (size_t i = 0; map_next(&h->by_claim, &i, &key, &value);) {
        const struct volumes_promise *p = value;
        sum += mix(mix(mix(p->pods, p->claim), p->node), p->volume);
    }
    for (size_t i = 0; map_next(&h->users, &i, &key, &value);)
        sum += mix(((const struct users *)value)->pods, key);
    return sum;
}
