// SPDX-License-Identifier: Apache-2.0
#include "test/local/kinds/kinds_check.h"

#include <ctype.h>

#include "lib/model/selector.h"
#include "test/local/kinds/kinds.h"
#include "test/local/kinds/kinds_fill.h"

enum { VALUE_SHOWN = 320 };

static const char label_rule[] =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must "
    "start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for "
    "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
static const char subdomain_rule[] =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'example.com', regex used for "
    "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
static const char name_part_rule[] =
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
    "an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
static const char value_rule[] =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    "'12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/* ---- findings ---- */

int kinds_check_done(struct kinds_check *c, struct jsonnode *object, struct error *err)
{
    int result = 0;
    if (c->undecodable.len > 0) {
        const char *kind = str_or_empty(jsonnode_get_str(object, "kind"));
        const char *version = str_or_empty(jsonnode_get_str(object, "apiVersion"));
        const char *slash = strchr(version, '/');
        result = error_set(err, ERROR_INVALID, "%s in version \"%s\" cannot be handled as a %s: %s",
                           kind, slash ? slash + 1 : version, kind, strbuf_str(&c->undecodable));
        if (err)
            err->http_status = 400;
    } else if (c->count > 0) {
        bool several = c->count > 1;
        result = error_set(err, ERROR_INVALID, "%s%s%s", several ? "[" : "", strbuf_str(&c->text),
                           several ? "]" : "");
    }
    strbuf_deinit(&c->text);
    strbuf_deinit(&c->undecodable);
    return result;
}

void kinds_check_add(struct kinds_check *c, const char *fmt, ...)
{
    /* More does not fit into struct error. */
    if (c->count++ > 0 && c->text.len < ERROR_TEXT_SIZE)
        strbuf_adds(&c->text, ", ");
    if (c->text.len >= ERROR_TEXT_SIZE)
        return;
    va_list ap;
    va_start(ap, fmt);
    strbuf_vaddf(&c->text, fmt, ap);
    va_end(ap);
}

void kinds_check_required(struct kinds_check *c, const char *at, const char *detail)
{
    kinds_check_add(c, "%s: Required value%s%s", at, detail ? ": " : "", str_or_empty(detail));
}

void kinds_check_invalid(struct kinds_check *c, const char *at, const char *value,
                         const char *detail)
{
    AUTO_STRBUF quoted = {0};
    json_escape(&quoted, str_or_empty(value), strlen(str_or_empty(value)));
    kinds_check_add(c, "%s: Invalid value: %s: %s", at, strbuf_str(&quoted), detail);
}

void kinds_check_invalid_node(struct kinds_check *c, const char *at, struct jsonnode *value,
                              const char *detail)
{
    AUTO_STRBUF text = {0};
    if (value)
        jsonnode_print(value, &text);
    else
        strbuf_adds(&text, "null");
    /* The real server prints it whole; here an error has an end, and what is wrong comes last. */
    kinds_check_add(c, "%s: Invalid value: %.*s%s: %s", at, VALUE_SHOWN, strbuf_str(&text),
                    text.len > VALUE_SHOWN ? "..." : "", detail);
}

void kinds_check_duplicate(struct kinds_check *c, const char *at, const char *value)
{
    AUTO_STRBUF quoted = {0};
    json_escape(&quoted, value, strlen(value));
    kinds_check_add(c, "%s: Duplicate value: %s", at, strbuf_str(&quoted));
}

void kinds_check_forbidden(struct kinds_check *c, const char *at, const char *detail)
{
    kinds_check_add(c, "%s: Forbidden: %s", at, detail);
}

void kinds_check_one_of(struct kinds_check *c, const char *at, struct jsonnode *value,
                        const char *const *allowed)
{
    const char *s = jsonnode_str(value);
    if (kinds_fill_absent(value))
        return;
    AUTO_STRBUF list = {0};
    for (; *allowed; allowed++) {
        if (str_eq(s, *allowed))
            return;
        strbuf_addf(&list, "%s\"%s\"", list.len ? ", " : "", *allowed);
    }
    AUTO_STRBUF text = {0};
    jsonnode_print(value, &text);
    kinds_check_add(c, "%s: Unsupported value: %s: supported values: %s", at, strbuf_str(&text),
                    strbuf_str(&list));
}

void kinds_check_at_least(struct kinds_check *c, const char *at, struct jsonnode *value,
                          int64_t min)
{
    int64_t n;
    if (kinds_fill_absent(value))
        return;
    if (!jsonnode_int(value, &n)) {
        kinds_check_undecodable(c,
                                "json: cannot unmarshal %s into Go struct field %s of type int32",
                                jsonnode_is_string(value) ? "string" : "value", at);
        return;
    }
    if (n < min)
        kinds_check_add(c, "%s: Invalid value: %lld: must be greater than %s", at, (long long)n,
                        min == 0 ? "or equal to 0" : "0");
}

