// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/decode_terms.h"

#include "lib/base/str.h"
#include "lib/kube/decode.h"
#include "lib/kube/decode_field.h"

#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"
#define PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"

static int decode_selector(json *j, const char *name, struct arena *a, struct selector *out,
                           struct error *err)
{
    return selector_decode(j, a, out, err) < 0 ? error_wrap(err, "%s", name) : 0;
}

static int decode_term(json *j, const struct pod *p, struct arena *a, struct podterm *t,
                       struct error *err)
{
    const char **match, **mismatch;
    size_t match_len, mismatch_len;
    t->topology_key = "";
    if (!json_is_object(j))
        return error_set(err, ERROR_INVALID, "must be an object, not %s", json_kind_name(j));
    if (decode_field_str(json_get(j, "topologyKey"), "topologyKey", a, &t->topology_key, err) < 0)
        return -1;
    if (!t->topology_key[0])
        return error_set(err, ERROR_INVALID, "topologyKey: missing");
    if (decode_selector(json_get(j, "labelSelector"), "labelSelector", a, &t->selector, err) < 0 ||
        decode_selector(json_get(j, "namespaceSelector"), "namespaceSelector", a,
                        &t->namespace_selector, err) < 0 ||
        decode_field_set(json_get(j, "namespaces"), "namespaces", a, &t->namespaces,
                         &t->namespaces_len, err) < 0 ||
        decode_field_strings(json_get(j, "matchLabelKeys"), "matchLabelKeys", a, &match, &match_len,
                             err) < 0 ||
        decode_field_strings(json_get(j, "mismatchLabelKeys"), "mismatchLabelKeys", a, &mismatch,
                             &mismatch_len, err) < 0)
        return -1;
    if (t->namespaces_len == 0 && t->namespace_selector.nothing) {
        t->namespaces = arena_new(a, const char *, 1);
        t->namespaces[0] = p->ns;
        t->namespaces_len = 1;
    }
    podterm_merge_keys(t, match, match_len, mismatch, mismatch_len, &p->labels, a);
    return 0;
}

/* A list of terms, or of {weight, podAffinityTerm}. After an error, which is the first, it has the
 * terms that can be read. */
static int decode_list(json *j, const char *name, bool weighted, const struct pod *p,
                       struct arena *a, struct podterm **out, size_t *len, struct error *err)
{
    size_t all, i = 0;
    int rc = decode_field_array(j, name, DECODE_TERMS_MAX, &all, err);
    *len = 0;
    if (all == 0)
        return rc;
    *out = arena_new(a, struct podterm, all < DECODE_TERMS_MAX ? all : DECODE_TERMS_MAX);
    for (struct json_iter it = json_iter(j); i < DECODE_TERMS_MAX && json_next(&it); i++) {
        struct podterm *t = &(*out)[*len];
        int64_t weight = 0;
        json *term = weighted ? json_get(it.value, "podAffinityTerm") : it.value;
        *t = (struct podterm){0};
        if (weighted)
            (void)decode_field_int(json_get(it.value, "weight"), "weight", 0, 100, &weight, NULL);
        t->weight = (int32_t)weight;
        if (decode_term(term, p, a, t, rc < 0 ? NULL : err) == 0)
            ++*len;
        else
            rc = rc < 0 ? rc : error_wrap(err, "%s[%zu]", name, i);
    }
    return rc;
}

static int decode_side(json *j, const char *name, const struct pod *p, struct arena *a,
                       struct podterm **required, size_t *required_len, struct podterm **preferred,
                       size_t *preferred_len, struct error *err)
{
    bool have;
    if (decode_field_object(j, name, &have, err) < 0)
        return error_wrap(err, "spec.affinity");
    int rc = decode_list(json_get(j, REQUIRED), REQUIRED, false, p, a, required, required_len, err);
    if (decode_list(json_get(j, PREFERRED), PREFERRED, true, p, a, preferred, preferred_len,
                    rc < 0 ? NULL : err) < 0)
        rc = -1;
    return rc < 0 ? error_wrap(err, "spec.affinity.%s", name) : 0;
}

