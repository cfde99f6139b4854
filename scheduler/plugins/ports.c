// SPDX-License-Identifier: Apache-2.0
/*
 * ports - host ports. Two pods cannot have the same port and protocol on one address of a node; 0.0.0.0 (also: no address given) is every address. Containers and sidecars
 * count: an ordinary init container is gone by the time that the others run, as kube-scheduler has it.
 */
#include "lib/base/str.h"
#include "scheduler/plugin.h"

static bool is_any(const char *ip)
{
    return ip == NULL || ip[0] == '\0' || str_eq(ip, "0.0.0.0");
}

static bool conflict(const struct container_port *a, const struct container_port *b)
{
    return a->host_port == b->host_port && str_eq(a->protocol, b->protocol) &&
           (is_any(a->host_ip) || is_any(b->host_ip) || str_eq(a->host_ip, b->host_ip));
}

static bool is_taken(const struct container_port *port, const struct cluster_node *node)
{
    for (size_t i = 0; i < node->ports.len; i++)
        if (conflict(port, node->ports.items[i].port))
            return true;
    return false;
}

/* The first port of the list of containers that somebody on the node has. */
static const struct container_port *first_taken(const struct container *c, size_t len,
                                                bool sidecars_only, const struct cluster_node *node)
{
    for (size_t i = 0; i < len; i++)
        for (size_t k = 0; k < c[i].ports_len && (c[i].sidecar || !sidecars_only); k++)
            if (is_taken(&c[i].ports[k], node))
                return &c[i].ports[k];
    return NULL;
}

static bool filter(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                   struct reason *why)
{
    const struct pod *p = ask->pod->pod;
    if (node->ports.len == 0 || !ask->pod->has_ports)
        return true;
    const struct container_port *port = first_taken(p->containers, p->containers_len, false, node);
    if (port == NULL)
        port = first_taken(p->init_containers, p->init_containers_len, true, node);
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

const struct plugin plugin_ports = {.name = "ports",
                                    .wakes = EVENT_POD_GONE,
                                    .depends = PLUGIN_HELD,
                                    .applies = applies,
                                    .filter = filter};
