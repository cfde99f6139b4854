// SPDX-License-Identifier: Apache-2.0
/*
 * isolation - the engines.
 *
 *   none     nothing is enforced: mode share, and every other shared mode under --isolation=none
 *   mps      NVIDIA's Multi-Process Service: its server limits each client's memory and threads.
 *            Clients find the control daemon by a directory with its sockets and share memory with
 *            it, so both are mounted. The daemon is alive if its end is open: a socket accepts a
 *            connection, a fifo can be opened for writing
 *   kernel   the kernel counts device memory itself, if the card's driver has registered it
 *            (isolation_kernel); it does not limit time
 *   cgpu     Alibaba's kernel module, if loaded: it reads the container's environment itself
 *   library  our own: preloaded into the container's processes, which obey a limits file
 *            (device-plugin/isolation/preload/)
 *
 * Several may serve a mode: the first available one does, or the one that --isolation= names.
 */
#include "device-plugin/isolation/isolation.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "device-plugin/isolation/shares.h"
#include "device-plugin/isolation/isolation_kernel.h"
#include "device-plugin/cards/mode.h"
#include "lib/base/cleanup.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/names.h"

#define CONTROL "control"

static int check_none(const struct isolation_config *c, const struct gpu_inventory *inv,
                      struct error *err)
{
    (void)inv;
    (void)c, (void)err;
    return 0;
}

static void dress_none(const struct isolation_config *c, const struct gpu_inventory *inv,
                       const struct match_grant *grant, struct arena *a, struct response *out)
{
    (void)c, (void)inv, (void)grant, (void)a, (void)out;
}

static bool accepts(const char *path, int type)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    AUTO_CLOSE int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd >= 0 && str_format(at.sun_path, sizeof at.sun_path, "%s", path) &&
           (connect(fd, (const struct sockaddr *)&at, sizeof at) == 0 || errno == EAGAIN);
}

