// SPDX-License-Identifier: Apache-2.0
#include "scheduler/model/volumes_attached.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/base/vec.h"
#include "scheduler/model/model.h"
#include "scheduler/model/api_objects.h"

/* A claim without a volume counts for the driver that will provision it, under the claim's key. */
static bool attached_by_class(const struct cluster *c, const struct pvc *claim,
                              struct volumes_attached *out)
{
    const struct storage_class *class =
        api_objects_find_storage_class(c->objects, str_or_empty(claim->storage_class));
    if (class == NULL || class->provisioner[0] == '\0')
        return false;
    const char *driver = volume_driver_of(class->provisioner);
    *out = (struct volumes_attached){.driver = driver,
                                     .handle = claim->object.key,
                                     .in_tree = !str_eq(driver, class->provisioner),
                                     .made_up = true};
    return true;
}

bool volumes_attached_of(const struct cluster *c, const struct pod *p, const struct pod_volume *v,
                         struct volumes_attached *out)
{
    if (v->claim == NULL) {
        *out = (struct volumes_attached){.driver = v->driver, .handle = v->id, .in_tree = true};
        return v->kind != POD_VOLUME_CSI && v->driver != NULL && v->id != NULL;
    }
    const struct pvc *claim = api_objects_find_claim(c->objects, p, v);
    if (claim == NULL ||
        (v->kind == POD_VOLUME_EPHEMERAL && !str_eq(claim->object.owner_uid, p->uid)))
        return false;
    const struct pv *volume = api_objects_find_pv(c->objects, claim->volume);
    if (volume == NULL)
        return attached_by_class(c, claim, out);
    *out = (struct volumes_attached){
        .driver = volume->driver, .handle = volume->handle, .in_tree = volume->in_tree};
    return volume->driver != NULL && str_or_empty(volume->handle)[0] != '\0';
}

int volumes_attached_compare(const void *a, const void *b)
{
    const struct volumes_attached *x = a, *y = b;
    if (x->made_up != y->made_up)
        return x->made_up ? 1 : -1;
    int order = strcmp(x->driver, y->driver);
    return order != 0 ? order : strcmp(x->handle, y->handle);
}

struct volumes_index {
    struct VEC(const struct volume_attachment *) by_node;
    uint64_t changes; /* changes of the attachments, plus one; 0: not built */
};

struct volumes_index *volumes_attached_index_new(void)
{
    return mem_new(struct volumes_index, 1);
}

void volumes_attached_index_free(struct volumes_index *index)
{
    vec_deinit(&index->by_node);
    free(index);
}

static int by_node(const void *a, const void *b)
{
    return strcmp((*(const struct volume_attachment *const *)a)->node,
                  (*(const struct volume_attachment *const *)b)->node);
}

static void refresh(struct volumes_index *x, const struct api_objects *o)
{
    const char *key;
    void *value;
    if (x->changes == o->changes[API_OBJECTS_VOLUME_ATTACHMENTS] + 1)
        return;
    x->changes = o->changes[API_OBJECTS_VOLUME_ATTACHMENTS] + 1;
    x->by_node.len = 0;
    for (size_t i = 0; map_next(&o->by_key[API_OBJECTS_VOLUME_ATTACHMENTS], &i, &key, &value);)
        vec_push(&x->by_node, (const struct volume_attachment *)value);
    if (x->by_node.len > 1)
        qsort(x->by_node.items, x->by_node.len, sizeof *x->by_node.items, by_node);
}

const struct volume_attachment *const *volumes_attached_to(const struct cluster *c,
                                                           const char *node, size_t *len)
{
    struct volumes_index *x = c->volumes_index;
    refresh(x, c->objects);
    size_t low = 0, high = x->by_node.len;
    while (low < high) { /* binary search: the first entry not before the node */
        size_t middle = low + (high - low) / 2;
        if (strcmp(x->by_node.items[middle]->node, node) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *len = 0;
    while (low + *len < x->by_node.len && str_eq(x->by_node.items[low + *len]->node, node))
        ++*len;
    return x->by_node.items + low;
}
