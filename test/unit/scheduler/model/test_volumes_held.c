// SPDX-License-Identifier: Apache-2.0
/*
 * Promises: what one pod is given nobody else gets, and it comes back when the pod is forgotten.
 * And a random story of claims, volumes and pods, in which each yes of the filters must be kept by
 * the promise (I3), the quick way must agree with the slow one, and counts must be those of a
 * recount.
 */
#include "scheduler/model/volumes_held.h"

#include "scheduler/framework/equivalence.h"
#include "scheduler/model/volumes_view.h"
#include "test/unit/scheduler/model_kit.h"
#include "test/unit/scheduler/storage_kit.h"

#define CLAIM_OF(claim) \
    "\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"" claim "\"}}]"

static struct cluster_pod *put_pod(const char *name, const char *volumes)
{
    return PUT(.name = name, .spec = volumes);
}

/* The node that the pod was placed on, or what was said. */
static const char *place(struct cluster_pod *cp)
{
    struct pipeline_choice choice;
    pipeline_choose(&pipeline, cp, &arena, &choice);
    if (choice.node == NULL)
        return reasons_sentence(&choice.why, &arena);
    (void)cluster_assume(&c, cp, choice.node, &choice.grant);
    return choice.node->name;
}

static const char *promised(const struct cluster_pod *cp)
{
    return cp->volumes != NULL ? str_or_empty(cp->volumes->items[0]->volume) : NULL;
}

static void two_pods_one_volume(void **state)
{
    (void)state;
    cluster_put_node(&c, NODE(.name = "n"));
    storage_kit_put(&c, STATIC_CLASS);
    storage_kit_put(&c, VOLUME("v", "1Gi", OF_CLASS("s")));
    storage_kit_put(&c, CLAIM("a", OF_CLASS("s")));
    storage_kit_put(&c, CLAIM("b", OF_CLASS("s")));
    struct cluster_pod *p = put_pod("p", CLAIM_OF("a")), *q = put_pod("q", CLAIM_OF("b"));
    uint64_t digest = cluster_digest(&c);
    expect_str("the first is placed", "n", place(p));
    expect_str("and has the volume", "v", promised(p));
    expect_str("the second is not", "0/1 nodes fit: 1 has no free volume that fits claim d/b",
               place(q));
    cluster_forget(&c, p);
    expect_true("nothing is left of it", digest == cluster_digest(&c));
    expect_str("then the second is", "n", place(q));
    expect_str("and has the volume", "v", promised(q));
    expect_int("the pod goes, and gives the volume back", EVENT_POD_GONE | EVENT_VOLUME,
               cluster_remove_pod(&c, "d/q", NULL, NULL) & (EVENT_POD_GONE | EVENT_VOLUME));
    expect_str("the first again", "n", place(p));
    expect_done();
}

static void the_smallest_that_fits(void **state)
{
    (void)state;
    cluster_put_node(&c, NODE(.name = "n"));
    storage_kit_put(&c, STATIC_CLASS);
    storage_kit_put(&c, VOLUME("large", "5Gi", OF_CLASS("s")));
    storage_kit_put(&c, VOLUME("same-b", "2Gi", OF_CLASS("s")));
    storage_kit_put(&c, VOLUME("same-a", "2Gi", OF_CLASS("s")));
    storage_kit_put(&c, CLAIM("a", OF_CLASS("s")));
    struct cluster_pod *p = put_pod("p", CLAIM_OF("a"));
    place(p);
    expect_str("of equal ones the first by name", "same-a", promised(p));
    expect_done();
}

static void pods_with_the_same_claim_stay_together(void **state)
{
    (void)state;
    cluster_put_node(&c, NODE(.name = "n"));
    cluster_put_node(&c, NODE(.name = "m"));
    storage_kit_put(&c, LATE_CLASS);
    storage_kit_put(&c, CLAIM("a", OF_CLASS("s")));
    struct cluster_pod *p = put_pod("p", CLAIM_OF("a")), *q = put_pod("q", CLAIM_OF("a"));
    expect_str("the first", "m", place(p));
    expect_str("a new volume", "", promised(p));
    expect_str("the second goes where the claim goes", "m", place(q));
    cluster_forget(&c, p);
    expect_int("the promise is the second's too", 1,
               (int64_t)((struct volumes_promise *)map_get(&c.volumes->by_claim, "d/a"))->pods);
    cluster_forget(&c, q);
    expect_int("and then nobody's", 0, (int64_t)map_count(&c.volumes->by_claim));
    expect_done();
}

