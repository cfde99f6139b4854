// SPDX-License-Identifier: Apache-2.0
/*
 * simnode - one node's parts and their order:
 *
 *   simnode_begin ─► register the Node (again until it works) ─► kubelet: checkpoint, sockets
 *                 ─► cosched-device-plugin as a child; after it ends, again in 0.2 s, … 10 s
 *
 *   simnode_restart_kubelet: sockets gone, streams closed, all state but the checkpoint lost;
 *   sockets again; pods that arrive within the next 850 ms wait that long, as a real kubelet sees
 *   the API server's pods only after its plugins had time to register again; the same at the
 *   beginning when there is a checkpoint of an earlier process
 *
 *   simnode_cut(true): no requests to the API server and no events from it; pods run on. The plugin
 *   is stopped (SIGSTOP), since it has its own client. simnode_cut(false): missed events arrive.
 */
#include "test/local/nodes/simnode.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "test/local/nodes/simnode_internal.h"

enum {
    BACKOFF_FIRST_MS = 200,
    BACKOFF_MAX_MS = 10 * 1000,
    CALM_MS = 30 * 1000,
    PLUGIN_END_MS = 3000,
    PODS_AFTER_MS = 850,
    STATUS_DELAY_MS = 20,
    ARGS_FIXED = 24,
};

/* ---- making ---- */

static int make_places(struct simnode *n, struct error *err)
{
    static const char *const parts[] = {"kubelet/device-plugins", "kubelet/pod-resources", "state",
                                        "pods"};
    char path[PODFILES_PATH];
    bool fits = str_format(n->dir, sizeof n->dir, "%s/%s", n->c.directory, n->c.spec->name) &&
                str_format(n->kubelet_dir, sizeof n->kubelet_dir, "%s/kubelet", n->dir) &&
                str_format(n->cards, sizeof n->cards, "%s/cards.json", n->dir) &&
                str_format(n->log, sizeof n->log, "%s/device-plugin.log", n->dir);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (!fits || !str_format(path, sizeof path, "%s/%s", n->dir, parts[i]))
            return error_set(err, ERROR_INVALID, "%s: the name is too long", n->c.directory);
        if (podfiles_mkdir(path, err) < 0)
            return -1;
    }
    n->files = (struct podfiles){n->dir, n->c.spec->cpus, n->c.spec->numa};
    return podfiles_prepare(&n->files, err);
}

static int write_cards(struct simnode *n, struct error *err)
{
    AUTO_STRBUF text;
    strbuf_init(&text);
    nodes_file_print_cards(&n->c.spec->cards, &text);
    return podfiles_write(n->cards, strbuf_str(&text), text.len, err);
}

static void on_changed(void *arg)
{
    struct simnode *n = arg;
    n->c.poke(n->c.arg, n);
}

int simnode_new(struct simnode **out, const struct simnode_config *c, struct error *err)
{
    struct simnode *n = mem_new(struct simnode, 1);
    n->c = *c;
    n->work_due_ns = LIFE_NEVER;
    map_init(&n->pods);
    child_init(&n->plugin);
    if (c->spec->role == NODES_FILE_KUBELET) {
        struct devices_config d = {.changed = on_changed, .arg = n};
        if (make_places(n, err) == 0 && write_cards(n, err) == 0) {
            d.kubelet_dir = n->kubelet_dir;
            (void)devices_new(&n->devices, &d, err);
        }
        if (n->devices == NULL) {
            simnode_free(n);
            return error_wrap(err, "node %s", c->spec->name);
        }
    }
    *out = n;
    return 0;
}

void simnode_free(struct simnode *n)
{
    if (n == NULL)
        return;
    for (size_t i = 0; i < n->held.len; i++) {
        podview_free(n->held.items[i].view);
        free(n->held.items[i].uid);
    }
    vec_deinit(&n->held);
    for (size_t i = 0; i < n->arrivals.len; i++)
        podview_free(n->arrivals.items[i]);
    vec_deinit(&n->arrivals);
    simnode_pods_free(n);
    devices_free(n->devices);
    child_deinit(&n->plugin);
    free(n);
}

const char *simnode_name(const struct simnode *n)
{
    return n->c.spec->name;
}

/* ---- the plugin ---- */

static void plugin_start(void *arg);

