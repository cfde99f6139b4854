// SPDX-License-Identifier: Apache-2.0
#include "test/unit/scheduler/fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/base/json.h"
#include "lib/base/str.h"
#include "lib/kube/decode.h"
#include "lib/model/names.h"
#include "lib/model/topology.h"

static void put_amount(struct json_writer *w, const char *name, int64_t value, const char *unit)
{
    char text[64];
    if (value == 0)
        return;
    (void)str_format(text, sizeof text, "%lld%s", (long long)(value < 0 ? 0 : value), unit);
    json_kv_str(w, name, text);
}

static void put_pairs(struct json_writer *w, const char *key, const char *const *pairs,
                      const char *const *more)
{
    json_key(w, key);
    json_object_begin(w);
    for (const char *const *p = pairs; p != NULL && *p != NULL; p += 2)
        json_kv_str(w, p[0], p[1]);
    for (const char *const *p = more; p != NULL && *p != NULL; p += 2)
        if (p[1] != NULL)
            json_kv_str(w, p[0], p[1]);
    json_object_end(w);
}

static void put_container(struct json_writer *w, const char *name, const char *image,
                          const char *ports, const struct fixture_container *c)
{
    json_object_begin(w);
    json_kv_str(w, "name", name);
    if (image != NULL)
        json_kv_str(w, "image", image);
    if (ports != NULL) {
        AUTO_STRBUF list = {0};
        strbuf_addf(&list, "[%s]", ports);
        json_key(w, "ports");
        json_put_raw(w, strbuf_str(&list), list.len);
    }
    if (c->sidecar)
        json_kv_str(w, "restartPolicy", "Always");
    json_key(w, "resources");
    json_object_begin(w);
    for (int limits = 0; limits < 2; limits++) {
        json_key(w, limits ? "limits" : "requests");
        json_object_begin(w);
        put_amount(w, "cpu", c->cpu_milli, "m");
        put_amount(w, "memory", c->memory_bytes, "");
        put_amount(w, NAME_RES_GPU_MEM, c->gib, "");
        put_amount(w, NAME_RES_GPU_CORE, c->percent, "");
        put_amount(w, NAME_RES_GPU, c->cards, "");
        if (c->other != NULL)
            put_amount(w, c->other, c->other_amount, "");
        json_object_end(w);
    }
    json_object_end(w);
    json_object_end(w);
}

static void write_pod(struct json_writer *w, const struct fixture_pod *f)
{
    char text[64];
    json_object_begin(w);
    json_key(w, "metadata");
    json_object_begin(w);
    json_kv_str(w, "namespace", f->ns != NULL ? f->ns : "d");
    json_kv_str(w, "name", f->name);
    (void)str_format(text, sizeof text, "u-%s", f->name);
    json_kv_str(w, "uid", f->uid != NULL ? f->uid : text);
    (void)str_format(text, sizeof text, "2026-01-01T00:00:%02dZ", (int)f->created_s);
    json_kv_str(w, "creationTimestamp", text);
    if (f->terminating)
        json_kv_str(w, "deletionTimestamp", "2026-01-02T00:00:00Z");
    put_pairs(w, "labels", f->labels, NULL);
    put_pairs(w, "annotations", f->annotations, NULL);
    json_object_end(w);
    json_key(w, "spec");
    json_object_begin(w);
    json_kv_str(w, "schedulerName", f->scheduler != NULL ? f->scheduler : NAME_SCHEDULER);
    if (f->node != NULL)
        json_kv_str(w, "nodeName", f->node);
    json_kv_int(w, "priority", f->priority);
    json_key(w, "containers");
    json_array_begin(w);
    for (size_t i = 0; i < (f->containers > 0 ? f->containers : 1); i++) {
        (void)str_format(text, sizeof text, "c%zu", i);
        put_container(w, text, f->image, i == 0 ? f->ports : NULL, &f->c[i]);
    }
    json_array_end(w);
    if (f->has_init) {
        json_key(w, "initContainers");
        json_array_begin(w);
        put_container(w, "init", f->image, NULL, &f->init);
        json_array_end(w);
    }
    if (f->gated) {
        json_key(w, "schedulingGates");
        json_put_raw(w, "[{\"name\":\"wait\"}]", strlen("[{\"name\":\"wait\"}]"));
    }
    json_object_end(w);
    json_key(w, "status");
    json_object_begin(w);
    json_kv_str(w, "phase", f->phase != NULL ? f->phase : "Pending");
    if (f->nominated != NULL)
        json_kv_str(w, "nominatedNodeName", f->nominated);
    json_object_end(w);
    json_object_end(w);
}

