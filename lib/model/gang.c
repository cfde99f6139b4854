// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the gang that a pod names.
 *
 * A gang can be named in five forms: rows of one table, in lookup order. A form whose keys are
 * present but incomplete or invalid is an error, not a reason to try the next one: a member of a
 * gang must not start alone. A pod may use several forms, for example when an operator adds its
 * own; they must agree.
 *
 * The pods of a gpu-topology job are placed together too, even without a gang. If they have one,
 * that gang counts: its name and size may differ from the labels, which are about cards.
 */
#include "lib/model/gang.h"

#include <stdlib.h>

#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/names.h"

struct form {
    enum gang_form form;
    bool annotation;
    const char *name_key;
    const char *min_key; /* NULL: the name is a PodGroup's */
};

static const struct form forms[] = {
    {GANG_LABELS, false, NAME_LABEL_GANG_NAME, NAME_LABEL_GANG_MIN},
    {GANG_BARE, false, NAME_LABEL_GANG_BARE, NULL},
    {GANG_X, false, NAME_LABEL_GANG_X, NULL},
    {GANG_KOORD, true, NAME_ANN_GANG_KOORD_NAME, NAME_ANN_GANG_KOORD_MIN},
};
enum { FORMS = sizeof forms / sizeof forms[0] };

/* Names become part of keys ("namespace/name") and of messages. */
static bool name_is_legal(const char *s)
{
    size_t n = strlen(s);

    if (n == 0 || n > GANG_NAME_MAX)
        return false;
    for (size_t i = 0; i < n; i++) {
        bool alnum = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') ||
                     (s[i] >= '0' && s[i] <= '9');
        if (!alnum && s[i] != '-' && s[i] != '_' && s[i] != '.')
            return false;
    }
    return true;
}

static int bad_name(const char *what, const char *key, const char *name, struct error *err)
{
    return error_set(err, ERROR_INVALID,
                     "%s %s: must have 1 to %d letters, digits, '-', '_' or '.': '%.64s'", what,
                     key, GANG_NAME_MAX, name);
}

static int read_form(const struct form *f, const char *name, const char *min, struct gang_ref *out,
                     struct error *err)
{
    const char *what = f->annotation ? "annotation" : "label";
    struct error why = ERROR_INIT;
    int64_t number = 0;

    if (!name)
        return error_set(err, ERROR_INVALID, "%s %s: needs %s as well", what, f->min_key,
                         f->name_key);
    if (f->min_key && !min)
        return error_set(err, ERROR_INVALID, "%s %s: needs %s as well", what, f->name_key,
                         f->min_key);
    if (!name_is_legal(name))
        return bad_name(what, f->name_key, name, err);
    if (min && num_parse_range(min, 1, GANG_MIN_MAX, &number, &why) < 0)
        return error_set(err, ERROR_INVALID, "%s %s: %s", what, f->min_key, why.text);
    *out = (struct gang_ref){.form = f->form, .name = name, .min_available = (int32_t)number};
    return 0;
}

