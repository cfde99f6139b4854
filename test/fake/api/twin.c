// SPDX-License-Identifier: Apache-2.0
/*
 * twin - one thread accepts, one serves each connection, one lock guards what they share.
 * Everything that changes is an event in a log with its version, as in etcd: a watch is a place in
 * the log, a compaction raises its floor.
 */
#include "test/fake/api/twin.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test/fake/api/twin_state.h"

const char *twin_fault_name(enum twin_fault f)
{
    static const char *const names[TWIN_FAULTS] = {
        "none",        "cut line", "cut chunk", "reset",        "close",      "hang",
        "hang midway", "trickle",  "429",       "500",          "410 status", "410 event",
        "redirect",    "html",     "oversize",  "unknown type", "no version"};
    return names[f];
}

char *twin_printed(const char *fmt, ...)
{
    struct strbuf b = {0};
    va_list ap;
    va_start(ap, fmt);
    strbuf_vaddf(&b, fmt, ap);
    va_end(ap);
    return strbuf_take(&b);
}

/* ---- pods ----------------------------------------------------------------------------------- */

static size_t place_of(const struct twin *t, const char *name, bool *found)
{
    size_t i = 0;
    while (i < t->pods.len && strcmp(t->pods.items[i].name, name) < 0)
        i++;
    *found = i < t->pods.len && str_eq(t->pods.items[i].name, name);
    return i;
}

static void log_event(struct twin *t, const char *type, const char *object)
{
    struct entry e = {.version = t->version, .type = type, .json = strdup(object)};
    vec_push(&t->log, e);
    pthread_cond_broadcast(&t->changed);
}

static char *pod_json(const struct stored *p, const char *more)
{
    return twin_printed(
        "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"%s\",\"resourceVersion\":\"%lld\","
        "\"labels\":{\"n\":\"%lld\"}}%s%s}",
        p->name, p->uid, (long long)p->version, (long long)p->version, more ? "," : "",
        more ? more : "");
}

void twin_put(struct twin *t, const char *name, const char *more)
{
    bool found;
    pthread_mutex_lock(&t->lock);
    size_t i = place_of(t, name, &found);
    t->version++;
    if (!found) {
        struct stored p = {0};
        str_format(p.name, sizeof p.name, "%s", name);
        str_format(p.uid, sizeof p.uid, "uid-%s-%lld", name, (long long)t->version);
        vec_push(&t->pods, p);
        memmove(&t->pods.items[i + 1], &t->pods.items[i], (t->pods.len - 1 - i) * sizeof p);
        t->pods.items[i] = p;
    }
    struct stored *p = &t->pods.items[i];
    p->version = t->version;
    free(p->json);
    p->json = pod_json(p, more);
    log_event(t, found ? "MODIFIED" : "ADDED", p->json);
    pthread_mutex_unlock(&t->lock);
}

void twin_delete(struct twin *t, const char *name)
{
    bool found;
    pthread_mutex_lock(&t->lock);
    size_t i = place_of(t, name, &found);
    if (found) {
        struct stored gone = t->pods.items[i];
        gone.version = ++t->version;
        memmove(&t->pods.items[i], &t->pods.items[i + 1], (t->pods.len - 1 - i) * sizeof gone);
        t->pods.len--;
        free(gone.json);
        gone.json = pod_json(&gone, NULL);
        log_event(t, "DELETED", gone.json);
        free(gone.json);
    }
    pthread_mutex_unlock(&t->lock);
}

size_t twin_pods(struct twin *t, struct twin_pod **out)
{
    pthread_mutex_lock(&t->lock);
    size_t n = t->pods.len;
    *out = calloc(n + 1, sizeof **out);
    for (size_t i = 0; i < n; i++) {
        struct twin_pod *p = &(*out)[i];
        str_format(p->name, sizeof p->name, "%s", t->pods.items[i].name);
        str_format(p->uid, sizeof p->uid, "%s", t->pods.items[i].uid);
        str_format(p->version, sizeof p->version, "%lld", (long long)t->pods.items[i].version);
    }
    pthread_mutex_unlock(&t->lock);
    return n;
}

