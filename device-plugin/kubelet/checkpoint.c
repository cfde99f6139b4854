// SPDX-License-Identifier: Apache-2.0
/*
 * checkpoint - the format of the file:
 *
 *   {"Data":{"PodDeviceEntries":[{"PodUID":…,"ContainerName":…,"ResourceName":…,
 *                                 "DeviceIDs":{"-1":["id",…]},…}],…},…}
 *
 * The keys of DeviceIDs are NUMA nodes. The kubelet owns the file, so entries in an unknown form
 * are skipped and, if they name our resources, counted. The checksum is not verified: it covers
 * Go's printed form of the structs. The entries are only compared with what the plugin knows.
 */
#include "device-plugin/kubelet/checkpoint.h"

#include <unistd.h>

#include "device-plugin/grant/match.h"
#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/base/str.h"

static bool read_entry(json *j, struct arena *a, struct checkpoint_entry *out)
{
    const char *uid = json_get_str(j, "PodUID"), *container = json_get_str(j, "ContainerName"),
               *resource = json_get_str(j, "ResourceName");
    json *numa = json_get(j, "DeviceIDs");
    size_t most = 0;
    if (uid == NULL || container == NULL || resource == NULL || !json_is_object(numa) ||
        !mode_resource_parse(resource, &out->resource))
        return false;
    for (struct json_iter it = json_iter(numa); json_next(&it);)
        most += json_len(it.value);
    out->uid = arena_strdup(a, uid);
    out->container = arena_strdup(a, container);
    out->ids = (struct inventory_ids){.items = arena_new(a, const char *, most)};
    for (struct json_iter it = json_iter(numa); json_next(&it);)
        for (struct json_iter id = json_iter(it.value); json_next(&id);)
            if (json_str(id.value) != NULL)
                out->ids.items[out->ids.len++] = arena_strdup(a, json_str(id.value));
    return out->ids.len > 0;
}

static bool is_ours(json *j)
{
    const char *resource = json_get_str(j, "ResourceName");
    enum mode_resource ignored;
    return resource != NULL && mode_resource_parse(resource, &ignored);
}

int checkpoint_decode(const char *text, size_t n, struct arena *a, struct checkpoint *out,
                      struct error *err)
{
    AUTO_JSON *doc = NULL;
    *out = (struct checkpoint){0};
    if (json_parse(&doc, text, n, err) < 0)
        return -1;
    json *entries = json_get(json_get(json_root(doc), "Data"), "PodDeviceEntries");
    if (json_len(entries) > CHECKPOINT_ENTRIES_MAX)
        return error_set(err, ERROR_TOO_LARGE, "PodDeviceEntries: over %d", CHECKPOINT_ENTRIES_MAX);
    out->items = arena_new(a, struct checkpoint_entry, json_len(entries));
    for (struct json_iter it = json_iter(entries); json_next(&it);)
        if (read_entry(it.value, a, &out->items[out->len]))
            out->len++;
        else
            out->unread += is_ours(it.value);
    return 0;
}

int checkpoint_read(const char *path, struct arena *a, struct checkpoint *out, struct error *err)
{
    AUTO_STRBUF text;
    strbuf_init(&text);
    *out = (struct checkpoint){0};
    if (access(path, F_OK) < 0)
        return 0;
    if (file_read(path, CHECKPOINT_BYTES_MAX, &text, err) < 0)
        return -1;
    if (checkpoint_decode(strbuf_str(&text), text.len, a, out, err) < 0)
        return error_wrap(err, "%s", path);
    return 0;
}

const struct checkpoint_entry *checkpoint_find(const struct checkpoint *c, enum mode_resource r,
                                               const struct inventory_ids *ids)
{
    for (size_t i = 0; i < c->len; i++)
        if (c->items[i].resource == r && ids->len > 0 && match_same_ids(&c->items[i].ids, ids))
            return &c->items[i];
    return NULL;
}
