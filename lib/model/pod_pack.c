// SPDX-License-Identifier: Apache-2.0
/* Packs every pointer of struct pod once (see pack.h). Add new pointers of the struct, or of what
 * it points to, here. */
#include <string.h>

#include "lib/model/names.h"
#include "lib/model/pack.h"
#include "lib/model/pod.h"

static void pack_resized(struct pack *k, struct resized *r)
{
    pack_resources(k, &r->allocated);
    pack_resources(k, &r->actual);
}

static void pack_containers(struct pack *k, struct container **list, size_t len)
{
    static const char *const protocols[] = {"TCP", "UDP", "SCTP", NULL};
    pack_array(k, *list, len);
    for (size_t i = 0; i < len; i++) {
        struct container *c = &(*list)[i];
        pack_text(k, &c->name);
        pack_text(k, &c->image);
        pack_resources(k, &c->requests);
        pack_resources(k, &c->limits);
        if (c->resized) {
            pack_array(k, c->resized, 1);
            pack_resized(k, c->resized);
        }
        pack_array(k, c->ports, c->ports_len);
        for (size_t j = 0; j < c->ports_len; j++) {
            pack_text(k, &c->ports[j].host_ip);
            pack_word(k, &c->ports[j].protocol, protocols);
        }
    }
}

static void pack_sizes(struct pack *k, struct pod *p)
{
    if (!p->sizes)
        return;
    pack_array(k, p->sizes, 1);
    pack_resources(k, &p->sizes->overhead);
    pack_resources(k, &p->sizes->requests);
    pack_resized(k, &p->sizes->status);
}

static void pack_tolerations(struct pack *k, struct pod *p)
{
    /* The API server adds these two to every pod. */
    static const char *const keys[] = {"node.kubernetes.io/not-ready",
                                       "node.kubernetes.io/unreachable", NULL};
    pack_array(k, p->tolerations, p->tolerations_len);
    for (size_t i = 0; i < p->tolerations_len; i++) {
        pack_word(k, &p->tolerations[i].key, keys);
        pack_text(k, &p->tolerations[i].value);
    }
}

static void pack_terms(struct pack *k, struct podterm **list, size_t len)
{
    pack_array(k, *list, len);
    for (size_t i = 0; i < len; i++) {
        struct podterm *t = &(*list)[i];
        pack_text(k, &t->topology_key);
        pack_texts(k, &t->namespaces, t->namespaces_len);
        pack_selector(k, &t->namespace_selector);
        pack_selector(k, &t->selector);
    }
}

static void pack_affinity(struct pack *k, struct pod *p)
{
    pack_node_selector(k, &p->required_affinity);
    pack_array(k, p->preferred_affinity, p->preferred_affinity_len);
    for (size_t i = 0; i < p->preferred_affinity_len; i++)
        pack_node_term(k, &p->preferred_affinity[i].term);
    if (p->terms) {
        struct podterms *t = pack_bytes_(k, p->terms, sizeof *t);
        p->terms = t;
        pack_terms(k, &t->affinity, t->affinity_len);
        pack_terms(k, &t->anti_affinity, t->anti_affinity_len);
        pack_terms(k, &t->preferred, t->preferred_len);
        pack_terms(k, &t->preferred_anti, t->preferred_anti_len);
    }
    pack_array(k, p->spread, p->spread_len);
    for (size_t i = 0; i < p->spread_len; i++) {
        pack_text(k, &p->spread[i].topology_key);
        pack_selector(k, &p->spread[i].selector);
    }
}

static void pack_volumes(struct pack *k, struct pod *p)
{
    pack_array(k, p->volumes, p->volumes_len);
    for (size_t i = 0; i < p->volumes_len; i++) {
        struct pod_volume *v = &p->volumes[i];
        pack_text(k, &v->name);
        pack_text(k, &v->claim);
        pack_text(k, &v->driver);
        pack_text(k, &v->id);
        pack_texts(k, &v->monitors, v->monitors_len);
    }
    pack_texts(k, &p->image_volumes, p->image_volumes_len);
}

static void pack_metadata(struct pack *k, struct pod *p)
{
    static const char *const namespaces[] = {"default", "kube-system", NULL};
    static const char *const owners[] = {"ReplicaSet", "Job", "DaemonSet", "StatefulSet", NULL};
    pack_word(k, &p->ns, namespaces);
    pack_text(k, &p->key);
    p->name = p->key + strlen(p->ns) + 1;
    pack_text(k, &p->uid);
    pack_text(k, &p->resource_version);
    pack_labels(k, &p->labels);
    pack_labels(k, &p->annotations);
    pack_word(k, &p->owner_kind, owners);
    pack_text(k, &p->owner_name);
    pack_text(k, &p->owner_uid);
}

static void pack_pod(struct pack *k, struct pod *p)
{
    static const char *const schedulers[] = {NAME_SCHEDULER, "default-scheduler", NULL};
    static const char *const types[] = {"PodScheduled", NULL};
    static const char *const statuses[] = {"True", "False", NULL};
    static const char *const reasons[] = {"Unschedulable", NULL};
    pack_metadata(k, p);
    pack_text(k, &p->node);
    pack_word(k, &p->scheduler, schedulers);
    pack_text(k, &p->scheduling_group);
    pack_containers(k, &p->containers, p->containers_len);
    pack_containers(k, &p->init_containers, p->init_containers_len);
    pack_sizes(k, p);
    pack_labels(k, &p->node_selector);
    pack_affinity(k, p);
    pack_tolerations(k, p);
    pack_volumes(k, p);
    pack_text(k, &p->status_reason);
    pack_text(k, &p->nominated_node);
    pack_texts(k, &p->claimed, p->claimed_len);
    pack_word(k, &p->scheduled.type, types);
    pack_word(k, &p->scheduled.status, statuses);
    pack_word(k, &p->scheduled.reason, reasons);
    pack_text(k, &p->scheduled.message);
    pack_text(k, &p->unplaceable);
    pack_text(k, &p->unreadable);
    pack_resources(k, &p->request);
}

struct pod *pod_pack(struct pod *p)
{
    struct pod counted = *p;
    struct pack count = {.bytes = sizeof *p};
    struct arena a;
    pack_pod(&count, &counted);
    arena_init_exact(&a, count.bytes);
    struct pod *copy = arena_new(&a, struct pod, 1);
    *copy = *p;
    pack_pod(&(struct pack){.to = &a}, copy);
    copy->arena = a;
    return copy;
}
