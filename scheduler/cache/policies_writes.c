// SPDX-License-Identifier: Apache-2.0
/* What a policy writes into its pods: the unit, labels and annotations, the deletion cost. */
#include <string.h>

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/model/model.h"
#include "scheduler/cache/policies.h"

const struct policy *policies_of(const struct cluster_pod *cp)
{
    return cp->membership.group != NULL ? cp->membership.group->of->policy : NULL;
}

int32_t policies_unit_of(const struct cluster_pod *cp)
{
    return cp->membership.group != NULL && cp->on != NULL ? cp->membership.unit : POLICIES_NO_UNIT;
}

bool policies_holds(const struct cluster_pod *cp)
{
    return cp->membership.group != NULL;
}

bool policies_goes_virtual(const struct cluster_pod *cp)
{
    const struct policy *p = policies_of(cp);
    for (size_t i = 0; p != NULL && i < p->units_len; i++)
        if (p->units[i].resource == POLICY_ECI || p->units[i].resource == POLICY_ACS)
            return true;
    return false;
}

static const char *annotation(const struct cluster_pod *cp, const char *key)
{
    const char *value = labels_get(&cp->pod->annotations, key);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static bool is_number(const char *text, int32_t wanted)
{
    int64_t value = 0;
    struct error err = ERROR_INIT;
    return text != NULL && num_parse(text, strlen(text), &value, &err) == 0 && value == wanted;
}

enum policies_cost policies_deletion_cost(const struct cluster_pod *cp, int32_t *cost)
{
    const char *has = annotation(cp, NAME_ANN_DELETION_COST);
    const char *noted = annotation(cp, NAME_ANN_DELETION_COST_OURS);
    bool ours = noted != NULL && has != NULL && str_eq(has, noted);
    int32_t unit = policies_unit_of(cp);
    *cost = 0;
    if (unit == POLICIES_NO_UNIT)
        return ours ? POLICIES_COST_REMOVE : POLICIES_COST_NONE;
    *cost = POLICY_UNITS_MAX - unit;
    if (has != NULL && !ours)
        return POLICIES_COST_CONFLICT;
    return ours && is_number(has, *cost) ? POLICIES_COST_RIGHT : POLICIES_COST_WRITE;
}

/* Result annotations are never input: a note of ours in a pod without nodeName was written by
 * another client, so the cost beside it is the user's. */
static bool has_own_cost(const struct cluster_pod *cp)
{
    return annotation(cp, NAME_ANN_DELETION_COST) != NULL;
}

static void add(struct labels *to, const char *key, const char *value)
{
    to->items[to->len++] = (struct label){.key = key, .value = value};
}

struct labels policies_annotations(const struct cluster_pod *cp, struct arena *a)
{
    enum { OURS = 3 };
    const struct policy *p = policies_of(cp);
    int32_t unit = policies_unit_of(cp);
    struct labels out = {0};
    if (unit == POLICIES_NO_UNIT)
        return out;
    const struct labels *gifts = &p->units[unit].pod_annotations;
    out.items = arena_new(a, struct label, gifts->len + OURS);
    if (!cp->membership.previous) /* previous: this policy did not assign the unit */
        add(&out, NAME_ANN_UNIT,
            arena_printf(a, "%s/%d/%s", p->object.name, (int)unit, p->object.uid));
    if (!has_own_cost(cp)) {
        const char *cost = arena_printf(a, "%d", (int)(POLICY_UNITS_MAX - unit));
        add(&out, NAME_ANN_DELETION_COST, cost);
        add(&out, NAME_ANN_DELETION_COST_OURS, cost);
    }
    for (size_t i = 0; i < gifts->len; i++)
        add(&out, gifts->items[i].key, gifts->items[i].value);
    return out;
}

struct labels policies_labels(const struct cluster_pod *cp, struct arena *a)
{
    const struct policy *p = policies_of(cp);
    int32_t unit = policies_unit_of(cp);
    struct labels out = {0};
    if (unit == POLICIES_NO_UNIT)
        return out;
    const struct labels *gifts = &p->units[unit].pod_labels;
    out.items = arena_new(a, struct label, gifts->len);
    for (size_t i = 0; i < gifts->len; i++)
        if (labels_get(&cp->pod->labels, gifts->items[i].key) == NULL)
            add(&out, gifts->items[i].key, gifts->items[i].value);
    return out;
}

const char *policies_labels_kept(const struct cluster_pod *cp, struct arena *a)
{
    const struct policy *p = policies_of(cp);
    int32_t unit = policies_unit_of(cp);
    AUTO_STRBUF kept = {0};
    for (size_t i = 0; unit != POLICIES_NO_UNIT && i < p->units[unit].pod_labels.len; i++) {
        const struct label *gift = &p->units[unit].pod_labels.items[i];
        const char *has = labels_get(&cp->pod->labels, gift->key);
        if (has != NULL && !str_eq(has, gift->value))
            strbuf_addf(&kept, "%s%s=%s, and not %s", kept.len > 0 ? "; " : "", gift->key, has,
                        gift->value);
    }
    return kept.len > 0 ? arena_strndup(a, kept.ptr, kept.len) : NULL;
}
