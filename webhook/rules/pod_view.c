// SPDX-License-Identifier: Apache-2.0
/* Reads JSON, not struct pod: the decoder rejects what it cannot read, but the webhook must say
 * which field is wrong and how to correct it. Quantities may be strings (API server) or numbers
 * (YAML). */
#include "webhook/rules/pod_view.h"

#include <stdarg.h>

#include "lib/base/str.h"
#include "lib/model/names.h"
#include "lib/model/quantity.h"
#include "lib/model/request.h"

const char *pod_view_label(const struct pod_view *l, const char *key)
{
    return labels_get(&l->labels, key);
}

const char *pod_view_annotation(const struct pod_view *l, const char *key)
{
    return labels_get(&l->annotations, key);
}

const char *pod_view_ns_label(const struct pod_view *l, const char *key)
{
    return l->context->ns_labels ? labels_get(l->context->ns_labels, key) : NULL;
}

/* ---- containers and amounts ---- */

const char *const pod_view_container_lists[] = {"containers", "initContainers", NULL};
const char *const pod_view_amount_lists[] = {"limits", "requests", NULL};
enum { CONTAINER_LISTS = 2 };

bool pod_view_next_container(const struct pod_view *l, struct pod_view_container *c)
{
    for (;;) {
        if (c->list && json_next(&c->it_)) {
            c->index = c->value ? c->index + 1 : 0;
            c->value = c->it_.value;
            c->init = c->lists_begun_ == CONTAINER_LISTS &&
                      !str_eq(json_get_str(c->value, "restartPolicy"), "Always");
            return true;
        }
        if (c->lists_begun_ == CONTAINER_LISTS)
            return false;
        c->list = pod_view_container_lists[c->lists_begun_++];
        c->it_ = json_iter(json_get(l->spec, c->list));
        c->value = NULL;
    }
}

json *pod_view_amount(json *container, const char *list, const char *resource)
{
    return json_get(json_get(json_get(container, "resources"), list), resource);
}

const char *pod_view_amount_path(const struct pod_view *l, const struct pod_view_container *c,
                                 const char *list, const char *resource)
{
    return arena_printf(l->arena, "spec.%s[%zu].resources.%s[%s]", c->list, c->index, list,
                        resource);
}

static bool read_milli(json *v, int64_t *milli, struct error *err)
{
    const char *text = json_str(v) ? json_str(v) : json_number_text(v);
    return text && quantity_parse(text, strlen(text), QUANTITY_MILLI, QUANTITY_UP, milli, err) == 0;
}

bool pod_view_read_milli(json *v, int64_t *milli)
{
    return read_milli(v, milli, NULL);
}

bool pod_view_is_too_large(json *v)
{
    struct error err = ERROR_INIT;
    int64_t milli = 0;
    return !read_milli(v, &milli, &err) && err.code == ERROR_RANGE;
}

/* An unreadable amount counts as requested and is refused later. */
static void view_amount(struct pod_view *l, json *container, const char *list, const char *resource,
                        struct resources *out, bool *unreadable)
{
    json *v = pod_view_amount(container, list, resource);
    const char *text = json_str(v) ? json_str(v) : json_number_text(v);
    int64_t milli = 0;
    if (!v)
        return;
    if (!pod_view_read_milli(v, &milli) || milli < 0 ||
        (milli % 1000 != 0 && !str_eq(resource, "cpu")) ||
        resources_set_text(out, l->arena, resource, strlen(resource), text, strlen(text),
                           QUANTITY_UP, NULL) < 0)
        *unreadable = true;
}

static void view_count(struct pod_view *l, struct resources *out)
{
    (void)resources_set_text(out, l->arena, NAME_RES_GPU_COUNT, strlen(NAME_RES_GPU_COUNT), "1", 1,
                             QUANTITY_UP, NULL);
}

static void view_container(struct pod_view *l, const struct pod_view_container *c,
                           struct container *out)
{
    bool ignored = false; /* rules_cpuset reports unreadable CPUs of pinned pods */
    out->sidecar = c->list == pod_view_container_lists[1] && !c->init;
    for (int r = 0; r < GPU_REQUEST_RESOURCES; r++) {
        view_amount(l, c->value, "limits", gpu_request_names[r], &out->limits, &l->asks[r]);
        view_amount(l, c->value, "requests", gpu_request_names[r], &out->requests, &l->asks[r]);
    }
    view_amount(l, c->value, "limits", "cpu", &out->limits, &ignored);
    /* Users must not set the count, whatever the amount. */
    if (pod_view_amount(c->value, "limits", NAME_RES_GPU_COUNT))
        view_count(l, &out->limits);
    if (pod_view_amount(c->value, "requests", NAME_RES_GPU_COUNT))
        view_count(l, &out->requests);
}

