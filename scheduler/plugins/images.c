// SPDX-License-Identifier: Apache-2.0
/* images - a node that already has the pod's images starts it sooner. Points for the bytes that
 * need not be pulled, from 23 MiB to 1,000 MiB per image, the range of kube-scheduler; but for this
 * node alone, regardless of how many others have the image. */
#include "lib/base/num.h"
#include "scheduler/plugins/all.h"
#include "scheduler/framework/class_key.h"

enum { WORTH_MIB = 23, ENOUGH_MIB = 1000, NAMES_MAX = 64 };

static int64_t present_mib(const struct node *n, const char *image)
{
    return image == NULL ? 0 : node_image_bytes(n, node_image_hash(image)) >> 20;
}

static int64_t score(const struct plugin_ask *ask, const struct cluster_node *node)
{
    const struct pod *p = ask->pod->pod;
    int64_t sum = 0, names = (int64_t)num_min((int64_t)(p->containers_len + p->init_containers_len +
                                                        p->image_volumes_len),
                                              NAMES_MAX);
    if (node->node->images_len == 0)
        return 0;
    for (size_t i = 0; i < p->containers_len; i++)
        sum += present_mib(node->node, p->containers[i].image);
    for (size_t i = 0; i < p->init_containers_len; i++)
        sum += present_mib(node->node, p->init_containers[i].image);
    for (size_t i = 0; i < p->image_volumes_len; i++)
        sum += present_mib(node->node, p->image_volumes[i]);
    int64_t most = ENOUGH_MIB * names;
    sum = num_max(num_min(sum, most), WORTH_MIB);
    return PLUGIN_SCORE_MAX * (sum - WORTH_MIB) / (most - WORTH_MIB);
}

static void key(const struct plugin_ask *ask, struct strbuf *out)
{
    const struct pod *p = ask->pod->pod;
    for (size_t i = 0; i < p->containers_len; i++) {
        strbuf_addc(out, 'I');
        class_key_text(out, p->containers[i].image);
    }
    for (size_t i = 0; i < p->init_containers_len; i++) {
        strbuf_addc(out, 'I');
        class_key_text(out, p->init_containers[i].image);
    }
    for (size_t i = 0; i < p->image_volumes_len; i++) {
        strbuf_addc(out, 'I');
        class_key_text(out, p->image_volumes[i]);
    }
}

const struct plugin plugin_images = {
    .name = "images", .key = key, .score_depends = PLUGIN_NODE, .score = score, .weight = 1};
