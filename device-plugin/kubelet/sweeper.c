// SPDX-License-Identifier: Apache-2.0
/* The kubelet and the cgroups are asked only when an old folder's pod is not cached, and then once
 * for all folders. The kubelet writes its checkpoint when it allocates, so the entry of a pod that
 * has ended stays until the next one is admitted: a folder may remain longer than its container. */
#include "device-plugin/kubelet/sweeper.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device-plugin/cpu/cgroups.h"
#include "device-plugin/isolation/shares.h"
#include "device-plugin/kubelet/checkpoint.h"
#include "device-plugin/kubelet/service_internal.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

struct sweeper {
    struct sweeper_config config;
    struct loop_timer timer;
    char error[ERROR_TEXT_SIZE]; /* logged */
};

/* One run: the sources, as far as they were asked. */
struct sources {
    const struct sweeper *sweeper;
    struct arena arena;
    bool asked;
    struct error err; /* one of them cannot be asked */
    struct checkpoint checkpoint;
    struct match_listing listing;
    struct cgroups cgroups;
};

static int read_checkpoint(struct sources *q)
{
    const char *path = q->sweeper->config.service->checkpoint;
    if (path == NULL || access(path, F_OK) < 0)
        return error_set(&q->err, ERROR_NOT_FOUND, "the kubelet's checkpoint is not there");
    if (checkpoint_read(path, &q->arena, &q->checkpoint, &q->err) < 0)
        return -1;
    if (q->checkpoint.unread > 0)
        return error_set(&q->err, ERROR_UNSUPPORTED, "%s: %zu entries in an unknown form", path,
                         q->checkpoint.unread);
    return 0;
}

/* Without the kubelet's own groups we look at the wrong tree, in which no pod would ever be. */
static int open_cgroups(struct sources *q)
{
    const struct sweeper_config *c = &q->sweeper->config;
    char class[CGROUPS_PATH_SIZE], full[CGROUPS_PATH_SIZE];
    struct stat st;
    if (cgroups_open(&q->cgroups, c->cgroup_mount, c->cgroup_root, &q->err) < 0)
        return -1;
    for (unsigned i = 0; i < CGROUPS_PLACES; i++)
        if (cgroups_path_class(i, q->cgroups.root, class) &&
            cgroups_full(&q->cgroups, class, NULL, full) && stat(full, &st) == 0)
            return 0;
    return error_set(&q->err, ERROR_NOT_FOUND, "%s: the kubelet's cgroups are not there",
                     c->cgroup_mount);
}

static void ask(struct sources *q)
{
    if (q->asked)
        return;
    q->asked = true;
    if (read_checkpoint(q) == 0 && open_cgroups(q) == 0)
        (void)podresources_list(q->sweeper->config.service->podresources, SWEEPER_LIST_MS,
                                &q->arena, &q->listing, &q->err);
}

/* Is the folder named by these ids? */
static bool is_named_by(struct sources *q, const char *folder, const struct inventory_ids *ids)
{
    return ids->len > 0 && str_eq(folder, arena_printf(&q->arena, SHARES_UNKNOWN "%s.0",
                                                       match_digest(ids, &q->arena)));
}

static bool is_in_checkpoint(struct sources *q, const struct shares_owner *o)
{
    for (size_t i = 0; i < q->checkpoint.len; i++) {
        const struct checkpoint_entry *e = &q->checkpoint.items[i];
        if (str_eq(e->uid, o->uid) ||
            (e->resource == MODE_GPU_MEM && is_named_by(q, o->folder, &e->ids)))
            return true;
    }
    return false;
}

/* A folder that an older plugin named by its pod is looked for by the pod's name. */
static bool is_listed(struct sources *q, const struct shares_owner *o)
{
    bool by_ids = str_starts(o->folder, SHARES_UNKNOWN);
    for (size_t i = 0; i < q->listing.len; i++) {
        const struct match_listed *l = &q->listing.pods[i];
        if (!by_ids && str_eq(l->ns, o->ns) && str_eq(l->name, o->pod))
            return true;
        for (size_t k = 0; k < l->containers_len; k++)
            if (is_named_by(q, o->folder, &l->containers[k].held[MODE_GPU_MEM]))
                return true;
    }
    return false;
}

static bool in_use(void *arg, const struct shares_owner *o)
{
    struct sources *q = arg;
    char path[CGROUPS_PATH_SIZE];
    const struct podcache_pod *p =
        podcache_find_uid(q->sweeper->config.service->pods, o->uid); /* the loop needs no lock */
    if (p != NULL && !pod_is_finished(p->pod))
        return true;
    ask(q);
    return q->err.code != ERROR_NONE || is_in_checkpoint(q, o) || is_listed(q, o) ||
           cgroups_find_pod(&q->cgroups, o->uid, path);
}

size_t sweeper_run(struct sweeper *w, int64_t keep_ms)
{
    struct sources q = {.sweeper = w};
    arena_init(&q.arena, 0);
    size_t n = shares_sweep(w->config.shares, keep_ms, in_use, &q);
    arena_deinit(&q.arena);
    if (n > 0)
        log_info("folders of containers that have gone were removed", kv("folders", n));
    if (q.asked && error_is_news(w->error, q.err.text))
        log_warn("folders of containers are kept, whether they have gone is not known",
                 kv("error", q.err.text));
    return n;
}

static void run(void *arg)
{
    struct sweeper *w = arg;
    (void)sweeper_run(w, SHARES_KEEP_MS);
    loop_timer_beat(w->config.loop, &w->timer, SWEEPER_MS, run, w);
}

struct sweeper *sweeper_new(const struct sweeper_config *c)
{
    struct sweeper *w = mem_new(struct sweeper, 1);
    w->config = *c;
    loop_timer_beat(c->loop, &w->timer, SWEEPER_MS, run, w);
    return w;
}

void sweeper_free(struct sweeper *w)
{
    if (w == NULL)
        return;
    loop_timer_cancel(w->config.loop, &w->timer);
    free(w);
}
