// SPDX-License-Identifier: Apache-2.0
/* ports - host ports. Two pods cannot have the same port and protocol on one address of a node;
 * 0.0.0.0 (or no address) is every address. Containers and sidecars count; ordinary init containers
 * do not, because they end before the others run, as in kube-scheduler. */
#include "lib/base/str.h"
#include "scheduler/model/nominations.h"
#include "scheduler/plugins/all.h"
#include "scheduler/framework/class_key.h"

static bool is_any(const char *ip)
{
    return ip == NULL || ip[0] == '\0' || str_eq(ip, "0.0.0.0");
}

static bool conflict(const struct container_port *a, const struct container_port *b)
{
    return a->host_port == b->host_port && str_eq(a->protocol, b->protocol) &&
           (is_any(a->host_ip) || is_any(b->host_ip) || str_eq(a->host_ip, b->host_ip));
}

static bool any_port(const struct pod *p, const struct container_port *conflicting)
{
    for (size_t i = 0; i < p->containers_len; i++)
        for (size_t k = 0; k < p->containers[i].ports_len; k++)
            if (conflict(&p->containers[i].ports[k], conflicting))
                return true;
    for (size_t i = 0; i < p->init_containers_len; i++)
        for (size_t k = 0; p->init_containers[i].sidecar && k < p->init_containers[i].ports_len;
             k++)
            if (conflict(&p->init_containers[i].ports[k], conflicting))
                return true;
    return false;
}

/* Where ports from this number on begin in the node's list. */
static size_t first_from(const struct cluster_node *node, uint16_t number)
{
    size_t lo = 0, hi = node->ports.len;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (node->ports.items[mid].port->host_port < number)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static bool is_taken(const struct plugin_ask *ask, const struct container_port *port,
                     const struct cluster_node *node)
{
    const struct cluster_pod *other;
    for (size_t i = first_from(node, port->host_port);
         i < node->ports.len && node->ports.items[i].port->host_port == port->host_port; i++)
        if (conflict(port, node->ports.items[i].port))
            return true;
    for (size_t i = 0; (other = nominations_next(ask->pod, node, &i)) != NULL;)
        if (other->has_ports && any_port(other->pod, port))
            return true;
    return false;
}

/* The first port of these containers that is in use on the node. */
static const struct container_port *first_taken(const struct plugin_ask *ask,
                                                const struct container *c, size_t len,
                                                bool sidecars_only, const struct cluster_node *node)
{
    for (size_t i = 0; i < len; i++)
        for (size_t k = 0; k < c[i].ports_len && (c[i].sidecar || !sidecars_only); k++)
            if (is_taken(ask, &c[i].ports[k], node))
                return &c[i].ports[k];
    return NULL;
}

static bool filter(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                   struct reason *why)
{
    const struct pod *p = ask->pod->pod;
    if ((node->ports.len == 0 && node->nominated == NULL) || !ask->pod->has_ports)
        return true;
    const struct container_port *port =
        first_taken(ask, p->containers, p->containers_len, false, node);
    if (port == NULL)
        port = first_taken(ask, p->init_containers, p->init_containers_len, true, node);
    if (port != NULL && why != NULL)
        *why = (struct reason){.kind = REASON_PORT,
                               .what = arena_printf(a, "%s%s%u/%s",
                                                    is_any(port->host_ip) ? "" : port->host_ip,
                                                    is_any(port->host_ip) ? "" : ":",
                                                    (unsigned)port->host_port, port->protocol)};
    return port == NULL;
}

static bool applies(const struct cluster_pod *pod)
{
    return pod->has_ports;
}

static void key_of_ports(struct strbuf *out, const struct container *c, size_t len,
                         bool sidecars_only)
{
    for (size_t i = 0; i < len; i++)
        for (size_t k = 0; k < c[i].ports_len && (c[i].sidecar || !sidecars_only); k++) {
            strbuf_addc(out, 'H');
            class_key_number(out, c[i].ports[k].host_port);
            class_key_text(out, c[i].ports[k].host_ip);
            class_key_text(out, c[i].ports[k].protocol);
        }
}

static void key(const struct plugin_ask *ask, struct strbuf *out)
{
    const struct pod *p = ask->pod->pod;
    if (!ask->pod->has_ports)
        return;
    key_of_ports(out, p->containers, p->containers_len, false);
    key_of_ports(out, p->init_containers, p->init_containers_len, true);
}

const struct plugin plugin_ports = {.name = "ports",
                                    .key = key,
                                    PLUGIN_READS(FACET_HELD | FACET_NOMINATED),
                                    .applies = applies,
                                    .filter = filter};
