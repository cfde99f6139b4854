// SPDX-License-Identifier: Apache-2.0
/*
 * devices_checkpoint - what was allocated, in the form of the kubelet's own file, so that whatever
 * reads that reads ours:
 *
 *   {"Data":{"PodDeviceEntries":[{"PodUID":"…","ContainerName":"c","ResourceName":"nvidia.com/gpu",
 *            "DeviceIDs":{"0":["GPU-a"]},"AllocResp":"<base64 of ContainerAllocateResponse>"}],
 *            "RegisteredDevices":{"nvidia.com/gpu":["GPU-a","GPU-b"]}},"Checksum":1}
 *
 * The numbers are NUMA nodes, -1 for none. The checksum is ours: the kubelet's is made from Go's
 * way of printing its structs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/base/base64.h"
#include "lib/base/cleanup.h"
#include "lib/base/json.h"
#include "lib/base/log.h"
#include "test/local/server/kubeconfig.h"
#include "test/local/nodes/devices_internal.h"
#include "test/local/nodes/podfiles.h"

enum { CHECKPOINT_MAX = 64 * 1024 * 1024 };

static int64_t numa_of(const struct devices_plugin *p, const char *id)
{
    for (size_t i = 0; p != NULL && i < p->list.len; i++)
        if (str_eq(p->list.items[i].id, id))
            return p->list.items[i].numa;
    return -1;
}

static void put_ids(struct json_writer *w, struct devices *d, const struct devices_holding *h)
{
    const struct devices_plugin *p = devices_plugin_of(d, h->resource, false);
    AUTO_STRBUF key;
    strbuf_init(&key);
    json_key(w, "DeviceIDs");
    json_object_begin(w);
    for (size_t i = 0; i < h->ids.len; i++) {
        int64_t numa = numa_of(p, h->ids.items[i]);
        bool seen = false;
        for (size_t k = 0; k < i; k++)
            seen = seen || numa_of(p, h->ids.items[k]) == numa;
        if (seen)
            continue;
        strbuf_reset(&key);
        strbuf_addf(&key, "%d", (int)numa);
        json_key(w, strbuf_str(&key));
        json_array_begin(w);
        for (size_t k = i; k < h->ids.len; k++)
            if (numa_of(p, h->ids.items[k]) == numa)
                json_put_str(w, h->ids.items[k]);
        json_array_end(w);
    }
    json_object_end(w);
}

static void print(struct devices *d, struct strbuf *out)
{
    struct json_writer w;
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_key(&w, "PodDeviceEntries");
    json_array_begin(&w);
    for (size_t i = 0; i < d->holdings.len; i++) {
        const struct devices_holding *h = d->holdings.items[i];
        AUTO_STRBUF answer;
        strbuf_init(&answer);
        base64_encode(h->answer.bytes, h->answer.bytes_len, &answer);
        json_object_begin(&w);
        json_kv_str(&w, "PodUID", h->uid);
        json_kv_str(&w, "ContainerName", h->container);
        json_kv_str(&w, "ResourceName", h->resource);
        put_ids(&w, d, h);
        json_kv_str(&w, "AllocResp", strbuf_str(&answer));
        json_object_end(&w);
    }
    json_array_end(&w);
    json_key(&w, "RegisteredDevices");
    json_object_begin(&w);
    for (size_t i = 0; i < d->plugins.len; i++) {
        const struct devices_plugin *p = d->plugins.items[i];
        json_key(&w, p->name);
        json_array_begin(&w);
        for (size_t k = 0; k < p->list.len; k++)
            if (p->list.items[k].healthy)
                json_put_str(&w, p->list.items[k].id);
        json_array_end(&w);
    }
    json_object_end(&w);
    json_object_end(&w);
}

void devices_checkpoint_write(struct devices *d)
{
    AUTO_STRBUF data;
    AUTO_STRBUF text;
    strbuf_init(&data);
    strbuf_init(&text);
    struct error err = ERROR_INIT;
    pthread_mutex_lock(&d->lock);
    print(d, &data);
    strbuf_addf(&text, "{\"Data\":%s,\"Checksum\":%u}\n", strbuf_str(&data),
                (unsigned)(str_hash(strbuf_str(&data), data.len) & 0xffffffffU));
    /* Under the lock: registration and admission both write. */
    int result = podfiles_write(d->checkpoint, strbuf_str(&text), text.len, &err);
    pthread_mutex_unlock(&d->lock);
    if (result < 0)
        log_error("the checkpoint cannot be written", kv("error", err.text));
}

static void read_entry(struct devices *d, json *j)
{
    struct arena a;
    AUTO_STRBUF bytes;
    strbuf_init(&bytes);
    arena_init(&a, 0);
    const char *uid = json_get_str(j, "PodUID"), *container = json_get_str(j, "ContainerName"),
               *resource = json_get_str(j, "ResourceName"), *answer = json_get_str(j, "AllocResp");
    struct kwire_ids ids = {0};
    size_t most = 0;
    for (struct json_iter it = json_iter(json_get(j, "DeviceIDs")); json_next(&it);)
        most += json_len(it.value);
    ids.items = arena_new(&a, const char *, most);
    for (struct json_iter it = json_iter(json_get(j, "DeviceIDs")); json_next(&it);)
        for (struct json_iter id = json_iter(it.value); json_next(&id);)
            if (json_str(id.value) != NULL)
                ids.items[ids.len++] = json_str(id.value);
    if (uid != NULL && container != NULL && resource != NULL && answer != NULL &&
        base64_decode(answer, strlen(answer), &bytes)) {
        struct kwire_answer kept = {.bytes = strbuf_str(&bytes), .bytes_len = bytes.len};
        devices_hold(d, uid, container, resource, &ids, &kept);
    }
    arena_deinit(&a);
}

int devices_checkpoint_read(struct devices *d, struct error *err)
{
    AUTO_STRBUF text;
    AUTO_JSON *doc = NULL;
    strbuf_init(&text);
    if (kubeconfig_read_file(d->checkpoint, CHECKPOINT_MAX, &text, err) < 0)
        return -1;
    if (json_parse(&doc, strbuf_str(&text), text.len, err) < 0)
        return error_wrap(err, "%s", d->checkpoint);
    json *data = json_get(json_root(doc), "Data");
    for (struct json_iter it = json_iter(json_get(data, "PodDeviceEntries")); json_next(&it);)
        read_entry(d, it.value);
    for (struct json_iter it = json_iter(json_get(data, "RegisteredDevices")); json_next(&it);)
        (void)devices_plugin_of(d, it.key, true);
    return 0;
}
