// SPDX-License-Identifier: Apache-2.0
/*
 * faults_act - immediate faults, and the script that triggers them at given times.
 *
 * A restart: the listening socket is closed (connecting is refused, as with a process that is not
 * there), every connection is reset, watches end; after `ms` the socket is opened again on the same
 * port. The store is kept. A port that is taken meanwhile is tried again every 100 ms.
 */
#include <stdlib.h>

#include "lib/base/jsontree.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/options.h"
#include "test/local/faults/faults_internal.h"

enum { REOPEN_MS = 100, SCRIPT_LINES = 100000 };

static int missing(struct error *err, const char *what)
{
    return error_set(err, ERROR_UNSUPPORTED, "there %s here", what);
}

static void on_reopen(void *arg)
{
    struct faults *f = arg;
    struct error err = ERROR_INIT;
    if (server_listen(f->config.server, true, &err) == 0)
        return;
    log_warn("restart", kv("error", err.text));
    loop_timer_set(f->config.loop, &f->reopen, REOPEN_MS, on_reopen, f);
}

static void on_accept(void *arg)
{
    struct faults *f = arg;
    server_accept(f->config.server, true);
}

static int act_on_node(struct faults *f, const struct fault *fault, struct error *err)
{
    if (!f->config.node)
        return missing(err, "are no simulated nodes");
    struct faults_node what = {.kind = fault->kind == FAULT_PARTITION ? FAULTS_PARTITION
                                       : fault->kind == FAULT_KUBELET ? FAULTS_RESTART_KUBELET
                                                                      : FAULTS_CARD,
                               .node = fault->node,
                               .card = (int)fault->card,
                               .bad = fault->bad};
    return f->config.node(f->config.node_arg, &what, err);
}

static const struct kind *find_kind(const char *resource)
{
    const struct kind *const *k = kinds_all;
    while (*k && !str_eq((*k)->resource, resource))
        k++;
    return *k;
}

/* Past admission and validation, into the store. */
static int garble(struct store *s, const struct fault *fault, struct error *err)
{
    const struct kind *k = find_kind(fault->resource);
    struct object *o = k ? store_get(s, k, str_or_empty(fault->ns), fault->name) : NULL;
    AUTO_JSONTREE *t = NULL;
    AUTO_STRBUF text = {0};
    if (!o)
        return error_set(err, ERROR_NOT_FOUND, "there is no %s %s", fault->resource, fault->name);
    if (jsontree_parse(&t, o->text, o->text_len, err) < 0)
        return -1;
    if (fault->member)
        jsonnode_set_int(t, jsonnode_need_object(t, jsontree_root(t), "spec"), fault->member, 5);
    jsontree_print(t, &text);
    if (!fault->member) {
        text.ptr[--text.len] = '\0';
        strbuf_adds(&text, ",\"spec\":5}");
    }
    return store_update(s, k, strbuf_str(&text), text.len, 0, NULL, err);
}

int faults_act(struct faults *f, const struct fault *fault, struct error *err)
{
    struct server *server = f->config.server;
    if (!server && fault->kind <= FAULT_RESTART)
        return missing(err, "is no server");
    switch (fault->kind) {
    case FAULT_CUT_WATCHES:
        server_close_streams(server, fault->mid_line);
        return 0;
    case FAULT_RESET:
        server_close_all(server);
        return 0;
    case FAULT_HOLD:
        server_accept(server, false);
        loop_timer_set(f->config.loop, &f->accept, fault->ms, on_accept, f);
        return 0;
    case FAULT_RESTART:
        server_listen(server, false, NULL);
        server_close_all(server);
        if (f->config.restarting)
            f->config.restarting(f->config.restarting_arg);
        loop_timer_set(f->config.loop, &f->reopen, fault->ms, on_reopen, f);
        return 0;
    case FAULT_COMPACT:
        if (!f->config.store)
            return missing(err, "is no store");
        store_compact(f->config.store);
        return 0;
    case FAULT_RECREATE: {
        if (!f->config.recreate)
            return missing(err, "are no pods");
        int64_t done = 0;
        return f->config.recreate(f->config.recreate_arg, fault->ns, fault->selector,
                                  fault->count > 0 ? fault->count : 1, &done, err);
    }
    case FAULT_GARBLE:
        return f->config.store ? garble(f->config.store, fault, err) : missing(err, "is no store");
    default:
        return act_on_node(f, fault, err);
    }
}

