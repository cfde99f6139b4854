// SPDX-License-Identifier: Apache-2.0
/*
 * kinds_plain - defaults and rules of the smaller kinds.
 */
#include <stdlib.h>

#include "lib/base/base64.h"
#include "lib/base/clock.h"
#include "lib/base/map.h"
#include "test/local/kinds/kinds_amount.h"
#include "test/local/kinds/kinds_check.h"
#include "test/local/kinds/kinds_fill.h"
#include "test/local/kinds/kinds_row.h"

int kinds_plain_validate(struct jsonnode *object, struct error *err)
{
    struct kinds_check c = {.count = 0};
    kinds_check_metadata(&c, object, KINDS_NAME_SUBDOMAIN);
    return kinds_check_done(&c, object, err);
}

/* The bytes of the values; base64: of what they stand for. */
static size_t bytes_of(struct jsonnode *texts, bool base64)
{
    size_t bytes = 0;
    for (struct jsonnode_iter it = jsonnode_iter(texts); jsonnode_next(&it);) {
        const char *text = str_or_empty(jsonnode_str(it.value));
        size_t n = strlen(text);
        size_t padding = n > 1 ? (size_t)(text[n - 1] == '=') + (size_t)(text[n - 2] == '=') : 0;
        bytes += base64 ? n / 4 * 3 - padding : n;
    }
    return bytes;
}

static void check_data_keys(struct kinds_check *c, const char *field, struct jsonnode *data,
                            struct jsonnode *binary)
{
    static const char legal[] = "-._0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for (struct jsonnode_iter it = jsonnode_iter(data); jsonnode_next(&it) && it.key;) {
        char at[320];
        size_t n = strlen(it.key);
        str_format(at, sizeof at, "%s[%.280s]", field, it.key);
        if (n > 253)
            kinds_check_invalid(c, at, it.key, "must be no more than 253 characters");
        if (n == 0 || strspn(it.key, legal) != n)
            kinds_check_invalid(
                c, at, it.key,
                "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
                "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
                "'[-._a-zA-Z0-9]+')");
        else if (str_eq(it.key, ".") || str_starts(it.key, ".."))
            kinds_check_invalid(c, at, it.key,
                                str_eq(it.key, ".")    ? "must not be '.'"
                                : str_eq(it.key, "..") ? "must not be '..'"
                                                       : "must not start with '..'");
        if (binary && jsonnode_get(binary, it.key))
            kinds_check_invalid(c, at, it.key, "duplicate of key present in binaryData");
    }
}

enum { DATA_MAX_BYTES = 1024 * 1024 }; /* of a config map or secret */

int kinds_plain_config_map_validate(struct jsonnode *object, struct error *err)
{
    struct kinds_check c = {.count = 0};
    struct jsonnode *data = jsonnode_get(object, "data");
    struct jsonnode *binary = jsonnode_get(object, "binaryData");
    kinds_check_metadata(&c, object, KINDS_NAME_SUBDOMAIN);
    kinds_check_texts(&c, "ConfigMap.data", data);
    check_data_keys(&c, "data", data, binary);
    check_data_keys(&c, "binaryData", binary, NULL);
    if (bytes_of(data, false) + bytes_of(binary, true) > DATA_MAX_BYTES)
        kinds_check_add(&c, "[]: Too long: may not be more than %d bytes", DATA_MAX_BYTES);
    return kinds_check_done(&c, object, err);
}

int kinds_plain_secret_validate(struct jsonnode *object, struct error *err)
{
    struct kinds_check c = {.count = 0};
    kinds_check_metadata(&c, object, KINDS_NAME_SUBDOMAIN);
    check_data_keys(&c, "data", jsonnode_get(object, "data"), NULL);
    if (bytes_of(jsonnode_get(object, "data"), true) > DATA_MAX_BYTES)
        kinds_check_add(&c, "data: Too long: may not be more than %d bytes", DATA_MAX_BYTES);
    return kinds_check_done(&c, object, err);
}