static int check_mps(const struct isolation_config *c, const struct gpu_inventory *inv,
                     struct error *err)
{
    (void)inv;
    AUTO_STRBUF path;
    struct stat st = {0};
    bool answers = false;
    strbuf_init(&path);
    strbuf_addf(&path, "%s/" CONTROL, c->mps_pipe);
    const char *control = strbuf_str(&path);
    if (stat(control, &st) == 0 && S_ISSOCK(st.st_mode)) {
        answers = accepts(control, SOCK_SEQPACKET) || accepts(control, SOCK_STREAM);
    } else if (S_ISFIFO(st.st_mode)) {
        AUTO_CLOSE int fd = open(control, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        answers = fd >= 0;
    }
    if (answers)
        return 0;
    return error_set(
        err, ERROR_UNAVAILABLE, "the MPS control daemon does not answer at %s: %s", control,
        c->mps_own
            ? "it is being started by this plugin, see its log"
            : "start nvidia-cuda-mps-control on the node, or let the device plugin do so with "
              "--mps-control=PATH");
}

/* "0=3G,1=3G": the container counts its visible cards from 0. */
static const char *memory_limits(const struct match_grant *grant, struct arena *a)
{
    const char *list = "";
    for (size_t i = 0; i < grant->shares_len; i++)
        list = arena_printf(a, "%s%s%zu=%lldG", list, i > 0 ? "," : "", i,
                            (long long)grant->shares[i].gib);
    return list;
}

/* One number applies to all cards of a container: its smallest share of one, rounded down so that
 * the containers of a card never exceed it together. */
static int64_t threads_percent(const struct gpu_inventory *inv, const struct match_grant *grant)
{
    int64_t percent = INVENTORY_CORES;
    for (size_t i = 0; i < grant->shares_len; i++) {
        int64_t card_gib = gpu_card_gib(&inv->cards[grant->shares[i].card]);
        if (card_gib > 0)
            percent = num_min(percent, grant->shares[i].gib * INVENTORY_CORES / card_gib);
    }
    return num_max(percent, 1);
}

static void dress_mps(const struct isolation_config *c, const struct gpu_inventory *inv,
                      const struct match_grant *grant, struct arena *a, struct response *out)
{
    response_env(out, NAME_ENV_MPS_PIPE, arena_strdup(a, c->mps_pipe));
    response_env(out, NAME_ENV_MPS_MEM, memory_limits(grant, a));
    response_env(out, NAME_ENV_MPS_THREADS,
                 arena_printf(a, "%lld", (long long)threads_percent(inv, grant)));
    response_mount(out, a, c->mps_pipe, c->mps_pipe, false);
    response_mount(out, a, ISOLATION_MPS_SHM, c->mps_shm, false);
}

static int check_cgpu(const struct isolation_config *c, const struct gpu_inventory *inv,
                      struct error *err)
{
    (void)inv;
    struct stat st;
    if (stat(c->cgpu_dir, &st) == 0 && S_ISDIR(st.st_mode))
        return 0;
    return error_set(err, ERROR_UNAVAILABLE, "there is no %s: load the cGPU kernel module",
                     c->cgpu_dir);
}

static void dress_cgpu(const struct isolation_config *c, const struct gpu_inventory *inv,
                       const struct match_grant *grant, struct arena *a, struct response *out)
{
    const char *list = "";
    (void)c;
    for (size_t i = 0; i < grant->shares_len; i++)
        list = arena_printf(a, "%s%s%d", list, i > 0 ? "," : "",
                            inv->cards[grant->shares[i].card].index);
    response_env(out, NAME_ENV_CGPU_VISIBLE, list);
}

static int check_library(const struct isolation_config *c, const struct gpu_inventory *inv,
                         struct error *err)
{
    (void)inv;
    if (c->library == NULL || c->shares == NULL)
        return error_set(err, ERROR_UNAVAILABLE, "no library of our own is installed");
    return shares_check(c->library, c->shares, err);
}

/* Named by the container's memory ids, which no other container holds. Allocate may take one pod
 * for another, so nothing that depends on whose they are is decided before the start. */
static const char *folder_of(const char *ids_digest, struct arena *a)
{
    return arena_printf(a, SHARES_UNKNOWN "%s.0", ids_digest);
}

static uint64_t context_bytes(const struct isolation_config *c, const struct gpu_card *card)
{
    bool found = c->context_mib == 0 && c->contexts != NULL && card->index >= 0 &&
                 card->index < GPU_CARDS_MAX;
    int64_t mib = found ? atomic_load(&c->contexts[card->index]) : c->context_mib;
    return (uint64_t)num_max(mib, 0) << 20;
}

static void dress_library(const struct isolation_config *c, const struct gpu_inventory *inv,
                          const struct match_grant *grant, struct arena *a, struct response *out)
{
    if (grant->ids_digest == NULL)
        return; /* for another resource */
    struct shares_plan *plan = arena_new(a, struct shares_plan, 1);
    plan->base = c->shares;
    plan->folder = folder_of(grant->ids_digest, a);
    plan->apart = c->regions_apart;
    plan->ns = plan->pod = plan->container = ""; /* and all of the cards' time: complete_library */
    for (size_t i = 0; i < grant->shares_len && i < LIMITS_CARDS; i++) {
        const struct gpu_card *card = &inv->cards[grant->shares[i].card];
        struct limits_card *l = &plan->limits.cards[plan->limits.len];
        if (!limits_uuid(card->uuid, strlen(card->uuid), l->uuid))
            continue; /* prepare_library rejects a plan that lacks a card */
        l->bytes = (uint64_t)grant->shares[i].gib << 30;
        l->context_bytes = context_bytes(c, card);
        l->percent = INVENTORY_CORES;
        plan->limits.len++;
    }
    plan->complete = plan->limits.len == grant->shares_len;
    out->share = plan;
    const char *dir = arena_printf(a, "%s/%s", c->shares, plan->folder);
    response_mount(out, a, SHARES_INSIDE, dir, true);
    response_mount(out, a, SHARES_INSIDE "/region",
                   c->regions_apart
                       ? arena_printf(a, "%s/" SHARES_REGIONS "/%s", c->shares, plan->folder)
                       : arena_printf(a, "%s/region", dir),
                   false);
    response_mount(out, a, SHARES_PRELOAD, arena_printf(a, "%s/ld.so.preload", c->shares), true);
}

static int complete_library(const struct isolation_config *c, const struct match_listed *l,
                            const struct match_listed_container *held, struct arena *a,
                            struct error *err)
{
    const struct inventory_ids *memory = &held->held[MODE_GPU_MEM];
    size_t percent = held->held[MODE_GPU_CORE].len;
    if (memory->len == 0)
        return 0;
    struct shares_owner owner = {.folder = folder_of(match_digest(memory, a), a),
                                 .uid = str_or_empty(l->uid),
                                 .ns = l->ns,
                                 .pod = l->name,
                                 .container = held->name};
    return shares_complete(c->shares, &owner, percent < 100 ? (uint32_t)percent : 100, err);
}

static int prepare_library(const struct isolation_config *c, const struct shares_plan *share,
                           struct error *err)
{
    if (!share->complete)
        return error_set(
            err, ERROR_UNSUPPORTED,
            "isolation of GPU memory: at most %d cards for a container, each with a uuid",
            LIMITS_CARDS);
    return shares_prepare(c->library, share, err);
}

static const struct isolation_engine none = {.name = "none",
                                             .modes = 1u << GPU_MODE_SHARE | 1u << GPU_MODE_CGPU |
                                                      1u << GPU_MODE_CORE_MEM | 1u << GPU_MODE_MPS,
                                             .check = check_none,
                                             .dress = dress_none};

/* In order of preference. */
static const struct isolation_engine engines[] = {
    {.name = ISOLATION_MPS, .modes = 1u << GPU_MODE_MPS, .check = check_mps, .dress = dress_mps},
    {.name = ISOLATION_KERNEL,
     .modes = 1u << GPU_MODE_CGPU,
     .check = isolation_kernel_check,
     .dress = dress_none,
     .start = isolation_kernel_start,
     .keep = isolation_kernel_keep},
    {.name = "cgpu",
     .modes = 1u << GPU_MODE_CGPU | 1u << GPU_MODE_CORE_MEM,
     .check = check_cgpu,
     .dress = dress_cgpu},
    {.name = ISOLATION_LIBRARY,
     .modes = 1u << GPU_MODE_CGPU | 1u << GPU_MODE_CORE_MEM,
     .check = check_library,
     .dress = dress_library,
     .prepare = prepare_library,
     .complete = complete_library},
};

const struct isolation_engine *isolation_find(const struct isolation_config *c, enum gpu_mode mode,
                                              const struct gpu_inventory *inv, struct error *err)
{
    if (!gpu_mode_is_shared(mode))
        return NULL;
    if (!mode_needs_isolation(mode) || c->none)
        return &none;
    AUTO_STRBUF why;
    strbuf_init(&why);
    for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++) {
        struct error one = ERROR_INIT;
        if (!(engines[i].modes & 1u << mode) ||
            (c->only != NULL && !str_eq(c->only, engines[i].name)))
            continue;
        if (engines[i].check(c, inv, &one) == 0)
            return &engines[i];
        strbuf_addf(&why, "%s%s", why.len > 0 ? "; or " : "", one.text);
    }
    (void)error_set(err, ERROR_UNAVAILABLE, "%s",
                    why.len > 0 ? strbuf_str(&why)
                                : "the one that --isolation names does not serve this mode");
    return NULL;
}
