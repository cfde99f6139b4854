// SPDX-License-Identifier: Apache-2.0
/*
 * The reflector's thread writes, the server's threads read: one read-write lock, held for a lookup and the
 * copy of a few labels. A namespace is small and changes rarely; nothing here is worth being clever.
 */
#include "webhook/namespaces.h"

#include <pthread.h>
#include <stdlib.h>

#include "lib/base/json.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/kube/api.h"
#include "lib/kube/decode.h"
#include "lib/kube/reflector.h"

struct ns {
    struct arena arena; /* owns everything, and the struct itself */
    const char *name;
    struct labels labels;
};

struct namespaces {
    pthread_rwlock_t lock;
    struct map by_name; /* name → struct ns */
    struct reflector *reflector;
    void (*listed)(void *arg);
    void *arg;
};

static void free_ns(void *object)
{
    struct ns *n = object;
    if (!n)
        return;
    struct arena a = n->arena; /* the struct lies inside */
    arena_deinit(&a);
}

static int decode_ns(json *j, void **out, struct error *err)
{
    struct arena a;
    arena_init(&a, 0);
    struct ns *n = arena_new(&a, struct ns, 1);
    struct object_meta meta;
    decode_meta(j, &meta);
    n->name = arena_strdup(&a, meta.name);
    if (labels_decode(json_get(json_get(j, "metadata"), "labels"), &a, &n->labels, err) < 0) {
        int rc = error_wrap(err, "namespace %s: metadata.labels", n->name);
        arena_deinit(&a);
        return rc;
    }
    n->arena = a;
    *out = n;
    return 0;
}

static void clear(struct namespaces *n)
{
    const char *key = NULL;
    void *value = NULL;
    for (size_t i = 0; map_next(&n->by_name, &i, &key, &value);) {
        map_remove(&n->by_name, key);
        free_ns(value);
    }
}

/* Takes every object out of the letter. */
static void apply(struct namespaces *n, struct reflector_letter *letter)
{
    if (letter->event == REFLECTOR_RESET)
        clear(n);
    for (size_t i = 0; i < letter->len; i++) {
        struct ns *ns = letter->objects[i];
        if (letter->event == REFLECTOR_DELETE) {
            free_ns(map_remove(&n->by_name, ns->name));
            continue; /* the letter frees its copy */
        }
        letter->objects[i] = NULL;
        free_ns(map_put(&n->by_name, ns->name, ns));
    }
}

static bool deliver(void *arg, struct reflector_letter *letter)
{
    struct namespaces *n = arg;
    bool full = letter->event == REFLECTOR_RESET;
    pthread_rwlock_wrlock(&n->lock);
    apply(n, letter);
    pthread_rwlock_unlock(&n->lock);
    reflector_letter_free(letter);
    if (full && n->listed)
        n->listed(n->arg);
    return true;
}

int namespaces_start(struct namespaces **out, struct kube_config *kube,
                     const struct kube_options *o, void (*listed)(void *arg), void *arg,
                     struct error *err)
{
    struct namespaces *n = mem_new(struct namespaces, 1);
    pthread_rwlock_init(&n->lock, NULL);
    map_init(&n->by_name);
    n->listed = listed;
    n->arg = arg;
    struct reflector_config config = {.kind = &kube_namespaces,
                                      .type = {.decode = decode_ns, .free = free_ns},
                                      .deliver = deliver,
                                      .arg = n};
    if (reflector_start(&n->reflector, kube, o, &config, err) < 0) {
        namespaces_stop(n);
        return error_wrap(err, "watch namespaces");
    }
    *out = n;
    return 0;
}

void namespaces_stop(struct namespaces *n)
{
    if (!n)
        return;
    if (n->reflector)
        reflector_stop(n->reflector);
    clear(n);
    map_deinit(&n->by_name);
    pthread_rwlock_destroy(&n->lock);
    free(n);
}

bool namespaces_labels(void *arg, const char *ns, struct arena *a, struct labels *out)
{
    struct namespaces *n = arg;
    pthread_rwlock_rdlock(&n->lock);
    const struct ns *found = map_get(&n->by_name, ns);
    if (found) {
        out->len = found->labels.len;
        out->items = arena_new(a, struct label, out->len);
        for (size_t i = 0; i < out->len; i++)
            out->items[i] = (struct label){.key = arena_strdup(a, found->labels.items[i].key),
                                           .value = arena_strdup(a, found->labels.items[i].value)};
    }
    pthread_rwlock_unlock(&n->lock);
    return found != NULL;
}
