// SPDX-License-Identifier: Apache-2.0
/*
 * faults_parse - a fault out of JSON. A member that the fault does not know is an error that names
 * it: a rule with a misspelt "match" would apply to every request.
 */
#include <stdlib.h>

#include "lib/base/mem.h"
#include "test/local/faults/faults_internal.h"

const char *const faults_names[FAULT_KINDS] = {
    [FAULT_DELAY] = "delay",
    [FAULT_DROP] = "drop",
    [FAULT_LOSE_REPLY] = "lose-reply",
    [FAULT_REPLY] = "reply",
    [FAULT_CUT_WATCHES] = "cut-watches",
    [FAULT_RESET] = "reset-connections",
    [FAULT_HOLD] = "hold-connections",
    [FAULT_RESTART] = "restart",
    [FAULT_COMPACT] = "compact",
    [FAULT_PARTITION] = "partition-node",
    [FAULT_KUBELET] = "restart-kubelet",
    [FAULT_CARD] = "card",
    [FAULT_RECREATE] = "recreate-pods",
    [FAULT_GARBLE] = "garble",
};

#define RULES (1u << FAULT_DELAY | 1u << FAULT_DROP | 1u << FAULT_LOSE_REPLY | 1u << FAULT_REPLY)
#define NODES (1u << FAULT_PARTITION | 1u << FAULT_KUBELET | 1u << FAULT_CARD)

/* One row per member: which faults know it, and where it goes. */
static const struct member {
    const char *name;
    unsigned kinds;
    enum { NUMBER, STRING, TRUTH, MATCH, NAME } type;
    size_t offset;
    int64_t min, max;
    bool required;
} members[] = {
    {"fault", ~0u, NAME, 0, 0, 0, false},
    {"match", RULES, MATCH, 0, 0, 0, false},
    {"every", RULES, NUMBER, offsetof(struct fault, every), 1, INT64_MAX, false},
    {"percent", RULES, NUMBER, offsetof(struct fault, percent), 0, 100, false},
    {"count", RULES | 1u << FAULT_RECREATE, NUMBER, offsetof(struct fault, count), 1, INT64_MAX,
     false},
    {"seconds", RULES, NUMBER, offsetof(struct fault, until_ms), 1, 1000000, false},
    {"ms", 1u << FAULT_DELAY | 1u << FAULT_HOLD | 1u << FAULT_RESTART, NUMBER,
     offsetof(struct fault, ms), 1, 3600000, true},
    {"code", 1u << FAULT_REPLY, NUMBER, offsetof(struct fault, code), 400, 599, true},
    {"retryAfterSeconds", 1u << FAULT_REPLY, NUMBER, offsetof(struct fault, retry_after_s), 1, 3600,
     false},
    {"reason", 1u << FAULT_REPLY, STRING, offsetof(struct fault, reason), 0, 0, false},
    {"message", 1u << FAULT_REPLY, STRING, offsetof(struct fault, message), 0, 0, false},
    {"midLine", 1u << FAULT_CUT_WATCHES, TRUTH, offsetof(struct fault, mid_line), 0, 0, false},
    {"node", NODES, STRING, offsetof(struct fault, node), 0, 0, true},
    {"card", 1u << FAULT_CARD, NUMBER, offsetof(struct fault, card), 0, 4096, true},
    {"bad", 1u << FAULT_PARTITION | 1u << FAULT_CARD, TRUTH, offsetof(struct fault, bad), 0, 0,
     false},
    {"namespace", 1u << FAULT_RECREATE | 1u << FAULT_GARBLE, STRING, offsetof(struct fault, ns), 0,
     0, false},
    {"selector", 1u << FAULT_RECREATE, STRING, offsetof(struct fault, selector), 0, 0, false},
    {"resource", 1u << FAULT_GARBLE, STRING, offsetof(struct fault, resource), 0, 0, true},
    {"name", 1u << FAULT_GARBLE, STRING, offsetof(struct fault, name), 0, 0, true},
    {"member", 1u << FAULT_GARBLE, STRING, offsetof(struct fault, member), 0, 0, false},
};
enum { MEMBERS = sizeof members / sizeof *members };

void fault_free(struct fault *f)
{
    if (!f)
        return;
    char *const strings[] = {f->text, f->method, f->path,     f->agent,    f->reason, f->message,
                             f->node, f->ns,     f->selector, f->resource, f->name,   f->member};
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++)
        free(strings[i]);
    free(f);
}

