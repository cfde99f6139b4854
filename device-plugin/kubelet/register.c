// SPDX-License-Identifier: Apache-2.0
/*
 * register - one endpoint for each wanted resource:
 *
 *   idle ──register_want──► stale ──build──► built ──announce (Register answered)──► known
 *                             ▲                 │
 *                             │                 └─ announce failed: again in 100 ms, unless
 *                             │                    the kubelet watches us
 *                             └── from built and known, when the kubelet or our socket went away:
 *                                   on_inotify   kubelet.sock created (the kubelet has restarted)
 *                                   on_inotify   our socket deleted (a kubelet sweeps at start)
 *                                   on_ended     the ListAndWatch stream ended: never redialled
 *                                   check        known for 5 s without any stream
 *   any ──register_want without it, register_free──► idle
 *
 * The server is always rebuilt before Register: the kubelet has deleted the socket file, and the
 * old server would listen where no client can connect. A restarted kubelet re-creates kubelet.sock
 * with the same inode number, so only the inotify event reveals it. The file exists before the
 * kubelet listens, hence the retries. Inotify does not report that the directory itself was
 * replaced while we hold it open; check notices and takes it again: lock, watch and every endpoint.
 *
 * Register runs on the loop and blocks it for at most a second. Our servers have their own threads,
 * so the kubelet's calls are not delayed.
 */
#include "device-plugin/kubelet/register.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device-plugin/kubelet/rpc.h"
#include "device-plugin/kubelet/wire.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

#define KUBELET_SOCKET "kubelet.sock"

enum endpoint_state { IDLE, STALE, BUILT, KNOWN };

struct endpoint {
    enum endpoint_state state;
    char name[32]; /* "cosched-gpu-mem.sock" */
    char path[RPC_PATH_MAX + 1];
    struct rpc_server *server;
    int64_t known_ms;
};

struct registrar {
    struct loop *loop;
    struct service *service;
    void (*changed)(void *arg);
    void *arg;
    char *dir;
    char kubelet[RPC_PATH_MAX + 1];
    int dir_fd; /* holds the directory's lock; -1: not taken */
    int inotify_fd, watch;
    int ended_fd; /* eventfd: a stream has ended */
    struct loop_timer retry, check;
    struct endpoint endpoints[MODE_RESOURCES];
    char last_error
        [ERROR_TEXT_SIZE]; /* so that an absent kubelet is logged once, not ten times a second */
};

static struct metric registrations = {.kind = METRIC_COUNTER,
                                      .name = "cosched_device_plugin_registrations_total",
                                      .help = "Registrations with the kubelet, by resource.",
                                      .label = "resource"};

static void advance(void *arg);
static void check(void *arg);

static void mark_stale(struct registrar *g)
{
    for (int r = 0; r < MODE_RESOURCES; r++)
        if (g->endpoints[r].state != IDLE)
            g->endpoints[r].state = STALE;
}

/* On a transport thread. */
static void stream_ended(void *arg)
{
    const struct registrar *g = arg;
    uint64_t one = 1;
    /* write fails only when the counter is full, and then the loop already wakes. */
    if (write(g->ended_fd, &one, sizeof one) < 0)
        return;
}

static int build(struct registrar *g, enum mode_resource r, struct error *err)
{
    struct endpoint *e = &g->endpoints[r];
    rpc_server_stop(e->server, REGISTER_GRACE_MS);
    e->server = NULL;
    struct rpc_server_config c = {.path = e->path,
                                  .methods = service_methods,
                                  .methods_len = service_methods_len,
                                  .arg = service_endpoint(g->service, r),
                                  .stream_ended = stream_ended,
                                  .ended_arg = g};
    if (rpc_server_start(&e->server, &c, err) < 0)
        return -1;
    e->state = BUILT;
    return 0;
}

static void becomes_known(struct registrar *g, enum mode_resource r)
{
    struct endpoint *e = &g->endpoints[r];
    e->state = KNOWN;
    e->known_ms = clock_mono_ms();
    loop_timer_set(g->loop, &g->check, REGISTER_NO_STREAM_MS, check, g);
    metrics_inc(&registrations, mode_resource_name(r));
    log_info("registered with the kubelet", kv("resource", mode_resource_name(r)),
             kv("socket", e->path));
}

/* True if the kubelet accepted an announcement whose reply came too late: it already watches this
 * server, which is newer than any other announcement. Announcing again would cut that stream and
 * make the devices disappear for a moment. */
static bool was_taken(struct registrar *g, enum mode_resource r)
{
    if (rpc_server_streams(g->endpoints[r].server) == 0)
        return false;
    becomes_known(g, r);
    return true;
}

