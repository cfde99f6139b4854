// SPDX-License-Identifier: Apache-2.0
/*
 * kinds_spec_check - the rules of a PodSpec that our programs, tests and demos can meet, in the
 * order in which the real server reports them. Fields that nothing here uses (volume sources,
 * security contexts, probes' ports) are stored unchecked.
 *
 * Lists are walked by iterator, and a map finds duplicate names: indexing a jsontree list is
 * linear, and comparing 4,000 containers pairwise blocked the server for minutes.
 */
#include "test/local/kinds/kinds_spec.h"

#include "lib/base/map.h"
#include "lib/base/num.h"
#include "test/local/kinds/kinds_amount.h"
#include "test/local/kinds/kinds_fill.h"

enum { AT = 256 };
#define HERE(buf, ...) (str_format((buf), sizeof(buf), __VA_ARGS__), (buf))

/* ---- resources ---- */

static void check_resource_name(struct kinds_check *c, const char *at, const char *name)
{
    static const char *const standard[] = {"cpu", "memory", "ephemeral-storage", NULL};
    size_t before = c->count;
    kinds_check_qualified(c, at, name);
    if (strchr(name, '/')) {
        if (c->count > before)
            kinds_check_invalid(c, at, name, "doesn't follow extended resource name standard");
        return;
    }
    for (size_t i = 0; standard[i]; i++)
        if (str_eq(name, standard[i]))
            return;
    if (str_starts(name, "hugepages-"))
        return;
    kinds_check_invalid(c, at, name, "must be a standard resource type or fully qualified");
    kinds_check_invalid(c, at, name, "must be a standard resource for containers");
}

static void check_list(struct kinds_check *c, const char *at, struct jsonnode *list)
{
    char where[AT];
    if (!kinds_fill_absent(list) && !jsonnode_is_object(list))
        kinds_check_undecodable(c, "json: cannot unmarshal value into Go struct field "
                                   "ResourceRequirements of type v1.ResourceList");
    for (struct jsonnode_iter it = jsonnode_iter(list); jsonnode_next(&it);) {
        if (!it.key)
            return;
        HERE(where, "%s[%s]", at, it.key);
        check_resource_name(c, where, it.key);
        kinds_amount_check(c, where, it.key, it.value);
    }
}

static bool is_huge(const char *resource)
{
    return str_starts(resource, "hugepages-");
}

/* A request is at most its limit; of what cannot be shared out twice it is the limit. */
static void check_request(struct kinds_check *c, const char *at, const char *resource,
                          struct jsonnode *request, struct jsonnode *limits)
{
    char where[AT];
    bool exact = kinds_amount_is_extended(resource) || is_huge(resource);
    struct jsonnode *limit = jsonnode_get(limits, resource);
    AUTO_STRBUF asked = {0}, allowed = {0};
    if (!kinds_amount_canonical(request, &asked))
        return;
    if (!limit) {
        if (exact)
            kinds_check_required(c, HERE(where, "%s.limits", at),
                                 "Limit must be set for non overcommitable resources");
        return;
    }
    int order = kinds_amount_compare(request, limit);
    if (!kinds_amount_canonical(limit, &allowed) || order == 0 || (!exact && order < 0))
        return;
    char detail[AT];
    HERE(detail, "must be %s %s limit of %s", exact ? "equal to" : "less than or equal to",
         resource, strbuf_str(&allowed));
    kinds_check_invalid(c, HERE(where, "%s.requests", at), strbuf_str(&asked), detail);
}

static void check_resources(struct kinds_check *c, const char *at, struct jsonnode *resources)
{
    char where[AT];
    struct jsonnode *limits = jsonnode_get(resources, "limits");
    struct jsonnode *requests = jsonnode_get(resources, "requests");
    check_list(c, HERE(where, "%s.limits", at), limits);
    check_list(c, HERE(where, "%s.requests", at), requests);
    bool huge = false, plain = false;
    struct jsonnode *lists[] = {limits, requests};
    for (size_t i = 0; i < 2; i++)
        for (struct jsonnode_iter it = jsonnode_iter(lists[i]); jsonnode_next(&it) && it.key;) {
            huge = huge || is_huge(it.key);
            plain = plain || str_eq(it.key, "cpu") || str_eq(it.key, "memory");
        }
    for (struct jsonnode_iter it = jsonnode_iter(requests); jsonnode_next(&it) && it.key;)
        check_request(c, at, it.key, it.value, limits);
    if (huge && !plain)
        kinds_check_forbidden(c, at, "HugePages require cpu or memory");
}

