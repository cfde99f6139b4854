// SPDX-License-Identifier: Apache-2.0
/*
 * monitor_audit - finds pods that have more than their share, and containers whose device time is
 * not measured. Nothing that a tenant writes decides. A process belongs to the pod that its cgroup
 * names, its memory and time are what the driver counts, and the share is what the pod was granted.
 * The signs:
 *
 *   - The driver counts more memory for the pod's processes on a card than its grant, or on all
 *     cards more than it asked for. The driver also counts its own overhead for each process: a
 *     context, module code, stacks. Only an empty context can be charged, so a legitimate program
 *     that fills its share exceeds it. AUDIT_DRIVER_MIB is allowed for each process, less what is
 *     already charged, but on a card no more than the share again, or AUDIT_DRIVER_ALL_MIB if that
 *     is more: any number of processes is free. In mode mps this is the only sign.
 *   - A process gets a context only through a call that our library intercepts, and then has a slot
 *     in its container's region. If the driver lists more processes of a pod than there are live
 *     processes with a slot, some are not limited to the share (static and musl binaries, direct
 *     users of the device file, a volume over our mounts).
 *   - In mode core_mem the driver measures more device time of a pod on a card than its percentage,
 *     over a long window. A program with the library is held to it.
 *   - A pod that asked for no GPU, or for other whole cards, has memory on a card beyond
 *     AUDIT_DRIVER_MIB for each process: its image or its environment named the card to the
 *     container runtime. Such pods are judged whatever the mode and its engine; tools that only
 *     look at cards stay below.
 *   - The region cannot be read: no process in it counts as confined. Or it was made larger, or a
 *     program: that was undone, and is told at once, because nobody does it by chance.
 *
 * So a tenant's region can add to the findings and never take from the driver's figures (it can
 * claim processes with slots that have none: then memory and time still tell). The regions are read
 * by a worker: a scan asks for a look, and its pods are judged when the look is complete. While the
 * worker is stuck the driver's figures alone go on being judged.
 *
 * One source may not yet see a process that just started or ended, so a finding counts only after
 * several in a row. With --enforce=evict the pod is then evicted, repeatedly while it continues.
 */
#include "device-plugin/monitor/monitor_internal.h"

#include <string.h>

#include "device-plugin/isolation/shares_metrics.h"
#include "lib/base/log.h"
#include "lib/base/num.h"
#include "lib/base/str.h"

enum {
    AUDIT_LOOKS = 3,
    AUDIT_DRIVER_MIB = 512,
    AUDIT_DRIVER_ALL_MIB = 2048,
    AUDIT_STOP_MS = 1000,
    AUDIT_WINDOW_S = 30,      /* of device time */
    AUDIT_TIME_SLACK = 5,     /* points, and a quarter of the percentage: the driver samples */
    AUDIT_TIME_GAP_MS = 5000, /* a longer pause between measurements begins a new window */
};
static const int64_t ns_per_ms = 1000000, ns_per_s = 1000000000;

/* ---- what the regions report ---- */

static void add(void *arg, const struct shares_scan *l)
{
    const struct monitor *m = arg;
    struct monitor_pod *p = monitor_pod_of(
        m, &(struct shares_folder){.name = l->folder, .uid = l->uid, .ns = l->ns, .pod = l->pod});
    if (p == NULL)
        return;
    struct monitor_audit *a = &p->audit;
    int32_t card = monitor_card_of(m, l->limit->uuid);
    int64_t context_mib = (int64_t)(l->limit->context_bytes >> 20);
    if (card >= 0 && card < GPU_CARDS_MAX)
        a->context_mib[card] =
            a->context_mib[card] >= 0 ? num_min(a->context_mib[card], context_mib) : context_mib;
    a->known = true;
    a->confined += l->card == 0 ? l->processes : 0;
    a->unmeasured = a->unmeasured || (l->unmeasured && l->processes > 0);
    a->changed = a->changed || l->changed;
    if (l->broken != NULL)
        (void)str_format(a->broken, sizeof a->broken,
                         "the region that container %s shares with the node does not count: %s",
                         l->container, l->broken);
}

