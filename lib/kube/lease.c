// SPDX-License-Identifier: Apache-2.0
/*
 * The thread around lease_state: reads, decides, writes.
 *
 *          +--------------------------------- retry_ms --------------------------------+
 *          v                                                                           |
 *       WAITING -- GET: held by another, changed within its duration (read_lease) -----+
 *          |  \
 *          |   +-- no Lease: POST.  Released, or unchanged for a whole duration on our clock: PUT
 *          |             | 201/200 (acquire)              | 409, lost reply: back to WAITING
 *          |             v
 *          |          LEADING -- PUT every retry_ms (renew) --+
 *          |             |  ^                                 | 200: the fence moves to when this
 *          |             |  |                                 |      PUT *began*
 *          |             |  +---------------------------------+ failed: GET, a pause, then again,
 *          |             |                                      until the deadline
 *          |             +-- the deadline passed, another holder, no Lease (lose) --> LOST:
 *          |             |                                      callback, the thread ends
 *          |             |
 *          +-------------+-- lease_stop --> ENDED; release: PUT without a holder
 *
 * Why this is safe: a write is sent only within renew_deadline (10 s) of the start of a successful
 * renewal, and is over 4 s later. The server saw that renewal after it began, so another candidate
 * cannot see it earlier, and waits a duration (15 s) from then. Every write carries the
 * resourceVersion it is based on, so of two candidates one gets 409. A write whose answer was lost
 * does not count: a WAITING candidate that finds its own name waits like any other.
 */
#include "lib/kube/lease.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/kube/api.h"
#include "lib/kube/decode.h"

enum { REQUEST_MAX_MS = 4000, RELEASE_MAX_MS = 1000, IDENTITY_MAX = 255 };

#define ROW(field, ...)                                              \
    {                                                                \
        .offset = offsetof(struct lease_options, field), __VA_ARGS__ \
    }
const struct option_row lease_option_rows[] = {
    {.section = "LEADER ELECTION"},
    ROW(enabled, .name = "leader-elect", .kind = OPTION_BOOL, .fallback = "true",
        .help =
            "Of several replicas only the holder of the Lease writes. Without it there must be one replica."),
    ROW(name, .name = "lease-name", .kind = OPTION_STRING, .fallback = "cosched-scheduler",
        .meta = "NAME", .help = "Name of the Lease."),
    ROW(ns, .name = "lease-namespace", .kind = OPTION_STRING, .meta = "NAME",
        .help = "Namespace of the Lease; the program's own otherwise."),
    ROW(identity, .name = "lease-identity", .kind = OPTION_STRING, .meta = "TEXT",
        .help =
            "The holder's name in the Lease, different for each replica; made of host name, process id and a random number otherwise."),
    ROW(duration_ms, .name = "lease-duration", .kind = OPTION_DURATION, .fallback = "15s",
        .min = 1000, .max = 3600000, .meta = "TIME",
        .help =
            "How long a candidate waits after the last sign of the leader. At least --lease-renew-deadline and 5 s more, which is the "
            "time that a last write may take."),
    ROW(renew_deadline_ms, .name = "lease-renew-deadline", .kind = OPTION_DURATION,
        .fallback = "10s", .min = 500, .max = 3600000, .meta = "TIME",
        .help = "A leader that could not renew for so long stops writing and ends."),
    ROW(retry_ms, .name = "lease-retry", .kind = OPTION_DURATION, .fallback = "2s", .min = 50,
        .max = 600000, .meta = "TIME",
        .help = "Time between two renewals, and between two checks by a candidate."),
    {0}};
#undef ROW

struct lease {
    struct lease_options options;
    struct kube_options kube_options;
    struct lease_callbacks callbacks;
    struct kube_config *kube;
    struct kube_client *client;
    char *name, *ns, *identity;
    pthread_t thread;
    bool running;  /* there is a thread to join */
    bool stopping; /* only the release is left */

    struct lease_state state; /* the thread's; after the join, lease_stop's */
    bool found;               /* there is a Lease object */
    char acquired[CLOCK_RFC3339_SIZE];

    _Atomic bool leading; /* the fence, for any thread */
    _Atomic int64_t renewal_began_ms;
    _Atomic int64_t renewal_began_boot_ms; /* the same moment on clock_boot_ms */
};

/* Absent and null are "". An unreadable holder is an error, because "" means that the lease is
 * free. */