static void write_node(struct json_writer *w, const struct fixture_node *f)
{
    json_object_begin(w);
    json_key(w, "metadata");
    json_object_begin(w);
    json_kv_str(w, "name", f->name);
    json_kv_str(w, "uid", f->name);
    put_pairs(w, "labels", f->labels,
              (const char *const[]){NAME_LABEL_GPU_PLACEMENT, f->placement, NULL});
    put_pairs(w, "annotations", NULL,
              (const char *const[]){NAME_ANN_GPU_INVENTORY, f->inventory, NAME_ANN_CPU_TOPOLOGY,
                                    f->topology, NULL});
    json_object_end(w);
    json_key(w, "spec");
    json_object_begin(w);
    json_kv_bool(w, "unschedulable", f->unschedulable);
    if (f->taints != NULL) {
        json_key(w, "taints");
        json_put_raw(w, f->taints, strlen(f->taints));
    }
    json_object_end(w);
    json_key(w, "status");
    json_object_begin(w);
    json_key(w, "allocatable");
    json_object_begin(w);
    put_amount(w, "cpu", f->cpu_milli != 0 ? f->cpu_milli : 8000, "m");
    put_amount(w, "memory", f->memory_bytes != 0 ? f->memory_bytes : INT64_C(16) << 30, "");
    put_amount(w, "pods", f->pods != 0 ? f->pods : 110, "");
    put_amount(w, NAME_RES_GPU_MEM, f->gib, "");
    put_amount(w, NAME_RES_GPU_CORE, f->percent, "");
    put_amount(w, NAME_RES_GPU, f->cards, "");
    if (f->other != NULL)
        put_amount(w, f->other, f->other_amount, "");
    json_object_end(w);
    if (f->image != NULL) {
        AUTO_STRBUF list = {0};
        strbuf_addf(&list, "[{\"names\":[\"%s\"],\"sizeBytes\":%lld}]", f->image,
                    (long long)f->image_bytes);
        json_key(w, "images");
        json_put_raw(w, strbuf_str(&list), list.len);
    }
    json_object_end(w);
    json_object_end(w);
}

/* A fixture that cannot be decoded is a mistake in the test. */
static void decoded(int rc, const struct error *err, const struct strbuf *text)
{
    if (rc == 0)
        return;
    fprintf(stderr, "fixture: %s\n%s\n", err->text, strbuf_str(text));
    abort();
}

struct pod *fixture_make_pod(const struct fixture_pod *f)
{
    AUTO_STRBUF text;
    struct json_writer w;
    struct error err = ERROR_INIT;
    AUTO_JSON *doc = NULL;
    struct pod *p = NULL;
    strbuf_init(&text);
    json_writer_init(&w, &text);
    write_pod(&w, f);
    if (f->spec != NULL) { /* more members, right after the brace that opens the spec */
        const char *spec = strstr(strbuf_str(&text), "\"spec\":{") + strlen("\"spec\":{");
        AUTO_STRBUF all;
        strbuf_init(&all);
        strbuf_add(&all, text.ptr, (size_t)(spec - text.ptr));
        strbuf_addf(&all, "%s,%s", f->spec, spec);
        decoded(json_parse(&doc, strbuf_str(&all), all.len, &err), &err, &all);
    } else {
        decoded(json_parse(&doc, strbuf_str(&text), text.len, &err), &err, &text);
    }
    struct error why = {.code = ERROR_INVALID, .text = "spec: must be an object, not array"};
    decoded(f->unreadable ? decode_pod_remains(json_root(doc), &why, &p, &err)
                          : decode_pod(json_root(doc), &p, &err),
            &err, &text);
    return p;
}

