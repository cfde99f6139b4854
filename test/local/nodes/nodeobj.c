// SPDX-License-Identifier: Apache-2.0
#include "test/local/nodes/nodeobj.h"

#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/model/quantity.h"

void nodeobj_amounts_deinit(struct nodeobj_amounts *a)
{
    for (size_t i = 0; i < a->len; i++)
        free(a->items[i].resource);
    vec_deinit(a);
}

void nodeobj_amounts_add(void *amounts, const char *resource, int64_t capacity, int64_t allocatable)
{
    struct nodeobj_amounts *a = amounts;
    struct nodeobj_amount one = {mem_strdup(resource), capacity, allocatable};
    vec_push(a, one);
}

static void put_labels(struct json_writer *w, const char *key, const struct labels *l)
{
    json_key(w, key);
    json_object_begin(w);
    for (size_t i = 0; i < l->len; i++)
        json_kv_str(w, l->items[i].key, l->items[i].value);
    json_object_end(w);
}

static void put_amount(struct json_writer *w, const char *name, int64_t n,
                       void (*print)(int64_t, struct strbuf *))
{
    AUTO_STRBUF text;
    strbuf_init(&text);
    if (print != NULL)
        print(n, &text);
    else
        strbuf_addf(&text, "%lld", (long long)n);
    json_kv_str(w, name, strbuf_str(&text));
}

static bool is_told(const struct nodes_spec *s, const struct nodeobj_amounts *a, const char *name)
{
    for (size_t i = 0; i < a->len; i++)
        if (str_eq(a->items[i].resource, name))
            return true;
    for (size_t i = 0; i < s->amounts.extra_len; i++)
        if (str_eq(s->amounts.extra[i].name, name))
            return true;
    return false;
}

static void put_amounts(struct json_writer *w, const char *key, const struct nodes_spec *s,
                        const struct nodeobj_amounts *a, json *old, bool allocatable)
{
    json_key(w, key);
    json_object_begin(w);
    put_amount(w, "cpu", s->amounts.cpu_milli, quantity_print_milli);
    put_amount(w, "memory", s->amounts.memory_bytes, quantity_print_bytes);
    put_amount(w, "ephemeral-storage", s->amounts.ephemeral_bytes, quantity_print_bytes);
    put_amount(w, "pods", s->amounts.pods, NULL);
    for (size_t i = 0; i < s->amounts.extra_len; i++)
        put_amount(w, s->amounts.extra[i].name, s->amounts.extra[i].value, NULL);
    for (size_t i = 0; i < a->len; i++)
        put_amount(w, a->items[i].resource,
                   allocatable ? a->items[i].allocatable : a->items[i].capacity, NULL);
    /* As the kubelet does when it has lost its checkpoint: no plugin offers these any more. */
    for (struct json_iter it = json_iter(json_get(json_get(old, "status"), key)); json_next(&it);)
        if (strchr(it.key, '/') != NULL && !is_told(s, a, it.key))
            put_amount(w, it.key, 0, NULL);
    json_object_end(w);
}

static void put_condition(struct json_writer *w, const char *type, const char *status,
                          const char *reason, const char *message, int64_t since_ns, int64_t now_ns)
{
    char since[CLOCK_RFC3339_SIZE], now[CLOCK_RFC3339_SIZE];
    clock_rfc3339(since_ns, 0, since);
    clock_rfc3339(now_ns, 0, now);
    json_object_begin(w);
    json_kv_str(w, "type", type);
    json_kv_str(w, "status", status);
    json_kv_str(w, "reason", reason);
    json_kv_str(w, "message", message);
    json_kv_str(w, "lastHeartbeatTime", now);
    json_kv_str(w, "lastTransitionTime", since);
    json_object_end(w);
}

static void put_info(struct json_writer *w, const struct nodes_spec *s)
{
    AUTO_STRBUF id;
    strbuf_init(&id);
    uint64_t h = str_hash(s->name, strlen(s->name)), more = h * 0x9e3779b97f4a7c15U;
    strbuf_addf(&id, "%016llx%016llx", (unsigned long long)h, (unsigned long long)more);
    bool is_virtual = s->role == NODES_FILE_VIRTUAL;
    json_key(w, "nodeInfo");
    json_object_begin(w);
    json_kv_str(w, "machineID", strbuf_str(&id));
    json_kv_str(w, "systemUUID", strbuf_str(&id));
    json_kv_str(w, "bootID", strbuf_str(&id));
    json_kv_str(w, "kernelVersion", "6.1.0-simulated");
    json_kv_str(w, "osImage", is_virtual ? "Virtual node (simulated)" : "Simulated node");
    json_kv_str(w, "containerRuntimeVersion", is_virtual ? "" : "containerd://1.6.20");
    json_kv_str(w, "kubeletVersion", is_virtual ? "v1.36.4-vk" : "v1.36.4");
    json_kv_str(w, "kubeProxyVersion", "");
    json_kv_str(w, "operatingSystem", "linux");
    json_kv_str(w, "architecture", "amd64");
    json_object_end(w);
}

