// SPDX-License-Identifier: Apache-2.0
/*
 * bench_policies - what ResourcePolicies cost in the scheduler's model as pods and policies grow
 * together, 20 pods for each policy of one namespace:
 *
 *     created      policies that each select their 20 pods, after all pods
 *     overlapping  policies that each select half of 40 pods by two labels, one of which all have
 *     one-edited   one policy that selects all pods, edited 10 times
 *     small-edited one policy that selects 20 pods, edited once for each policy there is
 *     pods         pods, after all policies
 *     removed      policies
 *
 * Three sizes each, CPU time of this thread, the best of three; the exponent is fitted through the
 * three. The goal of each is n log n: an exponent of at most 1.15. Decoding is not timed. The
 * smallest size is larger than the caches, which would count as growth. The last line is the time
 * for all policies of the smallest size, 1,000 after 20,000 pods, as replay puts them one by one;
 * before policies were indexed a replay of these took 292 s.
 *
 *     bench_policies [POLICIES]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/kube/decode.h"
#include "lib/model/names.h"
#include "scheduler/cache/cluster.h"
#include "test/bench/result.h"

enum { POLICIES = 4000, PODS_EACH = 20, SIZES = 3, ROUNDS = 3, EDITS = 10, BEFORE_MS = 292000 };

enum { CREATED, OVERLAPPING, ONE_EDITED, SMALL_EDITED, PODS, REMOVED, KINDS };
static const char *const names[KINDS] = {"created",      "overlapping", "one-edited",
                                         "small-edited", "pods",        "removed"};

static json *parse(struct strbuf *text, struct json_doc **doc)
{
    struct error err = ERROR_INIT;
    if (json_parse(doc, strbuf_str(text), text->len, &err) < 0)
        result_fail("json", err.text);
    return json_root(*doc);
}

static struct pod *make_pod(size_t i)
{
    AUTO_STRBUF text = {0};
    AUTO_JSON *doc = NULL;
    struct pod *p = NULL;
    struct error err = ERROR_INIT;
    strbuf_addf(
        &text,
        "{\"metadata\":{\"namespace\":\"team\",\"name\":\"p%zu\",\"uid\":\"p%zu\","
        "\"labels\":{\"tier\":\"web\",\"app\":\"a%zu\",\"pair\":\"b%zu\",\"index\":\"%zu\"}"
        ",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},\"spec\":{\"schedulerName\":\"%s\""
        "%s,\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]}}",
        i, i, i / PODS_EACH, i / PODS_EACH / 2, i, NAME_SCHEDULER,
        i % 2 == 0 ? ",\"nodeName\":\"n1\"" : "");
    if (decode_pod(parse(&text, &doc), &p, &err) < 0)
        result_fail("pod", err.text);
    return p;
}

static struct policy *make_policy(const char *name, const char *selector, int max)
{
    AUTO_STRBUF text = {0};
    AUTO_JSON *doc = NULL;
    struct policy *p = NULL;
    struct error err = ERROR_INIT;
    strbuf_addf(&text,
                "{\"metadata\":{\"namespace\":\"team\",\"name\":\"%s\",\"uid\":\"u-%s\","
                "\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},\"spec\":{\"selector\":{%s},"
                "\"units\":[{\"resource\":\"ecs\",\"max\":%d},{\"resource\":\"ecs\"}]}}",
                name, name, selector, max);
    if (decode_resource_policy(parse(&text, &doc), &p, &err) < 0 || p->invalid != NULL)
        result_fail("policy", err.text);
    return p;
}

/* The i-th of those that each select an app, or a pair of apps by another label too. */
static struct policy *make_own(size_t i, bool overlapping, int max)
{
    char name[32], selector[64];
    (void)str_format(name, sizeof name, "w%zu", i);
    (void)str_format(selector, sizeof selector,
                     overlapping ? "\"tier\":\"web\",\"pair\":\"b%zu\"" : "\"app\":\"a%zu\"",
                     overlapping ? i / 2 : i);
    return make_policy(name, selector, max);
}

static struct pod **make_pods(size_t n)
{
    struct pod **all = calloc(n, sizeof *all);
    if (all == NULL)
        result_fail("memory", "none");
    for (size_t i = 0; i < n; i++)
        all[i] = make_pod(i);
    return all;
}

static struct policy **make_policies(size_t n, bool overlapping)
{
    struct policy **all = calloc(n, sizeof *all);
    if (all == NULL)
        result_fail("memory", "none");
    for (size_t i = 0; i < n; i++)
        all[i] = make_own(i, overlapping, 1);
    return all;
}

