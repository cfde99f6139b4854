// SPDX-License-Identifier: Apache-2.0
/*
 * pinner_groups - finds the cgroups of a pod's containers, writes their CPUs and watches for
 * changes.
 *
 * Inotify reports that a pod's group appears (in the six directories the kubelet uses), that a
 * container's group appears in it, and that a container's cpuset.cpus is written. Each watch is set
 * before the directory is listed, so nothing is missed in between. The pinner also checks
 * everything every second, so a lost event costs a second, not a container.
 *
 * The pod's status tells which container a group belongs to, but only a second or so after the
 * container's start. The mounts of a process in the group tell it before the container's program
 * runs (podmounts); if the two differ, the status wins. Until then the group gets the CPUs of all
 * of the pod's containers, never another pod's. The sandbox and debug containers stay there.
 */
#include "device-plugin/cpu/pinner_internal.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "device-plugin/cpu/podmounts.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"

enum {
    SETTLE_MS = 1000,
    BOXES_MAX = 1024,
    EVENT_BYTES = 16 * 1024,
    TRIES_MAX = 100,
    LOOKS_HURRIED = 25, /* half a second: the runtime has set up the mounts by then */
    LOOKS_MAX = 40,     /* then at each tick: the status knows it by then, or it is the sandbox */
    PROCS_BYTES_MAX = 1024 * 1024,
};

static void unwatch(struct pinner *p, int *wd)
{
    if (*wd >= 0)
        (void)inotify_rm_watch(p->inotify, *wd);
    *wd = -1;
}

static int watch(struct pinner *p, const char *path, const char *name, uint32_t mask)
{
    char full[CGROUPS_PATH_SIZE];
    return cgroups_full(&p->cgroups, path, name, full) ? inotify_add_watch(p->inotify, full, mask)
                                                       : -1;
}

