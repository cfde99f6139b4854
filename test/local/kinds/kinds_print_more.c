// SPDX-License-Identifier: Apache-2.0
/*
 * kinds_print_more - cells of the smaller kinds: volumes, services, quotas, budgets, roles.
 */
#include "test/local/kinds/kinds_print.h"

#include <ctype.h>
#include <stdlib.h>

#include "lib/base/vec.h"

static void put(struct json_writer *w, const struct strbuf *b, const char *when_empty)
{
    if (b->len == 0)
        json_put_str(w, when_empty);
    else
        json_put_str_n(w, strbuf_str(b), b->len);
}

static void add_listed(struct strbuf *b, const char *separator, const char *s)
{
    if (b->len > 0)
        strbuf_adds(b, separator);
    strbuf_adds(b, str_or_empty(s));
}

static int64_t int_in(json *object, const char *key)
{
    int64_t n = 0;
    json_get_int(object, key, &n);
    return n;
}

static void put_count(json *v, struct json_writer *w)
{
    json_put_int(w, (int64_t)json_len(v));
}

void kinds_print_data_count(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    json_put_int(w, (int64_t)(json_len(json_get(o, "data")) + json_len(json_get(o, "binaryData"))));
}

void kinds_print_webhook_count(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    put_count(json_get(o, "webhooks"), w);
}

void kinds_print_validation_count(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    put_count(kinds_print_at(o, "spec.validations"), w);
}

void kinds_print_driver_count(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    put_count(kinds_print_at(o, "spec.drivers"), w);
}

/* ---- services ----------------------------------------------------------------------------------- */

void kinds_print_service_external(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    const char *type = json_str(kinds_print_at(o, "spec.type"));
    bool balanced = str_eq(type, "LoadBalancer");
    AUTO_STRBUF b = {0};
    if (str_eq(type, "ExternalName")) {
        json_put_str(w, json_str(kinds_print_at(o, "spec.externalName")));
        return;
    }
    if (balanced) {
        json *ingress = kinds_print_at(o, "status.loadBalancer.ingress");
        for (struct json_iter it = json_iter(ingress); json_next(&it);) {
            const char *ip = json_get_str(it.value, "ip");
            add_listed(&b, ",", ip && *ip ? ip : json_get_str(it.value, "hostname"));
        }
    }
    for (struct json_iter it = json_iter(kinds_print_at(o, "spec.externalIPs")); json_next(&it);)
        add_listed(&b, ",", json_str(it.value));
    put(w, &b, balanced ? "<pending>" : "<none>");
}

void kinds_print_service_ports(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    AUTO_STRBUF b = {0};
    for (struct json_iter it = json_iter(kinds_print_at(o, "spec.ports")); json_next(&it);) {
        const char *protocol = json_get_str(it.value, "protocol");
        int64_t outside = int_in(it.value, "nodePort");
        strbuf_addf(&b, "%s%lld", b.len ? "," : "", (long long)int_in(it.value, "port"));
        if (outside > 0)
            strbuf_addf(&b, ":%lld", (long long)outside);
        strbuf_addf(&b, "/%s", protocol ? protocol : "TCP");
    }
    put(w, &b, "<none>");
}

/* Three, and how many more there are. */
struct few {
    struct strbuf text;
    size_t count;
};

static void few_add(struct few *f, const char *s)
{
    if (f->count++ < 3)
        add_listed(&f->text, ",", s);
}

static void few_put(struct few *f, const char *when_empty, struct json_writer *w)
{
    if (f->count > 3)
        strbuf_addf(&f->text, " + %zu more...", f->count - 3);
    put(w, &f->text, when_empty);
    strbuf_deinit(&f->text);
}

void kinds_print_endpoints(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    struct few f = {.count = 0};
    AUTO_STRBUF one = {0};
    for (struct json_iter s = json_iter(json_get(o, "subsets")); json_next(&s);) {
        json *addresses = json_get(s.value, "addresses"), *ports = json_get(s.value, "ports");
        for (struct json_iter p = json_iter(ports); json_next(&p);)
            for (struct json_iter a = json_iter(addresses); json_next(&a);) {
                strbuf_reset(&one);
                strbuf_addf(&one, "%s:%lld", str_or_empty(json_get_str(a.value, "ip")),
                            (long long)int_in(p.value, "port"));
                few_add(&f, strbuf_str(&one));
            }
        if (json_len(ports) == 0)
            for (struct json_iter a = json_iter(addresses); json_next(&a);)
                few_add(&f, json_get_str(a.value, "ip"));
    }
    few_put(&f, "<none>", w);
}

