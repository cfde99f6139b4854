// SPDX-License-Identifier: Apache-2.0
/*
 * api_options - query parameters: numbers and booleans as Go parses them, dryRun, fieldManager, the
 * options of lists and watches.
 */
#include <string.h>
#include <strings.h>

#include "lib/base/json.h"
#include "lib/base/num.h"
#include "test/local/api/api_internal.h"

int api_dry_run(const struct call *c, const char *options, bool *out, struct error *err)
{
    const char *value = call_query(c, "dryRun");
    *out = str_eq(value, "All");
    if (!value || *out)
        return 0;
    return api_fail(err, 422,
                    "%s.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"%s\"]: "
                    "supported values: \"All\"",
                    options, value);
}

int api_query_int(const struct call *c, const char *name, int64_t fallback, int64_t *out,
                  struct error *err)
{
    const char *text = call_query(c, name);
    struct error why = ERROR_INIT;
    *out = fallback;
    if (!text || num_parse(text, strlen(text), out, &why) == 0)
        return 0;
    return api_fail(err, 400, "strconv.ParseInt: parsing \"%s\": %s", text,
                    why.code == ERROR_RANGE ? "value out of range" : "invalid syntax");
}

bool api_query_bool(const char *value)
{
    return value && strcasecmp(value, "false") != 0 && !str_eq(value, "0");
}

int api_field_manager(const struct call *c, const char *options, struct error *err)
{
    enum { MAX = 128 };
    const char *manager = str_or_empty(call_query(c, "fieldManager"));
    AUTO_STRBUF quoted;
    strbuf_init(&quoted);
    if (strlen(manager) > MAX)
        return api_fail(err, 422,
                        "%s.meta.k8s.io \"\" is invalid: fieldManager: Too long: may not be more "
                        "than %d bytes",
                        options, MAX);
    size_t i = 0;
    while (manager[i] && (unsigned char)manager[i] >= ' ' && manager[i] != 0x7f)
        i++;
    if (!manager[i])
        return 0;
    json_escape(&quoted, manager, strlen(manager));
    return api_fail(err, 422,
                    "%s.meta.k8s.io \"\" is invalid: fieldManager: Invalid value: %s: invalid "
                    "character U+%04X (at position %zu)",
                    options, strbuf_str(&quoted), (unsigned)(unsigned char)manager[i], i);
}

int api_field_validation(const struct call *c, const char *options, bool *strict, struct error *err)
{
    static const char *const words[] = {"", "Ignore", "Warn", "Strict"};
    const char *value = str_or_empty(call_query(c, "fieldValidation"));
    *strict = str_eq(value, "Strict");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_eq(value, words[i]))
            return 0;
    return api_fail(err, 422,
                    "%s.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"%s\": "
                    "supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"",
                    options, value);
}

int api_version_of(const char *text, const char *before, int status, uint64_t *out,
                   struct error *err)
{
    struct error why = ERROR_INIT;
    int64_t n = 0;
    *out = 0;
    if (!text || !*text)
        return 0;
    if (num_parse(text, strlen(text), &n, &why) < 0 || n < 0 || *text == '-')
        return api_fail(err, status,
                        "%sresourceVersion: Invalid value: \"%s\": strconv.ParseUint: parsing "
                        "\"%s\": %s",
                        before, text, text,
                        why.code == ERROR_RANGE && *text != '-' ? "value out of range"
                                                                : "invalid syntax");
    *out = (uint64_t)n;
    return 0;
}

/* ---- lists and watches ---- */

struct objections {
    struct strbuf text;
    size_t count;
};

static void object_to(struct objections *f, const char *text)
{
    strbuf_addf(&f->text, "%s%s", f->count++ > 0 ? ", " : "", text);
}

#define MATCH_FORBIDDEN "resourceVersionMatch: Forbidden: "

static void check_list(const struct api_list_options *o, struct objections *f)
{
    bool exact = str_eq(o->match, "Exact");
    if (o->match && *o->match) {
        if (!o->version || !*o->version)
            object_to(f, MATCH_FORBIDDEN
                      "resourceVersionMatch is forbidden unless resourceVersion is provided");
        if (o->token && *o->token)
            object_to(f, MATCH_FORBIDDEN
                      "resourceVersionMatch is forbidden when continue is provided");
        if (!exact && !str_eq(o->match, "NotOlderThan")) {
            AUTO_STRBUF text = {0};
            strbuf_addf(&text,
                        "resourceVersionMatch: Unsupported value: \"%s\": supported values: "
                        "\"Exact\", \"NotOlderThan\", \"\"",
                        o->match);
            object_to(f, strbuf_str(&text));
        }
        if (exact && str_eq(o->version, "0"))
            object_to(f, MATCH_FORBIDDEN
                      "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
    }
    if (o->initial_given)
        object_to(f, "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list");
}

static void check_watch(const struct api_list_options *o, struct objections *f)
{
    bool not_older = str_eq(o->match, "NotOlderThan");
    /* A watch from nothing is one that begins with all there is, to the newer servers. */
    bool from_nothing = !o->initial_given && !(o->match && *o->match) &&
                        (!o->version || !*o->version || str_eq(o->version, "0"));
    if (o->initial_given && !not_older)
        object_to(f, MATCH_FORBIDDEN
                  "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    if (o->match && *o->match) {
        if (!o->initial_given)
            object_to(f, MATCH_FORBIDDEN "resourceVersionMatch is forbidden for watch unless "
                                         "sendInitialEvents is provided");
        if (!not_older) {
            AUTO_STRBUF text = {0};
            strbuf_addf(&text,
                        "resourceVersionMatch: Unsupported value: \"%s\": supported values: "
                        "\"NotOlderThan\"",
                        o->match);
            object_to(f, strbuf_str(&text));
        }
    }
    if (o->token && *o->token && ((o->match && *o->match) || from_nothing))
        object_to(f, MATCH_FORBIDDEN "resourceVersionMatch is forbidden when continue is provided");
}

int api_list_options(const struct call *c, bool watch, struct api_list_options *out,
                     struct error *err)
{
    struct objections f = {0};
    *out = (struct api_list_options){
        .version = call_query(c, "resourceVersion"),
        .match = call_query(c, "resourceVersionMatch"),
        .token = call_query(c, "continue"),
        .initial_given = call_query(c, "sendInitialEvents") != NULL,
        .initial = api_query_bool(call_query(c, "sendInitialEvents")),
        .bookmarks = api_query_bool(call_query(c, "allowWatchBookmarks")),
    };
    if (api_query_int(c, "limit", 0, &out->limit, err) < 0 ||
        api_query_int(c, "timeoutSeconds", 0, &out->timeout_s, err) < 0)
        return -1;
    (watch ? check_watch : check_list)(out, &f);
    if (f.count > 0)
        (void)api_fail(err, 422, "ListOptions.meta.k8s.io \"\" is invalid: %s%s%s",
                       f.count > 1 ? "[" : "", strbuf_str(&f.text), f.count > 1 ? "]" : "");
    strbuf_deinit(&f.text);
    return f.count > 0 ? -1 : 0;
}
