// SPDX-License-Identifier: Apache-2.0
/*
 * reflector_check - is a reflector's copy of the pods what the API server has? Driven by a script
 * that kills, stops and compacts.
 *
 *     reflector_check --kubeconfig FILE [--watch-idle 5s] ...     (every option of the Kubernetes
 *                                                                 API section)
 *
 * Commands on standard input, one answer line each:
 *     compare [MS]   lists the pods afresh, in pages, and compares them with the copy, object by
 *                    object; again until they are equal or MS
 *                    (10000) have passed:  "equal pods=12 lists=3 ms=140" or "different: pod ns/a:
 *                                          uid: ..."
 *     stats          "stats lists=3 watches=9 events=100 bookmarks=2 gone=1 failures=5
 *                    undecodable=0 rss_kib=9000"
 *     quit           stops the reflector: "stopped ms=12"
 * The end of input is quit. Exits 0 unless it could not start.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/map.h"
#include "lib/base/num.h"
#include "lib/base/options.h"
#include "lib/kube/decode.h"
#include "lib/kube/http.h"
#include "lib/kube/reflector.h"

enum { COMPARE_MS = 10000, PAUSE_MS = 50 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map copy; /* key → struct pod, under the lock */

static int decode(json *j, void **out, struct error *err)
{
    struct pod *p = NULL;
    int rc = decode_pod(j, &p, err);
    *out = p;
    return rc;
}

static void free_object(void *p)
{
    pod_free(p);
}

static void empty(struct map *m)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(m, &i, &key, &value);) {
        map_remove(m, key);
        pod_free(value);
    }
}

static bool deliver(void *arg, struct reflector_message *l)
{
    (void)arg;
    pthread_mutex_lock(&lock);
    if (l->event == REFLECTOR_RESET)
        empty(&copy);
    for (size_t i = 0; i < l->len; i++) {
        struct pod *p = l->objects[i];
        if (l->event == REFLECTOR_DELETE) {
            pod_free(map_remove(&copy, p->key));
            continue;
        }
        l->objects[i] = NULL;
        pod_free(map_put(&copy, p->key, p));
    }
    pthread_mutex_unlock(&lock);
    reflector_message_free(l);
    return true;
}

/* ---- the truth ------------------------------------------------------------------------------ */

static int list_page(struct kube_http *h, const struct kube_options *o, struct strbuf *token,
                     struct map *out, struct error *err)
{
    AUTO_STRBUF path = {0};
    AUTO_STRBUF body = {0};
    AUTO_JSON *doc = NULL;
    strbuf_addf(&path, "/api/v1/pods?limit=%lld&continue=", (long long)o->page_size);
    kube_http_escape(&path, strbuf_str(token));
    struct kube_request q = {
        .method = "GET", .path = strbuf_str(&path), .max_bytes = o->max_list_bytes};
    if (kube_http_do(h, &q, &body, NULL, NULL, err) < 0 ||
        json_parse(&doc, strbuf_str(&body), body.len, err) < 0)
        return -1;
    json *root = json_root(doc);
    strbuf_reset(token);
    strbuf_adds(token, str_or_empty(json_get_str(json_get(root, "metadata"), "continue")));
    for (struct json_iter it = json_iter(json_get(root, "items")); json_next(&it);) {
        struct pod *p;
        if (decode_pod(it.value, &p, err) < 0)
            return -1;
        pod_free(map_put(out, p->key, p));
    }
    return 0;
}

static int list(struct kube_http *h, const struct kube_options *o, struct map *out,
                struct error *err)
{
    AUTO_STRBUF token = {0};
    do
        if (list_page(h, o, &token, out, err) < 0)
            return -1;
    while (token.len > 0);
    return 0;
}

/* ---- comparing ------------------------------------------------------------------------------ */

static bool same_labels(const struct labels *a, const struct labels *b)
{
    bool same = a->len == b->len;
    for (size_t i = 0; same && i < a->len; i++)
        same = str_eq(a->items[i].key, b->items[i].key) &&
               str_eq(a->items[i].value, b->items[i].value);
    return same;
}

/* The name of the first field that differs, or NULL. */
static const char *difference(const struct pod *a, const struct pod *b)
{
    if (!str_eq(a->uid, b->uid))
        return "uid";
    if (!str_eq(a->resource_version, b->resource_version))
        return "resourceVersion";
    if (!str_eq(a->node, b->node))
        return "nodeName";
    if (!str_eq(a->scheduler, b->scheduler))
        return "schedulerName";
    if (a->phase != b->phase)
        return "phase";
    if (a->terminating != b->terminating || a->gated != b->gated || a->priority != b->priority ||
        a->created_ns != b->created_ns)
        return "terminating, gated, priority or creation time";
    if (!same_labels(&a->labels, &b->labels))
        return "labels";
    if (!same_labels(&a->annotations, &b->annotations))
        return "annotations";
    if (a->containers_len != b->containers_len ||
        a->init_containers_len != b->init_containers_len ||
        a->tolerations_len != b->tolerations_len)
        return "number of containers or tolerations";
    if (!resources_equal(&a->request, &b->request))
        return "request";
    if (!str_eq(a->scheduled.status, b->scheduled.status) ||
        !str_eq(a->scheduled.message, b->scheduled.message))
        return "PodScheduled condition";
    return NULL;
}

