// SPDX-License-Identifier: Apache-2.0
/* Who waits, which ids, and what the container gets: match and response together, as one admission
 * sees them. */
#include "device-plugin/grant/match.h"
#include "device-plugin/grant/response.h"

#include "test/unit/lib/base/expect.h"

#include "lib/base/map.h"
#include "lib/base/str.h"
#include "test/unit/device-plugin/cards.h"

#define GRANT(x) "\"scheduler.framework.gpushare.allocation\":\"" x "\""
#define CORE(x) "\"gpushare.alibabacloud.com/core-percentage\":\"" x "\""
#define GROUP(x, y)                                                                              \
    "\"topology.kubernetes.io/gpu-group\":\"" x "\",\"topology.kubernetes.io/gpu-visible\":\"" y \
    "\""

struct fixture {
    struct arena a;
    struct gpu_inventory inv;
    struct match_listing listing;
    struct match_listed listed[8];
    struct pod *pods[8];
    size_t pods_len;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    arena_init(&f->a, 0);
    cards_make(&f->inv, &f->a, (const int64_t[]){16160, 16160, 24 * 1024, 0});
    f->listing.pods = f->listed;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < f->pods_len; i++)
        pod_free(f->pods[i]);
    arena_deinit(&f->a);
    free(f);
    return 0;
}

static void restart(struct fixture *f)
{
    for (size_t i = 0; i < f->pods_len; i++)
        pod_free(f->pods[i]);
    f->pods_len = f->listing.len = 0;
}

/* A listed pod. held: "c0=GPU-a:0-2": what its containers hold of r; ordinary init containers are
 * not listed, but "given=1" of them have their ids. */
static void list(struct fixture *f, const char *name, const char *containers,
                 const char *annotations, enum mode_resource r, const char *held)
{
    struct pod *p = cards_pod(name, containers, annotations);
    struct match_listed *l = &f->listed[f->listing.len++];
    *l = (struct match_listed){.ns = p->ns, .name = p->name, .key = p->key, .pod = p};
    f->pods[f->pods_len++] = p;
    l->containers =
        arena_new(&f->a, struct match_listed_container, p->containers_len + p->init_containers_len);
    for (size_t i = 0; i < p->init_containers_len; i++)
        if (p->init_containers[i].sidecar)
            l->containers[l->containers_len++].name = p->init_containers[i].name;
    for (size_t i = 0; i < p->containers_len; i++)
        l->containers[l->containers_len++].name = p->containers[i].name;
    char *text = arena_strdup(&f->a, held), *save = NULL;
    for (char *w = strtok_r(text, ";", &save); w != NULL; w = strtok_r(NULL, ";", &save)) {
        char *ids = strchr(w, '=');
        *ids++ = '\0';
        if (str_eq(w, "given"))
            l->init_given[r] = (size_t)(ids[0] - '0');
        for (size_t i = 0; i < l->containers_len; i++)
            if (str_eq(l->containers[i].name, w))
                l->containers[i].held[r] = cards_ids(&f->a, ids);
    }
}

static const char *who(struct fixture *f, enum mode_resource r, size_t count)
{
    struct match_subject s;
    struct error err = ERROR_INIT;
    if (match_waiting(&f->listing, r, count, &s, &err) < 0)
        return arena_strdup(&f->a, err.text);
    return arena_printf(&f->a, "%s %zu", s.pod->key, s.container);
}