static void on_plugin_end(void *arg, uint32_t events)
{
    struct simnode *n = arg;
    int status = 0, fd = n->plugin.pidfd;
    (void)events;
    loop_unwatch_fd(n->c.loop, fd);
    if (!child_reap(&n->plugin, &status))
        return;
    if (n->ending)
        return;
    if (clock_mono_ms() - n->plugin_started_ms > CALM_MS)
        n->plugin_backoff_ms = BACKOFF_FIRST_MS;
    log_warn("the device plugin has ended and is started again", kv("node", n->c.spec->name),
             kv("status", WIFEXITED(status) ? WEXITSTATUS(status) : -1),
             kv("signal", WIFSIGNALED(status) ? WTERMSIG(status) : 0),
             kv("ms", n->plugin_backoff_ms), kv("log", n->log));
    loop_timer_set(n->c.loop, &n->plugin_again, n->plugin_backoff_ms, plugin_start, n);
    n->plugin_backoff_ms = num_min(n->plugin_backoff_ms * 2, BACKOFF_MAX_MS);
}

/* This machine's CPUs are not the node's. */
static const char *cpu_topology(const struct nodes_spec *s, struct arena *a)
{
    if (s->topology == NULL)
        return "--cpu-topology=off";
    return arena_printf(a, "--cpu-topology=%s:%s", s->topology_is_xml ? "xml" : "synthetic",
                        s->topology);
}

/* Where a plugin looks for what its machine has, and writes what it shall have: of the node, in its
 * directory. This machine may have CDI specs, an MPS daemon, a kernel module or an installed
 * library of its own, which know nothing of simulated cards. */
static const struct {
    const char *option, *name;
} machine_places[] = {{"cgroup-root", "cgroup"},
                      {"cgpu-dir", "cgpu_km"},
                      {"mps-pipe-dir", "mps"},
                      {"mps-log-dir", "mps-log"},
                      {"mps-shm-dir", "mps-shm"},
                      {"isolation-dir", "isolation"},
                      {"isolation-library", "libcosched-gpu.so"},
                      {"cuda-library", "libcuda.so.1"},
                      {"cdi-dir", "cdi"}};

static void plugin_start(void *arg)
{
    struct simnode *n = arg;
    const struct nodes_spec *s = n->c.spec;
    struct error err = ERROR_INIT;
    struct arena a;
    size_t k = 0;
    if (n->ending)
        return;
    arena_init(&a, 0);
    const char **argv = arena_new(&a, const char *, ARGS_FIXED + NODES_FILE_ARGS_MAX + 1);
    argv[k++] = n->c.plugin_binary;
    argv[k++] = arena_printf(&a, "--node-name=%s", s->name);
    argv[k++] = s->cards.cards_len > 0 ? "--backend=sim" : "--backend=none";
    argv[k++] = arena_printf(&a, "--sim-file=%s", n->cards);
    argv[k++] = "--scan-interval=500ms";
    argv[k++] = "--recovery-hold=500ms"; /* a fault that ends is seen to end */
    argv[k++] = arena_printf(&a, "--kubelet-dir=%s", n->kubelet_dir);
    argv[k++] = arena_printf(&a, "--state-dir=%s/state", n->dir);
    argv[k++] =
        "--http-address=127.0.0.1"; /* several nodes on one machine: no client outside connects */
    argv[k++] = "--http-port=0";
    argv[k++] = cpu_topology(s, &a);
    for (size_t i = 0; i < sizeof machine_places / sizeof *machine_places; i++)
        argv[k++] = arena_printf(&a, "--%s=%s/%s", machine_places[i].option, n->dir,
                                 machine_places[i].name);
    if (n->c.kubeconfig_path != NULL)
        argv[k++] = arena_printf(&a, "--kubeconfig=%s", n->c.kubeconfig_path);
    if (s->isolation != NULL)
        argv[k++] = arena_printf(&a, "--isolation=%s", s->isolation);
    for (size_t i = 0; s->plugin_args[i] != NULL; i++)
        argv[k++] = s->plugin_args[i];
    n->plugin_started_ms = clock_mono_ms();
    if (child_start(&n->plugin, argv, n->log, &err) < 0 ||
        loop_watch_fd(n->c.loop, n->plugin.pidfd, EPOLLIN, on_plugin_end, n, &err) < 0) {
        log_error("the device plugin cannot be started", kv("node", s->name),
                  kv("error", err.text));
        child_stop(&n->plugin, 0);
        loop_timer_set(n->c.loop, &n->plugin_again, BACKOFF_MAX_MS, plugin_start, n);
    } else if (n->cut) {
        child_signal(&n->plugin, SIGSTOP);
    }
    arena_deinit(&a);
}

