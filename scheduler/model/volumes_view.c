// SPDX-License-Identifier: Apache-2.0
/*
 * The rules are those of kube-scheduler 1.36 (VolumeBinding, VolumeZone, NodeVolumeLimits):
 *
 * - A claim is bound when it names a volume and the volume controller has marked it complete. If
 *   it names one before that, or its class binds immediately, the pod waits for the controller.
 * - A claim of a WaitForFirstConsumer class gets the volume that is reserved for it; else the
 *   smallest free one that matches and that the node reaches; else a new one, if the class
 *   provisions, allows the node, and its driver does not report a lack of capacity. Claims are
 *   served smallest first, so that a small one does not take a volume that only a large one needs;
 *   two claims never get the same volume.
 * - Once a node is chosen for a claim (by annotation, or a promise to another pod), only that node
 *   and a new volume fit.
 */
#include "scheduler/model/volumes_view.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "scheduler/model/model.h"
#include "scheduler/model/api_objects.h"
#include "scheduler/model/volumes_held.h"

static const char *class_name(const struct pvc *claim)
{
    return str_or_empty(claim->storage_class);
}

static bool is_bound(const struct pvc *claim)
{
    return claim->volume != NULL && claim->bind_completed;
}

/* Whether the volume is reserved for the claim, by name and, if given, uid. */
static bool is_reserved_for(const struct pv *v, const struct pvc *claim)
{
    return v->claim_name != NULL && str_eq(v->claim_name, claim->object.name) &&
           str_eq(v->claim_ns, claim->object.ns) &&
           (v->claim_uid == NULL || v->claim_uid[0] == '\0' ||
            str_eq(v->claim_uid, claim->object.uid));
}

/* Class, size, volume mode and attributes class fit; required of reserved volumes too. */
static bool is_alike(const struct pv *v, const struct pvc *claim)
{
    return str_eq(v->storage_class, class_name(claim)) &&
           v->capacity_bytes >= claim->request_bytes && v->block == claim->block &&
           str_eq(str_or_empty(v->attributes_class), str_or_empty(claim->attributes_class)) &&
           !v->object.terminating;
}

static bool is_free_for(const struct pv *v, const struct pvc *claim)
{
    return v->claim_name == NULL && v->phase == PV_AVAILABLE &&
           (!claim->has_selector || selector_matches(&claim->selector, &v->object.labels)) &&
           (claim->access_modes & ~v->access_modes) == 0;
}

static int by_size(const void *a, const void *b)
{
    const struct pv *x = *(const struct pv *const *)a, *y = *(const struct pv *const *)b;
    if (x->capacity_bytes != y->capacity_bytes)
        return x->capacity_bytes < y->capacity_bytes ? -1 : 1;
    return strcmp(x->object.name, y->object.name);
}

/* The caller runs it twice: to count, and to fill out. */
static size_t find_fits(const struct cluster *c, struct volumes_wait *w, const struct pv **out)
{
    size_t n = 0;
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&c->objects->by_key[API_OBJECTS_VOLUMES], &i, &key, &value);) {
        const struct pv *v = value;
        if (!is_alike(v, w->claim) || map_get(&c->volumes->by_volume, key) != NULL)
            continue; /* promised to another claim */
        if (is_reserved_for(v, w->claim)) {
            if (w->own == NULL || strcmp(v->object.name, w->own->object.name) < 0)
                w->own = v;
        } else if (is_free_for(v, w->claim)) {
            if (out != NULL)
                out[n] = v;
            n++;
        }
    }
    return n;
}

