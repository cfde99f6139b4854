// SPDX-License-Identifier: Apache-2.0
#include "scheduler/binding/binding_content.h"

#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/cache/gangs.h"
#include "scheduler/cache/policies.h"

/* Result keys are never input. A pod that gets no grant but brought such keys along has them
 * blanked, since a Binding cannot delete; other pods without a grant are left as they are. */
static struct labels grant_of(const struct cluster_pod *cp, const struct cluster_node *node,
                              struct arena *a)
{
    struct labels out = {0};
    if (!grant_is_empty(&cp->grant)) {
        int64_t dev_gib = cp->grant.shares_len > 0
                              ? gpu_accounts_card_gib(&node->gpu_accounts, cp->grant.shares[0].card)
                              : 0;
        grant_encode(&cp->grant, cp->pod, dev_gib, a, &out);
        return out;
    }
    const struct labels *given = &cp->pod->annotations;
    bool pinned = cp->grant.cpus.len > 0;
    out.items = arena_new(a, struct label, given->len + 1);
    for (size_t i = 0; i < given->len; i++)
        if (grant_is_result_key(given->items[i].key) && given->items[i].value[0] != '\0' &&
            !(pinned && str_eq(given->items[i].key, NAME_ANN_CPUSET)))
            out.items[out.len++] = (struct label){.key = given->items[i].key, .value = ""};
    if (pinned) {
        AUTO_STRBUF text = {0};
        cpu_grant_encode(&cp->grant.cpus, cp->pod, &text);
        out.items[out.len++] =
            (struct label){.key = NAME_ANN_CPUSET, .value = arena_strndup(a, text.ptr, text.len)};
    }
    return out;
}

static bool has_key(const struct labels *l, const char *key)
{
    for (size_t i = 0; i < l->len; i++)
        if (str_eq(l->items[i].key, key))
            return true;
    return false;
}

struct labels binding_content_annotations(struct cluster_pod *cp, const struct cluster_node *node,
                                          struct arena *a)
{
    struct labels grant = grant_of(cp, node, a);
    struct labels unit = policies_annotations(cp, a);
    const char *gang = gangs_record_of(cp);
    if (gang == NULL && unit.len == 0)
        return grant;
    struct labels out = {.items = arena_new(a, struct label, grant.len + unit.len + 1)};
    for (size_t i = 0; i < grant.len; i++)
        if (!(gang != NULL && str_eq(grant.items[i].key, NAME_ANN_GANG_SATISFIED)) &&
            !has_key(&unit, grant.items[i].key))
            out.items[out.len++] = grant.items[i];
    for (size_t i = 0; i < unit.len; i++)
        out.items[out.len++] = unit.items[i];
    if (gang != NULL)
        out.items[out.len++] = (struct label){.key = NAME_ANN_GANG_SATISFIED, .value = gang};
    return out;
}
