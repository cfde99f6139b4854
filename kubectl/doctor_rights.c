// SPDX-License-Identifier: Apache-2.0
/* Rights of the three programs, as the chart's roles grant them. test_doctor compares the table
 * with deploy/manifests in both directions. */
#include "kubectl/doctor.h"

#define SIGS "scheduling.sigs.k8s.io"
#define X "scheduling.x-k8s.io"
#define ALIBABA "scheduling.alibabacloud.com"
#define ADMISSION "admissionregistration.k8s.io"

const struct doctor_right doctor_rights[] = {
    {"scheduler", "list watch get delete", "", "pods", NULL, DOCTOR_ANYWHERE},
    {"scheduler", "create", "", "pods", "binding", DOCTOR_ANYWHERE},
    {"scheduler", "patch", "", "pods", "status", DOCTOR_ANYWHERE},
    {"scheduler", "list watch get", "", "nodes", NULL, DOCTOR_ANYWHERE},
    {"scheduler", "list watch", "", "namespaces", NULL, DOCTOR_ANYWHERE},
    {"scheduler", "list watch get patch", "", "persistentvolumeclaims", NULL, DOCTOR_ANYWHERE},
    {"scheduler", "list watch get patch", "", "persistentvolumes", NULL, DOCTOR_ANYWHERE},
    {"scheduler", "list watch", "storage.k8s.io", "storageclasses", NULL, DOCTOR_ANYWHERE},
    {"scheduler", "list watch", "storage.k8s.io", "csinodes", NULL, DOCTOR_ANYWHERE},
    {"scheduler", "list watch", "storage.k8s.io", "csidrivers", NULL, DOCTOR_ANYWHERE},
    {"scheduler", "list watch", "storage.k8s.io", "csistoragecapacities", NULL, DOCTOR_ANYWHERE},
    {"scheduler", "list watch", "storage.k8s.io", "volumeattachments", NULL, DOCTOR_ANYWHERE},
    {"scheduler", "list watch", "policy", "poddisruptionbudgets", NULL, DOCTOR_ANYWHERE},
    {"scheduler", "list watch", "resource.k8s.io", "deviceclasses", NULL, DOCTOR_ANYWHERE},
    {"scheduler", "list watch", SIGS, "podgroups", NULL, DOCTOR_ANYWHERE},
    {"scheduler", "list watch", X, "podgroups", NULL, DOCTOR_ANYWHERE},
    {"scheduler", "patch", SIGS, "podgroups", "status", DOCTOR_ANYWHERE},
    {"scheduler", "patch", X, "podgroups", "status", DOCTOR_ANYWHERE},
    {"scheduler", "list watch", ALIBABA, "resourcepolicies", NULL, DOCTOR_ANYWHERE},
    {"scheduler", "patch", ALIBABA, "resourcepolicies", "status", DOCTOR_ANYWHERE},
    {"scheduler", "list watch", "scheduling.k8s.io", "podgroups", NULL, DOCTOR_ANYWHERE},
    {"scheduler", "create patch", "", "events", NULL, DOCTOR_ANYWHERE},
    {"scheduler", "create", "coordination.k8s.io", "leases", NULL, DOCTOR_AT_HOME},
    {"scheduler", "get update", "coordination.k8s.io", "leases", NULL, DOCTOR_LEASE},
    {"webhook", "create", "", "secrets", NULL, DOCTOR_AT_HOME},
    {"webhook", "get patch", "", "secrets", NULL, DOCTOR_SECRET},
    {"webhook", "list watch", "", "namespaces", NULL, DOCTOR_ANYWHERE},
    {"webhook", "list watch", SIGS, "podgroups", NULL, DOCTOR_ANYWHERE},
    {"webhook", "list watch", X, "podgroups", NULL, DOCTOR_ANYWHERE},
    {"webhook", "list watch", ALIBABA, "resourcepolicies", NULL, DOCTOR_ANYWHERE},
    {"webhook", "get patch", ADMISSION, "mutatingwebhookconfigurations", NULL, DOCTOR_MUTATING},
    {"webhook", "get patch", ADMISSION, "validatingwebhookconfigurations", NULL, DOCTOR_VALIDATING},
    {"device-plugin", "list watch patch", "", "nodes", NULL, DOCTOR_ANYWHERE},
    {"device-plugin", "patch", "", "nodes", "status", DOCTOR_ANYWHERE},
    {"device-plugin", "list watch get patch", "", "pods", NULL, DOCTOR_ANYWHERE},
    {"device-plugin", "create patch", "", "events", NULL, DOCTOR_ANYWHERE},
};
const size_t doctor_rights_len = sizeof doctor_rights / sizeof doctor_rights[0];
