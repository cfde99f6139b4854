// SPDX-License-Identifier: Apache-2.0
/*
 * kinds_print - cells that are more than a field: ages, nodes, Events, replicas, Jobs, quotas.
 *
 * Only what the pages (README, howto), the demo and test/integration/suite_kubectl.py show or read
 * is here, in the real server's words, which differ from column to column where a value is missing
 * ("<none>", "<unknown>", nothing). Other columns of a real server (a Job's status and duration, a
 * quota's limits, a TFJob's state, Events of events.k8s.io, readiness gates, when a container was
 * restarted) are left out: `-o yaml` shows the fields.
 */
#include "test/local/kinds/kinds_print.h"

#include <ctype.h>
#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/vec.h"

enum { SECOND_NS = 1000000000 };

static void put(struct json_writer *w, const struct strbuf *b)
{
    json_put_str_n(w, strbuf_str(b), b->len);
}

/* "<none>" for an empty text. */
static void put_or_none(struct json_writer *w, const struct strbuf *b)
{
    if (b->len == 0)
        json_put_str(w, "<none>");
    else
        put(w, b);
}

static void add_listed(struct strbuf *b, const char *separator, const char *s)
{
    if (b->len > 0)
        strbuf_adds(b, separator);
    strbuf_adds(b, s);
}

/* ---- times ---- */

/* One unit while it says enough, two where the second one still matters: each row is a span in
 * which the form stays the same. */
static const struct span {
    int64_t until_s; /* exclusive */
    int64_t unit_s;
    const char *unit;
    int64_t small_s; /* 0: only one unit */
    const char *small;
} spans[] = {
    {120, 1, "s", 0, ""},
    {600, 60, "m", 1, "s"},
    {3 * 3600, 60, "m", 0, ""},
    {8 * 3600, 3600, "h", 60, "m"},
    {48 * 3600, 3600, "h", 0, ""},
    {8 * 86400, 86400, "d", 3600, "h"},
    {2 * 365 * 86400, 86400, "d", 0, ""},
    {8 * 365 * 86400LL, 365 * 86400, "y", 86400, "d"},
    {INT64_MAX, 365 * 86400, "y", 0, ""},
};

void kinds_print_duration(int64_t ns, struct strbuf *out)
{
    int64_t s = ns / SECOND_NS;
    if (s < -1) {
        strbuf_adds(out, "<invalid>");
        return;
    }
    if (s < 0)
        s = 0;
    const struct span *p = spans;
    while (s >= p->until_s)
        p++;
    strbuf_addf(out, "%lld%s", (long long)(s / p->unit_s), p->unit);
    int64_t rest = p->small_s ? s % p->unit_s / p->small_s : 0;
    if (rest > 0)
        strbuf_addf(out, "%lld%s", (long long)rest, p->small);
}

void kinds_print_since(const char *stamp, int64_t now_ns, struct strbuf *out)
{
    int64_t then = stamp ? clock_parse_rfc3339(stamp) : -1;
    if (then < 0)
        strbuf_adds(out, "<unknown>");
    else
        kinds_print_duration(now_ns - then, out);
}

json *kinds_print_at(json *object, const char *path)
{
    char key[128];
    while (object) {
        size_t n = strcspn(path, ".");
        if (n >= sizeof key)
            return NULL;
        memcpy(key, path, n);
        key[n] = '\0';
        object = json_get(object, key);
        if (path[n] == '\0')
            break;
        path += n + 1;
    }
    return object;
}

static int64_t int_at(json *object, const char *path)
{
    int64_t n = 0;
    json_int(kinds_print_at(object, path), &n);
    return n;
}

static void put_since(json *stamp, int64_t now_ns, struct json_writer *w)
{
    AUTO_STRBUF b = {0};
    kinds_print_since(json_str(stamp), now_ns, &b);
    put(w, &b);
}

void kinds_print_age(json *o, int64_t now_ns, struct json_writer *w)
{
    put_since(kinds_print_at(o, "metadata.creationTimestamp"), now_ns, w);
}

/* ---- nodes ---- */

static json *condition(json *object, const char *type)
{
    json *all = kinds_print_at(object, "status.conditions");
    for (struct json_iter it = json_iter(all); json_next(&it);)
        if (str_eq(json_get_str(it.value, "type"), type))
            return it.value;
    return NULL;
}

static bool condition_true(json *object, const char *type)
{
    return str_eq(json_get_str(condition(object, type), "status"), "True");
}