/* Where the class's driver has capacity for this size, if it reports capacity at all. */
static void find_capacities(const struct cluster *c, struct volumes_wait *w, struct arena *a)
{
    const struct csi_driver *driver =
        api_objects_find_csi_driver(c->objects, w->class->provisioner);
    const struct map *all = &c->objects->by_key[API_OBJECTS_CSI_CAPACITIES];
    const char *key;
    void *value;
    w->asks_for_capacity =
        driver != NULL && driver->storage_capacity && w->claim->request_bytes > 0;
    if (!w->asks_for_capacity)
        return;
    w->capacities = arena_new(a, const struct csi_capacity *, map_count(all));
    for (size_t i = 0; map_next(all, &i, &key, &value);) {
        const struct csi_capacity *cap = value;
        int64_t bytes = cap->maximum_bytes >= 0 ? cap->maximum_bytes : cap->capacity_bytes;
        if (str_eq(cap->storage_class, w->class->object.name) && bytes >= w->claim->request_bytes)
            w->capacities[w->capacities_len++] = cap;
    }
}

static void fill_wait(const struct cluster *c, struct volumes_wait *w, struct arena *a)
{
    const struct volumes_promise *given = map_get(&c->volumes->by_claim, w->claim->object.key);
    w->provisions = w->class->provisioner[0] != '\0' && !storage_class_is_static(w->class);
    if (given != NULL && given->volume != NULL) {
        const struct pv *volume = api_objects_find_pv(c->objects, given->volume);
        w->own = volume != NULL && is_alike(volume, w->claim) ? volume : NULL;
        w->only_own = true;
        return;
    }
    w->node = given != NULL ? given->node : w->claim->selected_node;
    if (w->provisions)
        find_capacities(c, w, a);
    if (w->node != NULL)
        return;
    w->fits_len = find_fits(c, w, NULL);
    w->fits = arena_new(a, const struct pv *, w->fits_len);
    (void)find_fits(c, w, w->fits);
    qsort(w->fits, w->fits_len, sizeof *w->fits, by_size);
}

/* "z1__z2"; NULL: not a list of names, so it is ignored. */
static const char **split_zones(const char *text, size_t *len, struct arena *a)
{
    const char **out = arena_new(a, const char *, strlen(text) / 2 + 1);
    *len = 0;
    for (const char *at = text; at != NULL;) {
        const char *end = strstr(at, "__");
        size_t n = end != NULL ? (size_t)(end - at) : strlen(at);
        if (n == 0)
            return NULL;
        out[(*len)++] = arena_strndup(a, at, n);
        at = end != NULL ? end + 2 : NULL;
    }
    return out;
}

#define BETA "failure-domain.beta.kubernetes.io/"
#define STABLE "topology.kubernetes.io/"
static const struct {
    const char *key, *stable;
} topology_labels[] = {{BETA "zone", STABLE "zone"},
                       {BETA "region", STABLE "region"},
                       {STABLE "zone", STABLE "zone"},
                       {STABLE "region", STABLE "region"}};
enum { TOPOLOGY_LABELS = sizeof topology_labels / sizeof *topology_labels };

static void add_zones(struct volumes_view *v, const struct pv *volume, struct arena *a)
{
    for (size_t i = 0; i < TOPOLOGY_LABELS; i++) {
        struct volumes_zone z = {.key = topology_labels[i].key, .volume = volume};
        const char *text = labels_get(&volume->object.labels, z.key);
        z.values = text != NULL ? split_zones(text, &z.values_len, a) : NULL;
        if (z.values != NULL)
            v->zones[v->zones_len++] = z;
    }
}

static bool has_claim(const struct pod_volume *v)
{
    return v->kind == POD_VOLUME_CLAIM || v->kind == POD_VOLUME_EPHEMERAL;
}

/* A claim named twice in a pod counts once. */
static bool is_known(const struct volumes_view *v, const struct pvc *claim)
{
    for (size_t i = 0; i < v->bound_len; i++)
        if (v->bound[i].claim == claim)
            return true;
    for (size_t i = 0; i < v->waits_len; i++)
        if (v->waits[i].claim == claim)
            return true;
    return false;
}

static const char *not_there(const struct pod *p, const struct pod_volume *v, struct arena *a)
{
    return v->kind == POD_VOLUME_EPHEMERAL
               ? arena_printf(a, "claim %s/%s has not been made yet for its volume %s", p->ns,
                              v->claim, v->name)
               : arena_printf(a, "claim %s/%s does not exist", p->ns, v->claim);
}