static int copy_text(json *spec, const char *key, char *out, size_t size, struct error *err)
{
    json *v = json_get(spec, key);
    const char *s = v && !json_is_null(v) ? json_str(v) : "";
    if (!s)
        return error_set(err, ERROR_INVALID, "lease: spec.%s must be a string without NUL, not %s",
                         key, json_kind_name(v));
    size_t n = strlen(s);
    if (n >= size)
        return error_set(err, ERROR_INVALID, "lease: spec.%s is longer than %zu bytes", key,
                         size - 1);
    memcpy(out, s, n + 1);
    return 0;
}

static int read_record(json *root, struct lease_record *out, struct error *err)
{
    struct object_meta m;
    int64_t duration = 0;
    *out = (struct lease_record){0};
    decode_meta(root, &m);
    size_t n = strlen(m.resource_version);
    if (n == 0 || n >= sizeof out->resource_version)
        return error_set(err, ERROR_INVALID, "lease: no metadata.resourceVersion");
    memcpy(out->resource_version, m.resource_version, n + 1);
    json *spec = json_get(root, "spec");
    (void)json_get_int(spec, "leaseTransitions", &out->transitions);
    (void)json_get_int(spec, "leaseDurationSeconds", &duration);
    out->duration_s = (int32_t)num_min(num_max(duration, 0), INT32_MAX);
    if (copy_text(spec, "holderIdentity", out->holder, sizeof out->holder, err) < 0)
        return -1;
    return copy_text(spec, "renewTime", out->renew_time, sizeof out->renew_time, err);
}

/* The whole Lease object, because PUT replaces it. holder NULL: released. */
static void write_record(struct lease *l, const char *holder, bool taking, struct strbuf *out)
{
    const struct lease_record *seen = &l->state.seen;
    char now[CLOCK_RFC3339_SIZE];
    struct json_writer w;
    clock_rfc3339(clock_wall_ns(), 1, now);
    if (taking)
        memcpy(l->acquired, now, sizeof now);
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_kv_str(&w, "apiVersion", "coordination.k8s.io/v1");
    json_kv_str(&w, "kind", "Lease");
    json_key(&w, "metadata");
    json_object_begin(&w);
    json_kv_str(&w, "name", l->name);
    json_kv_str(&w, "namespace", l->ns);
    if (l->found)
        json_kv_str(&w, "resourceVersion", seen->resource_version);
    json_object_end(&w);
    json_key(&w, "spec");
    json_object_begin(&w);
    if (holder)
        json_kv_str(&w, "holderIdentity", holder);
    json_kv_int(&w, "leaseDurationSeconds", holder ? (l->options.duration_ms + 999) / 1000 : 1);
    json_kv_str(&w, "acquireTime", l->acquired);
    json_kv_str(&w, "renewTime", now);
    json_kv_int(&w, "leaseTransitions", num_add_sat(seen->transitions, taking && l->found));
    json_object_end(&w);
    json_object_end(&w);
}

/* A request may take 4 s and, while we lead, must end before the deadline. */
static void limit_time(struct lease *l, int64_t now_ms)
{
    int64_t ms = l->stopping ? RELEASE_MAX_MS : REQUEST_MAX_MS;
    if (l->state.leading)
        ms = num_min(ms,
                     num_max(l->state.renewal_began_ms + l->options.renew_deadline_ms - now_ms, 1));
    kube_client_set_timeout(l->client, ms);
}

/* Reads the Lease into the state. */
static int read_lease(struct lease *l, struct error *err)
{
    AUTO_JSON *doc = NULL;
    struct lease_record rec = {0};
    limit_time(l, clock_mono_ms());
    if (kube_get(l->client, &kube_leases, l->ns, l->name, &doc, err) < 0) {
        if (err->code != ERROR_NOT_FOUND)
            return -1;
        l->found = false;
    } else {
        if (read_record(json_root(doc), &rec, err) < 0)
            return -1;
        l->found = true;
    }
    lease_state_observe(&l->state, &rec, l->found, clock_mono_ms());
    return 0;
}

