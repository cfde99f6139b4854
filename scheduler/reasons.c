// SPDX-License-Identifier: Apache-2.0
#include "scheduler/reasons.h"

#include <string.h>

#include "lib/model/quantity.h"

void reasons_init(struct reasons *t)
{
    t->len = 0;
    t->nodes = 0;
    t->others = 0;
}

void reasons_add(struct reasons *t, const struct reason *r, const char *node)
{
    t->nodes++;
    for (size_t i = 0; i < t->len; i++) {
        struct reasons_row *row = &t->rows[i];
        if (row->reason.kind != r->kind || !str_eq(row->reason.what, r->what))
            continue;
        row->nodes++;
        if (r->free > row->reason.free) {
            row->reason.free = r->free;
            row->best_node = node;
        }
        return;
    }
    if (t->len == REASONS_MAX) {
        t->others++;
        return;
    }
    t->rows[t->len++] = (struct reasons_row){.reason = *r, .nodes = 1, .best_node = node};
}

static void print_amount(struct strbuf *b, const char *resource, int64_t value)
{
    if (str_eq(resource, "cpu"))
        quantity_print_milli(value, b);
    else if (str_eq(resource, "memory") || str_eq(resource, "ephemeral-storage") ||
             str_starts(resource, "hugepages-"))
        quantity_print_bytes(value, b);
    else
        strbuf_addf(b, "%lld", (long long)value);
}

static void print_row(struct strbuf *b, const struct reasons_row *row)
{
    const struct reason *r = &row->reason;
    bool one = row->nodes == 1;
    const char *have = one ? "has" : "have", *be = one ? "is" : "are";
    strbuf_addf(b, "%lld ", (long long)row->nodes);
    switch (r->kind) {
    case REASON_RESOURCE:
        strbuf_addf(b, "%s too little %s (asked: ", have, r->what);
        print_amount(b, r->what, r->want);
        strbuf_adds(b, ", largest free: ");
        print_amount(b, r->what, r->free);
        strbuf_addf(b, " on %s)", row->best_node);
        break;
    case REASON_NOT_OFFERED:
        strbuf_addf(b, "%s not offer %s", one ? "does" : "do", r->what);
        break;
    case REASON_PODS:
        strbuf_addf(b, "%s no pod place left", have);
        break;
    case REASON_UNSCHEDULABLE:
        strbuf_addf(b, "%s cordoned", be);
        break;
    case REASON_TAINT:
        strbuf_addf(b, "%s the taint %s that the pod does not tolerate", have, r->what);
        break;
    case REASON_SELECTOR:
        strbuf_addf(b, "%s not match the pod's node selector or affinity", one ? "does" : "do");
        break;
    case REASON_NO_INVENTORY:
        strbuf_addf(b, "%s no usable GPU inventory (%s)", have, r->what);
        break;
    case REASON_GPU_MODE:
        strbuf_addf(b, "%s in GPU mode %s", be, r->what);
        break;
    case REASON_CARD:
        strbuf_addf(b, "%s no card with %lld GiB of GPU memory free (largest free: %lld GiB on %s)",
                    have, (long long)r->want, (long long)r->free, row->best_node);
        break;
    case REASON_CARDS:
        strbuf_addf(b, "%s fewer than %lld free cards (most free: %lld on %s)", have,
                    (long long)r->want, (long long)r->free, row->best_node);
        break;
    case REASON_VIRTUAL:
        strbuf_addf(b, "%s virtual and the pod does not burst", be);
        break;
    case REASON_NOT_VIRTUAL:
        strbuf_addf(b, "%s not virtual and the pod asks for virtual nodes only", be);
        break;
    case REASON_KINDS:
        break;
    }
}

/* Most common first; equal counts in the order they were met. */
static void order(const struct reasons *t, size_t *at)
{
    for (size_t i = 0; i < t->len; i++) {
        size_t j = i;
        for (; j > 0 && t->rows[at[j - 1]].nodes < t->rows[i].nodes; j--)
            at[j] = at[j - 1];
        at[j] = i;
    }
}

char *reasons_sentence(const struct reasons *t, struct arena *a)
{
    AUTO_STRBUF b;
    strbuf_init(&b);
    if (t->nodes == 0) {
        strbuf_adds(&b, "0/0 nodes fit: the cluster has no nodes");
    } else {
        size_t at[REASONS_MAX];
        order(t, at);
        strbuf_addf(&b, "0/%lld nodes fit: ", (long long)t->nodes);
        for (size_t i = 0; i < t->len; i++) {
            if (i > 0)
                strbuf_adds(&b, ", ");
            print_row(&b, &t->rows[at[i]]);
        }
        if (t->others > 0)
            strbuf_addf(&b, ", %lld for other reasons", (long long)t->others);
    }
    return arena_strdup(a, strbuf_str(&b));
}

uint64_t reasons_class(const struct reasons *t)
{
    uint64_t sum = t->nodes == 0 ? 1 : 2;
    for (size_t i = 0; i < t->len; i++) {
        const char *what = str_or_empty(t->rows[i].reason.what);
        sum += str_hash(what, strlen(what)) * (uint64_t)(t->rows[i].reason.kind + 3);
    }
    return sum;
}
