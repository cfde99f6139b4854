// SPDX-License-Identifier: Apache-2.0
/* The first pass reads all files and caches their PodGroups, ResourcePolicies and Namespaces, so
 * objects may come in any order. The second judges each object with the server's function. */
#include "webhook/check.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "lib/base/yaml.h"
#include "lib/kube/decode.h"
#include "webhook/review.h"
#include "webhook/informer_cache.h"

enum { FILE_MAX = 16 * 1024 * 1024, JSON_MAX = 64 * 1024 * 1024, LISTS_MAX = 8 };

struct page { /* one document */
    const char *path;
    struct json_doc *doc;
    size_t number; /* in its file, from 1; 0: the only one */
};
/* One object. Items of a list from the API server ("PodList") take their kind from the list. */
struct thing {
    const struct page *page;
    json *object;
    const char *api, *kind; /* NULL: missing */
};
struct run {
    struct review_config review;
    const char *ns;
    struct arena arena; /* owns the paths */
    struct VEC(struct page) documents;
    struct strbuf *out;
    struct check_summary *sum;
};

static int read_input(const char *path, struct strbuf *out, struct error *err)
{
    if (!str_eq(path, "-"))
        return file_read(path, FILE_MAX, out, err);
    for (;;) {
        char chunk[16 * 1024];
        ssize_t n = read(STDIN_FILENO, chunk, sizeof chunk);
        if (n < 0)
            return error_set(err, ERROR_IO, "standard input: cannot be read");
        if (n == 0)
            return 0;
        strbuf_add(out, chunk, (size_t)n);
        if (out->len > FILE_MAX)
            return error_set(err, ERROR_TOO_LARGE, "standard input: has more than %d bytes",
                             FILE_MAX);
    }
}

/* Prints err under the path, which its text may already start with. */
static void note_error(struct run *r, const char *path, const struct error *err)
{
    const char *text = err->text;
    size_t n = strlen(path);
    if (str_starts(text, path) && str_starts(text + n, ": "))
        text += n + 2;
    strbuf_addf(r->out, "%s: error: %s\n", path, text);
    r->sum->errors++;
}

/* JSON is YAML, so one parser serves both. */
static int read_documents(struct run *r, const char *path, struct error *err)
{
    AUTO_STRBUF text = {0};
    AUTO_STRBUF lines = {0};
    if (read_input(path, &text, err) < 0)
        return -1;
    if (yaml_to_json(strbuf_str(&text), text.len, JSON_MAX, &lines, err) < 0)
        return error_wrap(err, "%s", path);
    size_t before = r->documents.len;
    for (const char *s = strbuf_str(&lines); *s != '\0';) {
        size_t n = strcspn(s, "\n");
        struct page page = {.path = path, .number = r->documents.len - before + 1};
        if (json_parse(&page.doc, s, n, err) < 0)
            return error_wrap(err, "%s", path);
        vec_push(&r->documents, page);
        s += n + (s[n] == '\n');
    }
    if (r->documents.len == before + 1)
        r->documents.items[before].number = 0;
    return 0;
}

static bool is_manifest(const char *name)
{
    return *name != '.' &&
           (str_ends(name, ".yaml") || str_ends(name, ".yml") || str_ends(name, ".json"));
}

static int pick_manifest(const struct dirent *entry)
{
    return is_manifest(entry->d_name);
}

static void read_path(struct run *r, const char *path)
{
    struct error err = ERROR_INIT;
    if (read_documents(r, path, &err) < 0)
        note_error(r, path, &err);
}

/* Like kubectl -f DIRECTORY: manifests by name, without subdirectories. */
static void read_directory(struct run *r, const char *path)
{
    struct dirent **entries = NULL;
    struct error err = ERROR_INIT;
    int n = scandir(path, &entries, pick_manifest, alphasort);
    if (n <= 0) {
        if (n < 0)
            error_errno(&err, errno, "%s", path);
        else
            error_set(&err, ERROR_NOT_FOUND, "has no *.yaml, *.yml or *.json");
        note_error(r, path, &err);
    }
    for (int i = 0; i < n; i++) {
        const char *slash = str_ends(path, "/") ? "" : "/";
        read_path(r, arena_printf(&r->arena, "%s%s%s", path, slash, entries[i]->d_name));
        free(entries[i]);
    }
    free(entries);
}

static const char *ns_of(const struct run *r, json *object)
{
    const char *ns = json_get_str(json_get(object, "metadata"), "namespace");
    return ns && *ns != '\0' ? ns : r->ns;
}

/* "Pod default/web"; "Pod default/web-*" with generateName; "Node n1" */
static const char *name_of(const struct run *r, const struct thing *t, struct arena *a)
{
    struct object_meta meta;
    decode_meta(t->object, &meta);
    const char *prefix = json_get_str(json_get(t->object, "metadata"), "generateName");
    const char *name = *str_or_empty(meta.name) != '\0' ? meta.name
                       : prefix                         ? arena_printf(a, "%s*", prefix)
                                                        : "(without a name)";
    return str_eq(t->kind, "Node")
               ? arena_printf(a, "Node %s", name)
               : arena_printf(a, "%s %s/%s", t->kind, ns_of(r, t->object), name);
}