void kinds_print_slice_ports(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    struct few f = {.count = 0};
    AUTO_STRBUF one = {0};
    for (struct json_iter p = json_iter(json_get(o, "ports")); json_next(&p);) {
        strbuf_reset(&one);
        strbuf_addf(&one, "%lld", (long long)int_in(p.value, "port"));
        few_add(&f, int_in(p.value, "port") ? strbuf_str(&one) : "*");
    }
    few_put(&f, "<unset>", w);
}

void kinds_print_slice_endpoints(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    struct few f = {.count = 0};
    for (struct json_iter e = json_iter(json_get(o, "endpoints")); json_next(&e);)
        for (struct json_iter a = json_iter(json_get(e.value, "addresses")); json_next(&a);)
            few_add(&f, json_str(a.value));
    few_put(&f, "<unset>", w);
}

/* ---- volumes ------------------------------------------------------------------------------------ */

static void put_modes(json *modes, struct json_writer *w)
{
    static const char *const words[][2] = {{"ReadWriteOnce", "RWO"},
                                           {"ReadOnlyMany", "ROX"},
                                           {"ReadWriteMany", "RWX"},
                                           {"ReadWriteOncePod", "RWOP"}};
    AUTO_STRBUF b = {0};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (struct json_iter it = json_iter(modes); json_next(&it);)
            if (str_eq(json_str(it.value), words[i][0])) {
                add_listed(&b, ",", words[i][1]);
                break;
            }
    put(w, &b, "");
}

void kinds_print_volume_modes(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    put_modes(kinds_print_at(o, "spec.accessModes"), w);
}

void kinds_print_claim_modes(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    bool bound = json_str_len(kinds_print_at(o, "spec.volumeName")) > 0;
    put_modes(bound ? kinds_print_at(o, "status.accessModes") : NULL, w);
}

void kinds_print_volume_phase(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    if (kinds_print_at(o, "metadata.deletionTimestamp"))
        json_put_str(w, "Terminating");
    else
        json_put_str(w, str_or_empty(json_str(kinds_print_at(o, "status.phase"))));
}

void kinds_print_volume_claim(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    json *claim = kinds_print_at(o, "spec.claimRef");
    AUTO_STRBUF b = {0};
    if (json_is_object(claim))
        strbuf_addf(&b, "%s/%s", str_or_empty(json_get_str(claim, "namespace")),
                    str_or_empty(json_get_str(claim, "name")));
    put(w, &b, "");
}

void kinds_print_storage_class_name(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    json *notes = kinds_print_at(o, "metadata.annotations");
    const char *name = json_get_str(notes, "volume.beta.kubernetes.io/storage-class");
    json_put_str(w,
                 name ? name : str_or_empty(json_str(kinds_print_at(o, "spec.storageClassName"))));
}

void kinds_print_storage_class_title(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    json *notes = kinds_print_at(o, "metadata.annotations");
    const char *is = json_get_str(notes, "storageclass.kubernetes.io/is-default-class");
    AUTO_STRBUF b = {0};
    strbuf_addf(&b, "%s%s", str_or_empty(json_str(kinds_print_at(o, "metadata.name"))),
                str_eq(is, "true") ? " (default)" : "");
    put(w, &b, "");
}

void kinds_print_expansion(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    json_put_bool(w, json_get_bool(o, "allowVolumeExpansion", false));
}

void kinds_print_driver_modes(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    AUTO_STRBUF b = {0};
    json *modes = kinds_print_at(o, "spec.volumeLifecycleModes");
    for (struct json_iter it = json_iter(modes); json_next(&it);)
        add_listed(&b, ",", json_str(it.value));
    put(w, &b, "Persistent");
}

/* ---- quotas and budgets ------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
    const char *const *x = a;
    const char *const *y = b;
    return strcmp(*x, *y);
}

/* "count/pods: 1/4, cpu: 2/8" of the amounts whose names begin with "limits.", or of the others. */
static void put_quota(json *o, bool limits, struct json_writer *w)
{
    json *hard = kinds_print_at(o, "status.hard");
    json *used = kinds_print_at(o, "status.used");
    struct VEC(const char *) names = {0};
    for (struct json_iter it = json_iter(hard); json_next(&it);)
        if (it.key && str_starts(it.key, "limits.") == limits)
            vec_push(&names, it.key);
    if (names.len > 0)
        qsort(names.items, names.len, sizeof *names.items, by_key);
    AUTO_STRBUF b = {0};
    for (size_t i = 0; i < names.len; i++) {
        const char *now = json_get_str(used, names.items[i]);
        strbuf_addf(&b, "%s%s: %s/%s", i ? ", " : "", names.items[i], now ? now : "0",
                    str_or_empty(json_get_str(hard, names.items[i])));
    }
    vec_deinit(&names);
    put(w, &b, "");
}

