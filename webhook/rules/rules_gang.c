// SPDX-License-Identifier: Apache-2.0
/* The five ways to name a gang, and related keys. Each key is checked at its own path. Conflicts
 * between keys are reported with gang_of_pod's messages, as the scheduler would. */
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/gang.h"
#include "lib/model/names.h"
#include "webhook/rules/rules_internal.h"

enum { LABEL_VALUE_MAX = 63 };

static const struct form {
    const char *where; /* "labels" or "annotations" */
    const char *name_key;
    const char *min_key; /* NULL: name_key names a PodGroup */
} forms[] = {
    {"labels", NAME_LABEL_GANG_NAME, NAME_LABEL_GANG_MIN},
    {"labels", NAME_LABEL_GANG_BARE, NULL},
    {"labels", NAME_LABEL_GANG_X, NULL},
    {"annotations", NAME_ANN_GANG_KOORD_NAME, NAME_ANN_GANG_KOORD_MIN},
};
enum { FORMS = sizeof forms / sizeof forms[0] };

static const char *value_at(const struct pod_view *l, const char *where, const char *key)
{
    return str_eq(where, "labels") ? pod_view_label(l, key) : pod_view_annotation(l, key);
}

static bool is_object_name(const char *s)
{
    size_t n = strlen(s);
    for (size_t i = 0; i < n; i++) {
        bool alnum = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= '0' && s[i] <= '9');
        bool inside = i > 0 && i + 1 < n && s[i - 1] != '.' && s[i + 1] != '.';
        if (!alnum && !((s[i] == '-' || s[i] == '.') && inside))
            return false;
    }
    return n > 0 && n <= LABEL_VALUE_MAX;
}

static void check_name(struct pod_view *l, const char *where, const char *key, const char *name,
                       bool of_group)
{
    if (of_group && !is_object_name(name))
        pod_view_refuse(
            l,
            "metadata.%s[%s]: %s is not the name of a PodGroup; write 1 to %d lower-case "
            "letters, digits, '-' or '.'",
            where, key, pod_view_quote(l, name), LABEL_VALUE_MAX);
    else if (!of_group && (*name == '\0' || !selector_value_is_legal(name)))
        pod_view_refuse(
            l,
            "metadata.%s[%s]: %s is not a gang's name; write 1 to %d letters, digits, '-', "
            "'_' or '.', the first and the last a letter or digit",
            where, key, pod_view_quote(l, name), LABEL_VALUE_MAX);
}

static void check_min(struct pod_view *l, const struct form *f, const char *name, const char *min)
{
    int64_t n = 0;
    if (name && !min)
        pod_view_refuse(
            l,
            "metadata.%s[%s]: is missing while %s is set; write how many pods must start together",
            f->where, f->min_key, f->name_key);
    else if (min && !name)
        pod_view_refuse(l, "metadata.%s[%s]: is missing while %s is %s; write the gang's name",
                        f->where, f->name_key, f->min_key, pod_view_quote(l, min));
    if (min && num_parse_range(min, 1, GANG_MIN_MAX, &n, NULL) < 0)
        pod_view_refuse(
            l, "metadata.%s[%s]: %s is not a number of pods; write an integer from 1 to %d",
            f->where, f->min_key, pod_view_quote(l, min), GANG_MIN_MAX);
}

static void check_forms(struct pod_view *l)
{
    for (size_t i = 0; i < FORMS; i++) {
        const struct form *f = &forms[i];
        const char *name = value_at(l, f->where, f->name_key);
        if (name)
            check_name(l, f->where, f->name_key, name, f->min_key == NULL);
        if (f->min_key)
            check_min(l, f, name, value_at(l, f->where, f->min_key));
    }
}

/* "true" in place of a name or number is accepted: it asks for cards chosen by their links. */
static void check_topology(struct pod_view *l)
{
    const char *job = pod_view_label(l, NAME_LABEL_TOPOLOGY_JOB);
    const char *size = pod_view_label(l, NAME_LABEL_TOPOLOGY_REPLICA);
    int64_t n = 0;
    if (job)
        check_name(l, "labels", NAME_LABEL_TOPOLOGY_JOB, job, false);
    if (size && !job)
        pod_view_refuse(l,
                        "metadata.labels[" NAME_LABEL_TOPOLOGY_JOB
                        "]: is missing while " NAME_LABEL_TOPOLOGY_REPLICA
                        " is %s; write the job's name",
                        pod_view_quote(l, size));
    if (size && !str_eq(size, "true") && num_parse_range(size, 1, GANG_MIN_MAX, &n, NULL) < 0)
        pod_view_refuse(l,
                        "metadata.labels[" NAME_LABEL_TOPOLOGY_REPLICA
                        "]: %s is not a number of pods; write an integer from 1 to %d",
                        pod_view_quote(l, size), GANG_MIN_MAX);
}

static bool read_gang(const struct pod_view *l, struct gang_ref *out, struct error *err)
{
    struct pod pod = {.ns = *l->context->ns != '\0' ? l->context->ns : NULL,
                      .labels = l->labels,
                      .annotations = l->annotations,
                      .scheduling_group = l->scheduling_group};
    return gang_of_pod(&pod, out, err) == 0;
}