/* ---- the script ---- */

static void on_script(void *arg)
{
    struct faults *f = arg;
    int64_t now = loop_now_ms(f->config.loop) - f->script_start_ms;
    for (; f->script_at < f->script.len; f->script_at++) {
        const struct faults_line *line = &f->script.items[f->script_at];
        if (line->at_ms > now) {
            loop_timer_set(f->config.loop, &f->script_timer, line->at_ms - now, on_script, f);
            return;
        }
        AUTO_JSON *doc = NULL;
        struct error err = ERROR_INIT;
        if (json_parse(&doc, line->text, line->len, &err) < 0 ||
            faults_add(f, json_root(doc), NULL, &err) < 0)
            log_warn("fault of the script", kv("error", err.text));
    }
}

/* "1m30s {...}": several durations in one word are added. */
static int parse_time(const char *text, size_t n, int64_t *ms, struct error *err)
{
    *ms = 0;
    while (n > 0) {
        size_t len = 0;
        while (len < n && text[len] >= '0' && text[len] <= '9')
            len++;
        while (len < n && !(text[len] >= '0' && text[len] <= '9'))
            len++;
        char part[32];
        int64_t value;
        if (!str_format(part, sizeof part, "%.*s", (int)len, text) ||
            options_parse_duration(part, &value, err) < 0 || !num_add(*ms, value, ms))
            return error_set(err, ERROR_INVALID, "not a time: '%.*s'", (int)n, text);
        text += len;
        n -= len;
    }
    return 0;
}

static int parse_line(struct faults *f, const char *line, size_t n, struct error *err)
{
    while (n > 0 && (line[n - 1] == '\r' || line[n - 1] == ' ' || line[n - 1] == '\t'))
        n--;
    while (n > 0 && (*line == ' ' || *line == '\t')) {
        line++;
        n--;
    }
    if (n == 0 || *line == '#')
        return 0;
    size_t word = 0;
    while (word < n && line[word] != ' ' && line[word] != '\t')
        word++;
    struct faults_line l = {0};
    if (parse_time(line, word, &l.at_ms, err) < 0)
        return -1;
    AUTO_JSON *doc = NULL;
    struct fault *fault = NULL;
    l.len = n - word;
    if (json_parse(&doc, line + word, l.len, err) < 0 ||
        fault_parse(&fault, json_root(doc), err) < 0)
        return -1;
    fault_free(fault);
    if (f->script.len >= SCRIPT_LINES)
        return error_set(err, ERROR_TOO_LARGE, "more than %d lines", SCRIPT_LINES);
    l.text = mem_new(char, l.len + 1);
    memcpy(l.text, line + word, l.len);
    vec_push(&f->script, l);
    for (size_t i = f->script.len - 1; i > 0 && f->script.items[i - 1].at_ms > l.at_ms; i--) {
        f->script.items[i] = f->script.items[i - 1];
        f->script.items[i - 1] = l;
    }
    return 0;
}

int faults_script(struct faults *f, const char *text, size_t n, struct error *err)
{
    if (f->script.len > 0)
        return error_set(err, ERROR_INVALID, "there is a script already");
    for (int64_t number = 1; n > 0; number++) {
        const char *lf = memchr(text, '\n', n);
        size_t len = lf ? (size_t)(lf - text) : n;
        if (parse_line(f, text, len, err) < 0) {
            for (size_t i = 0; i < f->script.len; i++)
                free(f->script.items[i].text);
            f->script.len = 0;
            return error_wrap(err, "line %lld", (long long)number);
        }
        size_t step = lf ? len + 1 : len;
        text += step;
        n -= step;
    }
    f->script_start_ms = loop_now_ms(f->config.loop);
    loop_timer_set(f->config.loop, &f->script_timer, 0, on_script, f);
    return 0;
}