void simnode_kill_plugin(struct simnode *n)
{
    child_signal(&n->plugin, SIGCONT);
    child_signal(&n->plugin, SIGTERM);
}

/* ---- beginning and end ---- */

static void on_started(void *arg);

void simnode_begin(struct simnode *n)
{
    simnode_register(n);
}

void simnode_start_kubelet(struct simnode *n)
{
    struct error err = ERROR_INIT;
    if (n->serving) /* registered once more */
        return;
    if (devices_start(n->devices, &err) < 0) {
        log_error("the kubelet's sockets cannot be made", kv("node", n->c.spec->name),
                  kv("error", err.text));
        return;
    }
    n->serving = true;
    n->plugin_backoff_ms = BACKOFF_FIRST_MS;
    if (!devices_is_fresh(n->devices)) {
        /* It continues the state of an earlier process: resources registered then are 0 until
         * they are registered again, so that schedulers do not count them. */
        n->starting = true;
        loop_timer_set(n->c.loop, &n->started, PODS_AFTER_MS, on_started, n);
        simnode_send_status(n);
    }
    if (n->c.spec->plugin)
        plugin_start(n);
}

void simnode_end(struct simnode *n)
{
    n->ending = true;
    loop_timer_cancel(n->c.loop, &n->work);
    loop_timer_cancel(n->c.loop, &n->register_);
    loop_timer_cancel(n->c.loop, &n->status);
    loop_timer_cancel(n->c.loop, &n->lease);
    loop_timer_cancel(n->c.loop, &n->plugin_again);
    loop_timer_cancel(n->c.loop, &n->started);
    loop_timer_cancel(n->c.loop, &n->turn);
    if (n->plugin.pidfd >= 0)
        loop_unwatch_fd(n->c.loop, n->plugin.pidfd);
    child_stop(&n->plugin, PLUGIN_END_MS);
    if (n->devices != NULL)
        devices_stop(n->devices);
}

/* ---- arriving pods ---- */

static bool is_deaf(const struct simnode *n)
{
    return n->cut || n->starting;
}

/* In the order of arrival, as from a watch. */
static void hold(struct simnode *n, struct podview *v, const char *uid)
{
    struct simnode_held one = {v, mem_strdup(uid)};
    vec_push(&n->held, one);
}

/* Admits all pods that have arrived, in random order. */
static void take_turns(void *arg)
{
    struct simnode *n = arg;
    while (n->arrivals.len > 0 && !n->ending) {
        size_t i = (size_t)clock_jitter((int64_t)n->arrivals.len);
        struct podview *v = n->arrivals.items[i];
        vec_remove_swap(&n->arrivals, i);
        simnode_accept(n, v);
    }
}

/* The place of a pod that waits for its turn, or the length. */
static size_t arrival_of(const struct simnode *n, const char *uid)
{
    size_t i = 0;
    while (i < n->arrivals.len && !str_eq(n->arrivals.items[i]->model->uid, uid))
        i++;
    return i;
}

static void arrive(struct simnode *n, struct podview *v)
{
    size_t i = arrival_of(n, v->model->uid);
    if (i < n->arrivals.len) {
        podview_free(n->arrivals.items[i]);
        n->arrivals.items[i] = v;
    } else if (n->c.spec->reorder_ms == 0 || map_get(&n->pods, v->model->uid) != NULL) {
        simnode_accept(n, v);
    } else {
        if (n->arrivals.len == 0)
            loop_timer_set(n->c.loop, &n->turn, n->c.spec->reorder_ms, take_turns, n);
        vec_push(&n->arrivals, v);
    }
}

static void leave(struct simnode *n, const char *uid)
{
    size_t i = arrival_of(n, uid);
    struct podview *waiting = NULL; /* uid may be its own */
    if (i < n->arrivals.len) {
        waiting = n->arrivals.items[i];
        vec_remove_swap(&n->arrivals, i);
    }
    simnode_drop(n, uid);
    podview_free(waiting);
}

static void listen_again(struct simnode *n)
{
    if (is_deaf(n))
        return;
    for (size_t i = 0; i < n->held.len; i++) {
        if (n->held.items[i].view != NULL)
            arrive(n, n->held.items[i].view);
        else
            leave(n, n->held.items[i].uid);
        free(n->held.items[i].uid);
    }
    n->held.len = 0;
}

void simnode_put(struct simnode *n, struct podview *v)
{
    if (is_deaf(n))
        hold(n, v, NULL);
    else
        arrive(n, v);
}

void simnode_gone(struct simnode *n, const char *uid)
{
    if (is_deaf(n))
        hold(n, NULL, uid);
    else
        leave(n, uid);
}

