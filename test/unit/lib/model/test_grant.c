// SPDX-License-Identifier: Apache-2.0
/*
 * A pod in one line: "c" a container, "i" an ordinary init container, "s" a sidecar, each followed
 * by GiB of gpu-mem and, behind a slash, percent: "c3 c2/30 i4". "w2" is a container with two whole
 * cards (topology), "n1" one with an exclusive card.
 */
#include "lib/model/grant.h"

#include "lib/model/names.h"
#include "test/unit/lib/model/build.h"

static struct pod pod_of(const char *line)
{
    struct pod p = {.containers = arena_new(&arena, struct container, 8),
                    .init_containers = arena_new(&arena, struct container, 8)};

    for (const char *s = line; *s;) {
        char kind = *s++;
        bool init = kind == 'i' || kind == 's';
        struct container *c =
            init ? &p.init_containers[p.init_containers_len++] : &p.containers[p.containers_len++];
        const char *end = strchrnul(s, ' '), *slash = memchr(s, '/', (size_t)(end - s));
        const char *resource = kind == 'w'   ? NAME_RES_GPU
                               : kind == 'n' ? NAME_RES_NVIDIA_GPU
                                             : NAME_RES_GPU_MEM;
        c->name =
            arena_printf(&arena, "%c%zu", kind, init ? p.init_containers_len : p.containers_len);
        c->sidecar = kind == 's';
        if ((slash ? slash : end) > s)
            assert_int_equal(0, resources_set_text(&c->requests, &arena, resource, strlen(resource),
                                                   s, (size_t)((slash ? slash : end) - s),
                                                   QUANTITY_UP, NULL));
        if (slash)
            assert_int_equal(0, resources_set_text(&c->requests, &arena, NAME_RES_GPU_CORE,
                                                   strlen(NAME_RES_GPU_CORE), slash + 1,
                                                   (size_t)(end - slash - 1), QUANTITY_UP, NULL));
        assert_true(resources_add(&c->limits, &c->requests, &arena));
        s = *end ? end + 1 : end;
    }
    return p;
}

/* "0:1=3 0:2=3 1:1=2/30 | 0,3 | 0,1,3" */
static const char *text_of(const struct grant *c)
{
    AUTO_STRBUF out;
    strbuf_init(&out);
    for (size_t i = 0; i < c->shares_len; i++) {
        strbuf_addf(&out, "%s%u:%d=%lld", i ? " " : "", c->shares[i].container, c->shares[i].card,
                    (long long)c->shares[i].gib);
        if (c->shares[i].percent)
            strbuf_addf(&out, "/%lld", (long long)c->shares[i].percent);
    }
    for (size_t i = 0; i < c->group_len; i++)
        strbuf_addf(&out, "%s%d", i ? "," : " | ", c->group[i]);
    for (size_t i = 0; i < c->visible_len; i++)
        strbuf_addf(&out, "%s%d", i ? "," : " | ", c->visible[i]);
    return arena_strdup(&arena, strbuf_str(&out));
}

/* "IDX=1;POD=3": short names for the keys. */
static void annotate(struct pod *p, const char *list)
{
    static const struct {
        const char *name, *key;
    } keys[] = {
        {"alloc", NAME_ANN_ALLOCATION},     {"core", NAME_ANN_CORE},
        {"time", NAME_ANN_ASSUME_TIME},     {"assigned", NAME_ANN_ASSIGNED},
        {"IDX", NAME_ANN_OLD_IDX},          {"DEV", NAME_ANN_OLD_DEV},
        {"POD", NAME_ANN_OLD_POD},          {"ASSIGNED", NAME_ANN_OLD_ASSIGNED},
        {"TIME", NAME_ANN_OLD_ASSUME_TIME}, {"group", NAME_ANN_GPU_GROUP},
        {"visible", NAME_ANN_GPU_VISIBLE},
    };

    for (const char *s = list; *s;) {
        const char *eq = strchr(s, '='), *end = strchrnul(s, ';');
        const char *key = NULL;
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
            if (strlen(keys[i].name) == (size_t)(eq - s) &&
                strncmp(keys[i].name, s, (size_t)(eq - s)) == 0)
                key = keys[i].key;
        assert_non_null(key);
        build_annotate(&arena, p, key,
                       quoted(arena_strndup(&arena, eq + 1, (size_t)(end - eq - 1))));
        s = *end ? end + 1 : end;
    }
}