static void who_waits(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *row;
        enum mode_resource r;
        size_t count;
        struct {
            const char *name, *containers, *held;
        } pods[3];
        const char *who;
    } rows[] = {
        {"the only pod that asks", MODE_GPU_MEM, 3, {{"a", "c0=gpu-mem:3", ""}}, "default/a 0"},
        {"a pod that holds its ids does not wait",
         MODE_GPU_MEM,
         3,
         {{"a", "c0=gpu-mem:3", "c0=GPU-a:0-2"}, {"b", "c0=gpu-mem:3", ""}},
         "default/b 0"},
        {"pods without GPUs are nobody",
         MODE_GPU_MEM,
         3,
         {{"x", "c0=cpu:1", ""}, {"b", "c0=gpu-mem:3", ""}},
         "default/b 0"},
        {"the second container after the first",
         MODE_GPU_MEM,
         2,
         {{"a", "c0=gpu-mem:2 c1=gpu-mem:2", "c0=GPU-a:0-1"}},
         "default/a 1"},
        {"a container between that asks for nothing is passed",
         MODE_GPU_MEM,
         2,
         {{"a", "c0=gpu-mem:2 log=cpu:1 c2=gpu-mem:2", "c0=GPU-a:0-1"}},
         "default/a 2"},
        {"the other resource of the same container",
         MODE_GPU_CORE,
         30,
         {{"a", "c0=gpu-mem:3,gpu-core.percentage:30", ""}},
         "default/a 0"},
        {"a sidecar comes first",
         MODE_GPU_MEM,
         1,
         {{"a", "side:s=gpu-mem:1 c0=gpu-mem:2", ""}},
         "default/a 1"},
        {"after the sidecar the container",
         MODE_GPU_MEM,
         2,
         {{"a", "side:s=gpu-mem:1 c0=gpu-mem:2", "s=GPU-a:0"}},
         "default/a 0"},
        {"an init container, told by its size",
         MODE_GPU_MEM,
         4,
         {{"a", "init:i=gpu-mem:4 c0=gpu-mem:2", ""}},
         "default/a 1"},
        {"the container after the init container, told by its size",
         MODE_GPU_MEM,
         2,
         {{"a", "init:i=gpu-mem:4 c0=gpu-mem:2", ""}},
         "default/a 0"},
        {"only the init container asks",
         MODE_GPU_MEM,
         4,
         {{"a", "init:i=gpu-mem:4 c0=cpu:1", ""}},
         "default/a 1"},
        {"and waits no more once it was given its ids",
         MODE_GPU_MEM,
         4,
         {{"a", "init:i=gpu-mem:4 c0=cpu:1", "given=1"}, {"b", "init:i=gpu-mem:4 c0=cpu:1", ""}},
         "default/b 1"},
        {"the second of two equal init containers",
         MODE_GPU_MEM,
         4,
         {{"a", "init:i=gpu-mem:4 init:k=gpu-mem:4 c0=gpu-mem:4", "given=1"}},
         "default/a 2"},
        {"the container after them, equal to them",
         MODE_GPU_MEM,
         4,
         {{"a", "init:i=gpu-mem:4 init:k=gpu-mem:4 c0=gpu-mem:4", "given=2"}},
         "default/a 0"},
        {"the next container after the one that holds: its init containers are done",
         MODE_GPU_MEM,
         4,
         {{"a", "init:i=gpu-mem:4 c0=gpu-mem:4 c1=gpu-mem:4", "c0=GPU-a:0-3"}},
         "default/a 1"},
        {"an init container before a sidecar that holds is done",
         MODE_GPU_MEM,
         1,
         {{"a", "init:i=gpu-mem:1 side:s=gpu-mem:2 init:k=gpu-mem:1 c0=cpu:1", "s=GPU-a:0-1"}},
         "default/a 3"},
        {"nobody waits",
         MODE_GPU_MEM,
         3,
         {{"a", "c0=gpu-mem:3", "c0=GPU-a:0-2"}},
         "3 ids of aliyun.com/gpu-mem are asked for, but no pod on this node waits for them"},
        {"no pods at all",
         MODE_GPU,
         1,
         {{NULL, NULL, NULL}},
         "1 ids of aliyun.com/gpu are asked for, but no pod on this node waits for them"},
        {"the one that waits wants another number",
         MODE_GPU_MEM,
         4,
         {{"a", "c0=gpu-mem:3", ""}},
         "4 ids of aliyun.com/gpu-mem are asked for, but pod default/a waits for another number"},
        {"two wait, for different numbers",
         MODE_GPU_MEM,
         3,
         {{"a", "c0=gpu-mem:2", ""}, {"b", "c0=gpu-mem:3", ""}},
         "default/b 0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        restart(f);
        for (size_t k = 0; k < 3 && rows[i].pods[k].name != NULL; k++)
            list(f, rows[i].pods[k].name, rows[i].pods[k].containers, "", rows[i].r,
                 rows[i].pods[k].held);
        expect_str(rows[i].row, rows[i].who, who(f, rows[i].r, rows[i].count));
    }
    restart(f);
    list(f, "a", "c0=gpu-mem:3", "", MODE_GPU_MEM, "");
    f->pods[0]->phase = POD_FAILED;
    list(f, "b", "c0=gpu-mem:3", "", MODE_GPU_MEM, "");
    expect_str("a finished pod does not wait", "default/b 0", who(f, MODE_GPU_MEM, 3));
    f->listed[1].pod = NULL;
    expect_str("an unknown pod is not guessed at",
               "3 ids of aliyun.com/gpu-mem are asked for, but no pod on this node waits for them",
               who(f, MODE_GPU_MEM, 3));
    expect_true("but may be the one", match_may_wait(&f->listed[1], MODE_GPU_MEM));
    expect_done();
}

