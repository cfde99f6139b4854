// SPDX-License-Identifier: Apache-2.0
/*
 * kinds_work - what makes pods from a template: Deployment, ReplicaSet, StatefulSet, DaemonSet,
 * ReplicationController, Job, CronJob.
 *
 * The server makes a Job select its pods by its uid (selector and labels), so a Job never takes
 * over the pods of an earlier one of the same name.
 */
#include "test/local/kinds/kinds_check.h"
#include "test/local/kinds/kinds_fill.h"
#include "test/local/kinds/kinds_row.h"
#include "test/local/kinds/kinds_spec.h"

/* ---- defaults ---- */

static struct jsonnode *spec_with_template(struct jsontree *t, struct jsonnode *object)
{
    struct jsonnode *spec = kinds_fill_object(t, object, "spec");
    if (spec)
        kinds_spec_defaults(t, jsonnode_path(spec, "template", "spec", NULL));
    return spec;
}

/* 25% of the wanted replicas, for maxSurge and maxUnavailable. */
void kinds_work_deployment_defaults(struct jsontree *t, struct jsonnode *object)
{
    kinds_fill_object(t, object, "status");
    struct jsonnode *spec = spec_with_template(t, object);
    if (!spec)
        return;
    kinds_fill_int(t, spec, "replicas", 1);
    kinds_fill_int(t, spec, "revisionHistoryLimit", 10);
    kinds_fill_int(t, spec, "progressDeadlineSeconds", 600);
    struct jsonnode *strategy = kinds_fill_object(t, spec, "strategy");
    if (!strategy)
        return;
    kinds_fill_str(t, strategy, "type", "RollingUpdate");
    if (!str_eq(jsonnode_get_str(strategy, "type"), "RollingUpdate"))
        return;
    struct jsonnode *rolling = kinds_fill_object(t, strategy, "rollingUpdate");
    if (!rolling)
        return;
    kinds_fill_str(t, rolling, "maxUnavailable", "25%");
    kinds_fill_str(t, rolling, "maxSurge", "25%");
}

void kinds_work_replicaset_defaults(struct jsontree *t, struct jsonnode *object)
{
    struct jsonnode *spec = spec_with_template(t, object);
    if (spec)
        kinds_fill_int(t, spec, "replicas", 1);
    struct jsonnode *status = kinds_fill_object(t, object, "status");
    if (status)
        kinds_fill_int(t, status, "replicas", 0);
}

void kinds_work_statefulset_defaults(struct jsontree *t, struct jsonnode *object)
{
    kinds_work_replicaset_defaults(t, object);
    struct jsonnode *spec = jsonnode_get(object, "spec");
    if (!jsonnode_is_object(spec))
        return;
    kinds_fill_str(t, spec, "podManagementPolicy", "OrderedReady");
    kinds_fill_int(t, spec, "revisionHistoryLimit", 10);
    struct jsonnode *strategy = kinds_fill_object(t, spec, "updateStrategy");
    if (strategy)
        kinds_fill_str(t, strategy, "type", "RollingUpdate");
    if (str_eq(jsonnode_get_str(strategy, "type"), "RollingUpdate")) {
        struct jsonnode *rolling = kinds_fill_object(t, strategy, "rollingUpdate");
        if (rolling)
            kinds_fill_int(t, rolling, "partition", 0);
    }
    struct jsonnode *keep = kinds_fill_object(t, spec, "persistentVolumeClaimRetentionPolicy");
    if (keep) {
        kinds_fill_str(t, keep, "whenDeleted", "Retain");
        kinds_fill_str(t, keep, "whenScaled", "Retain");
    }
    struct jsonnode *status = jsonnode_get(object, "status");
    if (jsonnode_is_object(status))
        kinds_fill_int(t, status, "availableReplicas", 0);
}