/* What is wrong with the claim, whatever its class. */
static const char *problem_of(const struct pod *p, const struct pod_volume *v,
                              const struct pvc *claim, struct arena *a)
{
    if (claim == NULL)
        return not_there(p, v, a);
    const char *key = claim->object.key;
    if (claim->phase == PVC_LOST)
        return arena_printf(a, "claim %s has lost its volume %s", key, str_or_empty(claim->volume));
    if (claim->object.terminating)
        return arena_printf(a, "claim %s is being deleted", key);
    if (v->kind == POD_VOLUME_EPHEMERAL && !str_eq(claim->object.owner_uid, p->uid))
        return arena_printf(a, "claim %s was not made for this pod", key);
    return NULL;
}

static const char *add_bound(const struct cluster *c, struct volumes_view *v,
                             const struct pvc *claim, struct arena *a)
{
    const struct pv *volume = api_objects_find_pv(c->objects, claim->volume);
    if (volume == NULL)
        return arena_printf(a, "claim %s is bound to volume %s, which does not exist",
                            claim->object.key, claim->volume);
    v->bound[v->bound_len++] = (struct volumes_bound){claim, volume};
    add_zones(v, volume, a);
    return NULL;
}

static const char *add_wait(const struct cluster *c, struct volumes_view *v,
                            const struct pvc *claim, struct arena *a)
{
    const char *key = claim->object.key, *name = class_name(claim);
    const struct storage_class *class =
        name[0] != '\0' ? api_objects_find_storage_class(c->objects, name) : NULL;
    if (claim->volume != NULL)
        return arena_printf(a, "claim %s is not bound yet to volume %s, which it asks for", key,
                            claim->volume);
    if (name[0] == '\0')
        return arena_printf(a, "claim %s is not bound yet (it has no storage class)", key);
    if (class == NULL)
        return arena_printf(a, "claim %s is not bound, and its storage class %s does not exist",
                            key, name);
    if (!class->wait_for_consumer)
        return arena_printf(a, "claim %s is not bound yet (its class binds immediately)", key);
    struct volumes_wait *w = &v->waits[v->waits_len++];
    w->claim = claim;
    w->class = class;
    fill_wait(c, w, a);
    return NULL;
}

/* Returns the first problem; the rest of the pod is then skipped. */
static const char *add_claim(const struct cluster *c, const struct pod *p,
                             const struct pod_volume *pv, struct volumes_view *v, struct arena *a)
{
    const struct pvc *claim = api_objects_find_claim(c->objects, p, pv);
    const char *problem = problem_of(p, pv, claim, a);
    if (problem != NULL || is_known(v, claim))
        return problem;
    if (pv->kind == POD_VOLUME_CLAIM && (claim->access_modes & ACCESS_READ_WRITE_ONCE_POD) != 0)
        v->exclusive[v->exclusive_len++] = claim->object.key;
    return is_bound(claim) ? add_bound(c, v, claim, a) : add_wait(c, v, claim, a);
}

/* Stable: equal sizes stay in the pod's order. */
static void sort_waits(struct volumes_view *v)
{
    for (size_t i = 1; i < v->waits_len; i++) {
        struct volumes_wait w = v->waits[i];
        size_t at = i;
        for (; at > 0 && v->waits[at - 1].claim->request_bytes > w.claim->request_bytes; at--)
            v->waits[at] = v->waits[at - 1];
        v->waits[at] = w;
    }
}

static bool is_counted(const struct volumes_view *v, const struct volumes_attached *t)
{
    for (size_t i = 0; i < v->attached_len; i++)
        if (v->attached[i].made_up == t->made_up && str_eq(v->attached[i].driver, t->driver) &&
            str_eq(v->attached[i].handle, t->handle))
            return true;
    return false;
}