/* One admission: the subject is container `container` of the pod. */
static const struct {
    const char *row;
    enum gpu_mode mode;
    enum mode_resource r;
    const char *containers, *annotations;
    size_t container;
    const char *available, *must;
    size_t count;
    const char *ids; /* preferred, or the refusal */
    const char *env; /* NULL: Allocate is not reached */
} admissions[] = {
    {"the claimed card, not the first one", GPU_MODE_CGPU, MODE_GPU_MEM, "c0=gpu-mem:3",
     GRANT("{\\\"0\\\":{\\\"1\\\":3}}"), 0, "GPU-a:0-14 GPU-b:0-14", "", 3,
     "GPU-b-_-0 GPU-b-_-1 GPU-b-_-2",
     "NVIDIA_VISIBLE_DEVICES=GPU-b ALIYUN_COM_GPU_MEM_IDX=1 ALIYUN_COM_GPU_MEM_POD=3 ALIYUN_COM_GPU_MEM_CONTAINER=3 "
     "ALIYUN_COM_GPU_MEM_DEV=15 "},
    {"mode share says that nothing is enforced", GPU_MODE_SHARE, MODE_GPU_MEM, "c0=gpu-mem:1",
     GRANT("{\\\"0\\\":{\\\"2\\\":1}}"), 0, "GPU-c:23", "", 1, "GPU-c-_-23",
     "NVIDIA_VISIBLE_DEVICES=GPU-c ALIYUN_COM_GPU_MEM_IDX=2 ALIYUN_COM_GPU_MEM_POD=1 ALIYUN_COM_GPU_MEM_CONTAINER=1 "
     "ALIYUN_COM_GPU_MEM_DEV=24 CGPU_DISABLE=true "},
    {"the second of two containers, each on its own card", GPU_MODE_CGPU, MODE_GPU_MEM,
     "c0=gpu-mem:2 c1=gpu-mem:4", GRANT("{\\\"0\\\":{\\\"0\\\":2},\\\"1\\\":{\\\"1\\\":4}}"), 1,
     "GPU-a:0-14 GPU-b:3-14", "", 4, "GPU-b-_-3 GPU-b-_-4 GPU-b-_-5 GPU-b-_-6",
     "NVIDIA_VISIBLE_DEVICES=GPU-b ALIYUN_COM_GPU_MEM_IDX=1 ALIYUN_COM_GPU_MEM_POD=6 ALIYUN_COM_GPU_MEM_CONTAINER=4 "
     "ALIYUN_COM_GPU_MEM_DEV=15 "},
    {"memory and compute: the answer for either tells both", GPU_MODE_CORE_MEM, MODE_GPU_CORE,
     "c0=gpu-mem:3,gpu-core.percentage:10",
     GRANT("{\\\"0\\\":{\\\"1\\\":3}}") "," CORE("{\\\"0\\\":{\\\"1\\\":10}}"), 0,
     "GPU-a:0-99 GPU-b:90-99", "", 10,
     "GPU-b-_-90 GPU-b-_-91 GPU-b-_-92 GPU-b-_-93 GPU-b-_-94 GPU-b-_-95 GPU-b-_-96 GPU-b-_-97 GPU-b-_-98 GPU-b-_-99",
     "NVIDIA_VISIBLE_DEVICES=GPU-b ALIYUN_COM_GPU_MEM_IDX=1 ALIYUN_COM_GPU_MEM_POD=3 ALIYUN_COM_GPU_MEM_CONTAINER=3 "
     "ALIYUN_COM_GPU_MEM_DEV=15 COSCHED_GPU_CORE_PERCENTAGE=10 "},
    {"too few ids left on the claimed card: refused, never moved", GPU_MODE_CGPU, MODE_GPU_MEM,
     "c0=gpu-mem:3", GRANT("{\\\"0\\\":{\\\"1\\\":3}}"), 0, "GPU-a:0-14 GPU-b:13-14", "", 3,
     "pod default/p: card 1 was chosen for it, but the kubelet has 1 ids of aliyun.com/gpu-mem too few there",
     NULL},
    {"no claim", GPU_MODE_CGPU, MODE_GPU_MEM, "c0=gpu-mem:3", "", 0, "GPU-a:0-14", "", 3,
     "pod default/p asks for aliyun.com/gpu-mem but has no grant for a card: it was not bound by cosched's scheduler (its "
     "schedulerName is 'ack-co-scheduler')",
     NULL},
    {"fewer ids than asked for", GPU_MODE_CGPU, MODE_GPU_MEM, "c0=gpu-mem:3",
     GRANT("{\\\"0\\\":{\\\"1\\\":3}}"), 0, "GPU-b:0-1", "", 3,
     "3 ids of aliyun.com/gpu-mem are asked for and only 2 are available", NULL},
    {"an init container goes where the pod goes, with the ids it asks for", GPU_MODE_CGPU,
     MODE_GPU_MEM, "init:i=gpu-mem:2 c0=gpu-mem:3", GRANT("{\\\"0\\\":{\\\"1\\\":3}}"), 1,
     "GPU-a:0-14 GPU-b:0-14", "", 2, "GPU-b-_-0 GPU-b-_-1",
     "NVIDIA_VISIBLE_DEVICES=GPU-b ALIYUN_COM_GPU_MEM_IDX=1 ALIYUN_COM_GPU_MEM_POD=3 ALIYUN_COM_GPU_MEM_CONTAINER=2 "
     "ALIYUN_COM_GPU_MEM_DEV=15 "},
    {"an init container's answer tells both amounts, whichever resource is asked for",
     GPU_MODE_CORE_MEM, MODE_GPU_CORE,
     "init:i=gpu-mem:2,gpu-core.percentage:5 c0=gpu-mem:3,gpu-core.percentage:10",
     GRANT("{\\\"0\\\":{\\\"1\\\":3}}") "," CORE("{\\\"0\\\":{\\\"1\\\":10}}"), 1, "GPU-b:0-99", "",
     5, "GPU-b-_-0 GPU-b-_-1 GPU-b-_-2 GPU-b-_-3 GPU-b-_-4",
     "NVIDIA_VISIBLE_DEVICES=GPU-b ALIYUN_COM_GPU_MEM_IDX=1 ALIYUN_COM_GPU_MEM_POD=3 ALIYUN_COM_GPU_MEM_CONTAINER=2 "
     "ALIYUN_COM_GPU_MEM_DEV=15 COSCHED_GPU_CORE_PERCENTAGE=5 "},
    {"a sidecar has a share of its own, perhaps on another card", GPU_MODE_CGPU, MODE_GPU_MEM,
     "side:s=gpu-mem:1 c0=gpu-mem:2", GRANT("{\\\"0\\\":{\\\"1\\\":2},\\\"1\\\":{\\\"2\\\":1}}"), 1,
     "GPU-a:0-14 GPU-c:4-14", "", 1, "GPU-c-_-4",
     "NVIDIA_VISIBLE_DEVICES=GPU-c ALIYUN_COM_GPU_MEM_IDX=2 ALIYUN_COM_GPU_MEM_POD=3 ALIYUN_COM_GPU_MEM_CONTAINER=1 "
     "ALIYUN_COM_GPU_MEM_DEV=24 "},
    {"what the kubelet insists on comes first", GPU_MODE_CGPU, MODE_GPU_MEM, "c0=gpu-mem:3",
     GRANT("{\\\"0\\\":{\\\"1\\\":3}}"), 0, "GPU-b:0-14", "GPU-b:7-8", 3,
     "GPU-b-_-7 GPU-b-_-8 GPU-b-_-0",
     "NVIDIA_VISIBLE_DEVICES=GPU-b ALIYUN_COM_GPU_MEM_IDX=1 ALIYUN_COM_GPU_MEM_POD=3 ALIYUN_COM_GPU_MEM_CONTAINER=3 "
     "ALIYUN_COM_GPU_MEM_DEV=15 "},
    {"whole cards of a group", GPU_MODE_TOPOLOGY, MODE_GPU, "c0=gpu:2", GROUP("0,2", "0,2"), 0,
     "GPU-a GPU-b GPU-c", "", 2, "GPU-a GPU-c", "NVIDIA_VISIBLE_DEVICES=GPU-a,GPU-c "},
    {"its peers' cards are visible too", GPU_MODE_TOPOLOGY, MODE_GPU, "c0=gpu:1", GROUP("2", "0,2"),
     0, "GPU-a GPU-b GPU-c", "", 1, "GPU-c", "NVIDIA_VISIBLE_DEVICES=GPU-a,GPU-c "},
    {"a card of the group is taken", GPU_MODE_TOPOLOGY, MODE_GPU, "c0=gpu:2", GROUP("0,2", "0,2"),
     0, "GPU-a GPU-b", "", 2,
     "pod default/p: 2 of aliyun.com/gpu are needed, and the kubelet has only 1 that fit", NULL},
    {"default mode serves every scheduler", GPU_MODE_DEFAULT, MODE_NVIDIA_GPU,
     "c0=nvidia.com/gpu:2", "", 0, "GPU-c GPU-a GPU-b", "", 2, "GPU-a GPU-b",
     "NVIDIA_VISIBLE_DEVICES=GPU-a,GPU-b "},
};

