// SPDX-License-Identifier: Apache-2.0
#include "kubectl/load.h"

#include "lib/base/json.h"
#include "lib/kube/decode.h"

static void note_problem(struct load *l, const struct error *why)
{
    if (l->unreadable++ == 0)
        l->first_problem = *why;
}

static void take_node(struct load *l, json *j)
{
    struct node *n = NULL;
    struct error why = ERROR_INIT;
    if (decode_node(j, &n, &why) < 0)
        note_problem(l, &why);
    else
        vec_push(&l->nodes, n);
}

static void take_pod(struct load *l, json *j)
{
    struct pod *p = NULL;
    struct error why = ERROR_INIT;
    if (decode_pod(j, &p, &why) < 0)
        note_problem(l, &why);
    else
        vec_push(&l->pods, p);
}

static int list(struct load *l, const struct kube_kind *kind, struct kube_client *client,
                const struct kube_options *o, void (*take)(struct load *, json *),
                struct error *err)
{
    AUTO_STRBUF path = {0};
    AUTO_STRBUF body = {0};
    AUTO_JSON *doc = NULL;
    kube_api_path(&path, kind, NULL, NULL, NULL);
    const struct kube_request r = {
        .method = "GET", .path = strbuf_str(&path), .max_bytes = o->max_list_bytes};
    if (kube_http_do(kube_client_http(client), &r, &body, NULL, NULL, err) < 0)
        return error_wrap(err, "list %s", kind->resource);
    strbuf_reserve(&body, JSON_PADDING);
    if (json_parse_insitu(&doc, body.ptr, body.len, err) < 0)
        return error_wrap(err, "list %s", kind->resource);
    json *items = json_get(json_root(doc), "items");
    if (items != NULL && !json_is_null(items) && !json_is_array(items))
        return error_set(err, ERROR_INVALID, "list %s: items: must be a list, not %s",
                         kind->resource, json_kind_name(items));
    if ((int64_t)json_len(items) > o->max_objects)
        return error_set(err, ERROR_TOO_LARGE, "list %s: more than %lld objects", kind->resource,
                         (long long)o->max_objects);
    for (struct json_iter it = json_iter(items); json_next(&it);)
        take(l, it.value);
    return 0;
}

int load_all(struct load *l, struct kube_client *client, const struct kube_options *o,
             struct error *err)
{
    *l = (struct load){.first_problem = ERROR_INIT};
    if (list(l, &kube_nodes, client, o, take_node, err) == 0 &&
        list(l, &kube_pods, client, o, take_pod, err) == 0)
        return 0;
    load_free(l);
    return -1;
}

void load_free(struct load *l)
{
    for (size_t i = 0; i < l->nodes.len; i++)
        node_free(l->nodes.items[i]);
    for (size_t i = 0; i < l->pods.len; i++)
        pod_free(l->pods.items[i]);
    vec_deinit(&l->nodes);
    vec_deinit(&l->pods);
}
