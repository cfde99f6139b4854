// SPDX-License-Identifier: Apache-2.0
/*
 * Writes to claims and volumes against the API server's twin: each row is what the server says in
 * turn, what must come of it, and what must have been sent.
 */
#include "scheduler/binding/volumes_write.h"

#include "lib/base/log.h"
#include "lib/kube/http.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/shell_kit.h"

static struct twin *twin;
static struct kube_config *config;
static struct kube_client *client;

static int setup(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct kube_options options = twin_options();
    twin = twin_start(NULL, false);
    config = twin_config(twin);
    if (kube_client_new(&client, config, &options, "test", &err) < 0)
        fail_msg("%s", err.text);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kube_client_free(client);
    kube_config_free(config);
    twin_stop(twin);
    return 0;
}

struct step {
    int status;
    const char *body;
};

#define META(uid, version) "\"metadata\":{\"uid\":\"" uid "\",\"resourceVersion\":\"" version "\""
#define NODE_IS(node) ",\"annotations\":{\"volume.kubernetes.io/selected-node\":\"" node "\"}"
#define CLAIM_FREE "{" META("u-c", "5") "},\"spec\":{}}"
#define CLAIM_ON(node) "{" META("u-c", "6") NODE_IS(node) "},\"spec\":{}}"
#define CLAIM_GIVEN "{" META("u-c", "6") "},\"spec\":{\"volumeName\":\"x\"}}"
#define CLAIM_GIVEN_ON(node) "{" META("u-c", "7") NODE_IS(node) "},\"spec\":{\"volumeName\":\"x\"}}"
#define CLAIM_OTHER "{" META("u-x", "5") "},\"spec\":{}}"
#define REF(name, uid) \
    "\"claimRef\":{\"namespace\":\"d\",\"name\":\"" name "\",\"uid\":\"" uid "\"}"
#define VOLUME_FREE "{" META("u-v", "5") "},\"spec\":{},\"status\":{\"phase\":\"Available\"}}"
#define VOLUME_FOR(name, uid, phase) \
    "{" META("u-v", "6") "},\"spec\":{" REF(name, uid) "},\"status\":{\"phase\":\"" phase "\"}}"
#define VOLUME_BY_NAME                                                             \
    "{" META("u-v", "5") "},\"spec\":{\"claimRef\":{\"namespace\":\"d\",\"name\":" \
                         "\"c\"}},\"status\":{\"phase\":\"Available\"}}"
#define CONFLICT                                                                               \
    {                                                                                          \
        409, "{\"kind\":\"Status\",\"reason\":\"Conflict\",\"message\":\"the object has been " \
             "modified\",\"code\":409}"                                                        \
    }

struct row {
    const char *row;
    bool volume; /* else the claim gets a node */
    bool undo;
    bool by_name;
    struct step steps[6];
    const char *says; /* the end of the error; NULL: it worked */
    int patches;
    const char *sent;  /* in the last PATCH */
    int64_t version;   /* of what was written */
    bool others_count; /* undo */
};

static void check(const struct row *r)
{
    struct error err = ERROR_INIT;
    struct volumes_item it = {.ns = "d",
                              .claim = "c",
                              .claim_uid = "u-c",
                              .volume = r->volume ? "v" : NULL,
                              .volume_uid = r->volume ? "u-v" : NULL,
                              .node = "n",
                              .by_name = r->by_name,
                              .written = r->undo,
                              .others_count = r->others_count};
    size_t steps = 0;
    for (; steps < 6 && r->steps[steps].status != 0; steps++)
        twin_script(twin, r->steps[steps].status, "", r->steps[steps].body);
    int rc = r->undo ? volumes_write_undo(client, NULL, &it, &err)
                     : volumes_write_do(client, NULL, &it, &err);
    expect_int(r->row, r->says == NULL ? 0 : -1, rc);
    expect_str(r->row, r->says != NULL ? r->says : "", rc < 0 ? err.text : "");
    expect_int(r->row, r->patches, shell_count(twin, "PATCH", NULL));
    expect_int(r->row, (int64_t)steps, (int64_t)twin_requests(twin, TWIN_OTHER));
    if (r->sent != NULL)
        expect_int(r->row, 1, shell_count(twin, "PATCH", r->sent));
    if (!r->undo && rc == 0)
        expect_int(r->row, r->version, it.version);
}

static void check_all(void **state, const struct row *rows, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        (void)setup(state);
        check(&rows[i]);
        (void)teardown(state);
    }
    expect_done();
}