static void admitted(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof admissions / sizeof admissions[0]; i++) {
        const char *row = admissions[i].row;
        struct pod *p = cards_pod("p", admissions[i].containers, admissions[i].annotations);
        struct match_subject s = {.pod = p, .container = admissions[i].container};
        struct inventory_ids available = cards_ids(&f->a, admissions[i].available);
        struct inventory_ids must = cards_ids(&f->a, admissions[i].must), ids = {0};
        struct match_grant grant;
        struct response r;
        struct error err = ERROR_INIT;
        int result = match_prefer(&f->inv, admissions[i].r, &s, &available, &must,
                                  admissions[i].count, &f->a, &ids, &err);
        expect_int(row, admissions[i].env != NULL ? 0 : -1, result);
        expect_str(row, admissions[i].ids, result == 0 ? cards_print(&f->a, &ids) : err.text);
        if (result == 0 &&
            match_grant(&f->inv, admissions[i].r, &s, &ids, &f->a, &grant, &err) < 0) {
            expect_str(row, admissions[i].env, err.text);
        } else if (result == 0) {
            response_build(&f->inv, admissions[i].mode, RESPONSE_ENVVAR, &grant, &f->a, &r);
            AUTO_STRBUF env;
            strbuf_init(&env);
            for (size_t k = 0; k < r.envs_len; k++)
                strbuf_addf(&env, "%s=%s ", r.envs[k].key, r.envs[k].value);
            expect_str(row, admissions[i].env, strbuf_str(&env));
        }
        pod_free(p);
    }
    expect_done();
}

