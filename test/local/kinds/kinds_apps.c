// SPDX-License-Identifier: Apache-2.0
/*
 * kinds_apps - rows of what makes pods: the groups apps and batch.
 */
#include "test/local/kinds/kinds_row.h"

static const struct kind_column deployment_columns[] = {
    COLUMN_NAME,
    COLUMN_FN("Ready", "string", "ready replicas, of all", kinds_print_ready_of_replicas),
    COLUMN_COUNT("Up-to-date", "status.updatedReplicas"),
    COLUMN_COUNT("Available", "status.availableReplicas"),
    COLUMN_AGE,
    COLUMN_END};
const struct kind kind_deployments = {
    KIND_IN("apps", "v1", "Deployment", "deployments", "deployment"),
    .short_names = WORDS("deploy"),
    .categories = WORDS("all"),
    .namespaced = true,
    .has_status = true,
    .has_scale = true,
    .has_generation = true,
    .columns = deployment_columns,
    .fill_defaults = kinds_work_deployment_defaults,
    .validate = kinds_work_validate,
    .validate_update = kinds_work_validate_update,
};

static const struct kind_column replicaset_columns[] = {
    COLUMN_NAME,
    COLUMN_PATH("Desired", "integer", "spec.replicas"),
    COLUMN_PATH("Current", "integer", "status.replicas"),
    COLUMN_PATH("Ready", "integer", "status.readyReplicas"),
    COLUMN_AGE,
    COLUMN_END};
const struct kind kind_replicasets = {
    KIND_IN("apps", "v1", "ReplicaSet", "replicasets", "replicaset"),
    .short_names = WORDS("rs"),
    .categories = WORDS("all"),
    .namespaced = true,
    .has_status = true,
    .has_scale = true,
    .has_generation = true,
    .columns = replicaset_columns,
    .fields = WORDS("status.replicas"),
    .fill_defaults = kinds_work_replicaset_defaults,
    .validate = kinds_work_validate,
    .validate_update = kinds_work_validate_update,
};

const struct kind kind_daemon_sets = {
    KIND_IN("apps", "v1", "DaemonSet", "daemonsets", "daemonset"),
    .short_names = WORDS("ds"),
    .categories = WORDS("all"),
    .namespaced = true,
    .has_status = true,
    .has_generation = true,
    .fill_defaults = kinds_work_daemonset_defaults,
    .validate = kinds_work_validate,
    .validate_update = kinds_work_validate_update,
};

const struct kind kind_stateful_sets = {
    KIND_IN("apps", "v1", "StatefulSet", "statefulsets", "statefulset"),
    .short_names = WORDS("sts"),
    .categories = WORDS("all"),
    .namespaced = true,
    .has_status = true,
    .has_scale = true,
    .has_generation = true,
    .fill_defaults = kinds_work_statefulset_defaults,
    .validate = kinds_work_validate,
    .validate_update = kinds_work_validate_update,
};

const struct kind kind_controller_revisions = {
    KIND_IN("apps", "v1", "ControllerRevision", "controllerrevisions", "controllerrevision"),
    .namespaced = true,
    .validate = kinds_plain_validate,
};

static const struct kind_column job_columns[] = {COLUMN_NAME,
                                                 COLUMN_FN("Completions", "string",
                                                           "pods that succeeded, of those needed",
                                                           kinds_print_job_completions),
                                                 COLUMN_AGE, COLUMN_END};
const struct kind kind_jobs = {
    KIND_IN("batch", "v1", "Job", "jobs", "job"),
    .orphans = true,
    .categories = WORDS("all"),
    .namespaced = true,
    .has_status = true,
    .has_generation = true,
    .columns = job_columns,
    .fields = WORDS("status.successful"),
    .fill_defaults = kinds_work_job_defaults,
    .validate = kinds_work_job_validate,
    .validate_update = kinds_work_job_validate_update,
};

const struct kind kind_cron_jobs = {
    KIND_IN("batch", "v1", "CronJob", "cronjobs", "cronjob"),
    .short_names = WORDS("cj"),
    .categories = WORDS("all"),
    .namespaced = true,
    .has_status = true,
    .has_generation = true,
    .fill_defaults = kinds_work_cronjob_defaults,
    .validate = kinds_plain_validate,
};