void twin_bookmark(struct twin *t)
{
    pthread_mutex_lock(&t->lock);
    t->bookmarks++;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

void twin_drop_snapshot(struct twin *t)
{
    for (size_t i = 0; i < t->snapshot.len; i++)
        free(t->snapshot.items[i]);
    t->snapshot.len = 0;
    t->snapshot_version = -1;
}

void twin_compact(struct twin *t)
{
    pthread_mutex_lock(&t->lock);
    t->floor = ++t->version;
    twin_drop_snapshot(t);
    pthread_mutex_unlock(&t->lock);
}

void twin_absent(struct twin *t, bool absent)
{
    pthread_mutex_lock(&t->lock);
    t->absent = absent;
    pthread_mutex_unlock(&t->lock);
}

/* ---- faults, scripts, records --------------------------------------------------------------- */

void twin_fault(struct twin *t, enum twin_class class, enum twin_fault fault)
{
    pthread_mutex_lock(&t->lock);
    struct queued q = {.class = class, .fault = fault};
    vec_push(&t->faults, q);
    pthread_mutex_unlock(&t->lock);
}

size_t twin_faults_left(struct twin *t)
{
    pthread_mutex_lock(&t->lock);
    size_t n = t->faults.len;
    pthread_mutex_unlock(&t->lock);
    return n;
}

size_t twin_break(struct twin *t, enum twin_fault fault)
{
    pthread_mutex_lock(&t->lock);
    if (fault != TWIN_NONE)
        t->break_how = fault;
    size_t n = t->watches;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    return n;
}

size_t twin_broken(struct twin *t)
{
    pthread_mutex_lock(&t->lock);
    size_t n = t->broken;
    pthread_mutex_unlock(&t->lock);
    return n;
}

void twin_script(struct twin *t, int status, const char *headers, const char *body)
{
    twin_script_for(t, NULL, status, headers, body);
}

void twin_script_for(struct twin *t, const char *part, int status, const char *headers,
                     const char *body)
{
    struct scripted s = {.part = part != NULL ? strdup(part) : NULL,
                         .status = status,
                         .headers = strdup(headers),
                         .body = strdup(body)};
    pthread_mutex_lock(&t->lock);
    vec_push(&t->scripts, s);
    pthread_mutex_unlock(&t->lock);
}

void twin_script_raw(struct twin *t, const char *bytes, size_t cut, bool close)
{
    struct scripted s = {.body = strdup(bytes), .cut = cut, .close = close};
    pthread_mutex_lock(&t->lock);
    vec_push(&t->scripts, s);
    pthread_mutex_unlock(&t->lock);
}

size_t twin_requests(struct twin *t, enum twin_class class)
{
    pthread_mutex_lock(&t->lock);
    size_t n = 0;
    for (size_t i = 0; i < TWIN_ANY; i++)
        n += class == TWIN_ANY || class == (enum twin_class)i ? t->counts[i] : 0;
    pthread_mutex_unlock(&t->lock);
    return n;
}

size_t twin_connections(struct twin *t)
{
    pthread_mutex_lock(&t->lock);
    size_t n = t->connections;
    pthread_mutex_unlock(&t->lock);
    return n;
}

bool twin_request(struct twin *t, size_t n, struct strbuf *out)
{
    pthread_mutex_lock(&t->lock);
    bool there = n < t->seen.len;
    if (there)
        strbuf_adds(out, t->seen.items[t->seen.len - 1 - n]);
    pthread_mutex_unlock(&t->lock);
    return there;
}

/* ---- leases -------------------------------------------------------------------------------- */

void twin_store_lease(struct twin *t, const char *spec, const char *holder)
{
    free(t->lease);
    t->lease = strdup(spec);
    t->lease_version = ++t->version;
    str_format(t->lease_holder, sizeof t->lease_holder, "%s", holder);
}

void twin_lease_holder(struct twin *t, char *out, size_t size)
{
    pthread_mutex_lock(&t->lock);
    str_format(out, size, "%s", t->lease ? t->lease_holder : "");
    pthread_mutex_unlock(&t->lock);
}

void twin_lease_set(struct twin *t, const char *holder)
{
    pthread_mutex_lock(&t->lock);
    char *spec = twin_printed(
        "{\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":1,\"renewTime\":\"t%lld\",\"leaseTransitions\":7}",
        holder, (long long)t->version);
    twin_store_lease(t, spec, holder);
    free(spec);
    pthread_mutex_unlock(&t->lock);
}

void twin_lease_delete(struct twin *t)
{
    pthread_mutex_lock(&t->lock);
    free(t->lease);
    t->lease = NULL;
    pthread_mutex_unlock(&t->lock);
}

static void *accept_all(void *arg)
{
    struct twin *t = arg;
    for (;;) {
        int fd = accept(t->fd, NULL, NULL);
        if (fd < 0)
            return NULL;
        struct twin_handed *h = malloc(sizeof *h);
        *h = (struct twin_handed){.t = t, .fd = fd};
        pthread_mutex_lock(&t->lock);
        bool stopping = t->stopping;
        if (!stopping) {
            pthread_t thread;
            t->connections++;
            vec_push(&t->fds, fd);
            if (pthread_create(&thread, NULL, twin_serve, h) != 0)
                abort();
            vec_push(&t->threads, thread);
        }
        pthread_mutex_unlock(&t->lock);
        if (stopping) {
            close(fd);
            free(h);
            return NULL;
        }
    }
}

/* ---- start and stop ------------------------------------------------------------------------- */

struct twin *twin_start(const struct twin_tls *tls, bool want_client)
{
    struct twin *t = calloc(1, sizeof *t);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    t->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (t->fd < 0 || bind(t->fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(t->fd, 64) < 0 ||
        getsockname(t->fd, (struct sockaddr *)&a, &len) < 0)
        abort();
    t->port = ntohs(a.sin_port);
    t->version = 1;
    t->snapshot_version = -1;
    if (tls)
        t->tls = wire_context_new(tls->server_cert, tls->server_key, want_client ? tls->ca : NULL);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    if (pthread_create(&t->acceptor, NULL, accept_all, t) != 0)
        abort();
    return t;
}

void twin_stop(struct twin *t)
{
    pthread_mutex_lock(&t->lock);
    t->stopping = true;
    pthread_cond_broadcast(&t->changed);
    for (size_t i = 0; i < t->fds.len; i++)
        shutdown(t->fds.items[i], SHUT_RDWR);
    pthread_mutex_unlock(&t->lock);
    shutdown(t->fd, SHUT_RDWR);
    pthread_join(t->acceptor, NULL);
    for (size_t i = 0; i < t->threads.len; i++)
        pthread_join(t->threads.items[i], NULL);
    close(t->fd);
    for (size_t i = 0; i < t->pods.len; i++)
        free(t->pods.items[i].json);
    for (size_t i = 0; i < t->log.len; i++)
        free(t->log.items[i].json);
    for (size_t i = 0; i < t->seen.len; i++)
        free(t->seen.items[i]);
    for (size_t i = 0; i < t->scripts.len; i++) {
        free(t->scripts.items[i].part);
        free(t->scripts.items[i].headers);
        free(t->scripts.items[i].body);
    }
    twin_drop_snapshot(t);
    vec_deinit(&t->fds);
    vec_deinit(&t->threads);
    vec_deinit(&t->pods);
    vec_deinit(&t->log);
    vec_deinit(&t->snapshot);
    vec_deinit(&t->faults);
    vec_deinit(&t->scripts);
    vec_deinit(&t->seen);
    free(t->lease);
    wire_context_free(t->tls);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

uint16_t twin_port(const struct twin *t)
{
    return t->port;
}

struct kube_config *twin_config(const struct twin *t)
{
    struct kube_config *c = NULL;
    struct error err = ERROR_INIT;
    AUTO_STRBUF y = {0};
    strbuf_addf(
        &y,
        "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u, namespace: ns}}]\n"
        "clusters: [{name: k, cluster: {server: 'http://127.0.0.1:%u'}}]\nusers: [{name: u, user: {token: s3cr3t-t0ken}}]\n",
        t->port);
    if (kube_config_parse(&c, strbuf_str(&y), y.len, NULL, "", false, &err) < 0)
        abort();
    return c;
}

struct kube_options twin_options(void)
{
    return (struct kube_options){.max_list_bytes = 1 << 20,
                                 .max_line_bytes = 64 * 1024,
                                 .max_reply_bytes = 1 << 20,
                                 .max_objects = 10000,
                                 .page_size = 7,
                                 .request_timeout_ms = 2000,
                                 .watch_timeout_ms = 60000,
                                 .watch_idle_ms = 1000,
                                 .burst = 100};
}
