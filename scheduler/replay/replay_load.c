// SPDX-License-Identifier: Apache-2.0
/*
 * replay_load - what a file may hold: a dump (dump.h), a List as kubectl prints it, a PodList as the API server does, single objects, and in YAML several documents of these.
 *
 * Objects go through the same decoders as the watches' do. Where an object was written by hand and never saw an API server, what that would have filled in is filled in here: namespace, requests from
 * limits, allocatable from capacity, priority.
 */
#include "scheduler/replay/replay_load.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/jsontree.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/base/yaml.h"
#include "lib/kube/decode.h"
#include "lib/model/names.h"
#include "scheduler/dump/dump.h"
#include "scheduler/dump/dump_demand.h"
#include "scheduler/cache/nominations.h"
#include "scheduler/replay/replay_load_head.h"
#include "scheduler/replay/replay_load_kept.h"
#include "scheduler/cache/gangs.h"

void replay_load_init(struct replay_load *l, struct cluster *c, const struct cluster_hooks *hooks)
{
    *l = (struct replay_load){
        .cluster = c, .hooks = hooks, .ns = "default", .max_bytes = (size_t)1 << 30};
    arena_init(&l->arena, 0);
    map_init(&l->skipped);
    map_init(&l->priority);
    map_init(&l->unknown);
}

void replay_load_deinit(struct replay_load *l)
{
    for (size_t i = 0; i < l->assumed.len; i++)
        pod_free(l->assumed.items[i].pod);
    vec_deinit(&l->assumed);
    vec_deinit(&l->kept);
    map_deinit(&l->skipped);
    map_deinit(&l->priority);
    map_deinit(&l->unknown);
    arena_deinit(&l->arena);
}

static void warn(struct replay_load *l, const char *where, const char *text)
{
    AUTO_STRBUF b = {0};
    strbuf_addf(&b, "%s: %s", where, text);
    l->warn(l->arg, strbuf_str(&b));
}

/* ---- files ---- */

static int read_all(int fd, size_t max_bytes, struct strbuf *out, struct error *err)
{
    for (;;) {
        strbuf_reserve(out, 64 * 1024);
        ssize_t n = read(fd, out->ptr + out->len, out->cap - out->len - JSON_PADDING - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, errno, "read");
        if (n == 0)
            return 0;
        out->len += (size_t)n;
        out->ptr[out->len] = '\0';
        if (out->len > max_bytes)
            return error_set(err, ERROR_TOO_LARGE, "larger than %zu bytes (--max-input)",
                             max_bytes);
    }
}

static int read_file(const char *path, size_t max_bytes, struct strbuf *out, struct error *err)
{
    if (str_eq(path, "-"))
        return read_all(STDIN_FILENO, max_bytes, out, err);
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return error_errno(err, errno, "open");
    if (S_ISDIR(st.st_mode))
        return error_set(err, ERROR_INVALID, "is a directory");
    if (st.st_size > 0 && (uint64_t)st.st_size <= max_bytes)
        strbuf_reserve(out, (size_t)st.st_size + 64 * 1024 + 1);
    return read_all(fd, max_bytes, out, err);
}

static bool looks_like_json(const char *path, const char *text)
{
    if (str_ends(path, ".yaml") || str_ends(path, ".yml"))
        return false;
    text += strspn(text, " \t\r\n");
    return str_ends(path, ".json") || *text == '{' || *text == '[';
}

static int yaml_documents(const char *path, const struct strbuf *text, size_t max_bytes,
                          void (*fn)(void *arg, json *root, const char *where), void *arg,
                          struct error *err)
{
    AUTO_STRBUF lines = {0};
    size_t n = 0;
    if (yaml_to_json(strbuf_str(text), text->len, max_bytes, &lines, err) < 0)
        return -1;
    for (const char *at = strbuf_str(&lines), *end; (end = strchr(at, '\n')) != NULL;
         at = end + 1) {
        AUTO_JSON *doc = NULL;
        AUTO_STRBUF where = {0};
        if (json_parse(&doc, at, (size_t)(end - at), err) < 0)
            return -1;
        n++;
        strbuf_adds(&where, path);
        if (n > 1 || end[1] != '\0')
            strbuf_addf(&where, ": document %zu", n);
        fn(arg, json_root(doc), strbuf_str(&where));
    }
    return n > 0 ? 0 : error_set(err, ERROR_INVALID, "is empty");
}

