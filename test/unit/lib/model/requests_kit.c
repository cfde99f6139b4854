// SPDX-License-Identifier: Apache-2.0
#include "test/unit/lib/model/requests_kit.h"

#include "lib/base/file.h"
#include "lib/base/str.h"
#include "lib/kube/decode.h"
#include "test/unit/lib/base/expect.h"

#define TABLE "test/unit/lib/model/requests.json"
#define ONE_CARD " on one card"

/* ---- the table ------------------------------------------------------------------------------- */

static void put_containers(struct json_writer *w, const char *list, char prefix, json *rows)
{
    size_t i = 0;
    if (json_len(rows) == 0)
        return;
    json_key(w, list);
    json_array_begin(w);
    for (struct json_iter it = json_iter(rows); json_next(&it); i++) {
        json *limits = json_get(it.value, "limits"), *requests = json_get(it.value, "requests");
        char name[8];
        (void)str_format(name, sizeof name, "%c%zu", prefix, i);
        json_object_begin(w);
        json_kv_str(w, "name", name);
        json_kv_str(w, "image", "app");
        if (json_bool(json_get(it.value, "sidecar"), false))
            json_kv_str(w, "restartPolicy", "Always");
        json_key(w, "resources");
        json_object_begin(w);
        if (limits) {
            json_key(w, "limits");
            json_put_value(w, limits);
        }
        if (requests || limits) {
            json_key(w, "requests");
            json_put_value(w, requests ? requests : limits);
        }
        json_object_end(w);
        json_object_end(w);
    }
    json_array_end(w);
}

static const char *print_pod(json *row, struct arena *a)
{
    AUTO_STRBUF text = {0};
    struct json_writer w;
    json_writer_init(&w, &text);
    json_object_begin(&w);
    json_kv_str(&w, "apiVersion", "v1");
    json_kv_str(&w, "kind", "Pod");
    json_key(&w, "metadata");
    json_object_begin(&w);
    json_kv_str(&w, "namespace", "d");
    json_kv_str(&w, "name", "p");
    json_kv_str(&w, "uid", "11111111-0000-4000-8000-000000000000");
    for (const char *const *list = (const char *const[]){"labels", "annotations", NULL}; *list;
         list++)
        if (json_get(row, *list)) {
            json_key(&w, *list);
            json_put_value(&w, json_get(row, *list));
        }
    json_object_end(&w);
    json_key(&w, "spec");
    json_object_begin(&w);
    json_kv_str(&w, "schedulerName", "ack-co-scheduler");
    put_containers(&w, "containers", 'c', json_get(row, "containers"));
    put_containers(&w, "initContainers", 'i', json_get(row, "init"));
    json_object_end(&w);
    json_object_end(&w);
    return arena_strdup(a, strbuf_str(&text));
}

static void read_errors(json *list, struct request_errors *out)
{
    for (struct json_iter it = json_iter(list); json_next(&it);) {
        assert_true(out->len < REQUEST_ERRORS_MAX);
        out->items[out->len++] = json_str(it.value);
    }
}

void requests_kit_each(void (*check)(const struct requests_row *row, struct arena *a))
{
    AUTO_STRBUF text = {0};
    AUTO_JSON *doc = NULL;
    struct error err = ERROR_INIT;
    size_t rows = 0;
    if (file_read(TABLE, 1 << 20, &text, &err) < 0 ||
        json_parse(&doc, text.ptr, text.len, &err) < 0)
        fail_msg(TABLE ": %s", err.text);
    for (struct json_iter it = json_iter(json_get(json_root(doc), "rows")); json_next(&it);
         rows++) {
        struct arena a;
        arena_init(&a, 0);
        struct requests_row row = {.name = json_get_str(it.value, "row"),
                                   .pod = print_pod(it.value, &a),
                                   .gpu = str_or_empty(json_get_str(it.value, "gpu")),
                                   .cpu = str_or_empty(json_get_str(it.value, "cpu")),
                                   .containers = json_get(it.value, "containers"),
                                   .init = json_get(it.value, "init")};
        read_errors(json_get(it.value, "gpuErrors"), &row.gpu_errors);
        read_errors(json_get(it.value, "cpuErrors"), &row.cpu_errors);
        check(&row, &a);
        arena_deinit(&a);
    }
    assert_true(rows > 0);
}