void volumes_view_make(const struct cluster *c, const struct pod *p, struct arena *a,
                       struct volumes_view *out)
{
    *out = (struct volumes_view){0};
    out->bound = arena_new(a, struct volumes_bound, p->volumes_len);
    out->zones = arena_new(a, struct volumes_zone, p->volumes_len * TOPOLOGY_LABELS);
    out->waits = arena_new(a, struct volumes_wait, p->volumes_len);
    out->exclusive = arena_new(a, const char *, p->volumes_len);
    out->attached = arena_new(a, struct volumes_attached, p->volumes_len);
    for (size_t i = 0; i < p->volumes_len && out->problem == NULL; i++) {
        struct volumes_attached t;
        if (has_claim(&p->volumes[i]))
            out->problem = add_claim(c, p, &p->volumes[i], out, a);
        if (out->problem == NULL && volumes_attached_of(c, p, &p->volumes[i], &t) &&
            !is_counted(out, &t))
            out->attached[out->attached_len++] = t;
    }
    sort_waits(out);
}

static bool no(struct volumes_no *why, enum volumes_no_kind kind, const char *what)
{
    if (why != NULL)
        *why = (struct volumes_no){.kind = kind, .what = what};
    return false;
}

/* Labels only: a volume's affinity cannot name nodes. */
static bool reaches(const struct node *n, const struct pv *v)
{
    return !v->has_node_affinity || node_selector_matches(&v->node_affinity, &n->labels, "");
}

/* A node without any topology label is in a cluster of one zone. */
static bool has_topology(const struct node *n)
{
    for (size_t i = 0; i < TOPOLOGY_LABELS; i++)
        if (labels_get(&n->labels, topology_labels[i].key) != NULL)
            return true;
    return false;
}

static bool is_in(const struct node *n, const struct volumes_zone *z)
{
    const char *at = labels_get(&n->labels, z->key);
    for (size_t i = 0; at == NULL && i < TOPOLOGY_LABELS; i++)
        if (str_eq(topology_labels[i].key, z->key))
            at = labels_get(&n->labels, topology_labels[i].stable);
    for (size_t i = 0; at != NULL && i < z->values_len; i++)
        if (str_eq(at, z->values[i]))
            return true;
    return false;
}

static bool bound_is_reached(const struct volumes_view *v, const struct node *n, struct arena *a,
                             struct volumes_no *why)
{
    for (size_t i = 0; i < v->bound_len; i++) {
        const struct volumes_bound *b = &v->bound[i];
        if (!reaches(n, b->volume))
            return no(why, VOLUMES_NO_REACH,
                      why == NULL ? NULL
                                  : arena_printf(a, "volume %s of claim %s", b->volume->object.name,
                                                 b->claim->object.key));
    }
    if (v->zones_len == 0 || !has_topology(n))
        return true;
    for (size_t i = 0; i < v->zones_len; i++)
        if (!is_in(n, &v->zones[i]))
            return no(why, VOLUMES_NO_ZONE,
                      why == NULL ? NULL : arena_strdup(a, v->zones[i].volume->object.name));
    return true;
}

static bool is_chosen(const struct volumes_view *v, size_t before, const struct pv *volume)
{
    for (size_t i = 0; i < before; i++)
        if (v->waits[i].choice == volume)
            return true;
    return false;
}

/* An existing volume, or NULL. */
static const struct pv *choose_volume(const struct volumes_view *v, size_t at, const struct node *n)
{
    const struct volumes_wait *w = &v->waits[at];
    if (w->own != NULL)
        return reaches(n, w->own) && !is_chosen(v, at, w->own) ? w->own : NULL;
    for (size_t i = 0; i < w->fits_len; i++)
        if (reaches(n, w->fits[i]) && !is_chosen(v, at, w->fits[i]))
            return w->fits[i];
    return NULL;
}

static bool has_capacity(const struct volumes_wait *w, const struct node *n)
{
    for (size_t i = 0; i < w->capacities_len; i++)
        if (selector_matches(&w->capacities[i]->nodes, &n->labels))
            return true;
    return !w->asks_for_capacity;
}

