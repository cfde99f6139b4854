// SPDX-License-Identifier: Apache-2.0
/* probes - every program's /healthz, /readyz and /metrics. healthz: the loop's timer ran within the
 * last 15 s. readyz: everything registered with probes_need is met; the reply lists what is
 * missing. Other paths go to `other`, or get 404. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/httpd.h"
#include "lib/base/loop.h"
#include "lib/base/options.h"

enum { PROBES_NEEDS = 8, PROBES_BEAT_MS = 5000, PROBES_STALL_MS = 15000 };

struct probes_options { /* rows: --http-address, --http-port */
    const char *address;
    int64_t port;
};
extern const struct option_row probes_option_rows[];

struct probes {
    struct httpd *httpd;
    struct loop *loop;
    struct loop_timer beat;
    _Atomic int64_t beat_ms;
    const char *needs[PROBES_NEEDS];
    _Atomic bool met[PROBES_NEEDS];
    unsigned needs_len;
    httpd_handler other;
    void *other_arg;
};

void probes_init(struct probes *p, struct loop *loop);
/* Call before probes_start. Returns the need's number for probes_met. what: "pods listed". */
unsigned probes_need(struct probes *p, const char *what);
/* Any thread. */
void probes_met(struct probes *p, unsigned need, bool met);
bool probes_ready(const struct probes *p);
int probes_start(struct probes *p, const struct probes_options *o, httpd_handler other,
                 void *other_arg, struct error *err);
void probes_stop(struct probes *p);
