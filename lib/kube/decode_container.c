// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/decode_container.h"

#include "lib/base/str.h"
#include "lib/kube/decode.h"
#include "lib/kube/decode_field.h"

/* Only the first error is told. */
static int also(int rc, int next)
{
    return rc < 0 ? rc : next;
}

static int decode_ports(json *j, struct container *c, struct arena *a, struct error *err)
{
    size_t i = 0, len = json_len(j);
    int rc = 0;
    c->ports = NULL; /* a repeated member of the same name may be longer */
    c->ports_len = 0;
    for (struct json_iter it = json_iter(j); json_next(&it); i++) {
        int64_t port = 0;
        if (decode_field_int(json_get(it.value, "hostPort"), "hostPort", 0, 65535, &port,
                             rc < 0 ? NULL : err) < 0)
            rc = rc < 0 ? rc : error_wrap(err, "ports[%zu]", i);
        if (port == 0)
            continue;
        if (!c->ports)
            c->ports = arena_new(a, struct container_port, len);
        struct container_port *p = &c->ports[c->ports_len++];
        *p = (struct container_port){.host_port = (uint16_t)port, .host_ip = "", .protocol = "TCP"};
        /* The API server checks neither; an address that cannot be read is every address. */
        (void)decode_field_str(json_get(it.value, "hostIP"), "hostIP", a, &p->host_ip, NULL);
        (void)decode_field_str(json_get(it.value, "protocol"), "protocol", a, &p->protocol, NULL);
    }
    return rc;
}

static int decode_container(json *j, bool init, struct container *c, uint8_t *features,
                            struct arena *a, struct error *err)
{
    int rc = 0;
    c->name = c->image = "";
    if (!json_is_object(j))
        return error_set(err, ERROR_INVALID, "must be an object, not %s", json_kind_name(j));
    for (struct json_iter it = json_iter(j); json_next(&it);) {
        struct error *first = rc < 0 ? NULL : err;
        if (FIELD(it, "name")) {
            (void)decode_field_str(it.value, "name", a, &c->name, NULL);
        } else if (FIELD(it, "image")) {
            (void)decode_field_str(it.value, "image", a, &c->image, NULL);
        } else if (FIELD(it, "resources")) {
            c->requests = c->limits = (struct resources){0};
            for (struct json_iter r = json_iter(it.value); json_next(&r);
                 first = rc < 0 ? NULL : err)
                if (FIELD(r, "requests"))
                    rc = also(rc, decode_field_resources(r.value, "resources.requests", a,
                                                         QUANTITY_UP, &c->requests, NULL, first));
                else if (FIELD(r, "limits"))
                    rc = also(rc, decode_field_resources(r.value, "resources.limits", a,
                                                         QUANTITY_UP, &c->limits, NULL, first));
        } else if (FIELD(it, "ports")) {
            rc = also(rc, decode_ports(it.value, c, a, first));
        } else if (FIELD(it, "restartPolicy")) {
            c->sidecar = init && str_eq(json_str(it.value), "Always");
        } else if (FIELD(it, "restartPolicyRules")) {
            for (struct json_iter r = json_iter(it.value); json_next(&r);)
                if (str_eq(json_get_str(r.value, "action"), "RestartAllContainers"))
                    *features |= POD_FEATURE_RESTART_ALL;
        }
    }
    return rc;
}

int decode_container_list(json *j, const char *name, bool init, struct arena *a,
                          struct container **out, size_t *len, uint8_t *features, struct error *err)
{
    int rc = decode_field_array(j, name, DECODE_CONTAINERS_MAX, len, err);
    size_t i = 0, ports = 0;
    *out = arena_new(a, struct container, *len);
    for (struct json_iter it = json_iter(j); *len > 0 && json_next(&it); i++) {
        struct container *c = &(*out)[i];
        if (decode_container(it.value, init, c, features, a, rc < 0 ? NULL : err) < 0)
            rc = rc < 0 ? rc : error_wrap(err, "%s[%zu]", name, i);
        ports += c->ports_len;
    }
    if (rc == 0 && ports > DECODE_PORTS_MAX)
        rc = error_set(err, ERROR_TOO_LARGE, "%s: have %zu host ports, more than %d", name, ports,
                       DECODE_PORTS_MAX);
    return rc;
}

