// SPDX-License-Identifier: Apache-2.0
/*
 * Objects made of the contract's own words: each byte chooses a kind, a key, a value or how deep to
 * go, so that every input reaches the rules instead of the parser. The answer must be JSON with
 * bounded, printable sentences; a patch must apply; and the answer to the patched pod must change
 * nothing (I6).
 */
#include "lib/base/json.h"
#include "lib/kube/decode.h"
#include "lib/model/names.h"
#include "lib/model/policy.h"
#include "test/fuzz/fuzz_kit.h"
#include "test/unit/webhook/webhook_kit.h"
#include "webhook/review.h"

struct dice {
    const uint8_t *data;
    size_t size, at;
};

static unsigned roll(struct dice *d, unsigned n)
{
    return d->at < d->size ? d->data[d->at++] % n : 0;
}

static const char *const keys[] = {NAME_LABEL_GANG_NAME,
                                   NAME_LABEL_GANG_MIN,
                                   NAME_LABEL_GANG_BARE,
                                   NAME_LABEL_GANG_X,
                                   NAME_ANN_GANG_KOORD_NAME,
                                   NAME_ANN_GANG_KOORD_MIN,
                                   NAME_ANN_GANG_GROUPS,
                                   NAME_ANN_GANG_MATCH,
                                   NAME_ANN_GANG_KOORD_MATCH,
                                   NAME_ANN_CPUSET_SCHEDULER,
                                   NAME_ANN_CPU_POLICY,
                                   NAME_ANN_NUMA_SPEC,
                                   NAME_ANN_CPUSET_SHARED,
                                   NAME_ANN_BURST,
                                   NAME_LABEL_ECI,
                                   NAME_RES_GPU_COUNT,
                                   NAME_LABEL_TOPOLOGY_JOB,
                                   NAME_LABEL_TOPOLOGY_REPLICA,
                                   NAME_LABEL_COMPUTE_CLASS,
                                   NAME_INJECT,
                                   NAME_ANN_CPUSET,
                                   NAME_ANN_ALLOCATION,
                                   NAME_LABEL_GPU_MODE,
                                   NAME_LABEL_GPU_PLACEMENT,
                                   "cosched.io/x~y/z",
                                   "plain"};
static const char *const values[] = {"\"\"",
                                     "\"true\"",
                                     "\"false\"",
                                     "\"required\"",
                                     "\"g\"",
                                     "\"2\"",
                                     "\"0\"",
                                     "\"-1\"",
                                     "\"eci\"",
                                     "\"eci_only\"",
                                     "\"cgpu\"",
                                     "\"spread\"",
                                     "\"[\\\"default/g\\\"]\"",
                                     "\"{}\"",
                                     "\"gpu\"",
                                     "\"static-burst\"",
                                     "3",
                                     "5.5",
                                     "\"5500m\"",
                                     "\"1k\"",
                                     "\"99999999999999999999\"",
                                     "null",
                                     "[]",
                                     "{}",
                                     "true",
                                     "\"only-waiting\"",
                                     "\"{\\\"numaTopologyPolicy\\\":\\\"Restricted\\\"}\"",
                                     "\"\\u00e9\\u0001\"",
                                     "35",
                                     "\"100\"",
                                     "\"5Gi\"",
                                     "\"disabled\"",
                                     "\"ecs\"",
                                     "\"prefer\"",
                                     "\"15m\"",
                                     "\"TimeoutOrExceedMax\""};
static const char *const resources[] = {
    NAME_RES_GPU_MEM,          NAME_RES_GPU_CORE,  NAME_RES_GPU,
    NAME_RES_NVIDIA_GPU,       NAME_RES_GPU_COUNT, "cpu",
    NAME_RES_DEVICE_CLASS "x", "nvidia.com/mig-x", NAME_RES_GPU "-x"};
static const char *const variables[] = {NAME_ENV_VISIBLE, NAME_ENV_CGPU_DISABLE,
                                        "CUDA_VISIBLE_DEVICES", "A"};

static const char *const prefixes[] = {"\"\"", "\"CGPU_\"", "\"NVIDIA_\"", "null", "[]"};

#define PICK(d, a) ((a)[roll((d), sizeof(a) / sizeof(a)[0])])

/* {"key":value,...}: keys from the list, each once (the API server sends none twice). */
static void put_map(struct dice *d, struct strbuf *out, const char *const *from, unsigned len)
{
    unsigned used = 0, n = roll(d, 5);
    strbuf_addc(out, '{');
    for (unsigned i = 0; i < n; i++) {
        unsigned k = roll(d, len);
        if (used & (1U << k))
            continue;
        strbuf_addf(out, "%s\"%s\":%s", used ? "," : "", from[k], PICK(d, values));
        used |= 1U << k;
    }
    strbuf_addc(out, '}');
}

