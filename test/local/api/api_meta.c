// SPDX-License-Identifier: Apache-2.0
/*
 * api_meta - what the server itself writes into an object, and what a client cannot change: names,
 * uid, times, generation, status and its subresource, finalizers.
 *
 * managedFields of updates are not kept (patch_apply.c keeps those of appliers): nothing here reads
 * them, and they would be half of every object.
 */
#include <string.h>
#include <sys/random.h>

#include "lib/base/clock.h"
#include "test/local/api/api_internal.h"
#include "test/local/kinds/kinds_check.h"
#include "test/local/kinds/kinds_row.h"

static unsigned char random_byte(struct api *a)
{
    if (a->random_used == 0 || a->random_used >= sizeof a->random) {
        /* Names and uids need to be unique, not secret: a short read leaves bytes of before. */
        if (getrandom(a->random, sizeof a->random, 0) < 0)
            for (size_t i = 0; i < sizeof a->random; i++)
                a->random[i] = (unsigned char)clock_jitter(256);
        a->random_used = 0;
    }
    return a->random[a->random_used++];
}

void api_uid(struct api *a, char out[UID_SIZE])
{
    unsigned char bytes[UID_BYTES];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = random_byte(a);
    uid_print(bytes, out);
}

/* Kubernetes' alphabet: no vowels, no 0, 1 and 3, so that no words come out. */
static void generate_name(struct api *a, const char *base, char out[256])
{
    static const char messages[] = "bcdfghjklmnpqrstvwxz2456789";
    char tail[6] = {0};
    for (int i = 0; i < 5; i++) {
        unsigned char b;
        do {
            b = random_byte(a);
        } while (b >= 256 / 27 * 27);
        tail[i] = messages[b % 27];
    }
    (void)str_format(out, 256, "%.*s%s", 58, base, tail);
}

/* Printing a time costs as much as the rest of a small write, and most writes fall into the same
 * second. */
void api_now(struct api *a, int64_t plus_s, char out[32])
{
    int64_t second = a->config.now_ns() / 1000000000 + plus_s;
    if (second != a->shown_second || a->shown[0] == '\0') {
        clock_rfc3339(second * 1000000000, 0, a->shown);
        a->shown_second = second;
    }
    memcpy(out, a->shown, sizeof a->shown);
}

static const char *go_type(const struct jsonnode *n)
{
    return jsonnode_is_object(n)   ? "object"
           : jsonnode_is_array(n)  ? "array"
           : jsonnode_is_string(n) ? "string"
           : jsonnode_is_bool(n)   ? "bool"
                                   : "number";
}

static int wrong_type(const struct kind *k, const struct jsonnode *n, const char *field,
                      const char *type, struct error *err)
{
    return api_fail(
        err, 400,
        "%s in version \"%s\" cannot be handled as a %s: json: cannot unmarshal %s into "
        "Go struct field %s of type %s",
        k->kind, k->version, k->kind, go_type(n), field, type);
}

/* apiVersion, kind and metadata come first: a list leaves the first two out by skipping them. */
static void put_in_order(struct jsontree *t, const struct kind *k)
{
    struct jsonnode *root = jsontree_root(t);
    struct jsonnode_iter it = jsonnode_iter(root);
    if (jsonnode_next(&it) && str_eq(it.key, "apiVersion") && jsonnode_str(it.value) &&
        *jsonnode_str(it.value) && jsonnode_next(&it) && str_eq(it.key, "kind") &&
        jsonnode_str(it.value) && *jsonnode_str(it.value))
        return;
    struct jsonnode *fresh = jsonnode_object(t);
    struct jsonnode *meta = jsonnode_remove(root, "metadata");
    (void)jsonnode_remove(root, "apiVersion");
    (void)jsonnode_remove(root, "kind");
    jsonnode_set_str(t, fresh, "apiVersion", k->api_version);
    jsonnode_set_str(t, fresh, "kind", k->kind);
    jsonnode_set(t, fresh, "metadata", meta);
    for (;;) {
        it = jsonnode_iter(root);
        if (!jsonnode_next(&it))
            break;
        jsonnode_set(t, fresh, it.key, jsonnode_remove(root, it.key));
    }
    jsontree_set_root(t, fresh);
}

