// SPDX-License-Identifier: Apache-2.0
/*
 * simnode_pods - the pods of one node, in the order in which they arrive:
 *
 *   accept ─► admit: devices (Allocate), then the fit ─► life_admit ─► status: Pending
 *     │                      └── no: life_reject, an Event, status: Failed
 *     ▼
 *   step, whenever something is due: life_tick; life_due: PreStartContainer, environment, cgroup,
 *   life_started; the status is sent; when the pod is over its devices are free, and when it was
 *   told to end it is deleted with grace 0
 *
 * A status that cannot be sent is retried a second later, with the newest state.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "test/local/nodes/admit.h"
#include "test/local/nodes/nodeobj.h"
#include "test/local/nodes/simnode_internal.h"

enum { CREATE_MS = 100, GRACE_MAX_MS = 1000, RETRY_MS = 1000, ATTEMPT_MIN_MS = 5 };
static const int64_t ms_ns = 1000 * 1000;

static struct simpod *find(const struct simnode *n, const char *uid)
{
    return map_get(&n->pods, uid);
}

static void pod_free_all(struct simnode *n, struct simpod *p)
{
    if (n->devices != NULL) {
        devices_remove_pod(n->devices, p->view->model->uid);
        podfiles_end_pod(&n->files, p->view);
    }
    life_deinit(&p->life);
    podview_free(p->view);
    free(p);
}

void simnode_drop(struct simnode *n, const char *uid)
{
    struct simpod *p = map_remove(&n->pods, uid);
    if (p != NULL)
        pod_free_all(n, p);
}

void simnode_pods_free(struct simnode *n)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&n->pods, &i, &key, &value);) {
        struct simpod *p = value;
        map_remove(&n->pods, key);
        life_deinit(&p->life);
        podview_free(p->view);
        free(p);
    }
    map_deinit(&n->pods);
}

static void emit(struct simnode *n, const struct simpod *p, bool warning, const char *reason,
                 const char *message)
{
    const struct pod *m = p->view->model;
    struct events_object o = {
        .api_version = "v1", .kind = "Pod", .ns = m->ns, .name = m->name, .uid = m->uid};
    if (n->c.events != NULL)
        events_emit(n->c.events, &o, warning, reason, message);
}

/* ---- admission ---- */

static void reject(struct simnode *n, struct simpod *p, int64_t now, const char *reason,
                   const char *message)
{
    AUTO_STRBUF text;
    strbuf_init(&text);
    strbuf_addf(&text, "Pod was rejected: %s", message);
    life_reject(&p->life, now, reason, strbuf_str(&text));
    log_info("pod rejected", kv("node", n->c.spec->name), kv("pod", p->view->model->key),
             kv("reason", reason), kv("message", message));
    emit(n, p, true, reason, message);
}

static void sum_up(const struct simnode *n, const struct simpod *but, struct admit_used *out)
{
    const char *key;
    void *value;
    *out = (struct admit_used){0};
    for (size_t i = 0; map_next(&n->pods, &i, &key, &value);) {
        const struct simpod *p = value;
        if (p != but && !life_is_over(&p->life))
            admit_add(out, p->view->model);
    }
}

static void admit(struct simnode *n, struct simpod *p, int64_t now)
{
    AUTO_STRBUF message;
    strbuf_init(&message);
    struct error err = ERROR_INIT;
    struct admit_used used;
    char reason[64];
    if (n->devices == NULL) {
        life_admit(&p->life, now, 0);
        return;
    }
    devices_add_pod(n->devices, p->view);
    if (devices_allocate(n->devices, p->view, &err) < 0) {
        strbuf_addf(&message, "Allocate failed due to %s, which is unexpected", err.text);
        reject(n, p, now, "UnexpectedAdmissionError", strbuf_str(&message));
        return;
    }
    sum_up(n, p, &used);
    if (!admit_fits(p->view->model, &used, &n->c.spec->amounts, reason, sizeof reason, &message))
        reject(n, p, now, reason, strbuf_str(&message));
    else
        life_admit(&p->life, clock_wall_ns(), CREATE_MS);
}

/* ---- what a pod does ---- */