static int64_t put_pods(struct cluster *c, struct pod **all, size_t n)
{
    int64_t began_us = result_cpu_us();
    for (size_t i = 0; i < n; i++)
        (void)cluster_put_pod(c, all[i], NULL);
    int64_t took_us = result_cpu_us() - began_us;
    free(all);
    return took_us;
}

static int64_t put_policies(struct cluster *c, struct policy **all, size_t n)
{
    int64_t began_us = result_cpu_us();
    for (size_t i = 0; i < n; i++)
        (void)policies_put(c, all[i]);
    int64_t took_us = result_cpu_us() - began_us;
    free(all);
    return took_us;
}

static int64_t edit(struct cluster *c, const char *selector, size_t times)
{
    int64_t took_us = 0;
    (void)policies_put(c, make_policy("edited", selector, 1));
    for (size_t i = 0; i < times; i++) {
        struct policy *p = make_policy("edited", selector, 2 + (int)i);
        int64_t began_us = result_cpu_us();
        (void)policies_put(c, p);
        took_us += result_cpu_us() - began_us;
    }
    return took_us;
}

static int64_t remove_policies(struct cluster *c, size_t n)
{
    char key[32];
    int64_t began_us = result_cpu_us();
    for (size_t i = 0; i < n; i++) {
        (void)str_format(key, sizeof key, "team/w%zu", i);
        (void)policies_remove(c, key, NULL);
    }
    return result_cpu_us() - began_us;
}

static int64_t measure(int kind, size_t n)
{
    static struct cluster c;
    int64_t took_us = 0;
    cluster_init(&c, NAME_SCHEDULER);
    if (kind == PODS)
        (void)put_policies(&c, make_policies(n, false), n);
    int64_t pods_us = put_pods(&c, make_pods(n * PODS_EACH), n * PODS_EACH);
    if (kind == PODS)
        took_us = pods_us;
    else if (kind == CREATED || kind == OVERLAPPING)
        took_us = put_policies(&c, make_policies(n, kind == OVERLAPPING), n);
    else if (kind == ONE_EDITED)
        took_us = edit(&c, "", EDITS);
    else if (kind == SMALL_EDITED)
        took_us = edit(&c, "\"app\":\"a1\"", n);
    else if (kind == REMOVED) {
        (void)put_policies(&c, make_policies(n, false), n);
        took_us = remove_policies(&c, n);
    }
    cluster_deinit(&c);
    return num_max(took_us, 1);
}

/* The slope of the line through the logarithms. */
static double fit(const size_t *n, const int64_t *us)
{
    double sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (size_t i = 0; i < SIZES; i++) {
        double x = log((double)n[i]), y = log((double)us[i]);
        sx += x, sy += y, sxx += x * x, sxy += x * y;
    }
    return (SIZES * sxy - sx * sy) / (SIZES * sxx - sx * sx);
}

int main(int argc, char **argv)
{
    int64_t largest = POLICIES;
    struct error err = ERROR_INIT;
    if (argc > 1 && num_parse_range(argv[1], 4, 100000, &largest, &err) < 0)
        result_fail("POLICIES", err.text);
    const size_t n[SIZES] = {(size_t)largest / 4, (size_t)largest / 2, (size_t)largest};
    int64_t created_us = 0;
    for (int kind = 0; kind < KINDS; kind++) {
        int64_t us[SIZES];
        for (size_t i = 0; i < SIZES; i++) {
            us[i] = INT64_MAX;
            for (int round = 0; round < ROUNDS; round++)
                us[i] = num_min(us[i], measure(kind, n[i]));
        }
        if (kind == CREATED)
            created_us = us[0];
        char name[64];
        (void)str_format(name, sizeof name, "policies-%s-exponent", names[kind]);
        struct result r = {
            .name = name, .unit = "exponent", .places = 2, .value = fit(n, us), .goal = 1.15};
        r.met = result_met(r.value <= r.goal);
        result_print(&r, "us=%lld,%lld,%lld policies=%zu,%zu,%zu", (long long)us[0],
                     (long long)us[1], (long long)us[2], n[0], n[1], n[2]);
    }
    struct result total = {.name = "policies-after-pods",
                           .unit = "ms",
                           .places = 1,
                           .value = (double)created_us / 1000,
                           .baseline = largest == POLICIES ? BEFORE_MS : 0,
                           .goal = 1000};
    total.met = result_met(total.value <= total.goal);
    result_print(&total, "policies=%zu pods=%zu", n[0], n[0] * PODS_EACH);
    return 0;
}
