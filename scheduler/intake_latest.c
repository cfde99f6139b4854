// SPDX-License-Identifier: Apache-2.0
#include "scheduler/intake_latest.h"

#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"

/* Versions that wait, of the object that was posted last under that key. */
struct version {
    char *key, *uid;
    size_t waiting;
};

void intake_latest_init(struct intake_latest *t)
{
    (void)pthread_mutex_init(&t->lock, NULL);
    map_init(&t->waiting);
}

static void version_free(struct version *v)
{
    free(v->key);
    free(v->uid);
    free(v);
}

void intake_latest_deinit(struct intake_latest *t)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&t->waiting, &i, &key, &value);)
        version_free(value);
    map_deinit(&t->waiting);
    (void)pthread_mutex_destroy(&t->lock);
}

static void print_key(struct strbuf *out, int kind, const char *key)
{
    strbuf_addf(out, "%d %s", kind, key);
}

void intake_latest_posted(struct intake_latest *t, int kind, const char *key, const char *uid)
{
    AUTO_STRBUF name = {0};
    print_key(&name, kind, key);
    (void)pthread_mutex_lock(&t->lock);
    struct version *v = map_get(&t->waiting, strbuf_str(&name));
    if (v == NULL) {
        v = mem_new(struct version, 1);
        v->key = mem_strdup(strbuf_str(&name));
        (void)map_put(&t->waiting, v->key, v);
    }
    if (v->waiting == 0 || !str_eq(v->uid, str_or_empty(uid))) {
        free(v->uid);
        v->uid = mem_strdup(str_or_empty(uid));
        v->waiting = 0; /* those of another object are applied */
    }
    v->waiting++;
    (void)pthread_mutex_unlock(&t->lock);
}

bool intake_latest_arrived(struct intake_latest *t, int kind, const char *key, const char *uid)
{
    AUTO_STRBUF name = {0};
    bool newest = true;
    print_key(&name, kind, key);
    (void)pthread_mutex_lock(&t->lock);
    struct version *v = map_get(&t->waiting, strbuf_str(&name));
    if (v != NULL && str_eq(v->uid, str_or_empty(uid))) {
        newest = --v->waiting == 0;
        if (newest) {
            (void)map_remove(&t->waiting, v->key);
            version_free(v);
        }
    }
    (void)pthread_mutex_unlock(&t->lock);
    return newest;
}