static void check_lists(struct pod_view *l, const char *own)
{
    const char *const keys[] = {NAME_ANN_GANG_GROUPS, NAME_ANN_GANG_KOORD_GROUPS};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *text = pod_view_annotation(l, keys[i]);
        const char **names = NULL;
        size_t len = 0;
        struct error why = ERROR_INIT;
        if (pod_view_label(l, keys[i]))
            pod_view_refuse(
                l,
                "metadata.labels[%s]: a label cannot hold a JSON list; write the list into "
                "metadata.annotations[%s]",
                keys[i], keys[i]);
        if (!text)
            continue;
        if (!own)
            pod_view_refuse(
                l,
                "metadata.annotations[%s]: %s, but the pod is in no gang; write label " NAME_LABEL_GANG_NAME
                " as well",
                keys[i], pod_view_quote(l, text));
        else if (gang_read_list(text, own, l->arena, &names, &len, &why) < 0)
            pod_view_refuse(l, "metadata.annotations[%s]: %s; write each gang once, %s among them",
                            keys[i], why.text, own);
    }
}

static void check_match(struct pod_view *l, const char *own)
{
    static const struct {
        const char *where, *key;
    } keys[] = {{"annotations", NAME_ANN_GANG_MATCH},
                {"labels", NAME_ANN_GANG_MATCH},
                {"annotations", NAME_ANN_GANG_KOORD_MATCH}};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *text = value_at(l, keys[i].where, keys[i].key);
        enum gang_match match;
        if (text && gang_read_match(text, &match, NULL) < 0)
            pod_view_refuse(l,
                            "metadata.%s[%s]: %s is not known; write once-satisfied, "
                            "waiting-and-running or only-waiting",
                            keys[i].where, keys[i].key, pod_view_quote(l, text));
        else if (text && !own)
            pod_view_warn(
                l,
                "metadata.%s[%s]: %s means nothing in a pod without a gang; remove it, or "
                "write label " NAME_LABEL_GANG_NAME,
                keys[i].where, keys[i].key, pod_view_quote(l, text));
    }
}

static void check_compute(struct pod_view *l)
{
    const char *class = pod_view_label(l, NAME_LABEL_COMPUTE_CLASS);
    if ((str_eq(class, "gpu") || str_eq(class, "gpu-hpn")) &&
        *str_or_empty(pod_view_label(l, NAME_LABEL_GPU_MODEL_SERIES)) == '\0')
        pod_view_warn(l,
                      "metadata.labels[" NAME_LABEL_GPU_MODEL_SERIES
                      "]: is missing while " NAME_LABEL_COMPUTE_CLASS
                      " is %s; write it, or any series of GPU may be given",
                      class);
}

const char *rules_gang_name(const struct pod_view *l)
{
    for (size_t i = 0; i < FORMS; i++)
        if (value_at(l, forms[i].where, forms[i].name_key))
            return value_at(l, forms[i].where, forms[i].name_key);
    const char *job = pod_view_label(l, NAME_LABEL_TOPOLOGY_JOB);
    return l->scheduling_group ? l->scheduling_group : str_eq(job, "true") ? NULL : job;
}

static const char *group_path(const struct pod_view *l)
{
    for (size_t i = 0; i < FORMS; i++)
        if (!forms[i].min_key && value_at(l, forms[i].where, forms[i].name_key))
            return arena_printf(l->arena, "metadata.labels[%s]", forms[i].name_key);
    return "spec.schedulingGroup.podGroupName";
}

/* Pods of a missing PodGroup would wait. Native groups are not watched. */
static void check_group(struct pod_view *l, const struct gang_ref *g)
{
    if (g->form != GANG_BARE && g->form != GANG_X)
        return;
    const char *key = arena_printf(l->arena, "%s/%s", l->context->ns, g->name);
    if (l->context->groups_known == RULES_NOT_YET)
        pod_view_warn(
            l, "%s: whether PodGroup %s exists could not be checked, they are not listed yet",
            group_path(l), key);
    else if (l->context->groups_known == RULES_ALL &&
             !(l->context->groups && map_get(l->context->groups, key)))
        pod_view_warn(l, "%s: PodGroup %s does not exist (yet); its pods wait until it does",
                      group_path(l), key);
}

void rules_gang_check(struct pod_view *l)
{
    if (!l->judged)
        return;
    size_t before = pod_view_refusals(l);
    const char *name = rules_gang_name(l);
    const char *own = name && *l->context->ns != '\0'
                          ? arena_printf(l->arena, "%s/%s", l->context->ns, name)
                          : name;
    check_forms(l);
    check_topology(l);
    check_lists(l, own);
    check_match(l, own);
    check_compute(l);
    if (pod_view_refusals(l) > before)
        return;
    struct gang_ref gang;
    struct error err = ERROR_INIT;
    if (!read_gang(l, &gang, &err))
        pod_view_refuse(l, "metadata: %s; write the same in both", err.text);
    else
        check_group(l, &gang);
}

bool rules_gang_quorum(const struct pod_view *l, struct rules_quorum *out)
{
    struct gang_ref gang;
    *out = (struct rules_quorum){.name = NULL};
    if (!l->judged || !read_gang(l, &gang, NULL) || gang.form == GANG_NONE)
        return false;
    out->name = gang.name;
    out->pods = gang.min_available;
    for (size_t i = 0; i < FORMS; i++)
        if (out->pods > 0 && forms[i].min_key && value_at(l, forms[i].where, forms[i].min_key)) {
            out->path = arena_printf(l->arena, "metadata.%s[%s]", forms[i].where, forms[i].min_key);
            out->source = "pods must start together";
            return true;
        }
    if (gang.form == GANG_TOPOLOGY) {
        out->path = "metadata.labels[" NAME_LABEL_TOPOLOGY_REPLICA "]";
        out->source = "pods must start together";
        return true;
    }
    const char *key = arena_printf(l->arena, "%s/%s", l->context->ns, gang.name);
    const struct rules_group *group = l->context->groups ? map_get(l->context->groups, key) : NULL;
    out->pods = group ? group->min_member : 0;
    out->path = group_path(l);
    out->source =
        arena_printf(l->arena, "pods must start together by minMember of PodGroup %s", key);
    return true;
}