void kinds_work_daemonset_defaults(struct jsontree *t, struct jsonnode *object)
{
    static const char *const counts[] = {"currentNumberScheduled", "numberMisscheduled",
                                         "desiredNumberScheduled", "numberReady"};
    struct jsonnode *spec = spec_with_template(t, object);
    if (!spec)
        return;
    kinds_fill_int(t, spec, "revisionHistoryLimit", 10);
    struct jsonnode *strategy = kinds_fill_object(t, spec, "updateStrategy");
    if (strategy)
        kinds_fill_str(t, strategy, "type", "RollingUpdate");
    if (str_eq(jsonnode_get_str(strategy, "type"), "RollingUpdate")) {
        struct jsonnode *rolling = kinds_fill_object(t, strategy, "rollingUpdate");
        if (rolling) {
            kinds_fill_int(t, rolling, "maxUnavailable", 1);
            kinds_fill_int(t, rolling, "maxSurge", 0);
        }
    }
    struct jsonnode *status = kinds_fill_object(t, object, "status");
    for (size_t i = 0; status && i < sizeof counts / sizeof *counts; i++)
        kinds_fill_int(t, status, counts[i], 0);
}

/* A ReplicationController without a selector or labels takes its template's labels. */
void kinds_work_controller_defaults(struct jsontree *t, struct jsonnode *object)
{
    kinds_work_replicaset_defaults(t, object);
    struct jsonnode *spec = jsonnode_get(object, "spec");
    struct jsonnode *labels = jsonnode_path(spec, "template", "metadata", "labels", NULL);
    struct jsonnode *meta = jsonnode_get(object, "metadata");
    if (!jsonnode_is_object(labels) || !jsonnode_is_object(spec))
        return;
    if (jsonnode_len(jsonnode_get(spec, "selector")) == 0)
        jsonnode_set(t, spec, "selector", jsonnode_clone(t, labels));
    if (jsonnode_is_object(meta) && jsonnode_len(jsonnode_get(meta, "labels")) == 0)
        jsonnode_set(t, meta, "labels", jsonnode_clone(t, labels));
}

static const char job_uid[] = "batch.kubernetes.io/controller-uid";

static void job_spec_defaults(struct jsontree *t, struct jsonnode *spec)
{
    kinds_spec_defaults(t, jsonnode_path(spec, "template", "spec", NULL));
}

static void job_selector(struct jsontree *t, struct jsonnode *object, struct jsonnode *spec)
{
    const char *uid = jsonnode_str(jsonnode_path(object, "metadata", "uid", NULL));
    const char *name = jsonnode_str(jsonnode_path(object, "metadata", "name", NULL));
    bool stored = jsonnode_path(object, "metadata", "resourceVersion", NULL) != NULL;
    /* Made when the job is, and never again: a PUT without it is refused. */
    if (stored || !uid || !name || jsonnode_bool(jsonnode_get(spec, "manualSelector"), false))
        return;
    const char *const labels[][2] = {{job_uid, uid},
                                     {"batch.kubernetes.io/job-name", name},
                                     {"controller-uid", uid},
                                     {"job-name", name}};
    struct jsonnode *meta = jsonnode_need_path(t, spec, "template", "metadata", NULL);
    struct jsonnode *on_pods = jsonnode_need_object(t, meta, "labels");
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
        if (kinds_fill_absent(jsonnode_get(on_pods, labels[i][0])))
            jsonnode_set_str(t, on_pods, labels[i][0], labels[i][1]);
    struct jsonnode *wanted = jsonnode_need_path(t, spec, "selector", "matchLabels", NULL);
    kinds_fill_str(t, wanted, job_uid, uid);
}

void kinds_work_job_defaults(struct jsontree *t, struct jsonnode *object)
{
    kinds_fill_object(t, object, "status");
    struct jsonnode *spec = kinds_fill_object(t, object, "spec");
    if (!spec)
        return;
    job_spec_defaults(t, spec);
    /* Neither given: one pod. Only parallelism given: a work queue, which knows no number of
     * completions. */
    if (kinds_fill_absent(jsonnode_get(spec, "completions")) &&
        kinds_fill_absent(jsonnode_get(spec, "parallelism")))
        jsonnode_set_int(t, spec, "completions", 1);
    kinds_fill_int(t, spec, "parallelism", 1);
    bool per_index = !kinds_fill_absent(jsonnode_get(spec, "backoffLimitPerIndex"));
    kinds_fill_int(t, spec, "backoffLimit", per_index ? INT32_MAX : 6);
    kinds_fill_str(t, spec, "completionMode", "NonIndexed");
    kinds_fill_bool(t, spec, "suspend", false);
    kinds_fill_bool(t, spec, "manualSelector", false);
    bool policy = !kinds_fill_absent(jsonnode_get(spec, "podFailurePolicy"));
    kinds_fill_str(t, spec, "podReplacementPolicy", policy ? "Failed" : "TerminatingOrFailed");
    job_selector(t, object, spec);
    /* A job without labels of its own takes its template's. */
    struct jsonnode *meta = jsonnode_get(object, "metadata");
    struct jsonnode *labels = jsonnode_path(spec, "template", "metadata", "labels", NULL);
    if (jsonnode_is_object(meta) && jsonnode_len(jsonnode_get(meta, "labels")) == 0 &&
        jsonnode_len(labels) > 0)
        jsonnode_set(t, meta, "labels", jsonnode_clone(t, labels));
}