static void what_is_chosen_is_written(void **state)
{
    static const struct row rows[] = {
        {"a free claim gets its node", .steps = {{200, CLAIM_FREE}, {200, CLAIM_ON("n")}},
         .patches = 1,
         .sent = "{\"metadata\":{\"uid\":\"u-c\",\"resourceVersion\":\"5\",\"annotations\":{"
                 "\"volume.kubernetes.io/selected-node\":\"n\"}}}",
         .version = 6},
        {"it has it already", .steps = {{200, CLAIM_ON("n")}}, .version = 6},
        {"it has it, and a volume too", .steps = {{200, CLAIM_GIVEN_ON("n")}}, .version = 7},
        {"it has another node", .steps = {{200, CLAIM_ON("m")}},
         .says = "claim d/c: the claim was given another node"},
        {"it has a volume", .steps = {{200, CLAIM_GIVEN}},
         .says = "claim d/c: the claim was given a volume by somebody else"},
        {"it is another claim", .steps = {{200, CLAIM_OTHER}},
         .says = "claim d/c: the claim is another one by now"},
        {"somebody wrote to it meanwhile: looked at again",
         .steps = {{200, CLAIM_FREE}, CONFLICT, {200, CLAIM_FREE}, {200, CLAIM_ON("n")}},
         .patches = 2, .version = 6},
        {"somebody else's node, meanwhile",
         .steps = {{200, CLAIM_FREE}, CONFLICT, {200, CLAIM_ON("m")}},
         .says = "claim d/c: the claim was given another node", .patches = 1},
        {"no answer to the write, which was done",
         .steps = {{200, CLAIM_FREE}, {500, "{}"}, {200, CLAIM_ON("n")}}, .patches = 1,
         .version = 6},
        {"a free volume is reserved", .volume = true,
         .steps = {{200, VOLUME_FREE}, {200, VOLUME_FOR("c", "u-c", "Available")}}, .patches = 1,
         .sent = "{\"metadata\":{\"uid\":\"u-v\",\"resourceVersion\":\"5\",\"annotations\":{"
                 "\"pv.kubernetes.io/bound-by-controller\":\"yes\"}},\"spec\":{\"claimRef\":{"
                 "\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"namespace\":\"d\","
                 "\"name\":\"c\",\"uid\":\"u-c\"}}}",
         .version = 6},
        {"one that somebody reserved by name is not the controller's", .volume = true,
         .steps = {{200, VOLUME_BY_NAME}, {200, VOLUME_FOR("c", "u-c", "Available")}}, .patches = 1,
         .sent = "\"annotations\":{}},\"spec\":{\"claimRef\":{", .version = 6},
        {"it is reserved for the claim already", .volume = true,
         .steps = {{200, VOLUME_FOR("c", "u-c", "Available")}}, .version = 6},
        {"it is reserved for another one", .volume = true,
         .steps = {{200, VOLUME_FOR("x", "u-x", "Available")}},
         .says = "volume v: the volume was reserved for another claim"},
        {"for an older claim of that name", .volume = true,
         .steps = {{200, VOLUME_FOR("c", "u-x", "Released")}},
         .says = "volume v: the volume is reserved for an older claim of that name"},
    };
    check_all(state, rows, sizeof rows / sizeof *rows);
}

static void what_was_written_is_taken_back(void **state)
{
    static const struct row rows[] = {
        {"the node of a claim", .undo = true, .steps = {{200, CLAIM_ON("n")}, {200, CLAIM_FREE}},
         .patches = 1,
         .sent = "\"resourceVersion\":\"6\",\"annotations\":{\"volume.kubernetes.io/"
                 "selected-node\":null}}}"},
        {"another pod counts on it", .undo = true, .others_count = true, .steps = {{0}}},
        {"there is nothing to take back", .undo = true, .steps = {{200, CLAIM_FREE}}},
        {"somebody else chose another node", .undo = true, .steps = {{200, CLAIM_ON("m")}}},
        {"the claim has its volume by now", .undo = true, .steps = {{200, CLAIM_GIVEN_ON("n")}}},
        {"the claim is gone", .undo = true, .steps = {{404, "{}"}}},
        {"the claim got its volume in between", .undo = true,
         .steps = {{200, CLAIM_ON("n")}, CONFLICT, {200, CLAIM_GIVEN_ON("n")}}, .patches = 1},
        {"a reserved volume", .undo = true, .volume = true,
         .steps = {{200, VOLUME_FOR("c", "u-c", "Available")},
                   {200, CLAIM_FREE},
                   {200, VOLUME_FREE}},
         .patches = 1,
         .sent = "\"pv.kubernetes.io/bound-by-controller\":null}},\"spec\":{\"claimRef\":null}}"},
        {"one that was reserved by name is so again", .undo = true, .volume = true, .by_name = true,
         .steps = {{200, VOLUME_FOR("c", "u-c", "Available")},
                   {200, CLAIM_FREE},
                   {200, VOLUME_BY_NAME}},
         .patches = 1, .sent = "\"name\":\"c\",\"uid\":null}}}"},
        {"the controller has begun", .undo = true, .volume = true,
         .steps = {{200, VOLUME_FOR("c", "u-c", "Bound")}}},
        {"the claim has it by now", .undo = true, .volume = true,
         .steps = {{200, VOLUME_FOR("c", "u-c", "Available")}, {200, CLAIM_GIVEN}}},
        {"it is another claim's by now", .undo = true, .volume = true,
         .steps = {{200, VOLUME_FOR("x", "u-x", "Available")}}},
    };
    check_all(state, rows, sizeof rows / sizeof *rows);
}

int main(void)
{
    kube_http_global_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_chosen_is_written),
        cmocka_unit_test(what_was_written_is_taken_back),
    };
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    kube_http_global_cleanup();
    return rc;
}