void kinds_check_undecodable(struct kinds_check *c, const char *fmt, ...)
{
    if (c->undecodable.len > 0)
        return;
    va_list ap;
    va_start(ap, fmt);
    strbuf_vaddf(&c->undecodable, fmt, ap);
    va_end(ap);
}

/* ---- names ---- */

static bool lower_or_digit(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= '0' && ch <= '9');
}

static bool is_label(const char *s, size_t n)
{
    if (n == 0 || !lower_or_digit(s[0]) || !lower_or_digit(s[n - 1]))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!lower_or_digit(s[i]) && s[i] != '-')
            return false;
    return true;
}

static bool is_subdomain(const char *s)
{
    for (;;) {
        size_t n = strcspn(s, ".");
        if (!is_label(s, n))
            return false;
        if (!s[n])
            return true;
        s += n + 1;
    }
}

void kinds_check_label_name(struct kinds_check *c, const char *at, const char *s)
{
    if (strchr(s, '.') && is_subdomain(s))
        kinds_check_invalid(c, at, s, "must not contain dots");
    else if (!is_label(s, strlen(s)))
        kinds_check_invalid(c, at, s, label_rule);
    if (strlen(s) > 63)
        kinds_check_invalid(c, at, s, "must be no more than 63 characters");
}

void kinds_check_subdomain_name(struct kinds_check *c, const char *at, const char *s)
{
    if (strlen(s) > 253)
        kinds_check_invalid(c, at, s, "must be no more than 253 characters");
    if (!is_subdomain(s))
        kinds_check_invalid(c, at, s, subdomain_rule);
}

void kinds_check_qualified(struct kinds_check *c, const char *at, const char *s)
{
    if (selector_key_is_legal(s))
        return;
    const char *slash = strchr(s, '/');
    const char *name = slash ? slash + 1 : s;
    AUTO_STRBUF prefix = {0};
    strbuf_add(&prefix, s, slash ? (size_t)(slash - s) : 0);
    if (slash && prefix.len == 0)
        kinds_check_invalid(c, at, s, "prefix part must be non-empty");
    else if (slash && !is_subdomain(strbuf_str(&prefix))) {
        AUTO_STRBUF detail = {0};
        strbuf_addf(&detail, "prefix part %s", subdomain_rule);
        kinds_check_invalid(c, at, s, strbuf_str(&detail));
    }
    if (!*name)
        kinds_check_invalid(c, at, s, "name part must be non-empty");
    else if (strlen(name) > 63)
        kinds_check_invalid(c, at, s, "name part must be no more than 63 bytes");
    if (!selector_key_is_legal(name) && strlen(name) <= 63)
        kinds_check_invalid(c, at, s, name_part_rule);
}

void kinds_check_label_value(struct kinds_check *c, const char *at, const char *s)
{
    if (strlen(s) > 63)
        kinds_check_invalid(c, at, s, "must be no more than 63 bytes");
    else if (!selector_value_is_legal(s))
        kinds_check_invalid(c, at, s, value_rule);
}

void kinds_check_labels(struct kinds_check *c, const char *at, struct jsonnode *labels)
{
    for (struct jsonnode_iter it = jsonnode_iter(labels); jsonnode_next(&it);) {
        if (it.key)
            kinds_check_qualified(c, at, it.key);
        const char *value = jsonnode_is_null(it.value) ? "" : jsonnode_str(it.value);
        if (value)
            kinds_check_label_value(c, at, value);
    }
}

/* Go's words for a map of texts that holds something else. */
void kinds_check_texts(struct kinds_check *c, const char *field, struct jsonnode *map)
{
    if (!kinds_fill_absent(map) && !jsonnode_is_object(map))
        kinds_check_undecodable(c,
                                "json: cannot unmarshal %s into Go struct field %s of type "
                                "map[string]string",
                                jsonnode_is_array(map)    ? "array"
                                : jsonnode_is_string(map) ? "string"
                                : jsonnode_is_bool(map)   ? "bool"
                                                          : "number",
                                field);
    for (struct jsonnode_iter it = jsonnode_iter(map); jsonnode_next(&it);)
        if (!kinds_fill_absent(it.value) && !jsonnode_is_string(it.value))
            kinds_check_undecodable(c,
                                    "json: cannot unmarshal %s into Go struct field %s of type "
                                    "string",
                                    jsonnode_is_object(it.value)  ? "object"
                                    : jsonnode_is_array(it.value) ? "array"
                                    : jsonnode_is_bool(it.value)  ? "bool"
                                                                  : "number",
                                    field);
}

