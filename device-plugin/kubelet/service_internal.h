// SPDX-License-Identifier: Apache-2.0
/* service_internal - shared by service.c, service_identify.c and service_reconcile.c. */
#pragma once

#include "device-plugin/grant/given.h"
#include "device-plugin/grant/match.h"
#include "device-plugin/kubelet/podresources.h"
#include "device-plugin/grant/card_usage.h"
#include "device-plugin/kubelet/service.h"
#include "lib/base/arena.h"
#include "lib/base/str.h"

struct endpoint {
    struct service *service;
    enum mode_resource resource;
    struct strbuf list; /* the encoded ListAndWatch message */
    uint64_t generation;
    /* The last GetPreferredAllocation answer, kept for its Allocate. */
    struct arena preferred_arena;
    const char *preferred_uid; /* NULL: none */
    size_t preferred_container;
    struct inventory_ids preferred;
    int64_t preferred_ms;
};

struct service {
    struct service_hooks hooks;
    struct podresources *podresources;
    struct podcache *pods;
    /* Under the cache's lock, because it is read together with the pods: */
    struct arena inventory_arena;
    struct gpu_inventory inventory;
    enum gpu_mode mode;
    enum gpu_placement placement;
    char *refusal;
    struct service_answer answer;
    char *checkpoint; /* path of the kubelet's checkpoint; NULL: not read */
    struct given given;
    uint64_t version;     /* counts changes of pods and grants */
    bool owed;            /* a comparison is due */
    struct strbuf unheld; /* result of the last service_keep: "uid: why\n" per pod */
    struct endpoint endpoints[MODE_RESOURCES];
};

/* Under the lock: pods or grants have changed. */
void service_touched(struct service *s);
/* Under the lock: schedules a comparison of grants with allocations. */
void service_owe(struct service *s);
/* Under the lock. The pod's grant: the one made here, else the one in its annotations if that is
 * consistent, else NULL. */
const struct grant *service_promised(const struct service *s, const struct podcache_pod *p);

/* What the cache has under a listed pod's name. */
enum match_confidence {
    UNKNOWN_POD, /* nothing */
    DOUBTFUL,    /* a pod admitted long ago that still has a container without ids */
    IDENTIFIED   /* the pod, or one that requests none of our resources */
};

/* One call by the kubelet. */
struct request {
    struct endpoint *endpoint;
    struct service *service;
    struct arena arena;
    struct match_listing listing;
    enum match_confidence *match_confidence; /* of each listed pod */
    struct pod *fetched[SERVICE_GETS_MAX];
    size_t fetched_len;
    int64_t gets_end_ms;
    /* no cached pod matches; an uncached one might */
    bool unknown_pod;
    struct match_subject subject; /* borrowed from the cache: valid under the lock only */
};

void service_request_init(struct request *q, void *endpoint);
void service_request_deinit(struct request *q);
/* Identifies the container that waits for count ids, or sets unknown_pod. 0: the lock is held, and
 * q->subject is valid under it. */
int service_identify_lock(struct request *q, size_t count, struct error *err);
/* Under the lock: the kubelet was told to take these ids for the subject. */
void service_note_preferred(struct request *q, const struct inventory_ids *ids);
/* True: these ids were just preferred; the lock is held and q->subject is valid under it. */
bool service_identify_preferred(struct request *q, const struct inventory_ids *ids);
/* Under the lock. Ensures that the contract allows the subject's request, and that it has a grant.
 * Shares only. */
int service_settle_grant(struct request *q, struct error *err);
/* How a pod's annotations compare with its grant kept here. */
enum announced {
    ANNOUNCED,       /* the same */
    ANNOUNCED_MORE,  /* more: no card looks emptier than it is, and the excess can be withdrawn */
    ANNOUNCED_OTHER, /* too little, or something else: the missing part was written just now */
};
/* Under the lock: adds the pod's grant, if kept here, to its annotations. Never withdraws
 * anything. */
enum announced service_announce(struct service *s, const struct pod *p, struct arena *a);
/* Under the lock: the cards (by position) on which an unknown pod may take count ids. */
int service_unknown_pod_cards(struct request *q, size_t count, bool cards[GPU_CARDS_MAX],
                              struct error *err);
/* PreStartContainer: finds the holder of these ids, writes its limits, corrects its grant if it
 * differs, and reports the start. -1: the container must not start. */
int service_verify(struct request *q, const struct inventory_ids *ids, struct error *err);
