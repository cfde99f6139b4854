// SPDX-License-Identifier: Apache-2.0
/*
 * service_reconcile - compares the kubelet's allocations, the grants and the pods kept here.
 *
 * The kubelet is authoritative: a container sees the card of its ids, whatever an annotation says.
 * The pod resources list names pods and omits ordinary init containers; the checkpoint names uids
 * and has all containers. A grant that differs is corrected; until a container has ids, its grant
 * stands.
 *
 * A correction takes two writes. The first announces both the old grant and the allocation, so the
 * scheduler counts the pod on every card. The second withdraws the old grant, once the watch shows
 * that every pod's annotations cover its allocation. With a single write, of two pods that hold
 * each other's cards, the first one corrected would leave its card looking empty while the second,
 * whose annotation still names another card, is on it. So a card may briefly look fuller than it
 * is, never emptier.
 */
#include "device-plugin/kubelet/checkpoint.h"
#include "device-plugin/kubelet/service_internal.h"

#include <string.h>

#include "lib/base/json.h"
#include "lib/base/log.h"
#include "lib/model/gpu_request.h"
#include "lib/model/names.h"

/* ---- allocations against grants; under the lock ---- */

static bool is_asked_for(const struct pod *p)
{
    for (size_t i = 0; i < pod_container_count(p); i++)
        for (int r = 0; r < MODE_RESOURCES; r++)
            if (gpu_request_amount(pod_container(p, i), mode_resource_name((enum mode_resource)r)) >
                0)
                return true;
    return false;
}

static bool holds_shares(const struct match_listed *l)
{
    for (size_t i = 0; i < l->containers_len; i++)
        if (l->containers[i].held[MODE_GPU_MEM].len > 0 ||
            l->containers[i].held[MODE_GPU_CORE].len > 0)
            return true;
    return false;
}

enum announced service_announce(struct service *s, const struct pod *p, struct arena *a)
{
    const struct grant *here = given_grant(&s->given, p->uid);
    struct grant said, both;
    struct error why = ERROR_INIT;
    if (here == NULL)
        return ANNOUNCED;
    if (grant_decode(p, a, &said, &why) < 0)
        said = (struct grant){0}; /* unreadable: counts as no grant */
    if (card_usage_covers(&said, here))
        return card_usage_covers(here, &said) ? ANNOUNCED : ANNOUNCED_MORE;
    card_usage_widen(&said, here, a, &both);
    if (s->hooks.record != NULL)
        s->hooks.record(s->hooks.arg, p, &both, &s->inventory);
    return ANNOUNCED_OTHER;
}

static enum announced correct(struct service *s, const struct podcache_pod *its,
                              const struct match_listed *held, struct arena *a)
{
    const struct grant none = {0}, *said = service_promised(s, its);
    const struct pod *p = its->pod;
    struct grant truth;
    if (card_usage_truth(&s->inventory, p, said != NULL ? said : &none, held, a, &truth)) {
        log_warn("grant corrected: the containers are on other cards", kv("pod", p->key),
                 kv("before", said != NULL ? "another grant" : "none"));
        (void)given_keep_grant(&s->given, p->uid, &truth);
        service_touched(s);
    }
    return service_announce(s, p, a);
}

static bool is_live(const struct pod *p)
{
    return !p->terminating && !pod_is_finished(p);
}

/* A running pod that holds shares and is not "assigned": the plugin died between the start and the
 * write, or the write was refused. */
static void catch_up(struct service *s, const struct pod *p)
{
    if (p->phase == POD_RUNNING && is_live(p) && s->hooks.starting != NULL)
        s->hooks.starting(s->hooks.arg, p->ns, p->name, p, given_grant(&s->given, p->uid) != NULL);
}

/* Notes init containers that got their ids before this process started. No list shows what they
 * held, so a pod that asked for shares in them alone catches up here. */
static void recall_inits(struct service *s, const struct checkpoint *c)
{
    for (size_t i = 0; i < c->len; i++) {
        const struct checkpoint_entry *e = &c->items[i];
        const struct podcache_pod *p = podcache_find_uid(s->pods, e->uid);
        struct match_subject subject;
        if (p == NULL || !match_named(p->pod, e->container, &subject))
            continue;
        given_note(&s->given, &subject, e->resource);
        if (!mode_resource_is_whole(e->resource) && gpu_mode_is_shared(s->mode))
            catch_up(s, p->pod);
    }
}

