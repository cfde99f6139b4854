// SPDX-License-Identifier: Apache-2.0
/*
 * reconciler - the state file {"v":1,"pods":[…]} lists the pods of this node that ask for GPUs, in
 * the API's format, reduced to what a grant needs (a few hundred bytes each). It is written only
 * after a change. All of it can be rebuilt from the API server or the kubelet, so a failed read or
 * write is logged once and retried, and never stops the plugin.
 *
 *   reconciler_poke (any thread) ──eventfd──► RECONCILER_MS later: reconcile
 *       ├── all done ──► sleeps until the next poke
 *       └── not all ───► again, each time twice as late, up to RECONCILER_SLOW_MS
 *
 * Most often an unknown pod remains: its containers hold ids, but the watch has not delivered it.
 * Its arrival is a poke; the slow retries cover an unresponsive kubelet and a full disk.
 */
#include "device-plugin/kubelet/reconciler.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/statefile.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/kube/decode.h"

struct reconciler {
    struct loop *loop;
    struct service *service;
    char *dir;
    int poked_fd; /* eventfd */
    struct loop_timer timer;
    int64_t due_ms;                                                /* of the timer; 0: not armed */
    int64_t wait_ms;                                               /* before the next retry */
    uint64_t saved;                                                /* service version in the file */
    struct strbuf text;                                            /* content of the file */
    char save_error[ERROR_TEXT_SIZE], list_error[ERROR_TEXT_SIZE]; /* already logged */
};

static int restore(json *j, void *user, struct error *err)
{
    struct pod *p = NULL;
    if (decode_pod(j, &p, err) < 0)
        return -1;
    podcache_restore(user, p);
    return 0;
}

static void load(const struct reconciler *t, struct podcache *pods)
{
    const struct statefile_list file = {.dir = t->dir,
                                        .name = RECONCILER_FILE,
                                        .list = "pods",
                                        .bytes_max = RECONCILER_BYTES_MAX,
                                        .max = RECONCILER_PODS_MAX};
    struct error err = ERROR_INIT;
    int taken = statefile_read(&file, restore, pods, &err);
    if (taken < 0)
        log_warn("state file ignored, the API server and the kubelet know the pods",
                 kv("error", err.text));
    else
        log_info("pods remembered", kv("pods", taken));
}

/* false: retry. */
static bool save(struct reconciler *t)
{
    uint64_t version = service_version(t->service);
    if (version == t->saved)
        return true;
    AUTO_STRBUF text;
    struct error err = ERROR_INIT;
    strbuf_init(&text);
    strbuf_adds(&text, "{\"v\":1,\"pods\":");
    service_print_pods(t->service, &text);
    strbuf_adds(&text, "}\n");
    bool same = str_eq(strbuf_str(&text), strbuf_str(&t->text));
    if (!same && statefile_write(t->dir, RECONCILER_FILE, text.ptr, text.len, &err) < 0) {
        if (error_is_news(t->save_error, err.text))
            log_error("the pods would not be remembered over a restart", kv("error", err.text));
        return false;
    }
    t->save_error[0] = '\0';
    t->saved = version;
    strbuf_reset(&t->text);
    strbuf_add(&t->text, text.ptr, text.len);
    return true;
}

static void reconcile(void *arg);

static void reconcile_in(struct reconciler *t, int64_t ms)
{
    t->due_ms = clock_mono_ms() + ms;
    loop_timer_set(t->loop, &t->timer, ms, reconcile, t);
}

static void reconcile(void *arg)
{
    struct reconciler *t = arg;
    struct error err = ERROR_INIT;
    t->due_ms = 0;
    if (service_reconcile(t->service, RECONCILER_LIST_MS, &err) < 0 &&
        error_is_news(t->list_error, err.text))
        log_warn("cannot compare grants with the kubelet's allocations", kv("error", err.text));
    bool saved = save(t);
    if (saved && !service_owes(t->service)) {
        t->wait_ms = RECONCILER_MS;
        return;
    }
    t->wait_ms = num_min(t->wait_ms * 2, RECONCILER_SLOW_MS);
    reconcile_in(t, t->wait_ms);
}

void reconciler_poke(const struct reconciler *t)
{
    uint64_t one = 1;
    /* write fails only when the counter is full, and then the loop already wakes. */
    if (write(t->poked_fd, &one, sizeof one) < 0)
        return;
}

static void on_poked(void *arg, uint32_t events)
{
    struct reconciler *t = arg;
    uint64_t n;
    (void)events;
    if (read(t->poked_fd, &n, sizeof n) < 0)
        return;
    t->wait_ms = RECONCILER_MS;
    /* An earlier deadline stays, so constant pokes cannot postpone it. */
    if (t->due_ms == 0 || t->due_ms > clock_mono_ms() + RECONCILER_MS)
        reconcile_in(t, RECONCILER_MS);
}

int reconciler_new(struct reconciler **out, struct loop *loop, struct service *service,
                   struct podcache *pods, const char *state_dir, struct error *err)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return error_errno(err, errno, "eventfd");
    struct reconciler *t = mem_new(struct reconciler, 1);
    t->loop = loop;
    t->service = service;
    t->poked_fd = fd;
    t->wait_ms = RECONCILER_MS;
    t->dir = mem_strdup(state_dir);
    strbuf_init(&t->text);
    if (loop_watch_fd(loop, fd, EPOLLIN, on_poked, t, err) < 0) {
        close(fd);
        strbuf_deinit(&t->text);
        free(t->dir);
        free(t);
        return -1;
    }
    load(t, pods);
    reconcile_in(t, RECONCILER_MS);
    *out = t;
    return 0;
}

void reconciler_free(struct reconciler *t)
{
    if (t == NULL)
        return;
    loop_timer_cancel(t->loop, &t->timer);
    loop_unwatch_fd(t->loop, t->poked_fd);
    close(t->poked_fd);
    (void)save(t);
    strbuf_deinit(&t->text);
    free(t->dir);
    free(t);
}