static void put_status(struct json_writer *w, const struct nodes_spec *s,
                       const struct nodeobj_amounts *a, json *old, int64_t since_ns, int64_t now_ns)
{
    json_key(w, "status");
    json_object_begin(w);
    put_amounts(w, "capacity", s, a, old, false);
    put_amounts(w, "allocatable", s, a, old, true);
    json_key(w, "addresses");
    json_array_begin(w);
    const char *const addresses[][2] = {{"InternalIP", s->address}, {"Hostname", s->name}};
    for (size_t i = 0; i < 2; i++) {
        json_object_begin(w);
        json_kv_str(w, "type", addresses[i][0]);
        json_kv_str(w, "address", addresses[i][1]);
        json_object_end(w);
    }
    json_array_end(w);
    json_key(w, "conditions");
    json_array_begin(w);
    put_condition(w, "MemoryPressure", "False", "KubeletHasSufficientMemory",
                  "kubelet has sufficient memory available", since_ns, now_ns);
    put_condition(w, "DiskPressure", "False", "KubeletHasNoDiskPressure",
                  "kubelet has no disk pressure", since_ns, now_ns);
    put_condition(w, "PIDPressure", "False", "KubeletHasSufficientPID",
                  "kubelet has sufficient PID available", since_ns, now_ns);
    put_condition(w, "Ready", "True", "KubeletReady", "kubelet is posting ready status", since_ns,
                  now_ns);
    json_array_end(w);
    put_info(w, s);
    json_object_end(w);
}

void nodeobj_print(const struct nodes_spec *s, const struct nodeobj_amounts *a, int64_t since_ns,
                   int64_t now_ns, struct strbuf *out)
{
    static const char *const effects[] = {"NoSchedule", "PreferNoSchedule", "NoExecute"};
    struct json_writer w;
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_kv_str(&w, "apiVersion", "v1");
    json_kv_str(&w, "kind", "Node");
    json_key(&w, "metadata");
    json_object_begin(&w);
    json_kv_str(&w, "name", s->name);
    put_labels(&w, "labels", &s->labels);
    put_labels(&w, "annotations", &s->annotations);
    json_object_end(&w);
    json_key(&w, "spec");
    json_object_begin(&w);
    if (s->taints_len > 0) {
        json_key(&w, "taints");
        json_array_begin(&w);
        for (size_t i = 0; i < s->taints_len; i++) {
            json_object_begin(&w);
            json_kv_str(&w, "key", s->taints[i].key);
            if (s->taints[i].value[0] != '\0')
                json_kv_str(&w, "value", s->taints[i].value);
            json_kv_str(&w, "effect", effects[s->taints[i].effect]);
            json_object_end(&w);
        }
        json_array_end(&w);
    }
    json_object_end(&w);
    put_status(&w, s, a, NULL, since_ns, now_ns);
    json_object_end(&w);
}

void nodeobj_print_status(const struct nodes_spec *s, const struct nodeobj_amounts *a, json *old,
                          int64_t since_ns, int64_t now_ns, struct strbuf *out)
{
    struct json_writer w;
    json_writer_init(&w, out);
    json_object_begin(&w);
    put_status(&w, s, a, old, since_ns, now_ns);
    json_object_end(&w);
}

void nodeobj_print_lease(const struct nodes_spec *s, bool create, int64_t now_ns,
                         struct strbuf *out)
{
    char now[CLOCK_RFC3339_SIZE];
    struct json_writer w;
    clock_rfc3339(now_ns, 1, now);
    json_writer_init(&w, out);
    json_object_begin(&w);
    if (create) {
        json_kv_str(&w, "apiVersion", "coordination.k8s.io/v1");
        json_kv_str(&w, "kind", "Lease");
        json_key(&w, "metadata");
        json_object_begin(&w);
        json_kv_str(&w, "name", s->name);
        json_kv_str(&w, "namespace", "kube-node-lease");
        json_object_end(&w);
    }
    json_key(&w, "spec");
    json_object_begin(&w);
    json_kv_str(&w, "holderIdentity", s->name);
    json_kv_int(&w, "leaseDurationSeconds", 40);
    json_kv_str(&w, "renewTime", now);
    json_object_end(&w);
    json_object_end(&w);
}

void nodeobj_pod_ip(const struct nodes_spec *s, uint32_t n, char out[16])
{
    uint32_t net = s->number % (64 * 256);
    (void)str_format(out, 16, "10.%u.%u.%u", 64 + net / 256, net % 256, n % 253 + 2);
}
