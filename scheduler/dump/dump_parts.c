// SPDX-License-Identifier: Apache-2.0
#include "scheduler/dump/dump_parts.h"

#include "lib/base/rfc3339.h"
#include "lib/model/grant.h"
#include "lib/model/names.h"

void dump_parts_text(struct json_writer *w, const char *key, const char *text)
{
    if (text != NULL && text[0] != '\0')
        json_kv_str(w, key, text);
}

void dump_parts_object(struct json_writer *w, const char *key)
{
    json_key(w, key);
    json_object_begin(w);
}

void dump_parts_array(struct json_writer *w, const char *key)
{
    json_key(w, key);
    json_array_begin(w);
}

void dump_parts_strings(struct json_writer *w, const char *key, const char *const *list, size_t len)
{
    if (len == 0)
        return;
    dump_parts_array(w, key);
    for (size_t i = 0; i < len; i++)
        json_put_str(w, list[i]);
    json_array_end(w);
}

void dump_parts_true(struct json_writer *w, const char *key, bool b)
{
    if (b)
        json_kv_bool(w, key, true);
}

void dump_parts_time(struct json_writer *w, const char *key, int64_t ns)
{
    char text[RFC3339_SIZE];
    rfc3339_text(ns, text);
    json_kv_str(w, key, text);
}

void dump_parts_labels(struct json_writer *w, const char *key, const struct labels *l)
{
    if (l->len == 0)
        return;
    dump_parts_object(w, key);
    for (size_t i = 0; i < l->len; i++)
        json_kv_str(w, l->items[i].key, l->items[i].value);
    json_object_end(w);
}

/* "" as the value of a result key means absent. */
static bool is_printed(const struct label *l)
{
    return pod_annotation_bytes(l->key) > 0 &&
           (l->value[0] != '\0' || !grant_is_result_key(l->key));
}

void dump_parts_annotations(struct json_writer *w, const struct labels *l)
{
    bool any = false;
    for (size_t i = 0; i < l->len && !any; i++)
        any = is_printed(&l->items[i]);
    if (!any)
        return;
    dump_parts_object(w, "annotations");
    for (size_t i = 0; i < l->len; i++)
        if (is_printed(&l->items[i]))
            json_kv_str(w, l->items[i].key, l->items[i].value);
    json_object_end(w);
}

/* Without a temporary string: a pod has a dozen of these. */
static void put_amount(struct json_writer *w, const char *name, int64_t amount,
                       void (*print)(int64_t amount, struct strbuf *out))
{
    json_key(w, name);
    json_put_raw(w, "\"", 1);
    print(amount, w->out);
    strbuf_addc(w->out, '"');
}

void dump_parts_bytes(struct json_writer *w, const char *key, int64_t bytes)
{
    put_amount(w, key, bytes, quantity_print_bytes);
}

static void print_number(int64_t amount, struct strbuf *out)
{
    strbuf_addf(out, "%lld", (long long)amount);
}

bool dump_parts_is_none(const struct resources *r)
{
    return r->has == 0 && r->extra_len == 0;
}

void dump_parts_resources_even_none(struct json_writer *w, const char *key,
                                    const struct resources *r)
{
    dump_parts_object(w, key);
    if (r->has & RESOURCES_HAS_CPU)
        put_amount(w, "cpu", r->cpu_milli, quantity_print_milli);
    if (r->has & RESOURCES_HAS_MEMORY)
        put_amount(w, "memory", r->memory_bytes, quantity_print_bytes);
    if (r->has & RESOURCES_HAS_EPHEMERAL)
        put_amount(w, "ephemeral-storage", r->ephemeral_bytes, quantity_print_bytes);
    if (r->has & RESOURCES_HAS_PODS)
        put_amount(w, "pods", r->pods, print_number);
    for (uint32_t i = 0; i < r->extra_len; i++)
        put_amount(w, r->extra[i].name, r->extra[i].value, print_number);
    json_object_end(w);
}

void dump_parts_resources(struct json_writer *w, const char *key, const struct resources *r)
{
    if (!dump_parts_is_none(r))
        dump_parts_resources_even_none(w, key, r);
}

const char *dump_parts_effect(enum taint_effect e)
{
    static const char *const names[] = {[TAINT_NO_SCHEDULE] = "NoSchedule",
                                        [TAINT_PREFER_NO_SCHEDULE] = "PreferNoSchedule",
                                        [TAINT_NO_EXECUTE] = "NoExecute",
                                        [TAINT_ALL] = ""};
    return names[e];
}

static void put_requirements(struct json_writer *w, const char *key, const struct selector *s)
{
    static const char *const ops[] = {
        [SELECTOR_IN] = "In",         [SELECTOR_NOT_IN] = "NotIn",
        [SELECTOR_EXISTS] = "Exists", [SELECTOR_NOT_EXISTS] = "DoesNotExist",
        [SELECTOR_GT] = "Gt",         [SELECTOR_LT] = "Lt"};
    if (s->len == 0)
        return;
    dump_parts_array(w, key);
    for (size_t i = 0; i < s->len; i++) {
        const struct requirement *r = &s->reqs[i];
        json_object_begin(w);
        json_kv_str(w, "key", r->key);
        json_kv_str(w, "operator", ops[r->op]);
        dump_parts_strings(w, "values", r->values, r->values_len);
        json_object_end(w);
    }
    json_array_end(w);
}

void dump_parts_node_term(struct json_writer *w, const struct node_term *t)
{
    json_object_begin(w);
    put_requirements(w, "matchExpressions", &t->labels);
    put_requirements(w, "matchFields", &t->fields);
    json_object_end(w);
}

void dump_parts_node_selector(struct json_writer *w, const char *key, const struct node_selector *s)
{
    dump_parts_object(w, key);
    dump_parts_array(w, "nodeSelectorTerms");
    for (size_t i = 0; i < s->len; i++)
        dump_parts_node_term(w, &s->terms[i]);
    json_array_end(w);
    json_object_end(w);
}

void dump_parts_selector(struct json_writer *w, const char *key, const struct selector *s)
{
    if (s->nothing)
        return;
    dump_parts_object(w, key);
    put_requirements(w, "matchExpressions", s);
    json_object_end(w);
}

void dump_parts_terminating(struct json_writer *w, bool terminating)
{
    if (terminating)
        dump_parts_time(w, "deletionTimestamp", 0);
}