int kinds_plain_data_validate_update(struct jsonnode *old, struct jsonnode *updated,
                                     struct error *err)
{
    static const char *const members[] = {"immutable", "data", "binaryData"};
    struct kinds_check c = {.count = 0};
    struct jsonnode *type = jsonnode_get(updated, "type");
    if (!jsonnode_equal(jsonnode_get(old, "type"), type))
        kinds_check_invalid_node(&c, "type", type, "field is immutable");
    bool frozen = jsonnode_bool(jsonnode_get(old, "immutable"), false);
    for (size_t i = 0; frozen && i < sizeof members / sizeof *members; i++)
        if (!jsonnode_equal(jsonnode_get(old, members[i]), jsonnode_get(updated, members[i])))
            kinds_check_forbidden(&c, members[i], "field is immutable when `immutable` is set");
    return kinds_check_done(&c, updated, err);
}

int kinds_plain_role_validate(struct jsonnode *object, struct error *err)
{
    struct kinds_check c = {.count = 0};
    kinds_check_metadata(&c, object, KINDS_NAME_SEGMENT);
    return kinds_check_done(&c, object, err);
}

/* ---- nodes and namespaces ---- */

/* Unless the kubelet keeps something back, all there is can be given to pods. */
void kinds_plain_node_defaults(struct jsontree *t, struct jsonnode *object)
{
    static const char *const info[] = {"machineID",       "systemUUID",
                                       "bootID",          "kernelVersion",
                                       "osImage",         "containerRuntimeVersion",
                                       "kubeletVersion",  "kubeProxyVersion",
                                       "operatingSystem", "architecture"};
    kinds_fill_object(t, object, "spec");
    struct jsonnode *status = kinds_fill_object(t, object, "status");
    if (!status)
        return;
    struct jsonnode *capacity = jsonnode_get(status, "capacity");
    kinds_amount_canonicalize(t, capacity);
    if (kinds_fill_absent(jsonnode_get(status, "allocatable")) && jsonnode_len(capacity) > 0)
        jsonnode_set(t, status, "allocatable", jsonnode_clone(t, capacity));
    kinds_amount_canonicalize(t, jsonnode_get(status, "allocatable"));
    struct jsonnode *endpoints = kinds_fill_object(t, status, "daemonEndpoints");
    struct jsonnode *kubelet =
        endpoints ? kinds_fill_object(t, endpoints, "kubeletEndpoint") : NULL;
    if (kubelet)
        kinds_fill_int(t, kubelet, "Port", 0);
    struct jsonnode *node_info = kinds_fill_object(t, status, "nodeInfo");
    for (size_t i = 0; node_info && i < sizeof info / sizeof *info; i++)
        if (kinds_fill_absent(jsonnode_get(node_info, info[i])))
            jsonnode_set_str(t, node_info, info[i], "");
}

static void check_taints(struct kinds_check *c, struct jsonnode *taints)
{
    static const char *const effects[] = {"NoSchedule", "PreferNoSchedule", "NoExecute", NULL};
    char at[64];
    struct map seen; /* "key:effect", owned */
    size_t i = 0;
    map_init(&seen);
    for (struct jsonnode_iter it = jsonnode_iter(taints); jsonnode_next(&it); i++) {
        const char *key = str_or_empty(jsonnode_get_str(it.value, "key"));
        const char *effect = str_or_empty(jsonnode_get_str(it.value, "effect"));
        const char *value = str_or_empty(jsonnode_get_str(it.value, "value"));
        str_format(at, sizeof at, "metadata.taints[%zu].key", i);
        kinds_check_qualified(c, at, key);
        str_format(at, sizeof at, "metadata.taints[%zu].value", i);
        kinds_check_label_value(c, at, value);
        str_format(at, sizeof at, "metadata.taints[%zu].effect", i);
        if (!*effect)
            kinds_check_required(c, at, NULL);
        else
            kinds_check_one_of(c, at, jsonnode_get(it.value, "effect"), effects);
        struct strbuf pair = {0};
        strbuf_addf(&pair, "%s:%s", key, effect);
        if (!map_get(&seen, strbuf_str(&pair))) {
            char *owned = strbuf_take(&pair);
            (void)map_put(&seen, owned, owned);
            continue;
        }
        strbuf_deinit(&pair);
        kinds_check_add(c,
                        "metadata.taints[%zu]: Duplicate value: {\"Key\":\"%s\",\"Value\":"
                        "\"%s\",\"Effect\":\"%s\",\"TimeAdded\":null}: taints must be "
                        "unique by key and effect pair",
                        i, key, value, effect);
    }
    void *owned;
    for (size_t k = 0; map_next(&seen, &k, NULL, &owned);)
        free(owned);
    map_deinit(&seen);
}