static void put_pod(struct dice *d, struct strbuf *out)
{
    enum {
        KEYS = sizeof keys / sizeof keys[0],
        RESOURCES = sizeof resources / sizeof resources[0]
    };
    static const char *const lists[] = {"containers", "initContainers"};
    strbuf_adds(out, "\"metadata\":{\"labels\":");
    put_map(d, out, keys, KEYS);
    strbuf_adds(out, ",\"annotations\":");
    put_map(d, out, keys, KEYS);
    strbuf_adds(out, "},\"spec\":{");
    for (unsigned l = 0; l < 2; l++) {
        strbuf_addf(out, "%s\"%s\":[", l ? "," : "", lists[l]);
        for (unsigned i = 0, n = roll(d, 3); i < n; i++) {
            strbuf_addf(
                out,
                "%s{\"name\":\"c%u\",\"env\":[{\"name\":\"%s\",\"value\":%s}],\"envFrom\":[{"
                "\"prefix\":%s}],\"resources\":{",
                i ? "," : "", i, PICK(d, variables), PICK(d, values), PICK(d, prefixes));
            unsigned which = roll(d, 4);
            if (which & 1) {
                strbuf_adds(out, "\"limits\":");
                put_map(d, out, resources, RESOURCES);
            }
            if (which & 2) {
                strbuf_adds(out, which & 1 ? ",\"requests\":" : "\"requests\":");
                put_map(d, out, resources, RESOURCES);
            }
            strbuf_adds(out, "}}");
        }
        strbuf_addc(out, ']');
    }
    static const char *const more[] = {"",
                                       ",\"nodeName\":\"n\"",
                                       ",\"schedulerName\":\"" NAME_SCHEDULER "\"",
                                       ",\"schedulerName\":\"other\"",
                                       ",\"resourceClaims\":[{\"name\":\"c\"}]",
                                       ",\"resources\":{\"limits\":{\"" NAME_RES_GPU_MEM "\":3}}",
                                       ",\"nodeSelector\":{\"" NAME_LABEL_GPU_MODE
                                       "\":\"topology\"}",
                                       ",\"nodeSelector\":{\"" NAME_LABEL_GPU_MODE "\":\"x\"}"};
    strbuf_addf(out, "%s}", PICK(d, more));
}

static void put_policy(struct dice *d, struct strbuf *out)
{
    static const char *const fields[] = {
        "selector",          "strategy",       "units",     "preemptPolicy",
        "ignorePreviousPod", "matchLabelKeys", "minMember", "scheduleTimeoutSeconds",
        "minResources"};
    static const char *const unit[] = {"resource",       "max",         "nodeSelector", "podLabels",
                                       "podAnnotations", "maxResources"};
    strbuf_adds(out, "\"metadata\":{\"name\":\"x\",\"namespace\":\"default\",\"labels\":");
    put_map(d, out, keys, sizeof keys / sizeof keys[0]);
    strbuf_adds(out, "},\"spec\":{\"units\":[");
    put_map(d, out, unit, sizeof unit / sizeof unit[0]);
    strbuf_adds(out, "],\"whenTryNextUnits\":{\"policy\":");
    strbuf_addf(out, "%s,\"timeout\":%s},\"a\":", PICK(d, values), PICK(d, values));
    put_map(d, out, fields, sizeof fields / sizeof fields[0]);
    strbuf_adds(out, "}");
}

static const struct {
    const char *group, *kind;
    const char *before, *after; /* around a pod; NULL: another kind of object */
} kinds[] = {
    {"", "Pod", "", ""},
    {"apps", "Deployment", "\"metadata\":{},\"spec\":{\"replicas\":2,\"template\":{", "}}"},
    {"batch", "Job", "\"metadata\":{},\"spec\":{\"parallelism\":1,\"template\":{", "}}"},
    {"batch", "CronJob", "\"spec\":{\"jobTemplate\":{\"spec\":{\"template\":{", "}}}}"},
    {"kubeflow.org", "TFJob", "\"spec\":{\"tfReplicaSpecs\":{\"A\":{\"replicas\":1,\"template\":{",
     "}}}}"},
    {"", "Node", NULL, NULL},
    {NAME_GROUP_PODGROUP, "PodGroup", NULL, NULL},
    {NAME_GROUP_POLICY, NAME_KIND_POLICY, NULL, NULL},
};

static void put_review(struct strbuf *out, unsigned kind, const char *object, const char *old)
{
    strbuf_addf(out,
                "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{"
                "\"uid\":\"u\",\"kind\":{\"group\":\"%s\",\"version\":\"v1\",\"kind\":\"%s\"},"
                "\"namespace\":\"default\",\"operation\":\"%s\",\"object\":%s,\"oldObject\":%s}}",
                kinds[kind].group, kinds[kind].kind, old ? "UPDATE" : "CREATE", object,
                old ? old : "null");
}

