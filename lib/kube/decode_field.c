// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/decode_field.h"

#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/kube/decode.h"

static bool absent(json *v)
{
    return !v || json_is_null(v);
}

int decode_field_str(json *v, const char *name, struct arena *a, const char **out,
                     struct error *err)
{
    const char *s = json_str(v);
    if (s) {
        *out = arena_strndup(a, s, json_str_len(v));
        return 0;
    }
    if (absent(v))
        return 0;
    return error_set(err, ERROR_INVALID, "%s: must be a string without NUL, not %s", name,
                     json_kind_name(v));
}

int decode_field_int(json *v, const char *name, int64_t min, int64_t max, int64_t *out,
                     struct error *err)
{
    if (absent(v))
        return 0;
    int64_t n;
    if (!json_int(v, &n))
        return error_set(err, ERROR_INVALID, "%s: must be an integer", name);
    if (n < min || n > max)
        return error_set(err, ERROR_INVALID, "%s: must be between %lld and %lld: %lld", name,
                         (long long)min, (long long)max, (long long)n);
    *out = n;
    return 0;
}

int decode_field_bool(json *v, const char *name, bool *out, struct error *err)
{
    if (absent(v))
        return 0;
    if (!json_is_bool(v))
        return error_set(err, ERROR_INVALID, "%s: must be true or false, not %s", name,
                         json_kind_name(v));
    *out = json_bool(v, false);
    return 0;
}

int decode_field_time(json *v, const char *name, int64_t *out, struct error *err)
{
    if (absent(v))
        return 0;
    const char *s = json_str(v);
    if (!s)
        return error_set(err, ERROR_INVALID, "%s: must be a time, not %s", name, json_kind_name(v));
    int64_t ns = clock_parse_rfc3339(s);
    if (ns < 0)
        return error_set(err, ERROR_INVALID, "%s: not a time: '%.64s'", name, s);
    *out = ns;
    return 0;
}

int decode_field_labels(json *v, const char *name, struct arena *a, struct labels *out,
                        struct error *err)
{
    return labels_decode(v, a, out, err) < 0 ? error_wrap(err, "%s", name) : 0;
}

/* One entry of a list of amounts. */
static int take_amount(const struct json_iter *it, struct arena *a, enum quantity_round round,
                       struct resources *out, struct error *err)
{
    const char *text = json_str(it->value);
    size_t n = text ? json_str_len(it->value) : 0;
    if (!text && (text = json_number_text(it->value)))
        n = strlen(text);
    if (!text)
        return error_set(err, ERROR_INVALID, "resource %s: must be a quantity, not %s", it->key,
                         json_kind_name(it->value));
    return resources_set_text(out, a, it->key, it->key_len, text, n, round, err);
}

int decode_field_resources(json *v, const char *name, struct arena *a, enum quantity_round round,
                           struct resources *out, bool *present, struct error *err)
{
    bool have;
    int rc = decode_field_object(v, name, &have, err);
    if (present)
        *present = have;
    if (!have)
        return rc;
    resources_reserve(out, a, json_len(v));
    for (struct json_iter it = json_iter(v); json_next(&it);)
        if (take_amount(&it, a, round, out, rc < 0 ? NULL : err) < 0)
            rc = rc < 0 ? rc : error_wrap(err, "%s", name);
    out->extra_free = 0;
    return rc;
}

int decode_field_array(json *v, const char *name, size_t max, size_t *len, struct error *err)
{
    *len = 0;
    if (absent(v))
        return 0;
    if (!json_is_array(v))
        return error_set(err, ERROR_INVALID, "%s: must be a list, not %s", name, json_kind_name(v));
    *len = json_len(v); /* also of one that is too long, for callers that read it nevertheless */
    if (*len > max)
        return error_set(err, ERROR_TOO_LARGE, "%s: has %zu entries, more than %zu", name, *len,
                         max);
    return 0;
}

