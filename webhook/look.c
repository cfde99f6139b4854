// SPDX-License-Identifier: Apache-2.0
/*
 * Works on JSON, not on struct pod: decode refuses what it cannot read, and the webhook's task is to say which field it was and what to write there.
 * Numbers may be JSON strings (as the API server sends quantities) or JSON numbers (as people write them in YAML).
 */
#include "webhook/look.h"

#include <stdarg.h>

#include "lib/base/str.h"
#include "lib/model/names.h"
#include "lib/model/quantity.h"

const char *const look_gpu_names[LOOK_GPUS] = {
    [LOOK_MEM] = NAME_RES_GPU_MEM,
    [LOOK_CORE] = NAME_RES_GPU_CORE,
    [LOOK_GPU] = NAME_RES_GPU,
    [LOOK_NVIDIA] = NAME_RES_NVIDIA_GPU,
};

const char *look_label(const struct look *l, const char *key)
{
    return labels_get(&l->labels, key);
}

const char *look_annotation(const struct look *l, const char *key)
{
    return labels_get(&l->annotations, key);
}

const char *look_ns_label(const struct look *l, const char *key)
{
    return l->context->ns_labels ? labels_get(l->context->ns_labels, key) : NULL;
}

/* ---- containers and amounts ----------------------------------------------------------------- */

const char *const look_container_lists[] = {"containers", "initContainers", NULL};
const char *const look_amount_lists[] = {"limits", "requests", NULL};
enum { CONTAINER_LISTS = 2 };

bool look_next_container(const struct look *l, struct look_container *c)
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
        c->list = look_container_lists[c->lists_begun_++];
        c->it_ = json_iter(json_get(l->spec, c->list));
        c->value = NULL;
    }
}

json *look_amount(json *container, const char *list, const char *resource)
{
    return json_get(json_get(json_get(container, "resources"), list), resource);
}

const char *look_amount_path(const struct look *l, const struct look_container *c, const char *list,
                             const char *resource)
{
    return arena_printf(l->arena, "spec.%s[%zu].resources.%s[%s]", c->list, c->index, list,
                        resource);
}

static bool read_milli(json *v, int64_t *milli, struct error *err)
{
    const char *text = json_str(v) ? json_str(v) : json_number_text(v);
    return text && quantity_parse(text, strlen(text), QUANTITY_MILLI, QUANTITY_UP, milli, err) == 0;
}

bool look_read_milli(json *v, int64_t *milli)
{
    return read_milli(v, milli, NULL);
}

bool look_is_too_large(json *v)
{
    struct error err = ERROR_INIT;
    int64_t milli = 0;
    return !read_milli(v, &milli, &err) && err.code == ERROR_RANGE;
}

bool look_read_whole(json *v, int64_t *whole)
{
    int64_t milli = 0;
    if (!look_read_milli(v, &milli) || milli % 1000 != 0)
        return false;
    *whole = milli / 1000;
    return true;
}

/* An amount of 0 asks for nothing; one that cannot be read asks (and is refused later). */
static bool is_asked(json *v)
{
    int64_t milli = 0;
    return v && (!look_read_milli(v, &milli) || milli != 0);
}

static void find_asked(struct look *l)
{
    for (struct look_container c = {0}; look_next_container(l, &c);)
        for (const char *const *list = look_amount_lists; *list; list++)
            for (int r = 0; r < LOOK_GPUS; r++)
                if (is_asked(look_amount(c.value, *list, look_gpu_names[r])))
                    l->asks[r] = true;
}

bool look_asks_gpu(const struct look *l)
{
    for (int r = 0; r < LOOK_GPUS; r++)
        if (l->asks[r])
            return true;
    return false;
}