int kinds_plain_node_validate(struct jsonnode *object, struct error *err)
{
    static const char *const lists[] = {"capacity", "allocatable"};
    struct kinds_check c = {.count = 0};
    kinds_check_metadata(&c, object, KINDS_NAME_SUBDOMAIN);
    check_taints(&c, jsonnode_path(object, "spec", "taints", NULL));
    for (size_t i = 0; i < 2; i++) {
        struct jsonnode *list = jsonnode_path(object, "status", lists[i], NULL);
        for (struct jsonnode_iter it = jsonnode_iter(list); jsonnode_next(&it) && it.key;) {
            char at[256];
            str_format(at, sizeof at, "status.%s.%s", lists[i], it.key);
            kinds_amount_check(&c, at, it.key, it.value);
        }
    }
    return kinds_check_done(&c, object, err);
}

void kinds_plain_namespace_defaults(struct jsontree *t, struct jsonnode *object)
{
    struct jsonnode *spec = kinds_fill_object(t, object, "spec");
    struct jsonnode *meta = jsonnode_get(object, "metadata");
    const char *name = jsonnode_get_str(meta, "name");
    bool ending = !kinds_fill_absent(jsonnode_get(meta, "deletionTimestamp"));
    if (spec && !ending && kinds_fill_absent(jsonnode_get(spec, "finalizers"))) {
        struct jsonnode *finalizers = jsonnode_array(t);
        jsonnode_append(finalizers, jsonnode_string(t, "kubernetes"));
        jsonnode_set(t, spec, "finalizers", finalizers);
    }
    struct jsonnode *labels = name ? kinds_fill_object(t, meta, "labels") : NULL;
    if (labels)
        jsonnode_set_str(t, labels, "kubernetes.io/metadata.name", name);
    struct jsonnode *status = kinds_fill_object(t, object, "status");
    if (status)
        kinds_fill_str(t, status, "phase", ending ? "Terminating" : "Active");
}

int kinds_plain_namespace_validate(struct jsonnode *object, struct error *err)
{
    struct kinds_check c = {.count = 0};
    const char *phase = jsonnode_str(jsonnode_path(object, "status", "phase", NULL));
    bool ending = jsonnode_path(object, "metadata", "deletionTimestamp", NULL) != NULL;
    size_t i = 0;
    kinds_check_metadata(&c, object, KINDS_NAME_LABEL);
    for (struct jsonnode_iter it = jsonnode_iter(jsonnode_path(object, "spec", "finalizers", NULL));
         jsonnode_next(&it); i++) {
        char at[64];
        str_format(at, sizeof at, "spec.finalizers[%zu]", i);
        kinds_check_finalizer(&c, at, str_or_empty(jsonnode_str(it.value)));
    }
    if (phase && !str_eq(phase, ending ? "Terminating" : "Active"))
        kinds_check_invalid(&c, "status.Phase", phase,
                            ending ? "may only be 'Terminating' if `deletionTimestamp` is not empty"
                                   : "may only be 'Active' if `deletionTimestamp` is empty");
    return kinds_check_done(&c, object, err);
}

