// SPDX-License-Identifier: Apache-2.0
/* A member's minimum comes from its labels or annotations, its PodGroup, or several of these. If
 * they differ, the result does not depend on the order of arrival: the gang uses the largest, and
 * the message names the largest and the smallest, each with the first member by name. A PodGroup
 * that no member names does not count. */
#include "scheduler/cache/gangs_settings.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/cache/gangs.h"

bool gangs_settings_counts(const struct cluster_pod *cp)
{
    return !cp->pod->terminating && cp->state != CLUSTER_FINISHED;
}

bool gangs_settings_equal(const struct cluster_pod *a, const struct cluster_pod *b)
{
    return a->pod->priority == b->pod->priority && a->said.min_available == b->said.min_available &&
           a->said.forms == b->said.forms && a->said.match == b->said.match &&
           str_eq(a->said.list, b->said.list) &&
           str_eq(labels_get(&a->pod->labels, NAME_LABEL_COMPUTE_CLASS),
                  labels_get(&b->pod->labels, NAME_LABEL_COMPUTE_CLASS));
}

struct voice {
    int64_t number;
    const char *text;   /* "" for a number */
    const char *pod;    /* name of the member; NULL: the PodGroup itself */
    const char *source; /* the form it comes from, or NULL */
};

struct voices {
    struct voice least, most;
    bool any;
};

static int by_value(const struct voice *a, const struct voice *b)
{
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return strcmp(a->text, b->text);
}

static bool is_first(const struct voice *a, const struct voice *than)
{
    return strcmp(str_or_empty(a->pod), str_or_empty(than->pod)) < 0;
}

static void hear(struct voices *v, const struct voice *now)
{
    int low = v->any ? by_value(now, &v->least) : -1;
    int high = v->any ? by_value(now, &v->most) : 1;
    if (low < 0 || (low == 0 && is_first(now, &v->least)))
        v->least = *now;
    if (high > 0 || (high == 0 && is_first(now, &v->most)))
        v->most = *now;
    v->any = true;
}

static bool differ(const struct voices *v)
{
    return v->any && by_value(&v->least, &v->most) != 0;
}

static void print_voice(const struct gang *g, const struct voice *v, struct strbuf *out)
{
    if (v->text[0] != '\0')
        strbuf_addf(out, "%.64s (", v->text);
    else
        strbuf_addf(out, "%lld (", (long long)v->number);
    if (v->pod == NULL)
        strbuf_addf(out, "PodGroup %s)", gangs_name(g));
    else if (v->source != NULL)
        strbuf_addf(out, "%s of pod %s)", v->source, v->pod);
    else
        strbuf_addf(out, "pod %s)", v->pod);
}

/* NULL: the values agree. */
static const char *quarrel(const struct gang *g, const struct voices *v, const char *about,
                           struct arena *a)
{
    if (!differ(v))
        return NULL;
    AUTO_STRBUF b = {0};
    strbuf_addf(&b, "members of gang %s %s: ", gangs_name(g), about);
    print_voice(g, &v->most, &b);
    strbuf_adds(&b, " and ");
    print_voice(g, &v->least, &b);
    return arena_strdup(a, strbuf_str(&b));
}

static int32_t size_of(const struct pod_group *group)
{
    return group->min_member > 0 ? group->min_member : 1;
}

static void hear_numbers(const struct cluster_groups *groups, const struct cluster_pod *cp,
                         struct voices *v)
{
    const struct gang_ref *said = &cp->said;
    if (said->min_available > 0) {
        enum gang_form form = said->forms & 1U << GANG_LABELS  ? GANG_LABELS
                              : said->forms & 1U << GANG_KOORD ? GANG_KOORD
                                                               : GANG_TOPOLOGY;
        struct voice own = {.number = said->min_available,
                            .text = "",
                            .pod = cp->pod->name,
                            .source = gang_form_source(form)};
        hear(v, &own);
    }
    if (groups == NULL)
        return;
    const struct pod_group *named =
        groups->of[POD_GROUP_SIGS] != NULL ? groups->of[POD_GROUP_SIGS] : groups->of[POD_GROUP_X];
    const struct pod_group *native = groups->of[POD_GROUP_NATIVE];
    if (named != NULL && said->forms & (1U << GANG_BARE | 1U << GANG_X)) {
        struct voice theirs = {.number = size_of(named), .text = ""};
        hear(v, &theirs);
    }
    if (native != NULL && said->forms & 1U << GANG_NATIVE) {
        struct voice theirs = {.number = size_of(native), .text = ""};
        hear(v, &theirs);
    }
}

