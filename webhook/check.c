// SPDX-License-Identifier: Apache-2.0
/*
 * Two passes: the first reads all files and makes a world of the PodGroups, ResourcePolicies and Namespaces in them, so that a Job and its PodGroup may be in any
 * order and in two files; the second asks about each object, by the same function as the server.
 */
#include "webhook/check.h"

#include <stdlib.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "lib/base/yaml.h"
#include "lib/kube/decode.h"
#include "webhook/review.h"
#include "webhook/world.h"

enum { FILE_MAX = 16 * 1024 * 1024, JSON_MAX = 64 * 1024 * 1024 };

struct page { /* one document */
    const char *path;
    struct json_doc *doc;
};
struct run {
    struct review_config review;
    const char *ns;
    struct VEC(struct page) pages;
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

/* err names the file already. */
static void note_error(struct run *r, const char *path, const struct error *err)
{
    const char *text = err->text;
    size_t n = strlen(path);
    if (str_starts(text, path) && str_starts(text + n, ": "))
        text += n + 2;
    strbuf_addf(r->out, "%s: error: %s\n", path, text);
    r->sum->errors++;
}

/* JSON is YAML, so one way serves both. */
static int read_pages(struct run *r, const char *path, struct error *err)
{
    AUTO_STRBUF text = {0};
    AUTO_STRBUF lines = {0};
    if (read_input(path, &text, err) < 0)
        return -1;
    if (yaml_to_json(strbuf_str(&text), text.len, JSON_MAX, &lines, err) < 0)
        return error_wrap(err, "%s", path);
    for (const char *s = strbuf_str(&lines); *s != '\0';) {
        size_t n = strcspn(s, "\n");
        struct page page = {.path = path};
        if (json_parse(&page.doc, s, n, err) < 0)
            return error_wrap(err, "%s", path);
        vec_push(&r->pages, page);
        s += n + (s[n] == '\n');
    }
    return 0;
}

static const char *ns_of(const struct run *r, json *object)
{
    const char *ns = json_get_str(json_get(object, "metadata"), "namespace");
    return ns && *ns != '\0' ? ns : r->ns;
}

static void say(struct run *r, const char *path, json *object, const char *what,
                const struct rules_sentences *s)
{
    struct object_meta meta;
    decode_meta(object, &meta);
    for (size_t i = 0; i < s->len; i++)
        strbuf_addf(r->out, "%s: %s %s/%s: %s: %s\n", path, json_get_str(object, "kind"),
                    ns_of(r, object), meta.name, what, s->items[i]);
}

static int judge(struct run *r, const char *path, json *object, struct error *err)
{
    const char *api = json_get_str(object, "apiVersion");
    const char *kind = json_get_str(object, "kind");
    if (!api || !kind)
        return error_set(err, ERROR_INVALID,
                         "an object without apiVersion and kind, which every manifest has");
    const char *slash = strchr(api, '/');
    struct arena a;
    struct rules_verdict v;
    arena_init(&a, 16 * 1024);
    struct rules_subject s = {.group = slash ? arena_strndup(&a, api, (size_t)(slash - api)) : "",
                              .kind = kind,
                              .subresource = "",
                              .operation = "CREATE",
                              .object = object};
    int rc = review_judge(&r->review, &s, ns_of(r, object), &a, &v, err);
    if (rc < 0) {
        rc = error_wrap(err, "%s", kind);
    } else {
        say(r, path, object, "refused", &v.refusals);
        say(r, path, object, "warning", &v.warnings);
        r->sum->objects++;
        r->sum->refused += v.refusals.len > 0;
        r->sum->warnings += v.warnings.len;
    }
    arena_deinit(&a);
    return rc;
}

static bool is_list(json *root)
{
    const char *kind = json_get_str(root, "kind");
    return kind && str_ends(kind, "List") && json_is_array(json_get(root, "items"));
}

/* A copy with the namespace that the object would get. */
static void remember(struct run *r, const char *path, json *object)
{
    (void)path;
    const char *kind = json_get_str(object, "kind");
    json *metadata = json_get(object, "metadata");
    AUTO_JSON *copy = NULL;
    AUTO_STRBUF text = {0};
    struct json_writer w;
    if (str_eq(kind, "Namespace") || json_get_str(metadata, "namespace")) {
        (void)world_put(r->review.arg, object);
        return;
    }
    json_writer_init(&w, &text);
    json_object_begin(&w);
    json_kv_str(&w, "apiVersion", str_or_empty(json_get_str(object, "apiVersion")));
    json_kv_str(&w, "kind", str_or_empty(kind));
    json_key(&w, "metadata");
    json_object_begin(&w);
    json_kv_str(&w, "name", str_or_empty(json_get_str(metadata, "name")));
    json_kv_str(&w, "namespace", r->ns);
    json_object_end(&w);
    json_key(&w, "spec");
    json_put_value(&w, json_get(object, "spec"));
    json_object_end(&w);
    if (json_parse(&copy, text.ptr, text.len, NULL) == 0)
        (void)world_put(r->review.arg, json_root(copy));
}

/* Each object of a page: itself, or the items of a List. */
static void each(struct run *r, const struct page *p,
                 void (*what)(struct run *r, const char *path, json *object))
{
    json *root = json_root(p->doc);
    if (!is_list(root)) {
        what(r, p->path, root);
        return;
    }
    for (struct json_iter it = json_iter(json_get(root, "items")); json_next(&it);)
        what(r, p->path, it.value);
}

static void judge_one(struct run *r, const char *path, json *object)
{
    struct error err = ERROR_INIT;
    if (judge(r, path, object, &err) < 0)
        note_error(r, path, &err);
}

void check_files(const struct rules_config *rules, const char *ns, const char *const *paths,
                 size_t n, struct strbuf *out, struct check_summary *sum)
{
    struct world *world = world_new();
    struct run r = {
        .review = {.rules = *rules, .enter = world_enter, .leave = world_leave, .arg = world},
        .ns = ns,
        .out = out,
        .sum = sum};
    *sum = (struct check_summary){.objects = 0};
    for (size_t i = 0; i < n; i++) {
        struct error err = ERROR_INIT;
        if (read_pages(&r, paths[i], &err) < 0)
            note_error(&r, paths[i], &err);
    }
    for (size_t i = 0; i < r.pages.len; i++)
        each(&r, &r.pages.items[i], remember);
    for (size_t i = 0; i < r.pages.len; i++)
        each(&r, &r.pages.items[i], judge_one);
    for (size_t i = 0; i < r.pages.len; i++)
        json_free(r.pages.items[i].doc);
    vec_deinit(&r.pages);
    world_stop(world);
}