static void both_forms_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *row, *pod, *annotations, *grant;
        int64_t time;
        bool assigned;
    } rows[] = {
        {"no annotations", "c3", "", "", 0, false},
        {"all empty", "c3",
         "alloc=;core=;time=;assigned=;IDX=;DEV=;POD=;ASSIGNED=;TIME=;group=;visible=", "", 0,
         false},
        {"the newer form", "c3", "alloc={'0':{'1':3}};time=17;assigned=true", "0:1=3", 17, true},
        {"not yet assigned", "c3", "alloc={'0':{'1':3}};time=17;assigned=false", "0:1=3", 17,
         false},
        {"several containers and cards, sorted", "c2 c c4",
         "alloc={'2':{'10':2,'9':2},'0':{'1':2}}", "0:1=2 2:9=2 2:10=2", 0, false},
        {"memory and percent are joined", "c3/30", "alloc={'0':{'1':3}};core={'0':{'1':30}}",
         "0:1=3/30", 0, false},
        {"percent of another card", "c3/30", "alloc={'0':{'1':3}};core={'0':{'0':30}}",
         "0:0=0/30 0:1=3", 0, false},
        {"only percent", "c/30", "core={'0':{'1':30}}", "0:1=0/30", 0, false},
        {"an empty object", "c3", "alloc={}", "", 0, false},
        {"a container with no card", "c3 c", "alloc={'0':{'1':3},'1':{}}", "0:1=3", 0, false},
        {"the last card", "c3", "alloc={'0':{'63':3}}", "0:63=3", 0, false},
        {"the largest amounts", "c3", "alloc={'0':{'1':1048576}};core={'0':{'1':100}}",
         "0:1=1048576/100", 0, false},
        {"an init container", "c3 i4", "alloc={'0':{'1':3},'1':{'1':1}}", "0:1=3 1:1=1", 0, false},
        {"the older form", "c3", "IDX=1;DEV=15;POD=3;ASSIGNED=true;TIME=1700000000000000000",
         "0:1=3", INT64_C(1700000000000000000), true},
        {"the older form without the card's size", "c3", "IDX=1;POD=3;ASSIGNED=false", "0:1=3", 0,
         false},
        {"the older form finds the container", "c c5 c", "IDX=0;POD=5", "1:0=5", 0, false},
        {"the older form beside an init container", "c3 i4", "IDX=0;POD=3", "0:0=3", 0, false},
        {"the older form with only an init container", "c i4", "IDX=0;POD=4", "1:0=4", 0, false},
        {"the newer wins", "c3",
         "alloc={'0':{'1':3}};time=17;assigned=false;IDX=2;POD=4;ASSIGNED=true;TIME=18", "0:1=3",
         17, false},
        {"even when the older one is nonsense", "c3", "alloc={'0':{'1':3}};IDX=x;POD=-4", "0:1=3",
         0, false},
        {"an empty newer form leaves the older one", "c3", "alloc=;IDX=2;POD=3", "0:2=3", 0, false},
        {"the older form with percent", "c3/30", "IDX=1;POD=3;core={'0':{'1':30}}", "0:1=3/30", 0,
         false},
        {"whole cards", "w2", "group=0,3", " | 0,3 | 0,3", 0, false},
        {"whole cards in any order", "w2", "group=3,0;visible=3,1,0", " | 0,3 | 0,1,3", 0, false},
        {"blanks in JSON", "c3", "alloc= { '0' : { '1' : 3 } } ", "0:1=3", 0, false},
        {"other annotations do not matter", "c3", "alloc={'0':{'1':3}};DEV=nonsense", "0:1=3", 0,
         false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pod p = pod_of(rows[i].pod);
        struct grant c;
        struct error err = ERROR_INIT;
        annotate(&p, rows[i].annotations);
        expect_int(rows[i].row, 0, grant_decode(&p, &arena, &c, &err));
        expect_str(rows[i].row, "", err.text);
        expect_str(rows[i].row, rows[i].grant, text_of(&c));
        expect_int(rows[i].row, rows[i].time, c.assume_time_ns);
        expect_int(rows[i].row, rows[i].assigned, c.assigned);
        expect_int(rows[i].row, rows[i].grant[0] == '\0', grant_is_empty(&c));
    }
    expect_done();
}