void kinds_work_cronjob_defaults(struct jsontree *t, struct jsonnode *object)
{
    kinds_fill_object(t, object, "status");
    struct jsonnode *spec = kinds_fill_object(t, object, "spec");
    if (!spec)
        return;
    kinds_fill_str(t, spec, "concurrencyPolicy", "Allow");
    kinds_fill_bool(t, spec, "suspend", false);
    kinds_fill_int(t, spec, "successfulJobsHistoryLimit", 3);
    kinds_fill_int(t, spec, "failedJobsHistoryLimit", 1);
    job_spec_defaults(t, jsonnode_path(spec, "jobTemplate", "spec", NULL));
}

/* ---- rules ---- */

static const char mismatch[] = "`selector` does not match template `labels`";

static void check_template(struct kinds_check *c, struct jsonnode *spec)
{
    struct jsonnode *labels = jsonnode_path(spec, "template", "metadata", "labels", NULL);
    kinds_check_labels(c, "spec.template.metadata.labels", labels);
    kinds_spec_check(c, "spec.template.spec", jsonnode_path(spec, "template", "spec", NULL));
}

int kinds_work_validate(struct jsonnode *object, struct error *err)
{
    struct kinds_check c = {.count = 0};
    struct jsonnode *spec = jsonnode_get(object, "spec");
    struct jsonnode *selector = jsonnode_get(spec, "selector");
    struct jsonnode *template = jsonnode_get(spec, "template");
    struct jsonnode *labels = jsonnode_path(template, "metadata", "labels", NULL);
    const char *kind = str_or_empty(jsonnode_get_str(object, "kind"));
    kinds_check_metadata(&c, object, KINDS_NAME_SUBDOMAIN);
    kinds_check_at_least(&c, "spec.replicas", jsonnode_get(spec, "replicas"), 0);
    bool empty = jsonnode_is_object(selector) &&
                 jsonnode_len(jsonnode_get(selector, "matchLabels")) == 0 &&
                 jsonnode_len(jsonnode_get(selector, "matchExpressions")) == 0;
    if (kinds_fill_absent(selector)) {
        kinds_check_required(&c, "spec.selector", NULL);
    } else if (empty) {
        char detail[80], lower[40];
        str_format(lower, sizeof lower, "%s", kind);
        for (char *s = lower; *s; s++)
            if (*s >= 'A' && *s <= 'Z')
                *s = (char)(*s - 'A' + 'a');
        str_format(detail, sizeof detail, "empty selector is invalid for %s", lower);
        kinds_check_invalid_node(&c, "spec.selector", selector, detail);
    } else {
        kinds_check_selector(&c, "spec.selector", selector);
    }
    if (!empty && !kinds_check_selects(selector, labels))
        kinds_check_invalid_node(&c, "spec.template.metadata.labels", labels, mismatch);
    check_template(&c, spec);
    struct jsonnode *restart = jsonnode_path(template, "spec", "restartPolicy", NULL);
    if (str_eq(jsonnode_str(restart), "Never") || str_eq(jsonnode_str(restart), "OnFailure"))
        kinds_check_add(&c,
                        "spec.template.spec.restartPolicy: Unsupported value: \"%s\": supported "
                        "values: \"Always\"",
                        jsonnode_str(restart));
    const char *strategy = jsonnode_str(jsonnode_path(spec, "strategy", "type", NULL));
    if (strategy && !str_eq(strategy, "Recreate") && !str_eq(strategy, "RollingUpdate"))
        kinds_check_add(&c,
                        "spec.strategy: Unsupported value: {\"Type\":\"%s\","
                        "\"RollingUpdate\":null}: supported values: \"Recreate\", "
                        "\"RollingUpdate\"",
                        strategy);
    if (str_eq(strategy, "Recreate") &&
        !kinds_fill_absent(jsonnode_path(spec, "strategy", "rollingUpdate", NULL)))
        kinds_check_forbidden(&c, "spec.strategy.rollingUpdate",
                              "may not be specified when strategy `type` is 'Recreate'");
    return kinds_check_done(&c, object, err);
}