/* Usually in the spec's order, but the kubelet does not guarantee it. In a list that no node may
 * take nothing is searched: that would be quadratic, and missed are the sizes of a resize. */
static struct container *container_named(struct container *list, size_t len, size_t guess,
                                         const char *name)
{
    if (guess < len && str_eq(list[guess].name, name))
        return &list[guess];
    for (size_t i = 0; i < len && len <= DECODE_CONTAINERS_MAX; i++)
        if (str_eq(list[i].name, name))
            return &list[i];
    return NULL;
}

static bool same_sizes(const struct resources *a, const struct resources *b)
{
    if (a->cpu_milli != b->cpu_milli || a->memory_bytes != b->memory_bytes ||
        a->ephemeral_bytes != b->ephemeral_bytes || a->pods != b->pods || a->has != b->has ||
        a->extra_len != b->extra_len)
        return false;
    for (uint32_t i = 0; i < a->extra_len; i++)
        if (a->extra[i].value != b->extra[i].value || !str_eq(a->extra[i].name, b->extra[i].name))
            return false;
    return true;
}

/* A kubelet repeats the spec's sizes in every status. Only different ones change the effective
 * request (pod_effective_request), and only with `actual` among them. */
static bool says_other_sizes(const struct resized *r, const struct resources *spec)
{
    return r->has_actual && (!same_sizes(&r->actual, spec) ||
                             (r->has_allocated && !same_sizes(&r->allocated, spec)));
}

/* The kubelet writes these from the spec, which says what is wrong with an amount. */
void decode_container_resized(const struct json_iter *at, struct resized *r, struct arena *a)
{
    const struct json_iter it = *at;
    if (FIELD(it, "allocatedResources")) {
        r->allocated = (struct resources){0};
        (void)decode_field_resources(it.value, "", a, QUANTITY_UP, &r->allocated, &r->has_allocated,
                                     NULL);
        return;
    }
    r->actual = (struct resources){0};
    r->has_actual = json_is_object(it.value);
    (void)decode_field_resources(json_get(it.value, "requests"), "", a, QUANTITY_UP, &r->actual,
                                 NULL, NULL);
}

static void decode_container_status(json *j, struct container *c, struct arena *a)
{
    struct resized r = {0};
    c->resized = NULL;
    for (struct json_iter it = json_iter(j); json_next(&it);) {
        if (FIELD(it, "containerID"))
            c->has_id = !str_eq(str_or_empty(json_str(it.value)), "");
        else if (FIELD(it, "allocatedResources") || FIELD(it, "resources"))
            decode_container_resized(&it, &r, a);
    }
    if (says_other_sizes(&r, &c->requests)) {
        c->resized = arena_new(a, struct resized, 1);
        *c->resized = r;
    }
}

void decode_container_statuses(json *j, struct container *list, size_t len, struct arena *a)
{
    size_t i = 0;
    for (struct json_iter it = json_iter(j); json_next(&it); i++) {
        struct container *c = container_named(list, len, i, json_get_str(it.value, "name"));
        if (c)
            decode_container_status(it.value, c, a);
    }
}

static void take_ids(json *statuses, struct container *list, size_t len, struct arena *a)
{
    size_t i = 0;
    for (struct json_iter it = json_iter(statuses); json_next(&it); i++) {
        struct container *c = container_named(list, len, i, json_get_str(it.value, "name"));
        bool runs = json_is_object(json_get(json_get(it.value, "state"), "running"));
        const char *id = runs ? json_get_str(it.value, "containerID") : NULL;
        if (c && id && id[0] != '\0')
            c->id = arena_strdup(a, id);
    }
}

void decode_container_ids(json *j, struct pod *p)
{
    json *status = json_get(j, "status");
    take_ids(json_get(status, "containerStatuses"), p->containers, p->containers_len, &p->arena);
    take_ids(json_get(status, "initContainerStatuses"), p->init_containers, p->init_containers_len,
             &p->arena);
}