/* The listed pod, if we maintain its annotations, or NULL. */
static const struct podcache_pod *kept_pod(const struct service *s, const struct match_listed *l)
{
    const struct podcache_pod *p = podcache_find(s->pods, l->key);
    return p != NULL && is_live(p->pod) && is_asked_for(p->pod) ? p : NULL;
}

/* Compares all listed pods. false: continue when the watch has delivered what was written. */
static bool compare(struct service *s, const struct match_listing *l, struct arena *a)
{
    bool settled = true, narrower = false;
    for (size_t i = 0; i < l->len; i++) {
        const struct podcache_pod *p = kept_pod(s, &l->pods[i]);
        if (podcache_find(s->pods, l->pods[i].key) == NULL && holds_shares(&l->pods[i]))
            settled = false; /* its grant is not known here */
        if (p == NULL)
            continue;
        enum announced said = correct(s, p, &l->pods[i], a);
        settled = settled && said != ANNOUNCED_OTHER;
        narrower = narrower || said == ANNOUNCED_MORE;
        if (holds_shares(&l->pods[i]))
            catch_up(s, p->pod);
    }
    for (size_t i = 0; settled && narrower && i < l->len; i++) {
        const struct podcache_pod *p = kept_pod(s, &l->pods[i]);
        if (p != NULL && s->hooks.record != NULL &&
            service_announce(s, p->pod, a) == ANNOUNCED_MORE)
            s->hooks.record(s->hooks.arg, p->pod, given_grant(&s->given, p->pod->uid),
                            &s->inventory);
    }
    return settled && !narrower;
}

int service_reconcile(struct service *s, int64_t timeout_ms, struct error *err)
{
    struct arena a;
    struct match_listing l;
    struct checkpoint c = {0};
    struct error why = ERROR_INIT;
    pthread_mutex_lock(&s->pods->lock);
    bool owed = s->owed;
    s->owed = false;
    pthread_mutex_unlock(&s->pods->lock);
    if (!owed)
        return 1;
    arena_init(&a, 0);
    int result = podresources_list(s->podresources, timeout_ms, &a, &l, err);
    if (s->checkpoint != NULL && checkpoint_read(s->checkpoint, &a, &c, &why) < 0)
        log_warn("the kubelet's checkpoint cannot be read", kv("error", why.text));
    pthread_mutex_lock(&s->pods->lock);
    recall_inits(s, &c);
    if (result == 0 && gpu_mode_is_shared(s->mode))
        s->owed = !compare(s, &l, &a) || s->owed;
    s->owed = s->owed || result < 0;
    pthread_mutex_unlock(&s->pods->lock);
    arena_deinit(&a);
    return result;
}

bool service_owes(struct service *s)
{
    pthread_mutex_lock(&s->pods->lock);
    bool owed = s->owed;
    pthread_mutex_unlock(&s->pods->lock);
    return owed;
}

/* ---- before a container starts ---- */

/* A container with compute must have memory on the same card, or nothing limits it there. */
static int check_limited(const struct service *s, const struct match_listed *l,
                         const char *container, struct error *err)
{
    for (size_t i = 0; i < l->containers_len; i++) {
        const struct inventory_ids *memory = &l->containers[i].held[MODE_GPU_MEM],
                                   *compute = &l->containers[i].held[MODE_GPU_CORE];
        if (!str_eq(l->containers[i].name, container) || compute->len == 0)
            continue;
        if (memory->len == 0)
            return error_set(
                err, ERROR_UNSUPPORTED,
                "pod %s, container %s: %zu percent of a card without memory of it; write %s in GiB "
                "beside it",
                l->key, container, compute->len, NAME_RES_GPU_MEM);
        int32_t at = inventory_find(&s->inventory, MODE_GPU_MEM, memory->items[0]),
                other = inventory_find(&s->inventory, MODE_GPU_CORE, compute->items[0]);
        if (at >= 0 && other >= 0 && at != other)
            return error_set(err, ERROR_CONFLICT,
                             "pod %s, container %s: %s is on card %d and %s on card %d", l->key,
                             container, NAME_RES_GPU_MEM, s->inventory.cards[at].index,
                             NAME_RES_GPU_CORE, s->inventory.cards[other].index);
    }
    return 0;
}

