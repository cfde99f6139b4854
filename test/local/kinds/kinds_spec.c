// SPDX-License-Identifier: Apache-2.0
/*
 * kinds_spec - the defaults of a PodSpec, as the real server fills them in when it decodes one, in
 * pods and in templates alike. What only pods get (requests from limits, tolerations, service
 * links) is in kinds_pod.c; the rules are in kinds_spec_check.c.
 */
#include "test/local/kinds/kinds_spec.h"

#include "test/local/kinds/kinds_amount.h"
#include "test/local/kinds/kinds_fill.h"

enum { FILE_MODE = 0644 };

/* No tag and no digest means :latest, and that is pulled always. */
static bool is_latest(const char *image)
{
    if (strchr(image, '@'))
        return false;
    const char *slash = strrchr(image, '/');
    const char *tag = strchr(slash ? slash : image, ':');
    return !tag || str_eq(tag, ":latest");
}

static void http_defaults(struct jsontree *t, struct jsonnode *get)
{
    if (!jsonnode_is_object(get))
        return;
    kinds_fill_str(t, get, "path", "/");
    kinds_fill_str(t, get, "scheme", "HTTP");
}

static void probe_defaults(struct jsontree *t, struct jsonnode *probe)
{
    if (!jsonnode_is_object(probe))
        return;
    http_defaults(t, jsonnode_get(probe, "httpGet"));
    if (jsonnode_is_object(jsonnode_get(probe, "grpc")))
        kinds_fill_str(t, jsonnode_get(probe, "grpc"), "service", "");
    kinds_fill_int(t, probe, "timeoutSeconds", 1);
    kinds_fill_int(t, probe, "periodSeconds", 10);
    kinds_fill_int(t, probe, "successThreshold", 1);
    kinds_fill_int(t, probe, "failureThreshold", 3);
}

static void container_defaults(struct jsontree *t, struct jsonnode *c)
{
    static const char *const probes[] = {"livenessProbe", "readinessProbe", "startupProbe"};
    static const char *const hooks[] = {"postStart", "preStop"};
    if (!jsonnode_is_object(c))
        return;
    const char *image = str_or_empty(jsonnode_get_str(c, "image"));
    kinds_fill_str(t, c, "imagePullPolicy", is_latest(image) ? "Always" : "IfNotPresent");
    kinds_fill_str(t, c, "terminationMessagePath", "/dev/termination-log");
    kinds_fill_str(t, c, "terminationMessagePolicy", "File");
    struct jsonnode *resources = kinds_fill_object(t, c, "resources");
    kinds_amount_canonicalize(t, jsonnode_get(resources, "limits"));
    kinds_amount_canonicalize(t, jsonnode_get(resources, "requests"));
    for (struct jsonnode_iter it = jsonnode_iter(jsonnode_get(c, "ports")); jsonnode_next(&it);)
        if (jsonnode_is_object(it.value))
            kinds_fill_str(t, it.value, "protocol", "TCP");
    for (struct jsonnode_iter it = jsonnode_iter(jsonnode_get(c, "env")); jsonnode_next(&it);) {
        struct jsonnode *field = jsonnode_path(it.value, "valueFrom", "fieldRef", NULL);
        if (jsonnode_is_object(field))
            kinds_fill_str(t, field, "apiVersion", "v1");
    }
    for (size_t i = 0; i < sizeof probes / sizeof *probes; i++)
        probe_defaults(t, jsonnode_get(c, probes[i]));
    for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++)
        http_defaults(t, jsonnode_path(c, "lifecycle", hooks[i], "httpGet", NULL));
}

static void items_defaults(struct jsontree *t, struct jsonnode *downward)
{
    for (struct jsonnode_iter it = jsonnode_iter(jsonnode_get(downward, "items"));
         jsonnode_next(&it);) {
        struct jsonnode *field = jsonnode_get(it.value, "fieldRef");
        if (jsonnode_is_object(field))
            kinds_fill_str(t, field, "apiVersion", "v1");
    }
}

static void volume_defaults(struct jsontree *t, struct jsonnode *v)
{
    static const char *const with_mode[] = {"secret", "configMap", "downwardAPI", "projected"};
    if (!jsonnode_is_object(v))
        return;
    if (jsonnode_len(v) == (jsonnode_get(v, "name") ? 1 : 0))
        jsonnode_need_object(t, v, "emptyDir");
    for (size_t i = 0; i < sizeof with_mode / sizeof *with_mode; i++) {
        struct jsonnode *source = jsonnode_get(v, with_mode[i]);
        if (jsonnode_is_object(source))
            kinds_fill_int(t, source, "defaultMode", FILE_MODE);
    }
    struct jsonnode *host = jsonnode_get(v, "hostPath");
    if (jsonnode_is_object(host) && kinds_fill_absent(jsonnode_get(host, "type")))
        jsonnode_set_str(t, host, "type", "");
    items_defaults(t, jsonnode_get(v, "downwardAPI"));
    struct jsonnode *sources = jsonnode_path(v, "projected", "sources", NULL);
    for (struct jsonnode_iter it = jsonnode_iter(sources); jsonnode_next(&it);) {
        struct jsonnode *token = jsonnode_get(it.value, "serviceAccountToken");
        if (jsonnode_is_object(token))
            kinds_fill_int(t, token, "expirationSeconds", 3600);
        items_defaults(t, jsonnode_get(it.value, "downwardAPI"));
    }
}

void kinds_spec_defaults(struct jsontree *t, struct jsonnode *spec)
{
    static const char *const containers[] = {"containers", "initContainers"};
    if (!jsonnode_is_object(spec))
        return;
    kinds_fill_str(t, spec, "restartPolicy", "Always");
    kinds_fill_str(t, spec, "dnsPolicy", "ClusterFirst");
    kinds_fill_str(t, spec, "schedulerName", "default-scheduler");
    kinds_fill_int(t, spec, "terminationGracePeriodSeconds", 30);
    kinds_fill_object(t, spec, "securityContext");
    for (size_t i = 0; i < sizeof containers / sizeof *containers; i++)
        for (struct jsonnode_iter it = jsonnode_iter(jsonnode_get(spec, containers[i]));
             jsonnode_next(&it);)
            container_defaults(t, it.value);
    for (struct jsonnode_iter it = jsonnode_iter(jsonnode_get(spec, "volumes"));
         jsonnode_next(&it);)
        volume_defaults(t, it.value);
    kinds_amount_canonicalize(t, jsonnode_get(spec, "overhead"));
}
