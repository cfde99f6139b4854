// SPDX-License-Identifier: Apache-2.0
/*
 * Pod templates: where each kind of workload has them, and whether templates and their number of
 * pods are consistent.
 *
 * A workload owned by another (a Deployment's ReplicaSet) is not checked, since its owner was. On
 * an update that leaves the templates unchanged only the sizes are checked, and only with warnings:
 * running workloads must always be scalable and deletable.
 */
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/grant.h"
#include "lib/model/names.h"
#include "webhook/rules/rules_internal.h"

enum { TEMPLATES_MAX = 32 };

static const struct builtin {
    const char *group, *kind;
    bool nested;      /* under spec.jobTemplate */
    const char *size; /* member beside the template; NULL: depends on the nodes */
} builtins[] = {
    {"apps", "Deployment", false, "replicas"},        {"apps", "StatefulSet", false, "replicas"},
    {"apps", "ReplicaSet", false, "replicas"},        {"apps", "DaemonSet", false, NULL},
    {"batch", "Job", false, "parallelism"},           {"batch", "CronJob", true, "parallelism"},
    {"", "ReplicationController", false, "replicas"},
};

struct template
{
    json *value;
    json *around;   /* object that contains it and its replicas */
    const char *at; /* "spec.template." */
    const char *size_path;
    int64_t size; /* -1: unknown; 0: scaled to zero on purpose */
};
struct templates {
    struct template items[TEMPLATES_MAX];
    size_t len;
};

static const struct builtin *find_builtin(const struct rules_subject *s)
{
    for (size_t i = 0; i < sizeof builtins / sizeof builtins[0]; i++)
        if (str_eq(builtins[i].group, s->group) && str_eq(builtins[i].kind, s->kind))
            return &builtins[i];
    return NULL;
}

static const struct rules_crd *find_crd(const struct rules_config *config,
                                        const struct rules_subject *s)
{
    for (size_t i = 0; i < config->crds_len; i++)
        if (str_eq(config->crds[i].group, s->group) && str_eq(config->crds[i].kind, s->kind))
            return &config->crds[i];
    return NULL;
}

bool rules_workload_is(const struct rules_config *config, const struct rules_subject *s)
{
    return find_builtin(s) || find_crd(config, s);
}

/* ---- finding the templates ---- */

static int64_t number_or(json *v, int64_t fallback)
{
    int64_t n = 0;
    return !v || json_is_null(v) ? fallback : json_int(v, &n) && n >= 0 ? n : -1;
}

/* A Job runs at most `completions` pods at a time. *member becomes the field that decides. */
static int64_t size_of(json *around, const char **member)
{
    if (!*member)
        return -1;
    int64_t n = number_or(json_get(around, *member), 1);
    int64_t all =
        str_eq(*member, "parallelism") ? number_or(json_get(around, "completions"), -1) : -1;
    if (all < 0 || all >= n)
        return n;
    *member = "completions";
    return all;
}

static void add(struct templates *out, struct arena *a, json *around, const char *before,
                const char *name, const char *member)
{
    json *value = json_get(around, name);
    if (!value || json_is_null(value) || out->len == TEMPLATES_MAX)
        return;
    int64_t size = size_of(around, &member);
    out->items[out->len++] =
        (struct template){.value = value,
                          .around = around,
                          .at = arena_printf(a, "%s%s.", before, name),
                          .size_path = arena_printf(a, "%s%s", before, str_or_empty(member)),
                          .size = size};
}

static void walk(struct templates *out, struct arena *a, json *v, const char *before,
                 const struct rules_crd *crd, size_t depth)
{
    const char *part = crd->path[depth];
    if (depth + 1 == crd->path_len) {
        add(out, a, v, before, part, "replicas");
        return;
    }
    if (!str_eq(part, "*")) {
        walk(out, a, json_get(v, part), arena_printf(a, "%s%s.", before, part), crd, depth + 1);
        return;
    }
    size_t i = 0;
    for (struct json_iter it = json_iter(v); json_next(&it) && out->len < TEMPLATES_MAX; i++) {
        char number[24];
        (void)str_format(number, sizeof number, "%zu", i);
        walk(out, a, it.value, arena_printf(a, "%s%s.", before, it.key ? it.key : number), crd,
             depth + 1);
    }
}

static void find_templates(const struct rules_config *config, const struct rules_subject *s,
                           json *object, struct arena *a, struct templates *out)
{
    const struct builtin *b = find_builtin(s);
    out->len = 0;
    if (!b) {
        walk(out, a, object, "", find_crd(config, s), 0);
        return;
    }
    json *spec = json_get(object, "spec");
    if (b->nested)
        add(out, a, json_get(json_get(spec, "jobTemplate"), "spec"), "spec.jobTemplate.spec.",
            "template", b->size);
    else
        add(out, a, spec, "spec.", "template", b->size);
}