static void new_id(char out[LIFE_ID + 1])
{
    unsigned char bytes[LIFE_ID / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        abort();
    for (size_t i = 0; i < sizeof bytes; i++)
        (void)str_format(out + 2 * i, 3, "%02x", bytes[i]);
}

static void write_files(struct simnode *n, const struct simpod *p, const char *container,
                        const char *id)
{
    AUTO_STRBUF env;
    AUTO_STRBUF rest;
    strbuf_init(&env);
    strbuf_init(&rest);
    struct error err = ERROR_INIT;
    const char *uid = p->view->model->uid;
    devices_print_env(n->devices, uid, container, &env);
    devices_print_rest(n->devices, uid, container, &rest);
    /* The environment is written last: a reader that sees it finds the others too. */
    if (podfiles_container(&n->files, uid, container, "devices", strbuf_str(&rest), &err) < 0 ||
        podfiles_container(&n->files, uid, container, "env", strbuf_str(&env), &err) < 0 ||
        podfiles_cgroup(&n->files, p->view, id, &err) < 0)
        log_warn("a container's files cannot be written", kv("node", n->c.spec->name),
                 kv("pod", p->view->model->key), kv("error", err.text));
}

static void start(struct simnode *n, struct simpod *p, size_t i)
{
    const char *name = p->view->containers[i].model->name;
    char id[LIFE_ID + 1];
    struct error err = ERROR_INIT;
    if (n->devices != NULL && devices_pre_start(n->devices, p->view->model->uid, name, &err) < 0) {
        life_failed(&p->life, i, clock_wall_ns(), "CreateContainerConfigError", err.text);
        emit(n, p, true, "Failed", err.text);
        return;
    }
    new_id(id);
    if (n->devices != NULL) {
        podfiles_end_container(&n->files, p->view, p->life.containers[i].id);
        write_files(n, p, name, id);
        AUTO_STRBUF message;
        strbuf_init(&message);
        strbuf_addf(&message, "Started container %s", name);
        emit(n, p, false, "Started", strbuf_str(&message));
    }
    life_started(&p->life, i, clock_wall_ns(), id);
}

static void release(struct simnode *n, struct simpod *p)
{
    p->released = true;
    if (n->devices == NULL)
        return;
    devices_remove_pod(n->devices, p->view->model->uid);
    for (size_t i = 0; i < p->view->containers_len; i++)
        podfiles_end_container(&n->files, p->view, p->life.containers[i].id);
}

/* True: it need not be tried again. */
static bool settled(const struct error *err)
{
    return err->code == ERROR_NOT_FOUND || err->code == ERROR_CONFLICT ||
           err->code == ERROR_INVALID;
}

static void send(struct simnode *n, struct simpod *p, int64_t now)
{
    const struct pod *m = p->view->model;
    struct life_host host = {n->c.spec->address, p->ip};
    struct error err = ERROR_INIT;
    AUTO_STRBUF body;
    strbuf_init(&body);
    life_print(&p->life, &host, now, &body);
    if (kube_patch(n->c.client, &kube_pods, m->ns, m->name, "status", KUBE_PATCH_STRATEGIC,
                   strbuf_str(&body), body.len, NULL, &err) == 0 ||
        settled(&err)) {
        if (err.code == ERROR_INVALID)
            log_error("a pod's status was refused", kv("pod", m->key), kv("error", err.text));
        p->unsent = false;
        return;
    }
    if (err.code != ERROR_CANCELLED)
        log_warn("a pod's status cannot be sent; again in a second", kv("pod", m->key),
                 kv("error", err.text));
    p->retry_ns = num_add_sat(clock_wall_ns(), RETRY_MS * ms_ns);
}

static void end(struct simnode *n, struct simpod *p)
{
    const struct pod *m = p->view->model;
    struct error err = ERROR_INIT;
    if (kube_delete(n->c.client, &kube_pods, m->ns, m->name, m->uid, 0, &err) == 0 ||
        settled(&err)) {
        p->deleted = true;
        return;
    }
    if (err.code != ERROR_CANCELLED)
        log_warn("a pod that has ended cannot be deleted; again in a second", kv("pod", m->key),
                 kv("error", err.text));
    p->retry_ns = num_add_sat(clock_wall_ns(), RETRY_MS * ms_ns);
}

/* When it has to be looked at again. */
static int64_t step(struct simnode *n, struct simpod *p)
{
    size_t i;
    int64_t now = clock_wall_ns();
    if (life_tick(&p->life, now))
        p->unsent = true;
    while ((i = life_due(&p->life, now)) != LIFE_NONE) {
        start(n, p, i);
        p->unsent = true;
        now = clock_wall_ns();
        if (life_tick(&p->life, now))
            p->unsent = true;
    }
    if (!p->released && life_is_over(&p->life))
        release(n, p);
    bool talks = !n->cut && now >= p->retry_ns;
    if (p->unsent && talks)
        send(n, p, now);
    if (p->terminating && !p->deleted && !p->unsent && talks && life_is_over(&p->life))
        end(n, p);
    int64_t next = life_next_ns(&p->life);
    if (!n->cut && (p->unsent || (p->terminating && !p->deleted && life_is_over(&p->life))))
        next = num_min(next, p->retry_ns);
    return next;
}

static void set_work(struct simnode *n, int64_t due_ns)
{
    if (due_ns >= n->work_due_ns || n->ending)
        return;
    n->work_due_ns = due_ns;
    int64_t ms = num_min(num_max((due_ns - clock_wall_ns()) / ms_ns + 1, ATTEMPT_MIN_MS), 3600000);
    loop_timer_set(n->c.loop, &n->work, ms, simnode_work, n);
}

void simnode_work(void *arg)
{
    struct simnode *n = arg;
    int64_t next = LIFE_NEVER;
    const char *key;
    void *value;
    n->work_due_ns = LIFE_NEVER;
    for (size_t i = 0; map_next(&n->pods, &i, &key, &value) && !n->ending;)
        next = num_min(next, step(n, value));
    set_work(n, next);
}

/* ---- arrivals ---- */

static void note_termination(struct simpod *p, const struct podview *v)
{
    if (!v->model->terminating || p->terminating)
        return;
    p->terminating = true;
    int64_t grace = v->grace_s > GRACE_MAX_MS / 1000 ? GRACE_MAX_MS : num_max(v->grace_s, 0) * 1000;
    life_terminate(&p->life, clock_wall_ns(), p->life.admitted ? grace : 0);
}

static void give_address(struct simnode *n, struct simpod *p)
{
    const char *key;
    void *value;
    bool taken = false;
    if (p->view->ip != NULL && !p->view->host_network &&
        str_format(p->ip, sizeof p->ip, "%s", p->view->ip))
        return;
    for (unsigned tries = 0; tries < 256; tries++) {
        nodeobj_pod_ip(n->c.spec, n->pods_made++, p->ip);
        taken = false;
        for (size_t i = 0; !taken && map_next(&n->pods, &i, &key, &value);)
            taken = str_eq(((struct simpod *)value)->ip, p->ip);
        if (!taken)
            return;
    }
}

static void accept_new(struct simnode *n, struct podview *v)
{
    struct simpod *p = mem_new(struct simpod, 1);
    int64_t now = clock_wall_ns();
    p->view = v;
    life_init(&p->life, v);
    give_address(n, p);
    if (pod_is_finished(v->model)) {
        /* It is over for us; only its end may be left to do. */
        p->life.stopped = p->released = true;
        map_put(&n->pods, v->model->uid, p);
    } else if (life_adopt(&p->life)) {
        if (n->devices != NULL)
            devices_add_pod(n->devices, v);
        map_put(&n->pods, v->model->uid, p);
    } else {
        map_put(&n->pods, v->model->uid, p);
        if (!v->model->terminating) {
            admit(n, p, now);
            p->unsent = n->devices != NULL;
        }
    }
    note_termination(p, v);
    set_work(n, step(n, p));
}

void simnode_accept(struct simnode *n, struct podview *v)
{
    struct simpod *p = find(n, v->model->uid);
    if (p == NULL) {
        /* Another pod of the same name: the old one is gone, and its watch event was not seen. */
        const char *key;
        void *value;
        for (size_t i = 0; map_next(&n->pods, &i, &key, &value);)
            if (str_eq(((struct simpod *)value)->view->model->key, v->model->key)) {
                simnode_drop(n, key);
                break;
            }
        accept_new(n, v);
        return;
    }
    bool news = v->model->terminating && !p->terminating;
    note_termination(p, v);
    podview_free(v);
    if (news)
        set_work(n, step(n, p));
}
