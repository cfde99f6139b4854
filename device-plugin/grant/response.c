// SPDX-License-Identifier: Apache-2.0
/* response - the environment of contract section 2. With several cards the lists in IDX and DEV
 * follow the order of NVIDIA_VISIBLE_DEVICES: the n-th device that a program sees is the n-th
 * entry. */
#include "device-plugin/grant/response.h"

#include <assert.h>

#include "lib/base/json.h"
#include "lib/base/str.h"
#include "lib/model/names.h"

void response_env(struct response *r, const char *key, const char *value)
{
    assert(r->envs_len < RESPONSE_ENVS_MAX);
    r->envs[r->envs_len++] = (struct response_env){.key = key, .value = value};
}

static void env_int(struct response *r, struct arena *a, const char *key, int64_t value)
{
    response_env(r, key, arena_printf(a, "%lld", (long long)value));
}

void response_mount(struct response *r, struct arena *a, const char *container_path,
                    const char *host_path, bool read_only)
{
    assert(r->mounts_len < RESPONSE_MOUNTS_MAX);
    r->mounts[r->mounts_len++] =
        (struct response_mount){.container_path = arena_strdup(a, container_path),
                                .host_path = arena_strdup(a, host_path),
                                .read_only = read_only};
}

const char *const response_common_devices[] = {"/dev/nvidiactl", "/dev/nvidia-uvm",
                                               "/dev/nvidia-uvm-tools", NULL};

const char *response_device(const struct gpu_card *card, struct arena *a)
{
    return arena_printf(a, "/dev/nvidia%d", card->index);
}

/* Lists the cards by CDI name or by device file. */
static void list_cards(const struct gpu_inventory *inv, enum response_list list,
                       const struct match_grant *grant, struct arena *a, struct response *out)
{
    enum { COMMON = sizeof response_common_devices / sizeof response_common_devices[0] };
    size_t n = grant->whole ? grant->visible_len : grant->shares_len;
    if (list == RESPONSE_ENVVAR)
        return;
    bool cdi = list == RESPONSE_CDI || list == RESPONSE_CDI_NVIDIA;
    const char *kind = list == RESPONSE_CDI ? RESPONSE_CDI_KIND : RESPONSE_CDI_KIND_NVIDIA;
    const char **items = arena_new(a, const char *, n + COMMON);
    for (size_t i = 0; i < n; i++) {
        const struct gpu_card *c =
            &inv->cards[grant->whole ? grant->visible[i] : grant->shares[i].card];
        items[i] = cdi ? arena_printf(a, "%s=%s", kind, c->uuid) : response_device(c, a);
    }
    if (cdi) {
        out->cdi = items;
        out->cdi_len = n;
        return;
    }
    for (size_t i = 0; response_common_devices[i] != NULL; i++)
        items[n++] = response_common_devices[i];
    out->devices = items;
    out->devices_len = n;
}

static void put_nodes(struct json_writer *w, const char *const *paths)
{
    json_key(w, "containerEdits");
    json_object_begin(w);
    json_key(w, "deviceNodes");
    json_array_begin(w);
    for (size_t i = 0; paths[i] != NULL; i++) {
        json_object_begin(w);
        json_kv_str(w, "path", paths[i]);
        json_object_end(w);
    }
    json_array_end(w);
    json_object_end(w);
}

void response_cdi_spec(const struct gpu_inventory *inv, struct strbuf *out)
{
    struct json_writer w;
    struct arena a;
    arena_init(&a, 0);
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_kv_str(&w, "cdiVersion", "0.5.0");
    json_kv_str(&w, "kind", RESPONSE_CDI_KIND);
    json_key(&w, "devices");
    json_array_begin(&w);
    for (size_t i = 0; i < inv->cards_len; i++) {
        const char *paths[] = {response_device(&inv->cards[i], &a), NULL};
        json_object_begin(&w);
        json_kv_str(&w, "name", inv->cards[i].uuid);
        put_nodes(&w, paths);
        json_object_end(&w);
    }
    json_array_end(&w);
    put_nodes(&w, response_common_devices);
    json_object_end(&w);
    arena_deinit(&a);
}

static const char *join(struct arena *a, const char *list, const char *piece)
{
    return list[0] == '\0' ? arena_strdup(a, piece) : arena_printf(a, "%s,%s", list, piece);
}

void response_build(const struct gpu_inventory *inv, enum gpu_mode mode, enum response_list list,
                    const struct match_grant *grant, struct arena *a, struct response *out)
{
    *out = (struct response){0};
    list_cards(inv, list, grant, a, out);
    const char *uuids = "", *indexes = "", *sizes = "";
    if (grant->whole) {
        for (size_t i = 0; i < grant->visible_len; i++)
            uuids = join(a, uuids, inv->cards[grant->visible[i]].uuid);
        response_env(out, NAME_ENV_VISIBLE, uuids);
        return;
    }
    for (size_t i = 0; i < grant->shares_len; i++) {
        const struct gpu_card *c = &inv->cards[grant->shares[i].card];
        uuids = join(a, uuids, c->uuid);
        indexes = join(a, indexes, arena_printf(a, "%d", c->index));
        sizes = join(a, sizes, arena_printf(a, "%lld", (long long)gpu_card_gib(c)));
    }
    response_env(out, NAME_ENV_VISIBLE, uuids);
    response_env(out, NAME_ENV_IDX, indexes);
    /* A container's resources are answered separately and the later answer wins, so an answer that
     * knows one of them omits the other. */
    if (!grant->partial || grant->container_gib > 0) {
        env_int(out, a, NAME_ENV_POD, grant->pod_gib);
        env_int(out, a, NAME_ENV_CONTAINER, grant->container_gib);
    }
    response_env(out, NAME_ENV_DEV, sizes);
    if (mode == GPU_MODE_CORE_MEM && (!grant->partial || grant->container_percent > 0))
        env_int(out, a, NAME_ENV_CORE, grant->container_percent);
    if (mode == GPU_MODE_SHARE)
        response_env(out, NAME_ENV_CGPU_DISABLE, "true");
}