int decode_terms_affinity(json *affinity, struct pod *p, struct arena *a, struct error *err)
{
    json *to = json_get(affinity, "podAffinity"), *against = json_get(affinity, "podAntiAffinity");
    struct podterms t = {0};
    p->terms = NULL; /* a repeated member of the same name may have none */
    if ((!to || json_is_null(to)) && (!against || json_is_null(against)))
        return 0;
    int rc = decode_side(to, "podAffinity", p, a, &t.affinity, &t.affinity_len, &t.preferred,
                         &t.preferred_len, err);
    if (decode_side(against, "podAntiAffinity", p, a, &t.anti_affinity, &t.anti_affinity_len,
                    &t.preferred_anti, &t.preferred_anti_len, rc < 0 ? NULL : err) < 0)
        rc = -1;
    if (t.affinity_len + t.anti_affinity_len + t.preferred_len + t.preferred_anti_len == 0)
        return rc;
    struct podterms *kept = arena_new(a, struct podterms, 1);
    *kept = t;
    p->terms = kept;
    return rc;
}

static int decode_constraint(json *j, const struct pod *p, struct arena *a, struct spread *s,
                             struct error *err)
{
    int64_t skew = 0, domains = 1;
    const char **keys;
    size_t keys_len;
    s->topology_key = "";
    if (!json_is_object(j))
        return error_set(err, ERROR_INVALID, "must be an object, not %s", json_kind_name(j));
    if (decode_field_int(json_get(j, "maxSkew"), "maxSkew", 1, INT32_MAX, &skew, err) < 0 ||
        decode_field_int(json_get(j, "minDomains"), "minDomains", 1, INT32_MAX, &domains, err) <
            0 ||
        decode_field_str(json_get(j, "topologyKey"), "topologyKey", a, &s->topology_key, err) < 0)
        return -1;
    if (skew == 0)
        return error_set(err, ERROR_INVALID, "maxSkew: missing");
    if (!s->topology_key[0])
        return error_set(err, ERROR_INVALID, "topologyKey: missing");
    if (decode_selector(json_get(j, "labelSelector"), "labelSelector", a, &s->selector, err) < 0 ||
        decode_field_strings(json_get(j, "matchLabelKeys"), "matchLabelKeys", a, &keys, &keys_len,
                             err) < 0)
        return -1;
    const char *affinity = json_get_str(j, "nodeAffinityPolicy");
    s->max_skew = (int32_t)skew;
    s->min_domains = (int32_t)domains;
    s->hard = !str_eq(json_get_str(j, "whenUnsatisfiable"), "ScheduleAnyway");
    s->honor_affinity = !affinity || str_eq(affinity, "Honor");
    s->honor_taints = str_eq(json_get_str(j, "nodeTaintsPolicy"), "Honor");
    spread_merge_keys(s, keys, keys_len, &p->labels, a);
    return 0;
}

int decode_terms_spread(json *j, struct pod *p, struct arena *a, struct error *err)
{
    static const char name[] = "spec.topologySpreadConstraints";
    size_t all, i = 0;
    int rc = decode_field_array(j, name, DECODE_TERMS_MAX, &all, err);
    p->spread = NULL;
    p->spread_len = 0;
    if (all == 0)
        return rc;
    p->spread = arena_new(a, struct spread, all < DECODE_TERMS_MAX ? all : DECODE_TERMS_MAX);
    for (struct json_iter it = json_iter(j); i < DECODE_TERMS_MAX && json_next(&it); i++) {
        struct spread *s = &p->spread[p->spread_len];
        *s = (struct spread){0};
        if (decode_constraint(it.value, p, a, s, rc < 0 ? NULL : err) == 0)
            p->spread_len++;
        else
            rc = rc < 0 ? rc : error_wrap(err, "%s[%zu]", name, i);
    }
    return rc;
}
