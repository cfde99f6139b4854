// SPDX-License-Identifier: Apache-2.0
#include "scheduler/model/virtuals.h"

#include <string.h>

#include "lib/base/str.h"

void virtuals_init(struct virtuals *v)
{
    *v = (struct virtuals){0};
    arena_init(&v->arena, 0);
    struct error err = ERROR_INIT;
    (void)virtuals_set(v, VIRTUALS_LABELS, VIRTUALS_TAINTS, &err); /* the defaults are valid */
}

void virtuals_deinit(struct virtuals *v)
{
    arena_deinit(&v->arena);
}

/* One "key=value". An empty value is valid: a taint may have none. */
static int read_pair(struct virtuals *v, const char *text, size_t n, struct label *out,
                     struct error *err)
{
    static const char effect[] = ":NoSchedule";
    const size_t tail = sizeof effect - 1;
    if (n > tail && memcmp(text + n - tail, effect, tail) == 0)
        n -= tail;
    char *pair = arena_strndup(&v->arena, text, n);
    char *is = strchr(pair, '=');
    *out = (struct label){.key = pair, .value = ""};
    if (is != NULL) {
        *is = '\0';
        out->value = is + 1;
    }
    if (selector_key_is_legal(pair) && selector_value_is_legal(out->value))
        return 0;
    return error_set(err, ERROR_INVALID, "not key=value of a label or taint: '%.*s'",
                     n > 200 ? 200 : (int)n, text);
}

static int read_list(struct virtuals *v, const char *text, struct labels *out, struct error *err)
{
    struct labels list = {.items = arena_new(&v->arena, struct label, VIRTUALS_MAX)};
    for (const char *at = text; at != NULL;) {
        const char *comma = strchr(at, ',');
        size_t n = comma != NULL ? (size_t)(comma - at) : strlen(at);
        if (list.len == VIRTUALS_MAX)
            return error_set(err, ERROR_INVALID, "more than %d pairs", VIRTUALS_MAX);
        if (read_pair(v, at, n, &list.items[list.len++], err) < 0)
            return -1;
        at = comma != NULL ? comma + 1 : NULL;
    }
    *out = list;
    return 0;
}

int virtuals_set(struct virtuals *v, const char *labels, const char *taints, struct error *err)
{
    struct labels known = v->labels, covered = v->taints;
    bool with_labels = *str_or_empty(labels) != '\0', with_taints = *str_or_empty(taints) != '\0';
    if (with_labels && read_list(v, labels, &known, err) < 0)
        return error_wrap(err, "virtual-node-labels");
    if (with_taints && read_list(v, taints, &covered, err) < 0)
        return error_wrap(err, "virtual-node-taints");
    v->labels = known;
    v->taints = covered;
    if (with_labels)
        v->labels_text = arena_strdup(&v->arena, labels);
    if (with_taints)
        v->taints_text = arena_strdup(&v->arena, taints);
    return 0;
}

bool virtuals_are_default(const struct virtuals *v)
{
    return str_eq(v->labels_text, VIRTUALS_LABELS) && str_eq(v->taints_text, VIRTUALS_TAINTS);
}

bool virtuals_have(const struct virtuals *v, const struct node *n)
{
    for (size_t i = 0; i < v->labels.len; i++)
        if (str_eq(labels_get(&n->labels, v->labels.items[i].key), v->labels.items[i].value))
            return true;
    return false;
}

bool virtuals_know(const struct virtuals *v, const char *key, const char *value)
{
    for (size_t i = 0; i < v->labels.len; i++)
        if (str_eq(key, v->labels.items[i].key) && str_eq(value, v->labels.items[i].value))
            return true;
    return false;
}

bool virtuals_cover(const struct virtuals *v, const struct taint *t)
{
    for (size_t i = 0; i < v->taints.len && t->effect == TAINT_NO_SCHEDULE; i++)
        if (str_eq(t->key, v->taints.items[i].key) &&
            str_eq(str_or_empty(t->value), v->taints.items[i].value))
            return true;
    return false;
}