static void hear_sizes(const struct cluster *c, const struct gang *g, struct voices *v)
{
    const struct cluster_groups *groups = map_get(&c->pod_groups, gangs_name(g));
    for (size_t i = 0; i < g->members.len; i++)
        if (gangs_settings_counts(g->members.items[i]))
            hear_numbers(groups, g->members.items[i], v);
}

static void hear_policy(struct voices *v, enum gang_match match, const char *pod)
{
    struct voice now = {.number = (int64_t)match, .text = gang_match_name(match), .pod = pod};
    hear(v, &now);
}

/* Returns what is wrong with the PodGroup's own match-policy, or NULL. */
static const char *hear_policies(const struct cluster *c, const struct gang *g, struct voices *v,
                                 struct arena *a)
{
    const struct pod_group *group = gangs_group_of(c, g);
    struct error err = ERROR_INIT;
    enum gang_match match = GANG_MATCH_UNSAID;
    for (size_t i = 0; i < g->members.len; i++) {
        const struct cluster_pod *cp = g->members.items[i];
        if (gangs_settings_counts(cp) && cp->said.match != GANG_MATCH_UNSAID)
            hear_policy(v, cp->said.match, cp->pod->name);
    }
    if (group == NULL || group->match == NULL)
        return NULL;
    if (gang_read_match(group->match, &match, &err) < 0)
        return a == NULL ? NULL
                         : arena_printf(a, "PodGroup %s: annotation " NAME_ANN_GANG_MATCH ": %s",
                                        gangs_name(g), err.text);
    hear_policy(v, match, NULL);
    return NULL;
}

void gangs_settings_read(const struct cluster *c, struct gang *g)
{
    g->priority = INT32_MIN;
    g->since_ns = INT64_MAX;
    for (size_t i = 0; i < g->members.len; i++) {
        const struct pod *p = g->members.items[i]->pod;
        if (p->priority > g->priority)
            g->priority = p->priority;
        if (p->created_ns < g->since_ns)
            g->since_ns = p->created_ns;
    }
    g->match = GANG_ONCE_SATISFIED;
    g->min_available = 1;
    g->min_conflict = 0;
    if (gangs_is_lone(g))
        return;
    struct voices sizes = {0}, policies = {0};
    hear_sizes(c, g, &sizes);
    /* A job of unknown size is placed with the members that exist. */
    g->min_available = sizes.any ? (int32_t)sizes.most.number : g->form == GANG_TOPOLOGY;
    g->min_conflict = differ(&sizes) ? (int32_t)sizes.least.number : 0;
    (void)hear_policies(c, g, &policies, NULL);
    if (policies.any)
        g->match = (enum gang_match)policies.most.number;
}

const char *gangs_settings_conflict(const struct cluster *c, const struct gang *g, struct arena *a)
{
    const char *why;
    const struct pod_group *group = gangs_group_of(c, g);
    struct voices sizes = {0}, policies = {0}, priorities = {0}, classes = {0};
    if (g->min_conflict != 0) {
        hear_sizes(c, g, &sizes);
        return quarrel(g, &sizes, "disagree on its size", a);
    }
    if (g->uniform && (group == NULL || group->match == NULL))
        return NULL;
    for (size_t i = 0; i < g->members.len; i++) {
        const struct cluster_pod *cp = g->members.items[i];
        const char *class = labels_get(&cp->pod->labels, NAME_LABEL_COMPUTE_CLASS);
        if (!gangs_settings_counts(cp))
            continue;
        struct voice priority = {
            .number = cp->pod->priority, .text = "", .pod = cp->pod->name, .source = NULL};
        hear(&priorities, &priority);
        struct voice own = {.text = str_or_empty(class), .pod = cp->pod->name};
        if (own.text[0] != '\0')
            hear(&classes, &own);
    }
    if ((why = quarrel(g, &priorities, "have different priorities", a)) != NULL ||
        (why = quarrel(g, &classes, "have different " NAME_LABEL_COMPUTE_CLASS, a)) != NULL ||
        (why = hear_policies(c, g, &policies, a)) != NULL)
        return why;
    return quarrel(g, &policies, "disagree on match-policy", a);
}