static void warn_result_keys(struct pod_view *l)
{
    for (size_t i = 0; i < l->annotations.len; i++)
        if (grant_is_result_key(l->annotations.items[i].key))
            pod_view_warn(
                l,
                "metadata.annotations[%s]: will be removed from every pod; cosched writes it "
                "when it places the pod",
                l->annotations.items[i].key);
}

/* ---- consistency ---- */

static void warn_size(struct pod_view *l, const struct rules_quorum *q, int64_t pods,
                      const char *size_path)
{
    pod_view_warn(l, "%s: %lld %s, but %s %lld; write at most %lld, or raise it", q->path,
                  (long long)q->pods, q->source, size_path, (long long)pods, (long long)pods);
}

static void check_sizes(struct pod_view *views, const struct templates *t)
{
    for (size_t i = 0; i < t->len; i++) {
        struct rules_quorum q, other;
        int64_t pods = t->items[i].size;
        size_t members = 1;
        bool counted = false;
        if (!rules_gang_quorum(&views[i], &q) || q.pods == 0 || pods < 0)
            continue;
        for (size_t j = 0; j < t->len; j++) {
            if (j == i || !rules_gang_quorum(&views[j], &other) || !str_eq(q.name, other.name))
                continue;
            counted = counted || j < i || t->items[j].size < 0;
            pods = num_add_sat(pods, t->items[j].size);
            members++;
        }
        if (!counted && pods > 0 && q.pods > pods)
            warn_size(&views[i], &q, pods,
                      members > 1 ? "all replicas of the gang here are"
                                  : arena_printf(views[i].arena, "%s is", t->items[i].size_path));
    }
}

/* OrderedReady waits until a pod is ready, but no pod is before the gang is complete. */
static void check_order(struct pod_view *own, const struct rules_subject *s, struct pod_view *l)
{
    struct rules_quorum q;
    json *spec = json_get(s->object, "spec");
    const char *order = json_get_str(spec, "podManagementPolicy");
    if (!str_eq(s->kind, "StatefulSet") || str_eq(order, "Parallel") || !rules_gang_quorum(l, &q) ||
        q.pods < 2)
        return;
    pod_view_warn(own,
                  "spec.podManagementPolicy: %s makes one pod after the other, but %lld must start "
                  "together (%s%s); write Parallel",
                  order ? pod_view_quote(own, order) : "OrderedReady", (long long)q.pods, l->at,
                  q.path);
}

/* Pods of another scheduler do not count: the gang would wait for them. */
static void check_schedulers(struct pod_view *a, struct pod_view *b)
{
    struct pod_view *other = a->ours ? b : a;
    const struct pod_view *us = a->ours ? a : b;
    const char *name = rules_gang_name(a);
    if (a->ours == b->ours || !name || !str_eq(name, rules_gang_name(b)))
        return;
    pod_view_warn(other,
                  "spec.schedulerName: %s, but the gang's pods of %sspec have %s; a gang has one "
                  "scheduler, write the same in both",
                  pod_view_quote(other, str_or_empty(json_get_str(other->spec, "schedulerName"))),
                  us->at, pod_view_quote(other, us->config->scheduler));
}

static void check_pair(struct pod_view *a, struct pod_view *b)
{
    struct rules_quorum x, y;
    check_schedulers(a, b);
    if (!rules_gang_quorum(a, &x) || !rules_gang_quorum(b, &y) || !str_eq(x.name, y.name))
        return;
    const char *class_a = str_or_empty(pod_view_label(a, NAME_LABEL_COMPUTE_CLASS));
    const char *class_b = str_or_empty(pod_view_label(b, NAME_LABEL_COMPUTE_CLASS));
    if (!str_eq(class_a, class_b))
        pod_view_refuse(b,
                        "metadata.labels[" NAME_LABEL_COMPUTE_CLASS
                        "]: %s, but the gang's pods of %smetadata have %s; write the same in both",
                        pod_view_quote(b, class_b), a->at, pod_view_quote(b, class_a));
    const char *priority_a = str_or_empty(json_get_str(a->spec, "priorityClassName"));
    const char *priority_b = str_or_empty(json_get_str(b->spec, "priorityClassName"));
    if (!str_eq(priority_a, priority_b))
        pod_view_warn(
            b,
            "spec.priorityClassName: %s, but the gang's pods of %sspec have %s; a gang has one "
            "priority, write the same in both",
            pod_view_quote(b, priority_b), a->at, pod_view_quote(b, priority_a));
    if (x.pods > 0 && y.pods > 0 && x.pods != y.pods)
        pod_view_warn(b, "%s: %lld, but %s%s says %lld; write the same in both", y.path,
                      (long long)y.pods, a->at, x.path, (long long)x.pods);
}

static bool is_owned(json *object)
{
    json *owners = json_get(json_get(object, "metadata"), "ownerReferences");
    for (struct json_iter it = json_iter(owners); json_next(&it);)
        if (json_get_bool(it.value, "controller", false))
            return true;
    return false;
}