/* ---- services, secrets, storage ---- */

/* No addresses are given out here: a service without one is headless, and says so. */
void kinds_plain_service_defaults(struct jsontree *t, struct jsonnode *object)
{
    struct jsonnode *spec = kinds_fill_object(t, object, "spec");
    if (!spec)
        return;
    kinds_fill_str(t, spec, "type", "ClusterIP");
    kinds_fill_str(t, spec, "sessionAffinity", "None");
    for (struct jsonnode_iter it = jsonnode_iter(jsonnode_get(spec, "ports"));
         jsonnode_next(&it);) {
        if (!jsonnode_is_object(it.value))
            continue;
        kinds_fill_str(t, it.value, "protocol", "TCP");
        struct jsonnode *port = jsonnode_get(it.value, "port");
        if (port && kinds_fill_absent(jsonnode_get(it.value, "targetPort")))
            jsonnode_set(t, it.value, "targetPort", jsonnode_clone(t, port));
    }
    if (!str_eq(jsonnode_get_str(spec, "type"), "ExternalName")) {
        kinds_fill_str(t, spec, "clusterIP", "None");
        if (kinds_fill_absent(jsonnode_get(spec, "clusterIPs"))) {
            struct jsonnode *all = jsonnode_array(t);
            jsonnode_append(all, jsonnode_string(t, jsonnode_get_str(spec, "clusterIP")));
            jsonnode_set(t, spec, "clusterIPs", all);
        }
        kinds_fill_str(t, spec, "internalTrafficPolicy", "Cluster");
        kinds_fill_str(t, spec, "ipFamilyPolicy", "SingleStack");
        if (kinds_fill_absent(jsonnode_get(spec, "ipFamilies"))) {
            struct jsonnode *families = jsonnode_array(t);
            jsonnode_append(families, jsonnode_string(t, "IPv4"));
            jsonnode_set(t, spec, "ipFamilies", families);
        }
    }
    struct jsonnode *status = kinds_fill_object(t, object, "status");
    if (status)
        kinds_fill_object(t, status, "loadBalancer");
}

int kinds_plain_service_validate(struct jsonnode *object, struct error *err)
{
    static const char *const types[] = {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort",
                                        NULL};
    struct kinds_check c = {.count = 0};
    struct jsonnode *spec = jsonnode_get(object, "spec");
    struct jsonnode *ports = jsonnode_get(spec, "ports");
    kinds_check_metadata(&c, object, KINDS_NAME_LABEL);
    kinds_check_one_of(&c, "spec.type", jsonnode_get(spec, "type"), types);
    bool headless = str_eq(jsonnode_get_str(spec, "clusterIP"), "None");
    if (jsonnode_len(ports) == 0 && !headless &&
        !str_eq(jsonnode_get_str(spec, "type"), "ExternalName"))
        kinds_check_required(&c, "spec.ports", NULL);
    size_t i = 0;
    for (struct jsonnode_iter it = jsonnode_iter(ports); jsonnode_next(&it); i++) {
        int64_t port = 0;
        jsonnode_int(jsonnode_get(it.value, "port"), &port);
        if (port < 1 || port > 65535)
            kinds_check_add(&c,
                            "spec.ports[%zu].port: Invalid value: %lld: must be between 1 and "
                            "65535, inclusive",
                            i, (long long)port);
    }
    return kinds_check_done(&c, object, err);
}

void kinds_plain_secret_defaults(struct jsontree *t, struct jsonnode *object)
{
    kinds_fill_str(t, object, "type", "Opaque");
    struct jsonnode *plain = jsonnode_remove(object, "stringData");
    if (jsonnode_len(plain) == 0)
        return;
    struct jsonnode *data = kinds_fill_object(t, object, "data");
    for (struct jsonnode_iter it = jsonnode_iter(plain); data && jsonnode_next(&it);) {
        const char *s = jsonnode_str(it.value);
        AUTO_STRBUF encoded = {0};
        if (!it.key || !s)
            continue;
        base64_encode(s, strlen(s), &encoded);
        jsonnode_set_str(t, data, it.key, strbuf_str(&encoded));
    }
}

