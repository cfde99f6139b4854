// SPDX-License-Identifier: Apache-2.0
/*
 * patch_keys - the merge keys, as the tags on Kubernetes' Go types give them (patchStrategy and
 * patchMergeKey for strategic merge, listType and listMapKey for apply).
 *
 * A row is found by the field's name and, where the name alone is ambiguous, by the field around
 * it: a container's ports have other keys than a service's. Names of maps with free keys (labels,
 * data) cannot collide, because their values are no lists.
 */
#include "test/local/patch/patch_keys.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/str.h"

enum { BOTH = PATCH_STRATEGIC | PATCH_APPLY };

struct row {
    const char *field;
    const char *parent; /* NULL: any */
    int styles;
    struct patch_type type;
};

#define BY(...)                                    \
    {                                              \
        .list = PATCH_MAP, .keys = { __VA_ARGS__ } \
    }
#define SET               \
    {                     \
        .list = PATCH_SET \
    }

static const struct row metadata_rows[] = {
    {"ownerReferences", "metadata", BOTH, BY("uid")},
    {"finalizers", "metadata", BOTH, SET},
};

static const struct row rows[] = {
    {"containers", "spec", BOTH, BY("name")},
    {"initContainers", "spec", BOTH, BY("name")},
    {"ephemeralContainers", "spec", BOTH, BY("name")},
    {"volumes", "spec", BOTH, BY("name")},
    {"imagePullSecrets", NULL, BOTH, BY("name")},
    {"hostAliases", "spec", BOTH, BY("ip")},
    {"topologySpreadConstraints", "spec", PATCH_STRATEGIC, BY("topologyKey")},
    {"topologySpreadConstraints", "spec", PATCH_APPLY, BY("topologyKey", "whenUnsatisfiable")},
    {"schedulingGates", "spec", BOTH, BY("name")},
    {"resourceClaims", "spec", BOTH, BY("name")},
    {"podCIDRs", "spec", BOTH, SET},
    {"env", NULL, BOTH, BY("name")},
    {"volumeMounts", NULL, BOTH, BY("mountPath")},
    {"volumeDevices", NULL, BOTH, BY("devicePath")},
    {"claims", "resources", PATCH_APPLY, BY("name")},
    {"ports", "spec", BOTH, {PATCH_MAP, {"port", "protocol"}, "TCP"}},
    {"ports", NULL, BOTH, {PATCH_MAP, {"containerPort", "protocol"}, "TCP"}},
    {"conditions", "status", BOTH, BY("type")},
    {"addresses", "status", BOTH, BY("type")},
    {"podIPs", "status", BOTH, BY("ip")},
    {"hostIPs", "status", PATCH_STRATEGIC, BY("ip")},
    {"resourceClaimStatuses", "status", BOTH, BY("name")},
    {"secrets", "", BOTH, BY("name")},
    {"webhooks", "", BOTH, BY("name")},
    {"matchConditions", NULL, BOTH, BY("name")},
};

static const struct patch_type *find(const struct row *table, size_t n, const char *parent,
                                     const char *field, enum patch_style style)
{
    for (size_t i = 0; i < n; i++) {
        const struct row *r = &table[i];
        if ((r->styles & (int)style) != 0 && str_eq(r->field, field) &&
            (!r->parent || str_eq(r->parent, parent)))
            return &r->type;
    }
    return NULL;
}

const struct patch_type *patch_type_of(const char *kind, const char *parent, const char *field,
                                       enum patch_style style)
{
    static const struct patch_type atomic = {.list = PATCH_ATOMIC};
    const struct patch_type *type =
        find(metadata_rows, sizeof metadata_rows / sizeof metadata_rows[0], parent, field, style);
    if (!type && kind)
        type = find(rows, sizeof rows / sizeof rows[0], parent, field, style);
    return type ? type : &atomic;
}

static bool same_key(const struct patch_type *type, enum patch_style style,
                     const struct jsonnode *a, const struct jsonnode *b)
{
    const struct jsonnode *ka = jsonnode_get(a, type->keys[0]);
    if (!ka || !jsonnode_equal(ka, jsonnode_get(b, type->keys[0])))
        return false;
    if (style == PATCH_STRATEGIC || !type->keys[1])
        return true;
    ka = jsonnode_get(a, type->keys[1]);
    const struct jsonnode *kb = jsonnode_get(b, type->keys[1]);
    if (ka && kb)
        return jsonnode_equal(ka, kb);
    if (!ka && !kb)
        return true;
    return type->missing && str_eq(jsonnode_str(ka ? ka : kb), type->missing);
}

struct jsonnode *patch_find(struct jsonnode *list, const struct patch_type *type,
                            enum patch_style style, const struct jsonnode *like, size_t *at)
{
    size_t i = 0;
    for (struct jsonnode_iter it = jsonnode_iter(list); jsonnode_next(&it); i++) {
        bool hit = type->list == PATCH_MAP ? same_key(type, style, it.value, like)
                                           : jsonnode_equal(it.value, like);
        if (!hit)
            continue;
        if (at)
            *at = i;
        return it.value;
    }
    return NULL;
}

int patch_fail(struct error *err, int http_status, const char *fmt, ...)
{
    char text[ERROR_TEXT_SIZE];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    (void)error_set(err, http_status == 409 ? ERROR_CONFLICT : ERROR_INVALID, "%s", text);
    if (err)
        err->http_status = http_status;
    return -1;
}