static void hostile_annotations_are_refused_by_name(void **state)
{
    (void)state;
#define A "annotation " NAME_ANN_ALLOCATION ": "
#define C "annotation " NAME_ANN_CORE ": "
    static const struct {
        const char *pod, *annotations, *message;
    } rows[] = {
        {"c3", "alloc=[]", A "must be an object of containers, not array"},
        {"c3", "alloc=3", A "must be an object of containers, not number"},
        {"c3", "alloc=null", A "must be an object of containers, not null"},
        {"c3", "alloc={'0':3}", A "container 0: must be an object of cards, not number"},
        {"c3", "alloc={'0':[3]}", A "container 0: must be an object of cards, not array"},
        {"c3", "alloc={'1':{'0':3}}", A "the pod has no container '1'"},
        {"c3", "alloc={'4294967296':{'0':3}}", A "the pod has no container '4294967296'"},
        {"c3", "alloc={'-1':{'0':3}}", A "the pod has no container '-1'"},
        {"c3", "alloc={'00':{'0':3}}", A "the pod has no container '00'"},
        {"c3", "alloc={'':{'0':3}}", A "the pod has no container ''"},
        {"c3", "alloc={' 0':{'0':3}}", A "the pod has no container ' 0'"},
        {"c3", "alloc={'a':{'0':3}}", A "the pod has no container 'a'"},
        {"c3", "alloc={'0':{'64':3}}", A "container 0: not a card from 0 to 63: '64'"},
        {"c3", "alloc={'0':{'-1':3}}", A "container 0: not a card from 0 to 63: '-1'"},
        {"c3", "alloc={'0':{'01':3}}", A "container 0: not a card from 0 to 63: '01'"},
        {"c3", "alloc={'0':{'18446744073709551616':3}}",
         A "container 0: not a card from 0 to 63: '18446744073709551616'"},
        {"c3", "alloc={'0':{'1':0}}",
         A "container 0: card 1: must be an integer from 1 to 1048576"},
        {"c3", "alloc={'0':{'1':-3}}",
         A "container 0: card 1: must be an integer from 1 to 1048576"},
        {"c3", "alloc={'0':{'1':1048577}}",
         A "container 0: card 1: must be an integer from 1 to 1048576"},
        {"c3", "alloc={'0':{'1':9223372036854775808}}",
         A "container 0: card 1: must be an integer from 1 to 1048576"},
        {"c3", "alloc={'0':{'1':1.5}}",
         A "container 0: card 1: must be an integer from 1 to 1048576"},
        {"c3", "alloc={'0':{'1':'3'}}",
         A "container 0: card 1: must be an integer from 1 to 1048576"},
        {"c3", "alloc={'0':{'1':{'2':3}}}",
         A "container 0: card 1: must be an integer from 1 to 1048576"},
        {"c3", "alloc={'0':{'1':3,'1':3}}", A "container 0: card 1 is there twice"},
        {"c3", "alloc={'0':{'1':3},'0':{'1':3}}", A "container 0: card 1 is there twice"},
        {"c3", "core={'0':{'1':101}}", C "container 0: card 1: must be an integer from 1 to 100"},
        {"c3", "core={'0':{'1':0}}", C "container 0: card 1: must be an integer from 1 to 100"},
        {"c3", "core={'0':{'1':5,'1':5}}", C "container 0: card 1 is there twice"},
        {"c3", "core=[]", C "must be an object of containers, not array"},
        {"c3", "IDX=1", "annotation ALIYUN_COM_GPU_MEM_POD: is missing"},
        {"c3", "POD=3", "annotation ALIYUN_COM_GPU_MEM_IDX: is missing"},
        {"c3", "IDX=-1;POD=3", "annotation ALIYUN_COM_GPU_MEM_IDX: must be between 0 and 63: '-1'"},
        {"c3", "IDX=64;POD=3", "annotation ALIYUN_COM_GPU_MEM_IDX: must be between 0 and 63: '64'"},
        {"c3", "IDX=a;POD=3", "annotation ALIYUN_COM_GPU_MEM_IDX: not an integer: 'a'"},
        {"c3", "IDX=1;POD=0",
         "annotation ALIYUN_COM_GPU_MEM_POD: must be between 1 and 1048576: '0'"},
        {"c3", "IDX=1;POD=3;DEV=-1",
         "annotation ALIYUN_COM_GPU_MEM_DEV: must be between 0 and 1048576: '-1'"},
        {"c", "IDX=1;POD=3",
         "annotation ALIYUN_COM_GPU_MEM_POD: no container asks for aliyun.com/gpu-mem"},
        {"c1 c2", "IDX=1;POD=3",
         "annotation ALIYUN_COM_GPU_MEM_POD: several containers ask for aliyun.com/gpu-mem"},
        {"c3", "alloc={'0':{'1':3}};time=x",
         "annotation " NAME_ANN_ASSUME_TIME ": not an integer: 'x'"},
        {"c3", "alloc={'0':{'1':3}};time=-1",
         "annotation " NAME_ANN_ASSUME_TIME ": must be between 0 and 9223372036854775807: '-1'"},
        {"c3", "alloc={'0':{'1':3}};TIME=x",
         "annotation " NAME_ANN_OLD_ASSUME_TIME ": not an integer: 'x'"},
        {"c3", "alloc={'0':{'1':3}};assigned=yes",
         "annotation " NAME_ANN_ASSIGNED ": must be true or false: 'yes'"},
        {"c3", "IDX=1;POD=3;ASSIGNED=True",
         "annotation " NAME_ANN_OLD_ASSIGNED ": must be true or false: 'True'"},
        {"w1", "group=x",
         "annotation topology.kubernetes.io/gpu-group: not a list of cards from 0 to 63: 'x'"},
        {"w1", "group=0,",
         "annotation topology.kubernetes.io/gpu-group: not a list of cards from 0 to 63: '0,'"},
        {"w1", "group=0,,1",
         "annotation topology.kubernetes.io/gpu-group: not a list of cards from 0 to 63: '0,,1'"},
        {"w1", "group=0, 1",
         "annotation topology.kubernetes.io/gpu-group: not a list of cards from 0 to 63: '0, 1'"},
        {"w1", "group=64",
         "annotation topology.kubernetes.io/gpu-group: not a list of cards from 0 to 63: '64'"},
        {"w1", "group=1,1", "annotation topology.kubernetes.io/gpu-group: card 1 is there twice"},
        {"w1", "group=1;visible=-1",
         "annotation topology.kubernetes.io/gpu-visible: not a list of cards from 0 to 63: '-1'"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pod p = pod_of(rows[i].pod);
        struct grant c;
        struct error err = ERROR_INIT;
        annotate(&p, rows[i].annotations);
        expect_int(rows[i].annotations, -1, grant_decode(&p, &arena, &c, &err));
        expect_str(rows[i].annotations, rows[i].message, err.text);
        expect_int(rows[i].annotations, ERROR_INVALID, err.code);
        expect_true("nothing is left in it", grant_is_empty(&c));
        expect_int("without an error", -1, grant_decode(&p, &arena, &c, NULL));
    }
    expect_done();
}

static void huge_and_deep_annotations_are_refused(void **state)
{
    (void)state;
    AUTO_STRBUF text;
    struct grant c;
    struct error err = ERROR_INIT;

    strbuf_init(&text);
    strbuf_adds(&text, "{\"0\":{\"1\":3}}");
    while (text.len < GRANT_ANNOTATION_MAX)
        strbuf_addc(&text, ' ');
    struct pod p = pod_of("c3");
    build_annotate(&arena, &p, NAME_ANN_ALLOCATION, arena_strdup(&arena, text.ptr));
    expect_int("16 KiB", 0, grant_decode(&p, &arena, &c, &err));
    strbuf_addc(&text, ' ');
    p = pod_of("c3");
    build_annotate(&arena, &p, NAME_ANN_ALLOCATION, arena_strdup(&arena, text.ptr));
    expect_int("one byte more", -1, grant_decode(&p, &arena, &c, &err));
    expect_str("one byte more", A "longer than 16384 bytes", err.text);
    expect_int("one byte more", ERROR_INVALID, err.code);

    strbuf_reset(&text);
    strbuf_adds(&text, "{\"0\":");
    for (int i = 0; i < 8000; i++)
        strbuf_addc(&text, '[');
    p = pod_of("c3");
    build_annotate(&arena, &p, NAME_ANN_ALLOCATION, arena_strdup(&arena, text.ptr));
    expect_int("deep and cut off", -1, grant_decode(&p, &arena, &c, &err));
    expect_int("deep and cut off", ERROR_INVALID, err.code);
    for (int i = 0; i < 8000; i++)
        strbuf_addc(&text, ']');
    strbuf_addc(&text, '}');
    p = pod_of("c3");
    build_annotate(&arena, &p, NAME_ANN_ALLOCATION, arena_strdup(&arena, text.ptr));
    expect_int("deep", -1, grant_decode(&p, &arena, &c, &err));
    expect_int("deep", ERROR_INVALID, err.code);

    strbuf_reset(&text);
    for (int i = 0; i < 4000; i++)
        strbuf_addf(&text, "%s%d", i ? "," : "", i);
    p = pod_of("w1");
    build_annotate(&arena, &p, NAME_ANN_GPU_GROUP, arena_strdup(&arena, text.ptr));
    expect_int("four thousand cards", -1, grant_decode(&p, &arena, &c, &err));
    expect_done();
}

static void sums_of_a_grant(void **state)
{
    (void)state;
    struct grant_share shares[] = {{0, 1, 3, 0}, {0, 2, 3, 0}, {2, 1, 4, 30}};
    struct grant c = {.shares = shares, .shares_len = 3}, none = {0};

    expect_int("card 1", 7, grant_card_gib(&c, 1));
    expect_int("card 2", 3, grant_card_gib(&c, 2));
    expect_int("card 0", 0, grant_card_gib(&c, 0));
    expect_int("all", 10, grant_total_gib(&c));
    expect_int("container 0", 6, grant_container_gib(&c, 0));
    expect_int("container 1", 0, grant_container_gib(&c, 1));
    expect_int("container 2", 4, grant_container_gib(&c, 2));
    expect_int("nothing", 0, grant_total_gib(&none));
    expect_true("nothing is empty", grant_is_empty(&none));
    expect_int("something is not", false, grant_is_empty(&c));
    expect_done();
}

static struct gpu_inventory cards(const char *list)
{
    struct gpu_inventory inv = {.cards = arena_new(&arena, struct gpu_card, 8)};
    for (const char *s = list; *s; s++)
        inv.cards[inv.cards_len++] = (struct gpu_card){.index = *s - '0', .mib = 15360};
    return inv;
}

static void a_grant_counts_if_it_is_what_was_asked(void **state)
{
    (void)state;
    static const struct {
        const char *row, *pod, *annotations, *message;
    } rows[] = {
        {"nothing asked, nothing given", "c", "", ""},
        {"what was asked", "c3", "alloc={'0':{'1':3}}", ""},
        {"on two cards", "c4", "alloc={'0':{'0':2,'1':2}}", ""},
        {"two containers", "c3 c2", "alloc={'0':{'1':3},'1':{'0':2}}", ""},
        {"with percent", "c3/30", "alloc={'0':{'1':3}};core={'0':{'1':30}}", ""},
        {"nothing given", "c3", "", "container 'c1': grant has 0 GiB, request is 3"},
        {"too little", "c3", "alloc={'0':{'1':2}}",
         "container 'c1': grant has 2 GiB, request is 3"},
        {"too much", "c3", "alloc={'0':{'1':4}}", "container 'c1': grant has 4 GiB, request is 3"},
        {"given and not asked", "c", "alloc={'0':{'1':4}}",
         "container 'c1': grant has 4 GiB, request is 0"},
        {"the right sum for the wrong containers", "c3 c2", "alloc={'0':{'1':2},'1':{'0':3}}",
         "container 'c1': grant has 2 GiB, request is 3"},
        {"percent missing", "c3/30", "alloc={'0':{'1':3}}",
         "container 'c1': grant has 0 % of a card, request is 30"},
        {"percent too much", "c3/30", "alloc={'0':{'1':3}};core={'0':{'1':35}}",
         "container 'c1': grant has 35 % of a card, request is 30"},
        {"a card that is not there", "c3", "alloc={'0':{'2':3}}", "grant: the node has no card 2"},
        {"init container within the container's share", "c3 i2", "alloc={'0':{'1':3}}", ""},
        {"init container beyond it", "c3 i5", "alloc={'0':{'1':3},'1':{'1':2}}", ""},
        {"init container forgotten", "c3 i5", "alloc={'0':{'1':3}}",
         "container 'i1': grant has 0 GiB, request is 2"},
        {"init container on another card", "c3 i5", "alloc={'0':{'1':3},'1':{'0':2}}",
         "grant: a pod with aliyun.com/gpu-mem in an init container must be on one card"},
        {"also within the share", "c2 c2 i2", "alloc={'0':{'1':2},'1':{'0':2}}",
         "grant: a pod with aliyun.com/gpu-mem in an init container must be on one card"},
        {"a sidecar may be on another card", "c3 s2", "alloc={'0':{'1':3},'1':{'0':2}}", ""},
        {"a sidecar has its own", "c3 s2", "alloc={'0':{'1':3}}",
         "container 's1': grant has 0 GiB, request is 2"},
        {"whole cards", "w2", "group=0,1", ""},
        {"whole cards with more to see", "w1", "group=0;visible=0,1", ""},
        {"too few whole cards", "w2", "group=0", "grant: 1 whole cards, request is 2"},
        {"no whole cards", "w2", "", "grant: 0 whole cards, request is 2"},
        {"whole cards that nobody asked for", "c", "group=0", "grant: 1 whole cards, request is 0"},
        {"a whole card that is not there", "w1", "group=5", "grant: the node has no card 5"},
        {"a visible card that is not there", "w1", "group=0;visible=0,5",
         "grant: the node has no card 5"},
        {"given but not visible", "w1", "group=0;visible=1",
         "grant: card 0 is given but not visible"},
        {"exclusive cards may be left to the kubelet", "n1", "", ""},
        {"or be named", "n1", "group=1", ""},
        {"then all of them", "n2", "group=1", "grant: 1 whole cards, request is 2"},
    };
    struct gpu_inventory inv = cards("01");

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pod p = pod_of(rows[i].pod);
        struct grant c;
        struct error err = ERROR_INIT;
        annotate(&p, rows[i].annotations);
        assert_int_equal(0, grant_decode(&p, &arena, &c, &err));
        expect_int(rows[i].row, rows[i].message[0] ? -1 : 0, grant_check(&c, &p, &inv, &err));
        expect_str(rows[i].row, rows[i].message, err.text);
    }
    struct pod p = pod_of("c3");
    struct grant_share beyond[] = {{0, 1, 3, 0}, {7, 1, 3, 0}};
    struct grant c = {.shares = beyond, .shares_len = 2};
    struct error err = ERROR_INIT;
    expect_int("a container that is not there", -1, grant_check(&c, &p, &inv, &err));
    expect_str("a container that is not there", "grant: the pod has no container 7", err.text);
    expect_done();
}

