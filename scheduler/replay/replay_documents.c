// SPDX-License-Identifier: Apache-2.0
#include "scheduler/replay/replay_documents.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/str.h"
#include "lib/base/yaml.h"

enum { CHUNK = 64 * 1024 };

void replay_documents_deinit(struct replay_documents *d)
{
    for (size_t i = 0; i < d->all.len; i++) {
        json_free(d->all.items[i].doc);
        free(d->all.items[i].text);
    }
    vec_deinit(&d->all);
}

static int read_all(int fd, size_t max_bytes, struct strbuf *out, struct error *err)
{
    for (;;) {
        strbuf_reserve(out, CHUNK + JSON_PADDING);
        ssize_t n = read(fd, out->ptr + out->len, out->cap - out->len - JSON_PADDING - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, errno, "read");
        if (n == 0)
            return 0;
        out->len += (size_t)n;
        out->ptr[out->len] = '\0';
        if (out->len > max_bytes)
            return error_set(err, ERROR_TOO_LARGE, "larger than %zu bytes (--max-input)",
                             max_bytes);
    }
}

static int read_file(const char *path, size_t max_bytes, struct strbuf *out, struct error *err)
{
    if (str_eq(path, "-"))
        return read_all(STDIN_FILENO, max_bytes, out, err);
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? error_errno(err, errno, "open") : read_all(fd, max_bytes, out, err);
}

static bool looks_like_json(const char *path, const char *text)
{
    if (str_ends(path, ".yaml") || str_ends(path, ".yml"))
        return false;
    text += strspn(text, " \t\r\n");
    return str_ends(path, ".json") || *text == '{' || *text == '[';
}

static json *keep(struct replay_documents *d, struct json_doc *doc, char *text)
{
    vec_push(&d->all, ((struct replay_document){doc, text}));
    return json_root(doc);
}

static int read_yaml(struct replay_documents *d, const char *name, const struct strbuf *text,
                     void (*fn)(void *arg, json *root, const char *where), void *arg,
                     struct error *err)
{
    AUTO_STRBUF lines = {0};
    size_t n = 0;
    if (yaml_to_json(strbuf_str(text), text->len, d->max_bytes, &lines, err) < 0)
        return -1;
    for (const char *at = strbuf_str(&lines), *end; (end = strchr(at, '\n')) != NULL;
         at = end + 1) {
        struct json_doc *doc;
        AUTO_STRBUF where = {0};
        if (json_parse(&doc, at, (size_t)(end - at), err) < 0)
            return -1;
        n++;
        strbuf_adds(&where, name);
        if (n > 1 || end[1] != '\0')
            strbuf_addf(&where, ": document %zu", n);
        fn(arg, keep(d, doc, NULL), strbuf_str(&where));
    }
    return n > 0 ? 0 : error_set(err, ERROR_INVALID, "is empty");
}

int replay_documents_read(struct replay_documents *d, const char *path,
                          void (*fn)(void *arg, json *root, const char *where), void *arg,
                          struct error *err)
{
    AUTO_STRBUF text = {0};
    struct json_doc *doc;
    const char *name = str_eq(path, "-") ? "standard input" : path;
    if (read_file(path, d->max_bytes, &text, err) < 0)
        return error_wrap(err, "%s", name);
    bool yaml = !looks_like_json(path, strbuf_str(&text));
    if (yaml ? read_yaml(d, name, &text, fn, arg, err) < 0
             : json_parse_insitu(&doc, text.ptr, text.len, err) < 0)
        return error_wrap(err, "%s", name);
    if (!yaml)
        fn(arg, keep(d, doc, strbuf_take(&text)), name);
    return 0;
}