/* ---- containers ---- */

static void check_port_number(struct kinds_check *c, const char *at, struct jsonnode *port,
                              bool needed)
{
    int64_t n = 0;
    jsonnode_int(port, &n);
    if (n == 0 && needed)
        kinds_check_required(c, at, NULL);
    else if (n < 0 || n > 65535)
        kinds_check_add(c, "%s: Invalid value: %lld: must be between 1 and 65535, inclusive", at,
                        (long long)n);
}

static void check_ports(struct kinds_check *c, const char *at, struct jsonnode *ports)
{
    static const char *const protocols[] = {"SCTP", "TCP", "UDP", NULL};
    char where[AT];
    size_t i = 0;
    for (struct jsonnode_iter it = jsonnode_iter(ports); jsonnode_next(&it); i++) {
        HERE(where, "%s.ports[%zu].containerPort", at, i);
        check_port_number(c, where, jsonnode_get(it.value, "containerPort"), true);
        HERE(where, "%s.ports[%zu].hostPort", at, i);
        check_port_number(c, where, jsonnode_get(it.value, "hostPort"), false);
        HERE(where, "%s.ports[%zu].protocol", at, i);
        kinds_check_one_of(c, where, jsonnode_get(it.value, "protocol"), protocols);
    }
}

static void check_env(struct kinds_check *c, const char *at, struct jsonnode *env)
{
    char where[AT];
    size_t i = 0;
    for (struct jsonnode_iter it = jsonnode_iter(env); jsonnode_next(&it); i++) {
        const char *name = jsonnode_get_str(it.value, "name");
        const char *value = jsonnode_get_str(it.value, "value");
        if (!name || !*name)
            kinds_check_required(c, HERE(where, "%s.env[%zu].name", at, i), NULL);
        if (!kinds_fill_absent(jsonnode_get(it.value, "value")) && !value)
            kinds_check_undecodable(c, "json: cannot unmarshal value into Go struct field "
                                       "EnvVar.spec.containers.env.value of type string");
        if (value && *value && jsonnode_is_object(jsonnode_get(it.value, "valueFrom")))
            kinds_check_invalid(c, HERE(where, "%s.env[%zu].valueFrom", at, i), "",
                                "may not be specified when `value` is not empty");
    }
}

/* Names in a list; the keys are the tree's. */
static void read_names(struct jsonnode *list, struct map *out)
{
    map_init(out);
    for (struct jsonnode_iter it = jsonnode_iter(list); jsonnode_next(&it);) {
        const char *name = jsonnode_get_str(it.value, "name");
        if (name)
            (void)map_put(out, name, it.value);
    }
}

static void check_mounts(struct kinds_check *c, const char *at, struct jsonnode *mounts,
                         const struct map *volumes)
{
    char where[AT];
    size_t i = 0;
    for (struct jsonnode_iter it = jsonnode_iter(mounts); jsonnode_next(&it); i++) {
        const char *name = str_or_empty(jsonnode_get_str(it.value, "name"));
        const char *path = str_or_empty(jsonnode_get_str(it.value, "mountPath"));
        HERE(where, "%s.volumeMounts[%zu].name", at, i);
        if (!*name)
            kinds_check_required(c, where, NULL);
        if (!map_get(volumes, name))
            kinds_check_add(c, "%s: Not found: \"%s\"", where, name);
        if (!*path)
            kinds_check_required(c, HERE(where, "%s.volumeMounts[%zu].mountPath", at, i), NULL);
    }
}

static void check_container(struct kinds_check *c, const char *at, struct jsonnode *container,
                            const struct map *volumes)
{
    static const char *const pulls[] = {"Always", "IfNotPresent", "Never", NULL};
    static const char *const messages[] = {"FallbackToLogsOnError", "File", NULL};
    char where[AT];
    const char *image = jsonnode_get_str(container, "image");
    if (!image || !*image)
        kinds_check_required(c, HERE(where, "%s.image", at), NULL);
    kinds_check_one_of(c, HERE(where, "%s.terminationMessagePolicy", at),
                       jsonnode_get(container, "terminationMessagePolicy"), messages);
    check_ports(c, at, jsonnode_get(container, "ports"));
    check_env(c, at, jsonnode_get(container, "env"));
    check_mounts(c, at, jsonnode_get(container, "volumeMounts"), volumes);
    kinds_check_one_of(c, HERE(where, "%s.imagePullPolicy", at),
                       jsonnode_get(container, "imagePullPolicy"), pulls);
    check_resources(c, HERE(where, "%s.resources", at), jsonnode_get(container, "resources"));
}