void kinds_print_quota_requests(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    put_quota(o, false, w);
}

void kinds_print_quota_limits(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    put_quota(o, true, w);
}

/* A number or a percentage, as text. */
static void put_amount(json *v, struct json_writer *w)
{
    const char *number = json_number_text(v);
    json_put_str(w, number ? number : json_str(v) ? json_str(v) : "N/A");
}

void kinds_print_pdb_min(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    put_amount(kinds_print_at(o, "spec.minAvailable"), w);
}

void kinds_print_pdb_max(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    put_amount(kinds_print_at(o, "spec.maxUnavailable"), w);
}

/* ---- who may do what ---------------------------------------------------------------------------- */

void kinds_print_role_ref(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    json *role = json_get(o, "roleRef");
    AUTO_STRBUF b = {0};
    strbuf_addf(&b, "%s/%s", str_or_empty(json_get_str(role, "kind")),
                str_or_empty(json_get_str(role, "name")));
    put(w, &b, "");
}

static void put_subjects(json *o, const char *kind, struct json_writer *w)
{
    AUTO_STRBUF b = {0};
    for (struct json_iter it = json_iter(json_get(o, "subjects")); json_next(&it);) {
        if (!str_eq(json_get_str(it.value, "kind"), kind))
            continue;
        if (b.len > 0)
            strbuf_adds(&b, ", ");
        if (str_eq(kind, "ServiceAccount"))
            strbuf_addf(&b, "%s/", str_or_empty(json_get_str(it.value, "namespace")));
        strbuf_adds(&b, str_or_empty(json_get_str(it.value, "name")));
    }
    put(w, &b, "");
}

void kinds_print_role_users(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    put_subjects(o, "User", w);
}

void kinds_print_role_groups(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    put_subjects(o, "Group", w);
}

void kinds_print_role_accounts(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    put_subjects(o, "ServiceAccount", w);
}

void kinds_print_param_kind(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    json *param = kinds_print_at(o, "spec.paramKind");
    AUTO_STRBUF b = {0};
    if (json_is_object(param))
        strbuf_addf(&b, "%s/%s", str_or_empty(json_get_str(param, "apiVersion")),
                    str_or_empty(json_get_str(param, "kind")));
    put(w, &b, "<unset>");
}

void kinds_print_param_ref(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    json *param = kinds_print_at(o, "spec.paramRef");
    const char *ns = json_get_str(param, "namespace");
    AUTO_STRBUF b = {0};
    if (json_is_object(param)) {
        const char *name = json_get_str(param, "name");
        if (ns && *ns)
            strbuf_addf(&b, "%s/", ns);
        strbuf_adds(&b, name && *name ? name : "*");
    }
    put(w, &b, "<unset>");
}

/* ---- owners and states -------------------------------------------------------------------------- */

/* "daemonset.apps/name" of the owner that controls the object. */
void kinds_print_controller(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    AUTO_STRBUF b = {0};
    json *owners = kinds_print_at(o, "metadata.ownerReferences");
    for (struct json_iter it = json_iter(owners); json_next(&it);) {
        if (!json_get_bool(it.value, "controller", false))
            continue;
        for (const char *s = str_or_empty(json_get_str(it.value, "kind")); *s; s++)
            strbuf_addc(&b, (char)tolower((unsigned char)*s));
        const char *version = str_or_empty(json_get_str(it.value, "apiVersion"));
        const char *slash = strchr(version, '/');
        if (slash)
            strbuf_addf(&b, ".%.*s", (int)(slash - version), version);
        strbuf_addf(&b, "/%s", str_or_empty(json_get_str(it.value, "name")));
        break;
    }
    put(w, &b, "<none>");
}

void kinds_print_tfjob_state(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    const char *newest = NULL;
    for (struct json_iter it = json_iter(kinds_print_at(o, "status.conditions")); json_next(&it);)
        newest = json_get_str(it.value, "type");
    json_put_str(w, str_or_empty(newest));
}

void kinds_print_claim_state(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    AUTO_STRBUF b = {0};
    if (kinds_print_at(o, "metadata.deletionTimestamp"))
        add_listed(&b, ",", "deleted");
    if (!kinds_print_at(o, "status.allocation"))
        add_listed(&b, ",", "pending");
    else
        add_listed(&b, ",", "allocated");
    if (json_len(kinds_print_at(o, "status.reservedFor")) > 0)
        add_listed(&b, ",", "reserved");
    put(w, &b, "");
}