static void a_promise_outlives_new_versions_of_the_pod(void **state)
{
    (void)state;
    cluster_put_node(&c, NODE(.name = "n"));
    storage_kit_put(&c, STATIC_CLASS);
    storage_kit_put(&c, VOLUME("v", "2Gi", OF_CLASS("s")));
    storage_kit_put(&c, CLAIM("a", OF_CLASS("s")));
    struct cluster_pod *p = put_pod("p", CLAIM_OF("a"));
    place(p);
    storage_kit_put(&c, VOLUME("better", "1Gi", OF_CLASS("s")));
    put_pod("p", CLAIM_OF("a"));
    expect_str("what is being written stays", "v", promised(p));
    cluster_put_pod(&c, POD(.name = "p", .node = "n", .spec = CLAIM_OF("a")), NULL);
    expect_true("bound: the objects say it now", p->volumes == NULL);
    expect_int("no promise left", 0, (int64_t)map_count(&c.volumes->by_volume));
    expect_true("the claim is in use", volumes_held_is_used(c.volumes, "d/a"));
    expect_done();
}

/* A class asks again when the storage changed, and only then. */
static void what_is_remembered_is_not_old(void **state)
{
    (void)state;
    cluster_put_node(&c, NODE(.name = "n"));
    storage_kit_put(&c, STATIC_CLASS);
    struct cluster_pod *p = put_pod("p", CLAIM_OF("a")), *plain = put_pod("q", NULL);
    expect_str("no claim", "0/1 nodes fit: claim d/a does not exist", place(p));
    storage_kit_put(&c, CLAIM("a", OF_CLASS("s")));
    expect_str("no volume", "0/1 nodes fit: 1 has no free volume that fits claim d/a", place(p));
    struct pipeline_choice choice;
    pipeline_choose(&pipeline, plain, &arena, &choice);
    uint64_t rebuilt = pipeline.classes->rebuilt;
    storage_kit_put(&c, VOLUME("v", "1Gi", OF_CLASS("s")));
    pipeline_choose(&pipeline, plain, &arena, &choice);
    expect_int("a pod without claims does not care", (int64_t)rebuilt,
               (int64_t)pipeline.classes->rebuilt);
    expect_str("there is one", "n", place(p));
    expect_done();
}

/* ---- the story ---- */

enum { CLAIMS = 6, VOLUMES = 5, NODES = 4, PODS = 8, STEPS = 3000 };

static uint64_t dice;
static uint64_t throw_dice(uint64_t n)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (dice >> 33) % n;
}

static const char *zone(uint64_t i)
{
    return i % 2 == 0 ? "a" : "b";
}

static void random_claim(void)
{
    static const char *const sizes[] = {"1Gi", "2Gi", "3Gi"};
    unsigned i = (unsigned)throw_dice(CLAIMS);
    const char *class = throw_dice(3) == 0 ? "late" : "s", *rest = "";
    if (throw_dice(4) == 0)
        rest = arena_printf(&arena, ",'volumeName':'v%u'", (unsigned)throw_dice(VOLUMES));
    storage_kit_put(
        &c,
        arena_printf(
            &arena,
            "{'kind':'PersistentVolumeClaim','metadata':{'name':'c%u','namespace':'d','uid':'%u',"
            "'annotations':{%s}},'spec':{'accessModes':['%s'],'storageClassName':'%s',"
            "'resources':{'requests':{'storage':'%s'}}%s}}",
            i, i, rest[0] != '\0' ? "'pv.kubernetes.io/bind-completed':'yes'" : "",
            throw_dice(5) == 0 ? "ReadWriteOncePod" : "ReadWriteOnce", class, sizes[throw_dice(3)],
            rest));
}

