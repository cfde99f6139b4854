// SPDX-License-Identifier: Apache-2.0
/*
 * hollow - see hollow.h.
 *
 * A listener on pods collects the keys of those that were bound to a hollow node; a timer at the
 * end of the round makes them all Running. Not immediately: the client that bound the pod first
 * sees its own version in the reply and on the watch.
 */
#include "test/local/nodes/hollow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "test/local/controllers/controllers.h"
#include "test/local/patch/jsonnode.h"
#include "test/local/store/store_object.h"
#include "test/local/store/uid.h"

#define PREFIX "hollow-"

enum { BATCH = 2000 };

struct hollow {
    struct loop *loop;
    struct store *store;
    struct store_listener listener;
    struct VEC(struct object *) bound; /* with a reference each */
    size_t done;
    struct loop_timer timer;
    bool timer_set;
};

static void add_quantities(struct json_writer *w, const char *key, const struct hollow_config *c)
{
    char memory[32];
    str_format(memory, sizeof memory, "%lldKi", (long long)(c->memory_bytes / 1024));
    json_key(w, key);
    json_object_begin(w);
    char number[32];
    str_format(number, sizeof number, "%lld", (long long)c->cpu);
    json_kv_str(w, "cpu", number);
    json_kv_str(w, "ephemeral-storage", "100Gi");
    json_kv_str(w, "memory", memory);
    str_format(number, sizeof number, "%lld", (long long)c->pods);
    json_kv_str(w, "pods", number);
    json_object_end(w);
}

static void print_usual(struct strbuf *out, const struct hollow_config *c, const char *name,
                        const char *uid, const char *now)
{
    struct json_writer w;
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_kv_str(&w, "apiVersion", "v1");
    json_kv_str(&w, "kind", "Node");
    json_key(&w, "metadata");
    json_object_begin(&w);
    json_kv_str(&w, "name", name);
    json_kv_str(&w, "uid", uid);
    json_kv_str(&w, "creationTimestamp", now);
    json_key(&w, "labels");
    json_object_begin(&w);
    json_kv_str(&w, "kubernetes.io/hostname", name);
    json_kv_str(&w, "kubernetes.io/os", "linux");
    json_kv_str(&w, "kubernetes.io/arch", "amd64");
    json_object_end(&w);
    json_key(&w, "annotations");
    json_object_begin(&w);
    json_kv_str(&w, CONTROLLERS_HOLLOW, "true");
    json_object_end(&w);
    json_object_end(&w);
    json_key(&w, "spec");
    json_object_begin(&w);
    json_object_end(&w);
    json_key(&w, "status");
    json_object_begin(&w);
    add_quantities(&w, "capacity", c);
    add_quantities(&w, "allocatable", c);
    json_key(&w, "conditions");
    json_array_begin(&w);
    json_object_begin(&w);
    json_kv_str(&w, "type", "Ready");
    json_kv_str(&w, "status", "True");
    json_kv_str(&w, "lastHeartbeatTime", now);
    json_kv_str(&w, "lastTransitionTime", now);
    json_kv_str(&w, "reason", "KubeletReady");
    json_kv_str(&w, "message", "hollow");
    json_object_end(&w);
    json_array_end(&w);
    json_key(&w, "addresses");
    json_array_begin(&w);
    json_object_begin(&w);
    json_kv_str(&w, "type", "Hostname");
    json_kv_str(&w, "address", name);
    json_object_end(&w);
    json_array_end(&w);
    json_key(&w, "nodeInfo");
    json_object_begin(&w);
    json_kv_str(&w, "kubeletVersion", "hollow");
    json_kv_str(&w, "operatingSystem", "linux");
    json_kv_str(&w, "architecture", "amd64");
    json_kv_str(&w, "osImage", "none");
    json_kv_str(&w, "kernelVersion", "none");
    json_kv_str(&w, "containerRuntimeVersion", "none");
    json_object_end(&w);
    json_object_end(&w);
    json_object_end(&w);
}

static void replace_all(struct strbuf *out, const char *text, const char *name, int64_t index)
{
    for (const char *at; (at = strchr(text, '$')); text = at) {
        strbuf_add(out, text, (size_t)(at - text));
        if (str_starts(at, "$NAME")) {
            strbuf_adds(out, name);
            at += 5;
        } else if (str_starts(at, "$INDEX")) {
            strbuf_addf(out, "%lld", (long long)index);
            at += 6;
        } else {
            strbuf_addc(out, *at++);
        }
    }
    strbuf_adds(out, text);
}

