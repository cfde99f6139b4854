// SPDX-License-Identifier: Apache-2.0
/*
 * reflector - keeps a copy of one collection: list → watch → resume; bookmarks, 410, backoff. One
 * thread each.
 *
 * What it delivers (on its own thread; usually into a mailbox): after every full list one RESET
 * that holds all objects (so that the receiver also learns what vanished while we did not look),
 * then one letter per change. An object that cannot be decoded is treated as absent: it is not in a
 * RESET, and a change to it arrives as a DELETE (of an object that has only its metadata), unless
 * the type knows what remains of it. The receiver's copy equals the API server's state each time
 * the stream is quiet.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/kube/api.h"
#include "lib/kube/config.h"

/* PART and LISTED: only with config.in_parts, and only before anything else. */
enum reflector_event {
    REFLECTOR_RESET,
    REFLECTOR_PUT,
    REFLECTOR_DELETE,
    REFLECTOR_PART,  /* some of the objects of the first list, which is not complete yet */
    REFLECTOR_LISTED /* the last of them: with the PARTs before it, these are all */
};

/* How objects are decoded. The reflector does not know what they are. */
struct reflector_type {
    int (*decode)(json *j, void **out, struct error *err);
    void (*free)(void *object);
    /* What to deliver in place of an object that decode refused for `why`. NULL, or -1: it is
     * treated as absent. */
    int (*remains)(json *j, const struct error *why, void **out, struct error *err);
};

struct reflector_message {
    enum reflector_event event;
    struct reflector *from;
    void **objects; /* RESET: all of them; PUT and DELETE: one; PART and LISTED: a page */
    size_t len;
    void (*free_object)(void *object);
    void *arg; /* config.arg */
    void *one; /* where objects points to when there is one object */
};
/* Frees the letter and the objects still in it (a receiver that keeps an object puts NULL in its
 * place). */
void reflector_message_free(void *message);

struct reflector_config {
    const struct kube_kind *kind;
    const char *ns;             /* NULL: all */
    const char *label_selector; /* NULL: none; not escaped */
    const char *field_selector;
    struct reflector_type type;
    /* Takes the letter. false: the receiver has closed, the reflector ends. */
    bool (*deliver)(void *arg, struct reflector_message *message);
    void *arg;
    /* the first list is consistent (resourceVersion unset), not from a watch cache; always true
     * after 410 */
    bool from_etcd;
    /* 404 on the collection (CRD not installed): deliver an empty RESET, ask again every 30 s */
    bool optional;
    /* The first list comes as PARTs and a LISTED in place of a RESET, so that the receiver works on
     * one page while the next is on its way. A first list that breaks off after a PART is followed
     * by a list that ends with a RESET, as every later one. */
    bool in_parts;
    /* What follows from that, for the log, which says it once. With it 403 counts as 404: whoever
     * may not read the collection goes on without it. */
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
/* Cancels what runs, joins the thread, frees. Within 200 ms, unless deliver blocks: close the
 * mailbox it posts to first. */
void reflector_stop(struct reflector *r);
void reflector_stats(const struct reflector *r, struct reflector_stats *out); /* any thread */
