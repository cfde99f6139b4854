// SPDX-License-Identifier: Apache-2.0
/*
 * Does what the controllers would do with a manifest, as far as it affects placement: the number of
 * pods, their labels, and the API server's defaults.
 *
 * Names are NAME-0, NAME-1... even where a controller would use random ones, so that the same
 * manifest gives the same bytes (I4). Objects that a pod needs (a PodGroup, a claim, a
 * PriorityClass) may follow it in the file, so pods are made after all files were read.
 */
#include "scheduler/replay/replay_add.h"

#include <string.h>

#include "lib/base/jsontree.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/kube/decode.h"

void replay_add_init(struct replay_add *a, struct replay_load *l)
{
    *a = (struct replay_add){.load = l};
    map_init(&a->keys);
}

void replay_add_deinit(struct replay_add *a)
{
    map_deinit(&a->keys);
    vec_deinit(&a->later);
}

static void fail(struct replay_add *a, const char *where, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void fail(struct replay_add *a, const char *where, const char *fmt, ...)
{
    AUTO_STRBUF b = {0};
    va_list ap;
    if (a->failed) /* only the first is reported */
        return;
    va_start(ap, fmt);
    strbuf_vaddf(&b, fmt, ap);
    va_end(ap);
    a->failed = true;
    (void)error_set(&a->err, ERROR_INVALID, "%s: %s", where, strbuf_str(&b));
}

static void note_scheduler(struct replay_add *a, const struct pod *p, json *spec)
{
    const char *named = json_get_str(spec, "schedulerName");
    if (named == NULL || str_eq(named, a->load->cluster->scheduler_name))
        return;
    AUTO_STRBUF b = {0};
    strbuf_addf(&b, "%s: spec.schedulerName is %s; it is placed here by %s all the same", p->key,
                named, a->load->cluster->scheduler_name);
    a->load->warn(a->load->arg, strbuf_str(&b));
}

static void put_pod(struct replay_add *a, json *j, const char *where, bool first)
{
    struct replay_load *l = a->load;
    struct pod *p;
    struct error err = ERROR_INIT;
    if (decode_pod(j, &p, &err) < 0) {
        fail(a, where, "%s", err.text);
        return;
    }
    json *spec = json_get(j, "spec");
    if (p->unplaceable != NULL || p->containers_len == 0 || p->node != NULL ||
        cluster_find_pod(l->cluster, p->key) != NULL) {
        fail(a, where, "pod %s: %s", p->key,
             p->unplaceable != NULL   ? p->unplaceable
             : p->containers_len == 0 ? "spec.containers: missing"
             : p->node != NULL        ? "spec.nodeName is set: nothing is left to decide"
                                      : "exists already in the input");
        pod_free(p);
        return;
    }
    replay_load_defaults(l, p, spec);
    if (first)
        note_scheduler(a, p, spec);
    p->scheduler = l->cluster->scheduler_name;
    p->created_ns = l->latest_ns + 1000000000;
    char *key = arena_strdup(&l->arena, p->key);
    map_put(&a->keys, key, key);
    (void)cluster_put_pod(l->cluster, p, l->hooks);
}

struct maker {
    const char *kind;
    const char *ns;
    const char *name; /* of the pods, before their number */
    const char *owner;
    bool indexed; /* a Job's completion mode */
};

static void set_label(struct jsontree *t, struct jsonnode *metadata, const char *key,
                      const char *value)
{
    jsonnode_set_str(t, jsonnode_need_object(t, metadata, "labels"), key, value);
}

/* Labels that selectors may use: matchLabelKeys: [pod-template-hash] is the usual way to spread one
 * version of a Deployment. */
static void controller_labels(struct jsontree *t, struct jsonnode *metadata, const struct maker *m,
                              const char *pod, const char *hash, int64_t i)
{
    char number[32];
    (void)str_format(number, sizeof number, "%lld", (long long)i);
    if (str_eq(m->kind, "Deployment")) {
        set_label(t, metadata, "pod-template-hash", hash);
    } else if (str_eq(m->kind, "StatefulSet")) {
        set_label(t, metadata, "statefulset.kubernetes.io/pod-name", pod);
        set_label(t, metadata, "apps.kubernetes.io/pod-index", number);
    } else if (str_eq(m->kind, "Job")) {
        set_label(t, metadata, "job-name", m->owner);
        set_label(t, metadata, "batch.kubernetes.io/job-name", m->owner);
        if (m->indexed)
            set_label(t, metadata, "batch.kubernetes.io/job-completion-index", number);
    }
}

/* The claims of a StatefulSet's pod, under the names that its controller gives them. */
static void claim_volumes(struct jsontree *t, struct jsonnode *spec, json *templates,
                          const char *pod)
{
    for (struct json_iter it = json_iter(templates); json_next(&it);) {
        const char *name = json_get_str(json_get(it.value, "metadata"), "name");
        AUTO_STRBUF claim = {0};
        struct jsonnode *volumes = jsonnode_get(spec, "volumes");
        if (name == NULL)
            continue;
        if (!jsonnode_is_array(volumes)) {
            volumes = jsonnode_array(t);
            jsonnode_set(t, spec, "volumes", volumes);
        }
        strbuf_addf(&claim, "%s-%s", name, pod);
        struct jsonnode *volume = jsonnode_object(t);
        jsonnode_set_str(t, volume, "name", name);
        jsonnode_set_str(t, jsonnode_need_object(t, volume, "persistentVolumeClaim"), "claimName",
                         strbuf_str(&claim));
        jsonnode_append(volumes, volume);
    }
}

static void make_pods(struct replay_add *a, const struct maker *m, json *template, json *claims,
                      int64_t n, const char *where)
{
    AUTO_STRBUF text = {0};
    struct json_writer w;
    char hash[32];
    json_writer_init(&w, &text);
    json_put_value(&w, template);
    (void)str_format(hash, sizeof hash, "%08llx",
                     (unsigned long long)(str_hash(text.ptr, text.len) & 0xffffffffu));
    if ((int64_t)map_count(&a->keys) + n > REPLAY_ADD_MAX) {
        fail(a, where, "%lld pods: more than %d are not tried", (long long)n, REPLAY_ADD_MAX);
        return;
    }
    for (int64_t i = 0; i < n && !a->failed; i++) {
        AUTO_JSONTREE *t = jsontree_new();
        AUTO_STRBUF name = {0};
        struct jsonnode *root = jsonnode_copy(t, template);
        struct jsonnode *metadata = jsonnode_need_object(t, root, "metadata");
        strbuf_addf(&name, "%s-%lld", m->name, (long long)i);
        jsonnode_set_str(t, metadata, "name", strbuf_str(&name));
        jsonnode_set_str(t, metadata, "namespace", m->ns);
        controller_labels(t, metadata, m, strbuf_str(&name), hash, i);
        claim_volumes(t, jsonnode_need_object(t, root, "spec"), claims, strbuf_str(&name));
        put_pod(a, jsonnode_view(t, root), where, i == 0);
    }
}

static bool count_of(struct replay_add *a, json *spec, const char *field, int64_t fallback,
                     const char *where, int64_t *out)
{
    json *v = json_get(spec, field);
    *out = fallback;
    if (v == NULL || json_is_null(v) || (json_int(v, out) && *out >= 0 && *out <= INT32_MAX))
        return true;
    fail(a, where, "spec.%s: must be an integer of 0 or more", field);
    return false;
}

static json *template_of(struct replay_add *a, json *spec, const char *where)
{
    json *template = json_get(spec, "template");
    if (!json_is_object(json_get(template, "spec"))) {
        fail(a, where, "spec.template.spec: missing");
        return NULL;
    }
    return template;
}

static void from_replicas(struct replay_add *a, struct maker *m, json *spec, const char *where)
{
    int64_t n;
    json *template = template_of(a, spec, where);
    if (template != NULL && count_of(a, spec, "replicas", 1, where, &n))
        make_pods(a, m, template, json_get(spec, "volumeClaimTemplates"), n, where);
}

/* As many as run at the same time. */
static void from_job(struct replay_add *a, struct maker *m, json *spec, const char *where)
{
    int64_t parallelism, completions;
    json *template = template_of(a, spec, where);
    if (template == NULL || !count_of(a, spec, "parallelism", 1, where, &parallelism) ||
        !count_of(a, spec, "completions", parallelism, where, &completions))
        return;
    m->indexed = str_eq(json_get_str(spec, "completionMode"), "Indexed");
    make_pods(a, m, template, NULL, num_min(parallelism, completions), where);
}

/* TFJob, PyTorchJob, MPIJob...: spec.xReplicaSpecs.{Worker: {replicas, template}, ...} */
static bool from_roles(struct replay_add *a, struct maker *m, json *spec, const char *where)
{
    bool any = false;
    for (struct json_iter field = json_iter(spec); json_next(&field);) {
        if (!str_ends(field.key, "ReplicaSpecs") || !json_is_object(field.value))
            continue;
        for (struct json_iter role = json_iter(field.value); json_next(&role);) {
            AUTO_STRBUF name = {0};
            AUTO_STRBUF place = {0};
            struct maker of = *m;
            strbuf_addf(&name, "%s-", m->owner);
            for (const char *c = role.key; *c != '\0'; c++)
                strbuf_addc(&name, *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c);
            of.name = strbuf_str(&name);
            strbuf_addf(&place, "%s: spec.%s.%s", where, field.key, role.key);
            from_replicas(a, &of, role.value, strbuf_str(&place));
            any = true;
        }
    }
    return any;
}

static void from_pod(struct replay_add *a, const struct maker *m, json *j, const char *where)
{
    AUTO_JSONTREE *t = jsontree_new();
    struct jsonnode *root = jsonnode_copy(t, j);
    struct jsonnode *metadata = jsonnode_need_object(t, root, "metadata");
    jsonnode_set_str(t, metadata, "namespace", m->ns);
    jsonnode_set_str(t, metadata, "name", m->name);
    put_pod(a, jsonnode_view(t, root), where, true);
}

static bool is_other_kind(const char *kind)
{
    static const char *const kinds[] = {"DaemonSet", "CronJob"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (str_eq(kinds[i], kind))
            return true;
    return false;
}

static bool makes_pods(const char *kind)
{
    static const char *const kinds[] = {
        "Pod", "Deployment", "ReplicaSet", "StatefulSet", "ReplicationController", "Job"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (str_eq(kinds[i], kind))
            return true;
    return false;
}

static bool has_roles(json *spec)
{
    for (struct json_iter it = json_iter(spec); json_next(&it);)
        if (str_ends(it.key, "ReplicaSpecs"))
            return true;
    return false;
}

static void expand(struct replay_add *a, json *j, const char *kind, const char *where)
{
    json *metadata = json_get(j, "metadata"), *spec = json_get(j, "spec");
    const char *name = json_get_str(metadata, "name"), *ns = json_get_str(metadata, "namespace");
    AUTO_STRBUF generated = {0};
    if (name == NULL && json_get_str(metadata, "generateName") != NULL) {
        strbuf_addf(&generated, "%s0", json_get_str(metadata, "generateName"));
        name = strbuf_str(&generated);
    }
    if (name == NULL || name[0] == '\0') {
        fail(a, where, "%s: metadata.name: missing", kind);
        return;
    }
    AUTO_STRBUF place = {0};
    strbuf_addf(&place, "%s: %s %s", where, kind, name);
    struct maker m = {.kind = kind,
                      .ns = ns != NULL && ns[0] != '\0' ? ns : a->load->ns,
                      .name = name,
                      .owner = name};
    if (str_eq(kind, "Pod"))
        from_pod(a, &m, j, where);
    else if (str_eq(kind, "Job"))
        from_job(a, &m, spec, strbuf_str(&place));
    else if (makes_pods(kind))
        from_replicas(a, &m, spec, strbuf_str(&place));
    else
        (void)from_roles(a, &m, spec, strbuf_str(&place));
}

static void take_one(struct replay_add *a, json *j, const char *where)
{
    const char *kind = json_get_str(j, "kind");
    if (kind == NULL) {
        fail(a, where, "kind: missing: not a Kubernetes object");
    } else if (is_other_kind(kind)) {
        fail(a, where, "kind %s: its pods are not made here", kind);
    } else if (makes_pods(kind) || has_roles(json_get(j, "spec"))) {
        vec_push(&a->later, ((struct replay_add_later){j, arena_strdup(&a->load->arena, where)}));
    } else {
        size_t refused = a->load->refused;
        replay_load_object(a->load, j, where);
        if (a->load->refused > refused)
            fail(a, where, "kind %s: see above", kind);
    }
}

static void take_document(void *arg, json *root, const char *where)
{
    const char *kind = json_get_str(root, "kind");
    if (kind == NULL || !str_ends(kind, "List")) {
        take_one(arg, root, where);
        return;
    }
    size_t i = 0;
    for (struct json_iter it = json_iter(json_get(root, "items")); json_next(&it); i++) {
        AUTO_STRBUF place = {0};
        strbuf_addf(&place, "%s: items[%zu]", where, i);
        take_one(arg, it.value, strbuf_str(&place));
    }
}

static void expand_later(struct replay_add *a)
{
    for (size_t i = 0; i < a->later.len && !a->failed; i++) {
        const struct replay_add_later *later = &a->later.items[i];
        expand(a, later->maker, json_get_str(later->maker, "kind"), later->where);
    }
    a->later.len = 0;
}

int replay_add_file(struct replay_add *a, const char *path, struct error *err)
{
    if (replay_documents_read(&a->load->documents, path, take_document, a, err) < 0)
        return -1;
    if (a->failed)
        *err = a->err;
    return a->failed ? -1 : 0;
}

int replay_add_finish(struct replay_add *a, struct error *err)
{
    expand_later(a);
    if (a->failed) {
        *err = a->err;
        return -1;
    }
    if (map_count(&a->keys) == 0)
        return error_set(err, ERROR_INVALID,
                         "neither a Pod nor a kind that makes some (0 replicas?)");
    return 0;
}