/* Whether a new volume can be provisioned for the claim on the node. */
static bool can_provision(const struct volumes_wait *w, const struct node *n, struct arena *a,
                          struct volumes_no *why)
{
    const char *key = w->claim->object.key;
    const char *class = w->class->object.name;
    if (!w->provisions || w->only_own)
        return no(why, VOLUMES_NO_NONE, why == NULL ? NULL : arena_strdup(a, key));
    if (w->class->has_topologies &&
        !node_selector_matches(&w->class->topologies, &n->labels, n->name))
        return no(why, VOLUMES_NO_TOPOLOGY,
                  why == NULL ? NULL : arena_printf(a, "%s (claim %s)", class, key));
    if (!has_capacity(w, n))
        return no(why, VOLUMES_NO_CAPACITY,
                  why == NULL ? NULL : arena_printf(a, "%s for claim %s", class, key));
    return true;
}

bool volumes_view_choose(const struct volumes_view *v, const struct node *n, struct arena *a,
                         struct volumes_no *why)
{
    if (v->problem != NULL)
        return no(why, VOLUMES_NO_CLAIM, why == NULL ? NULL : arena_strdup(a, v->problem));
    if (!bound_is_reached(v, n, a, why))
        return false;
    for (size_t i = 0; i < v->waits_len; i++) {
        struct volumes_wait *w = &v->waits[i];
        w->choice = NULL;
        if (w->node != NULL && !str_eq(w->node, n->name))
            return no(why, VOLUMES_NO_ELSEWHERE,
                      why == NULL ? NULL
                                  : arena_printf(a, "%s, which was chosen for claim %s", w->node,
                                                 w->claim->object.key));
        w->choice = choose_volume(v, i, n);
        if (w->choice == NULL && !can_provision(w, n, a, why))
            return false;
    }
    return true;
}

struct volumes_cache {
    struct arena arena;
    struct volumes_view view;
    uint64_t class;   /* serial; 0: empty */
    uint64_t changes; /* of the borrowed objects */
    uint64_t version; /* of promises */
};

struct volumes_cache *volumes_view_cache_new(void)
{
    struct volumes_cache *cache = mem_new(struct volumes_cache, 1);
    arena_init(&cache->arena, 0);
    return cache;
}

void volumes_view_cache_free(struct volumes_cache *cache)
{
    arena_deinit(&cache->arena);
    free(cache);
}

static uint64_t changes_of(const struct api_objects *o)
{
    return o->changes[API_OBJECTS_CLAIMS] + o->changes[API_OBJECTS_VOLUMES] +
           o->changes[API_OBJECTS_STORAGE_CLASSES] + o->changes[API_OBJECTS_CSI_DRIVERS] +
           o->changes[API_OBJECTS_CSI_CAPACITIES];
}

const struct volumes_view *volumes_view_of(struct volumes_cache *cache, const struct cluster *c,
                                           const struct pod *p, uint64_t class)
{
    uint64_t changes = changes_of(c->objects);
    if (cache->class != class || cache->changes != changes ||
        cache->version != c->volumes->version) {
        arena_reset(&cache->arena);
        volumes_view_make(c, p, &cache->arena, &cache->view);
        cache->class = class;
        cache->changes = changes;
        cache->version = c->volumes->version;
    }
    return &cache->view;
}

void volumes_view_promise(struct cluster *c, struct cluster_pod *cp, const struct cluster_node *on)
{
    if (cp->pod->volumes_len == 0)
        return;
    struct arena a;
    struct volumes_view view;
    arena_init(&a, 0);
    volumes_view_make(c, cp->pod, &a, &view);
    if (view.problem == NULL && view.waits_len > 0 && on->node != NULL &&
        volumes_view_choose(&view, on->node, &a, NULL)) {
        struct volumes_choice *choices = arena_new(&a, struct volumes_choice, view.waits_len);
        for (size_t i = 0; i < view.waits_len; i++) {
            const struct pv *volume = view.waits[i].choice;
            choices[i] =
                (struct volumes_choice){.claim = view.waits[i].claim->object.key,
                                        .volume = volume != NULL ? volume->object.name : NULL};
        }
        volumes_held_give(c, cp, on, choices, view.waits_len);
    }
    arena_deinit(&a);
}