/* Nobody chose the cards: the links do. */
static void linked(void **state)
{
    struct fixture *f = *state;
    static const char *links[] = {"X", "SYS", "NV2", "SYS", "X", "SYS", "NV2", "SYS", "X"};
    static const struct {
        const char *row, *available, *must;
        size_t count;
        const char *ids;
    } rows[] = {
        {"the two that are linked", "GPU-a GPU-b GPU-c", "", 2, "GPU-a GPU-c"},
        {"one that leaves them to others", "GPU-a GPU-b GPU-c", "", 1, "GPU-b"},
        {"the partner of what the kubelet insists on", "GPU-a GPU-b GPU-c", "GPU-c", 2,
         "GPU-c GPU-a"},
        {"what is left", "GPU-b GPU-c", "", 2, "GPU-b GPU-c"},
        {"all", "GPU-c GPU-b GPU-a", "", 3, "GPU-c GPU-b GPU-a"},
    };
    f->inv.links = links;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pod *p = cards_pod("p", "c0=nvidia.com/gpu:1", "");
        struct match_subject s = {.pod = p};
        struct inventory_ids available = cards_ids(&f->a, rows[i].available);
        struct inventory_ids must = cards_ids(&f->a, rows[i].must), ids = {0};
        struct error err = ERROR_INIT;
        int result = match_prefer(&f->inv, MODE_NVIDIA_GPU, &s, &available, &must, rows[i].count,
                                  &f->a, &ids, &err);
        expect_str(rows[i].row, rows[i].ids, result == 0 ? cards_print(&f->a, &ids) : err.text);
        pod_free(p);
    }
    expect_done();
}

