// SPDX-License-Identifier: Apache-2.0
/* service_internal - what service.c, service_identify.c and service_reconcile.c share. */
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
    /* The last answer of GetPreferredAllocation, until Allocate comes with it. */
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
    /* Under the lock of the cache, because it is read together with the pods: */
    struct arena inventory_arena;
    struct gpu_inventory inventory;
    enum gpu_mode mode;
    enum gpu_placement placement;
    char *refusal;
    struct service_answer answer;
    char *checkpoint; /* path of the kubelet's; NULL: not read */
    struct given given;
    uint64_t version;     /* counts changes of pods and grants */
    bool owed;            /* grants and truth have to be compared */
    struct strbuf unheld; /* what service_keep found last: "uid: why\n" of each pod */
    struct endpoint endpoints[MODE_RESOURCES];
};

/* Pods or grants have changed; the caller holds the lock. */
void service_touched(struct service *s);
/* Under the lock: grants and truth are to be compared soon. */
void service_owe(struct service *s);
/* Under the lock. What the pod was promised: by the grant made here, else by its annotations, if
 * they add up; NULL: nothing. */
const struct grant *service_promised(const struct service *s, const struct podcache_pod *p);

/* What the watch has brought under a listed pod's name. */
enum match_confidence {
    STRANGER,  /* nothing */
    DOUBTFUL,  /* a pod that was admitted long ago, and yet has a container without ids */
    IDENTIFIED /* the pod, or one that asks for nothing */
};

/* One call of the kubelet. */
struct request {
    struct endpoint *endpoint;
    struct service *service;
    struct arena arena;
    struct match_listing listing;
    enum match_confidence *match_confidence; /* of each listed pod */
    struct pod *fetched[SERVICE_GETS_MAX];
    size_t fetched_len;
    int64_t gets_end_ms;
    /* nobody whom we know waits, and somebody whom we do not may */
    bool unknown_pod;
    struct match_subject subject; /* borrowed from the cache: only under the lock */
};

void service_request_init(struct request *q, void *endpoint);
void service_request_deinit(struct request *q);
/* Names the container that waits for count ids, or finds that it is a stranger's. 0: the lock is
 * held, and q->subject is valid under it. */
int service_identify_lock(struct request *q, size_t count, struct error *err);
/* Under the lock: the kubelet was told to take these ids for the subject. */
void service_note_preferred(struct request *q, const struct inventory_ids *ids);
/* True: these are the ids that were preferred a moment ago; then the lock is held and q->subject is
 * valid under it. */
bool service_identify_preferred(struct request *q, const struct inventory_ids *ids);
/* Under the lock. The subject's grant is known, or made: ids of r, shares only. */
int service_settle_grant(struct request *q, struct error *err);
/* What the annotations of a pod say of its grant, against the one that is kept here. */
enum announced {
    ANNOUNCED,       /* the same */
    ANNOUNCED_MORE,  /* more: nothing looks emptier than it is, and the rest can be taken back */
    ANNOUNCED_OTHER, /* too little, or another thing: what is missing has been added just now */
};
/* Under the lock: brings the pod's grant, if there is one here, into its annotations. Never takes
 * anything back. */
enum announced service_announce(struct service *s, const struct pod *p, struct arena *a);
/* Under the lock: the cards (by position) on which a stranger may have count ids. */
int service_unknown_pod_cards(struct request *q, size_t count, bool cards[GPU_CARDS_MAX],
                              struct error *err);
/* PreStartContainer: who holds these ids, is it what was promised? Corrects the promise, tells the
 * start. -1: it must not start. */
int service_verify(struct request *q, const struct inventory_ids *ids, struct error *err);