int api_meta_shape(struct jsontree *t, const struct kind *k, struct error *err)
{
    static const char *const texts[] = {"name", "generateName", "namespace", "uid",
                                        "resourceVersion"};
    static const char *const optional[] = {
        "labels",          "annotations",       "finalizers",
        "ownerReferences", "deletionTimestamp", "creationTimestamp",
        "managedFields"};
    struct jsonnode *root = jsontree_root(t);
    char field[64];
    struct jsonnode *meta = jsonnode_get(root, "metadata");
    (void)str_format(field, sizeof field, "%s.metadata", k->kind);
    if (meta && !jsonnode_is_object(meta) && !jsonnode_is_null(meta))
        return wrong_type(k, meta, field, "v1.ObjectMeta", err);
    meta = jsonnode_need_object(t, root, "metadata");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct jsonnode *n = jsonnode_get(meta, texts[i]);
        (void)str_format(field, sizeof field, "ObjectMeta.metadata.%s", texts[i]);
        if (jsonnode_is_null(n))
            (void)jsonnode_remove(meta, texts[i]);
        else if (n && !jsonnode_is_string(n))
            return wrong_type(k, n, field, "string", err);
    }
    for (size_t i = 0; i < sizeof optional / sizeof optional[0]; i++) {
        struct jsonnode *n = jsonnode_get(meta, optional[i]);
        bool list = i == 2 || i == 3 || i == 6;
        (void)str_format(field, sizeof field, "ObjectMeta.metadata.%s", optional[i]);
        if (n && (jsonnode_is_null(n) || (list && jsonnode_is_array(n) && jsonnode_len(n) == 0)))
            (void)jsonnode_remove(meta, optional[i]);
        else if (n && list && !jsonnode_is_array(n))
            return wrong_type(k, n, field, "[]string", err);
        else if (n && i < 2 && !jsonnode_is_object(n))
            return wrong_type(k, n, field, "map[string]string", err);
        if (i >= 2)
            continue;
        for (struct jsonnode_iter it = jsonnode_iter(jsonnode_get(meta, optional[i]));
             jsonnode_next(&it);)
            if (!jsonnode_is_string(it.value))
                return wrong_type(k, it.value, field, "string", err);
    }
    put_in_order(t, k);
    return 0;
}

int api_meta_validate(struct jsonnode *object, const struct kind *k, struct error *err)
{
    if (k->validate)
        return k->validate(object, err);
    struct kinds_check c = {0};
    kinds_check_metadata(&c, object,
                         str_eq(k->group, "rbac.authorization.k8s.io") ? KINDS_NAME_SEGMENT
                                                                       : KINDS_NAME_SUBDOMAIN);
    return kinds_check_done(&c, object, err);
}

/* Called before admission and again after it: a webhook may have replaced the object, and does not
 * see what the server writes last. */
