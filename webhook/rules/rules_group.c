// SPDX-License-Identifier: Apache-2.0
/* PodGroup objects of both API groups, which have the same fields. */
#include "lib/base/str.h"
#include "lib/model/gang.h"
#include "lib/model/names.h"
#include "webhook/rules/rules_internal.h"

/* On updates only changed keys are checked: finalizers and annotations belong to other clients. */
static bool is_new(const struct pod_view *own, json *before, const char *member, const char *key)
{
    const char *now = json_get_str(json_get(own->metadata, member), key);
    return now && !str_eq(now, json_get_str(json_get(before, member), key));
}

static void check_annotations(struct pod_view *own, json *before, const char *key)
{
    const char *const lists[] = {NAME_ANN_GANG_GROUPS, NAME_ANN_GANG_KOORD_GROUPS};
    const char *const matches[] = {NAME_ANN_GANG_MATCH, NAME_ANN_GANG_KOORD_MATCH};
    for (size_t i = 0; i < 2; i++) {
        struct error why = ERROR_INIT;
        const char **names = NULL;
        size_t len = 0;
        enum gang_match match;
        const char *list = pod_view_annotation(own, lists[i]);
        const char *text = pod_view_annotation(own, matches[i]);
        if (is_new(own, before, "labels", lists[i]))
            pod_view_refuse(
                own,
                "metadata.labels[%s]: a label cannot hold a JSON list; write the list into "
                "metadata.annotations[%s]",
                lists[i], lists[i]);
        if (list && is_new(own, before, "annotations", lists[i]) &&
            gang_read_list(list, key, own->arena, &names, &len, &why) < 0)
            pod_view_refuse(
                own, "metadata.annotations[%s]: %s; write each gang once, this one among them",
                lists[i], why.text);
        if (text && is_new(own, before, "annotations", matches[i]) &&
            gang_read_match(text, &match, NULL) < 0)
            pod_view_refuse(own,
                            "metadata.annotations[%s]: %s is not known; write once-satisfied, "
                            "waiting-and-running or only-waiting",
                            matches[i], pod_view_quote(own, text));
    }
}

static void check_spec(struct pod_view *own, const struct rules_subject *s)
{
    static const char *const known[] = {"minMember", "scheduleTimeoutSeconds", "minResources",
                                        NULL};
    json *spec = json_get(s->object, "spec");
    int64_t n = 0;
    json *least = json_get(spec, "minMember");
    if (!least || json_is_null(least))
        pod_view_refuse(own, "spec.minMember: is missing; write how many pods must start together");
    (void)rules_field_int(own, json_get(spec, "minMember"), "spec.minMember", 1, GANG_MIN_MAX, &n);
    (void)rules_field_int(own, json_get(spec, "scheduleTimeoutSeconds"),
                          "spec.scheduleTimeoutSeconds", 1, INT32_MAX, &n);
    rules_field_amounts(own, json_get(spec, "minResources"), "spec.minResources");
    rules_field_known(own, spec, "spec", known);
}

void rules_group_check(struct pod_view *own, const struct rules_subject *s)
{
    const char *name = json_get_str(own->metadata, "name");
    if (!s->old || !json_equal(json_get(s->object, "spec"), json_get(s->old, "spec")))
        check_spec(own, s);
    check_annotations(own, json_get(s->old, "metadata"),
                      name && *own->context->ns != '\0'
                          ? arena_printf(own->arena, "%s/%s", own->context->ns, name)
                          : NULL);
    if (!s->old && name && strlen(name) > 63)
        pod_view_warn(
            own,
            "metadata.name: %s has more than 63 characters, so no label can name it; write a "
            "shorter one",
            pod_view_quote(own, name));
}
