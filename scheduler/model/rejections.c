// SPDX-License-Identifier: Apache-2.0
#include "scheduler/model/rejections.h"
#include "scheduler/model/node_table.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/resources.h"

static const char out_of[] = "OutOf";                        /* the resource's name follows */
static const char unexpected[] = "UnexpectedAdmissionError"; /* a device plugin refused */

bool rejections_is_one(const struct pod *p)
{
    return p->phase == POD_FAILED && p->node != NULL && p->status_reason != NULL &&
           (strncmp(p->status_reason, out_of, sizeof out_of - 1) == 0 ||
            str_eq(p->status_reason, unexpected));
}

static void touch(struct cluster *c, const struct cluster_rejection *r, int by)
{
    struct cluster_node *cn = cluster_find_node(c, r->node);
    if (cn == NULL)
        return; /* counted when the node arrives: cluster.c */
    cn->rejections = (uint32_t)((int64_t)cn->rejections + by);
    node_table_touch(c->table, cn, true);
}

static void note(struct cluster *c, const char *node, const char *resource, int64_t closed_until_ms,
                 int64_t until_ms)
{
    struct cluster_rejection *r = NULL;
    for (size_t i = 0; i < c->rejections.len && r == NULL; i++)
        if (str_eq(c->rejections.items[i].node, node) &&
            str_eq(c->rejections.items[i].resource, resource))
            r = &c->rejections.items[i];
    bool known = r != NULL;
    if (!known) {
        struct cluster_rejection first = {.node = mem_strdup(node),
                                          .resource = mem_strdup(resource)};
        vec_push(&c->rejections, first);
        r = &c->rejections.items[c->rejections.len - 1];
    }
    r->closed = true; /* rejections_expire reopens it if its time is already over */
    r->closed_until_ms = closed_until_ms;
    r->until_ms = until_ms;
    touch(c, r, known ? 0 : 1);
}

void rejections_note(struct cluster *c, const struct pod *p, int64_t age_ms, int64_t now_ms)
{
    int64_t noted_ms = now_ms - num_max(age_ms, 0), until_ms = noted_ms + REJECTIONS_MS;
    if (!rejections_is_one(p) || until_ms <= now_ms)
        return;
    if (strncmp(p->status_reason, out_of, sizeof out_of - 1) == 0) {
        note(c, p->node, p->status_reason + sizeof out_of - 1, until_ms, until_ms);
        return;
    }
    bool any = false;
    for (uint32_t i = 0; i < p->request.extra_len; i++)
        if (p->request.extra[i].value > 0) {
            note(c, p->node, p->request.extra[i].name, noted_ms + REJECTIONS_DEVICE_MS, until_ms);
            any = true;
        }
    if (!any) /* the kubelet's own managers, usually the CPU manager */
        note(c, p->node, p->request.cpu_milli > 0 ? "cpu" : "pods", until_ms, until_ms);
}

uint32_t rejections_expire(struct cluster *c, int64_t now_ms, int64_t *next_ms)
{
    uint32_t events = 0;
    size_t kept = 0;
    *next_ms = -1;
    for (size_t i = 0; i < c->rejections.len; i++) {
        struct cluster_rejection r = c->rejections.items[i];
        if (r.until_ms <= now_ms) {
            touch(c, &r, -1);
            free(r.node);
            free(r.resource);
            events = EVENT_NODE_CAPACITY;
            continue;
        }
        if (r.closed && r.closed_until_ms <= now_ms) {
            r.closed = false;
            touch(c, &r, 0);
            events = EVENT_NODE_CAPACITY;
        }
        int64_t over_ms = r.closed ? r.closed_until_ms : r.until_ms;
        *next_ms = *next_ms < 0 || over_ms < *next_ms ? over_ms : *next_ms;
        c->rejections.items[kept++] = r;
    }
    c->rejections.len = kept;
    return events;
}

uint32_t rejections_count(const struct cluster *c, const char *node)
{
    uint32_t n = 0;
    for (size_t i = 0; i < c->rejections.len; i++)
        n += str_eq(c->rejections.items[i].node, node);
    return n;
}

static bool is_against(const struct cluster_rejection *r, const struct cluster_pod *pod,
                       const struct cluster_node *node)
{
    return str_eq(r->node, node->name) &&
           (str_eq(r->resource, "pods") ||
            resources_get(&pod->pod->request, r->resource, NULL) > 0);
}

const char *rejections_against(const struct cluster *c, const struct cluster_pod *pod,
                               const struct cluster_node *node)
{
    const char *first = NULL; /* by name, not by order of arrival */
    for (size_t i = 0; node->rejections > 0 && i < c->rejections.len; i++) {
        const struct cluster_rejection *r = &c->rejections.items[i];
        if (r->closed && is_against(r, pod, node) &&
            (first == NULL || strcmp(r->resource, first) < 0))
            first = r->resource;
    }
    return first;
}

bool rejections_avoid(const struct cluster *c, const struct cluster_pod *pod,
                      const struct cluster_node *node)
{
    for (size_t i = 0; node->rejections > 0 && i < c->rejections.len; i++)
        if (is_against(&c->rejections.items[i], pod, node))
            return true;
    return false;
}

void rejections_deinit(struct cluster *c)
{
    for (size_t i = 0; i < c->rejections.len; i++) {
        free(c->rejections.items[i].node);
        free(c->rejections.items[i].resource);
    }
    vec_deinit(&c->rejections);
}