static void one_card_takes_the_effective_request(void **state)
{
    (void)state;
    static const struct {
        const char *row, *pod, *grant;
    } rows[] = {
        {"nothing", "c", ""},
        {"one container", "c3", "0:1=3"},
        {"two containers and one without", "c3 c c2", "0:1=3 2:1=2"},
        {"percent", "c3/30 c/10", "0:1=3/30 1:1=0/10"},
        {"a small init container", "c3 i2", "0:1=3"},
        {"an equal init container", "c3 i3", "0:1=3"},
        {"a large init container", "c3 i5", "0:1=3 1:1=2"},
        {"the largest of two", "c3 i5 i7", "0:1=3 2:1=4"},
        {"the first of two equal", "c3 i5 i5", "0:1=3 1:1=2"},
        {"a sidecar", "c3 s2", "0:1=3 1:1=2"},
        {"a sidecar before an init container", "c3 s2 i4", "0:1=3 1:1=2 2:1=1"},
        {"a sidecar behind an init container", "c3 i4 s2", "0:1=3 2:1=2"},
        {"only an init container", "c i4", "1:1=4"},
        {"percent has its own peak", "c3/30 i5/10 i1/50", "0:1=3/30 1:1=2 2:1=0/20"},
    };
    struct gpu_inventory inv = cards("01");

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pod p = pod_of(rows[i].pod);
        struct resources request;
        struct grant c;
        struct error err = ERROR_INIT;
        struct gpu_request r;
        gpu_request_read(&p, &arena, &r, NULL);
        grant_one_card(&r, 1, &arena, &c);
        expect_str(rows[i].row, rows[i].grant, text_of(&c));
        assert_true(pod_effective_request(&p, &arena, &request));
        expect_int(rows[i].row, resources_get(&request, NAME_RES_GPU_MEM, NULL),
                   grant_total_gib(&c));
        expect_int(rows[i].row, 0, grant_check(&c, &p, &inv, &err));
        expect_str(rows[i].row, "", err.text);
    }
    expect_done();
}