/* I5: ids that the kubelet picked by itself. */
static void refused(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *row;
        enum mode_resource r;
        const char *containers, *annotations, *ids, *error; /* error NULL: granted */
    } rows[] = {
        {"ids on another card", MODE_GPU_MEM, "c0=gpu-mem:2", GRANT("{\\\"0\\\":{\\\"1\\\":2}}"),
         "GPU-a:0-1",
         "pod default/p: the kubelet took more of aliyun.com/gpu-mem on card 0 than the scheduler chose there"},
        {"one id on another card", MODE_GPU_MEM, "c0=gpu-mem:2", GRANT("{\\\"0\\\":{\\\"1\\\":2}}"),
         "GPU-b:0 GPU-a:0",
         "pod default/p: the kubelet took more of aliyun.com/gpu-mem on card 0 than the scheduler chose there"},
        {"the right ids", MODE_GPU_MEM, "c0=gpu-mem:2", GRANT("{\\\"0\\\":{\\\"1\\\":2}}"),
         "GPU-b:0 GPU-b:14", NULL},
        {"an id of nobody", MODE_GPU_MEM, "c0=gpu-mem:2", GRANT("{\\\"0\\\":{\\\"1\\\":2}}"),
         "GPU-b:0 GPU-z:0", "'GPU-z-_-0' is not an id of aliyun.com/gpu-mem on this node"},
        {"a whole card outside the group", MODE_GPU, "c0=gpu:1", GROUP("2", "2"), "GPU-a",
         "pod default/p: the kubelet took more of aliyun.com/gpu on card 0 than the scheduler chose there"},
        {"two equal shares of two cards", MODE_GPU_MEM, "c0=gpu-mem:4",
         GRANT("{\\\"0\\\":{\\\"0\\\":2,\\\"1\\\":2}}"), "GPU-a:0-1 GPU-b:0-1", NULL},
        {"spread unequally", MODE_GPU_MEM, "c0=gpu-mem:4",
         GRANT("{\\\"0\\\":{\\\"0\\\":2,\\\"1\\\":2}}"), "GPU-a:0-2 GPU-b:0",
         "pod default/p: the kubelet took more of aliyun.com/gpu-mem on card 0 than the scheduler chose there"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pod *p = cards_pod("p", rows[i].containers, rows[i].annotations);
        struct match_subject s = {.pod = p, .container = 0};
        struct inventory_ids ids = cards_ids(&f->a, rows[i].ids);
        struct match_grant grant;
        struct error err = ERROR_INIT;
        int result = match_grant(&f->inv, rows[i].r, &s, &ids, &f->a, &grant, &err);
        expect_int(rows[i].row, rows[i].error == NULL ? 0 : -1, result);
        expect_str(rows[i].row, rows[i].error, result < 0 ? err.text : NULL);
        pod_free(p);
    }
    static const struct {
        const char *row, *containers, *annotations;
    } bad[] = {
        {"a claim on a card that does not exist", "c0=gpu-mem:2",
         GRANT("{\\\"0\\\":{\\\"7\\\":2}}")},
        {"a claim that is not JSON", "c0=gpu-mem:2", GRANT("{{")},
        {"a claim of less than the request", "c0=gpu-mem:2", GRANT("{\\\"0\\\":{\\\"1\\\":1}}")},
        {"a claim of more than the request", "c0=gpu-mem:2", GRANT("{\\\"0\\\":{\\\"1\\\":3}}")},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct pod *p = cards_pod("p", bad[i].containers, bad[i].annotations);
        struct match_subject s = {.pod = p, .container = 0};
        struct inventory_ids ids = cards_ids(&f->a, "GPU-b:0-1");
        struct match_grant grant;
        struct error err = ERROR_INIT;
        expect_int(bad[i].row, -1,
                   match_grant(&f->inv, MODE_GPU_MEM, &s, &ids, &f->a, &grant, &err));
        expect_true(bad[i].row, str_starts(err.text, "pod default/p: grant: "));
        pod_free(p);
    }
    expect_done();
}