int replay_load_documents(const char *path, size_t max_bytes,
                          void (*fn)(void *arg, json *root, const char *where), void *arg,
                          struct error *err)
{
    AUTO_STRBUF text = {0};
    const char *name = str_eq(path, "-") ? "standard input" : path;
    if (read_file(path, max_bytes, &text, err) < 0)
        return error_wrap(err, "%s", name);
    if (!looks_like_json(path, strbuf_str(&text)))
        return yaml_documents(name, &text, max_bytes, fn, arg, err) < 0
                   ? error_wrap(err, "%s", name)
                   : 0;
    AUTO_JSON *doc = NULL;
    strbuf_reserve(&text, JSON_PADDING);
    if (json_parse_insitu(&doc, text.ptr, text.len, err) < 0)
        return error_wrap(err, "%s", name);
    fn(arg, json_root(doc), name);
    return 0;
}

/* ---- what the API server would have filled in ---- */

/* true: something was missing. */
static bool fill_requests(struct container *c, struct arena *a)
{
    static const struct {
        uint8_t has;
        size_t offset;
    } plain[] = {{RESOURCES_HAS_CPU, offsetof(struct resources, cpu_milli)},
                 {RESOURCES_HAS_MEMORY, offsetof(struct resources, memory_bytes)},
                 {RESOURCES_HAS_EPHEMERAL, offsetof(struct resources, ephemeral_bytes)}};
    bool filled = false;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if ((c->limits.has & plain[i].has) && !(c->requests.has & plain[i].has)) {
            memcpy((char *)&c->requests + plain[i].offset,
                   (const char *)&c->limits + plain[i].offset, sizeof(int64_t));
            c->requests.has |= plain[i].has;
            filled = true;
        }
    for (uint32_t i = 0; i < c->limits.extra_len; i++) {
        const struct resource_extra *e = &c->limits.extra[i];
        struct error err = ERROR_INIT;
        bool present;
        char text[32];
        (void)resources_get(&c->requests, e->name, &present);
        if (present)
            continue;
        (void)str_format(text, sizeof text, "%lld", (long long)e->value);
        filled |= resources_set_text(&c->requests, a, e->name, strlen(e->name), text, strlen(text),
                                     QUANTITY_UP, &err) == 0;
    }
    return filled;
}

static int32_t priority_of(struct replay_load *l, const char *class, const char *pod)
{
    const int32_t *known = class != NULL ? map_get(&l->priority, class) : NULL;
    if (known != NULL)
        return *known;
    if (str_eq(class, "system-cluster-critical"))
        return 2000000000;
    if (str_eq(class, "system-node-critical"))
        return 2000001000;
    if (class != NULL && map_get(&l->unknown, class) == NULL) { /* once for each class */
        char *told = arena_strdup(&l->arena, class);
        map_put(&l->unknown, told, told);
        AUTO_STRBUF b = {0};
        strbuf_addf(&b,
                    "spec.priorityClassName: the input has no PriorityClass %s; priority %d is "
                    "taken",
                    class, (int)l->default_priority);
        warn(l, pod, strbuf_str(&b));
    }
    return l->default_priority;
}

void replay_load_defaults(struct replay_load *l, struct pod *p, json *spec)
{
    bool filled = false;
    if (p->unreadable != NULL)
        return;
    for (size_t i = 0; i < p->containers_len; i++)
        filled |= fill_requests(&p->containers[i], &p->arena);
    for (size_t i = 0; i < p->init_containers_len; i++)
        filled |= fill_requests(&p->init_containers[i], &p->arena);
    p->request = filled ? (struct resources){0} : p->request;
    if (filled && !pod_effective_request(p, &p->arena, &p->request))
        p->unreadable = "the sum of its requests is too large";
    if (json_get(spec, "priority") == NULL)
        p->priority = priority_of(l, json_get_str(spec, "priorityClassName"), p->key);
}

