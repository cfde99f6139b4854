// SPDX-License-Identifier: Apache-2.0
/*
 * faults_internal - the inside of faults. For faults*.c alone.
 */
#pragma once

#include "lib/base/vec.h"
#include "test/local/faults/faults.h"

enum faults_kind {
    /* rules for requests */
    FAULT_DELAY,
    FAULT_DROP,
    FAULT_LOSE_REPLY,
    FAULT_REPLY,
    /* immediate */
    FAULT_CUT_WATCHES,
    FAULT_RESET,
    FAULT_HOLD,
    FAULT_RESTART,
    FAULT_COMPACT,
    FAULT_PARTITION,
    FAULT_KUBELET,
    FAULT_CARD,
    FAULT_RECREATE,
    FAULT_GARBLE,
    FAULT_KINDS,
};

/* One fault as it was asked for. Strings are its own. */
struct fault {
    enum faults_kind kind;
    int64_t id;
    char *text; /* the JSON, for the list */
    /* which requests */
    char *method, *path, *agent;
    int watch;                               /* -1: either */
    int64_t every, count, percent, until_ms; /* until_ms 0: forever */
    /* what */
    int64_t ms, code, retry_after_s, card;
    char *reason, *message, *node, *ns, *selector, *resource, *name, *member;
    bool mid_line, bad;
    /* so far */
    int64_t matched, fired;
};

struct faults_held { /* a call that waits */
    struct faults_held *next, **prev;
    struct faults *faults;
    struct call *call;
    struct loop_timer timer;
    bool drop;
    int64_t code, retry_after_s;
    char *reason, *message;
};

struct faults_line {
    int64_t at_ms;
    char *text;
    size_t len;
};

struct faults {
    struct faults_config config;
    struct VEC(struct fault *) rules;
    int64_t next_id;
    int64_t counts[FAULT_KINDS];
    struct faults_held *held;
    struct loop_timer reopen, accept, script_timer;
    struct fault *later; /* would cut off the reply to this very request */
    struct loop_timer later_timer;
    struct VEC(struct faults_line) script; /* in order of time; the first script_at are done */
    size_t script_at;
    int64_t script_start_ms;
};

extern const char *const faults_names[FAULT_KINDS];

int fault_parse(struct fault **out, json *j, struct error *err);
void fault_free(struct fault *f);
/* Immediate faults (from FAULT_CUT_WATCHES on). */
int faults_act(struct faults *f, const struct fault *fault, struct error *err);
