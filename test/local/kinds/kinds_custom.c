// SPDX-License-Identifier: Apache-2.0
/*
 * kinds_custom - rows of the CRDs that our programs and the documents' manifests use. Their columns
 * are those that our own CRD manifests name.
 */
#include "test/local/kinds/kinds_row.h"

const struct kind kind_tfjobs = {
    KIND_IN("kubeflow.org", "v1", "TFJob", "tfjobs", "tfjob"),
    .update_needs_version = true,
    .namespaced = true,
    .has_status = true,
    .has_generation = true,
    .custom = true,
    .validate = kinds_plain_validate,
};

static const struct kind_column group_columns[] = {
    COLUMN_NAME,
    COLUMN_TEXT("Phase", "status.phase"),
    COLUMN_PATH("MinMember", "integer", "spec.minMember"),
    COLUMN_PATH("Running", "integer", "status.running"),
    COLUMN_AGE,
    COLUMN_END};
#define POD_GROUP(g)                                                                   \
    {                                                                                  \
        KIND_IN(g, "v1alpha1", "PodGroup", "podgroups", "podgroup"),                   \
            .short_names = WORDS("pg", "pgs"), .namespaced = true, .has_status = true, \
            .has_generation = true, .custom = true, .update_needs_version = true,      \
            .columns = group_columns, .validate = kinds_plain_validate,                \
    }
const struct kind kind_pod_groups = POD_GROUP("scheduling.sigs.k8s.io");
const struct kind kind_pod_groups_x = POD_GROUP("scheduling.x-k8s.io");

static const struct kind_column policy_columns[] = {
    COLUMN_NAME,
    COLUMN_TEXT("Phase", "status.phase"),
    COLUMN_TEXT("Pods", "status.summary"),
    COLUMN_PATH("Waiting", "integer", "status.waiting"),
    COLUMN_AGE,
    COLUMN_END};
const struct kind kind_resource_policies = {
    KIND_IN("scheduling.alibabacloud.com", "v1alpha1", "ResourcePolicy", "resourcepolicies",
            "resourcepolicy"),
    .short_names = WORDS("rp"),
    .update_needs_version = true,
    .namespaced = true,
    .has_status = true,
    .has_generation = true,
    .custom = true,
    .columns = policy_columns,
    .validate = kinds_plain_validate,
};