static int complete(const struct service *s, const struct match_listed *l, const char *container,
                    struct arena *a, struct error *err)
{
    const struct isolation_engine *e = s->answer.engine;
    for (size_t i = 0; e != NULL && e->complete != NULL && i < l->containers_len; i++)
        if (str_eq(l->containers[i].name, container))
            return e->complete(s->answer.isolation, l, &l->containers[i], a, err);
    return 0;
}

/* The container that holds the ids. */
struct holder {
    struct match_listed *pod; /* NULL: not known */
    bool listed;              /* pod has all of its containers */
    const char *container;
    const char *uid;                /* by the checkpoint; NULL: it has no entry */
    const struct podcache_pod *its; /* under the lock; NULL: the pod is not cached */
    struct error why;               /* not known */
};

/* Does the kubelet run the pod under this uid? */
static bool is_run_as(const struct pod *p, const char *uid)
{
    return str_eq(p->uid, uid) || str_eq(pod_mirrored_uid(p), uid);
}

/* Under the lock. The entry's container with all its ids. */
static struct match_listed *recorded(struct request *q, const struct checkpoint *c,
                                     const struct checkpoint_entry *e, const struct pod *p)
{
    struct match_listed *l = arena_new(&q->arena, struct match_listed, 1);
    l->ns = arena_strdup(&q->arena, p->ns);
    l->name = arena_strdup(&q->arena, p->name);
    l->key = arena_strdup(&q->arena, p->key);
    l->containers = arena_new(&q->arena, struct match_listed_container, 1);
    l->containers_len = 1;
    l->containers[0].name = e->container;
    for (size_t i = 0; i < c->len; i++)
        if (str_eq(c->items[i].uid, e->uid) && str_eq(c->items[i].container, e->container))
            l->containers[0].held[c->items[i].resource] = c->items[i].ids;
    return l;
}

/* The list names it; ordinary init containers, which no list has, are in the checkpoint. Takes the
 * lock. */
static void find_holder_lock(struct request *q, const struct inventory_ids *ids, struct holder *h)
{
    struct service *s = q->service;
    enum mode_resource r = q->endpoint->resource;
    const struct match_listed *listed = NULL;
    struct checkpoint c = {0};
    struct error unread = ERROR_INIT;
    *h = (struct holder){.container = "", .why = ERROR_INIT};
    if (podresources_list(s->podresources, SERVICE_LIST_MS, &q->arena, &q->listing, &h->why) == 0)
        (void)match_holder(&q->listing, r, ids, &listed, &h->container, &h->why);
    if (s->checkpoint != NULL)
        (void)checkpoint_read(s->checkpoint, &q->arena, &c, &unread);
    const struct checkpoint_entry *e = checkpoint_find(&c, r, ids);
    h->uid = e != NULL ? e->uid : NULL;
    pthread_mutex_lock(&s->pods->lock);
    h->listed = listed != NULL;
    if (listed != NULL) {
        h->pod = &q->listing.pods[listed - q->listing.pods];
        h->its = podcache_find(s->pods, listed->key);
    } else if (e != NULL) {
        h->its = podcache_find_uid(s->pods, e->uid);
        h->pod = h->its != NULL ? recorded(q, &c, e, h->its->pod) : NULL;
        h->container = e->container;
    }
    /* Perhaps the cache has an older pod of the same name. */
    if (h->its != NULL && (!is_live(h->its->pod) || (e != NULL && !is_run_as(h->its->pod, e->uid))))
        h->its = NULL;
    if (h->pod != NULL)
        h->pod->uid = h->uid != NULL ? h->uid : h->its != NULL ? h->its->pod->uid : NULL;
}

/* Were the ids answered for another container, and if so, would the holder have been told the same?
 * What Allocate said cannot be taken back. If only the card differs, the comparison that is owed
 * then corrects the holder's grant, and the kubelet's next try succeeds. */
