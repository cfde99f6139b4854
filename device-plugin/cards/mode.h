// SPDX-License-Identifier: Apache-2.0
/* mode - the node's GPU mode, its resources, and when it may change. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/model/gpu.h"

/* The resources registered with the kubelet, each with its own server. */
enum mode_resource { MODE_GPU_MEM, MODE_GPU_CORE, MODE_GPU, MODE_NVIDIA_GPU, MODE_RESOURCES };

const char *mode_resource_name(enum mode_resource r); /* "aliyun.com/gpu-mem" */
const char *mode_resource_slug(enum mode_resource r); /* "gpu-mem": for file names */
bool mode_resource_parse(const char *name, enum mode_resource *out);
/* Whole cards, as opposed to shares of one. */
bool mode_resource_is_whole(enum mode_resource r);
/* Bit set (1u << resource) of what a mode offers. */
uint32_t mode_resources(enum gpu_mode m);
/* Does the mode promise to limit containers to their share? (cgpu, core_mem, mps) */
bool mode_needs_isolation(enum gpu_mode m);

enum { MODE_SETTLE_MS = 500, MODE_STATE_BYTES_MAX = 4096 };

struct mode {
    bool known;            /* false until a state file or a label is read */
    enum gpu_mode current; /* what is offered */
    bool switching;
    enum gpu_mode to;
    int64_t since_ms; /* start of the switch */
    /* resources ever registered here: a former one is served empty, not dropped */
    uint32_t served;
};

enum mode_change {
    MODE_SAME,
    MODE_ENTERED,       /* current is new */
    MODE_SWITCHING,     /* a switch has begun: only held ids are offered from now on */
    MODE_RETURNED,      /* the label went back: everything is offered again */
    MODE_UNKNOWN_LABEL, /* the label's value is unknown; nothing changed */
};

/* label: the value of ack.node.gpu.schedule; NULL: not set, the last mode stays. */
enum mode_change mode_label(struct mode *m, const char *label, int64_t now_ms);
/* held: ids of the current mode's resources that containers hold, by the kubelet at now_ms. */
enum mode_change mode_held(struct mode *m, size_t held, int64_t now_ms);

/* The state file: {"v":1,"mode":"cgpu","to":"topology","served":["aliyun.com/gpu-mem"]}; "to" only
 * during a switch, which continues after a restart (the caller sets since_ms), even without the
 * label. */
void mode_encode(const struct mode *m, struct strbuf *out);
int mode_decode(struct mode *out, const char *text, size_t n, struct error *err);