static int announce(struct registrar *g, enum mode_resource r, struct error *err)
{
    struct endpoint *e = &g->endpoints[r];
    struct rpc_channel *channel;
    AUTO_STRBUF request;
    AUTO_STRBUF reply;
    strbuf_init(&request);
    strbuf_init(&reply);
    /* A new channel: one that has just failed would back off first. */
    if (rpc_channel_new(&channel, g->kubelet, err) < 0)
        return -1;
    wire_encode_register(e->name, mode_resource_name(r), &request);
    int result = rpc_channel_call(channel, WIRE_REGISTER, strbuf_str(&request), request.len,
                                  REGISTER_TIMEOUT_MS, false, &reply, err);
    rpc_channel_free(channel);
    if (result < 0)
        return error_wrap(err, "kubelet at %s: register %s", g->kubelet, mode_resource_name(r));
    becomes_known(g, r);
    return 0;
}

static int take_dir(struct registrar *g, struct error *err)
{
    AUTO_CLOSE int fd = open(g->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, errno, "device plugin directory %s", g->dir);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno == EWOULDBLOCK)
            return error_set(
                err, ERROR_CONFLICT,
                "device plugin directory %s: another cosched-device-plugin serves this node",
                g->dir);
        return error_errno(err, errno, "device plugin directory %s: lock", g->dir);
    }
    g->watch =
        inotify_add_watch(g->inotify_fd, g->dir, IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_ONLYDIR);
    if (g->watch < 0)
        return error_errno(err, errno, "device plugin directory %s: watch", g->dir);
    g->dir_fd = take_fd(&fd);
    return 0;
}

/* Lets the directory go if its path now names another one. */
static bool lost_dir(struct registrar *g)
{
    struct stat held, there;
    if (g->dir_fd < 0 || (stat(g->dir, &there) == 0 && fstat(g->dir_fd, &held) == 0 &&
                          there.st_dev == held.st_dev && there.st_ino == held.st_ino))
        return false;
    log_warn("the device plugin directory was replaced", kv("directory", g->dir));
    (void)inotify_rm_watch(g->inotify_fd, g->watch);
    close(g->dir_fd);
    g->dir_fd = -1;
    mark_stale(g);
    return true;
}

/* Advances every endpoint as far as possible and retries until all are known. If one socket cannot
 * be created, the others still continue; if the kubelet does not answer, none does. */
static void advance(void *arg)
{
    struct registrar *g = arg;
    struct error err = ERROR_INIT;
    (void)lost_dir(g);
    bool changed = false, failed = g->dir_fd < 0 && take_dir(g, &err) < 0, answers = !failed;
    for (int i = 0; i < MODE_RESOURCES && answers; i++) {
        enum mode_resource r = (enum mode_resource)i;
        struct endpoint *e = &g->endpoints[r];
        struct error why = ERROR_INIT;
        if (e->state == STALE)
            (void)build(g, r, &why);
        if (e->state == BUILT) {
            answers = was_taken(g, r) || announce(g, r, &why) == 0;
            changed = changed || answers;
        }
        if (why.code != ERROR_NONE && !failed) {
            failed = true;
            err = why;
        }
    }
    if (failed) {
        if (!str_eq(g->last_error, err.text))
            log_warn("not registered yet", kv("error", err.text));
        (void)str_format(g->last_error, sizeof g->last_error, "%s", err.text);
        loop_timer_set(g->loop, &g->retry, REGISTER_RETRY_MS, advance, g);
    } else {
        g->last_error[0] = '\0';
        loop_timer_cancel(g->loop, &g->retry);
    }
    if (changed || failed)
        g->changed(g->arg);
}

static void on_ended(void *arg, uint32_t events)
{
    struct registrar *g = arg;
    uint64_t n;
    (void)events;
    if (read(g->ended_fd, &n, sizeof n) < 0)
        return;
    bool lost = false;
    for (int r = 0; r < MODE_RESOURCES; r++) {
        struct endpoint *e = &g->endpoints[r];
        if (e->state != KNOWN || rpc_server_streams(e->server) > 0)
            continue;
        log_info("the kubelet has closed the device stream",
                 kv("resource", mode_resource_name((enum mode_resource)r)));
        e->state = STALE;
        lost = true;
    }
    if (lost)
        advance(g);
}

static void check(void *arg)
{
    struct registrar *g = arg;
    bool lost = lost_dir(g);
    for (int r = 0; r < MODE_RESOURCES; r++) {
        struct endpoint *e = &g->endpoints[r];
        if (e->state != KNOWN || clock_mono_ms() - e->known_ms < REGISTER_NO_STREAM_MS ||
            rpc_server_streams(e->server) > 0)
            continue;
        log_warn("the kubelet does not watch our devices, registering again",
                 kv("resource", mode_resource_name((enum mode_resource)r)));
        e->state = STALE;
        lost = true;
    }
    loop_timer_beat(g->loop, &g->check, REGISTER_CHECK_MS, check, g);
    if (lost)
        advance(g);
}

/* Is one of our sockets missing? Our own rebuilds delete and create sockets too, so only the
 * current state counts. */
static bool deleted(struct registrar *g, const char *name)
{
    bool missing = false;
    for (int r = 0; r < MODE_RESOURCES; r++) {
        struct endpoint *e = &g->endpoints[r];
        struct stat st;
        if (e->state == IDLE || !str_eq(e->name, name) || lstat(e->path, &st) == 0)
            continue;
        e->state = STALE;
        missing = true;
    }
    return missing;
}