/* ---- one object ---- */

void replay_load_refuse(struct replay_load *l, const char *where, const struct error *err)
{
    l->refused++;
    warn(l, where, err->text);
}

static void take_node(struct replay_load *l, json *j, const char *where)
{
    struct node *n;
    struct error err = ERROR_INIT;
    if (decode_node(j, &n, &err) < 0) {
        replay_load_refuse(l, where, &err);
        return;
    }
    if (n->allocatable.has == 0 && n->allocatable.extra_len == 0)
        n->allocatable = n->capacity;
    l->objects++;
    (void)cluster_put_node(l->cluster, n);
}

static struct pod *decode_any_pod(struct replay_load *l, json *j, const char *where)
{
    struct pod *p;
    struct error err = ERROR_INIT, worse = ERROR_INIT;
    const char *unreadable = json_get_str(json_get(j, "cosched"), "unreadable");
    if (unreadable == NULL && decode_pod(j, &p, &err) == 0)
        return p;
    if (unreadable != NULL)
        error_set(&err, ERROR_INVALID, "%s", unreadable);
    else
        replay_load_refuse(l, where, &err);
    if (decode_pod_remains(j, &err, &p, &worse) == 0)
        return p;
    if (unreadable != NULL)
        replay_load_refuse(l, where, &worse);
    return NULL;
}

struct pod *replay_load_pod(struct replay_load *l, json *j, const char *where)
{
    struct pod *p = decode_any_pod(l, j, where);
    if (p != NULL)
        replay_load_defaults(l, p, json_get(j, "spec"));
    return p;
}

static void take_pod(struct replay_load *l, json *j, const char *where)
{
    struct pod *p = replay_load_pod(l, j, where);
    if (p == NULL)
        return;
    l->objects++;
    l->latest_ns = num_max(l->latest_ns, p->created_ns);
    if (json_get_bool(json_get(j, "cosched"), "assumed", false) && p->node != NULL) {
        struct replay_load_assumed later = {.pod = p, .node = p->node};
        vec_push(&l->assumed, later);
        return;
    }
    if (l->any_scheduler && p->node == NULL)
        p->scheduler = l->cluster->scheduler_name;
    const char *key = arena_strdup(&l->arena, p->key);
    bool remains = p->unreadable != NULL;
    (void)cluster_put_pod(l->cluster, p, l->hooks);
    struct cluster_pod *cp = remains ? cluster_find_pod(l->cluster, key) : NULL;
    if (cp != NULL && cp->state == CLUSTER_PENDING) /* the one thing that remains do not have */
        (void)nominations_set(l->cluster, cp,
                              json_get_str(json_get(j, "status"), "nominatedNodeName"));
}

static void take_group(struct replay_load *l, json *j, const char *where)
{
    struct pod_group *g;
    struct error err = ERROR_INIT;
    if (decode_pod_group(j, &g, &err) < 0) {
        replay_load_refuse(l, where, &err);
        return;
    }
    l->objects++;
    (void)gangs_put_group(l->cluster, g, l->hooks);
}

static void take_priority_class(struct replay_load *l, json *j, const char *where)
{
    int64_t value = 0;
    const char *name = json_get_str(json_get(j, "metadata"), "name");
    if (name == NULL || !json_get_int(j, "value", &value) || value < INT32_MIN ||
        value > INT32_MAX) {
        struct error err = ERROR_INIT;
        error_set(&err, ERROR_INVALID, "PriorityClass %s: value: must be an integer of 32 bits",
                  str_or_empty(name));
        replay_load_refuse(l, where, &err);
        return;
    }
    int32_t *kept = arena_new(&l->arena, int32_t, 1);
    *kept = (int32_t)value;
    l->objects++;
    (void)map_put(&l->priority, arena_strdup(&l->arena, name), kept);
    if (json_get_bool(j, "globalDefault", false))
        l->default_priority = *kept;
}