static void random_volume(void)
{
    static const char *const sizes[] = {"1Gi", "2Gi", "4Gi"};
    unsigned i = (unsigned)throw_dice(VOLUMES);
    const char *where =
        throw_dice(2) == 0
            ? ""
            : arena_printf(
                  &arena,
                  ",'nodeAffinity':{'required':{'nodeSelectorTerms':[{"
                  "'matchExpressions':[{'key':'zone','operator':'In','values':['%s']}]}]}}",
                  zone(throw_dice(2)));
    const char *reserved = throw_dice(4) == 0
                               ? arena_printf(&arena, ",'claimRef':{'namespace':'d','name':'c%u'}",
                                              (unsigned)throw_dice(CLAIMS))
                               : "";
    storage_kit_put(
        &c, arena_printf(
                &arena,
                "{'kind':'PersistentVolume','metadata':{'name':'v%u','uid':'v%u'},'spec':{"
                "'accessModes':['ReadWriteOnce','ReadWriteOncePod'],'storageClassName':'%s',"
                "'capacity':{'storage':'%s'},'csi':{'driver':'x','volumeHandle':'v%u'}%s%s},"
                "'status':{'phase':'Available'}}",
                i, i, throw_dice(4) == 0 ? "late" : "s", sizes[throw_dice(3)], i, where, reserved));
}

static const char *random_volumes(void)
{
    unsigned first = (unsigned)throw_dice(CLAIMS);
    const char *one = arena_printf(
        &arena, "\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"c%u\"}}",
        first);
    return throw_dice(2) == 0
               ? arena_printf(&arena, "%s]", one)
               : arena_printf(
                     &arena,
                     "%s,{\"name\":\"w\",\"persistentVolumeClaim\":{\"claimName\":\"c%u\"}}]", one,
                     (unsigned)((first + 1 + throw_dice(CLAIMS - 1)) % CLAIMS));
}

/* Every waiting claim of a yes is promised, each volume once, and what is promised could be had. */
static void check_promises(const struct cluster_pod *cp, const struct cluster_node *on)
{
    struct volumes_view view;
    volumes_view_make(&c, cp->pod, &arena, &view);
    expect_int("each claim that waits is promised", (int64_t)view.waits_len,
               cp->volumes != NULL ? (int64_t)cp->volumes->len : 0);
    for (size_t i = 0; cp->volumes != NULL && i < cp->volumes->len; i++) {
        const struct volumes_promise *p = cp->volumes->items[i];
        const struct pvc *claim =
            (const void *)api_objects_find(c.objects, API_OBJECTS_CLAIMS, p->claim);
        const struct pv *volume = api_objects_find_pv(c.objects, p->volume);
        expect_true("a claim that waits", claim != NULL && claim->volume == NULL);
        if (p->volume == NULL) {
            expect_str("where the pod is", on->name, p->node);
            continue;
        }
        expect_true("a volume is promised to one claim",
                    map_get(&c.volumes->by_volume, p->volume) == p);
        expect_true("it is there and large enough",
                    volume != NULL && volume->capacity_bytes >= claim->request_bytes);
        expect_true("the node reaches it",
                    volume == NULL || !volume->has_node_affinity ||
                        node_selector_matches(&volume->node_affinity, &on->node->labels, ""));
    }
}

static void try_one(struct cluster_pod *cp)
{
    struct pipeline_choice quick, slow;
    pipeline_choose(&pipeline, cp, &arena, &quick);
    pipeline_scan(&pipeline, cp, &arena, &slow);
    expect_str("the quick way and the slow one", slow.node != NULL ? slow.node->name : NULL,
               quick.node != NULL ? quick.node->name : NULL);
    /* On every node that fits, not only on the best. */
    for (uint32_t i = 0; quick.node != NULL && i < c.table->len; i++) {
        struct plugin_ask ask = pipeline_ask(&pipeline, cp);
        struct cluster_node *on = c.table->rows[i].node;
        uint64_t digest = cluster_digest(&c);
        if (plugin_refusing(&ask, on, &arena, NULL) != NULL)
            continue;
        (void)cluster_assume(&c, cp, on, &quick.grant);
        check_promises(cp, on);
        cluster_forget(&c, cp);
        expect_true("forgotten, and as before", digest == cluster_digest(&c));
    }
    if (quick.node != NULL)
        (void)cluster_assume(&c, cp, quick.node, &quick.grant);
}

