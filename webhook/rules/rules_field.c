// SPDX-License-Identifier: Apache-2.0
/* Checks one field of a PodGroup or ResourcePolicy: absent, valid and in bounds, or refused. */
#include "lib/base/str.h"
#include "webhook/rules/rules_internal.h"

static bool is_absent(json *v)
{
    return !v || json_is_null(v);
}

bool rules_field_int(struct pod_view *l, json *v, const char *path, int64_t min, int64_t max,
                     int64_t *out)
{
    int64_t n = 0;
    if (is_absent(v))
        return false;
    if (!json_int(v, &n) || n < min || n > max) {
        pod_view_refuse(l, "%s: %s is not an integer from %lld to %lld; write one", path,
                        pod_view_quote_json(l, v), (long long)min, (long long)max);
        return false;
    }
    *out = n;
    return true;
}

void rules_field_bool(struct pod_view *l, json *v, const char *path)
{
    if (!is_absent(v) && !json_is_bool(v))
        pod_view_refuse(l, "%s: %s is not a boolean; write true or false, without quotes", path,
                        pod_view_quote_json(l, v));
}

void rules_field_word(struct pod_view *l, json *v, const char *path, const char *const *words,
                      const char *all)
{
    const char *text = json_str(v);
    if (is_absent(v))
        return;
    for (size_t i = 0; text && words[i]; i++)
        if (str_eq(text, words[i]))
            return;
    pod_view_refuse(l, "%s: %s is not known; write %s", path, pod_view_quote_json(l, v), all);
}

void rules_field_amounts(struct pod_view *l, json *v, const char *path)
{
    if (is_absent(v))
        return;
    if (!json_is_object(v)) {
        pod_view_refuse(l, "%s: %s is no map of resources; write cpu: \"4\" and the like below it",
                        path, pod_view_quote_json(l, v));
        return;
    }
    for (struct json_iter it = json_iter(v); json_next(&it);) {
        int64_t milli = 0;
        if (!pod_view_read_milli(it.value, &milli) || milli < 0)
            pod_view_refuse(l,
                            "%s[%.80s]: %s is not an amount; write a number such as 4, 500m or 8Gi",
                            path, it.key, pod_view_quote_json(l, it.value));
    }
}

void rules_field_known(struct pod_view *l, json *object, const char *path, const char *const *names)
{
    for (struct json_iter it = json_iter(object); json_next(&it);) {
        bool known = false;
        for (size_t i = 0; names[i]; i++)
            known = known || str_eq(it.key, names[i]);
        if (!known && it.key)
            pod_view_warn(l, "%s.%.80s: is not known and means nothing; remove it", path, it.key);
    }
}