void pinner_groups_scan(struct pinner *p)
{
    char path[CGROUPS_PATH_SIZE];
    for (unsigned i = 0; i < CGROUPS_PLACES; i++)
        if (p->class_wd[i] < 0 && cgroups_path_class(i, p->cgroups.root, path))
            p->class_wd[i] = watch(p, path, NULL, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
}

/* wd -1: all. */
static void mark(struct pinner *p, int wd, bool ended)
{
    const char *key;
    void *value;
    bool class = wd < 0;
    for (unsigned i = 0; i < CGROUPS_PLACES; i++)
        if (p->class_wd[i] == wd) {
            class = true;
            if (ended)
                p->class_wd[i] = -1;
        }
    for (size_t i = 0; map_next(&p->pods, &i, &key, &value);) {
        struct pinner_pod *x = value;
        bool mine = x->wd == wd || (class && (x->dir[0] == '\0' || wd < 0));
        if (x->wd == wd && ended)
            x->wd = -1;
        for (struct pinner_box *b = x->boxes; b != NULL; b = b->next) {
            mine = mine || b->wd == wd;
            if (b->wd == wd && ended)
                b->wd = -1;
        }
        x->dirty = x->dirty || mine;
    }
}

static void on_inotify(void *arg, uint32_t events)
{
    struct pinner *p = arg;
    union {
        struct inotify_event first;
        char bytes[EVENT_BYTES];
    } buffer;
    (void)events;
    ssize_t n = read(p->inotify, buffer.bytes, sizeof buffer.bytes);
    if (n <= 0)
        return;
    pthread_mutex_lock(&p->lock);
    for (size_t at = 0; at + sizeof(struct inotify_event) <= (size_t)n;) {
        struct inotify_event e;
        memcpy(&e, buffer.bytes + at, sizeof e);
        mark(p, (e.mask & IN_Q_OVERFLOW) != 0 ? -1 : e.wd, (e.mask & IN_IGNORED) != 0);
        at += sizeof e + e.len;
    }
    pinner_groups_scan(p); /* a directory that just appeared */
    pthread_mutex_unlock(&p->lock);
    pinner_hurry(p, 0);
}

int pinner_groups_start(struct pinner *p, struct error *err)
{
    for (unsigned i = 0; i < CGROUPS_PLACES; i++)
        p->class_wd[i] = -1;
    p->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (p->inotify < 0)
        return error_errno(err, errno, "inotify");
    return loop_watch_fd(p->config.loop, p->inotify, EPOLLIN, on_inotify, p, err);
}

void pinner_groups_stop(struct pinner *p)
{
    if (p->inotify < 0)
        return;
    loop_unwatch_fd(p->config.loop, p->inotify);
    close(p->inotify);
}

static void forget_boxes(struct pinner *p, struct pinner_pod *x, bool only_unseen)
{
    for (struct pinner_box **at = &x->boxes, *b; (b = *at) != NULL;) {
        if (only_unseen && b->seen) {
            at = &b->next;
            continue;
        }
        *at = b->next;
        unwatch(p, &b->wd);
        free(b);
    }
}

void pinner_groups_forget(struct pinner *p, struct pinner_pod *x)
{
    forget_boxes(p, x, false);
    unwatch(p, &x->wd);
    x->dir[0] = '\0';
}

/* "": not in the status. */
static const char *id_of(const struct pinner_pod *x, size_t container)
{
    return cgroups_path_id(pod_container(x->pod, container)->id);
}

static uint32_t container_of_id(const struct pinner_pod *x, const char *id)
{
    for (size_t i = 0; i < pod_container_count(x->pod); i++)
        if (str_eq(id_of(x, i), id))
            return (uint32_t)i;
    return PINNER_ANY;
}

static uint32_t container_of_name(const struct pinner_pod *x, const char *name)
{
    for (size_t i = 0; i < pod_container_count(x->pod); i++)
        if (str_eq(pod_container(x->pod, i)->name, name))
            return (uint32_t)i;
    return PINNER_ANY;
}

/* By the mounts of the group's first process. */
static uint32_t container_of_mounts(const struct pinner *p, const struct pinner_pod *x,
                                    const struct pinner_box *b)
{
    char path[CGROUPS_PATH_SIZE], name[PODMOUNTS_NAME_SIZE];
    AUTO_STRBUF text;
    int64_t pid;
    strbuf_init(&text);
    if (!cgroups_full(&p->cgroups, b->path, "cgroup.procs", path) ||
        file_read(path, PROCS_BYTES_MAX, &text, NULL) < 0 ||
        num_parse(strbuf_str(&text), strcspn(strbuf_str(&text), "\n"), &pid, NULL) < 0 ||
        !str_format(path, sizeof path, "%s/%lld/mountinfo", p->config.proc, (long long)pid))
        return PINNER_ANY;
    strbuf_reset(&text);
    if (file_read(path, PODMOUNTS_BYTES_MAX, &text, NULL) < 0 ||
        !podmounts_parse(strbuf_str(&text), text.len, x->pod->uid, name))
        return PINNER_ANY;
    return container_of_name(x, name);
}

/* Only if the pod has several containers. */
static void identify(const struct pinner *p, struct pinner_pod *x, struct pinner_box *b)
{
    if (b->container != PINNER_ANY || pod_container_count(x->pod) < 2 || p->config.proc == NULL)
        return;
    if (b->mounted == PINNER_ANY && b->looks < LOOKS_MAX) {
        b->looks++;
        b->mounted = container_of_mounts(p, x, b);
        x->hurry = x->hurry || (b->mounted == PINNER_ANY && b->looks < LOOKS_HURRIED);
    }
    b->container = b->mounted;
}

static struct pinner_box *box_of(struct pinner_pod *x, const char *name, const char *id)
{
    for (struct pinner_box *b = x->boxes; b != NULL; b = b->next)
        if (str_eq(b->id, id))
            return b;
    struct pinner_box *b = mem_new(struct pinner_box, 1);
    b->wd = -1;
    b->mounted = PINNER_ANY;
    (void)str_format(b->id, sizeof b->id, "%s", id);
    if (!str_format(b->path, sizeof b->path, "%s/%s", x->dir, name)) {
        free(b);
        return NULL;
    }
    b->next = x->boxes;
    x->boxes = b;
    return b;
}

/* Lists the existing groups. false: the pod has none. */
static bool list(struct pinner *p, struct pinner_pod *x)
{
    char full[CGROUPS_PATH_SIZE], id[CGROUPS_ID_SIZE];
    if (x->dir[0] == '\0' && !cgroups_find_pod(&p->cgroups, pinner_group_uid(x->pod), x->dir)) {
        x->dir[0] = '\0';
        return false;
    }
    if (x->wd < 0)
        x->wd = watch(p, x->dir, NULL, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
    DIR *d = cgroups_full(&p->cgroups, x->dir, NULL, full) ? opendir(full) : NULL;
    if (d == NULL) {
        pinner_groups_forget(p, x);
        return false;
    }
    size_t n = 0;
    for (struct pinner_box *b = x->boxes; b != NULL; b = b->next)
        b->seen = false;
    for (struct dirent *e; (e = readdir(d)) != NULL && n < BOXES_MAX;) {
        if ((e->d_type != DT_DIR && e->d_type != DT_UNKNOWN) ||
            !cgroups_path_container(e->d_name, id))
            continue;
        struct pinner_box *b = box_of(x, e->d_name, id);
        if (b == NULL)
            continue;
        b->seen = true;
        b->container = container_of_id(x, id);
        n++;
    }
    closedir(d);
    forget_boxes(p, x, true);
    return true;
}

static const char *name_of(const struct pinner_pod *x, const struct pinner_box *b)
{
    return b->container == PINNER_ANY ? "?" : pod_container(x->pod, b->container)->name;
}

static void count_write(struct pinner *p, struct pinner_pod *x, struct pinner_box *b)
{
    int64_t now_ms = loop_now_ms(p->config.loop);
    if (b->since_ms == 0 || now_ms - b->since_ms < SETTLE_MS) {
        /* The container runtime sets up its group at the same time as we do. */
        pinner_metrics_count("written");
        return;
    }
    b->repairs++;
    pinner_metrics_count("repaired");
    log_warn("something else changed a container's CPUs; they are restored", kv("pod", x->pod->key),
             kv("container", name_of(x, b)), kv("cgroup", b->path));
}

static int let_go(struct pinner *p, struct pinner_pod *x, struct pinner_box *b, struct error *err)
{
    bool wrote;
    (void)x;
    unwatch(p, &b->wd);
    cpuset_clear(&b->cpus);
    b->since_ms = 0;
    return cgroups_release(&p->cgroups, b->path, p->config.memory, &wrote, err);
}

static int pin(struct pinner *p, struct pinner_pod *x, struct pinner_box *b,
               const struct cpuset *cpus, int numa, struct error *err)
{
    struct cpuset mems = {{0}};
    bool wrote = false, with_mems = p->config.memory && numa >= 0;
    if (with_mems)
        cpuset_add(&mems, (unsigned)numa);
    if (!cpuset_equal(cpus, &b->cpus))
        b->since_ms = 0; /* a change of our own */
    if (b->wd < 0)       /* before writing, so that later writes of others are noticed */
        b->wd = watch(p, b->path, "cpuset.cpus", IN_MODIFY);
    if (cgroups_pin(&p->cgroups, b->path, cpus, with_mems ? &mems : NULL, &wrote, err) < 0)
        return -1;
    b->tries = 0;
    if (wrote)
        count_write(p, x, b);
    b->cpus = *cpus;
    if (b->since_ms == 0)
        b->since_ms = loop_now_ms(p->config.loop);
    if (b->wd < 0) /* on v2 the file may only exist now */
        b->wd = watch(p, b->path, "cpuset.cpus", IN_MODIFY);
    return 0;
}

/* --shared-pool: the CPUs that no pinned container has. */
static bool pool(struct pinner *p, struct cpuset *out)
{
    const char *key;
    void *value;
    cpuset_clear(out);
    for (size_t i = 0; i < p->machine.l3_len; i++)
        cpuset_union(out, &p->machine.l3[i]);
    cpuset_subtract(out, &p->machine.offline);
    for (size_t i = 0; map_next(&p->pods, &i, &key, &value);) {
        const struct pinner_pod *y = value;
        struct cpuset theirs;
        if (y->held.len == 0 || y->released || pod_is_finished(y->pod))
            continue;
        pinner_plan_all(&y->held, &theirs);
        cpuset_subtract(out, &theirs);
    }
    return !cpuset_is_empty(out);
}

/* For a group without CPUs of its own. */
static int leave(struct pinner *p, struct pinner_pod *x, struct pinner_box *b, struct error *err)
{
    struct cpuset rest;
    return p->config.shared_pool && pool(p, &rest) ? pin(p, x, b, &rest, -1, err)
                                                   : let_go(p, x, b, err);
}

/* Gives one group its CPUs. */
static int settle(struct pinner *p, struct pinner_pod *x, struct pinner_box *b, struct error *err)
{
    struct cpuset cpus;
    identify(p, x, b);
    if (b->container != PINNER_ANY) {
        cpu_grant_of(&x->held, b->container, &cpus);
        if (cpuset_is_empty(&cpus))
            return leave(p, x, b, err);
    }
    if (!pinner_plan_cpus(&x->held, b->container, &p->machine, &cpus))
        return error_set(err, ERROR_CONFLICT, "all of its CPUs are offline");
    return pin(p, x, b, &cpus, pinner_plan_numa(&x->held), err);
}

/* A running container without a group means that we look in the wrong directory. */
static bool all_found(struct pinner *p, struct pinner_pod *x)
{
    char text[ERROR_TEXT_SIZE];
    int64_t now_ms = loop_now_ms(p->config.loop);
    for (size_t i = 0; i < pod_container_count(x->pod); i++) {
        bool found = id_of(x, i)[0] == '\0';
        for (struct pinner_box *b = x->boxes; b != NULL && !found; b = b->next)
            found = b->container == i;
        if (found)
            continue;
        if (x->missing_ms == 0)
            x->missing_ms = now_ms;
        if (now_ms - x->missing_ms >= PINNER_MISSING_MS) {
            (void)str_format(text, sizeof text,
                             "container %.63s runs, but its cgroup is not found below %.200s",
                             pod_container(x->pod, i)->name, p->cgroups.top);
            pinner_fail(p, x, text);
        }
        return false;
    }
    x->missing_ms = 0;
    return true;
}

/* The group's files do not exist yet, or are gone: retry soon, for a while. */
static bool is_early(struct pinner_pod *x, struct pinner_box *b, const struct error *err)
{
    if (err->code != ERROR_NOT_FOUND || ++b->tries > TRIES_MAX)
        return false;
    x->hurry = true;
    return true;
}

static void keep_pinned(struct pinner *p, struct pinner_pod *x)
{
    char text[2 * ERROR_TEXT_SIZE];
    bool good = true;
    (void)list(p, x);
    for (struct pinner_box *b = x->boxes; b != NULL; b = b->next) {
        struct error err = ERROR_INIT;
        if (settle(p, x, b, &err) == 0)
            continue;
        good = false;
        if (is_early(x, b, &err))
            continue;
        pinner_metrics_count("failed");
        (void)str_format(text, sizeof text, "container %.63s: %s", name_of(x, b), err.text);
        pinner_fail(p, x, text);
    }
    x->obeyed = all_found(p, x) && good;
    if (x->obeyed)
        x->failed[0] = '\0';
}

static void release_all(struct pinner *p, struct pinner_pod *x)
{
    bool good = true;
    (void)list(p, x);
    for (struct pinner_box *b = x->boxes; b != NULL; b = b->next) {
        struct error err = ERROR_INIT;
        if (let_go(p, x, b, &err) < 0 && err.code != ERROR_NOT_FOUND) {
            good = false;
            log_warn("container cannot be returned to all CPUs", kv("pod", x->pod->key),
                     kv("container", name_of(x, b)), kv("error", err.text));
        }
    }
    x->obeyed = good;
}

static void keep_off(struct pinner *p, struct pinner_pod *x)
{
    (void)list(p, x);
    for (struct pinner_box *b = x->boxes; b != NULL; b = b->next) {
        struct error err = ERROR_INIT;
        if (leave(p, x, b, &err) < 0 && !is_early(x, b, &err))
            log_debug("container is not in the shared pool", kv("pod", x->pod->key),
                      kv("error", err.text));
    }
}

void pinner_groups_work(struct pinner *p, struct pinner_pod *x)
{
    if (pod_is_finished(x->pod)) {
        pinner_groups_forget(p, x);
    } else if (x->held.len > 0 && !x->released) {
        keep_pinned(p, x);
    } else if (x->released && !x->obeyed) {
        release_all(p, x);
    } else if (p->config.shared_pool) {
        keep_off(p, x);
    } else if (p->give_back) {
        release_all(p, x);
        pinner_groups_forget(p, x);
    }
}