static void phase_pending(struct jsontree *t, struct jsonnode *object)
{
    struct jsonnode *status = kinds_fill_object(t, object, "status");
    if (status)
        kinds_fill_str(t, status, "phase", "Pending");
}

void kinds_plain_volume_defaults(struct jsontree *t, struct jsonnode *object)
{
    struct jsonnode *spec = kinds_fill_object(t, object, "spec");
    if (!spec)
        return;
    kinds_fill_str(t, spec, "persistentVolumeReclaimPolicy", "Retain");
    kinds_fill_str(t, spec, "volumeMode", "Filesystem");
    kinds_amount_canonicalize(t, jsonnode_get(spec, "capacity"));
    struct jsonnode *host = jsonnode_get(spec, "hostPath");
    if (jsonnode_is_object(host) && kinds_fill_absent(jsonnode_get(host, "type")))
        jsonnode_set_str(t, host, "type", "");
    phase_pending(t, object);
}

void kinds_plain_claim_defaults(struct jsontree *t, struct jsonnode *object)
{
    struct jsonnode *spec = kinds_fill_object(t, object, "spec");
    if (!spec)
        return;
    kinds_fill_str(t, spec, "volumeMode", "Filesystem");
    kinds_amount_canonicalize(t, jsonnode_path(spec, "resources", "requests", NULL));
    phase_pending(t, object);
}

void kinds_plain_storage_class_defaults(struct jsontree *t, struct jsonnode *object)
{
    kinds_fill_str(t, object, "reclaimPolicy", "Delete");
    kinds_fill_str(t, object, "volumeBindingMode", "Immediate");
}

/* ---- events, quotas, budgets, priorities, leases ---- */

void kinds_plain_event_defaults(struct jsontree *t, struct jsonnode *object)
{
    static const char *const texts[] = {"reportingComponent", "reportingInstance"};
    static const char *const stamps[] = {"firstTimestamp", "lastTimestamp", "eventTime"};
    kinds_fill_object(t, object, "source");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (kinds_fill_absent(jsonnode_get(object, texts[i])))
            jsonnode_set_str(t, object, texts[i], "");
    for (size_t i = 0; i < sizeof stamps / sizeof *stamps; i++)
        if (!jsonnode_get(object, stamps[i]))
            jsonnode_set(t, object, stamps[i], jsonnode_null(t));
}

/* An event lies beside what it is about; about a cluster object it lies in default. */
int kinds_plain_event_validate(struct jsonnode *object, struct error *err)
{
    struct kinds_check c = {.count = 0};
    const char *ns =
        str_or_empty(jsonnode_str(jsonnode_path(object, "metadata", "namespace", NULL)));
    const char *about =
        str_or_empty(jsonnode_str(jsonnode_path(object, "involvedObject", "namespace", NULL)));
    kinds_check_metadata(&c, object, KINDS_NAME_SEGMENT); /* any name goes (tried) */
    bool fits = *about ? str_eq(about, ns) : str_eq(ns, "default");
    if (!fits)
        kinds_check_invalid(&c, "involvedObject.namespace", about,
                            "does not match event.namespace");
    return kinds_check_done(&c, object, err);
}

void kinds_plain_quota_defaults(struct jsontree *t, struct jsonnode *object)
{
    kinds_amount_canonicalize(t, jsonnode_path(object, "spec", "hard", NULL));
    kinds_fill_object(t, object, "status");
}