void kinds_print_node_status(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    AUTO_STRBUF b = {0};
    strbuf_adds(&b, !condition(o, "Ready")       ? "Unknown"
                    : condition_true(o, "Ready") ? "Ready"
                                                 : "NotReady");
    if (json_bool(kinds_print_at(o, "spec.unschedulable"), false))
        strbuf_adds(&b, ",SchedulingDisabled");
    put(w, &b);
}

static int compare_strings(const void *a, const void *b)
{
    const char *const *x = a;
    const char *const *y = b;
    return strcmp(*x, *y);
}

struct words VEC(const char *);

static void put_sorted(struct words *words, const char *separator, struct json_writer *w)
{
    AUTO_STRBUF b = {0};
    if (words->len > 0)
        qsort(words->items, words->len, sizeof *words->items, compare_strings);
    for (size_t i = 0; i < words->len; i++)
        if (i == 0 || !str_eq(words->items[i], words->items[i - 1]))
            add_listed(&b, separator, words->items[i]);
    put_or_none(w, &b);
    vec_deinit(words);
}

void kinds_print_node_roles(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    static const char prefix[] = "node-role.kubernetes.io/";
    struct words roles = {0};
    for (struct json_iter it = json_iter(kinds_print_at(o, "metadata.labels")); json_next(&it);) {
        if (str_starts(it.key, prefix) && it.key[sizeof prefix - 1])
            vec_push(&roles, it.key + sizeof prefix - 1);
        else if (str_eq(it.key, "kubernetes.io/role") && json_str_len(it.value) > 0)
            vec_push(&roles, json_str(it.value));
    }
    put_sorted(&roles, ",", w);
}

static void put_address(json *o, const char *type, struct json_writer *w)
{
    for (struct json_iter it = json_iter(kinds_print_at(o, "status.addresses")); json_next(&it);) {
        if (str_eq(json_get_str(it.value, "type"), type)) {
            json_put_str(w, json_get_str(it.value, "address"));
            return;
        }
    }
    json_put_str(w, "<none>");
}

void kinds_print_node_internal_ip(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    put_address(o, "InternalIP", w);
}

void kinds_print_node_external_ip(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    put_address(o, "ExternalIP", w);
}

/* ---- Events ---- */

void kinds_print_event_last(json *o, int64_t now_ns, struct json_writer *w)
{
    put_since(json_get(o, "lastTimestamp"), now_ns, w);
}

void kinds_print_event_object(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    json *about = json_get(o, "involvedObject");
    AUTO_STRBUF b = {0};
    for (const char *s = str_or_empty(json_get_str(about, "kind")); *s; s++)
        strbuf_addc(&b, (char)tolower((unsigned char)*s));
    const char *name = json_get_str(about, "name");
    if (name && *name)
        strbuf_addf(&b, "/%s", name);
    put(w, &b);
}

/* ---- what makes pods ---- */

void kinds_print_ready_of_replicas(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    AUTO_STRBUF b = {0};
    strbuf_addf(&b, "%lld/%lld", (long long)int_at(o, "status.readyReplicas"),
                (long long)int_at(o, "spec.replicas"));
    put(w, &b);
}

void kinds_print_job_completions(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    AUTO_STRBUF b = {0};
    int64_t needed = 1;
    (void)json_int(kinds_print_at(o, "spec.completions"), &needed);
    strbuf_addf(&b, "%lld/%lld", (long long)int_at(o, "status.succeeded"), (long long)needed);
    put(w, &b);
}

/* ---- quotas ---- */

/* "count/pods: 1/4, cpu: 2/8" */
void kinds_print_quota(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    json *hard = kinds_print_at(o, "status.hard"), *used = kinds_print_at(o, "status.used");
    struct words names = {0};
    for (struct json_iter it = json_iter(hard); json_next(&it);)
        if (it.key)
            vec_push(&names, it.key);
    if (names.len > 0)
        qsort(names.items, names.len, sizeof *names.items, compare_strings);
    AUTO_STRBUF b = {0};
    for (size_t i = 0; i < names.len; i++) {
        const char *now = json_get_str(used, names.items[i]);
        strbuf_addf(&b, "%s%s: %s/%s", i ? ", " : "", names.items[i], now ? now : "0",
                    str_or_empty(json_get_str(hard, names.items[i])));
    }
    vec_deinit(&names);
    put(w, &b);
}