static int check_answer(struct request *q, const struct holder *h, const struct inventory_ids *ids,
                        struct error *err)
{
    struct service *s = q->service;
    enum mode_resource r = q->endpoint->resource;
    const struct given_answer *said = given_answer(&s->given, r, match_digest(ids, &q->arena));
    struct match_subject subject;
    struct match_grant due;
    if (said == NULL || (h->its == NULL && (h->uid != NULL ? str_eq(h->uid, said->uid)
                                                           : str_eq(h->pod->key, said->key))))
        return 0;
    const char *who = arena_printf(
        &q->arena,
        "pod %s, container %s: its ids were chosen for pod %s, which the kubelet listed as waiting",
        h->pod->key, h->container, said->key);
    if (h->its == NULL || !match_named(h->its->pod, h->container, &subject))
        return error_set(err, ERROR_UNAVAILABLE, "%s; what it was promised is not known yet", who);
    /* The kubelet gives what an ordinary init container held to later containers of its pod, so the
     * last answer about these ids may be a later container's. */
    if (str_eq(said->uid, subject.pod->uid) &&
        (said->container == subject.container ||
         pod_container_is_init(subject.pod, said->container) ||
         pod_container_is_init(subject.pod, subject.container)))
        return 0;
    service_owe(s);
    subject.grant = given_grant(&s->given, subject.pod->uid);
    if (match_grant(&s->inventory, r, &subject, ids, &q->arena, &due, err) < 0)
        return error_wrap(err, "%s", who);
    const char *ought = match_describe(&due, &q->arena);
    if (str_eq(ought, said->said))
        return 0;
    return error_set(err, ERROR_CONFLICT,
                     "%s: Allocate gave it %s, but its own grant is %s. Delete the pod", who,
                     said->said, ought);
}

static int check_start(struct request *q, const struct holder *h, const struct inventory_ids *ids,
                       struct error *err)
{
    if (h->pod == NULL)
        return error_set(err, ERROR_UNAVAILABLE, "whose container starts is not known: %s",
                         h->why.text);
    if (check_limited(q->service, h->pod, h->container, err) < 0 ||
        check_answer(q, h, ids, err) < 0)
        return -1;
    return complete(q->service, h->pod, h->container, &q->arena, err);
}

/* For engines that can act only at the start. */
static int start_held(const struct service *s, const struct podcache_pod *p, struct error *err)
{
    const struct isolation_engine *e = s->answer.engine;
    if (e == NULL || e->start == NULL || !gpu_mode_is_shared(s->mode))
        return 0;
    const struct grant *grant = p != NULL ? service_promised(s, p) : NULL;
    if (grant == NULL)
        return error_set(
            err, ERROR_UNAVAILABLE,
            "the pod, or what it was promised, is not known yet: without it the container "
            "cannot be held to its share");
    return e->start(s->answer.isolation, &s->inventory, p->pod, grant, err);
}

void service_keep(struct service *s)
{
    struct arena a;
    const struct podcache_pod *p;
    AUTO_STRBUF unheld;
    strbuf_init(&unheld);
    arena_init(&a, 0);
    pthread_mutex_lock(&s->pods->lock);
    const struct isolation_engine *e = s->answer.engine;
    for (size_t i = 0; e != NULL && e->keep != NULL && (p = podcache_next(s->pods, &i)) != NULL;) {
        struct error err = ERROR_INIT;
        const struct grant *grant = pod_is_finished(p->pod) ? NULL : service_promised(s, p);
        if (grant == NULL || grant->shares_len == 0 ||
            e->keep(s->answer.isolation, &s->inventory, p->pod, grant, &err) == 0)
            continue;
        const char *line = arena_printf(&a, "%s: %s\n", p->pod->uid, err.text);
        strbuf_adds(&unheld, line);
        if (strstr(strbuf_str(&s->unheld), line) == NULL && s->hooks.unheld != NULL)
            s->hooks.unheld(s->hooks.arg, p->pod, err.text); /* once, until it changes */
    }
    struct strbuf before = s->unheld;
    s->unheld = unheld;
    unheld = before;
    pthread_mutex_unlock(&s->pods->lock);
    arena_deinit(&a);
}

/* The final check; Allocate has already decided. A container starts only if it is known whose it
 * is. The kubelet repeats a start that was refused. */
