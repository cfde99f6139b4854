// SPDX-License-Identifier: Apache-2.0
/*
 * What else the world has: claims and volumes, disruption budgets, and time that makes reservations
 * due.
 */
#include "test/unit/scheduler/world_internal.h"

#include <string.h>

#include "lib/base/json.h"
#include "lib/base/str.h"
#include "lib/kube/decode.h"
#include "scheduler/cycle/reservation.h"
#include "test/unit/scheduler/storage_kit.h"

static void put(struct world *w, const char *text)
{
    enum api_objects_kind kind;
    struct object *o = storage_kit_make(text, &kind);
    world_spread_events(w, api_objects_put(w->cluster.objects, kind, o));
}

static void drop(struct world *w, enum api_objects_kind kind, const char *key)
{
    w->said = "storage removed";
    world_spread_events(w, api_objects_remove(w->cluster.objects, kind, key, NULL));
}

#define PICK(w, ...)                                  \
    ((const char *const[]){__VA_ARGS__}[world_random( \
        w, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))])

void world_put_storage(struct world *w)
{
    w->said = "storage put";
    switch (world_random(w, 10)) {
    case 0:
    case 1:
    case 2: {
        const char *const keys[] = {"d/c0", "d/c1", "d/c2"};
        if (world_chance(w, 20))
            drop(w, API_OBJECTS_CLAIMS, keys[world_random(w, 3)]);
        else if (world_chance(w, 75))
            put(w, PICK(w, CLAIM("c0", OF_CLASS("s")), CLAIM("c1", OF_CLASS("s")),
                        CLAIM("c2", OF_CLASS("s"))));
        else
            put(w,
                PICK(w, BOUND_CLAIM("c0", "v0"), BOUND_CLAIM("c1", "v1"), BOUND_CLAIM("c2", "v2")));
        break;
    }
    case 3:
    case 4:
    case 5:
        if (world_chance(w, 20))
            drop(w, API_OBJECTS_VOLUMES, PICK(w, "v0", "v1", "v2"));
        else
            put(w, PICK(w, VOLUME("v0", "1Gi", OF_CLASS("s")),
                        VOLUME("v1", "2Gi", OF_CLASS("s") ON("zone", "a")),
                        VOLUME("v2", "1Gi", OF_CLASS("s") OF_DRIVER("disk.example.com", "h2")),
                        VOLUME("v0", "1Gi", OF_CLASS("s") ON("zone", "b"))));
        break;
    case 6:
        if (world_chance(w, 20))
            drop(w, API_OBJECTS_STORAGE_CLASSES, "s");
        else
            put(w, PICK(w, STATIC_CLASS, STATIC_CLASS, LATE_CLASS));
        break;
    case 7:
        if (world_chance(w, 20))
            drop(w, API_OBJECTS_CSI_NODES, "n0");
        else
            put(w, PICK(w, CSI_NODE("n0", "disk.example.com", "1"),
                        CSI_NODE("n0", "disk.example.com", "2"),
                        CSI_NODE("n1", "disk.example.com", "1")));
        break;
    case 8:
        if (world_chance(w, 40))
            drop(w, API_OBJECTS_CSI_DRIVERS, "disk.example.com");
        else
            put(w, PICK(w, CSI_DRIVER("disk.example.com", "'storageCapacity':true"),
                        CSI_DRIVER("disk.example.com", "'storageCapacity':false"),
                        CAPACITY("k", "10Gi", ",'nodeTopology':{}")));
        break;
    default:
        if (world_chance(w, 50))
            drop(w, API_OBJECTS_VOLUME_ATTACHMENTS, "t");
        else
            put(w, ATTACHMENT("t", "disk.example.com", "n0", "v2"));
        break;
    }
}

void world_bind_claims(struct world *w, const struct cluster_pod *cp)
{
    for (size_t i = 0; cp->volumes != NULL && i < cp->volumes->len; i++) {
        const struct volumes_promise *p = cp->volumes->items[i];
        const char *claim = strchr(p->claim, '/') + 1;
        AUTO_STRBUF text = {0};
        strbuf_addf(&text, BOUND_CLAIM("%s", "%s"), claim, claim,
                    p->volume != NULL ? p->volume : claim);
        if (p->volume == NULL) {
            AUTO_STRBUF made = {0};
            strbuf_addf(&made, VOLUME("%s", "1Gi", OF_CLASS("s")), claim, claim);
            put(w, strbuf_str(&made));
        }
        put(w, strbuf_str(&text));
    }
}

void world_put_budget(struct world *w)
{
    AUTO_STRBUF text = {0};
    AUTO_JSON *doc = NULL;
    struct pdb *b = NULL;
    struct error err = ERROR_INIT;
    w->said = "budget put";
    if (world_chance(w, 30)) {
        world_spread_events(
            w, api_objects_remove(w->cluster.objects, API_OBJECTS_BUDGETS, "d/b", NULL));
        return;
    }
    strbuf_addf(&text,
                "{\"metadata\":{\"namespace\":\"d\",\"name\":\"b\"},\"spec\":{\"selector\":{"
                "\"matchLabels\":{\"app\":\"%s\"}}},\"status\":{\"disruptionsAllowed\":%d}}",
                PICK(w, "a", "b"), (int)world_random(w, 3));
    MUST(w,
         json_parse(&doc, strbuf_str(&text), text.len, &err) == 0 &&
             decode_pdb(json_root(doc), &b, &err) == 0,
         "%s", err.text);
    world_spread_events(w, api_objects_put(w->cluster.objects, API_OBJECTS_BUDGETS, &b->object));
}

/* As reservation_timer.c does. */
void world_reserve(struct world *w)
{
    struct cluster *c = &w->cluster;
    if (!w->reserving)
        return;
    arena_reset(&w->arena);
    int64_t due_ms = reservation_next(c), now_ms = world_now_ns(w) / 1000000;
    if (due_ms < 0 || due_ms > now_ms)
        return;
    struct reservation_news news = reservation_reconcile(&w->pipeline, now_ms, &w->arena);
    if (news.looked != NULL) {
        const struct reservation *made = reservations_of(c, news.looked)->kept;
        queue_touch(&w->queue, news.looked, w->now_ms);
        for (size_t i = 0; made != NULL && i < made->gangs.len; i++)
            queue_touch(&w->queue, made->gangs.items[i], w->now_ms);
    }
    world_spread_events(w, news.events);
}
