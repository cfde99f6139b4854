// SPDX-License-Identifier: Apache-2.0
/*
 * life - the life of one pod on a simulated node: which container is due, what ends when, and what
 * status says. Pure: times are parameters (wall clock, ns); starting a container is the caller's.
 * The drawing is in life.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/str.h"
#include "test/local/nodes/podview.h"

enum { LIFE_ID = 64, LIFE_MESSAGE = 512, LIFE_CONDITIONS = 4 };
#define LIFE_NONE SIZE_MAX
#define LIFE_NEVER INT64_MAX

enum life_state { LIFE_WAITING, LIFE_RUNNING, LIFE_EXITED };

struct life_container {
    const struct podview_container *view;
    enum life_state state;
    char id[LIFE_ID + 1]; /* of the run that is or was */
    int64_t started_ns, finished_ns;
    int exit_code;
    int64_t restarts;
    bool has_last; /* the run before: */
    char last_id[LIFE_ID + 1];
    int64_t last_started_ns, last_finished_ns;
    int last_exit;
    int64_t not_before_ns; /* of a container that waits */
    const char *why;       /* reason of waiting, a literal */
    char message[LIFE_MESSAGE];
};

struct life {
    const struct podview *view; /* borrowed */
    struct life_container *containers;
    int64_t admitted_ns;
    int64_t ready_ns; /* the sandbox is there, containers may start */
    int64_t kill_ns;  /* terminating: when the grace is over; LIFE_NEVER */
    bool admitted, rejected, stopped;
    char reason[64], message[LIFE_MESSAGE]; /* of a rejected pod */
    struct {
        const char *status;
        int64_t since_ns;
    } conditions[LIFE_CONDITIONS]; /* as last printed */
};

/* v outlives it. */
void life_init(struct life *l, const struct podview *v);
void life_deinit(struct life *l);
/* create_ms: how long the sandbox takes. */
void life_admit(struct life *l, int64_t now_ns, int64_t create_ms);
/* Takes over what the pod's status says: the kubelet was started again. False: there is nothing to
 * take over, the pod was never admitted. */
bool life_adopt(struct life *l);
void life_reject(struct life *l, int64_t now_ns, const char *reason, const char *message);
/* The pod is to end. Again: the earlier end counts. */
void life_terminate(struct life *l, int64_t now_ns, int64_t grace_ms);

/* The container to start now, or LIFE_NONE. */
size_t life_due(const struct life *l, int64_t now_ns);
void life_started(struct life *l, size_t i, int64_t now_ns, const char *id);
/* It could not be started; it is due again later. */
void life_failed(struct life *l, size_t i, int64_t now_ns, const char *why, const char *message);
/* Lets end what is due. True: the status has changed. */
bool life_tick(struct life *l, int64_t now_ns);
/* When life_due or life_tick may have something new; LIFE_NEVER. */
int64_t life_next_ns(const struct life *l);
/* Nothing runs and nothing will. */
bool life_is_over(const struct life *l);
enum pod_phase life_phase(const struct life *l);

struct life_host {
    const char *host_ip, *pod_ip;
};
/* A strategic merge patch for pods/status. Remembers since when each condition has its status. */
void life_print(struct life *l, const struct life_host *h, int64_t now_ns, struct strbuf *out);