int decode_field_strings(json *v, const char *name, struct arena *a, const char ***out, size_t *len,
                         struct error *err)
{
    *out = NULL;
    if (decode_field_array(v, name, DECODE_LIST_MAX, len, err) < 0)
        return -1;
    if (*len == 0)
        return 0;
    *out = arena_new(a, const char *, *len);
    size_t i = 0;
    for (struct json_iter it = json_iter(v); json_next(&it); i++) {
        const char *s = json_str(it.value);
        if (!s) {
            *len = 0;
            return error_set(err, ERROR_INVALID, "%s[%zu]: must be a string without NUL, not %s",
                             name, i, json_kind_name(it.value));
        }
        (*out)[i] = arena_strndup(a, s, json_str_len(it.value));
    }
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void decode_field_sort(const char **words, size_t *len)
{
    size_t kept = 0;
    if (*len > 1)
        qsort(words, *len, sizeof *words, by_text);
    for (size_t i = 0; i < *len; i++)
        if (kept == 0 || strcmp(words[kept - 1], words[i]) != 0)
            words[kept++] = words[i];
    *len = kept;
}

int decode_field_set(json *v, const char *name, struct arena *a, const char ***out, size_t *len,
                     struct error *err)
{
    if (decode_field_strings(v, name, a, out, len, err) < 0)
        return -1;
    decode_field_sort(*out, len);
    return 0;
}

int decode_field_quantity(json *v, const char *name, enum quantity_round round, int64_t *out,
                          struct error *err)
{
    if (absent(v))
        return 0;
    const char *text = json_str(v);
    size_t n = text ? json_str_len(v) : 0;
    if (!text && (text = json_number_text(v)))
        n = strlen(text);
    if (!text)
        return error_set(err, ERROR_INVALID, "%s: must be a quantity, not %s", name,
                         json_kind_name(v));
    int64_t amount = -1;
    if (quantity_parse(text, n, QUANTITY_UNITS, round, &amount, err) < 0) {
        if (amount != INT64_MAX)
            return error_wrap(err, "%s", name);
        error_clear(err); /* too large: the largest */
    }
    if (amount < 0)
        return error_set(err, ERROR_INVALID, "%s: must not be negative: '%.64s'", name, text);
    *out = amount;
    return 0;
}

int decode_field_object(json *v, const char *name, bool *present, struct error *err)
{
    *present = json_is_object(v);
    if (*present || absent(v))
        return 0;
    return error_set(err, ERROR_INVALID, "%s: must be an object, not %s", name, json_kind_name(v));
}

int decode_field_metadata(json *v, size_t (*annotation)(const char *key), struct arena *a,
                          struct decode_metadata *m, struct error *err)
{
    bool have;
    *m = (struct decode_metadata){.ns = "", .name = "", .uid = "", .resource_version = ""};
    if (decode_field_object(v, "metadata", &have, err) < 0)
        return -1;
    for (struct json_iter it = json_iter(v); json_next(&it);) {
        int rc = 0;
        if (FIELD(it, "name"))
            rc = decode_field_str(it.value, "metadata.name", a, &m->name, err);
        else if (FIELD(it, "namespace"))
            rc = decode_field_str(it.value, "metadata.namespace", a, &m->ns, err);
        else if (FIELD(it, "uid"))
            rc = decode_field_str(it.value, "metadata.uid", a, &m->uid, err);
        else if (FIELD(it, "resourceVersion"))
            rc = decode_field_str(it.value, "metadata.resourceVersion", a, &m->resource_version,
                                  err);
        else if (FIELD(it, "labels"))
            (void)labels_decode(it.value, a, &m->labels, NULL);
        else if (FIELD(it, "annotations"))
            (void)labels_decode_some(it.value, annotation, a, &m->annotations, NULL);
        else if (FIELD(it, "creationTimestamp"))
            (void)decode_field_time(it.value, "creationTimestamp", &m->created_ns, NULL);
        else if (FIELD(it, "deletionTimestamp")) {
            m->terminating = !json_is_null(it.value);
            (void)decode_field_time(it.value, "deletionTimestamp", &m->leaves_ns, NULL);
        } else if (FIELD(it, "ownerReferences"))
            m->owners = it.value;
        if (rc < 0)
            return -1;
    }
    return 0;
}