/* POST or PUT with us as the holder. 0: we lead, and the fence is the time when this began. */
static int hold(struct lease *l, bool taking, struct error *err)
{
    AUTO_STRBUF body = {0};
    AUTO_JSON *doc = NULL;
    struct lease_record rec;
    int64_t began = clock_mono_ms(), began_boot = clock_boot_ms();
    limit_time(l, began);
    write_record(l, l->identity, taking, &body);
    int rc = l->found ? kube_update(l->client, &kube_leases, l->ns, l->name, NULL,
                                    strbuf_str(&body), body.len, &doc, err)
                      : kube_create(l->client, &kube_leases, l->ns, strbuf_str(&body), body.len,
                                    &doc, err);
    if (rc < 0 || read_record(json_root(doc), &rec, err) < 0)
        return -1;
    if (!str_eq(rec.holder, l->identity))
        return error_set(err, ERROR_CONFLICT, "lease: the server stored another holder");
    l->found = true;
    lease_state_observe(&l->state, &rec, true, clock_mono_ms());
    l->state.leading = true;
    l->state.renewal_began_ms = began;
    atomic_store(&l->renewal_began_ms, began);
    atomic_store(&l->renewal_began_boot_ms, began_boot);
    atomic_store(&l->leading, true);
    return 0;
}

static int release(struct lease *l, struct error *err)
{
    AUTO_STRBUF body = {0};
    limit_time(l, clock_mono_ms());
    write_record(l, NULL, false, &body);
    return kube_update(l->client, &kube_leases, l->ns, l->name, NULL, strbuf_str(&body), body.len,
                       NULL, err);
}

/* Sleeps, at most until the deadline. false: stopping. */
static bool rest(struct lease *l, int64_t ms)
{
    if (l->state.leading)
        ms = num_min(
            ms,
            num_max(l->state.renewal_began_ms + l->options.renew_deadline_ms - clock_mono_ms(), 0));
    return kube_http_sleep(kube_client_http(l->client), ms);
}

static void lose(struct lease *l)
{
    atomic_store(&l->leading, false);
    l->state.leading = false;
    log_error("leadership lost", kv("lease", l->name), kv("identity", l->identity),
              kv("holder", l->state.seen.holder));
    if (l->callbacks.lost)
        l->callbacks.lost(l->callbacks.arg);
}

/* Returns how long to sleep. */
static int64_t acquire(struct lease *l)
{
    struct error err = ERROR_INIT;
    if (hold(l, true, &err) < 0) {
        log_info("leadership not taken", kv("lease", l->name), kv("error", err.text));
        return l->options.retry_ms;
    }
    log_info("leading", kv("lease", l->name), kv("identity", l->identity),
             kv("transitions", l->state.seen.transitions));
    if (l->callbacks.started)
        l->callbacks.started(l->callbacks.arg);
    return l->options.retry_ms;
}

static enum lease_action next_action(const struct lease *l)
{
    return lease_state_next(&l->state, &l->options, l->identity, l->found, clock_mono_ms());
}

static int64_t renew(struct lease *l)
{
    struct error err = ERROR_INIT;
    if (hold(l, false, &err) == 0)
        return l->options.retry_ms;
    if (err.code != ERROR_CANCELLED)
        log_warn("lease not renewed", kv("lease", l->name), kv("error", err.text));
    int64_t wait = num_max(num_max(l->options.retry_ms / 4, 10), err.retry_after_ms);
    /* After a lost reply or another holder's write our version is old: read before the next try. */
    return read_lease(l, &err) == 0 && next_action(l) == LEASE_LOST ? 0 : wait;
}

static int64_t step(struct lease *l, bool *lost)
{
    struct error err = ERROR_INIT;
    if (!l->state.leading && read_lease(l, &err) < 0) {
        if (err.code != ERROR_CANCELLED)
            log_warn("lease not read", kv("lease", l->name), kv("error", err.text));
        return num_max(l->options.retry_ms, err.retry_after_ms);
    }
    switch (next_action(l)) {
    case LEASE_ACQUIRE:
        return acquire(l);
    case LEASE_RENEW:
        return renew(l);
    case LEASE_LOST:
        *lost = true;
        return 0;
    case LEASE_WAIT:
        break;
    }
    return l->options.retry_ms + clock_jitter(l->options.retry_ms / 5 + 1);
}

static void *run(void *arg)
{
    struct lease *l = arg;
    bool lost = false;
    while (!lost && !kube_http_is_cancelled(kube_client_http(l->client))) {
        int64_t wait = step(l, &lost);
        if (!lost && !rest(l, wait))
            break;
    }
    if (lost)
        lose(l);
    return NULL;
}

static char *make_identity(void)
{
    char host[128] = "";
    uint32_t number = 0;
    AUTO_STRBUF b = {0};
    if (gethostname(host, sizeof host - 1) < 0 || !host[0])
        memcpy(host, "host", 5);
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        number = (uint32_t)clock_wall_ns();
    strbuf_addf(&b, "%s_%ld_%08x", host, (long)getpid(), number);
    return strbuf_take(&b);
}

