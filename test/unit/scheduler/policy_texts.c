// SPDX-License-Identifier: Apache-2.0
#include "test/unit/scheduler/policy_texts.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/dump/dump_parts.h"
#include "test/unit/scheduler/fixture.h"

static void put_object(struct json_writer *o, const char *key, json *v)
{
    if (v == NULL)
        return;
    json_key(o, key);
    json_put_value(o, v);
}

static void put_time(struct json_writer *o, const char *key, int64_t s)
{
    dump_parts_time(o, key, (POLICY_TEXTS_BEGIN_S + s) * 1000000000);
}

static void put_node_annotations(json *j, struct arena *a, struct json_writer *o)
{
    const char *cards = json_get_str(j, "gpus");
    int64_t cpus = 0;
    json_key(o, "annotations");
    json_object_begin(o);
    if (cards != NULL)
        json_kv_str(o, NAME_ANN_GPU_INVENTORY, fixture_inventory(a, "cgpu", cards));
    if (json_get_int(j, "pinnable", &cpus))
        json_kv_str(o, NAME_ANN_CPU_TOPOLOGY, fixture_topology(a, 1, 1, (unsigned)cpus, 1, NULL));
    json_object_end(o);
}

char *policy_texts_node(const char *name, json *j, struct arena *a)
{
    AUTO_STRBUF text = {0};
    struct json_writer o;
    bool is_virtual = json_get_bool(j, "virtual", false);
    int64_t gib = 0;
    json_writer_init(&o, &text);
    json_object_begin(&o);
    json_key(&o, "metadata");
    json_object_begin(&o);
    json_kv_str(&o, "name", name);
    json_key(&o, "labels");
    json_object_begin(&o);
    for (struct json_iter it = json_iter(json_get(j, "labels")); json_next(&it);)
        json_kv_str(&o, it.key, json_str(it.value));
    if (is_virtual)
        json_kv_str(&o, NAME_LABEL_NODE_TYPE, NAME_NODE_TYPE_VIRTUAL);
    if (json_get(j, "gpus") != NULL)
        json_kv_str(&o, NAME_LABEL_GPU_MODE, "cgpu");
    json_object_end(&o);
    put_node_annotations(j, a, &o);
    json_object_end(&o);
    json_key(&o, "spec");
    json_object_begin(&o);
    if (is_virtual)
        json_key(&o, "taints"), json_put_raw(&o,
                                             "[{\"key\":\"" NAME_TAINT_VIRTUAL
                                             "\",\"value\":\"" NAME_TAINT_VIRTUAL_VALUE
                                             "\",\"effect\":\"NoSchedule\"}]",
                                             strlen("[{\"key\":\"" NAME_TAINT_VIRTUAL
                                                    "\",\"value\":\"" NAME_TAINT_VIRTUAL_VALUE
                                                    "\",\"effect\":\"NoSchedule\"}]"));
    json_object_end(&o);
    json_key(&o, "status");
    json_object_begin(&o);
    json_key(&o, "allocatable");
    json_object_begin(&o);
    json_kv_str(&o, "cpu", json_get_str(j, "cpu") != NULL ? json_get_str(j, "cpu") : "4");
    json_kv_str(&o, "memory", "64Gi");
    json_kv_str(&o, "pods", "110");
    if (json_get_int(j, "gib", &gib))
        json_kv_int(&o, NAME_RES_GPU_MEM, gib);
    json_object_end(&o);
    json_object_end(&o);
    json_object_end(&o);
    return arena_strdup(a, strbuf_str(&text));
}

char *policy_texts_policy(json *j, int64_t now_s, struct arena *a)
{
    AUTO_STRBUF text = {0};
    struct json_writer o;
    int64_t created = now_s;
    const char *name = json_get_str(j, "name"), *uid = json_get_str(j, "uid");
    (void)json_get_int(j, "created", &created);
    json_writer_init(&o, &text);
    json_object_begin(&o);
    json_key(&o, "metadata");
    json_object_begin(&o);
    json_kv_str(&o, "name", name);
    json_kv_str(&o, "namespace", "d");
    json_kv_str(&o, "uid", uid != NULL ? uid : arena_printf(a, "uid-%s", name));
    put_time(&o, "creationTimestamp", created);
    json_object_end(&o);
    put_object(&o, "spec", json_get(j, "spec"));
    json_object_end(&o);
    return arena_strdup(a, strbuf_str(&text));
}

char *policy_texts_pod(const char *name, json *j, const char *node, int64_t now_s, struct arena *a)
{
    AUTO_STRBUF text = {0};
    struct json_writer o;
    int64_t priority = 0;
    (void)json_get_int(j, "priority", &priority);
    json_writer_init(&o, &text);
    json_object_begin(&o);
    json_key(&o, "metadata");
    json_object_begin(&o);
    json_kv_str(&o, "name", name);
    json_kv_str(&o, "namespace",
                json_get_str(j, "namespace") != NULL ? json_get_str(j, "namespace") : "d");
    json_kv_str(&o, "uid", arena_printf(a, "u-%s", name));
    put_time(&o, "creationTimestamp", now_s);
    json_key(&o, "labels");
    if (json_get(j, "labels") != NULL)
        json_put_value(&o, json_get(j, "labels"));
    else
        json_put_raw(&o, "{\"app\":\"web\"}", strlen("{\"app\":\"web\"}"));
    put_object(&o, "annotations", json_get(j, "annotations"));
    json_object_end(&o);
    json_key(&o, "spec");
    json_object_begin(&o);
    json_kv_str(&o, "schedulerName", NAME_SCHEDULER);
    json_kv_int(&o, "priority", priority);
    if (node != NULL)
        json_kv_str(&o, "nodeName", node);
    put_object(&o, "nodeSelector", json_get(j, "nodeSelector"));
    json_key(&o, "containers");
    json_array_begin(&o);
    json_object_begin(&o);
    json_kv_str(&o, "name", "c");
    json_key(&o, "resources");
    json_object_begin(&o);
    json_key(&o, "requests");
    if (json_get(j, "requests") != NULL)
        json_put_value(&o, json_get(j, "requests"));
    else
        json_put_raw(&o, "{\"cpu\":\"1\"}", strlen("{\"cpu\":\"1\"}"));
    put_object(&o, "limits", json_get(j, "limits"));
    json_object_end(&o);
    json_object_end(&o);
    json_array_end(&o);
    json_object_end(&o);
    json_object_end(&o);
    return arena_strdup(a, strbuf_str(&text));
}