static bool is_same(const struct templates *a, const struct templates *b)
{
    for (size_t i = 0; i < a->len; i++)
        if (a->len != b->len || !json_equal(a->items[i].value, b->items[i].value))
            return false;
    return true;
}

static int view_templates(struct pod_view *own, const struct rules_subject *s,
                          const struct templates *t, struct pod_view *views, struct error *err)
{
    for (size_t i = 0; i < t->len; i++) {
        const char *at = t->items[i].at;
        views[i] = (struct pod_view){.config = own->config,
                                     .context = own->context,
                                     .arena = own->arena,
                                     .verdict = own->verdict,
                                     .at = at,
                                     .daemon = str_eq(s->kind, "DaemonSet")};
        if (pod_view_init(&views[i], t->items[i].value, err) < 0)
            return error_wrap(err, "%.*s", (int)strlen(at) - 1, at);
        rules_decide(&views[i]);
    }
    return 0;
}

/* Our keys on metadata of the workload and, in a CronJob, of its Jobs do not reach the pods. */
static int check_own(struct pod_view *own, const struct rules_subject *s,
                     const struct pod_view *views, size_t n, bool changed, struct error *err)
{
    json *job = json_get(json_get(s->object, "spec"), "jobTemplate");
    json *job_before = json_get(json_get(s->old, "spec"), "jobTemplate");
    if (pod_view_init_metadata(own, s->object, err) < 0)
        return -1;
    rules_place_own(own, changed ? NULL : json_get(s->old, "metadata"), views, n, s->kind);
    if (!str_eq(s->kind, "CronJob"))
        return 0;
    struct pod_view jobs = *own;
    jobs.at = "spec.jobTemplate.";
    if (pod_view_init_metadata(&jobs, job, err) < 0)
        return -1;
    rules_place_own(&jobs, changed ? NULL : json_get(job_before, "metadata"), views, n, "Job");
    return 0;
}

int rules_workload_check(struct pod_view *own, const struct rules_subject *s, struct error *err)
{
    struct templates *now = arena_new(own->arena, struct templates, 2);
    struct templates *before = now + 1;
    find_templates(own->config, s, s->object, own->arena, now);
    if (now->len == 0 || is_owned(s->object))
        return 0;
    if (s->old)
        find_templates(own->config, s, s->old, own->arena, before);
    bool changed = !s->old || !is_same(now, before);
    struct pod_view *views = arena_new(own->arena, struct pod_view, now->len);
    if (view_templates(own, s, now, views, err) < 0)
        return -1;
    for (size_t i = 0; changed && i < now->len; i++) {
        warn_result_keys(&views[i]);
        rules_check(&views[i]);
        for (size_t j = 0; j < i; j++)
            check_pair(&views[j], &views[i]);
    }
    check_sizes(views, now);
    if (changed)
        check_order(own, s, &views[0]);
    return views[0].judged ? check_own(own, s, views, now->len, changed, err) : 0;
}

/* ---- the option for custom resources ---- */

/* "kubeflow.org/TFJob=spec.tfReplicaSpecs.*.template" */
static int parse_one(const char *text, struct arena *a, struct rules_crd *out, struct error *err)
{
    const char *slash = strchr(text, '/');
    const char *equal = strchr(text, '=');
    *out = (struct rules_crd){.path_len = 0};
    if (!slash || !equal || slash == text || equal < slash || equal == slash + 1)
        return error_set(err, ERROR_INVALID,
                         "'%.100s': must be GROUP/KIND=PATH, as "
                         "kubeflow.org/TFJob=spec.tfReplicaSpecs.*.template",
                         text);
    out->group = arena_strndup(a, text, (size_t)(slash - text));
    out->kind = arena_strndup(a, slash + 1, (size_t)(equal - slash - 1));
    for (const char *s = equal + 1;; s++) {
        size_t n = strcspn(s, ".");
        if (n == 0 || out->path_len == RULES_PATH_MAX)
            return error_set(err, ERROR_INVALID, "'%.100s': the path must have 1 to %d parts", text,
                             RULES_PATH_MAX);
        out->path[out->path_len++] = arena_strndup(a, s, n);
        s += n;
        if (*s == '\0')
            break;
    }
    if (str_eq(out->path[out->path_len - 1], "*"))
        return error_set(err, ERROR_INVALID, "'%.100s': the path must end with a name", text);
    return 0;
}

int rules_crds_parse(const char *text, struct arena *a, struct rules_crd **out, size_t *len,
                     struct error *err)
{
    *out = arena_new(a, struct rules_crd, RULES_CRDS_MAX);
    *len = 0;
    while (*text != '\0') {
        size_t n = strcspn(text, ",");
        if (*len == RULES_CRDS_MAX)
            return error_set(err, ERROR_INVALID, "at most %d kinds", RULES_CRDS_MAX);
        if (n > 0 && parse_one(arena_strndup(a, text, n), a, &(*out)[(*len)++], err) < 0)
            return -1;
        text += n + (text[n] == ',');
    }
    return 0;
}