struct known {
    struct podview **views;
    size_t len;
};

static bool is_among(void *arg, const char *uid)
{
    const struct known *k = arg;
    for (size_t i = 0; i < k->len; i++)
        if (str_eq(k->views[i]->model->uid, uid))
            return true;
    return false;
}

static int by_creation(const void *a, const void *b)
{
    const struct podview *const *x = a, *const *y = b;
    int64_t d = (*x)->model->created_ns - (*y)->model->created_ns;
    return d < 0 ? -1 : d > 0;
}

/* Pods that were reported but not admitted and are gone now: no event will follow. */
static void forget_waiting(struct simnode *n, struct known *known)
{
    for (size_t i = 0; i < n->held.len; i++) {
        struct simnode_held *h = &n->held.items[i];
        if (h->view == NULL || is_among(known, h->view->model->uid))
            continue;
        h->uid = mem_strdup(h->view->model->uid);
        podview_free(h->view);
        h->view = NULL;
    }
    for (size_t i = n->arrivals.len; i-- > 0;)
        if (!is_among(known, n->arrivals.items[i]->model->uid))
            simnode_gone(n, n->arrivals.items[i]->model->uid);
}

void simnode_reset(struct simnode *n, struct podview **views, size_t len)
{
    struct known known = {views, len};
    const char *key;
    void *value;
    forget_waiting(n, &known);
    for (size_t i = 0; map_next(&n->pods, &i, &key, &value);)
        if (!is_among(&known, key))
            simnode_gone(n, key);
    if (!n->reset_seen && n->devices != NULL)
        devices_keep_only(n->devices, is_among, &known);
    n->reset_seen = true;
    if (len > 1)
        qsort(views, len, sizeof views[0], by_creation);
    for (size_t i = 0; i < len; i++) {
        simnode_put(n, views[i]);
        views[i] = NULL;
    }
}

void simnode_on_devices(struct simnode *n)
{
    if (!n->ending)
        loop_timer_set(n->c.loop, &n->status, STATUS_DELAY_MS, simnode_send_status, n);
}

/* ---- faults ---- */

static void on_started(void *arg)
{
    struct simnode *n = arg;
    n->starting = false;
    listen_again(n);
}

void simnode_restart_kubelet(struct simnode *n)
{
    struct error err = ERROR_INIT;
    if (!n->serving || n->ending)
        return;
    log_info("kubelet restart", kv("node", n->c.spec->name));
    n->starting = true;
    devices_stop(n->devices);
    if (devices_start(n->devices, &err) < 0)
        log_error("the kubelet does not start again", kv("node", n->c.spec->name),
                  kv("error", err.text));
    n->registered = false;
    simnode_register(n);
    loop_timer_set(n->c.loop, &n->started, PODS_AFTER_MS, on_started, n);
}

void simnode_cut(struct simnode *n, bool cut)
{
    if (n->cut == cut || n->ending)
        return;
    log_info(cut ? "node cut off" : "node connected", kv("node", n->c.spec->name));
    n->cut = cut;
    child_signal(&n->plugin, cut ? SIGSTOP : SIGCONT);
    if (cut)
        return;
    if (!n->registered)
        simnode_register(n);
    else if (n->c.spec->role != NODES_FILE_HOLLOW)
        simnode_renew(n);
    simnode_on_devices(n);
    listen_again(n);
    simnode_work(n);
}

static struct gpu_card *card_of(const struct simnode *n, int card)
{
    struct gpu_inventory *inv = &n->c.spec->cards;
    for (size_t i = 0; i < inv->cards_len; i++)
        if (inv->cards[i].index == card)
            return &inv->cards[i];
    return NULL;
}

int simnode_check_card(const struct simnode *n, int card, struct error *err)
{
    const struct nodes_spec *spec = n->c.spec;
    if (card_of(n, card) == NULL)
        return error_set(err, ERROR_NOT_FOUND, "node %s has no card %d", spec->name, card);
    if (spec->role != NODES_FILE_KUBELET)
        return error_set(err, ERROR_NOT_FOUND,
                         "node %s has no kubelet that would see a card fall ill", spec->name);
    return 0;
}

int simnode_fail_card(struct simnode *n, int card, bool sick, struct error *err)
{
    if (simnode_check_card(n, card, err) < 0)
        return -1;
    card_of(n, card)->health = sick ? GPU_HEALTH_SICK : GPU_HEALTH_OK;
    return write_cards(n, err);
}
