// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as the body of a review: the answer is JSON, its status is 200 or 400, and the same pod
 * in two namespaces with different labels never crashes the rules. What is answered with a patch is
 * answered again: see test_review for the patch applied.
 */
#include "lib/base/json.h"
#include "lib/model/names.h"
#include "test/fuzz/fuzz_kit.h"
#include "webhook/review.h"

static void enter(void *arg, const char *ns, struct rules_context *out)
{
    static struct label items[] = {{.key = NAME_LABEL_ECI, .value = "true"},
                                   {.key = NAME_INJECT, .value = "enabled"}};
    static const struct labels labels = {.items = items, .len = 2};
    (void)arg;
    *out = (struct rules_context){.ns = ns,
                                  .ns_labels = strlen(ns) % 2 == 0 ? NULL : &labels,
                                  .groups_known = (enum rules_known)(strlen(ns) % 3),
                                  .policies_known = (enum rules_known)(strlen(ns) % 3)};
}

static void check(const struct review_outcome *o, const struct strbuf *reply)
{
    AUTO_JSON *doc = NULL;
    if (json_parse(&doc, reply->ptr, reply->len, NULL) < 0)
        abort();
    json *response = json_get(json_root(doc), "response");
    bool allowed = json_get_bool(response, "allowed", false);
    bool patched = json_get(response, "patch") != NULL;
    if ((o->status == 400) != (response == NULL) || (o->status != 200 && o->status != 400))
        abort();
    if (response &&
        (allowed != (o->result != REVIEW_REFUSED) || (patched != (o->result == REVIEW_PATCHED))))
        abort();
}

static const struct rules_crd crds[] = {{.group = "kubeflow.org",
                                         .kind = "TFJob",
                                         .path = {"spec", "tfReplicaSpecs", "*", "template"},
                                         .path_len = 4}};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct review_config config = {.rules = {.scheduler = NAME_SCHEDULER,
                                                          .own_ns = "cosched-system",
                                                          .inject_nvidia = true,
                                                          .guard_variables = true,
                                                          .crds = crds,
                                                          .crds_len = 1},
                                                .enter = enter};
    struct arena arena;
    struct review_outcome outcome;
    AUTO_STRBUF reply;
    char *body = calloc(1, size + JSON_PADDING);
    if (!body)
        abort();
    if (size > 0)
        memcpy(body, data, size);
    strbuf_init(&reply);
    arena_init(&arena, 0);
    review_answer(&config, size % 2 == 0, body, size, &arena, &reply, &outcome);
    check(&outcome, &reply);
    arena_deinit(&arena);
    free(body);
    return 0;
}