/* taken: names that no container of this list may have. */
static void check_containers(struct kinds_check *c, const char *at, struct jsonnode *list,
                             const char *which, struct map *taken, const struct map *volumes)
{
    char where[AT];
    size_t i = 0;
    if (!kinds_fill_absent(list) && !jsonnode_is_array(list)) {
        kinds_check_undecodable(c,
                                "json: cannot unmarshal %s into Go struct field PodSpec.spec.%s of "
                                "type []v1.Container",
                                jsonnode_is_string(list)   ? "string"
                                : jsonnode_is_object(list) ? "object"
                                : jsonnode_is_bool(list)   ? "bool"
                                                           : "number",
                                which);
        return;
    }
    for (struct jsonnode_iter it = jsonnode_iter(list); jsonnode_next(&it); i++) {
        const char *name = jsonnode_get_str(it.value, "name");
        HERE(where, "%s.%s[%zu].name", at, which, i);
        if (!name || !*name)
            kinds_check_required(c, where, NULL);
        else
            kinds_check_label_name(c, where, name);
        if (name && *name && map_put(taken, name, it.value))
            kinds_check_duplicate(c, where, name);
        HERE(where, "%s.%s[%zu]", at, which, i);
        check_container(c, where, it.value, volumes);
    }
}

/* ---- where it may run ---- */

static void check_toleration(struct kinds_check *c, const char *at, struct jsonnode *t)
{
    static const char *const operators[] = {"Equal", "Exists", NULL};
    static const char *const effects[] = {"NoSchedule", "PreferNoSchedule", "NoExecute", NULL};
    char where[AT];
    const char *key = str_or_empty(jsonnode_get_str(t, "key"));
    const char *op = str_or_empty(jsonnode_get_str(t, "operator"));
    const char *value = str_or_empty(jsonnode_get_str(t, "value"));
    const char *effect = str_or_empty(jsonnode_get_str(t, "effect"));
    if (*key)
        kinds_check_qualified(c, HERE(where, "%s.key", at), key);
    HERE(where, "%s.operator", at);
    if (!*key && !str_eq(op, "Exists"))
        kinds_check_invalid(c, where, op,
                            "operator must be Exists when `key` is empty, which means \"match all "
                            "values and all keys\"");
    if (!kinds_fill_absent(jsonnode_get(t, "tolerationSeconds")) && !str_eq(effect, "NoExecute"))
        kinds_check_invalid(c, HERE(where, "%s.effect", at), effect,
                            "effect must be 'NoExecute' when `tolerationSeconds` is set");
    HERE(where, "%s.operator", at);
    if (!*op || str_eq(op, "Equal"))
        kinds_check_label_value(c, where, value);
    else if (str_eq(op, "Exists") && *value)
        kinds_check_invalid(c, where, value, "value must be empty when `operator` is 'Exists'");
    else
        kinds_check_one_of(c, where, jsonnode_get(t, "operator"), operators);
    if (*effect)
        kinds_check_one_of(c, HERE(where, "%s.effect", at), jsonnode_get(t, "effect"), effects);
}

