// SPDX-License-Identifier: Apache-2.0
/*
 * Printed once for each pod, so it is quick rather than pretty: numbers in base 64, strings behind their length. Each part begins with a letter of its own, so that no
 * two different pods have the same text.
 */
#include "scheduler/class_key.h"

#include "scheduler/domains.h"
#include "scheduler/plugins/burst.h"
#include "scheduler/plugins/compute.h"

static void put_number(struct strbuf *out, int64_t value)
{
    char digits[16];
    size_t n = 0;
    for (uint64_t left = (uint64_t)value; left > 0; left >>= 6)
        digits[n++] = (char)('0' + (char)(left & 63));
    digits[n++] = ' ';
    strbuf_add(out, digits, n);
}

static void put_text(struct strbuf *out, const char *text)
{
    if (text == NULL) {
        strbuf_addc(out, '-');
        return;
    }
    size_t n = strlen(text);
    put_number(out, (int64_t)n);
    strbuf_add(out, text, n);
}

static void put_request(struct strbuf *out, const struct amounts *r)
{
    strbuf_addc(out, 'R');
    put_number(out, r->cpu_milli);
    put_number(out, r->memory_bytes);
    put_number(out, r->ephemeral_bytes);
    for (uint32_t i = 0; i < r->extra_len; i++) {
        if (r->extra[i].value == 0)
            continue;
        strbuf_addc(out, 'x');
        put_text(out, r->extra[i].name);
        put_number(out, r->extra[i].value);
    }
}

static void put_gpu(struct strbuf *out, const struct ledger_request *r)
{
    if (!r->any)
        return;
    strbuf_addc(out, 'G');
    put_number(out, r->hold_gib);
    put_number(out, r->hold_percent);
    put_number(out, r->whole_cards);
    put_number(out, r->spread_over);
    put_number(out, r->one_card);
    for (size_t i = 0; r->shared && i < r->pod->containers_len; i++) {
        put_number(out, ledger_request_gib(&r->pod->containers[i]));
        put_number(out, ledger_request_percent(&r->pod->containers[i]));
    }
}

static void put_cpu(struct strbuf *out, const struct cluster_pod *cp)
{
    const struct cpu_request *r = cp->cpu;
    if (r == NULL)
        return;
    strbuf_addc(out, 'U');
    put_number(out, r->cpus);
    put_number(out, r->numa);
    put_number(out, r->apart);
    put_number(out, r->insists);
    put_number(out, r->burst);
    put_number(out, r->shared);
}

static void put_selector(struct strbuf *out, const struct selector *s)
{
    put_number(out, (int64_t)s->len);
    for (size_t i = 0; i < s->len; i++) {
        const struct requirement *r = &s->reqs[i];
        put_text(out, r->key);
        put_number(out, r->op);
        put_number(out, (int64_t)r->values_len);
        for (size_t k = 0; k < r->values_len; k++)
            put_text(out, r->values[k]);
    }
}

static void put_node_term(struct strbuf *out, const struct node_term *t)
{
    put_number(out, t->invalid != NULL);
    put_selector(out, &t->labels);
    put_selector(out, &t->fields);
}

static void put_node_affinity(struct strbuf *out, const struct pod *p)
{
    for (size_t i = 0; i < p->node_selector.len; i++) {
        strbuf_addc(out, 'S');
        put_text(out, p->node_selector.items[i].key);
        put_text(out, p->node_selector.items[i].value);
    }
    if (p->has_required_affinity) {
        strbuf_addc(out, 'A');
        put_number(out, (int64_t)p->required_affinity.len);
        for (size_t i = 0; i < p->required_affinity.len; i++)
            put_node_term(out, &p->required_affinity.terms[i]);
    }
    for (size_t i = 0; i < p->preferred_affinity_len; i++) {
        strbuf_addc(out, 'P');
        put_number(out, p->preferred_affinity[i].weight);
        put_node_term(out, &p->preferred_affinity[i].term);
    }
}

