// SPDX-License-Identifier: Apache-2.0
/*
 * response - the environment of contract section 2.
 *
 * With several cards the values of IDX and DEV are lists in the order of NVIDIA_VISIBLE_DEVICES, so that the n-th
 * device a program sees is the n-th in each.
 */
#include "device-plugin/response.h"

#include <assert.h>

#include "lib/base/str.h"
#include "lib/model/names.h"

static void env(struct response *r, const char *key, const char *value)
{
    assert(r->envs_len < RESPONSE_ENVS_MAX);
    r->envs[r->envs_len++] = (struct response_env){.key = key, .value = value};
}

static void env_int(struct response *r, struct arena *a, const char *key, int64_t value)
{
    env(r, key, arena_printf(a, "%lld", (long long)value));
}

/* "a" + "," + "b"; the first piece has no comma. */
static const char *join(struct arena *a, const char *list, const char *piece)
{
    return list[0] == '\0' ? arena_strdup(a, piece) : arena_printf(a, "%s,%s", list, piece);
}

void response_build(const struct gpu_inventory *inv, enum gpu_mode mode,
                    const struct match_grant *grant, struct arena *a, struct response *out)
{
    *out = (struct response){0};
    const char *uuids = "", *indexes = "", *sizes = "";
    if (grant->whole) {
        for (size_t i = 0; i < grant->visible_len; i++)
            uuids = join(a, uuids, inv->cards[grant->visible[i]].uuid);
        env(out, NAME_ENV_VISIBLE, uuids);
        return;
    }
    for (size_t i = 0; i < grant->shares_len; i++) {
        const struct gpu_card *c = &inv->cards[grant->shares[i].card];
        uuids = join(a, uuids, c->uuid);
        indexes = join(a, indexes, arena_printf(a, "%d", c->index));
        sizes = join(a, sizes, arena_printf(a, "%lld", (long long)gpu_card_gib(c)));
    }
    env(out, NAME_ENV_VISIBLE, uuids);
    env(out, NAME_ENV_IDX, indexes);
    env_int(out, a, NAME_ENV_POD, grant->pod_gib);
    env_int(out, a, NAME_ENV_CONTAINER, grant->container_gib);
    env(out, NAME_ENV_DEV, sizes);
    if (mode == GPU_MODE_CORE_MEM)
        env_int(out, a, NAME_ENV_CORE, grant->container_percent);
    if (mode == GPU_MODE_SHARE)
        env(out, NAME_ENV_CGPU_DISABLE, "true");
}
