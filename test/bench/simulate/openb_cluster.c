// SPDX-License-Identifier: Apache-2.0
#include "test/bench/simulate/openb_cluster.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/gpu.h"
#include "lib/model/names.h"

enum { NODE_PODS = 250 };

/* ---- nodes ---- */

static void put_amount(struct json_writer *w, const char *name, int64_t n, const char *unit)
{
    char text[48];
    (void)str_format(text, sizeof text, "%lld%s", (long long)n, unit);
    json_kv_str(w, name, text);
}

static void put_inventory(struct json_writer *w, const char *node, const char *model, int64_t cards)
{
    AUTO_STRBUF text = {0};
    struct gpu_card list[GPU_CARDS_MAX] = {{0}};
    char uuids[GPU_CARDS_MAX][96];
    for (int64_t i = 0; i < cards; i++) {
        (void)str_format(uuids[i], sizeof uuids[i], "GPU-%.64s-%d", node, (int)i);
        list[i] = (struct gpu_card){.index = (int32_t)i,
                                    .uuid = uuids[i],
                                    .model = model,
                                    .mib = (int64_t)OPENB_CLUSTER_CARD_GIB * 1024,
                                    .numa = -1,
                                    .pci = ""};
    }
    struct gpu_inventory inventory = {
        .mode = GPU_MODE_SHARE, .isolation = "none", .cards = list, .cards_len = (size_t)cards};
    gpu_inventory_encode(&inventory, &text);
    json_kv_str(w, NAME_ANN_GPU_INVENTORY, strbuf_str(&text));
}

static void write_node(struct json_writer *w, const char *name, const char *model, int64_t cpu,
                       int64_t mib, int64_t cards)
{
    json_object_begin(w);
    json_kv_str(w, "kind", "Node");
    json_key(w, "metadata");
    json_object_begin(w);
    json_kv_str(w, "name", name);
    json_key(w, "labels");
    json_object_begin(w);
    json_kv_str(w, "kubernetes.io/hostname", name);
    if (cards > 0) {
        json_kv_str(w, NAME_LABEL_GPU_MODE, gpu_mode_name(GPU_MODE_SHARE));
        json_kv_str(w, NAME_LABEL_ACCEL_NAME, model);
    }
    json_object_end(w);
    if (cards > 0) {
        json_key(w, "annotations");
        json_object_begin(w);
        put_inventory(w, name, model, cards);
        json_object_end(w);
    }
    json_object_end(w);
    json_key(w, "status");
    json_object_begin(w);
    json_key(w, "capacity"); /* and allocatable: what is absent there is taken from here */
    json_object_begin(w);
    put_amount(w, "cpu", cpu, "m");
    put_amount(w, "memory", mib, "Mi");
    put_amount(w, "pods", NODE_PODS, "");
    if (cards > 0) {
        put_amount(w, NAME_RES_GPU_MEM, cards * OPENB_CLUSTER_CARD_GIB, "");
        put_amount(w, NAME_RES_GPU_COUNT, cards, "");
    }
    json_object_end(w);
    json_object_end(w);
    json_object_end(w);
}

static int take_node(struct csv *c, struct error *err)
{
    int64_t cpu = 0, mib = 0, cards = 0;
    if (csv_number(c, "cpu_milli", INT32_MAX, &cpu, err) < 0 ||
        csv_number(c, "memory_mib", INT32_MAX, &mib, err) < 0 ||
        csv_number(c, "gpu", GPU_CARDS_MAX, &cards, err) < 0)
        return -1;
    write_node(c->arg, csv_cell(c, "sn"), str_or_empty(csv_cell(c, "model")), cpu, mib, cards);
    return 0;
}

int openb_cluster_nodes(struct json_writer *w, const char *path, struct csv_warn warn,
                        struct error *err)
{
    static const char *const needed[] = {"sn", "cpu_milli", "memory_mib", "gpu", "model", NULL};
    return csv_read(path, needed, take_node, w, warn, err);
}

/* ---- pods ---- */

struct wish {
    const char *name, *specs;
    int64_t cpu, mib, cards, milli;
    int64_t created_s;
};

