// SPDX-License-Identifier: Apache-2.0
#include "lib/model/pack.h"

#include <stdint.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/model/names.h"

void *pack_bytes_(struct pack *k, const void *from, size_t bytes)
{
    if (bytes == 0)
        return NULL;
    k->bytes += bytes;
    if (!k->to)
        return (void *)(uintptr_t)from;
    return memcpy(arena_new(k->to, uint64_t, bytes / sizeof(uint64_t)), from, bytes);
}

void pack_text(struct pack *k, const char **text)
{
    if (!*text)
        return;
    size_t n = strlen(*text);
    if (n == 0) {
        *text = "";
        return;
    }
    k->bytes += n + 1;
    if (k->to)
        *text = arena_strndup(k->to, *text, n);
}

void pack_word(struct pack *k, const char **text, const char *const *words)
{
    for (size_t i = 0; *text && words[i]; i++)
        if (strcmp(*text, words[i]) == 0) {
            *text = words[i];
            return;
        }
    pack_text(k, text);
}

void pack_texts(struct pack *k, const char ***texts, size_t len)
{
    pack_array(k, *texts, len);
    for (size_t i = 0; *texts && i < len; i++)
        pack_text(k, &(*texts)[i]);
}

void pack_labels(struct pack *k, struct labels *l)
{
    pack_array(k, l->items, l->len);
    for (size_t i = 0; l->items && i < l->len; i++) {
        pack_text(k, &l->items[i].key);
        pack_text(k, &l->items[i].value);
    }
}

void pack_resources(struct pack *k, struct resources *r)
{
    static const char *const words[] = {NAME_RES_ALL_GPU, NULL};
    pack_array(k, r->extra, r->extra_len);
    r->extra_free = 0;
    for (uint32_t i = 0; i < r->extra_len; i++)
        pack_word(k, &r->extra[i].name, words);
}

void pack_selector(struct pack *k, struct selector *s)
{
    pack_array(k, s->reqs, s->len);
    for (size_t i = 0; i < s->len; i++) {
        pack_text(k, &s->reqs[i].key);
        pack_texts(k, &s->reqs[i].values, s->reqs[i].values_len);
    }
}

void pack_node_term(struct pack *k, struct node_term *t)
{
    pack_selector(k, &t->labels);
    pack_selector(k, &t->fields);
    pack_text(k, &t->invalid);
}

void pack_node_selector(struct pack *k, struct node_selector *s)
{
    pack_array(k, s->terms, s->len);
    for (size_t i = 0; i < s->len; i++)
        pack_node_term(k, &s->terms[i]);
}