static void say(struct run *r, const struct thing *t, const char *name, const char *what,
                const struct rules_sentences *s)
{
    for (size_t i = 0; i < s->len; i++)
        strbuf_addf(r->out, "%s: %s: %s: %s\n", t->page->path, name, what, s->items[i]);
}

static int judge(struct run *r, const struct thing *t, struct error *err)
{
    if (!t->api || !t->kind)
        return error_set(err, ERROR_INVALID,
                         "an object without apiVersion and kind, which every manifest has");
    const char *slash = strchr(t->api, '/');
    struct arena a;
    struct rules_verdict v;
    arena_init(&a, 16 * 1024);
    struct rules_subject s = {.group =
                                  slash ? arena_strndup(&a, t->api, (size_t)(slash - t->api)) : "",
                              .kind = t->kind,
                              .subresource = "",
                              .operation = "CREATE",
                              .object = t->object};
    int rc = review_judge(&r->review, &s, ns_of(r, t->object), &a, &v, err);
    if (rc < 0) {
        rc = error_wrap(err, "%s", t->kind);
    } else {
        const char *name = name_of(r, t, &a);
        say(r, t, name, "refused", &v.refusals);
        say(r, t, name, "warning", &v.warnings);
        r->sum->objects++;
        r->sum->refused += v.refusals.len > 0;
        r->sum->warnings += v.warnings.len;
    }
    arena_deinit(&a);
    return rc;
}

/* Caches a copy with its effective namespace. */
static void remember(struct run *r, const struct thing *t)
{
    json *object = t->object;
    const char *kind = t->kind;
    json *metadata = json_get(object, "metadata");
    AUTO_JSON *copy = NULL;
    AUTO_STRBUF text = {0};
    struct json_writer w;
    json_writer_init(&w, &text);
    json_object_begin(&w);
    json_kv_str(&w, "apiVersion", str_or_empty(t->api));
    json_kv_str(&w, "kind", str_or_empty(kind));
    json_key(&w, "metadata");
    json_object_begin(&w);
    json_kv_str(&w, "name", str_or_empty(json_get_str(metadata, "name")));
    json_kv_str(&w, "namespace", ns_of(r, object));
    json_key(&w, "labels");
    json_put_value(&w, json_get(metadata, "labels"));
    json_object_end(&w);
    json_key(&w, "spec");
    json_put_value(&w, json_get(object, "spec"));
    json_object_end(&w);
    if (json_parse(&copy, text.ptr, text.len, NULL) == 0)
        (void)informer_cache_put(r->review.arg, json_root(copy));
}

static bool is_list(const struct thing *t)
{
    return str_ends(t->kind, "List") && json_is_array(json_get(t->object, "items"));
}

/* Calls `what` on the object, or on the items of a List, which may nest. */
static void each(struct run *r, const struct thing *t, size_t depth,
                 void (*what)(struct run *r, const struct thing *t))
{
    if (!t->kind || !is_list(t) || depth == LISTS_MAX) {
        what(r, t);
        return;
    }
    size_t len = strlen(t->kind) - strlen("List");
    const char *kind = len > 0 ? arena_strndup(&r->arena, t->kind, len) : NULL;
    for (struct json_iter it = json_iter(json_get(t->object, "items")); json_next(&it);) {
        const char *own_api = json_get_str(it.value, "apiVersion");
        const char *own_kind = json_get_str(it.value, "kind");
        struct thing item = {.page = t->page,
                             .object = it.value,
                             .api = own_api ? own_api
                                    : kind  ? t->api
                                            : NULL,
                             .kind = own_kind ? own_kind : kind};
        each(r, &item, depth + 1, what);
    }
}

static void each_page(struct run *r, void (*what)(struct run *r, const struct thing *t))
{
    for (size_t i = 0; i < r->documents.len; i++) {
        json *root = json_root(r->documents.items[i].doc);
        struct thing t = {.page = &r->documents.items[i],
                          .object = root,
                          .api = json_get_str(root, "apiVersion"),
                          .kind = json_get_str(root, "kind")};
        each(r, &t, 0, what);
    }
}

static void judge_one(struct run *r, const struct thing *t)
{
    struct error err = ERROR_INIT;
    if (judge(r, t, &err) == 0)
        return;
    if (t->page->number > 0)
        error_wrap(&err, "document %zu", t->page->number);
    note_error(r, t->page->path, &err);
}

static bool is_directory(const char *path)
{
    struct stat st;
    return !str_eq(path, "-") && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

void check_files(const struct rules_config *rules, const char *ns, const char *const *paths,
                 size_t n, struct strbuf *out, struct check_summary *sum)
{
    struct informer_cache *cache = informer_cache_new();
    struct run r = {.review = {.rules = *rules,
                               .enter = informer_cache_enter,
                               .leave = informer_cache_leave,
                               .arg = cache},
                    .ns = ns,
                    .out = out,
                    .sum = sum};
    *sum = (struct check_summary){.objects = 0};
    arena_init(&r.arena, 0);
    for (size_t i = 0; i < n; i++) {
        if (is_directory(paths[i]))
            read_directory(&r, paths[i]);
        else
            read_path(&r, paths[i]);
    }
    each_page(&r, remember);
    each_page(&r, judge_one);
    for (size_t i = 0; i < r.documents.len; i++)
        json_free(r.documents.items[i].doc);
    vec_deinit(&r.documents);
    arena_deinit(&r.arena);
    informer_cache_stop(cache);
}