static void put_models(struct json_writer *w, const char *specs)
{
    json_key(w, "affinity");
    json_object_begin(w);
    json_key(w, "nodeAffinity");
    json_object_begin(w);
    json_key(w, "requiredDuringSchedulingIgnoredDuringExecution");
    json_object_begin(w);
    json_key(w, "nodeSelectorTerms");
    json_array_begin(w);
    json_object_begin(w);
    json_key(w, "matchExpressions");
    json_array_begin(w);
    json_object_begin(w);
    json_kv_str(w, "key", NAME_LABEL_ACCEL_NAME);
    json_kv_str(w, "operator", "In");
    json_key(w, "values");
    json_array_begin(w);
    for (const char *at = specs; at != NULL;) {
        size_t n = strcspn(at, "|");
        json_put_str_n(w, at, n);
        at = at[n] == '|' ? at + n + 1 : NULL;
    }
    json_array_end(w);
    json_object_end(w);
    json_array_end(w);
    json_object_end(w);
    json_array_end(w);
    json_object_end(w);
    json_object_end(w);
    json_object_end(w);
}

static void write_pod(struct json_writer *w, const struct wish *p)
{
    char created[CLOCK_RFC3339_SIZE];
    int64_t gib = p->cards > 1 ? p->cards * OPENB_CLUSTER_CARD_GIB : p->cards * p->milli;
    json_object_begin(w);
    json_kv_str(w, "kind", "Pod");
    json_key(w, "metadata");
    json_object_begin(w);
    json_kv_str(w, "namespace", "openb");
    json_kv_str(w, "name", p->name);
    clock_rfc3339(p->created_s * 1000000000, 0, created);
    json_kv_str(w, "creationTimestamp", created);
    if (p->cards > 1) {
        json_key(w, "labels");
        json_object_begin(w);
        put_amount(w, NAME_RES_GPU_COUNT, p->cards, "");
        json_object_end(w);
    }
    json_object_end(w);
    json_key(w, "spec");
    json_object_begin(w);
    json_kv_str(w, "schedulerName", NAME_SCHEDULER);
    if (p->cards > 0 && p->specs != NULL && p->specs[0] != '\0')
        put_models(w, p->specs);
    json_key(w, "containers");
    json_array_begin(w);
    json_object_begin(w);
    json_kv_str(w, "name", "c");
    json_key(w, "resources");
    json_object_begin(w);
    json_key(w, "limits");
    json_object_begin(w);
    put_amount(w, "cpu", p->cpu, "m");
    put_amount(w, "memory", p->mib, "Mi");
    if (gib > 0)
        put_amount(w, NAME_RES_GPU_MEM, gib, "");
    json_object_end(w);
    json_object_end(w);
    json_object_end(w);
    json_array_end(w);
    json_object_end(w);
    json_object_end(w);
}

static int take_pod(struct csv *c, struct error *err)
{
    struct wish p = {.name = csv_cell(c, "name"), .specs = csv_cell(c, "gpu_spec")};
    if (csv_number(c, "cpu_milli", INT32_MAX, &p.cpu, err) < 0 ||
        csv_number(c, "memory_mib", INT32_MAX, &p.mib, err) < 0 ||
        csv_number(c, "num_gpu", GPU_CARDS_MAX, &p.cards, err) < 0 ||
        csv_number(c, "gpu_milli", 1000, &p.milli, err) < 0)
        return -1;
    p.created_s = (int64_t)c->number; /* as they stand in the file */
    if (csv_cell(c, "creation_time") != NULL &&
        csv_number(c, "creation_time", INT32_MAX, &p.created_s, err) < 0)
        return -1;
    p.created_s++; /* 0 would be: not known */
    write_pod(c->arg, &p);
    return 0;
}

int openb_cluster_pods(struct json_writer *w, const char *path, struct csv_warn warn,
                       struct error *err)
{
    static const char *const needed[] = {"name",    "cpu_milli", "memory_mib",
                                         "num_gpu", "gpu_milli", NULL};
    return csv_read(path, needed, take_pod, w, warn, err);
}