int service_verify(struct request *q, const struct inventory_ids *ids, struct error *err)
{
    struct service *s = q->service;
    struct holder h;
    find_holder_lock(q, ids, &h);
    const struct pod *p = h.its != NULL ? h.its->pod : NULL;
    int result = check_start(q, &h, ids, err);
    if (result == 0)
        result = start_held(s, h.its, err);
    if (result < 0 && s->hooks.refused != NULL)
        s->hooks.refused(s->hooks.arg, p, err->text);
    if (result == 0)
        given_started(&s->given, q->endpoint->resource, match_digest(ids, &q->arena));
    if (result == 0 && p != NULL && h.listed && gpu_mode_is_shared(s->mode) &&
        correct(s, h.its, h.pod, &q->arena) != ANNOUNCED)
        service_owe(s);
    if (result == 0 && s->hooks.starting != NULL)
        s->hooks.starting(s->hooks.arg, h.pod->ns, h.pod->name, p,
                          p != NULL && given_grant(&s->given, p->uid) != NULL);
    pthread_mutex_unlock(&s->pods->lock);
    return result;
}

/* ---- saved state ---- */

uint64_t service_version(struct service *s)
{
    pthread_mutex_lock(&s->pods->lock);
    uint64_t version = s->version;
    pthread_mutex_unlock(&s->pods->lock);
    return version;
}

static void print_container(struct json_writer *w, const struct container *c)
{
    json_object_begin(w);
    json_kv_str(w, "name", c->name);
    if (c->sidecar)
        json_kv_str(w, "restartPolicy", "Always");
    json_key(w, "resources");
    json_object_begin(w);
    json_key(w, "limits");
    json_object_begin(w);
    for (int r = 0; r < MODE_RESOURCES; r++) {
        const char *name = mode_resource_name((enum mode_resource)r);
        int64_t n = gpu_request_amount(c, name);
        char text[24];
        if (n > 0 && str_format(text, sizeof text, "%lld", (long long)n))
            json_kv_str(w, name, text);
    }
    json_object_end(w);
    json_object_end(w);
    json_object_end(w);
}

static void print_annotations(struct json_writer *w, const struct service *s, const struct pod *p,
                              struct arena *a)
{
    const struct grant *here = given_grant(&s->given, p->uid);
    struct labels said = p->annotations;
    if (here != NULL)
        grant_encode(here, p, 0, a, &said);
    json_key(w, "annotations");
    json_object_begin(w);
    for (size_t i = 0; i < said.len; i++)
        if (grant_is_result_key(said.items[i].key) && said.items[i].value[0] != '\0' &&
            !str_eq(said.items[i].key,
                    NAME_ANN_GPU_USED)) /* not part of the grant, and it changes */
            json_kv_str(w, said.items[i].key, said.items[i].value);
    json_object_end(w);
}

static void print_pod(struct json_writer *w, const struct service *s, const struct pod *p,
                      struct arena *a)
{
    json_object_begin(w);
    json_key(w, "metadata");
    json_object_begin(w);
    json_kv_str(w, "namespace", p->ns);
    json_kv_str(w, "name", p->name);
    json_kv_str(w, "uid", p->uid);
    print_annotations(w, s, p, a);
    json_object_end(w);
    json_key(w, "spec");
    json_object_begin(w);
    json_kv_str(w, "nodeName", str_or_empty(p->node));
    json_kv_str(w, "schedulerName", str_or_empty(p->scheduler));
    json_key(w, "containers");
    json_array_begin(w);
    for (size_t i = 0; i < p->containers_len; i++)
        print_container(w, &p->containers[i]);
    json_array_end(w);
    json_key(w, "initContainers");
    json_array_begin(w);
    for (size_t i = 0; i < p->init_containers_len; i++)
        print_container(w, &p->init_containers[i]);
    json_array_end(w);
    json_object_end(w);
    json_key(w, "status");
    json_object_begin(w);
    json_kv_str(w, "phase", p->phase == POD_PENDING ? "Pending" : "Running");
    json_object_end(w);
    json_object_end(w);
}

void service_print_pods(struct service *s, struct strbuf *out)
{
    struct json_writer w;
    struct arena a;
    const struct podcache_pod *p;
    arena_init(&a, 0);
    json_writer_init(&w, out);
    json_array_begin(&w);
    pthread_mutex_lock(&s->pods->lock);
    for (size_t i = 0; (p = podcache_next(s->pods, &i)) != NULL;)
        if (!pod_is_finished(p->pod) && is_asked_for(p->pod))
            print_pod(&w, s, p->pod, &a);
    pthread_mutex_unlock(&s->pods->lock);
    json_array_end(&w);
    arena_deinit(&a);
}
