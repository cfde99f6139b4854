// SPDX-License-Identifier: Apache-2.0
#include "lib/model/node.h"

#include "lib/base/str.h"
#include "lib/model/names.h"
#include "lib/model/pack.h"

void node_free(struct node *n)
{
    if (!n)
        return;
    struct arena arena = n->arena; /* the node lies in it */
    arena_deinit(&arena);
}

static void pack_node(struct pack *k, struct node *n)
{
    pack_text(k, &n->name);
    pack_text(k, &n->uid);
    pack_text(k, &n->resource_version);
    pack_labels(k, &n->labels);
    pack_labels(k, &n->annotations);
    pack_array(k, n->taints, n->taints_len);
    for (size_t i = 0; i < n->taints_len; i++) {
        pack_text(k, &n->taints[i].key);
        pack_text(k, &n->taints[i].value);
    }
    pack_resources(k, &n->capacity);
    pack_resources(k, &n->allocatable);
    pack_text(k, &n->internal_ip);
    pack_array(k, n->images, n->images_len);
}

struct node *node_pack(struct node *n)
{
    struct node counted = *n;
    struct pack count = {.bytes = sizeof *n};
    struct arena a;
    pack_node(&count, &counted);
    arena_init_exact(&a, count.bytes);
    struct node *copy = arena_new(&a, struct node, 1);
    *copy = *n;
    pack_node(&(struct pack){.to = &a}, copy);
    copy->arena = a;
    return copy;
}

bool node_taint_is_tolerated(const struct pod *p, const struct taint *t)
{
    for (size_t i = 0; i < p->tolerations_len; i++)
        if (toleration_covers(&p->tolerations[i], t->key, t->value, t->effect))
            return true;
    return false;
}

const struct taint *node_untolerated(const struct node *n, const struct pod *p, size_t *i)
{
    static const struct taint unschedulable = {"node.kubernetes.io/unschedulable", "",
                                               TAINT_NO_SCHEDULE};

    while (*i < n->taints_len) {
        const struct taint *t = &n->taints[(*i)++];
        if (t->effect != TAINT_PREFER_NO_SCHEDULE && !node_taint_is_tolerated(p, t))
            return t;
    }
    bool last = *i == n->taints_len;
    *i = n->taints_len + 1;
    return last && n->unschedulable && !node_taint_is_tolerated(p, &unschedulable) ? &unschedulable
                                                                                   : NULL;
}

const char *node_missing_feature(const struct node *n, const struct pod *p)
{
    unsigned missing = p->features & ~(unsigned)n->features;
    return missing ? pod_feature_name(missing & (0U - missing)) : NULL;
}

/* The 16 digits of "#0123456789abcdef", or false. */
static bool spelled_hash(const char *name, uint64_t *out)
{
    uint64_t hash = 0;
    size_t i = 0;
    if (name[0] != '#')
        return false;
    for (; i < 16; i++) {
        char c = name[1 + i];
        if (c >= '0' && c <= '9')
            hash = hash << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            hash = hash << 4 | (uint64_t)(c - 'a' + 10);
        else
            return false;
    }
    *out = hash;
    return name[17] == '\0';
}

uint64_t node_image_hash(const char *name)
{
    static const char latest[] = ":latest";
    uint64_t hash;
    if (spelled_hash(name, &hash))
        return hash;
    const char *colon = strrchr(name, ':'), *slash = strrchr(name, '/');
    if (colon && (!slash || colon > slash))
        return str_hash(name, strlen(name));
    AUTO_STRBUF full = {0};
    strbuf_adds(&full, name);
    strbuf_adds(&full, latest);
    return str_hash(strbuf_str(&full), full.len);
}

int64_t node_image_bytes(const struct node *n, uint64_t hash)
{
    size_t low = 0, high = n->images_len;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (n->images[mid].hash < hash)
            low = mid + 1;
        else
            high = mid;
    }
    return low < n->images_len && n->images[low].hash == hash ? n->images[low].bytes : 0;
}