static int by_name(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

static bool is_gang_key(const char *s)
{
    const char *slash = s != NULL ? strchr(s, '/') : NULL;
    char ns[GANG_NAME_MAX + 1];

    if (!slash || slash == s || slash - s > GANG_NAME_MAX)
        return false;
    memcpy(ns, s, (size_t)(slash - s));
    ns[slash - s] = '\0';
    return name_is_legal(ns) && name_is_legal(slash + 1);
}

int gang_read_list(const char *text, const char *own, struct arena *a, const char ***out,
                   size_t *len, struct error *err)
{
    AUTO_JSON *doc = NULL;
    struct error why = ERROR_INIT;
    size_t bytes = strlen(text);

    if (bytes > GANG_LIST_BYTES)
        return error_set(err, ERROR_INVALID, "has %zu bytes, more than %d", bytes, GANG_LIST_BYTES);
    if (json_parse(&doc, text, bytes, &why) < 0 || !json_is_array(json_root(doc)))
        return error_set(err, ERROR_INVALID,
                         "must be a JSON list of gangs such as [\"ns/a\",\"ns/b\"]: '%.64s'", text);
    size_t n = json_len(json_root(doc));
    if (n < 1 || n > GANG_LIST_MAX)
        return error_set(err, ERROR_INVALID, "must name 1 to %d gangs, not %zu", GANG_LIST_MAX, n);
    const char **names = arena_new(a, const char *, n);
    bool mine = own == NULL;
    *len = 0;
    for (struct json_iter it = json_iter(json_root(doc)); json_next(&it);) {
        const char *name = json_str(it.value);
        if (!is_gang_key(name))
            return error_set(
                err, ERROR_INVALID, "[%zu]: must be namespace/name of a gang: %s%.64s%s", *len,
                name ? "'" : "", name ? name : json_kind_name(it.value), name ? "'" : "");
        mine = mine || str_eq(name, own);
        names[(*len)++] = arena_strdup(a, name);
    }
    qsort(names, n, sizeof *names, by_name);
    for (size_t i = 1; i < n; i++)
        if (str_eq(names[i - 1], names[i]))
            return error_set(err, ERROR_INVALID, "names %.64s twice", names[i]);
    if (!mine)
        return error_set(err, ERROR_INVALID, "does not name %s, whose list it is", own);
    *out = names;
    return 0;
}

uint64_t gang_list_digest(const char *const *names, size_t len)
{
    uint64_t digest = len;
    for (size_t i = 0; names != NULL && i < len; i++)
        digest = digest * UINT64_C(1099511628211) ^ str_hash(names[i], strlen(names[i]));
    return digest != 0 ? digest : 1;
}

static const char *const match_names[] = {[GANG_MATCH_UNSAID] = "once-satisfied",
                                          [GANG_ONCE_SATISFIED] = "once-satisfied",
                                          [GANG_WAITING_AND_RUNNING] = "waiting-and-running",
                                          [GANG_ONLY_WAITING] = "only-waiting"};

const char *gang_match_name(enum gang_match m)
{
    return match_names[m];
}

int gang_read_match(const char *text, enum gang_match *out, struct error *err)
{
    for (enum gang_match m = GANG_ONCE_SATISFIED; m <= GANG_ONLY_WAITING; m++)
        if (str_eq(text, match_names[m])) {
            *out = m;
            return 0;
        }
    return error_set(err, ERROR_INVALID,
                     "must be once-satisfied, waiting-and-running or only-waiting: '%.64s'", text);
}

/* One setting under several names; if several are present they must agree. */
struct wish {
    const struct labels *in;
    const char *key;
};

static int read_wish(const struct wish *names, size_t len, struct wish *used, const char **out,
                     struct error *err)
{
    *out = NULL;
    for (size_t i = 0; i < len; i++) {
        const char *text = labels_get(names[i].in, names[i].key);
        if (text && *out && !str_eq(text, *out))
            return error_set(err, ERROR_INVALID, "%s and %s differ", used->key, names[i].key);
        if (!text || *out)
            continue;
        *used = names[i];
        *out = text;
    }
    return 0;
}

static int read_wishes(const struct pod *p, struct gang_ref *out, struct error *err)
{
    const struct labels *labels = &p->labels, *annotations = &p->annotations;
    const struct wish matches[] = {{annotations, NAME_ANN_GANG_MATCH},
                                   {labels, NAME_ANN_GANG_MATCH},
                                   {annotations, NAME_ANN_GANG_KOORD_MATCH}};
    const struct wish lists[] = {{annotations, NAME_ANN_GANG_GROUPS},
                                 {annotations, NAME_ANN_GANG_KOORD_GROUPS}};
    const char *match, *list;
    struct wish used = {0};
    struct error why = ERROR_INIT;

    if (read_wish(matches, 3, &used, &match, err) < 0)
        return -1;
    if (match && out->form != GANG_NONE && gang_read_match(match, &out->match, &why) < 0)
        return error_set(err, ERROR_INVALID, "%s %s: %s",
                         used.in == labels ? "label" : "annotation", used.key, why.text);
    if (read_wish(lists, 2, &used, &list, err) < 0)
        return -1;
    if (!list)
        return 0;
    if (out->form == GANG_NONE)
        return error_set(err, ERROR_INVALID, "annotation %s: the pod is in no gang", used.key);
    struct arena a;
    const char **names = NULL;
    size_t len = 0;
    arena_init(&a, 0);
    const char *own = p->ns ? arena_printf(&a, "%s/%s", p->ns, out->name) : NULL;
    int rc = gang_read_list(list, own, &a, &names, &len, &why);
    if (rc == 0)
        out->list_digest = gang_list_digest(names, len);
    arena_deinit(&a);
    if (rc < 0)
        return error_set(err, ERROR_INVALID, "annotation %s: %s", used.key, why.text);
    out->list = list;
    return 0;
}

static const char *name_source(enum gang_form form)
{
    for (size_t i = 0; i < FORMS; i++)
        if (forms[i].form == form)
            return forms[i].name_key;
    return "spec.schedulingGroup";
}

const char *gang_form_source(enum gang_form form)
{
    for (size_t i = 0; i < FORMS; i++)
        if (forms[i].form == form && forms[i].min_key)
            return forms[i].min_key;
    return form == GANG_TOPOLOGY ? NAME_LABEL_TOPOLOGY_REPLICA : "PodGroup";
}

/* Merges one more form. */
static int agree(struct gang_ref *sum, const struct gang_ref *next, enum gang_form *number_of,
                 struct error *err)
{
    if (sum->form == GANG_NONE) {
        *sum = *next;
    } else if (!str_eq(sum->name, next->name)) {
        return error_set(err, ERROR_INVALID, "%s names gang '%.64s', %s names '%.64s'",
                         name_source(sum->form), sum->name, name_source(next->form), next->name);
    } else if (sum->min_available > 0 && next->min_available > 0 &&
               sum->min_available != next->min_available) {
        return error_set(err, ERROR_INVALID, "%s says %d pods, %s says %d",
                         gang_form_source(*number_of), sum->min_available,
                         gang_form_source(next->form), next->min_available);
    }
    if (sum->min_available == 0 || sum->form == next->form) {
        sum->min_available = next->min_available;
        *number_of = next->form;
    }
    sum->forms |= 1U << next->form;
    return 0;
}

/* "true" instead of a name requests cards chosen by their links and names no job; instead of a
 * number it means that the job's size is unknown. */
static int read_topology_job(const struct pod *p, struct gang_ref *out, struct error *err)
{
    static const struct form form = {GANG_TOPOLOGY, false, NAME_LABEL_TOPOLOGY_JOB,
                                     NAME_LABEL_TOPOLOGY_REPLICA};
    const char *name = labels_get(&p->labels, form.name_key);
    const char *size = labels_get(&p->labels, form.min_key);

    if ((!name && !size) || str_eq(name, "true"))
        return 0;
    bool unknown = !size || str_eq(size, "true");
    if (read_form(&form, name, unknown ? "1" : size, out, err) < 0)
        return -1;
    if (unknown)
        out->min_available = 0;
    out->forms = 1U << GANG_TOPOLOGY;
    return 0;
}

static int read_all(const struct pod *p, struct gang_ref *out, struct error *err)
{
    enum gang_form number_of = GANG_NONE;
    struct gang_ref one = {.form = GANG_NONE};

    for (size_t i = 0; i < FORMS; i++) {
        const struct labels *in = forms[i].annotation ? &p->annotations : &p->labels;
        const char *name = labels_get(in, forms[i].name_key);
        const char *min = forms[i].min_key ? labels_get(in, forms[i].min_key) : NULL;
        if ((name || min) && (read_form(&forms[i], name, min, &one, err) < 0 ||
                              agree(out, &one, &number_of, err) < 0))
            return -1;
    }
    if (p->scheduling_group) {
        if (!name_is_legal(p->scheduling_group))
            return bad_name("field", "spec.schedulingGroup", p->scheduling_group, err);
        one = (struct gang_ref){.form = GANG_NATIVE, .name = p->scheduling_group};
        if (agree(out, &one, &number_of, err) < 0)
            return -1;
    }
    if (out->form == GANG_NONE && read_topology_job(p, out, err) < 0)
        return -1;
    return read_wishes(p, out, err);
}

int gang_of_pod(const struct pod *p, struct gang_ref *out, struct error *err)
{
    *out = (struct gang_ref){.form = GANG_NONE};
    int rc = read_all(p, out, err);
    if (rc < 0)
        *out = (struct gang_ref){.form = GANG_NONE};
    return rc;
}

bool gang_is_mentioned(const struct labels *labels, const struct labels *annotations,
                       const char *scheduling_group)
{
    for (size_t i = 0; i < FORMS; i++) {
        const struct labels *in = forms[i].annotation ? annotations : labels;
        if (labels_get(in, forms[i].name_key) ||
            (forms[i].min_key && labels_get(in, forms[i].min_key)))
            return true;
    }
    return scheduling_group != NULL;
}

void pod_group_free(struct pod_group *g)
{
    if (!g)
        return;
    struct arena arena = g->arena; /* the group lies in it */
    arena_deinit(&arena);
}