static void who_holds(void **state)
{
    struct fixture *f = *state;
    const struct match_listed *l = NULL;
    struct error err = ERROR_INIT;
    list(f, "a", "c0=gpu-mem:2", "", MODE_GPU_MEM, "c0=GPU-a:0-1");
    list(f, "b", "c0=gpu-mem:2 c1=gpu-mem:1", "", MODE_GPU_MEM, "c0=GPU-a:2-3;c1=GPU-b:0");
    static const struct {
        const char *row, *ids, *pod, *container;
    } rows[] = {
        {"in order", "GPU-a:2-3", "default/b", "c0"},
        {"in another order", "GPU-a:1 GPU-a:0", "default/a", "c0"},
        {"the second container", "GPU-b:0", "default/b", "c1"},
        {"a part of them", "GPU-a:0", NULL, NULL},
        {"ids of two pods", "GPU-a:1-2", NULL, NULL},
        {"none", "", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct inventory_ids ids = cards_ids(&f->a, rows[i].ids);
        const char *container = NULL;
        l = NULL;
        expect_int(rows[i].row, rows[i].pod != NULL ? 0 : -1,
                   match_holder(&f->listing, MODE_GPU_MEM, &ids, &l, &container, &err));
        expect_str(rows[i].row, rows[i].container, container);
        expect_str(rows[i].row, rows[i].pod, l != NULL ? l->key : NULL);
    }
    expect_done();
}

/* Kubelets before 1.34 list pods that wait for their turn or were turned away. */
static void several_could_be_the_one(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *row;
        struct {
            uint64_t arrival, answered;
        } pods[3]; /* a, b, c */
        const char *who;
    } rows[] = {
        {"the first to arrive", {{2, 0}, {1, 0}, {3, 0}}, "default/b 1"},
        {"not one that was answered for and has no ids", {{2, 0}, {1, 2}, {3, 0}}, "default/a 1"},
        {"its other container's answer does not count", {{2, 0}, {1, 1}, {3, 0}}, "default/b 1"},
        {"all were: the first of them", {{3, 2}, {2, 2}, {4, 2}}, "default/b 1"},
        {"one that the watch has not brought is the last", {{0, 0}, {0, 0}, {7, 0}}, "default/c 1"},
        {"unless the others were turned away",
         {{0, 0}, {1, UINT64_MAX}, {7, UINT64_MAX}},
         "default/a 1"},
        {"nothing is known: by the list", {{0, 0}, {0, 0}, {0, 0}}, "default/a 1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        restart(f);
        for (size_t k = 0; k < 3; k++) {
            const char name[] = {(char)('a' + (int)k), '\0'};
            list(f, name, "c0=gpu-mem:1 c1=gpu-mem:3", "", MODE_GPU_MEM,
                 k == 0   ? "c0=GPU-a:0-0"
                 : k == 1 ? "c0=GPU-a:1-1"
                          : "c0=GPU-a:2-2");
            f->listing.pods[k].arrival = rows[i].pods[k].arrival;
            f->listing.pods[k].answered[MODE_GPU_MEM] = rows[i].pods[k].answered;
        }
        expect_str(rows[i].row, rows[i].who, who(f, MODE_GPU_MEM, 3));
    }
    expect_done();
}

/* Containers with the same digest would share a folder, and with it their limits. */
static void digests_differ(void **state)
{
    (void)state;
    enum { SLICES = 80 };
    struct arena a;
    struct map seen;
    arena_init(&a, 0);
    map_init(&seen);
    for (int x = 0; x < SLICES; x++)
        for (int y = x + 1; y < SLICES; y++) {
            const char *items[] = {arena_printf(&a, "GPU-8f1e-_-%d", x),
                                   arena_printf(&a, "GPU-8f1e-_-%d", y)};
            const char *turned[] = {items[1], items[0]};
            const char *digest = match_digest(&(struct inventory_ids){items, 2}, &a);
            expect_str("in any order", digest,
                       match_digest(&(struct inventory_ids){turned, 2}, &a));
            expect_str(items[0], NULL, map_put(&seen, digest, &seen));
        }
    expect_int("each pair of ids has its own", (int64_t)SLICES * (SLICES - 1) / 2,
               (int64_t)map_count(&seen));
    map_deinit(&seen);
    arena_deinit(&a);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests_differ),
        cmocka_unit_test_setup_teardown(several_could_be_the_one, setup, teardown),
        cmocka_unit_test_setup_teardown(who_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(admitted, setup, teardown),
        cmocka_unit_test_setup_teardown(linked, setup, teardown),
        cmocka_unit_test_setup_teardown(refused, setup, teardown),
        cmocka_unit_test_setup_teardown(who_holds, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
