// SPDX-License-Identifier: Apache-2.0
/* Virtual nodes: requested by the pod's annotation or label, or by a ResourcePolicy, but not by
 * both, which could contradict each other. */
#include "lib/base/str.h"
#include "lib/model/names.h"
#include "webhook/rules/rules_internal.h"

static bool selects(const struct rules_policy *p, const struct pod_view *l)
{
    for (size_t i = 0; i < p->selector.len; i++)
        if (!str_eq(pod_view_label(l, p->selector.items[i].key), p->selector.items[i].value))
            return false;
    return true;
}

const struct rules_policy *rules_virtual_policy(const struct pod_view *l)
{
    const struct rules_policy *first = NULL;
    for (size_t i = 0; i < l->context->policies_len; i++) {
        const struct rules_policy *p = l->context->policies[i];
        if (selects(p, l) && (!first || strcmp(p->name, first->name) < 0))
            first = p;
    }
    return first;
}

/* key: "annotations[...]" or "labels[...]" */
static void check_with_policy(struct pod_view *l, const char *key, const char *wish)
{
    const struct rules_policy *p = rules_virtual_policy(l);
    if (p)
        pod_view_refuse(
            l,
            "metadata.%s: %s does not go together with ResourcePolicy %s/%s, which selects "
            "this pod; remove the %s, or name the units in the policy",
            key, pod_view_quote(l, wish), p->ns, p->name,
            str_starts(key, "labels") ? "label" : "annotation");
    else if (l->context->policies_known == RULES_NOT_YET)
        pod_view_warn(l,
                      "metadata.%s: whether a ResourcePolicy selects this pod too could not be "
                      "checked, they are not listed yet",
                      key);
}

void rules_virtual_check(struct pod_view *l)
{
    const char *wish = pod_view_annotation(l, NAME_ANN_BURST);
    const char *eci = pod_view_label(l, NAME_LABEL_ECI);
    if (!l->judged)
        return;
    if (eci && !str_eq(eci, "true") && !str_eq(eci, "false"))
        pod_view_warn(l,
                      "metadata.labels[" NAME_LABEL_ECI
                      "]: %s means nothing; write \"true\" for virtual nodes only",
                      pod_view_quote(l, eci));
    if (*str_or_empty(wish) == '\0') {
        if (str_eq(eci, "true"))
            check_with_policy(l, "labels[" NAME_LABEL_ECI "]", eci);
        return;
    }
    if (!str_eq(wish, "eci") && !str_eq(wish, "eci_only")) {
        pod_view_refuse(l,
                        "metadata.annotations[" NAME_ANN_BURST
                        "]: %s is not known; write eci (real nodes first) or eci_only",
                        pod_view_quote(l, wish));
        return;
    }
    if (str_eq(wish, "eci") && str_eq(eci, "true"))
        pod_view_warn(l, "metadata.annotations[" NAME_ANN_BURST
                         "]: 'eci' is real nodes first, but label " NAME_LABEL_ECI
                         ": \"true\" is virtual nodes only, which counts; remove one of them");
    check_with_policy(l, "annotations[" NAME_ANN_BURST "]", wish);
}