static void read_look(struct monitor *m)
{
    for (size_t i = 0; i < m->pods.len; i++) {
        struct monitor_audit *a = &m->pods.items[i]->audit;
        a->known = a->unmeasured = a->changed = false;
        a->confined = 0;
        a->broken[0] = '\0';
        for (size_t k = 0; k < GPU_CARDS_MAX; k++)
            a->context_mib[k] = -1;
    }
    shares_worker_each(m->worker, add, m);
    for (size_t i = 0; i < m->pods.len; i++) {
        struct monitor_pod *p = m->pods.items[i];
        bool library = m->usage_known && p->asked_mib > 0 && (m->confined || p->audit.known);
        p->audit.loose_now = library ? num_max(p->usage.processes - p->audit.confined, 0) : 0;
    }
}

/* ---- what the driver reports ---- */

/* INT64_MAX: the whole card. A pod whose grant is not known may have all that it asked for. */
static int64_t share_mib(const struct monitor_pod *p, int32_t card)
{
    int64_t gib = 0, mib = 0;
    if (!p->asks)
        return 0; /* whatever its annotations say */
    if (p->asked_mib == 0 && p->grant->group_len == 0)
        return INT64_MAX; /* another device plugin gave it its cards */
    for (size_t i = 0; i < p->grant->group_len; i++)
        if (p->grant->group[i] == card)
            return INT64_MAX;
    if (p->grant->shares_len == 0)
        return p->asked_mib;
    for (size_t i = 0; i < p->grant->shares_len; i++)
        if (p->grant->shares[i].card == card)
            gib = num_add_sat(gib, p->grant->shares[i].gib);
    return num_mul(gib, 1024, &mib) ? num_min(mib, p->asked_mib) : p->asked_mib;
}

static void compare(const struct monitor *m, const struct scan_message *l, struct monitor_pod *p)
{
    struct monitor_audit *a = &p->audit;
    struct {
        int64_t mib, processes;
    } uses[GPU_CARDS_MAX] = {{0}};
    int64_t total = 0, total_allowed = p->asked_mib, worst = 0;
    a->beyond_mib = 0;
    if (p->asked_mib > 0 && !(m->limited || a->known))
        return;
    for (size_t i = 0; i < l->processes_len; i++) {
        const struct usage_process *x = &l->processes[i];
        if (x->card < 0 || x->card >= GPU_CARDS_MAX || !str_eq(x->uid, p->pod->uid))
            continue;
        uses[x->card].mib = num_add_sat(uses[x->card].mib, num_max(x->mib, 0));
        uses[x->card].processes++;
    }
    for (int32_t card = 0; card < GPU_CARDS_MAX; card++) {
        int64_t mib = uses[card].mib, processes = uses[card].processes;
        int64_t share = processes > 0 ? share_mib(p, card) : INT64_MAX;
        if (share == INT64_MAX)
            continue;
        int64_t charged = num_max(a->context_mib[card], 0);
        int64_t allowed = num_min(processes * num_max(AUDIT_DRIVER_MIB - charged, 0),
                                  num_max(share, AUDIT_DRIVER_ALL_MIB));
        total = num_add_sat(total, mib);
        total_allowed = num_add_sat(total_allowed, allowed);
        if (mib <= num_add_sat(share, allowed))
            continue;
        a->beyond_mib = num_add_sat(a->beyond_mib, mib - share);
        if (mib - share <= worst)
            continue;
        worst = mib - share;
        (void)str_format(a->beyond, sizeof a->beyond,
                         "the driver counts %lld MiB of card %d for a pod that may have %lld",
                         (long long)mib, card, (long long)share);
    }
    if (a->beyond_mib > 0 || total <= total_allowed)
        return;
    a->beyond_mib = total - p->asked_mib;
    (void)str_format(a->beyond, sizeof a->beyond,
                     "the driver counts %lld MiB for a pod that may have %lld", (long long)total,
                     (long long)p->asked_mib);
}

/* What the pod may have of the card's time; 100: it is not limited. On a card that it was not given
 * it may have none. */
static int64_t percent_of(const struct monitor_pod *p, int32_t card)
{
    int64_t percent = 0;
    bool given = false, limited = false;
    for (size_t i = 0; i < p->grant->shares_len; i++) {
        const struct grant_share *x = &p->grant->shares[i];
        limited = limited || x->percent > 0;
        given = given || x->card == card;
        percent = num_add_sat(percent, x->card == card ? x->percent : 0);
    }
    return limited && (percent > 0 || !given) ? num_min(percent, 100) : 100;
}