/* What a template may leave out. */
static int complete(struct strbuf *text, const char *name, const char *uid, const char *now,
                    struct error *err)
{
    AUTO_JSONTREE *t = NULL;
    if (jsontree_parse(&t, strbuf_str(text), text->len, err) < 0)
        return error_wrap(err, "template of the hollow nodes");
    struct jsonnode *root = jsontree_root(t);
    if (!jsonnode_is_object(root))
        return error_set(err, ERROR_INVALID, "template of the hollow nodes: not an object");
    struct jsonnode *node = jsonnode_object(t),
                    *metadata = jsonnode_need_object(t, root, "metadata");
    jsonnode_set_str(t, metadata, "name", name);
    jsonnode_set_str(t, metadata, "uid", uid);
    jsonnode_set_str(t, metadata, "creationTimestamp", now);
    jsonnode_set_str(t, jsonnode_need_object(t, metadata, "annotations"), CONTROLLERS_HOLLOW,
                     "true");
    /* apiVersion and kind come first */
    jsonnode_set_str(t, node, "apiVersion", "v1");
    jsonnode_set_str(t, node, "kind", "Node");
    jsonnode_remove(root, "apiVersion");
    jsonnode_remove(root, "kind");
    struct VEC(const char *) keys = {0};
    for (struct jsonnode_iter it = jsonnode_iter(root); jsonnode_next(&it);)
        vec_push(&keys, it.key);
    for (size_t i = 0; i < keys.len; i++) {
        struct jsonnode *value = jsonnode_clone(t, jsonnode_get(root, keys.items[i]));
        jsonnode_set(t, node, keys.items[i], value);
    }
    vec_deinit(&keys);
    strbuf_reset(text);
    jsonnode_print(node, text);
    return 0;
}

static int make_node(struct hollow *h, const struct hollow_config *c, int64_t i, const char *now,
                     struct strbuf *text, struct error *err)
{
    unsigned char random[UID_BYTES];
    char name[32], uid[UID_SIZE];
    str_format(name, sizeof name, PREFIX "%05lld", (long long)i);
    if (store_get(h->store, &kind_nodes, NULL, name))
        return 0;
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return error_errno(err, errno, "random bytes");
    uid_print(random, uid);
    strbuf_reset(text);
    if (c->template_text) {
        replace_all(text, c->template_text, name, i);
        if (complete(text, name, uid, now, err) < 0)
            return -1;
    } else {
        print_usual(text, c, name, uid, now);
    }
    return store_create(h->store, &kind_nodes, strbuf_str(text), text->len, NULL, err);
}

/* ---- pods ---- */

static void put_condition(struct json_writer *w, const char *type, const char *now)
{
    json_object_begin(w);
    json_kv_str(w, "type", type);
    json_kv_str(w, "status", "True");
    json_key(w, "lastProbeTime");
    json_put_null(w);
    json_kv_str(w, "lastTransitionTime", now);
    json_object_end(w);
}

static void put_container(struct json_writer *w, json *container, const char *now)
{
    json_object_begin(w);
    json_kv_str(w, "name", str_or_empty(json_get_str(container, "name")));
    json_kv_str(w, "image", str_or_empty(json_get_str(container, "image")));
    json_kv_str(w, "imageID", "");
    json_kv_bool(w, "ready", true);
    json_kv_bool(w, "started", true);
    json_kv_int(w, "restartCount", 0);
    json_key(w, "state");
    json_object_begin(w);
    json_key(w, "running");
    json_object_begin(w);
    json_kv_str(w, "startedAt", now);
    json_object_end(w);
    json_object_end(w);
    json_object_end(w);
}