static void put_tolerations(struct strbuf *out, const struct pod *p)
{
    for (size_t i = 0; i < p->tolerations_len; i++) {
        const struct toleration *t = &p->tolerations[i];
        strbuf_addc(out, 'T');
        put_text(out, t->key);
        put_number(out, t->op);
        put_text(out, t->value);
        put_number(out, t->effect);
    }
}

static void put_ports(struct strbuf *out, const struct container *c, size_t len, bool sidecars_only)
{
    for (size_t i = 0; i < len; i++)
        for (size_t k = 0; k < c[i].ports_len && (c[i].sidecar || !sidecars_only); k++) {
            strbuf_addc(out, 'H');
            put_number(out, c[i].ports[k].host_port);
            put_text(out, c[i].ports[k].host_ip);
            put_text(out, c[i].ports[k].protocol);
        }
}

static void put_images(struct strbuf *out, const struct pod *p)
{
    for (size_t i = 0; i < p->containers_len; i++) {
        strbuf_addc(out, 'I');
        put_text(out, p->containers[i].image);
    }
    for (size_t i = 0; i < p->init_containers_len; i++) {
        strbuf_addc(out, 'I');
        put_text(out, p->init_containers[i].image);
    }
    for (size_t i = 0; i < p->image_volumes_len; i++) {
        strbuf_addc(out, 'I');
        put_text(out, p->image_volumes[i]);
    }
}

/* What volumes are to other pods is in their names; a claim that was made for a pod is that pod's alone. Inline CSI volumes say nothing about nodes. */
static void put_volumes(struct strbuf *out, const struct pod *p)
{
    for (size_t i = 0; i < p->volumes_len; i++) {
        const struct pod_volume *v = &p->volumes[i];
        if (v->kind == POD_VOLUME_CSI)
            continue;
        strbuf_addc(out, 'V');
        put_number(out, v->kind);
        put_number(out, v->read_only);
        put_text(out, v->claim);
        put_text(out, v->claim != NULL ? p->ns : NULL);
        put_text(out, v->kind == POD_VOLUME_EPHEMERAL ? p->uid : NULL);
        put_text(out, v->driver);
        put_text(out, v->id);
        for (size_t k = 0; k < v->monitors_len; k++)
            put_text(out, v->monitors[k]);
    }
}

void class_key_print(struct cluster *c, struct cluster_pod *cp, struct strbuf *out)
{
    const struct pod *p = cp->pod;
    put_request(out, &cp->request);
    put_gpu(out, &cp->gpu);
    put_cpu(out, cp);
    put_node_affinity(out, p);
    put_tolerations(out, p);
    if (cp->has_ports) {
        put_ports(out, p->containers, p->containers_len, false);
        put_ports(out, p->init_containers, p->init_containers_len, true);
    }
    put_images(out, p);
    put_volumes(out, p);
    strbuf_addc(out, 'F');
    put_number(out, p->features);
    enum burst_policy burst = burst_policy_of(c, cp);
    strbuf_addc(out, 'B');
    put_number(out, burst);
    put_number(out, burst == BURST_REAL_FIRST ? c->side : CLUSTER_SIDE_BOTH);
    for (const char *const *key = compute_labels; *key != NULL; key++) {
        strbuf_addc(out, 'C');
        put_text(out, labels_get(&p->labels, *key));
    }
    strbuf_addc(out, 'Y');
    put_number(out, p->priority);
    put_number(out, c->packing);
    if (cp->nominated != NULL)
        put_text(out, cp->gang != NULL ? cp->gang->key : p->key);
    if (p->active_deadline_s > 0) {
        strbuf_addc(out, 'D');
        put_number(out, p->active_deadline_s);
    }
    if (cp->gang != NULL && cp->gang->kept != NULL) {
        strbuf_addc(out, 'K'); /* what is kept for them is not kept from them */
        put_text(out, cp->gang->kept->gang->key);
    }
    policies_print_key(c, cp, out);
    domains_print_key(c, cp, out);
}