static void end_window(struct monitor_pod *p)
{
    struct monitor_audit *a = &p->audit;
    int64_t elapsed = a->window.seen_ns - a->window.began_ns;
    a->time_over = false;
    for (int32_t card = 0; card < GPU_CARDS_MAX && !a->time_over; card++) {
        int64_t may = percent_of(p, card), used = a->window.busy_ns[card] / (elapsed / 100);
        a->time_over = may < 100 && used > may + may / 4 + AUDIT_TIME_SLACK;
        if (a->time_over)
            (void)str_format(
                a->time_text, sizeof a->time_text,
                "the driver measures %lld percent of card %d's time for a pod that may have %lld",
                (long long)num_min(used, 100), card, (long long)may);
    }
    a->window =
        (struct monitor_window){.began_ns = a->window.seen_ns, .seen_ns = a->window.seen_ns};
}

void monitor_audit_time(struct monitor *m, const struct scan_message *l)
{
    for (size_t i = 0; i < m->pods.len; i++) {
        struct monitor_window *w = &m->pods.items[i]->audit.window;
        bool begins = w->began_ns == 0 || l->at_ns - w->seen_ns > AUDIT_TIME_GAP_MS * ns_per_ms;
        if (m->pods.items[i]->grant->shares_len == 0)
            continue;
        if (begins) {
            *w = (struct monitor_window){.began_ns = l->at_ns};
            m->pods.items[i]->audit.time_over = false;
        }
        w->seen_ns = l->at_ns;
        for (size_t k = 0; k < l->busy_len && !begins; k++) {
            const struct usage_process *x = &l->busy[k].process;
            if (x->card >= 0 && x->card < GPU_CARDS_MAX &&
                str_eq(x->uid, m->pods.items[i]->pod->uid))
                w->busy_ns[x->card] = num_add_sat(w->busy_ns[x->card], num_max(l->busy[k].ns, 0));
        }
        if (w->seen_ns - w->began_ns >= AUDIT_WINDOW_S * ns_per_s)
            end_window(m->pods.items[i]);
    }
}

/* Another mode, or another engine, measures no time: what it last said counts no more. */
static bool has_time_over(const struct monitor *m, const struct monitor_pod *p)
{
    return p->audit.time_over && m->mode == GPU_MODE_CORE_MEM && m->confined;
}

/* ---- the verdict ---- */

static void tell_uninvited(struct monitor *m, const struct monitor_pod *p, bool evict)
{
    char text[1024];
    (void)str_format(text, sizeof text,
                     "%s: it asked for %s, and its image, environment or mounts give it the card. "
                     "Other pods on the card may run out of memory%s",
                     p->audit.beyond, p->asks ? "other cards" : "no GPU",
                     evict ? ". The pod is evicted" : "");
    log_warn(text, kv("pod", p->pod->key));
    m->config.hooks.pod_event(m->config.hooks.arg, p->pod, true, "GpuIsolationBypassed", text);
}

static void tell(struct monitor *m, const struct monitor_pod *p, bool evict)
{
    const struct monitor_audit *a = &p->audit;
    char text[1024], which[360] = "";
    if (p->asked_mib == 0 && a->beyond_mib > 0) {
        tell_uninvited(m, p, evict);
        return;
    }
    if (has_time_over(m, p))
        (void)str_format(which, sizeof which, "%s%s", a->time_text, a->loose > 0 ? "; " : "");
    if (a->loose > 0)
        (void)str_format(
            which + strlen(which), sizeof which - strlen(which),
            "%lld of its %lld processes on the GPU are not held to its share of %lld MiB",
            (long long)a->loose, (long long)p->usage.processes, (long long)p->asked_mib);
    (void)str_format(
        text, sizeof text,
        "%s%s%s%s%s. Not held are %s; other pods on the card may run out of memory%s", which,
        which[0] != '\0' && a->beyond_mib > 0 ? "; " : "", a->beyond_mib > 0 ? a->beyond : "",
        (which[0] != '\0' || a->beyond_mib > 0) && a->broken[0] != '\0' ? "; " : "", a->broken,
        m->confined || a->known
            ? "processes that do not load shared libraries as others do (static or musl binaries, or direct use of the device) and containers that cover our mounts or change their region"
            : "clients of MPS that change their own limits, and processes that do not use it",
        evict ? ". The pod is evicted" : "");
    log_warn(text, kv("pod", p->pod->key));
    m->config.hooks.pod_event(m->config.hooks.arg, p->pod, true, "GpuIsolationBypassed", text);
}

