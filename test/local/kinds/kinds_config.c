// SPDX-License-Identifier: Apache-2.0
/*
 * kinds_config - defaults and rules of what configures the API server itself: webhooks, roles,
 * definitions of kinds.
 */
#include "test/local/kinds/kinds_check.h"
#include "test/local/kinds/kinds_fill.h"
#include "test/local/kinds/kinds_row.h"

void kinds_config_webhooks_defaults(struct jsontree *t, struct jsonnode *object)
{
    bool mutating = str_eq(jsonnode_get_str(object, "kind"), "MutatingWebhookConfiguration");
    for (struct jsonnode_iter it = jsonnode_iter(jsonnode_get(object, "webhooks"));
         jsonnode_next(&it);) {
        struct jsonnode *hook = it.value;
        if (!jsonnode_is_object(hook))
            continue;
        kinds_fill_str(t, hook, "failurePolicy", "Fail");
        kinds_fill_str(t, hook, "matchPolicy", "Equivalent");
        kinds_fill_object(t, hook, "namespaceSelector");
        kinds_fill_object(t, hook, "objectSelector");
        kinds_fill_int(t, hook, "timeoutSeconds", 10);
        if (mutating)
            kinds_fill_str(t, hook, "reinvocationPolicy", "Never");
        struct jsonnode *service = jsonnode_path(hook, "clientConfig", "service", NULL);
        if (jsonnode_is_object(service))
            kinds_fill_int(t, service, "port", 443);
        for (struct jsonnode_iter r = jsonnode_iter(jsonnode_get(hook, "rules"));
             jsonnode_next(&r);)
            if (jsonnode_is_object(r.value))
                kinds_fill_str(t, r.value, "scope", "*");
    }
}

static void check_webhook(struct kinds_check *c, size_t i, struct jsonnode *hook)
{
    static const char *const failures[] = {"Fail", "Ignore", NULL};
    static const char *const effects[] = {"None", "NoneOnDryRun", NULL};
    static const char *const again[] = {"IfNeeded", "Never", NULL};
    char at[64];
    const char *name = str_or_empty(jsonnode_get_str(hook, "name"));
    const char *first = strchr(name, '.');
    int64_t timeout = 10;
    str_format(at, sizeof at, "webhooks[%zu].name", i);
    if (!*name)
        kinds_check_required(c, at, NULL);
    else if (!first || !strchr(first + 1, '.'))
        kinds_check_invalid(c, at, name,
                            "should be a domain with at least three segments separated by dots");
    str_format(at, sizeof at, "webhooks[%zu].failurePolicy", i);
    kinds_check_one_of(c, at, jsonnode_get(hook, "failurePolicy"), failures);
    str_format(at, sizeof at, "webhooks[%zu].sideEffects", i);
    if (kinds_fill_absent(jsonnode_get(hook, "sideEffects")))
        kinds_check_required(c, at, "must specify one of None, NoneOnDryRun");
    else
        kinds_check_one_of(c, at, jsonnode_get(hook, "sideEffects"), effects);
    jsonnode_int(jsonnode_get(hook, "timeoutSeconds"), &timeout);
    if (timeout < 1 || timeout > 30)
        kinds_check_add(c,
                        "webhooks[%zu].timeoutSeconds: Invalid value: %lld: the timeout value must "
                        "be between 1 and 30 seconds",
                        i, (long long)timeout);
    str_format(at, sizeof at, "webhooks[%zu].reinvocationPolicy", i);
    kinds_check_one_of(c, at, jsonnode_get(hook, "reinvocationPolicy"), again);
    struct jsonnode *client = jsonnode_get(hook, "clientConfig");
    const char *url = jsonnode_get_str(client, "url");
    bool service = jsonnode_is_object(jsonnode_get(client, "service"));
    if (!url == !service)
        kinds_check_add(c,
                        "webhooks[%zu].clientConfig: Required value: exactly one of url or service "
                        "is required",
                        i);
    if (url && !str_starts(url, "https://"))
        kinds_check_add(c,
                        "webhooks[%zu].clientConfig.url: Invalid value: \"%.*s\": 'https' is the "
                        "only allowed URL scheme; desired format: https://host[/path]",
                        i, (int)strcspn(url, ":"), url);
    str_format(at, sizeof at, "webhooks[%zu].admissionReviewVersions", i);
    if (jsonnode_len(jsonnode_get(hook, "admissionReviewVersions")) == 0)
        kinds_check_required(c, at, "must specify one of v1, v1beta1");
}

int kinds_config_webhooks_validate(struct jsonnode *object, struct error *err)
{
    struct kinds_check c = {.count = 0};
    struct jsonnode *hooks = jsonnode_get(object, "webhooks");
    kinds_check_metadata(&c, object, KINDS_NAME_SUBDOMAIN);
    size_t i = 0;
    for (struct jsonnode_iter it = jsonnode_iter(hooks); jsonnode_next(&it); i++)
        check_webhook(&c, i, it.value);
    return kinds_check_done(&c, object, err);
}

void kinds_config_role_binding_defaults(struct jsontree *t, struct jsonnode *object)
{
    static const char group[] = "rbac.authorization.k8s.io";
    struct jsonnode *role = jsonnode_get(object, "roleRef");
    if (jsonnode_is_object(role))
        kinds_fill_str(t, role, "apiGroup", group);
    for (struct jsonnode_iter it = jsonnode_iter(jsonnode_get(object, "subjects"));
         jsonnode_next(&it);) {
        const char *kind = jsonnode_get_str(it.value, "kind");
        if (str_eq(kind, "User") || str_eq(kind, "Group"))
            kinds_fill_str(t, it.value, "apiGroup", group);
    }
}

/* Established at once: whether its kind is served was decided when cosched-local was built. */
void kinds_config_crd_defaults(struct jsontree *t, struct jsonnode *object)
{
    struct jsonnode *spec = kinds_fill_object(t, object, "spec");
    struct jsonnode *names = spec ? kinds_fill_object(t, spec, "names") : NULL;
    const char *kind = jsonnode_get_str(names, "kind");
    if (!names || !kind)
        return;
    AUTO_STRBUF b = {0};
    for (const char *s = kind; *s; s++)
        strbuf_addc(&b, *s >= 'A' && *s <= 'Z' ? (char)(*s - 'A' + 'a') : *s);
    kinds_fill_str(t, names, "singular", strbuf_str(&b));
    strbuf_reset(&b);
    strbuf_addf(&b, "%sList", kind);
    kinds_fill_str(t, names, "listKind", strbuf_str(&b));
    struct jsonnode *conversion = kinds_fill_object(t, spec, "conversion");
    if (conversion)
        kinds_fill_str(t, conversion, "strategy", "None");
    struct jsonnode *status = kinds_fill_object(t, object, "status");
    if (!status || !kinds_fill_absent(jsonnode_get(status, "conditions")))
        return;
    static const char *const types[][2] = {{"NamesAccepted", "NoConflicts"},
                                           {"Established", "InitialNamesAccepted"}};
    struct jsonnode *conditions = jsonnode_array(t);
    for (size_t i = 0; i < 2; i++) {
        struct jsonnode *one = jsonnode_object(t);
        jsonnode_set_str(t, one, "type", types[i][0]);
        jsonnode_set_str(t, one, "status", "True");
        jsonnode_set_str(t, one, "reason", types[i][1]);
        jsonnode_append(conditions, one);
    }
    jsonnode_set(t, status, "conditions", conditions);
    jsonnode_set(t, status, "acceptedNames", jsonnode_clone(t, names));
}