void api_meta_create(struct api *a, struct api_request *r)
{
    static const char *const gone[] = {"resourceVersion", "deletionTimestamp",
                                       "deletionGracePeriodSeconds", "selfLink", "generation"};
    const struct kind *k = r->target.kind;
    struct jsontree *t = r->tree;
    struct jsonnode *root = jsontree_root(t);
    struct jsonnode *meta = jsonnode_need_object(t, root, "metadata");
    const char *name = jsonnode_get_str(meta, "name");
    const char *base = jsonnode_get_str(meta, "generateName");
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++)
        (void)jsonnode_remove(meta, gone[i]);
    if (r->uid[0] == '\0') {
        api_uid(a, r->uid);
        api_now(a, 0, r->created);
    }
    if ((!name || !*name) && base && *base) {
        if (r->name[0] == '\0')
            generate_name(a, base, r->name);
        jsonnode_set_str(t, meta, "name", r->name);
    }
    if (k->namespaced)
        jsonnode_set_str(t, meta, "namespace", r->target.ns);
    else
        (void)jsonnode_remove(meta, "namespace");
    jsonnode_set_str(t, meta, "uid", r->uid);
    if (k->has_generation)
        jsonnode_set_int(t, meta, "generation", 1);
    jsonnode_set_str(t, meta, "creationTimestamp", r->created);
    if (k->has_status && !k->create_keeps_status)
        (void)jsonnode_remove(root, "status");
    if (k->fill_defaults)
        k->fill_defaults(t, root);
    if (k == &kind_pods && jsonnode_len(jsonnode_path(root, "spec", "schedulingGates", NULL)) > 0)
        api_set_condition(a, t, root, "PodScheduled", "False", "SchedulingGated",
                          "Scheduling is blocked due to non-empty scheduling gates");
}

/* What /status may change besides the status. */
static bool status_keeps_metadata(const struct kind *k)
{
    return k->custom || str_eq(k->group, "apps");
}

/* From the old object as it was; absent there: absent here. */
static void restore(struct jsontree *t, struct jsonnode *to, const struct jsonnode *from,
                    const char *key)
{
    struct jsonnode *value = jsonnode_get(from, key);
    if (!value)
        (void)jsonnode_remove(to, key);
    else if (!jsonnode_equal(jsonnode_get(to, key), value))
        jsonnode_set(t, to, key, jsonnode_clone(t, value));
}

static bool is_about(const char *key)
{
    return str_eq(key, "apiVersion") || str_eq(key, "kind") || str_eq(key, "metadata");
}

/* All but apiVersion, kind, metadata and `except` is as it was. */
static void restore_rest(struct jsontree *t, struct jsonnode *root, struct jsonnode *old,
                         const char *except)
{
    struct jsonnode_iter it = jsonnode_iter(root);
    while (jsonnode_next(&it)) {
        if (is_about(it.key) || str_eq(it.key, except) || jsonnode_get(old, it.key))
            continue;
        (void)jsonnode_remove(root, it.key);
        it = jsonnode_iter(root);
    }
    for (it = jsonnode_iter(old); jsonnode_next(&it);)
        if (!is_about(it.key) && !str_eq(it.key, except))
            restore(t, root, old, it.key);
}

static bool spec_differs(struct jsonnode *root, struct jsonnode *old)
{
    for (struct jsonnode_iter it = jsonnode_iter(root); jsonnode_next(&it);)
        if (!is_about(it.key) && !str_eq(it.key, "status") &&
            !jsonnode_equal(it.value, jsonnode_get(old, it.key)))
            return true;
    for (struct jsonnode_iter it = jsonnode_iter(old); jsonnode_next(&it);)
        if (!is_about(it.key) && !str_eq(it.key, "status") && !jsonnode_get(root, it.key))
            return true;
    return false;
}

bool api_has_finalizer(struct jsonnode *object, const char *name)
{
    struct jsonnode *list = jsonnode_path(object, "metadata", "finalizers", NULL);
    for (struct jsonnode_iter it = jsonnode_iter(list); jsonnode_next(&it);)
        if (str_eq(jsonnode_str(it.value), name))
            return true;
    return false;
}

static int check_finalizers(struct jsonnode *root, struct jsonnode *old, struct error *err)
{
    if (!jsonnode_path(old, "metadata", "deletionTimestamp", NULL))
        return 0;
    struct jsonnode *list = jsonnode_path(root, "metadata", "finalizers", NULL);
    for (struct jsonnode_iter it = jsonnode_iter(list); jsonnode_next(&it);)
        if (!api_has_finalizer(old, str_or_empty(jsonnode_str(it.value))))
            return api_fail(err, 422,
                            "metadata.finalizers: Forbidden: no new finalizers can be added if the "
                            "object is being deleted, found new finalizers []string{\"%s\"}",
                            str_or_empty(jsonnode_str(it.value)));
    return 0;
}