static int parse_match(struct fault *f, json *match, struct error *err)
{
    if (!json_is_object(match))
        return error_set(err, ERROR_INVALID, "match: must be an object");
    for (struct json_iter it = json_iter(match); json_next(&it);) {
        char **to = str_eq(it.key, "method")  ? &f->method
                    : str_eq(it.key, "path")  ? &f->path
                    : str_eq(it.key, "agent") ? &f->agent
                                              : NULL;
        if (str_eq(it.key, "watch") && json_is_bool(it.value)) {
            f->watch = json_bool(it.value, false);
        } else if (to && json_str(it.value)) {
            free(*to);
            *to = mem_strdup(json_str(it.value));
        } else {
            return error_set(err, ERROR_INVALID, "match.%s: unknown, or of the wrong type", it.key);
        }
    }
    return 0;
}

static int take(struct fault *f, const struct member *m, json *v, struct error *err)
{
    char *at = (char *)f + m->offset;
    int64_t n;
    switch (m->type) {
    case NUMBER:
        if (!json_int(v, &n) || n < m->min || n > m->max)
            return error_set(err, ERROR_INVALID, "%s: must be a number between %lld and %lld",
                             m->name, (long long)m->min, (long long)m->max);
        memcpy(at, &n, sizeof n);
        return 0;
    case STRING: {
        if (!json_str(v))
            return error_set(err, ERROR_INVALID, "%s: must be a string", m->name);
        char *old, *copy = mem_strdup(json_str(v));
        memcpy(&old, at, sizeof old);
        free(old);
        memcpy(at, &copy, sizeof copy);
        return 0;
    }
    case TRUTH: {
        if (!json_is_bool(v))
            return error_set(err, ERROR_INVALID, "%s: must be true or false", m->name);
        bool b = json_bool(v, false);
        memcpy(at, &b, sizeof b);
        return 0;
    }
    case MATCH:
        return parse_match(f, v, err);
    case NAME:
        break;
    }
    return 0;
}

static const char *usual_reason(int64_t code)
{
    switch (code) {
    case 401:
        return "Unauthorized";
    case 403:
        return "Forbidden";
    case 404:
        return "NotFound";
    case 409:
        return "Conflict";
    case 410:
        return "Expired";
    case 429:
        return "TooManyRequests";
    case 500:
        return "InternalError";
    case 503:
        return "ServiceUnavailable";
    case 504:
        return "Timeout";
    default:
        return "Unknown";
    }
}

static int parse_members(struct fault *f, json *j, struct error *err)
{
    for (struct json_iter it = json_iter(j); json_next(&it);) {
        size_t i = 0;
        while (i < MEMBERS && !str_eq(members[i].name, it.key))
            i++;
        if (i == MEMBERS || !(members[i].kinds >> f->kind & 1))
            return error_set(err, ERROR_INVALID, "%s: the fault '%s' has no such member", it.key,
                             faults_names[f->kind]);
        if (take(f, &members[i], it.value, err) < 0)
            return -1;
    }
    for (size_t i = 0; i < MEMBERS; i++)
        if (members[i].required && (members[i].kinds >> f->kind & 1) &&
            !json_get(j, members[i].name))
            return error_set(err, ERROR_INVALID, "%s: Required value", members[i].name);
    return 0;
}

int fault_parse(struct fault **out, json *j, struct error *err)
{
    const char *name = json_get_str(j, "fault");
    size_t kind = 0;
    while (kind < FAULT_KINDS && !str_eq(faults_names[kind], name))
        kind++;
    if (!name || kind == FAULT_KINDS)
        return error_set(err, ERROR_INVALID, "fault: there is no fault '%s'", str_or_empty(name));
    struct fault *f = mem_new(struct fault, 1);
    f->kind = (enum faults_kind)kind;
    f->watch = -1;
    f->percent = 100;
    f->bad = true;
    if (parse_members(f, j, err) < 0) {
        fault_free(f);
        return -1;
    }
    f->until_ms *= 1000;
    if (!f->reason)
        f->reason = mem_strdup(usual_reason(f->code));
    if (!f->message)
        f->message = mem_strdup("a fault was asked for");
    struct strbuf text = {0};
    struct json_writer w;
    json_writer_init(&w, &text);
    json_put_value(&w, j);
    f->text = strbuf_take(&text);
    *out = f;
    return 0;
}