static bool quota_counts(const char *name, bool *whole)
{
    static const char *const counted[] = {"pods",
                                          "services",
                                          "replicationcontrollers",
                                          "resourcequotas",
                                          "secrets",
                                          "configmaps",
                                          "persistentvolumeclaims",
                                          "services.nodeports",
                                          "services.loadbalancers",
                                          NULL};
    static const char *const measured[] = {"cpu",
                                           "memory",
                                           "ephemeral-storage",
                                           "requests.cpu",
                                           "requests.memory",
                                           "requests.storage",
                                           "requests.ephemeral-storage",
                                           "limits.cpu",
                                           "limits.memory",
                                           "limits.ephemeral-storage",
                                           NULL};
    *whole = true;
    for (size_t i = 0; counted[i]; i++)
        if (str_eq(name, counted[i]))
            return true;
    *whole = str_starts(name, "requests.") && strchr(name, '/');
    for (size_t i = 0; measured[i]; i++)
        if (str_eq(name, measured[i]))
            return true;
    return strchr(name, '/') || str_starts(name, "hugepages-") ||
           str_starts(name, "requests.hugepages-");
}

int kinds_plain_quota_validate(struct jsonnode *object, struct error *err)
{
    struct kinds_check c = {.count = 0};
    kinds_check_metadata(&c, object, KINDS_NAME_SUBDOMAIN);
    struct jsonnode *hard = jsonnode_path(object, "spec", "hard", NULL);
    for (struct jsonnode_iter it = jsonnode_iter(hard); jsonnode_next(&it) && it.key;) {
        char at[256];
        bool whole;
        str_format(at, sizeof at, "spec.hard[%s]", it.key);
        kinds_check_qualified(&c, at, it.key);
        if (!quota_counts(it.key, &whole)) {
            kinds_check_invalid(&c, at, it.key,
                                "must be a standard resource type or fully qualified");
            kinds_check_invalid(&c, at, it.key, "must be a standard resource for quota");
        }
        kinds_amount_check(&c, at, whole ? "pods" : it.key, it.value);
    }
    return kinds_check_done(&c, object, err);
}

void kinds_plain_pdb_defaults(struct jsontree *t, struct jsonnode *object)
{
    static const char *const counts[] = {"disruptionsAllowed", "currentHealthy", "desiredHealthy",
                                         "expectedPods"};
    struct jsonnode *status = kinds_fill_object(t, object, "status");
    for (size_t i = 0; status && i < sizeof counts / sizeof *counts; i++)
        kinds_fill_int(t, status, counts[i], 0);
}

static void check_share(struct kinds_check *c, const char *at, struct jsonnode *value)
{
    const char *s = jsonnode_str(value);
    if (!s) {
        kinds_check_at_least(c, at, value, 0);
        return;
    }
    size_t digits = strspn(s, "0123456789");
    if (digits == 0 || !str_eq(s + digits, "%"))
        kinds_check_invalid(c, at, s,
                            "a valid percent string must be a numeric string followed by an ending "
                            "'%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')");
    else if (digits > 3 || (digits == 3 && strncmp(s, "100", 3) > 0))
        kinds_check_invalid(c, at, s, "must not be greater than 100%");
}

int kinds_plain_pdb_validate(struct jsonnode *object, struct error *err)
{
    struct kinds_check c = {.count = 0};
    struct jsonnode *spec = jsonnode_get(object, "spec");
    struct jsonnode *min = jsonnode_get(spec, "minAvailable");
    struct jsonnode *max = jsonnode_get(spec, "maxUnavailable");
    kinds_check_metadata(&c, object, KINDS_NAME_SUBDOMAIN);
    if (!kinds_fill_absent(min) && !kinds_fill_absent(max)) {
        AUTO_STRBUF a = {0}, b = {0}, s = {0};
        jsonnode_print(min, &a);
        jsonnode_print(max, &b);
        if (jsonnode_get(spec, "selector"))
            jsonnode_print(jsonnode_get(spec, "selector"), &s);
        kinds_check_add(&c,
                        "spec: Invalid value: {\"MinAvailable\":%s,\"Selector\":%s,"
                        "\"MaxUnavailable\":%s,\"UnhealthyPodEvictionPolicy\":null}: "
                        "minAvailable and maxUnavailable cannot be both set",
                        strbuf_str(&a), s.len ? strbuf_str(&s) : "null", strbuf_str(&b));
    }
    check_share(&c, "spec.minAvailable", min);
    check_share(&c, "spec.maxUnavailable", max);
    kinds_check_selector(&c, "spec.selector", jsonnode_get(spec, "selector"));
    return kinds_check_done(&c, object, err);
}

