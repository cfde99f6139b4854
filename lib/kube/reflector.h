// SPDX-License-Identifier: Apache-2.0
/*
 * reflector - mirrors one collection: list → watch → resume; bookmarks, 410, backoff. One thread
 * each.
 *
 * It delivers on its own thread, usually into a mailbox: after every full list one RESET with all
 * objects (so the receiver also learns what was deleted meanwhile), then one message per change. An
 * object that cannot be decoded is treated as absent: a RESET omits it, and a change to it arrives
 * as a DELETE (of an object with only its metadata), unless the type can decode its remains. The
 * receiver's copy equals the API server's state whenever the stream is quiet.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/kube/api.h"
#include "lib/kube/config.h"

/* PART and LISTED: only with config.in_parts, and only before any other event. */
enum reflector_event {
    REFLECTOR_RESET,
    REFLECTOR_PUT,
    REFLECTOR_DELETE,
    REFLECTOR_PART,  /* a page of the first list, which is not complete yet */
    REFLECTOR_LISTED /* the last page: with the PARTs before it, the list is complete */
};

/* How to decode objects, which are opaque to the reflector. */
struct reflector_type {
    int (*decode)(json *j, void **out, struct error *err);
    void (*free)(void *object);
    /* What to deliver for an object that decode refused for `why`. NULL, or -1: it is absent. */
    int (*remains)(json *j, const struct error *why, void **out, struct error *err);
};

struct reflector_message {
    enum reflector_event event;
    struct reflector *from;
    void **objects; /* RESET: all of them; PUT and DELETE: one; PART and LISTED: a page */
    size_t len;
    void (*free_object)(void *object);
    void *arg; /* config.arg */
    void *one; /* objects points here for a single object */
};
/* Frees the message and the objects still in it (a receiver that keeps an object replaces it by
 * NULL). */
void reflector_message_free(void *message);

struct reflector_config {
    const struct kube_kind *kind;
    const char *ns;             /* NULL: all */
    const char *label_selector; /* NULL: none; not escaped */
    const char *field_selector;
    struct reflector_type type;
    /* Takes the message. false: the receiver has closed; the reflector ends. */
    bool (*deliver)(void *arg, struct reflector_message *message);
    void *arg;
    /* the first list is consistent (resourceVersion unset), not from a watch cache; always so after
     * 410 */
    bool from_etcd;
    /* 404 on the collection (CRD not installed): delivers an empty RESET and retries every 30 s */
    bool optional;
    /* The first list arrives as PARTs and a LISTED instead of a RESET, so that the receiver
     * processes one page while the next is fetched. If a first list fails after a PART, the next
     * list ends with a RESET, like every later one. */
    bool in_parts;
    /* The consequence of a missing collection, logged once. If set, 403 counts as 404: without
     * permission to read the collection we go on without it. */
    const char *without;
    int64_t backoff_first_ms, backoff_max_ms; /* 0: 100 ms, 30 s */
    int64_t optional_ms;                      /* 0: 30 s */
};

struct reflector_stats {
    int64_t lists, watches, events, bookmarks, gone, failures, undecodable;
};

struct reflector;
int reflector_start(struct reflector **out, struct kube_config *kube, const struct kube_options *o,
                    const struct reflector_config *c, struct error *err);
/* Cancels the request, joins the thread, frees. Within 200 ms, unless deliver blocks: close the
 * mailbox it posts to first. */
void reflector_stop(struct reflector *r);
void reflector_stats(const struct reflector *r, struct reflector_stats *out); /* any thread */