static void enter(void *arg, const char *ns, struct rules_context *out)
{
    static struct label items[] = {{.key = NAME_INJECT, .value = "enabled"}};
    static const struct labels labels = {.items = items, .len = 1};
    *out = (struct rules_context){.ns = ns,
                                  .ns_labels = &labels,
                                  .groups_known = *(const enum rules_known *)arg,
                                  .policies_known = *(const enum rules_known *)arg};
}

static void check_sentences(json *list, size_t max)
{
    for (struct json_iter it = json_iter(list); json_next(&it);) {
        const char *s = json_str(it.value);
        if (!s || strlen(s) > max)
            abort();
        for (; *s != '\0'; s++)
            if ((unsigned char)*s < 0x20)
                abort();
    }
}

static void ask(const struct review_config *config, unsigned kind, const char *object,
                const char *old, struct strbuf *reply, struct review_outcome *o, struct arena *a)
{
    AUTO_STRBUF body = {0};
    put_review(&body, kind, object, old);
    webhook_kit_answer(config, strbuf_str(&body), a, reply, o);
}

/* A label that is no string: no API server has such an object, and none of its changes can be
 * judged. */
static bool is_untyped(json *status)
{
    return strstr(json_get_str(status, "message"), "is not a string") != NULL;
}

static void put_object(struct dice *d, unsigned kind, struct strbuf *out)
{
    strbuf_adds(out, "{");
    if (kinds[kind].before) {
        strbuf_adds(out, kinds[kind].before);
        put_pod(d, out);
        strbuf_adds(out, kinds[kind].after);
    } else {
        put_policy(d, out);
    }
    strbuf_adds(out, "}");
}

/* What is let in is in force: the scheduler's decoder finds nothing wrong with it. */
static void check_policy(const char *object)
{
    AUTO_JSON *doc = NULL;
    struct policy *p = NULL;
    if (json_parse(&doc, object, strlen(object), NULL) < 0 ||
        decode_resource_policy(json_root(doc), &p, NULL) < 0 || p->invalid || p->warning)
        abort();
    object_free(&p->object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct rules_crd crds[] = {{.group = "kubeflow.org",
                                             .kind = "TFJob",
                                             .path = {"spec", "tfReplicaSpecs", "*", "template"},
                                             .path_len = 4}};
    struct dice d = {.data = data, .size = size};
    enum rules_known known = (enum rules_known)roll(&d, 3);
    struct review_config config = {.rules = {.scheduler = NAME_SCHEDULER,
                                             .guard_variables = roll(&d, 2) == 1,
                                             .crds = crds,
                                             .crds_len = 1},
                                   .enter = enter,
                                   .arg = &known};
    unsigned kind = roll(&d, sizeof kinds / sizeof kinds[0]);
    unsigned change = roll(&d, 6); /* 0: of nothing, 1: of something, else it is new */
    struct arena arena;
    struct review_outcome o;
    AUTO_STRBUF object = {0};
    AUTO_STRBUF old = {0};
    AUTO_STRBUF reply = {0};
    AUTO_STRBUF patch = {0};
    AUTO_STRBUF after = {0};
    AUTO_STRBUF second = {0};
    AUTO_JSON *doc = NULL;
    put_object(&d, kind, &object);
    if (change == 1)
        put_object(&d, kind, &old);
    const char *before = change == 0 ? strbuf_str(&object) : change == 1 ? strbuf_str(&old) : NULL;
    arena_init(&arena, 0);
    ask(&config, kind, strbuf_str(&object), before, &reply, &o, &arena);
    if (o.status != 200 || json_parse(&doc, reply.ptr, reply.len, NULL) < 0)
        abort();
    check_sentences(json_get(json_get(json_root(doc), "response"), "warnings"),
                    RULES_WARNING_BYTES);
    json *status = json_get(json_get(json_root(doc), "response"), "status");
    if (change == 0 && o.result == REVIEW_REFUSED && !is_untyped(status))
        abort(); /* whatever it is, it was there: it can be scaled and deleted */
    if (o.result == REVIEW_UNTOUCHED && change > 1 && str_eq(kinds[kind].kind, NAME_KIND_POLICY))
        check_policy(strbuf_str(&object));
    if (o.result == REVIEW_PATCHED) {
        if (webhook_kit_patch_of(reply.ptr, &patch, NULL) < 0 ||
            webhook_kit_apply(object.ptr, strbuf_str(&patch), &after, NULL) < 0)
            abort();
        ask(&config, kind, strbuf_str(&after), before, &second, &o, &arena);
        if (o.result != REVIEW_UNTOUCHED)
            abort();
    }
    arena_deinit(&arena);
    return 0;
}