/* The status of the pod as it runs: what is not ours stays. */
static void put_status(struct json_writer *w, json *pod, const char *now)
{
    static const char *const ours[] = {"phase", "startTime", "conditions", "containerStatuses"};
    json_object_begin(w);
    json_kv_str(w, "phase", "Running");
    for (struct json_iter it = json_iter(json_get(pod, "status")); json_next(&it);) {
        size_t i = 0;
        while (i < sizeof ours / sizeof *ours && !str_eq(ours[i], it.key))
            i++;
        if (i < sizeof ours / sizeof *ours || !it.key)
            continue;
        json_key_n(w, it.key, it.key_len);
        json_put_value(w, it.value);
    }
    json_kv_str(w, "startTime", now);
    json_key(w, "conditions");
    json_array_begin(w);
    static const char *const types[] = {"PodScheduled", "Initialized", "ContainersReady", "Ready"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        put_condition(w, types[i], now);
    json_array_end(w);
    json_key(w, "containerStatuses");
    json_array_begin(w);
    json *containers = json_get(json_get(pod, "spec"), "containers");
    for (struct json_iter it = json_iter(containers); json_next(&it);)
        put_container(w, it.value, now);
    json_array_end(w);
    json_object_end(w);
}

/* A hundred thousand pods go this way in a benchmark: only the status is written anew, the rest of
 * the text is copied. */
static int print_running(const struct object *o, const char *now, struct strbuf *text,
                         struct error *err)
{
    size_t from, to;
    AUTO_JSON *doc = NULL;
    if (json_parse(&doc, o->text, o->text_len, err) < 0)
        return -1;
    if (!store_object_span(o->text, o->text_len, "status", &from, &to))
        return error_set(err, ERROR_INVALID, "a pod without a status");
    strbuf_reset(text);
    strbuf_add(text, o->text, from);
    struct json_writer w;
    json_writer_init(&w, text);
    put_status(&w, json_root(doc), now);
    strbuf_add(text, o->text + to, o->text_len - to);
    return 0;
}

static void run_pod(struct hollow *h, const struct object *bound, const char *now,
                    struct strbuf *text)
{
    const struct object *o = store_get(h->store, &kind_pods, bound->ns, bound->name);
    if (!o || strcmp(o->uid, bound->uid) != 0 ||
        !str_eq(labels_get(&o->fields, "status.phase"), "Pending"))
        return; /* a phase is there, so a status is */
    struct error err = ERROR_INIT;
    if (print_running(o, now, text, &err) < 0 ||
        store_update(h->store, &kind_pods, strbuf_str(text), text->len, 0, NULL, &err) < 0)
        log_warn("hollow pod", kv("pod", bound->key), kv("error", err.text));
}

static void on_timer(void *arg)
{
    struct hollow *h = arg;
    char now[CLOCK_RFC3339_SIZE];
    clock_rfc3339(clock_wall_ns(), 0, now);
    struct strbuf text = {0};
    h->timer_set = false;
    for (size_t i = 0; i < BATCH && h->done < h->bound.len; i++) {
        struct object *o = h->bound.items[h->done++];
        run_pod(h, o, now, &text);
        object_unref(o);
    }
    strbuf_deinit(&text);
    if (h->done == h->bound.len) {
        h->done = h->bound.len = 0;
        return;
    }
    h->timer_set = true;
    loop_timer_set(h->loop, &h->timer, 0, on_timer, h);
}

static bool take_pod(void *arg, struct object *o)
{
    struct hollow *h = arg;
    if (!str_starts(labels_get(&o->fields, "spec.nodeName"), PREFIX) ||
        !str_eq(labels_get(&o->fields, "status.phase"), "Pending"))
        return true;
    vec_push(&h->bound, object_ref(o));
    if (!h->timer_set) {
        h->timer_set = true;
        loop_timer_set(h->loop, &h->timer, 0, on_timer, h);
    }
    return true;
}

static void on_pod(void *arg, const struct store_event *e)
{
    if (e->change != STORE_DELETED)
        take_pod(arg, e->object);
}

int hollow_start(struct hollow **out, struct loop *l, struct store *s,
                 const struct hollow_config *c, struct error *err)
{
    struct hollow *h = mem_new(struct hollow, 1);
    h->loop = l;
    h->store = s;
    h->listener = (struct store_listener){.kind = &kind_pods, .fn = on_pod, .arg = h};
    char now[CLOCK_RFC3339_SIZE];
    clock_rfc3339(clock_wall_ns(), 0, now);
    struct strbuf text = {0};
    int rc = 0;
    for (int64_t i = 0; i < c->count && rc == 0; i++)
        rc = make_node(h, c, i, now, &text, err);
    strbuf_deinit(&text);
    store_listen(s, &h->listener);
    /* Pods that were bound just before the state was saved. */
    store_each(s, &kind_pods, NULL, NULL, take_pod, h);
    if (rc < 0) {
        hollow_stop(h);
        return -1;
    }
    *out = h;
    return 0;
}

void hollow_stop(struct hollow *h)
{
    if (!h)
        return;
    store_unlisten(h->store, &h->listener);
    loop_timer_cancel(h->loop, &h->timer);
    for (size_t i = h->done; i < h->bound.len; i++)
        object_unref(h->bound.items[i]);
    vec_deinit(&h->bound);
    free(h);
}