/* ---- namespaces, storage, budgets ---- */

#define TAKE(kind_, type, decode, in)                                           \
    static void take_##kind_(struct replay_load *l, json *j, const char *where) \
    {                                                                           \
        type *o;                                                                \
        struct error err = ERROR_INIT;                                          \
        if (decode(j, &o, &err) < 0) {                                          \
            replay_load_refuse(l, where, &err);                                 \
            return;                                                             \
        }                                                                       \
        l->objects++;                                                           \
        (void)objects_put(l->cluster->objects, in, (struct object *)o);         \
    }
TAKE(namespace, struct object, decode_namespace, OBJECTS_NAMESPACES)
TAKE(claim, struct pvc, decode_pvc, OBJECTS_CLAIMS)
TAKE(volume, struct pv, decode_pv, OBJECTS_VOLUMES)
TAKE(storage_class, struct storage_class, decode_storage_class, OBJECTS_STORAGE_CLASSES)
TAKE(csi_node, struct csi_node, decode_csi_node, OBJECTS_CSI_NODES)
TAKE(csi_driver, struct csi_driver, decode_csi_driver, OBJECTS_CSI_DRIVERS)
TAKE(csi_capacity, struct csi_capacity, decode_csi_capacity, OBJECTS_CSI_CAPACITIES)
TAKE(attachment, struct volume_attachment, decode_volume_attachment, OBJECTS_VOLUME_ATTACHMENTS)
TAKE(budget, struct pdb, decode_pdb, OBJECTS_BUDGETS)
TAKE(device_class, struct device_class, decode_device_class, OBJECTS_DEVICE_CLASSES)

/* One that is not in force is told, as the scheduler does with an event. */
static void take_policy(struct replay_load *l, json *j, const char *where)
{
    struct policy *p;
    struct error err = ERROR_INIT;
    if (decode_resource_policy(j, &p, &err) < 0) {
        replay_load_refuse(l, where, &err);
        return;
    }
    if (p->invalid != NULL) {
        error_set(&err, ERROR_INVALID, "resourcepolicy %s: %s", p->object.key, p->invalid);
        replay_load_refuse(l, where, &err);
    } else if (p->warning != NULL) {
        warn(l, where, p->warning);
    }
    l->objects++;
    (void)policies_put(l->cluster, p);
}

static const struct kind {
    const char *name;
    void (*take)(struct replay_load *l, json *j, const char *where);
    bool namespaced;
} kinds[] = {
    {"Node", take_node, false},
    {"Pod", take_pod, true},
    {"PodGroup", take_group, true},
    {"PriorityClass", take_priority_class, false},
    {"Namespace", take_namespace, false},
    {"PersistentVolumeClaim", take_claim, true},
    {"PersistentVolume", take_volume, false},
    {"StorageClass", take_storage_class, false},
    {"CSINode", take_csi_node, false},
    {"CSIDriver", take_csi_driver, false},
    {"CSIStorageCapacity", take_csi_capacity, true},
    {"VolumeAttachment", take_attachment, false},
    {"PodDisruptionBudget", take_budget, true},
    {"DeviceClass", take_device_class, false},
    {NAME_KIND_POLICY, take_policy, true},
};

static const struct kind *kind_named(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (str_eq(kinds[i].name, name))
            return &kinds[i];
    return NULL;
}

static void skip(struct replay_load *l, const char *kind)
{
    size_t *n = map_get(&l->skipped, kind);
    if (n == NULL) {
        n = arena_new(&l->arena, size_t, 1);
        map_put(&l->skipped, arena_strdup(&l->arena, kind), n);
    }
    ++*n;
}