static int check_options(const struct lease_options *o, struct error *err)
{
    if (!o->name || !o->name[0])
        return error_set(err, ERROR_INVALID, "--lease-name: missing");
    if (o->identity && strlen(o->identity) > IDENTITY_MAX)
        return error_set(err, ERROR_INVALID, "--lease-identity: longer than %d bytes",
                         IDENTITY_MAX);
    if (o->retry_ms <= 0 || o->retry_ms >= o->renew_deadline_ms)
        return error_set(err, ERROR_INVALID,
                         "--lease-retry must be shorter than --lease-renew-deadline");
    if (o->renew_deadline_ms + REQUEST_MAX_MS >= o->duration_ms)
        return error_set(
            err, ERROR_INVALID,
            "--lease-duration must be longer than --lease-renew-deadline and the %d ms of a last write together",
            REQUEST_MAX_MS);
    return 0;
}

static void lease_free(struct lease *l)
{
    kube_client_free(l->client);
    free(l->name);
    free(l->ns);
    free(l->identity);
    free(l);
}

/* It has its own rate limit, so the lease never waits for other requests. */
static int new_client(struct lease *l, struct error *err)
{
    struct kube_options o = l->kube_options;
    o.qps = 0;
    return kube_client_new(&l->client, l->kube, &o, "cosched-lease", err);
}

int lease_start(struct lease **out, struct kube_config *kube, const struct kube_options *k,
                const struct lease_options *o, const struct lease_callbacks *cb, struct error *err)
{
    if (o->enabled && check_options(o, err) < 0)
        return -1;
    struct lease *l = mem_new(struct lease, 1);
    l->options = *o;
    l->kube_options = *k;
    l->callbacks = *cb;
    l->kube = kube;
    if (!o->enabled) {
        *out = l;
        if (cb->started)
            cb->started(cb->arg);
        return 0;
    }
    l->name = mem_strdup(o->name);
    l->ns = mem_strdup(o->ns && o->ns[0] ? o->ns : kube_config_namespace(kube));
    l->identity = o->identity && o->identity[0] ? mem_strdup(o->identity) : make_identity();
    int rc = new_client(l, err);
    int why = rc < 0 ? 0 : pthread_create(&l->thread, NULL, run, l);
    if (rc < 0 || why != 0) {
        if (why != 0)
            error_errno(err, why, "lease thread");
        lease_free(l);
        return -1;
    }
    l->running = true;
    *out = l;
    return 0;
}

bool lease_may_write(const struct lease *l)
{
    if (!l->options.enabled)
        return true;
    if (!atomic_load(&l->leading))
        return false;
    /* Loaded before the clocks are read: a renewal in between can only make the answer stricter. */
    int64_t began = atomic_load(&l->renewal_began_ms);
    int64_t began_boot = atomic_load(&l->renewal_began_boot_ms);
    /* The monotonic clock stops during suspend, but the lease runs out: check the boot clock
     * too. */
    return clock_mono_ms() - began < l->options.renew_deadline_ms &&
           clock_boot_ms() - began_boot < l->options.renew_deadline_ms;
}

bool lease_is_leader(const struct lease *l)
{
    return !l->options.enabled || atomic_load(&l->leading);
}

/* The thread has ended, and its last renewal may have been stored unnoticed: then read and try once
 * more. */
static void give_back(struct lease *l)
{
    struct error err = ERROR_INIT;
    kube_client_free(l->client); /* it was cancelled */
    l->client = NULL;
    l->state.leading = false;
    l->stopping = true;
    int rc = new_client(l, &err);
    if (rc == 0)
        rc = release(l, &err);
    if (rc < 0 && err.code == ERROR_CONFLICT && read_lease(l, &err) == 0 && l->found &&
        str_eq(l->state.seen.holder, l->identity))
        rc = release(l, &err);
    if (rc < 0)
        log_warn("lease not released, it will run out", kv("lease", l->name),
                 kv("error", err.text));
    else
        log_info("lease released", kv("lease", l->name));
}

void lease_stop(struct lease *l, bool release_it)
{
    if (!l)
        return;
    if (l->running) {
        kube_client_cancel(l->client);
        pthread_join(l->thread, NULL);
        atomic_store(&l->leading, false);
        if (release_it && l->state.leading)
            give_back(l);
    }
    lease_free(l);
}
