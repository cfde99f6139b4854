// SPDX-License-Identifier: Apache-2.0
/*
 * Anything that parses, as a pod, a node, a PodGroup, a claim and every other kind, and once more
 * as each item of a list. What decodes is used: every string is read, the scheduler's questions are
 * asked.
 */
#include "lib/base/json.h"
#include "lib/kube/decode.h"
#include "test/fuzz/fuzz_kit.h"

static volatile size_t sink;

static void read_all(const char *s)
{
    if (s)
        sink += strlen(s);
}

static void read_labels(const struct labels *l)
{
    for (size_t i = 0; i < l->len; i++) {
        read_all(l->items[i].key);
        read_all(l->items[i].value);
        if (i > 0 && strcmp(l->items[i - 1].key, l->items[i].key) >= 0)
            abort();
    }
}

static void read_resources(const struct resources *r)
{
    struct strbuf text = {0};
    resources_print(r, &text);
    sink += text.len;
    strbuf_deinit(&text);
    if (r->cpu_milli < 0 || r->memory_bytes < 0 || r->ephemeral_bytes < 0 ||
        r->extra_len > RESOURCES_EXTRA_MAX)
        abort();
}

static void read_containers(const struct container *c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        read_all(c[i].name);
        read_all(c[i].image);
        read_resources(&c[i].requests);
        read_resources(&c[i].limits);
        for (size_t k = 0; k < c[i].ports_len; k++)
            read_all(c[i].ports[k].protocol);
    }
}

static void read_selector(const struct selector *s, const struct labels *labels)
{
    struct strbuf text = {0};
    selector_print(s, &text);
    sink += text.len + selector_matches(s, labels);
    strbuf_deinit(&text);
}

static void read_terms(const struct podterm *t, size_t n, const struct pod *p)
{
    for (size_t i = 0; i < n; i++) {
        struct strbuf text = {0};
        podterm_print(&t[i], &text);
        sink += text.len + podterm_matches(&t[i], p->ns, NULL, &p->labels);
        strbuf_deinit(&text);
        if (!t[i].topology_key[0] || t[i].weight < 0 || t[i].weight > 100 ||
            (t[i].namespaces_len == 0 && t[i].namespace_selector.nothing))
            abort();
    }
}

static void read_spread(const struct pod *p)
{
    for (size_t i = 0; i < p->spread_len; i++) {
        struct strbuf text = {0};
        spread_print(&p->spread[i], &text);
        sink += text.len;
        strbuf_deinit(&text);
        /* Nobody is counted who would not count himself. */
        if (spread_counts(&p->spread[i], &p->labels) &&
            !spread_selects_self(&p->spread[i], &p->labels))
            abort();
        if (p->spread[i].max_skew < 1 || p->spread[i].min_domains < 1)
            abort();
    }
}

static void read_volumes(const struct pod *p)
{
    for (size_t i = 0; i < p->volumes_len; i++) {
        read_all(p->volumes[i].name);
        read_all(p->volumes[i].claim);
        read_all(p->volumes[i].driver);
        read_all(p->volumes[i].id);
        for (size_t k = 0; k < p->volumes_len; k++)
            if (pod_volume_conflicts(&p->volumes[i], &p->volumes[k]) !=
                pod_volume_conflicts(&p->volumes[k], &p->volumes[i]))
                abort();
    }
    for (size_t i = 0; i < p->image_volumes_len; i++)
        sink += node_image_hash(p->image_volumes[i]) & 1;
}

static void try_pod(json *j, const struct node *n)
{
    struct error err = ERROR_INIT;
    struct pod *p = NULL;
    if (decode_pod(j, &p, &err) < 0) {
        struct error why = err;
        if (!err.text[0] || p)
            abort();
        if (decode_pod_remains(j, &why, &p, &err) < 0)
            return;
        if (!p->unreadable || !p->key[0])
            abort();
    } else if (p->unreadable) {
        abort();
    }
    read_all(p->unplaceable);
    read_all(p->key);
    read_all(p->uid);
    read_all(p->scheduler);
    read_all(p->node);
    read_all(p->owner_name);
    read_all(p->scheduled.message);
    read_labels(&p->labels);
    read_labels(&p->annotations);
    read_labels(&p->node_selector);
    read_containers(p->containers, p->containers_len);
    read_containers(p->init_containers, p->init_containers_len);
    read_resources(&p->request);
    if (p->terms) {
        read_terms(p->terms->affinity, p->terms->affinity_len, p);
        read_terms(p->terms->anti_affinity, p->terms->anti_affinity_len, p);
        read_terms(p->terms->preferred, p->terms->preferred_len, p);
        read_terms(p->terms->preferred_anti, p->terms->preferred_anti_len, p);
    }
    read_spread(p);
    read_volumes(p);
    for (size_t i = 0; i < p->claimed_len; i++)
        read_all(p->claimed[i]);
    struct gang_ref gang;
    sink += gang_of_pod(p, &gang, NULL) == 0 && gang.form != GANG_NONE;
    size_t taint = 0;
    if (n)
        sink += node_untolerated(n, p, &taint) != NULL || node_missing_feature(n, p) != NULL;
    if (p->has_required_affinity)
        sink += node_selector_matches(&p->required_affinity, &p->labels, "n1");
    pod_free(p);
}