static void recount(void)
{
    size_t users = 0;
    for (unsigned i = 0; i < CLAIMS; i++) {
        const char *key;
        void *value;
        char claim[16];
        bool used = false;
        (void)str_format(claim, sizeof claim, "c%u", i);
        for (size_t k = 0; map_next(&c.pods, &k, &key, &value);) {
            const struct cluster_pod *cp = value;
            for (size_t n = 0; cp->on != NULL && n < cp->pod->volumes_len; n++)
                used |= str_eq(cp->pod->volumes[n].claim, claim);
        }
        users += used;
        expect_int("in use", used,
                   volumes_held_is_used(c.volumes, arena_printf(&arena, "d/%s", claim)));
    }
    expect_int("no others", (int64_t)users, (int64_t)map_count(&c.volumes->users));
}

static void step(void)
{
    char key[16], name[16];
    uint64_t i = throw_dice(PODS);
    (void)str_format(name, sizeof name, "p%u", (unsigned)i);
    (void)str_format(key, sizeof key, "d/%s", name);
    struct cluster_pod *cp = cluster_find_pod(&c, key);
    switch (throw_dice(7)) {
    case 0:
        random_claim();
        break;
    case 1:
        random_volume();
        break;
    case 2:
        (void)api_objects_remove(
            c.objects, throw_dice(2) ? API_OBJECTS_VOLUMES : API_OBJECTS_CLAIMS,
            arena_printf(&arena, throw_dice(2) ? "v%u" : "d/c%u", (unsigned)throw_dice(CLAIMS)),
            NULL);
        break;
    case 3:
        if (cp != NULL && cp->state == CLUSTER_ASSUMED && throw_dice(2))
            cluster_forget(&c, cp);
        else
            (void)cluster_remove_pod(&c, key, NULL, NULL);
        break;
    case 4:
        if (cp != NULL && cp->state == CLUSTER_ASSUMED) {
            struct fixture_pod f = {.name = name, .node = cp->on->name, .spec = random_volumes()};
            (void)put_events(&f);
        }
        break;
    default:
        if (cp == NULL)
            cp = put_pod(arena_strdup(&arena, name), random_volumes());
        if (cp->state == CLUSTER_PENDING)
            try_one(cp);
    }
}

static void a_yes_is_kept(void **state)
{
    (void)state;
    uint64_t placed = 0, promises = 0;
    dice = 20240607;
    for (unsigned i = 0; i < NODES; i++) {
        const char *name = arena_printf(&arena, "n%u", i);
        cluster_put_node(&c, NODE(.name = name, .labels = PAIRS("zone", zone(i))));
        storage_kit_put(
            &c,
            arena_printf(
                &arena,
                "{'kind':'CSINode','metadata':{'name':'%s','uid':'x'},'spec':{'drivers':[{'name':'x',"
                "'nodeID':'x','topologyKeys':[],'allocatable':{'count':%u}}]}}",
                name, 1 + i % 3));
    }
    storage_kit_put(&c, STATIC_CLASS);
    storage_kit_put(&c, CLASS("late", "x", "WaitForFirstConsumer", ""));
    for (int i = 0; i < STEPS && expect_failures == 0; i++) {
        step();
        recount();
        placed += map_count(&c.volumes->users);
        promises += map_count(&c.volumes->by_volume);
        if (i % 64 == 63) { /* what the story borrows for one step only */
            arena_deinit(&arena);
            arena_init(&arena, 0);
        }
    }
    expect_true("pods were placed", placed > STEPS / 4);
    expect_true("volumes were promised", promises > STEPS / 16);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(two_pods_one_volume),
        T(the_smallest_that_fits),
        T(pods_with_the_same_claim_stay_together),
        T(a_promise_outlives_new_versions_of_the_pod),
        T(what_is_remembered_is_not_old),
        T(a_yes_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
