// SPDX-License-Identifier: Apache-2.0
#include "test/unit/device-plugin/cards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/kube/decode.h"

void cards_make(struct gpu_inventory *out, struct arena *a, const int64_t *mib)
{
    *out = (struct gpu_inventory){.cards = arena_new(a, struct gpu_card, GPU_CARDS_MAX)};
    for (; mib[out->cards_len] > 0; out->cards_len++)
        out->cards[out->cards_len] =
            (struct gpu_card){.index = (int32_t)out->cards_len,
                              .uuid = arena_printf(a, "GPU-%c", (char)('a' + (int)out->cards_len)),
                              .model = "Tesla T4",
                              .mib = mib[out->cards_len],
                              .numa = -1,
                              .pci = ""};
}

static void push(struct inventory_ids *ids, struct arena *a, const char *id)
{
    ids->items[ids->len++] = arena_strdup(a, id);
}

struct inventory_ids cards_ids(struct arena *a, const char *words)
{
    struct inventory_ids ids = {.items = arena_new(a, const char *, 1024)};
    char *text = arena_strdup(a, words), *save = NULL;
    for (char *w = strtok_r(text, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save)) {
        char card[64];
        int from = 0, to = 0;
        if (sscanf(w, "%63[^:]:%d-%d", card, &from, &to) == 3) {
            for (int i = from; i <= to; i++)
                push(&ids, a, arena_printf(a, "%s-_-%d", card, i));
        } else if (sscanf(w, "%63[^:]:%d", card, &from) == 2) {
            push(&ids, a, arena_printf(a, "%s-_-%d", card, from));
        } else {
            push(&ids, a, w);
        }
    }
    return ids;
}

char *cards_print(struct arena *a, const struct inventory_ids *ids)
{
    char *out = arena_strdup(a, "");
    for (size_t i = 0; i < ids->len; i++)
        out = arena_printf(a, "%s%s%s", out, i == 0 ? "" : " ", ids->items[i]);
    return out;
}

static void add_containers(struct strbuf *out, const char *containers, const char *prefix)
{
    struct arena a;
    arena_init(&a, 0);
    char *text = arena_strdup(&a, containers), *save = NULL;
    bool first = true;
    strbuf_adds(out, "[");
    for (char *w = strtok_r(text, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save)) {
        bool side = str_starts(w, "side:"), init = side || str_starts(w, "init:");
        if (init != (prefix[0] != '\0'))
            continue;
        char *name = init ? w + 5 : w, *limits = strchr(name, '=');
        if (limits != NULL)
            *limits++ = '\0';
        strbuf_addf(out, "%s{\"name\":\"%s\",\"image\":\"x\",%s\"resources\":{\"limits\":{",
                    first ? "" : ",", name, side ? "\"restartPolicy\":\"Always\"," : "");
        first = false;
        char *inner = NULL;
        bool comma = false;
        size_t from = out->len;
        for (char *l = limits != NULL ? strtok_r(limits, ",", &inner) : NULL; l != NULL;
             l = strtok_r(NULL, ",", &inner)) {
            char *amount = strchr(l, ':');
            *amount++ = '\0';
            strbuf_addf(out, "%s\"%s%s\":\"%s\"", comma ? "," : "",
                        strchr(l, '/') != NULL ? "" : "aliyun.com/", l, amount);
            comma = true;
        }
        /* As the API server fills it in. */
        char *same = arena_strndup(&a, out->ptr + from, out->len - from);
        strbuf_addf(out, "},\"requests\":{%s}}}", same);
    }
    strbuf_adds(out, "]");
    arena_deinit(&a);
}

static struct json_doc *parse(const struct strbuf *text)
{
    struct error err = ERROR_INIT;
    struct json_doc *doc = NULL;
    if (json_parse(&doc, strbuf_str(text), text->len, &err) < 0) {
        fprintf(stderr, "%s: %s\n", err.text, strbuf_str(text));
        abort();
    }
    return doc;
}

struct pod *cards_pod(const char *name, const char *containers, const char *annotations)
{
    struct error err = ERROR_INIT;
    AUTO_STRBUF text;
    strbuf_init(&text);
    strbuf_addf(
        &text,
        "{\"metadata\":{\"namespace\":\"default\",\"name\":\"%s\",\"uid\":\"uid-%s\",\"annotations\":{%s}},"
        "\"spec\":{\"nodeName\":\"n1\",\"schedulerName\":\"ack-co-scheduler\",\"containers\":",
        name, name, annotations);
    add_containers(&text, containers, "");
    strbuf_adds(&text, ",\"initContainers\":");
    add_containers(&text, containers, "init");
    strbuf_adds(&text, "},\"status\":{\"phase\":\"Pending\"}}");
    AUTO_JSON *doc = parse(&text);
    struct pod *p = NULL;
    if (decode_pod(json_root(doc), &p, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    return p;
}

struct node *cards_node(const char *labels, const char *allocatable)
{
    struct error err = ERROR_INIT;
    AUTO_STRBUF text;
    strbuf_init(&text);
    strbuf_addf(
        &text,
        "{\"metadata\":{\"name\":\"n1\",\"uid\":\"u\",\"labels\":{%s}},\"status\":{\"capacity\":{%s},"
        "\"allocatable\":{%s}}}",
        labels, allocatable, allocatable);
    AUTO_JSON *doc = parse(&text);
    struct node *n = NULL;
    if (decode_node(json_root(doc), &n, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    return n;
}
