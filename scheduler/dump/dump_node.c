// SPDX-License-Identifier: Apache-2.0
#include "scheduler/dump/dump_node.h"

#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/dump/dump_parts.h"

static void put_node_spec(struct json_writer *w, const struct node *n)
{
    if (!n->unschedulable && n->taints_len == 0)
        return;
    dump_parts_object(w, "spec");
    dump_parts_true(w, "unschedulable", n->unschedulable);
    if (n->taints_len > 0) {
        dump_parts_array(w, "taints");
        for (size_t i = 0; i < n->taints_len; i++) {
            json_object_begin(w);
            json_kv_str(w, "key", n->taints[i].key);
            dump_parts_text(w, "value", n->taints[i].value);
            json_kv_str(w, "effect", dump_parts_effect(n->taints[i].effect));
            json_object_end(w);
        }
        json_array_end(w);
    }
    json_object_end(w);
}

static void put_features(struct json_writer *w, const struct node *n)
{
    if (n->features == 0)
        return;
    dump_parts_array(w, "declaredFeatures");
    for (unsigned i = 0; i < POD_FEATURES; i++)
        if (n->features & 1u << i)
            json_put_str(w, pod_feature_name(1u << i));
    json_array_end(w);
}

/* The model has only the hash of a name: see node_image_hash. */
static void put_images(struct json_writer *w, const struct node *n)
{
    if (n->images_len == 0)
        return;
    dump_parts_array(w, "images");
    for (size_t i = 0; i < n->images_len; i++) {
        char name[32];
        (void)str_format(name, sizeof name, "#%016llx", (unsigned long long)n->images[i].hash);
        json_object_begin(w);
        dump_parts_array(w, "names");
        json_put_str(w, name);
        json_array_end(w);
        json_kv_int(w, "sizeBytes", n->images[i].bytes);
        json_object_end(w);
    }
    json_array_end(w);
}

static void put_node_status(struct json_writer *w, const struct node *n)
{
    dump_parts_object(w, "status");
    dump_parts_resources(w, "capacity", &n->capacity);
    dump_parts_resources(w, "allocatable", &n->allocatable);
    if (n->internal_ip != NULL) {
        dump_parts_array(w, "addresses");
        json_object_begin(w);
        json_kv_str(w, "type", "InternalIP");
        json_kv_str(w, "address", n->internal_ip);
        json_object_end(w);
        json_array_end(w);
    }
    put_features(w, n);
    put_images(w, n);
    dump_parts_array(w, "conditions");
    json_object_begin(w);
    json_kv_str(w, "type", "Ready");
    json_kv_str(w, "status", n->ready ? "True" : "False");
    json_object_end(w);
    json_array_end(w);
    json_object_end(w);
}

void dump_node_print(const struct node *n, struct json_writer *w)
{
    json_object_begin(w);
    json_kv_str(w, "apiVersion", "v1");
    json_kv_str(w, "kind", "Node");
    dump_parts_object(w, "metadata");
    json_kv_str(w, "name", n->name);
    dump_parts_text(w, "uid", n->uid);
    dump_parts_text(w, "resourceVersion", n->resource_version);
    dump_parts_terminating(w, n->terminating);
    dump_parts_labels(w, "labels", &n->labels);
    dump_parts_annotations(w, &n->annotations);
    json_object_end(w);
    put_node_spec(w, n);
    put_node_status(w, n);
    json_object_end(w);
}

static const char *group_version(const struct pod_group *g)
{
    return g->api == POD_GROUP_NATIVE ? NAME_API_PODGROUP_NATIVE
           : g->api == POD_GROUP_X    ? NAME_API_PODGROUP_X
                                      : NAME_API_PODGROUP;
}

static void put_group_wishes(struct json_writer *w, const struct pod_group *g)
{
    struct label wishes[2];
    struct labels all = {.items = wishes};
    if (g->list != NULL)
        wishes[all.len++] = (struct label){.key = NAME_ANN_GANG_GROUPS, .value = g->list};
    if (g->match != NULL)
        wishes[all.len++] = (struct label){.key = NAME_ANN_GANG_MATCH, .value = g->match};
    dump_parts_labels(w, "annotations", &all);
}

static void put_group_spec(struct json_writer *w, const struct pod_group *g)
{
    dump_parts_object(w, "spec");
    if (g->api == POD_GROUP_NATIVE) {
        dump_parts_object(w, "schedulingPolicy");
        dump_parts_object(w, "gang");
        json_kv_int(w, "minCount", g->min_member);
        json_object_end(w);
        json_object_end(w);
    } else {
        json_kv_int(w, "minMember", g->min_member);
        json_kv_int(w, "scheduleTimeoutSeconds", g->schedule_timeout_s);
        dump_parts_resources(w, "minResources", &g->min_resources);
    }
    json_object_end(w);
}

void dump_node_print_group(const struct pod_group *g, struct json_writer *w)
{
    json_object_begin(w);
    json_kv_str(w, "apiVersion", group_version(g));
    json_kv_str(w, "kind", "PodGroup");
    dump_parts_object(w, "metadata");
    json_kv_str(w, "namespace", g->ns);
    json_kv_str(w, "name", g->name);
    dump_parts_text(w, "uid", g->uid);
    dump_parts_text(w, "resourceVersion", g->resource_version);
    put_group_wishes(w, g);
    json_object_end(w);
    put_group_spec(w, g);
    if (g->phase[0] != '\0') {
        dump_parts_object(w, "status");
        json_kv_str(w, "phase", g->phase);
        json_object_end(w);
    }
    json_object_end(w);
}