static void check_term(struct kinds_check *c, const char *at, struct jsonnode *term)
{
    static const char *const words[] = {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", NULL};
    char where[AT * 2];
    size_t i = 0;
    for (struct jsonnode_iter it = jsonnode_iter(jsonnode_get(term, "matchExpressions"));
         jsonnode_next(&it); i++) {
        const char *op = jsonnode_get_str(it.value, "operator");
        size_t n = jsonnode_len(jsonnode_get(it.value, "values"));
        HERE(where, "%s.matchExpressions[%zu].values", at, i);
        if ((str_eq(op, "In") || str_eq(op, "NotIn")) && n == 0)
            kinds_check_required(c, where, "must be specified when `operator` is 'In' or 'NotIn'");
        if ((str_eq(op, "Exists") || str_eq(op, "DoesNotExist")) && n > 0)
            kinds_check_forbidden(
                c, where, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        if ((str_eq(op, "Gt") || str_eq(op, "Lt")) && n != 1)
            kinds_check_required(c, where,
                                 "must be specified single value when `operator` is 'Lt' or 'Gt'");
        HERE(where, "%s.matchExpressions[%zu].operator", at, i);
        bool known = false;
        for (size_t k = 0; words[k]; k++)
            known = known || str_eq(op, words[k]);
        if (!known)
            kinds_check_invalid(c, where, op, "not a valid selector operator");
        HERE(where, "%s.matchExpressions[%zu].key", at, i);
        kinds_check_qualified(c, where, str_or_empty(jsonnode_get_str(it.value, "key")));
    }
}

static void check_node_affinity(struct kinds_check *c, const char *at, struct jsonnode *affinity)
{
    char where[AT];
    struct jsonnode *required =
        jsonnode_get(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
    struct jsonnode *terms = jsonnode_get(required, "nodeSelectorTerms");
    HERE(where, "%s.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms", at);
    if (jsonnode_is_object(required) && jsonnode_len(terms) == 0)
        kinds_check_required(c, where, "must have at least one node selector term");
    size_t i = 0;
    for (struct jsonnode_iter it = jsonnode_iter(terms); jsonnode_next(&it); i++) {
        HERE(where, "%s.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[%zu]", at,
             i);
        check_term(c, where, it.value);
    }
    struct jsonnode *preferred =
        jsonnode_get(affinity, "preferredDuringSchedulingIgnoredDuringExecution");
    i = 0;
    for (struct jsonnode_iter it = jsonnode_iter(preferred); jsonnode_next(&it); i++) {
        int64_t weight = 0;
        jsonnode_int(jsonnode_get(it.value, "weight"), &weight);
        HERE(where, "%s.preferredDuringSchedulingIgnoredDuringExecution[%zu]", at, i);
        if (weight < 1 || weight > 100)
            kinds_check_add(c, "%s.weight: Invalid value: %lld: must be in the range 1-100", where,
                            (long long)weight);
        char inner[AT * 2];
        check_term(c, HERE(inner, "%s.preference", where), jsonnode_get(it.value, "preference"));
    }
}

static void check_pod_terms(struct kinds_check *c, const char *at, struct jsonnode *affinity)
{
    char where[AT];
    struct jsonnode *terms =
        jsonnode_get(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
    size_t i = 0;
    for (struct jsonnode_iter it = jsonnode_iter(terms); jsonnode_next(&it); i++) {
        struct jsonnode *term = it.value;
        const char *key = str_or_empty(jsonnode_get_str(term, "topologyKey"));
        HERE(where, "%s.requiredDuringSchedulingIgnoredDuringExecution[%zu].topologyKey", at, i);
        if (!*key)
            kinds_check_required(c, where, "can not be empty");
        kinds_check_qualified(c, where, key);
        HERE(where, "%s.requiredDuringSchedulingIgnoredDuringExecution[%zu].labelSelector", at, i);
        kinds_check_selector(c, where, jsonnode_get(term, "labelSelector"));
    }
}

static void check_spread(struct kinds_check *c, const char *at, struct jsonnode *list)
{
    static const char *const whens[] = {"DoNotSchedule", "ScheduleAnyway", NULL};
    char where[AT];
    size_t i = 0;
    for (struct jsonnode_iter it = jsonnode_iter(list); jsonnode_next(&it); i++) {
        struct jsonnode *one = it.value;
        const char *key = str_or_empty(jsonnode_get_str(one, "topologyKey"));
        int64_t skew = 0;
        jsonnode_int(jsonnode_get(one, "maxSkew"), &skew);
        if (skew <= 0)
            kinds_check_add(c,
                            "%s.topologySpreadConstraints[%zu].maxSkew: Invalid value: %lld: must "
                            "be greater than zero",
                            at, i, (long long)skew);
        HERE(where, "%s.topologySpreadConstraints[%zu].topologyKey", at, i);
        if (!*key)
            kinds_check_required(c, where, "can not be empty");
        else
            kinds_check_qualified(c, where, key);
        HERE(where, "%s.topologySpreadConstraints[%zu].whenUnsatisfiable", at, i);
        if (kinds_fill_absent(jsonnode_get(one, "whenUnsatisfiable")))
            kinds_check_add(c,
                            "%s: Unsupported value: \"\": supported values: \"DoNotSchedule\", "
                            "\"ScheduleAnyway\"",
                            where);
        else
            kinds_check_one_of(c, where, jsonnode_get(one, "whenUnsatisfiable"), whens);
        HERE(where, "%s.topologySpreadConstraints[%zu].labelSelector", at, i);
        kinds_check_selector(c, where, jsonnode_get(one, "labelSelector"));
    }
}

static void check_volumes(struct kinds_check *c, const char *at, struct jsonnode *volumes)
{
    char where[AT];
    struct map seen;
    size_t i = 0;
    map_init(&seen);
    for (struct jsonnode_iter it = jsonnode_iter(volumes); jsonnode_next(&it); i++) {
        const char *name = jsonnode_get_str(it.value, "name");
        HERE(where, "%s.volumes[%zu].name", at, i);
        if (!name || !*name)
            kinds_check_required(c, where, NULL);
        else if (map_put(&seen, name, it.value))
            kinds_check_duplicate(c, where, name);
        else
            kinds_check_label_name(c, where, name);
    }
    map_deinit(&seen);
}

static void check_gates(struct kinds_check *c, const char *at, struct jsonnode *gates)
{
    char where[AT];
    struct map seen;
    size_t i = 0;
    map_init(&seen);
    for (struct jsonnode_iter it = jsonnode_iter(gates); jsonnode_next(&it); i++) {
        const char *name = str_or_empty(jsonnode_get_str(it.value, "name"));
        HERE(where, "%s.schedulingGates[%zu]", at, i);
        kinds_check_qualified(c, where, name);
        if (map_put(&seen, name, it.value))
            kinds_check_duplicate(c, where, name);
    }
    map_deinit(&seen);
}

void kinds_spec_check(struct kinds_check *c, const char *at, struct jsonnode *spec)
{
    static const char *const restarts[] = {"Always", "OnFailure", "Never", NULL};
    static const char *const dns[] = {"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None",
                                      NULL};
    char where[AT];
    check_volumes(c, at, jsonnode_get(spec, "volumes"));
    struct jsonnode *containers = jsonnode_get(spec, "containers");
    if (kinds_fill_absent(containers) ||
        (jsonnode_is_array(containers) && jsonnode_len(containers) == 0))
        kinds_check_required(c, HERE(where, "%s.containers", at), NULL);
    struct map volumes, names;
    read_names(jsonnode_get(spec, "volumes"), &volumes);
    map_init(&names);
    check_containers(c, at, containers, "containers", &names, &volumes);
    check_containers(c, at, jsonnode_get(spec, "initContainers"), "initContainers", &names,
                     &volumes);
    map_deinit(&names);
    map_deinit(&volumes);
    kinds_check_one_of(c, HERE(where, "%s.restartPolicy", at), jsonnode_get(spec, "restartPolicy"),
                       restarts);
    kinds_check_one_of(c, HERE(where, "%s.dnsPolicy", at), jsonnode_get(spec, "dnsPolicy"), dns);
    kinds_check_labels(c, HERE(where, "%s.nodeSelector", at), jsonnode_get(spec, "nodeSelector"));
    struct jsonnode *affinity = jsonnode_get(spec, "affinity");
    check_node_affinity(c, HERE(where, "%s.affinity.nodeAffinity", at),
                        jsonnode_get(affinity, "nodeAffinity"));
    check_pod_terms(c, HERE(where, "%s.affinity.podAffinity", at),
                    jsonnode_get(affinity, "podAffinity"));
    check_pod_terms(c, HERE(where, "%s.affinity.podAntiAffinity", at),
                    jsonnode_get(affinity, "podAntiAffinity"));
    const char *node = jsonnode_get_str(spec, "nodeName");
    if (node && *node)
        kinds_check_subdomain_name(c, HERE(where, "%s.nodeName", at), node);
    struct jsonnode *deadline = jsonnode_get(spec, "activeDeadlineSeconds");
    int64_t seconds;
    if (jsonnode_int(deadline, &seconds) && (seconds < 1 || seconds > INT32_MAX))
        kinds_check_add(c,
                        "%s.activeDeadlineSeconds: Invalid value: %lld: must be between 1 and "
                        "2147483647, inclusive",
                        at, (long long)seconds);
    size_t i = 0;
    for (struct jsonnode_iter it = jsonnode_iter(jsonnode_get(spec, "tolerations"));
         jsonnode_next(&it); i++)
        check_toleration(c, HERE(where, "%s.tolerations[%zu]", at, i), it.value);
    check_spread(c, at, jsonnode_get(spec, "topologySpreadConstraints"));
    check_gates(c, at, jsonnode_get(spec, "schedulingGates"));
}