static void check_name(struct kinds_check *c, const char *at, const char *name,
                       enum kinds_name_rule rule)
{
    if (rule == KINDS_NAME_LABEL)
        kinds_check_label_name(c, at, name);
    else if (rule == KINDS_NAME_SUBDOMAIN)
        kinds_check_subdomain_name(c, at, name);
    else if (str_eq(name, ".") || str_eq(name, "..") || strpbrk(name, "/%"))
        kinds_check_invalid(c, at, name,
                            strchr(name, '/')   ? "may not contain '/'"
                            : strchr(name, '%') ? "may not contain '%'"
                                                : "may not be '.' or '..'");
}

/* A prefix for names may end in a dash. */
static void check_prefix(struct kinds_check *c, const char *prefix, enum kinds_name_rule rule)
{
    AUTO_STRBUF text = {0};
    struct kinds_check masked = {.count = 0};
    size_t n = strlen(prefix);
    if (n == 0)
        return;
    strbuf_add(&text, prefix, n);
    if (n > 1 && prefix[n - 1] == '-')
        text.ptr[n - 1] = 'a';
    check_name(&masked, "", strbuf_str(&text), rule);
    if (masked.count > 0)
        check_name(c, "metadata.generateName", prefix, rule);
    strbuf_deinit(&masked.text);
}

void kinds_check_finalizer(struct kinds_check *c, const char *at, const char *name)
{
    static const char *const standard[] = {"kubernetes", "orphan", "foregroundDeletion"};
    for (size_t i = 0; i < sizeof standard / sizeof *standard; i++)
        if (str_eq(name, standard[i]))
            return;
    if (!strchr(name, '/'))
        kinds_check_invalid(c, at, name,
                            "name is neither a standard finalizer name nor is it fully qualified");
}

static void check_finalizers(struct kinds_check *c, struct jsonnode *list, bool custom)
{
    bool orphan = false, foreground = false;
    for (struct jsonnode_iter it = jsonnode_iter(list); jsonnode_next(&it);) {
        const char *name = str_or_empty(jsonnode_str(it.value));
        kinds_check_qualified(c, "metadata.finalizers", name);
        orphan = orphan || str_eq(name, "orphan");
        foreground = foreground || str_eq(name, "foregroundDeletion");
    }
    if (orphan && foreground)
        kinds_check_invalid_node(c, "metadata.finalizers", list,
                                 "finalizer orphan and foregroundDeletion cannot be both set");
    size_t i = 0;
    for (struct jsonnode_iter it = jsonnode_iter(list); !custom && jsonnode_next(&it); i++) {
        char at[64];
        str_format(at, sizeof at, "metadata.finalizers[%zu]", i);
        kinds_check_finalizer(c, at, str_or_empty(jsonnode_str(it.value)));
    }
}

static void check_owners(struct kinds_check *c, struct jsonnode *list)
{
    static const char *const members[][2] = {{"apiVersion", "version must not be empty"},
                                             {"kind", "must not be empty"},
                                             {"name", "must not be empty"},
                                             {"uid", "must not be empty"}};
    struct jsonnode *first = NULL;
    for (struct jsonnode_iter it = jsonnode_iter(list); jsonnode_next(&it);) {
        for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
            char at[64];
            const char *value = jsonnode_get_str(it.value, members[i][0]);
            str_format(at, sizeof at, "metadata.ownerReferences.%s", members[i][0]);
            if (!value || !*value)
                kinds_check_invalid(c, at, "", members[i][1]);
        }
        if (!jsonnode_bool(jsonnode_get(it.value, "controller"), false))
            continue;
        if (!first) {
            first = it.value;
            continue;
        }
        AUTO_STRBUF detail = {0};
        strbuf_addf(&detail,
                    "Only one reference can have Controller set to true. Found \"true\" in "
                    "references for %s/%s and %s/%s",
                    str_or_empty(jsonnode_get_str(first, "kind")),
                    str_or_empty(jsonnode_get_str(first, "name")),
                    str_or_empty(jsonnode_get_str(it.value, "kind")),
                    str_or_empty(jsonnode_get_str(it.value, "name")));
        kinds_check_invalid_node(c, "metadata.ownerReferences", list, strbuf_str(&detail));
    }
}

static void check_annotations(struct kinds_check *c, struct jsonnode *notes)
{
    size_t bytes = 0;
    for (struct jsonnode_iter it = jsonnode_iter(notes); jsonnode_next(&it) && it.key;) {
        AUTO_STRBUF lower = {0};
        for (const char *s = it.key; *s; s++)
            strbuf_addc(&lower, (char)tolower((unsigned char)*s));
        if (!selector_key_is_legal(strbuf_str(&lower)))
            kinds_check_qualified(c, "metadata.annotations", it.key);
        bytes += strlen(it.key) + strlen(str_or_empty(jsonnode_str(it.value)));
    }
    if (bytes > (size_t)256 * 1024)
        kinds_check_add(c, "metadata.annotations: Too long: may not be more than 262144 bytes");
}