/* A copy with what its list says of all its items, and a namespace. */
static int complete(const struct replay_load *l, json *j, const char *api, bool namespaced,
                    struct json_doc **out, struct error *err)
{
    AUTO_JSONTREE *t = jsontree_new();
    AUTO_STRBUF text = {0};
    struct jsonnode *root = jsonnode_copy(t, j);
    if (jsonnode_get_str(root, "apiVersion") == NULL && api != NULL)
        jsonnode_set_str(t, root, "apiVersion", api);
    if (namespaced)
        jsonnode_set_str(t, jsonnode_need_object(t, root, "metadata"), "namespace", l->ns);
    jsonnode_print(root, &text);
    return json_parse(out, strbuf_str(&text), text.len, err);
}

static void take_one(struct replay_load *l, json *j, const char *api, const char *kind_name,
                     const char *where)
{
    const struct kind *kind = kind_named(kind_name);
    struct error err = ERROR_INIT;
    AUTO_JSON *doc = NULL;
    if (kind == NULL) {
        skip(l, kind_name);
        return;
    }
    const char *ns = json_get_str(json_get(j, "metadata"), "namespace");
    bool homeless = kind->namespaced && (ns == NULL || ns[0] == '\0') && json_is_object(j);
    bool group = kind->take == take_group && json_get_str(j, "apiVersion") == NULL;
    if (homeless || group) {
        if (complete(l, j, api, homeless, &doc, &err) < 0) {
            replay_load_refuse(l, where, &err);
            return;
        }
        j = json_root(doc);
    }
    kind->take(l, j, where);
}

/* What is kept for gangs, and what GPU pods asked for, is read when the pods are there. */
static void put_by(struct replay_load *l, json *own, const char *where)
{
    AUTO_JSONTREE *t = jsontree_new();
    AUTO_STRBUF text = {0};
    jsonnode_print(jsonnode_copy(t, own), &text);
    struct replay_load_kept later = {.text = arena_strdup(&l->arena, strbuf_str(&text)),
                                     .where = arena_strdup(&l->arena, where)};
    vec_push(&l->kept, later);
}

/* It has counted the pods of the dump, which were counted anew while they were read. */
static void read_demand(struct replay_load *l, json *j, const char *where)
{
    struct gpu_prices *g = l->cluster->gpu_prices;
    struct demand said;
    struct error err = ERROR_INIT;
    if (j != NULL && dump_demand_read(j, g, &said, &err) < 0)
        replay_load_refuse(l, where, &err);
    else if (j != NULL)
        g->demand = said;
}

static void read_kept(struct replay_load *l, const struct replay_load_kept *k)
{
    AUTO_JSON *doc = NULL;
    struct error err = ERROR_INIT;
    if (json_parse(&doc, k->text, strlen(k->text), &err) < 0)
        replay_load_refuse(l, k->where, &err);
    if (doc == NULL)
        return;
    read_demand(l, json_get(json_root(doc), "gpuDemand"), k->where);
    replay_load_kept_read(l, json_root(doc), k->where);
}

static bool read_head(struct replay_load *l, json *list, const char *where)
{
    json *own = json_get(list, "cosched");
    if (!replay_load_head_read(l, own, where))
        return false;
    if (replay_load_kept_is_in(own) || json_get(own, "gpuDemand") != NULL)
        put_by(l, own, where);
    return true;
}

static void take_list(struct replay_load *l, json *list, const char *kind, const char *where)
{
    char of[128] = "";
    size_t n = strlen(kind) - strlen("List"), i = 0;
    if (n < sizeof of)
        memcpy(of, kind, n);
    if (!read_head(l, list, where))
        return;
    json *items = json_get(list, "items");
    if (!json_is_array(items) && !json_is_null(items)) {
        struct error err = ERROR_INIT;
        error_set(&err, ERROR_INVALID, "items: must be a list, not %s", json_kind_name(items));
        replay_load_refuse(l, where, &err);
    }
    for (struct json_iter it = json_iter(items); json_next(&it); i++) {
        AUTO_STRBUF place = {0};
        const char *own = json_get_str(it.value, "kind");
        strbuf_addf(&place, "%s: items[%zu]", where, i);
        if (own != NULL || of[0] != '\0')
            take_one(l, it.value, json_get_str(list, "apiVersion"), own != NULL ? own : of,
                     strbuf_str(&place));
        else
            replay_load_object(l, it.value, strbuf_str(&place)); /* says what is wrong with it */
    }
}