static void judge(struct monitor *m, struct monitor_pod *p)
{
    struct monitor_audit *a = &p->audit;
    bool now = a->loose_now > 0 || a->beyond_mib > 0 || has_time_over(m, p) || a->broken[0] != '\0';
    a->looks = !now ? 0 : a->changed ? num_max(a->looks + 1, AUDIT_LOOKS) : a->looks + 1;
    a->changed = false; /* undone: known once */
    a->loose = a->looks >= AUDIT_LOOKS ? a->loose_now : 0;
    a->over_mib = a->looks >= AUDIT_LOOKS ? a->beyond_mib : 0;
    if (a->looks < AUDIT_LOOKS) {
        a->told = a->told && now;
        return;
    }
    bool evict = m->config.hooks.evict != NULL && a->looks % AUDIT_LOOKS == 0;
    if (!a->told)
        tell(m, p, evict);
    a->told = true;
    if (evict)
        m->config.hooks.evict(m->config.hooks.arg, p->pod);
}

/* New containers and a restarted plugin have no measurements yet. */
static void judge_time(struct monitor *m, struct monitor_pod *p)
{
    static const char text[] =
        "the driver does not tell how much of the card's time its processes use: launches are counted instead, by an estimate of what each "
        "takes, and it may get more or less than its percentage";
    struct monitor_audit *a = &p->audit;
    a->blind_looks = a->unmeasured ? a->blind_looks + (a->blind_looks < AUDIT_LOOKS) : 0;
    a->blind_told = a->blind_told && a->unmeasured;
    if (a->blind_looks < AUDIT_LOOKS || a->blind_told)
        return;
    a->blind_told = true;
    log_warn(text, kv("pod", p->pod->key));
    m->config.hooks.pod_event(m->config.hooks.arg, p->pod, true, "GpuTimeUnmeasured", text);
}

/* Without a fresh look only the driver's figures count: one finding in a region is not several. */
static void judge_all(struct monitor *m, bool fresh)
{
    for (size_t i = 0; i < m->pods.len; i++) {
        if (fresh || m->pods.items[i]->audit.beyond_mib > 0 || has_time_over(m, m->pods.items[i]))
            judge(m, m->pods.items[i]);
        if (fresh)
            judge_time(m, m->pods.items[i]);
    }
}

void monitor_audit_scan(struct monitor *m, const struct scan_message *l)
{
    for (size_t i = 0; i < m->pods.len; i++)
        compare(m, l, m->pods.items[i]);
    if (m->worker == NULL || !shares_worker_ask(m->worker))
        judge_all(m, m->worker == NULL);
}

/* ---- the worker ---- */

static void on_looked(void *arg) /* on its thread */
{
    struct monitor *m = arg;
    (void)mailbox_post(m->looks, m);
}

static void on_look(void *arg, void *msg)
{
    struct monitor *m = arg;
    (void)msg;
    pthread_mutex_lock(&m->lock);
    read_look(m);
    judge_all(m, true);
    pthread_mutex_unlock(&m->lock);
}

static void dispose(void *msg)
{
    (void)msg;
}

int monitor_audit_init(struct monitor *m, struct error *err)
{
    if (m->config.hooks.shares == NULL)
        return 0;
    struct shares_worker_config worker = {
        .base = m->config.hooks.shares, .looked = on_looked, .arg = m};
    if (mailbox_new(&m->looks, m->config.loop, 2, on_look, dispose, m, err) < 0 ||
        shares_worker_start(&m->worker, &worker, err) < 0)
        return -1;
    shares_metrics_init(m->worker);
    return 0;
}

bool monitor_stop(struct monitor *m)
{
    if (m->worker != NULL && !m->worker_ended) {
        mailbox_close(m->looks);
        m->worker_ended = shares_worker_stop(m->worker, AUDIT_STOP_MS);
    }
    return m->worker == NULL || m->worker_ended;
}

void monitor_settle(struct monitor *m)
{
    shares_worker_settle(m->worker);
}