/* "" when equal. */
static void compare(const struct map *truth, char *out, size_t size)
{
    const char *key;
    void *value;
    out[0] = '\0';
    pthread_mutex_lock(&lock);
    for (size_t i = 0; !out[0] && map_next(truth, &i, &key, &value);) {
        const struct pod *want = value, *got = map_get(&copy, key);
        const char *field = got ? difference(want, got) : NULL;
        if (!got)
            str_format(out, size, "pod %s: not in the copy", key);
        else if (field)
            str_format(out, size, "pod %s: %s differs; version %s in the list, %s in the copy", key,
                       field, want->resource_version, got->resource_version);
    }
    for (size_t i = 0; !out[0] && map_next(&copy, &i, &key, &value);)
        if (!map_get(truth, key))
            str_format(out, size, "pod %s: in the copy only", key);
    pthread_mutex_unlock(&lock);
}

static void do_compare(struct kube_http *h, const struct kube_options *o, int64_t limit_ms)
{
    int64_t began = clock_mono_ms();
    char text[1024] = "";
    for (unsigned lists = 1;; lists++) {
        struct map truth;
        struct error err = ERROR_INIT;
        map_init(&truth);
        int rc = list(h, o, &truth, &err);
        if (rc == 0)
            compare(&truth, text, sizeof text);
        else
            str_format(text, sizeof text, "no list: %s", err.text);
        size_t pods = map_count(&truth);
        empty(&truth);
        map_deinit(&truth);
        int64_t took = clock_mono_ms() - began;
        if (!text[0]) {
            printf("equal pods=%zu lists=%u ms=%lld\n", pods, lists, (long long)took);
            return;
        }
        if (took >= limit_ms) {
            printf("different: %s\n", text);
            return;
        }
        clock_sleep_ms(PAUSE_MS);
    }
}

/* ---- commands ------------------------------------------------------------------------------- */

static int64_t resident_kib(void)
{
    char line[256];
    int64_t kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f)) {
        const char *p = line + 6 + strspn(line + 6, " \t");
        if (str_starts(line, "VmRSS:") && num_parse(p, strspn(p, "0123456789"), &kib, NULL) < 0)
            kib = -1;
    }
    if (f)
        fclose(f);
    return kib;
}

static void do_stats(const struct reflector *r)
{
    struct reflector_stats s;
    reflector_stats(r, &s);
    printf(
        "stats lists=%lld watches=%lld events=%lld bookmarks=%lld gone=%lld failures=%lld undecodable=%lld rss_kib=%lld\n",
        (long long)s.lists, (long long)s.watches, (long long)s.events, (long long)s.bookmarks,
        (long long)s.gone, (long long)s.failures, (long long)s.undecodable,
        (long long)resident_kib());
}

static void serve(const struct reflector *r, struct kube_http *h, const struct kube_options *o)
{
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\r\n")] = '\0';
        int64_t ms = COMPARE_MS;
        if (str_eq(line, "quit"))
            return;
        if (str_eq(line, "stats"))
            do_stats(r);
        else if (str_eq(line, "compare") || (str_starts(line, "compare ") &&
                                             num_parse_range(line + 8, 0, 3600000, &ms, NULL) == 0))
            do_compare(h, o, ms);
        else
            printf("unknown command: %s\n", line);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    static const struct option_program program = {
        .name = "reflector_check",
        .summary = "compares a reflector's copy of the pods with a fresh list",
        .synopsis = "[OPTION]...",
        .description = "Commands on standard input: compare [MS], stats, quit.\n"};
    struct kube_options options = {0};
    struct log_options logging = {0};
    const struct option_table tables[] = {{.rows = kube_option_rows, .target = &options},
                                          {.rows = log_option_rows, .target = &logging},
                                          {0}};
    struct options_operands operands;
    struct error err = ERROR_INIT;
    enum options_result parsed = options_parse(&program, tables, argc, argv, &operands, &err);
    if (parsed == OPTIONS_EXIT)
        return 0;
    struct kube_config *config = NULL;
    struct kube_http *http = NULL;
    struct reflector *reflector = NULL;
    options_apply_log(&logging, program.name);
    kube_http_global_init();
    map_init(&copy);
    struct reflector_config rc = {
        .kind = &kube_pods, .type = {.decode = decode, .free = free_object}, .deliver = deliver};
    int status = 0;
    if (parsed == OPTIONS_ERROR || kube_config_load(&config, &options, &err) < 0 ||
        kube_http_new(&http, config, &options, "reflector_check", &err) < 0 ||
        reflector_start(&reflector, config, &options, &rc, &err) < 0) {
        fprintf(stderr, "reflector_check: %s\n", err.text);
        status = 2;
    } else {
        serve(reflector, http, &options);
        int64_t began = clock_mono_ms();
        reflector_stop(reflector);
        printf("stopped ms=%lld\n", (long long)(clock_mono_ms() - began));
    }
    empty(&copy);
    map_deinit(&copy);
    kube_http_free(http);
    kube_config_free(config);
    kube_http_global_cleanup();
    return status;
}
