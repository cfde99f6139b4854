// SPDX-License-Identifier: Apache-2.0
#include "scheduler/binding/binder_gone.h"

#include <stdlib.h>

#include "lib/base/mem.h"

struct gone {
    char *name;
    int64_t left_ms;
};

void binder_gone_init(struct binder_gone *g)
{
    pthread_mutex_init(&g->lock, NULL);
    map_init(&g->nodes);
    atomic_init(&g->any, false);
}

/* Under the lock. */
static void clear(struct binder_gone *g)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&g->nodes, &i, &key, &value);) {
        struct gone *e = value;
        (void)map_remove(&g->nodes, key);
        free(e->name);
        free(e);
    }
}

void binder_gone_deinit(struct binder_gone *g)
{
    clear(g);
    map_deinit(&g->nodes);
    pthread_mutex_destroy(&g->lock);
}

void binder_gone_note(struct binder_gone *g, const char *node, int64_t now_ms)
{
    pthread_mutex_lock(&g->lock);
    struct gone *e = map_get(&g->nodes, node);
    if (e == NULL) {
        e = mem_new(struct gone, 1);
        e->name = mem_strdup(node);
        (void)map_put(&g->nodes, e->name, e);
    }
    e->left_ms = now_ms;
    atomic_store(&g->any, true);
    pthread_mutex_unlock(&g->lock);
}

bool binder_gone_since(struct binder_gone *g, const char *node, int64_t since_ms)
{
    if (!atomic_load(&g->any))
        return false;
    pthread_mutex_lock(&g->lock);
    const struct gone *e = map_get(&g->nodes, node);
    bool left = e != NULL && e->left_ms >= since_ms;
    pthread_mutex_unlock(&g->lock);
    return left;
}

void binder_gone_forget(struct binder_gone *g)
{
    if (!atomic_load(&g->any))
        return;
    pthread_mutex_lock(&g->lock);
    clear(g);
    atomic_store(&g->any, false);
    pthread_mutex_unlock(&g->lock);
}
