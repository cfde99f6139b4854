// SPDX-License-Identifier: Apache-2.0
/* backend_nvml_links - how cards are connected: by NVLinks, directly or through switches, else over
 * PCI. The names are nvidia-smi's (lib/model/topology ranks them). Each card is queried for its
 * links once, and the pairs follow by comparison. A link to an NVSwitch reaches every card that has
 * one; two such cards are connected by the smaller of their numbers of links. */
#include "device-plugin/cards/backend_nvml_internal.h"

#include "lib/base/num.h"

struct ends {
    const char *peers[NVML_LINKS_MAX]; /* PCI names of the cards at the other ends */
    size_t peers_len;
    size_t switched; /* links that end at a switch */
};

static void read_ends(struct backend *b, nvml_device device, struct arena *a, struct ends *out)
{
    *out = (struct ends){0};
    if (b->nvml.link_state == NULL || b->nvml.link_remote == NULL)
        return;
    for (unsigned link = 0; link < NVML_LINKS_MAX; link++) {
        int active = 0, type = NVML_REMOTE_GPU;
        struct nvml_pci remote = {0};
        if (b->nvml.link_state(device, link, &active) != NVML_OK || !active)
            continue;
        if (b->nvml.link_type != NULL && b->nvml.link_type(device, link, &type) != NVML_OK)
            type = NVML_REMOTE_GPU;
        if (type == NVML_REMOTE_SWITCH)
            out->switched++;
        else if (b->nvml.link_remote(device, link, &remote) == NVML_OK)
            out->peers[out->peers_len++] = backend_nvml_pci_name(a, &remote);
    }
}

static size_t joined(const struct ends *x, const struct ends *y, const char *y_pci)
{
    size_t n = x->switched < y->switched ? x->switched : y->switched;
    for (size_t i = 0; i < x->peers_len; i++)
        n += str_eq(x->peers[i], y_pci);
    return n;
}

static const char *bus_name(struct backend *b, nvml_device x, nvml_device y)
{
    int level = 50;
    if (b->nvml.ancestor == NULL || b->nvml.ancestor(x, y, &level) != NVML_OK)
        return "SYS";
    return level <= 10   ? "PIX"
           : level <= 20 ? "PXB"
           : level <= 30 ? "PHB"
           : level <= 40 ? "NODE"
                         : "SYS";
}

const char **backend_nvml_links(struct backend *b, const nvml_device *devices,
                                const struct gpu_card *cards, size_t n, struct arena *a)
{
    const char **links = arena_new(a, const char *, n *n);
    struct ends *ends = arena_new(a, struct ends, n);
    for (size_t i = 0; i < n; i++) {
        atomic_store(b->asking, cards[i].index);
        read_ends(b, devices[i], a, &ends[i]);
    }
    for (size_t i = 0; i < n; i++) {
        atomic_store(b->asking, cards[i].index);
        for (size_t k = 0; k < n; k++) {
            size_t lanes = i == k ? 0 : joined(&ends[i], &ends[k], cards[k].pci);
            links[i * n + k] = i == k      ? "X"
                               : lanes > 0 ? arena_printf(a, "NV%zu", lanes)
                                           : bus_name(b, devices[i], devices[k]);
        }
    }
    atomic_store(b->asking, BACKEND_NO_CARD);
    return links;
}
