// SPDX-License-Identifier: Apache-2.0
/* A file may hold a dump (dump.h), a List as kubectl prints it, a PodList from the API server,
 * single objects, and in YAML several documents of these. Objects go through the same decoders as
 * watched ones. For objects written by hand the API server's defaults are filled in here:
 * namespace, requests from limits, allocatable from capacity, priority. */
#include "scheduler/replay/replay_load.h"

#include <string.h>

#include "lib/base/jsontree.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/kube/decode.h"
#include "lib/model/names.h"
#include "scheduler/dump/dump.h"
#include "scheduler/model/nominations.h"
#include "scheduler/replay/replay_load_dump.h"
#include "scheduler/cache/gangs.h"

void replay_load_init(struct replay_load *l, struct cluster *c, const struct cluster_hooks *hooks)
{
    *l = (struct replay_load){
        .cluster = c, .hooks = hooks, .ns = "default", .documents.max_bytes = (size_t)1 << 30};
    arena_init(&l->arena, 0);
    map_init(&l->skipped);
    map_init(&l->priority);
    map_init(&l->unknown);
}

void replay_load_deinit(struct replay_load *l)
{
    for (size_t i = 0; i < l->assumed.len; i++)
        pod_free(l->assumed.items[i]);
    vec_deinit(&l->assumed);
    vec_deinit(&l->rest);
    replay_documents_deinit(&l->documents);
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
    if (class != NULL && map_get(&l->unknown, class) == NULL) { /* once per class */
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
    for (size_t i = 0; i < p->containers_len; i++)
        filled |= fill_requests(&p->containers[i], &p->arena);
    for (size_t i = 0; i < p->init_containers_len; i++)
        filled |= fill_requests(&p->init_containers[i], &p->arena);
    p->request = filled ? (struct resources){0} : p->request;
    if (filled && !pod_effective_request(p, &p->arena, &p->request))
        p->unplaceable = "requests too many extended resources";
    if (json_get(spec, "priority") == NULL)
        p->priority = priority_of(l, json_get_str(spec, "priorityClassName"), p->key);
}

void replay_load_refuse(struct replay_load *l, const char *where, const struct error *err)
{
    l->refused++;
    warn(l, where, err->text);
}

static int take_node(struct replay_load *l, json *j, const char *where, struct error *err)
{
    struct node *n;
    (void)where;
    if (decode_node(j, &n, err) < 0)
        return -1;
    if (n->allocatable.has == 0 && n->allocatable.extra_len == 0)
        n->allocatable = n->capacity;
    (void)cluster_put_node(l->cluster, n);
    return 0;
}

struct pod *replay_load_pod(struct replay_load *l, json *j, const char *where, struct error *err)
{
    struct pod *p;
    const char *dumped = json_get_str(json_get(j, "cosched"), "unplaceable");
    if (decode_pod(j, &p, err) < 0)
        return NULL;
    replay_load_defaults(l, p, json_get(j, "spec"));
    if (dumped != NULL) /* the dump has only what could be read */
        p->unplaceable = arena_strdup(&p->arena, dumped);
    else if (p->unplaceable != NULL)
        warn(l, where, arena_printf(&l->arena, "pod %s: %s", p->key, p->unplaceable));
    return p;
}

static int take_pod(struct replay_load *l, json *j, const char *where, struct error *err)
{
    struct pod *p = replay_load_pod(l, j, where, err);
    if (p == NULL)
        return -1;
    l->latest_ns = num_max(l->latest_ns, p->created_ns);
    if (json_get_bool(json_get(j, "cosched"), "assumed", false) && p->node != NULL) {
        vec_push(&l->assumed, p);
        return 0;
    }
    if (l->any_scheduler && p->node == NULL)
        p->scheduler = l->cluster->scheduler_name;
    (void)cluster_put_pod(l->cluster, p, l->hooks);
    return 0;
}

static int take_group(struct replay_load *l, json *j, const char *where, struct error *err)
{
    struct pod_group *g;
    (void)where;
    if (decode_pod_group(j, &g, err) < 0)
        return -1;
    (void)gangs_put_group(l->cluster, g, l->hooks);
    return 0;
}

static int take_priority_class(struct replay_load *l, json *j, const char *where, struct error *err)
{
    int64_t value = 0;
    const char *name = json_get_str(json_get(j, "metadata"), "name");
    (void)where;
    if (name == NULL || !json_get_int(j, "value", &value) || value < INT32_MIN || value > INT32_MAX)
        return error_set(err, ERROR_INVALID,
                         "PriorityClass %s: value: must be an integer of 32 bits",
                         str_or_empty(name));
    int32_t *kept = arena_new(&l->arena, int32_t, 1);
    *kept = (int32_t)value;
    (void)map_put(&l->priority, arena_strdup(&l->arena, name), kept);
    if (json_get_bool(j, "globalDefault", false))
        l->default_priority = *kept;
    return 0;
}

/* Reports an invalid policy, as the scheduler does with an Event. */
static int take_policy(struct replay_load *l, json *j, const char *where, struct error *err)
{
    struct policy *p;
    if (decode_resource_policy(j, &p, err) < 0)
        return -1;
    if (p->invalid != NULL) {
        error_set(err, ERROR_INVALID, "resourcepolicy %s: %s", p->object.key, p->invalid);
        replay_load_refuse(l, where, err);
    } else if (p->warning != NULL) {
        warn(l, where, p->warning);
    }
    (void)policies_put(l->cluster, p);
    return 0;
}

/* Namespaces, storage, budgets. */
#define TAKE(kind_, type, decode, in)                                                             \
    static int take_##kind_(struct replay_load *l, json *j, const char *where, struct error *err) \
    {                                                                                             \
        type *o;                                                                                  \
        (void)where;                                                                              \
        if (decode(j, &o, err) < 0)                                                               \
            return -1;                                                                            \
        (void)api_objects_put(l->cluster->objects, in, (struct object *)o);                       \
        return 0;                                                                                 \
    }
TAKE(namespace, struct object, decode_namespace, API_OBJECTS_NAMESPACES)
TAKE(claim, struct pvc, decode_pvc, API_OBJECTS_CLAIMS)
TAKE(volume, struct pv, decode_pv, API_OBJECTS_VOLUMES)
TAKE(storage_class, struct storage_class, decode_storage_class, API_OBJECTS_STORAGE_CLASSES)
TAKE(csi_node, struct csi_node, decode_csi_node, API_OBJECTS_CSI_NODES)
TAKE(csi_driver, struct csi_driver, decode_csi_driver, API_OBJECTS_CSI_DRIVERS)
TAKE(csi_capacity, struct csi_capacity, decode_csi_capacity, API_OBJECTS_CSI_CAPACITIES)
TAKE(attachment, struct volume_attachment, decode_volume_attachment, API_OBJECTS_VOLUME_ATTACHMENTS)
TAKE(budget, struct pdb, decode_pdb, API_OBJECTS_BUDGETS)
TAKE(device_class, struct device_class, decode_device_class, API_OBJECTS_DEVICE_CLASSES)

static const struct kind {
    const char *name;
    /* -1: refused, and err says why. */
    int (*take)(struct replay_load *l, json *j, const char *where, struct error *err);
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

/* Adds the apiVersion of its list, and a namespace. */
static json *complete(const struct replay_load *l, json *j, const char *api, bool namespaced,
                      struct jsontree *t)
{
    struct jsonnode *root = jsonnode_copy(t, j);
    if (jsonnode_get_str(root, "apiVersion") == NULL && api != NULL)
        jsonnode_set_str(t, root, "apiVersion", api);
    if (namespaced)
        jsonnode_set_str(t, jsonnode_need_object(t, root, "metadata"), "namespace", l->ns);
    return jsonnode_view(t, root);
}

static void take_one(struct replay_load *l, json *j, const char *api, const char *kind_name,
                     const char *where)
{
    const struct kind *kind = kind_named(kind_name);
    struct error err = ERROR_INIT;
    if (kind == NULL) {
        skip(l, kind_name);
        return;
    }
    const char *ns = json_get_str(json_get(j, "metadata"), "namespace");
    bool homeless = kind->namespaced && (ns == NULL || ns[0] == '\0') && json_is_object(j);
    bool group = kind->take == take_group && json_get_str(j, "apiVersion") == NULL;
    AUTO_JSONTREE *t = homeless || group ? jsontree_new() : NULL;
    if (kind->take(l, t != NULL ? complete(l, j, api, homeless, t) : j, where, &err) < 0)
        replay_load_refuse(l, where, &err);
    else
        l->objects++;
}

static void take_list(struct replay_load *l, json *list, const char *kind, const char *where)
{
    char of[128] = "";
    size_t n = strlen(kind) - strlen("List"), i = 0;
    if (n < sizeof of)
        memcpy(of, kind, n);
    json *own = json_get(list, "cosched");
    if (!replay_load_dump_read_head(l, own, where))
        return;
    if (own != NULL)
        vec_push(&l->rest, ((struct replay_load_rest){own, arena_strdup(&l->arena, where)}));
    json *items = json_get(list, "items");
    if (!json_is_array(items) && !json_is_null(items)) {
        struct error err = ERROR_INIT;
        error_set(&err, ERROR_INVALID, "items: must be a list, not %s", json_kind_name(items));
        replay_load_refuse(l, where, &err);
    }
    for (struct json_iter it = json_iter(items); json_next(&it); i++) {
        AUTO_STRBUF place = {0};
        const char *named = json_get_str(it.value, "kind");
        strbuf_addf(&place, "%s: items[%zu]", where, i);
        if (named != NULL || of[0] != '\0')
            take_one(l, it.value, json_get_str(list, "apiVersion"), named != NULL ? named : of,
                     strbuf_str(&place));
        else
            replay_load_object(l, it.value, strbuf_str(&place)); /* reports what is wrong */
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
    return replay_documents_read(&l->documents, path, take_document, l, err);
}

/* A node known only from assumed pods; it exists as long as they do. */
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

static void assume(struct replay_load *l, struct pod *p)
{
    struct arena a;
    struct grant grant = {0};
    struct error err = ERROR_INIT;
    bool made;
    arena_init(&a, 0);
    const char *key = arena_strdup(&a, p->key), *node = arena_strdup(&a, p->node);
    bool read = dump_read_grant(p, &a, &grant, &err) == 0;
    if (read)
        p->node = NULL;
    else /* bound, with unknown cards */
        replay_load_refuse(l, key, &err);
    (void)cluster_put_pod(l->cluster, p, l->hooks);
    struct cluster_pod *cp = read ? cluster_find_pod(l->cluster, key) : NULL;
    if (cp != NULL && cp->state == CLUSTER_PENDING) {
        struct cluster_node *cn = node_for(l, node, &made);
        cluster_assume(l->cluster, cp, cn, &grant);
        policies_restore(l->cluster, cp);
        if (made)
            (void)cluster_remove_node(l->cluster, node);
    }
    arena_deinit(&a);
}

void replay_load_finish(struct replay_load *l)
{
    for (size_t i = 0; i < l->assumed.len; i++)
        assume(l, l->assumed.items[i]);
    l->assumed.len = 0;
    for (size_t i = 0; i < l->rest.len; i++)
        replay_load_dump_read_rest(l, l->rest.items[i].own, l->rest.items[i].where);
    l->rest.len = 0;
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