static void view_containers(struct pod_view *l)
{
    struct pod *p = &l->pod;
    *p = (struct pod){.labels = l->labels, .annotations = l->annotations};
    for (struct pod_view_container c = {0}; pod_view_next_container(l, &c);)
        *(c.list == pod_view_container_lists[0] ? &p->containers_len : &p->init_containers_len) +=
            1;
    p->containers = arena_new(l->arena, struct container, p->containers_len);
    p->init_containers = arena_new(l->arena, struct container, p->init_containers_len);
    for (struct pod_view_container c = {0}; pod_view_next_container(l, &c);)
        view_container(
            l, &c,
            (c.list == pod_view_container_lists[0] ? p->containers : p->init_containers) + c.index);
}

static void read_requests(struct pod_view *l)
{
    view_containers(l);
    gpu_request_read(&l->pod, l->arena, &l->gpu, &l->gpu_errors);
    for (int r = 0; r < GPU_REQUEST_RESOURCES; r++)
        l->asks[r] = l->asks[r] || l->gpu.total[r] > 0;
}

/* Numbers and unquoted words as labels are common mistakes while the API server has not typed the
 * object. They are refused; they are not an error. */
static int read_labels(struct pod_view *l, const char *member, struct labels *out,
                       struct error *err)
{
    json *map = json_get(l->metadata, member);
    size_t before = pod_view_refusals(l);
    for (struct json_iter it = json_iter(map); json_next(&it);)
        if (it.key && !json_str(it.value))
            pod_view_refuse(l, "metadata.%s[%s]: %s is not a string; write it in quotes", member,
                            it.key, pod_view_quote_json(l, it.value));
    if (pod_view_refusals(l) > before)
        return 0;
    if (labels_decode(map, l->arena, out, err) < 0)
        return error_wrap(err, "metadata.%s", member);
    return 0;
}

int pod_view_init_metadata(struct pod_view *l, json *object, struct error *err)
{
    l->metadata = json_get(object, "metadata");
    if (l->metadata && !json_is_null(l->metadata) && !json_is_object(l->metadata))
        return error_set(err, ERROR_INVALID, "metadata: must be an object, not %s",
                         json_kind_name(l->metadata));
    return read_labels(l, "labels", &l->labels, err) < 0
               ? -1
               : read_labels(l, "annotations", &l->annotations, err);
}

int pod_view_init(struct pod_view *l, json *pod, struct error *err)
{
    l->spec = json_get(pod, "spec");
    if (!json_is_object(l->spec))
        return error_set(err, ERROR_INVALID, "spec: must be an object, not %s",
                         json_kind_name(l->spec));
    if (pod_view_init_metadata(l, pod, err) < 0)
        return -1;
    l->scheduling_group = json_get_str(json_get(l->spec, "schedulingGroup"), "podGroupName");
    read_requests(l);
    return 0;
}

/* ---- findings ---- */

static void __attribute__((format(printf, 4, 0)))
say_to(struct pod_view *l, struct rules_sentences *to, size_t max, const char *fmt, va_list ap)
{
    if (to->len == RULES_SENTENCES_MAX) {
        to->left_out++;
        return;
    }
    const char *text = arena_vprintf(l->arena, fmt, ap);
    to->items[to->len++] = str_tidy(arena_printf(l->arena, "%s%s", l->at, text), max);
}

void pod_view_warn(struct pod_view *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say_to(l, &l->verdict->warnings, RULES_WARNING_BYTES, fmt, ap);
    va_end(ap);
}

void pod_view_refuse(struct pod_view *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say_to(l, &l->verdict->refusals, RULES_REFUSAL_BYTES, fmt, ap);
    va_end(ap);
}

void pod_view_refuse_all(struct pod_view *l, const struct request_errors *errors)
{
    for (size_t i = 0; i < errors->len; i++)
        pod_view_refuse(l, "%s", errors->items[i]);
    l->verdict->refusals.left_out += errors->left_out;
}

size_t pod_view_refusals(const struct pod_view *l)
{
    return l->verdict->refusals.len + l->verdict->refusals.left_out;
}

static void close_sentences(struct pod_view *l, struct rules_sentences *s)
{
    if (s->left_out == 0)
        return;
    s->left_out++;
    s->items[RULES_SENTENCES_MAX - 1] = arena_printf(l->arena, "and %zu more.", s->left_out);
}

void pod_view_close(struct pod_view *l)
{
    close_sentences(l, &l->verdict->warnings);
    close_sentences(l, &l->verdict->refusals);
}

const char *pod_view_quote(const struct pod_view *l, const char *value)
{
    return request_quote(value, l->arena);
}

const char *pod_view_quote_json(const struct pod_view *l, json *v)
{
    if (json_str(v))
        return pod_view_quote(l, json_str(v));
    if (json_is_bool(v))
        return json_bool(v, false) ? "'true'" : "'false'";
    return json_number_text(v) ? pod_view_quote(l, json_number_text(v)) : json_kind_name(v);
}