void replay_load_object(struct replay_load *l, json *j, const char *where)
{
    const char *kind = json_get_str(j, "kind");
    if (kind == NULL) {
        struct error err = ERROR_INIT;
        if (json_is_object(j))
            error_set(&err, ERROR_INVALID, "kind: missing: not a Kubernetes object");
        else
            error_set(&err, ERROR_INVALID, "must be an object, not %s", json_kind_name(j));
        replay_load_refuse(l, where, &err);
    } else if (str_ends(kind, "List")) {
        take_list(l, j, kind, where);
    } else {
        take_one(l, j, NULL, kind, where);
    }
}

static void take_document(void *arg, json *root, const char *where)
{
    replay_load_object(arg, root, where);
}

int replay_load_file(struct replay_load *l, const char *path, struct error *err)
{
    return replay_load_documents(path, l->max_bytes, take_document, l, err);
}

/* ---- the end ---- */

/* A node that only assumed pods know: it is there as long as they are. */
static struct cluster_node *node_for(struct replay_load *l, const char *name, bool *made)
{
    struct cluster_node *cn = cluster_find_node(l->cluster, name);
    *made = cn == NULL;
    if (cn != NULL)
        return cn;
    struct arena a;
    arena_init(&a, 0);
    struct node *n = arena_new(&a, struct node, 1);
    n->name = arena_strdup(&a, name);
    n->uid = n->resource_version = "";
    n->arena = a;
    (void)cluster_put_node(l->cluster, n);
    return cluster_find_node(l->cluster, name);
}

static void assume(struct replay_load *l, struct pod *p, const char *node)
{
    struct arena a;
    struct claim claim = {0};
    struct error err = ERROR_INIT;
    AUTO_STRBUF key = {0};
    bool made;
    arena_init(&a, 0);
    strbuf_adds(&key, p->key);
    if (dump_read_claim(p, &a, &claim, &err) < 0) {
        replay_load_refuse(l, strbuf_str(&key), &err);
        (void)cluster_put_pod(l->cluster, p, l->hooks); /* bound, with cards that nobody knows */
    } else {
        p->node = NULL;
        (void)cluster_put_pod(l->cluster, p, l->hooks);
        struct cluster_pod *cp = cluster_find_pod(l->cluster, strbuf_str(&key));
        if (cp != NULL && cp->state == CLUSTER_PENDING) {
            struct cluster_node *cn = node_for(l, node, &made);
            cluster_assume(l->cluster, cp, cn, &claim);
            policies_restore(l->cluster, cp);
            if (made)
                (void)cluster_remove_node(l->cluster, node);
        }
    }
    arena_deinit(&a);
}

void replay_load_finish(struct replay_load *l)
{
    for (size_t i = 0; i < l->assumed.len; i++) {
        struct pod *p = l->assumed.items[i].pod;
        l->assumed.items[i].pod = NULL;
        assume(l, p, arena_strdup(&l->arena, l->assumed.items[i].node));
    }
    l->assumed.len = 0;
    for (size_t i = 0; i < l->kept.len; i++)
        read_kept(l, &l->kept.items[i]);
    l->kept.len = 0;
}

const char *replay_load_skipped(struct replay_load *l)
{
    AUTO_STRBUF b = {0};
    const char *kind;
    void *n;
    for (size_t i = 0; map_next(&l->skipped, &i, &kind, &n);)
        strbuf_addf(&b, "%s%zu %s", b.len > 0 ? ", " : "", *(const size_t *)n, kind);
    return b.len > 0 ? arena_strdup(&l->arena, strbuf_str(&b)) : NULL;
}