struct node *fixture_make_node(const struct fixture_node *f)
{
    AUTO_STRBUF text;
    struct json_writer w;
    struct error err = ERROR_INIT;
    AUTO_JSON *doc = NULL;
    struct node *n = NULL;
    strbuf_init(&text);
    json_writer_init(&w, &text);
    write_node(&w, f);
    decoded(json_parse(&doc, strbuf_str(&text), text.len, &err), &err, &text);
    decoded(decode_node(json_root(doc), &n, &err), &err, &text);
    return n;
}

struct pod_group *fixture_make_group_with(const char *name, int32_t min, enum pod_group_api api,
                                          const char *const *annotations)
{
    static const char *const versions[] = {[POD_GROUP_SIGS] = NAME_GROUP_PODGROUP "/v1alpha1",
                                           [POD_GROUP_X] = NAME_GROUP_PODGROUP_X "/v1alpha1",
                                           [POD_GROUP_NATIVE] =
                                               NAME_GROUP_PODGROUP_NATIVE "/v1alpha2"};
    AUTO_STRBUF text;
    struct json_writer w;
    struct error err = ERROR_INIT;
    AUTO_JSON *doc = NULL;
    struct pod_group *g = NULL;
    strbuf_init(&text);
    json_writer_init(&w, &text);
    json_object_begin(&w);
    json_kv_str(&w, "apiVersion", versions[api]);
    json_kv_str(&w, "kind", "PodGroup");
    json_key(&w, "metadata");
    json_object_begin(&w);
    json_kv_str(&w, "namespace", "d");
    json_kv_str(&w, "name", name);
    json_key(&w, "annotations");
    json_object_begin(&w);
    for (size_t i = 0; annotations != NULL && annotations[i] != NULL; i += 2)
        json_kv_str(&w, annotations[i], annotations[i + 1]);
    json_object_end(&w);
    json_object_end(&w);
    strbuf_addf(&text,
                api == POD_GROUP_NATIVE
                    ? ",\"spec\":{\"schedulingPolicy\":{\"gang\":{\"minCount\":%d}}}}"
                    : ",\"spec\":{\"minMember\":%d}}",
                (int)min);
    decoded(json_parse(&doc, strbuf_str(&text), text.len, &err), &err, &text);
    decoded(decode_pod_group(json_root(doc), &g, &err), &err, &text);
    return g;
}

struct pod_group *fixture_make_group(const char *name, int32_t min, enum pod_group_api api)
{
    return fixture_make_group_with(name, min, api, NULL);
}

const char *fixture_inventory(struct arena *a, const char *mode, const char *cards)
{
    AUTO_STRBUF b;
    strbuf_init(&b);
    strbuf_addf(&b, "{\"v\":1,\"mode\":\"%s\",\"switchingTo\":null,\"cards\":[", mode);
    int i = 0;
    for (const char *s = cards; *s != '\0'; i++) {
        long gib = 0;
        for (; *s >= '0' && *s <= '9'; s++)
            gib = gib * 10 + (*s - '0');
        bool sick = *s == '*';
        s += sick;
        strbuf_addf(&b, "%s{\"i\":%d,\"uuid\":\"GPU-%d\",\"mib\":%ld,\"health\":\"%s\"}",
                    i > 0 ? "," : "", i, i, gib * 1024 + 512, sick ? "sick" : "ok");
        s += *s == ',';
    }
    strbuf_adds(&b, "]}");
    return arena_strdup(a, strbuf_str(&b));
}

const char *fixture_topology(struct arena *a, unsigned numa, unsigned l3, unsigned cores,
                             unsigned threads, const char *reserved)
{
    unsigned groups = numa * l3, all = groups * cores;
    struct cpu_topology t = {.threads = threads, .cores = all, .numa_len = numa, .l3_len = groups};
    struct error err = ERROR_INIT;
    AUTO_STRBUF text = {0};
    t.numa = arena_new(a, struct cpuset, numa);
    t.l3 = arena_new(a, struct cpuset, groups);
    for (unsigned core = 0; core < all; core++)
        for (unsigned i = 0; i < threads; i++) {
            cpuset_add(&t.numa[core / cores / l3], core + i * all);
            cpuset_add(&t.l3[core / cores], core + i * all);
        }
    decoded(reserved != NULL ? cpuset_parse(reserved, &t.reserved, &err) : 0, &err, &text);
    cpu_topology_encode(&t, &text);
    return arena_strdup(a, strbuf_str(&text));
}
