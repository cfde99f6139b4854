// SPDX-License-Identifier: Apache-2.0
/*
 * Anything that parses, as a pod, a node, a PodGroup, and once more as each item of a list. What decodes is used: every string is read, the scheduler's
 * questions are asked.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/kube/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile size_t sink;

static void read_all(const char *s)
{
    if (s)
        sink += strlen(s);
}

static void read_labels(const struct labels *l)
{
    for (size_t i = 0; i < l->len; i++) {
        read_all(l->items[i].key);
        read_all(l->items[i].value);
        if (i > 0 && strcmp(l->items[i - 1].key, l->items[i].key) >= 0)
            abort();
    }
}

static void read_resources(const struct resources *r)
{
    struct strbuf text = {0};
    resources_print(r, &text);
    sink += text.len;
    strbuf_deinit(&text);
    if (r->cpu_milli < 0 || r->memory_bytes < 0 || r->ephemeral_bytes < 0 ||
        r->extra_len > RESOURCES_EXTRA_MAX)
        abort();
}

static void read_containers(const struct container *c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        read_all(c[i].name);
        read_all(c[i].image);
        read_all(c[i].container_id);
        read_resources(&c[i].requests);
        read_resources(&c[i].limits);
        for (size_t k = 0; k < c[i].ports_len; k++)
            read_all(c[i].ports[k].protocol);
    }
}

static void try_pod(json *j, const struct node *n)
{
    struct error err = ERROR_INIT;
    struct pod *p = NULL;
    if (decode_pod(j, &p, &err) < 0) {
        struct error why = err;
        if (!err.text[0] || p)
            abort();
        if (decode_pod_remains(j, &why, &p, &err) < 0)
            return;
        if (!p->unreadable || !p->key[0])
            abort();
    }
    read_all(p->key);
    read_all(p->uid);
    read_all(p->scheduler);
    read_all(p->node);
    read_all(p->owner_name);
    read_all(p->scheduled.message);
    read_labels(&p->labels);
    read_labels(&p->annotations);
    read_labels(&p->node_selector);
    read_containers(p->containers, p->containers_len);
    read_containers(p->init_containers, p->init_containers_len);
    read_resources(&p->request);
    struct gang_ref gang;
    sink += gang_of_pod(p, &gang, NULL) == 0 && gang.form != GANG_NONE;
    if (n)
        sink += node_untolerated(n, p) != NULL;
    if (p->has_required_affinity)
        sink += node_selector_matches(&p->required_affinity, &p->labels, "n1");
    pod_free(p);
}

static void try_all(json *j)
{
    struct error err = ERROR_INIT;
    struct node *n = NULL;
    struct pod_group *g = NULL;
    if (decode_node(j, &n, &err) == 0) {
        read_all(n->name);
        read_all(n->internal_ip);
        read_labels(&n->labels);
        read_resources(&n->capacity);
        read_resources(&n->allocatable);
    }
    try_pod(j, n);
    node_free(n);
    if (decode_pod_group(j, &g, &err) == 0) {
        read_all(g->key);
        read_resources(&g->min_resources);
        pod_group_free(g);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json_doc *doc = NULL;
    char *buf = malloc(size + JSON_PADDING);
    if (!buf)
        abort();
    if (size)
        memcpy(buf, data, size);
    memset(buf + size, 0, JSON_PADDING);
    if (json_parse_insitu(&doc, buf, size, NULL) == 0) {
        try_all(json_root(doc));
        size_t left = 64;
        for (struct json_iter it = json_iter(json_get(json_root(doc), "items"));
             left-- > 0 && json_next(&it);)
            try_all(it.value);
        json_free(doc);
    }
    free(buf);
    return 0;
}