static void on_inotify(void *arg, uint32_t events)
{
    struct registrar *g = arg;
    (void)events;
    union {
        struct inotify_event event; /* for alignment */
        char bytes[4096];
    } buf;
    bool act = false;
    for (;;) {
        ssize_t n = read(g->inotify_fd, buf.bytes, sizeof buf.bytes);
        if (n <= 0)
            break;
        for (size_t at = 0; at < (size_t)n;) {
            struct inotify_event ev;
            memcpy(&ev, buf.bytes + at, sizeof ev);
            const char *name = ev.len > 0 ? buf.bytes + at + sizeof ev : "";
            at += sizeof ev + ev.len;
            if (ev.wd != g->watch && !(ev.mask & IN_Q_OVERFLOW)) /* of the previous directory */
                continue;
            if (ev.mask & (IN_CREATE | IN_MOVED_TO) && str_eq(name, KUBELET_SOCKET)) {
                log_info("the kubelet has started", kv("socket", g->kubelet));
                mark_stale(g);
                act = true;
            } else if (ev.mask & IN_DELETE && deleted(g, name)) {
                act = true;
            } else if (ev.mask & IN_Q_OVERFLOW) { /* events were lost */
                mark_stale(g);
                act = true;
            }
        }
    }
    if (act)
        advance(g);
}

static int open_dir(struct registrar *g, struct error *err)
{
    g->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    g->ended_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (g->inotify_fd < 0 || g->ended_fd < 0)
        return error_errno(err, errno, "inotify, eventfd");
    if (take_dir(g, err) < 0)
        return -1;
    if (loop_watch_fd(g->loop, g->inotify_fd, EPOLLIN, on_inotify, g, err) < 0)
        return -1;
    return loop_watch_fd(g->loop, g->ended_fd, EPOLLIN, on_ended, g, err);
}

int register_new(struct registrar **out, struct loop *loop, const char *dir,
                 struct service *service, void (*changed)(void *arg), void *arg, struct error *err)
{
    struct registrar *g = mem_new(struct registrar, 1);
    struct strbuf text;
    strbuf_init(&text);
    strbuf_adds(&text, dir);
    *g = (struct registrar){.loop = loop,
                            .service = service,
                            .changed = changed,
                            .arg = arg,
                            .dir = strbuf_take(&text),
                            .dir_fd = -1,
                            .inotify_fd = -1,
                            .ended_fd = -1};
    bool fits = str_format(g->kubelet, sizeof g->kubelet, "%s/%s", dir, KUBELET_SOCKET);
    for (int r = 0; r < MODE_RESOURCES; r++) {
        struct endpoint *e = &g->endpoints[r];
        fits = str_format(e->name, sizeof e->name, "cosched-%s.sock",
                          mode_resource_slug((enum mode_resource)r)) &&
               str_format(e->path, sizeof e->path, "%s/%s", dir, e->name) && fits;
    }
    metrics_register(&registrations);
    int result = 0;
    if (!fits)
        result =
            error_set(err, ERROR_INVALID,
                      "device plugin directory %s: sockets in it would have names over %d bytes",
                      dir, RPC_PATH_MAX);
    if (result < 0 || open_dir(g, err) < 0) {
        register_free(g);
        return -1;
    }
    loop_timer_beat(loop, &g->check, REGISTER_CHECK_MS, check, g);
    *out = g;
    return 0;
}

void register_free(struct registrar *g)
{
    if (g == NULL)
        return;
    loop_timer_cancel(g->loop, &g->retry);
    loop_timer_cancel(g->loop, &g->check);
    for (int r = 0; r < MODE_RESOURCES; r++)
        rpc_server_stop(g->endpoints[r].server, REGISTER_GRACE_MS);
    if (g->inotify_fd >= 0) {
        loop_unwatch_fd(g->loop, g->inotify_fd);
        close(g->inotify_fd);
    }
    if (g->ended_fd >= 0) {
        loop_unwatch_fd(g->loop, g->ended_fd);
        close(g->ended_fd);
    }
    if (g->dir_fd >= 0)
        close(g->dir_fd);
    free(g->dir);
    free(g);
}

void register_want(struct registrar *g, uint32_t resources)
{
    bool act = false;
    for (int r = 0; r < MODE_RESOURCES; r++) {
        struct endpoint *e = &g->endpoints[r];
        bool wanted = resources & 1u << r;
        if (wanted && e->state == IDLE) {
            e->state = STALE;
            act = true;
        } else if (!wanted && e->state != IDLE) {
            rpc_server_stop(e->server, REGISTER_GRACE_MS);
            e->server = NULL;
            e->state = IDLE;
        }
    }
    if (act)
        advance(g);
}

void register_notify(struct registrar *g, enum mode_resource r)
{
    if (g->endpoints[r].server != NULL)
        rpc_server_notify(g->endpoints[r].server);
}

bool register_done(const struct registrar *g)
{
    for (int r = 0; r < MODE_RESOURCES; r++)
        if (g->endpoints[r].state != IDLE && g->endpoints[r].state != KNOWN)
            return false;
    return true;
}