/* Only the server sets the deletion fields, and only on an object that is being deleted. */
static int check_immutable(struct jsonnode *meta, struct jsonnode *was, struct error *err)
{
    const char *uid = jsonnode_get_str(meta, "uid");
    const char *end = jsonnode_get_str(meta, "deletionTimestamp");
    int64_t grace = 0, had = -1;
    (void)jsonnode_int(jsonnode_get(was, "deletionGracePeriodSeconds"), &had);
    if (uid && *uid && !str_eq(uid, jsonnode_get_str(was, "uid")))
        return api_fail(err, 422, "metadata.uid: Invalid value: \"%s\": field is immutable", uid);
    if (end && *end && !jsonnode_get(was, "deletionTimestamp"))
        return api_fail(
            err, 422, "metadata.deletionTimestamp: Invalid value: \"%s\": field is immutable", end);
    if (jsonnode_int(jsonnode_get(meta, "deletionGracePeriodSeconds"), &grace) && grace != had)
        return api_fail(
            err, 422,
            "metadata.deletionGracePeriodSeconds: Invalid value: %lld: field is immutable",
            (long long)grace);
    return 0;
}

static void update_status(struct jsontree *t, const struct kind *k, struct jsonnode *old)
{
    struct jsonnode *root = jsontree_root(t);
    restore_rest(t, root, old, "status");
    struct jsonnode *status = jsonnode_need_object(t, root, "status");
    if (k == &kind_pods) {
        kinds_pod_fill_conditions(t, root);
        if (!jsonnode_get(status, "qosClass"))
            restore(t, status, jsonnode_get(old, "status"), "qosClass");
        restore(t, jsonnode_get(root, "metadata"), jsonnode_get(old, "metadata"),
                "ownerReferences");
    }
    if (k == &kind_nodes && k->fill_defaults)
        k->fill_defaults(t, root);
    if (status_keeps_metadata(k))
        jsonnode_set(t, root, "metadata", jsonnode_clone(t, jsonnode_get(old, "metadata")));
}

/* Of namespaces: spec.finalizers alone. */
static void update_finalizers(struct jsontree *t, const struct kind *k, struct jsonnode *old)
{
    struct jsonnode *root = jsontree_root(t);
    struct jsonnode *list = jsonnode_path(root, "spec", "finalizers", NULL);
    struct jsonnode *kept = list ? jsonnode_clone(t, list) : NULL;
    restore_rest(t, root, old, "");
    if (k->fill_defaults)
        k->fill_defaults(t, root);
    (void)jsonnode_remove(jsonnode_get(root, "spec"), "finalizers");
    if (jsonnode_len(kept) > 0)
        jsonnode_set(t, jsonnode_need_object(t, root, "spec"), "finalizers", kept);
}

int api_meta_update(struct jsontree *t, const struct kind *k, struct jsonnode *old, const char *sub,
                    struct error *err)
{
    static const char *const fixed[] = {"name",
                                        "namespace",
                                        "uid",
                                        "resourceVersion",
                                        "creationTimestamp",
                                        "deletionTimestamp",
                                        "deletionGracePeriodSeconds",
                                        "generation",
                                        "selfLink"};
    struct jsonnode *root = jsontree_root(t);
    struct jsonnode *meta = jsonnode_need_object(t, root, "metadata");
    struct jsonnode *was = jsonnode_get(old, "metadata");
    if (check_immutable(meta, was, err) < 0 || check_finalizers(root, old, err) < 0)
        return -1;
    if (str_eq(sub, "status"))
        update_status(t, k, old);
    else if (str_eq(sub, "finalize"))
        update_finalizers(t, k, old);
    else if (k->has_status)
        restore(t, root, old, "status");
    if (!sub && k == &kind_namespaces)
        restore(t, root, old, "spec"); /* by /finalize alone */
    meta = jsonnode_get(root, "metadata");
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        restore(t, meta, was, fixed[i]);
    if (!jsonnode_get(meta, "managedFields"))
        restore(t, meta, was, "managedFields");
    if (!jsonnode_get(meta, "generateName"))
        restore(t, meta, was, "generateName");
    if (sub && !str_eq(sub, "resize"))
        return 0;
    if (k->fill_defaults)
        k->fill_defaults(t, root);
    int64_t generation = 0;
    if (k->has_generation && spec_differs(root, old)) {
        (void)jsonnode_int(jsonnode_get(was, "generation"), &generation);
        jsonnode_set_int(t, meta, "generation", generation + 1);
    }
    return 0;
}

