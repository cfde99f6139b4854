// SPDX-License-Identifier: Apache-2.0
/* affinity - nodeSelector and required node affinity; preferred node affinity scores. */
#include "lib/base/num.h"
#include "scheduler/plugins/all.h"
#include "scheduler/framework/class_key.h"

static bool filter(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                   struct reason *why)
{
    (void)a;
    bool ok = pod_may_use_node(ask->pod->pod, &node->node->labels, node->name);
    if (!ok && why != NULL)
        *why = (struct reason){.kind = REASON_SELECTOR};
    return ok;
}

static int64_t score(const struct plugin_ask *ask, const struct cluster_node *node)
{
    const struct pod *p = ask->pod->pod;
    int64_t sum = 0, most = 0;
    for (size_t i = 0; i < p->preferred_affinity_len; i++) {
        const struct preferred_term *t = &p->preferred_affinity[i];
        most += num_max(t->weight, 0);
        if (node_term_matches(&t->term, &node->node->labels, node->name))
            sum += num_max(t->weight, 0);
    }
    return most > 0 ? sum * PLUGIN_SCORE_MAX / most : 0;
}

static bool applies(const struct cluster_pod *pod)
{
    const struct pod *p = pod->pod;
    return p->node_selector.len > 0 || p->has_required_affinity || p->preferred_affinity_len > 0;
}

static void key_of_selector(struct strbuf *out, const struct selector *s)
{
    class_key_number(out, (int64_t)s->len);
    for (size_t i = 0; i < s->len; i++) {
        const struct requirement *r = &s->reqs[i];
        class_key_text(out, r->key);
        class_key_number(out, r->op);
        class_key_number(out, (int64_t)r->values_len);
        for (size_t k = 0; k < r->values_len; k++)
            class_key_text(out, r->values[k]);
    }
}

static void key_of_term(struct strbuf *out, const struct node_term *t)
{
    class_key_number(out, t->invalid != NULL);
    key_of_selector(out, &t->labels);
    key_of_selector(out, &t->fields);
}

static void key(const struct plugin_ask *ask, struct strbuf *out)
{
    const struct pod *p = ask->pod->pod;
    for (size_t i = 0; i < p->node_selector.len; i++) {
        strbuf_addc(out, 'S');
        class_key_text(out, p->node_selector.items[i].key);
        class_key_text(out, p->node_selector.items[i].value);
    }
    if (p->has_required_affinity) {
        strbuf_addc(out, 'A');
        class_key_number(out, (int64_t)p->required_affinity.len);
        for (size_t i = 0; i < p->required_affinity.len; i++)
            key_of_term(out, &p->required_affinity.terms[i]);
    }
    for (size_t i = 0; i < p->preferred_affinity_len; i++) {
        strbuf_addc(out, 'P');
        class_key_number(out, p->preferred_affinity[i].weight);
        key_of_term(out, &p->preferred_affinity[i].term);
    }
}

const struct plugin plugin_affinity = {.name = "affinity",
                                       .key = key,
                                       PLUGIN_READS(FACET_LABELS),
                                       .score_depends = PLUGIN_NODE,
                                       .applies = applies,
                                       .filter = filter,
                                       .score = score,
                                       .weight = 2};
