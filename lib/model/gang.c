// SPDX-License-Identifier: Apache-2.0
/*
 * gang - finds the gang that a pod names.
 *
 * Four generations of users write it in five ways (contract, section 3). They are rows of one
 * table, in the order in which they are looked up; a form whose keys are there but not complete or
 * not legal is an error and not a reason to try the next one: a pod that was meant to start with
 * others must not start alone.
 */
#include "lib/model/gang.h"

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/names.h"

struct form {
    enum gang_form form;
    bool annotation;
    const char *name_key;
    const char *min_key; /* NULL: the name is that of a PodGroup */
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

int gang_of_pod(const struct pod *p, struct gang_ref *out, struct error *err)
{
    *out = (struct gang_ref){.form = GANG_NONE};
    for (size_t i = 0; i < FORMS; i++) {
        const struct labels *in = forms[i].annotation ? &p->annotations : &p->labels;
        const char *name = labels_get(in, forms[i].name_key);
        const char *min = forms[i].min_key ? labels_get(in, forms[i].min_key) : NULL;
        if (name || min)
            return read_form(&forms[i], name, min, out, err);
    }
    if (!p->scheduling_group)
        return 0;
    if (!name_is_legal(p->scheduling_group))
        return bad_name("field", "spec.schedulingGroup", p->scheduling_group, err);
    *out = (struct gang_ref){.form = GANG_NATIVE, .name = p->scheduling_group};
    return 0;
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