bool api_meta_is_gone(struct jsonnode *object, const struct kind *k)
{
    struct jsonnode *meta = jsonnode_get(object, "metadata");
    int64_t grace = 0;
    (void)jsonnode_int(jsonnode_get(meta, "deletionGracePeriodSeconds"), &grace);
    return jsonnode_get_str(meta, "deletionTimestamp") && grace == 0 &&
           jsonnode_len(jsonnode_get(meta, "finalizers")) == 0 &&
           (k != &kind_namespaces ||
            jsonnode_len(jsonnode_path(object, "spec", "finalizers", NULL)) == 0);
}

void api_set_condition(struct api *a, struct jsontree *t, struct jsonnode *object, const char *type,
                       const char *status, const char *reason, const char *message)
{
    struct jsonnode *state = jsonnode_need_object(t, object, "status");
    struct jsonnode *list = jsonnode_get(state, "conditions");
    char since[32];
    api_now(a, 0, since);
    if (!jsonnode_is_array(list)) {
        list = jsonnode_array(t);
        jsonnode_set(t, state, "conditions", list);
    }
    struct jsonnode *fresh = jsonnode_object(t);
    size_t i = 0;
    for (; i < jsonnode_len(list); i++) {
        struct jsonnode *c = jsonnode_at(list, i);
        const char *before = jsonnode_get_str(c, "lastTransitionTime");
        if (!str_eq(jsonnode_get_str(c, "type"), type))
            continue;
        if (str_eq(jsonnode_get_str(c, "status"), status) && before)
            (void)str_format(since, sizeof since, "%s", before);
        break;
    }
    jsonnode_set_str(t, fresh, "type", type);
    jsonnode_set_str(t, fresh, "status", status);
    jsonnode_set(t, fresh, "lastProbeTime", jsonnode_null(t));
    jsonnode_set_str(t, fresh, "lastTransitionTime", since);
    if (reason)
        jsonnode_set_str(t, fresh, "reason", reason);
    if (message)
        jsonnode_set_str(t, fresh, "message", message);
    if (!jsonnode_replace_at(list, i, fresh))
        jsonnode_append(list, fresh);
}

/* As large as etcd takes. It is counted there in protobuf, which escapes nothing. */
static bool is_too_large(const char *text, size_t n)
{
    enum { MAX = 3 * 512 * 1024 };
    size_t bytes = n;
    for (size_t i = 0; bytes > MAX && i < n; i++)
        if (text[i] == '\\') {
            size_t escape = text[i + 1] == 'u' ? 6 : 2;
            bytes -= escape - 1;
            i += escape - 1;
        }
    return bytes > MAX;
}

int api_store_tree(struct api *a, const struct kind *k, struct jsontree *t, bool create,
                   uint64_t expected, struct object **out, struct error *err)
{
    strbuf_reset(&a->scratch);
    jsontree_print(t, &a->scratch);
    const char *text = strbuf_str(&a->scratch);
    if (is_too_large(text, a->scratch.len))
        return api_fail(err, 500, "etcdserver: request is too large");
    return create ? store_create(a->store, k, text, a->scratch.len, out, err)
                  : store_update(a->store, k, text, a->scratch.len, expected, out, err);
}