void kinds_check_metadata(struct kinds_check *c, struct jsonnode *object, enum kinds_name_rule rule)
{
    struct jsonnode *meta = jsonnode_get(object, "metadata");
    struct jsonnode *labels = jsonnode_get(meta, "labels");
    struct jsonnode *notes = jsonnode_get(meta, "annotations");
    const char *name = jsonnode_get_str(meta, "name");
    const struct kind *k = kinds_by_name(str_or_empty(jsonnode_get_str(object, "apiVersion")),
                                         str_or_empty(jsonnode_get_str(object, "kind")));
    check_prefix(c, str_or_empty(jsonnode_get_str(meta, "generateName")), rule);
    if (!name || !*name)
        kinds_check_required(c, "metadata.name", "name or generateName is required");
    else
        check_name(c, "metadata.name", name, rule);
    kinds_check_texts(c, "ObjectMeta.metadata.labels", labels);
    kinds_check_texts(c, "ObjectMeta.metadata.annotations", notes);
    kinds_check_labels(c, "metadata.labels", labels);
    check_annotations(c, notes);
    check_owners(c, jsonnode_get(meta, "ownerReferences"));
    check_finalizers(c, jsonnode_get(meta, "finalizers"), k && k->custom);
}

/* ---- selectors ---- */

void kinds_check_selector(struct kinds_check *c, const char *at, struct jsonnode *selector)
{
    static const char *const operators[] = {"In", "NotIn", "Exists", "DoesNotExist", NULL};
    char where[256];
    struct jsonnode *labels = jsonnode_get(selector, "matchLabels");
    str_format(where, sizeof where, "%s.matchLabels", at);
    kinds_check_labels(c, where, labels);
    size_t i = 0;
    for (struct jsonnode_iter it = jsonnode_iter(jsonnode_get(selector, "matchExpressions"));
         jsonnode_next(&it); i++) {
        struct jsonnode *op = jsonnode_get(it.value, "operator");
        struct jsonnode *values = jsonnode_get(it.value, "values");
        const char *word = jsonnode_str(op);
        str_format(where, sizeof where, "%s.matchExpressions[%zu].values", at, i);
        if ((str_eq(word, "In") || str_eq(word, "NotIn")) && jsonnode_len(values) == 0)
            kinds_check_required(c, where, "must be specified when `operator` is 'In' or 'NotIn'");
        if ((str_eq(word, "Exists") || str_eq(word, "DoesNotExist")) && jsonnode_len(values) > 0)
            kinds_check_forbidden(
                c, where, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        str_format(where, sizeof where, "%s.matchExpressions[%zu].operator", at, i);
        bool known = false;
        for (size_t k = 0; operators[k]; k++)
            known = known || str_eq(word, operators[k]);
        if (!known)
            kinds_check_invalid(c, where, word, "not a valid selector operator");
        str_format(where, sizeof where, "%s.matchExpressions[%zu].key", at, i);
        kinds_check_qualified(c, where, str_or_empty(jsonnode_get_str(it.value, "key")));
    }
}

static bool in_values(struct jsonnode *values, const char *s)
{
    for (struct jsonnode_iter it = jsonnode_iter(values); jsonnode_next(&it);)
        if (str_eq(jsonnode_str(it.value), s))
            return true;
    return false;
}

bool kinds_check_selects(struct jsonnode *selector, struct jsonnode *labels)
{
    if (!jsonnode_is_object(selector))
        return false;
    struct jsonnode *wanted = jsonnode_get(selector, "matchLabels");
    for (struct jsonnode_iter it = jsonnode_iter(wanted); jsonnode_next(&it);)
        if (!str_eq(jsonnode_get_str(labels, it.key), jsonnode_str(it.value)))
            return false;
    for (struct jsonnode_iter it = jsonnode_iter(jsonnode_get(selector, "matchExpressions"));
         jsonnode_next(&it);) {
        const char *op = jsonnode_get_str(it.value, "operator");
        const char *key = jsonnode_get_str(it.value, "key");
        const char *has = key ? jsonnode_get_str(labels, key) : NULL;
        bool listed = has && in_values(jsonnode_get(it.value, "values"), has);
        bool good = str_eq(op, "In")             ? listed
                    : str_eq(op, "NotIn")        ? !listed
                    : str_eq(op, "Exists")       ? has != NULL
                    : str_eq(op, "DoesNotExist") ? has == NULL
                                                 : false;
        if (!good)
            return false;
    }
    return true;
}