void kinds_plain_priority_class_defaults(struct jsontree *t, struct jsonnode *object)
{
    kinds_fill_str(t, object, "preemptionPolicy", "PreemptLowerPriority");
    /* Required, and 0 if absent. */
    kinds_fill_int(t, object, "value", 0);
}

int kinds_plain_priority_class_validate(struct jsonnode *object, struct error *err)
{
    static const char *const policies[] = {"PreemptLowerPriority", "Never", NULL};
    static const char *const known[] = {"system-node-critical", "system-cluster-critical"};
    struct kinds_check c = {.count = 0};
    const char *name = str_or_empty(jsonnode_str(jsonnode_path(object, "metadata", "name", NULL)));
    int64_t value = 0;
    kinds_check_metadata(&c, object, KINDS_NAME_SUBDOMAIN);
    jsonnode_int(jsonnode_get(object, "value"), &value);
    bool system = str_eq(name, known[0]) || str_eq(name, known[1]);
    if (str_starts(name, "system-") && !system)
        kinds_check_add(&c,
                        "metadata.name: Forbidden: priority class names with 'system-' prefix are "
                        "reserved for system use only. error: %s is not a known system priority "
                        "class",
                        name);
    else if (!system && value > 1000000000)
        kinds_check_forbidden(&c, "value",
                              "maximum allowed value of a user defined priority is 1000000000");
    kinds_check_one_of(&c, "preemptionPolicy", jsonnode_get(object, "preemptionPolicy"), policies);
    return kinds_check_done(&c, object, err);
}

int kinds_plain_priority_class_validate_update(struct jsonnode *old, struct jsonnode *updated,
                                               struct error *err)
{
    struct kinds_check c = {.count = 0};
    if (!jsonnode_equal(jsonnode_get(old, "value"), jsonnode_get(updated, "value")))
        kinds_check_forbidden(&c, "value", "may not be changed in an update.");
    if (!jsonnode_equal(jsonnode_get(old, "preemptionPolicy"),
                        jsonnode_get(updated, "preemptionPolicy")))
        kinds_check_invalid_node(&c, "preemptionPolicy", jsonnode_get(updated, "preemptionPolicy"),
                                 "field is immutable");
    return kinds_check_done(&c, updated, err);
}

int kinds_plain_lease_validate(struct jsonnode *object, struct error *err)
{
    static const char *const stamps[] = {"acquireTime", "renewTime"};
    struct kinds_check c = {.count = 0};
    struct jsonnode *spec = jsonnode_get(object, "spec");
    kinds_check_metadata(&c, object, KINDS_NAME_SUBDOMAIN);
    for (size_t i = 0; i < 2; i++) {
        const char *stamp = jsonnode_get_str(spec, stamps[i]);
        if (stamp && clock_parse_rfc3339(stamp) < 0)
            kinds_check_undecodable(
                &c, "parsing time \"%s\" as \"2006-01-02T15:04:05.000000Z07:00\"", stamp);
    }
    kinds_check_at_least(&c, "spec.leaseDurationSeconds",
                         jsonnode_get(spec, "leaseDurationSeconds"), 1);
    kinds_check_at_least(&c, "spec.leaseTransitions", jsonnode_get(spec, "leaseTransitions"), 0);
    return kinds_check_done(&c, object, err);
}