/* A label that is a number or a word without quotes is the usual mistake where no API server has typed the object yet: a refusal, not an error. */
static int read_labels(struct look *l, const char *member, struct labels *out, struct error *err)
{
    json *map = json_get(l->metadata, member);
    size_t before = look_refusals(l);
    for (struct json_iter it = json_iter(map); json_next(&it);)
        if (it.key && !json_str(it.value))
            look_refuse(l, "metadata.%s[%s]: %s is not a string; write it in quotes", member,
                        it.key, look_quote_json(l, it.value));
    if (look_refusals(l) > before)
        return 0;
    if (labels_decode(map, l->arena, out, err) < 0)
        return error_wrap(err, "metadata.%s", member);
    return 0;
}

int look_init_metadata(struct look *l, json *object, struct error *err)
{
    l->metadata = json_get(object, "metadata");
    if (l->metadata && !json_is_null(l->metadata) && !json_is_object(l->metadata))
        return error_set(err, ERROR_INVALID, "metadata: must be an object, not %s",
                         json_kind_name(l->metadata));
    return read_labels(l, "labels", &l->labels, err) < 0
               ? -1
               : read_labels(l, "annotations", &l->annotations, err);
}

int look_init(struct look *l, json *pod, struct error *err)
{
    l->spec = json_get(pod, "spec");
    if (!json_is_object(l->spec))
        return error_set(err, ERROR_INVALID, "spec: must be an object, not %s",
                         json_kind_name(l->spec));
    if (look_init_metadata(l, pod, err) < 0)
        return -1;
    l->scheduling_group = json_get_str(json_get(l->spec, "schedulingGroup"), "podGroupName");
    find_asked(l);
    return 0;
}

/* ---- sentences ------------------------------------------------------------------------------ */

/* Cut at max bytes, between characters; what could forge a line or a header becomes '?'. */
static const char *tidy(char *s, size_t max)
{
    size_t len = strlen(s);
    if (len > max) {
        size_t end = 0;
        for (size_t n; (n = str_utf8_len(s + end, len - end)) > 0 && end + n <= max - 3;)
            end += n;
        for (size_t i = 0; i < 3; i++)
            s[end++] = '.';
        s[end] = '\0';
    }
    for (char *c = s; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    return s;
}

static void __attribute__((format(printf, 4, 0)))
say_to(struct look *l, struct rules_sentences *to, size_t max, const char *fmt, va_list ap)
{
    if (to->len == RULES_SENTENCES_MAX) {
        to->left_out++;
        return;
    }
    const char *text = arena_vprintf(l->arena, fmt, ap);
    to->items[to->len++] = tidy(arena_printf(l->arena, "%s%s", l->at, text), max);
}

void look_warn(struct look *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say_to(l, &l->verdict->warnings, RULES_WARNING_BYTES, fmt, ap);
    va_end(ap);
}

void look_refuse(struct look *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say_to(l, &l->verdict->refusals, RULES_REFUSAL_BYTES, fmt, ap);
    va_end(ap);
}

size_t look_refusals(const struct look *l)
{
    return l->verdict->refusals.len + l->verdict->refusals.left_out;
}

static void close_sentences(struct look *l, struct rules_sentences *s)
{
    if (s->left_out == 0)
        return;
    s->left_out++;
    s->items[RULES_SENTENCES_MAX - 1] = arena_printf(l->arena, "and %zu more.", s->left_out);
}

void look_close(struct look *l)
{
    close_sentences(l, &l->verdict->warnings);
    close_sentences(l, &l->verdict->refusals);
}

const char *look_quote(const struct look *l, const char *value)
{
    char *copy = arena_strndup(l->arena, value, strnlen(value, 128));
    return arena_printf(l->arena, "'%s'", tidy(copy, 64));
}

const char *look_quote_json(const struct look *l, json *v)
{
    if (json_str(v))
        return look_quote(l, json_str(v));
    if (json_is_bool(v))
        return json_bool(v, false) ? "'true'" : "'false'";
    return json_number_text(v) ? look_quote(l, json_number_text(v)) : json_kind_name(v);
}