static void a_binding_says_every_result_key(void **state)
{
    (void)state;
    static const struct {
        const char *row, *pod, *annotations;
        const char *alloc, *core, *time, *assigned, *idx, *dev, *gib, *group, *visible;
    } rows[] = {
        {"nothing", "c", "", "", "", "", "", "", "", "", "", ""},
        {"one card", "c3", "alloc={'0':{'1':3}};time=17", "{'0':{'1':3}}", "", "17", "false", "1",
         "15", "3", "", ""},
        {"assigned", "c3", "alloc={'0':{'1':3}};time=17;assigned=true", "{'0':{'1':3}}", "", "17",
         "true", "1", "15", "3", "", ""},
        {"two containers on one card", "c3 c2", "alloc={'1':{'1':2},'0':{'1':3}};time=17",
         "{'0':{'1':3},'1':{'1':2}}", "", "17", "false", "1", "15", "5", "", ""},
        {"two cards: no older form", "c4", "alloc={'0':{'0':2,'10':2}};time=17",
         "{'0':{'0':2,'10':2}}", "", "17", "false", "", "", "", "", ""},
        {"percent", "c3/30", "alloc={'0':{'1':3}};core={'0':{'1':30}};time=17", "{'0':{'1':3}}",
         "{'0':{'1':30}}", "17", "false", "1", "15", "3", "", ""},
        {"only percent: no older form", "c/30", "core={'0':{'1':30}};time=17", "", "{'0':{'1':30}}",
         "17", "false", "", "", "", "", ""},
        {"whole cards", "w2", "group=0,3;time=17", "", "", "17", "false", "", "", "", "0,3", "0,3"},
        {"more to see", "w1", "group=3;visible=0,3;time=17", "", "", "17", "false", "", "", "", "3",
         "0,3"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pod p = pod_of(rows[i].pod);
        struct grant c, again;
        struct labels out;
        const char *row = rows[i].row;
        annotate(&p, rows[i].annotations);
        assert_int_equal(0, grant_decode(&p, &arena, &c, NULL));
        grant_encode(&c, &p, 15, &arena, &out);
        expect_str(row, quoted(rows[i].alloc), labels_get(&out, NAME_ANN_ALLOCATION));
        expect_str(row, quoted(rows[i].core), labels_get(&out, NAME_ANN_CORE));
        expect_str(row, rows[i].time, labels_get(&out, NAME_ANN_ASSUME_TIME));
        expect_str(row, rows[i].assigned, labels_get(&out, NAME_ANN_ASSIGNED));
        expect_str(row, rows[i].idx, labels_get(&out, NAME_ANN_OLD_IDX));
        expect_str(row, rows[i].dev, labels_get(&out, NAME_ANN_OLD_DEV));
        expect_str(row, rows[i].gib, labels_get(&out, NAME_ANN_OLD_POD));
        expect_str(row, rows[i].idx[0] ? rows[i].assigned : "",
                   labels_get(&out, NAME_ANN_OLD_ASSIGNED));
        expect_str(row, rows[i].idx[0] ? rows[i].time : "",
                   labels_get(&out, NAME_ANN_OLD_ASSUME_TIME));
        expect_str(row, rows[i].group, labels_get(&out, NAME_ANN_GPU_GROUP));
        expect_str(row, rows[i].visible, labels_get(&out, NAME_ANN_GPU_VISIBLE));
        expect_str(row, "", labels_get(&out, NAME_ANN_CPUSET));
        for (size_t k = 0; grant_result_keys[k]; k++)
            expect_true(grant_result_keys[k], labels_get(&out, grant_result_keys[k]) != NULL);
        for (size_t k = 1; k < out.len; k++)
            expect_true("sorted, each once", strcmp(out.items[k - 1].key, out.items[k].key) < 0);
        p.annotations = out;
        expect_int(row, 0, grant_decode(&p, &arena, &again, NULL));
        expect_str("read again", text_of(&c), text_of(&again));
    }
    expect_done();
}

static void a_binding_overwrites_our_prefix_but_not_requests(void **state)
{
    (void)state;
    struct pod p = pod_of("c");
    struct grant none = {0};
    struct labels out;

    build_annotate(&arena, &p, "cosched.io/forged", "x");
    build_annotate(&arena, &p, NAME_ANN_CPUSET_APPLIED, "x");
    build_annotate(&arena, &p, NAME_ANN_CPUSET_SHARED, "true");
    build_annotate(&arena, &p, NAME_INJECT, "false");
    build_annotate(&arena, &p, "cpuset", "x");
    build_annotate(&arena, &p, "mine", "x");
    grant_encode(&none, &p, 0, &arena, &out);
    expect_str("forged", "", labels_get(&out, "cosched.io/forged"));
    expect_str("applied", "", labels_get(&out, NAME_ANN_CPUSET_APPLIED));
    expect_str("cpuset", "", labels_get(&out, "cpuset"));
    expect_str("a request", NULL, labels_get(&out, NAME_ANN_CPUSET_SHARED));
    expect_str("a request", NULL, labels_get(&out, NAME_INJECT));
    expect_str("somebody else's", NULL, labels_get(&out, "mine"));
    expect_done();
}

static void result_keys_are_known(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        bool result;
    } rows[] = {
        {"scheduler.framework.gpushare.allocation", true},
        {"gpushare.alibabacloud.com/core-percentage", true},
        {"scheduler.framework.gpushare.assume-time", true},
        {"scheduler.framework.gpushare.assigned", true},
        {"ALIYUN_COM_GPU_MEM_IDX", true},
        {"ALIYUN_COM_GPU_MEM_DEV", true},
        {"ALIYUN_COM_GPU_MEM_POD", true},
        {"ALIYUN_COM_GPU_MEM_ASSIGNED", true},
        {"ALIYUN_COM_GPU_MEM_ASSUME_TIME", true},
        {"topology.kubernetes.io/gpu-group", true},
        {"topology.kubernetes.io/gpu-visible", true},
        {"cpuset", true},
        {"cosched.io/anything", true},
        {"cosched.io/cpuset-applied", true},
        {"cosched.io/", true},
        {"cosched.io/inject", false},
        {"cosched.io/cpuset-shared", false},
        {"cosched.io/inject2", true},
        {"cosched.io", false},
        {"xcosched.io/a", false},
        {"cpuset-scheduler", false},
        {"cpu-policy", false},
        {"aliyun.com/gpu-count", false},
        {"gpu-topology", false},
        {"aliyun_com_gpu_mem_idx", false},
        {"ALIYUN_COM_GPU_MEM_IDX2", false},
        {"", false},
        {NULL, false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_int(rows[i].key ? rows[i].key : "NULL", rows[i].result,
                   grant_is_result_key(rows[i].key));
    for (size_t i = 0; grant_result_keys[i]; i++)
        expect_true(grant_result_keys[i], grant_is_result_key(grant_result_keys[i]));
    expect_done();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(both_forms_are_read),
        TEST(hostile_annotations_are_refused_by_name),
        TEST(huge_and_deep_annotations_are_refused),
        TEST(sums_of_a_grant),
        TEST(a_grant_counts_if_it_is_what_was_asked),
        TEST(one_card_takes_the_effective_request),
        TEST(a_binding_says_every_result_key),
        TEST(a_binding_overwrites_our_prefix_but_not_requests),
        TEST(result_keys_are_known),
    };
    return cmocka_run_group_tests_name("claim", tests, NULL, NULL);
}
