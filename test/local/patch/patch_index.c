// SPDX-License-Identifier: Apache-2.0
#include "test/local/patch/patch_index.h"

#include <string.h>

/* The text of an element's key; NULL: it has none. A second key that is absent counts as its usual
 * value. */
static const char *key_text(struct patch_index *x, struct jsonnode *element)
{
    const struct patch_type *type = x->type;
    struct jsonnode *key = type->list == PATCH_MAP ? jsonnode_get(element, type->keys[0]) : element;
    if (!key)
        return NULL;
    strbuf_reset(&x->text);
    jsonnode_print(key, &x->text);
    if (x->style == PATCH_STRATEGIC || type->list != PATCH_MAP || !type->keys[1])
        return strbuf_str(&x->text);
    struct jsonnode *second = jsonnode_get(element, type->keys[1]);
    strbuf_addc(&x->text, ',');
    if (second)
        jsonnode_print(second, &x->text);
    else if (type->missing)
        strbuf_addf(&x->text, "\"%s\"", type->missing);
    return strbuf_str(&x->text);
}

static size_t place_of(const struct patch_index *x, const char *text)
{
    uintptr_t value = text ? (uintptr_t)map_get(&x->first, text) : 0;
    return value ? (size_t)value - 1 : SIZE_MAX;
}

void patch_index_add(struct patch_index *x, struct jsonnode *element)
{
    const char *key = key_text(x, element);
    size_t place = x->elements.len;
    vec_push(&x->elements, element);
    vec_push(&x->next, SIZE_MAX);
    if (!key)
        return;
    size_t at = place_of(x, key);
    if (at == SIZE_MAX) {
        (void)map_put(&x->first, arena_strdup(&x->arena, key), (void *)(uintptr_t)(place + 1));
        return;
    }
    x->next.items[place] = x->next.items[at];
    x->next.items[at] = place;
}

void patch_index_init(struct patch_index *x, const struct patch_type *type, enum patch_style style,
                      struct jsonnode *list)
{
    *x = (struct patch_index){.type = type, .style = style};
    map_init(&x->first);
    arena_init(&x->arena, 0);
    for (struct jsonnode_iter it = jsonnode_iter(list); jsonnode_next(&it);)
        patch_index_add(x, it.value);
}

void patch_index_deinit(struct patch_index *x)
{
    vec_deinit(&x->elements);
    vec_deinit(&x->next);
    map_deinit(&x->first);
    arena_deinit(&x->arena);
    strbuf_deinit(&x->text);
}

struct jsonnode *patch_index_get(struct patch_index *x, struct jsonnode *like, size_t *place)
{
    size_t at = place_of(x, key_text(x, like));
    if (place)
        *place = at;
    return at == SIZE_MAX ? NULL : x->elements.items[at];
}

void patch_index_drop(struct patch_index *x, struct jsonnode *like)
{
    const char *key = key_text(x, like);
    for (size_t i = place_of(x, key); i != SIZE_MAX; i = x->next.items[i])
        x->elements.items[i] = NULL;
    if (key)
        (void)map_remove(&x->first, key);
}

void patch_index_fill(struct jsonnode *list, const struct patch_nodes *elements)
{
    while (jsonnode_len(list) > 0)
        (void)jsonnode_remove_at(list, 0);
    for (size_t i = 0; i < elements->len; i++)
        if (elements->items[i])
            jsonnode_append(list, elements->items[i]);
}