struct pod *requests_kit_pod(const struct requests_row *row)
{
    AUTO_JSON *doc = NULL;
    struct pod *p = NULL;
    struct error err = ERROR_INIT;
    if (json_parse(&doc, row->pod, strlen(row->pod), &err) < 0 ||
        decode_pod(json_root(doc), &p, &err) < 0)
        fail_msg("%s: %s", row->name, err.text);
    return p;
}

bool requests_kit_is_legal(const struct requests_row *row)
{
    return row->gpu_errors.len == 0 && row->cpu_errors.len == 0;
}

bool requests_kit_on_one_card(const struct requests_row *row)
{
    return str_ends(row->gpu, ONE_CARD);
}

const char *requests_kit_given(const struct requests_row *row, struct arena *a)
{
    size_t cut = requests_kit_on_one_card(row) ? strlen(ONE_CARD) : 0;
    return arena_strndup(a, row->gpu, strlen(row->gpu) - cut);
}

/* ---- in its words ---------------------------------------------------------------------------- */

static void print_share(struct strbuf *b, uint32_t container, int64_t gib, int64_t percent)
{
    strbuf_addf(b, "%s%u=%lld", b->len > 0 ? " " : "", container, (long long)gib);
    if (percent > 0)
        strbuf_addf(b, "/%lld", (long long)percent);
}

const char *requests_kit_gpu(const struct gpu_request *r, struct arena *a)
{
    AUTO_STRBUF b = {0};
    int64_t gib = 0, percent = 0;
    for (size_t i = 0; i < r->shares_len; i++) {
        print_share(&b, r->shares[i].container, r->shares[i].gib, r->shares[i].percent);
        gib += r->shares[i].gib;
        percent += r->shares[i].percent;
    }
    if (r->spread_over > 1)
        strbuf_addf(&b, " over %lld", (long long)r->spread_over);
    strbuf_adds(&b, r->one_card ? ONE_CARD : "");
    if (r->total[GPU_REQUEST_CARDS] > 0)
        strbuf_addf(&b, "%lld cards", (long long)r->total[GPU_REQUEST_CARDS]);
    if (r->total[GPU_REQUEST_NVIDIA] > 0)
        strbuf_addf(&b, "%lld exclusive", (long long)r->total[GPU_REQUEST_NVIDIA]);
    if (gib != r->total[GPU_REQUEST_MEM] || percent != r->total[GPU_REQUEST_CORE])
        strbuf_adds(&b, ", which is not the sum");
    if (r->shared != (r->shares_len > 0) ||
        r->any != (r->shared || r->total[GPU_REQUEST_CARDS] > 0))
        strbuf_adds(&b, ", and the kind is wrong");
    return arena_strdup(a, strbuf_str(&b));
}

const char *requests_kit_cpu(const struct cpu_request *r, struct arena *a)
{
    static const char *const numa[] = {[CPU_REQUEST_BEST_EFFORT] = "",
                                       [CPU_REQUEST_RESTRICTED] = " restricted",
                                       [CPU_REQUEST_SINGLE] = " single"};
    static const char *const apart[] = {[CPU_REQUEST_BESIDE] = "",
                                        [CPU_REQUEST_APART_PREFERRED] = " rather-apart",
                                        [CPU_REQUEST_APART] = " apart"};
    AUTO_STRBUF b = {0};
    if (r == NULL)
        return "";
    for (size_t i = 0; i < r->each_len; i++)
        strbuf_addf(&b, "%u ", r->each[i]);
    strbuf_addf(&b, "= %u%s%s%s%s%s", r->cpus, r->insists ? " required" : "", numa[r->numa],
                apart[r->apart], r->burst ? " burst" : "", r->shared ? " shared" : "");
    return arena_strdup(a, strbuf_str(&b));
}

const char *requests_kit_grant(const struct grant *c, struct arena *a)
{
    AUTO_STRBUF b = {0};
    size_t over = 1;
    for (size_t i = 0, k; i < c->shares_len; i = k) {
        int64_t gib = 0, percent = 0;
        for (k = i; k < c->shares_len && c->shares[k].container == c->shares[i].container; k++) {
            gib += c->shares[k].gib;
            percent += c->shares[k].percent;
        }
        print_share(&b, c->shares[i].container, gib, percent);
        over = k - i;
    }
    if (over > 1)
        strbuf_addf(&b, " over %zu", over);
    if (c->group_len > 0)
        strbuf_addf(&b, "%zu cards", c->group_len);
    return arena_strdup(a, strbuf_str(&b));
}