static void read_object(struct object *o)
{
    read_all(o->key);
    read_all(o->owner_uid);
    read_labels(&o->labels);
    read_labels(&o->annotations);
    object_free(o);
}

static void try_storage(json *j)
{
    const struct labels none = {0};
    struct pvc *claim = NULL;
    struct pv *volume = NULL;
    struct storage_class *class = NULL;
    if (decode_pvc(j, &claim, NULL) == 0) {
        read_all(claim->volume);
        read_all(claim->storage_class);
        read_all(claim->selected_node);
        read_selector(&claim->selector, &claim->object.labels);
        if (claim->request_bytes < 0)
            abort();
        read_object(&claim->object);
    }
    if (decode_pv(j, &volume, NULL) == 0) {
        read_all(volume->driver);
        read_all(volume->handle);
        read_all(volume->claim_name);
        sink += node_selector_matches(&volume->node_affinity, &none, "n1");
        if (volume->capacity_bytes < 0)
            abort();
        read_object(&volume->object);
    }
    if (decode_storage_class(j, &class, NULL) == 0) {
        read_all(volume_driver_of(class->provisioner));
        sink += node_selector_matches(&class->topologies, &none, "n1");
        read_object(&class->object);
    }
}

static void try_csi(json *j)
{
    const struct labels none = {0};
    struct csi_node *node = NULL;
    struct csi_driver *driver = NULL;
    struct csi_capacity *room = NULL;
    struct volume_attachment *attached = NULL;
    if (decode_csi_node(j, &node, NULL) == 0) {
        for (size_t i = 0; i < node->drivers_len; i++)
            if (node->drivers[i].limit < -1 || !csi_node_find(node, node->drivers[i].name))
                abort();
        read_object(&node->object);
    }
    if (decode_csi_driver(j, &driver, NULL) == 0)
        read_object(&driver->object);
    if (decode_csi_capacity(j, &room, NULL) == 0) {
        read_all(room->storage_class);
        read_selector(&room->nodes, &none);
        read_object(&room->object);
    }
    if (decode_volume_attachment(j, &attached, NULL) == 0) {
        read_all(attached->attacher);
        read_all(attached->node);
        read_all(attached->volume);
        read_object(&attached->object);
    }
}

/* One that is in force has units within bounds, and gives no key that it may not. */
static void try_policy(json *j)
{
    struct policy *p = NULL;
    if (decode_resource_policy(j, &p, NULL) < 0)
        return;
    read_all(p->invalid);
    read_all(p->warning);
    read_labels(&p->selector);
    if ((p->invalid == NULL) != (p->units_len > 0) || p->units_len > POLICY_UNITS_MAX ||
        p->match_keys_len > POLICY_KEYS_MAX || p->timeout_ms <= 0 || !policy_equal(p, p))
        abort();
    for (size_t i = 0; i < p->units_len; i++) {
        const struct policy_unit *u = &p->units[i];
        read_labels(&u->node_selector);
        read_labels(&u->pod_labels);
        read_labels(&u->pod_annotations);
        read_resources(&u->max_resources);
        for (size_t k = 0; k < u->pod_annotations.len; k++)
            if (policy_key_is_reserved(u->pod_annotations.items[k].key))
                abort();
    }
    read_object(&p->object);
}

static void try_others(json *j)
{
    struct object *namespace = NULL;
    struct pdb *budget = NULL;
    struct device_class *device = NULL;
    if (decode_namespace(j, &namespace, NULL) == 0)
        read_object(namespace);
    if (decode_pdb(j, &budget, NULL) == 0) {
        sink += pdb_covers(budget, budget->object.ns, "p", &budget->object.labels);
        for (size_t i = 1; i < budget->disrupted_len; i++)
            if (strcmp(budget->disrupted[i - 1], budget->disrupted[i]) >= 0)
                abort();
        read_object(&budget->object);
    }
    if (decode_device_class(j, &device, NULL) == 0) {
        read_all(device->extended_resource);
        read_object(&device->object);
    }
}

static void try_all(json *j)
{
    struct error err = ERROR_INIT;
    struct node *n = NULL;
    struct pod_group *g = NULL;
    if (decode_node(j, &n, &err) == 0) {
        read_all(n->name);
        read_all(n->internal_ip);
        read_labels(&n->labels);
        read_resources(&n->capacity);
        read_resources(&n->allocatable);
        for (size_t i = 0; i < n->images_len; i++)
            if ((i > 0 && n->images[i - 1].hash >= n->images[i].hash) ||
                node_image_bytes(n, n->images[i].hash) != n->images[i].bytes)
                abort();
    }
    try_pod(j, n);
    node_free(n);
    if (decode_pod_group(j, &g, &err) == 0) {
        read_all(g->key);
        read_resources(&g->min_resources);
        pod_group_free(g);
    }
    try_storage(j);
    try_csi(j);
    try_others(j);
    try_policy(j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json_doc *doc = NULL;
    char *buf = malloc(size + JSON_PADDING);
    if (!buf)
        abort();
    if (size)
        memcpy(buf, data, size);
    memset(buf + size, 0, JSON_PADDING);
    if (json_parse_insitu(&doc, buf, size, NULL) == 0) {
        try_all(json_root(doc));
        size_t left = 64;
        for (struct json_iter it = json_iter(json_get(json_root(doc), "items"));
             left-- > 0 && json_next(&it);)
            try_all(it.value);
        json_free(doc);
    }
    free(buf);
    return 0;
}