static void check_same(struct kinds_check *c, const char *at, struct jsonnode *old,
                       struct jsonnode *now)
{
    if (!jsonnode_equal(old, now))
        kinds_check_invalid_node(c, at, now, "field is immutable");
}

int kinds_work_validate_update(struct jsonnode *old, struct jsonnode *updated, struct error *err)
{
    struct kinds_check c = {.count = 0};
    check_same(&c, "spec.selector", jsonnode_path(old, "spec", "selector", NULL),
               jsonnode_path(updated, "spec", "selector", NULL));
    return kinds_check_done(&c, updated, err);
}

int kinds_work_job_validate(struct jsonnode *object, struct error *err)
{
    struct kinds_check c = {.count = 0};
    struct jsonnode *spec = jsonnode_get(object, "spec");
    struct jsonnode *selector = jsonnode_get(spec, "selector");
    struct jsonnode *labels = jsonnode_path(spec, "template", "metadata", "labels", NULL);
    const char *uid = jsonnode_str(jsonnode_path(object, "metadata", "uid", NULL));
    kinds_check_metadata(&c, object, KINDS_NAME_SUBDOMAIN);
    bool manual = jsonnode_bool(jsonnode_get(spec, "manualSelector"), false);
    struct jsonnode *wanted = jsonnode_get(selector, "matchLabels");
    if (kinds_fill_absent(selector))
        kinds_check_required(&c, "spec.selector", NULL);
    else if (!manual &&
             (jsonnode_len(wanted) != 1 || !str_eq(jsonnode_get_str(wanted, job_uid), uid) ||
              jsonnode_len(jsonnode_get(selector, "matchExpressions")) > 0))
        kinds_check_invalid_node(&c, "spec.selector", selector, "`selector` not auto-generated");
    static const char *const counts[] = {"parallelism", "completions", "activeDeadlineSeconds",
                                         "backoffLimit", "ttlSecondsAfterFinished"};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        char at[64];
        str_format(at, sizeof at, "spec.%s", counts[i]);
        kinds_check_at_least(&c, at, jsonnode_get(spec, counts[i]), 0);
    }
    static const char *const modes[] = {"Indexed", "NonIndexed", NULL};
    kinds_check_one_of(&c, "spec.completionMode", jsonnode_get(spec, "completionMode"), modes);
    if (!kinds_check_selects(selector, labels))
        kinds_check_invalid_node(&c, "spec.template.metadata.labels", labels, mismatch);
    check_template(&c, spec);
    const char *restart =
        jsonnode_str(jsonnode_path(spec, "template", "spec", "restartPolicy", NULL));
    if (!restart || str_eq(restart, "Always"))
        kinds_check_required(&c, "spec.template.spec.restartPolicy",
                             "valid values: \"OnFailure\", \"Never\"");
    return kinds_check_done(&c, object, err);
}

int kinds_work_job_validate_update(struct jsonnode *old, struct jsonnode *updated,
                                   struct error *err)
{
    struct kinds_check c = {.count = 0};
    struct jsonnode *before = jsonnode_get(old, "spec"), *after = jsonnode_get(updated, "spec");
    check_same(&c, "spec.completions", jsonnode_get(before, "completions"),
               jsonnode_get(after, "completions"));
    check_same(&c, "spec.selector", jsonnode_get(before, "selector"),
               jsonnode_get(after, "selector"));
    /* A job that is suspended and has not started may still be steered to other nodes. */
    bool fresh = jsonnode_bool(jsonnode_get(before, "suspend"), false) &&
                 kinds_fill_absent(jsonnode_path(old, "status", "startTime", NULL));
    if (!fresh)
        check_same(&c, "spec.template", jsonnode_get(before, "template"),
                   jsonnode_get(after, "template"));
    check_same(&c, "spec.completionMode", jsonnode_get(before, "completionMode"),
               jsonnode_get(after, "completionMode"));
    return kinds_check_done(&c, updated, err);
}
