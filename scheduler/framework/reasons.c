// SPDX-License-Identifier: Apache-2.0
#include "scheduler/framework/reasons.h"

#include <string.h>

#include "lib/model/quantity.h"

void reasons_init(struct reasons *t)
{
    t->len = 0;
    t->nodes = 0;
    t->others = 0;
    t->of = NULL;
    t->lacks_virtual = false;
}

/* Enough memory comes first; then, if a percentage is requested, the card with the largest free
 * percentage is nearest. */
static int compare(const struct reason *a, const struct reason *b)
{
    if (a->want_percent > 0 && a->free >= a->want && b->free >= b->want)
        return (a->free_percent > b->free_percent) - (a->free_percent < b->free_percent);
    return (a->free > b->free) - (a->free < b->free);
}

bool reasons_is_better(const struct reason *r, const struct reason *than)
{
    return compare(r, than) > 0;
}

static bool is_more_promising(const struct reasons_row *r, const struct reasons_row *than)
{
    int order = compare(&r->reason, &than->reason);
    return order > 0 || (order == 0 && strcmp(r->best_node, than->best_node) < 0);
}

void reasons_add_row(struct reasons *t, const struct reasons_row *add)
{
    t->nodes += add->nodes;
    for (size_t i = 0; i < t->len; i++) {
        struct reasons_row *row = &t->rows[i];
        if (row->reason.kind != add->reason.kind || !str_eq(row->reason.what, add->reason.what))
            continue;
        if (is_more_promising(add, row)) {
            row->reason = add->reason;
            row->best_node = add->best_node;
        }
        row->nodes += add->nodes;
        return;
    }
    if (t->len == REASONS_MAX) {
        t->others += add->nodes;
        return;
    }
    t->rows[t->len++] = *add;
}

void reasons_add(struct reasons *t, const struct reason *r, const char *node)
{
    reasons_add_row(t, &(struct reasons_row){.reason = *r, .nodes = 1, .best_node = node});
}

void reasons_copy(struct reasons *to, const struct reasons *from, struct arena *a)
{
    *to = *from;
    for (size_t i = 0; i < to->len; i++) {
        struct reason *r = &to->rows[i].reason;
        r->what = r->what != NULL ? arena_strdup(a, r->what) : NULL;
        r->detail = r->detail != NULL ? arena_strdup(a, r->detail) : NULL;
    }
}

/* In a readable unit: below 10 with one decimal, truncated. */
static void print_bytes(struct strbuf *b, int64_t bytes)
{
    static const char *const units[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    size_t u = 0;
    int64_t whole = bytes, rest = 0;
    for (; whole >= 1024; u++) {
        rest = whole % 1024;
        whole /= 1024;
    }
    strbuf_addf(b, "%lld", (long long)whole);
    if (whole < 10 && rest * 10 / 1024 > 0)
        strbuf_addf(b, ".%lld", (long long)(rest * 10 / 1024));
    strbuf_adds(b, units[u]);
}

static void print_amount(struct strbuf *b, const char *resource, int64_t value, bool exact)
{
    bool bytes = str_eq(resource, "memory") || str_eq(resource, "ephemeral-storage") ||
                 str_starts(resource, "hugepages-");
    if (str_eq(resource, "cpu"))
        quantity_print_milli(value, b);
    else if (bytes && exact)
        quantity_print_bytes(value, b);
    else if (bytes)
        print_bytes(b, value);
    else
        strbuf_addf(b, "%lld", (long long)value);
}

static void print_resource(struct strbuf *b, const struct reason *r)
{
    AUTO_STRBUF want = {0};
    AUTO_STRBUF left = {0};
    for (int exact = 0; exact < 2;
         exact++) { /* "asked: 1.5Gi, largest free: 1.5Gi" would not help */
        strbuf_reset(&want);
        strbuf_reset(&left);
        print_amount(&want, r->what, r->want, exact);
        print_amount(&left, r->what, r->free, exact);
        if (!str_eq(strbuf_str(&want), strbuf_str(&left)))
            break;
    }
    strbuf_addf(b, "asked: %s, largest free: %s", strbuf_str(&want), strbuf_str(&left));
}

static void print_volume(struct strbuf *b, const struct reasons_row *row)
{
    const struct reason *r = &row->reason;
    const char *have = row->nodes == 1 ? "has" : "have", *be = row->nodes == 1 ? "is" : "are";
    switch (r->kind) {
    case REASON_CLAIM:
        strbuf_addf(b, "cannot take the pod because %s", r->what);
        break;
    case REASON_VOLUME_REACH:
        strbuf_addf(b, "cannot reach %s", r->what);
        break;
    case REASON_VOLUME_ZONE:
        strbuf_addf(b, "%s in another zone or region than volume %s", be, r->what);
        break;
    case REASON_VOLUME_NONE:
        strbuf_addf(b, "%s no free volume that fits claim %s", have, r->what);
        break;
    case REASON_VOLUME_ELSEWHERE:
        strbuf_addf(b, "%s not %s", be, r->what);
        break;
    case REASON_VOLUME_TOPOLOGY:
        strbuf_addf(b, "%s outside the topologies of storage class %s", be, r->what);
        break;
    case REASON_VOLUME_CAPACITY:
        strbuf_addf(b, "%s too little capacity in storage class %s", have, r->what);
        break;
    case REASON_VOLUME_TAKEN:
        strbuf_addf(b, "%s the disk %s mounted by another pod", have, r->what);
        break;
    case REASON_VOLUME_DRIVER:
        strbuf_addf(b, "%s no storage driver %s", have, r->what);
        break;
    case REASON_VOLUME_LIMIT:
        strbuf_addf(
            b, "%s too few places for volumes of driver %s (asked: %lld, most free: %lld on %s)",
            have, r->what, (long long)r->want, (long long)r->free, row->best_node);
        break;
    default:
        break;
    }
}

static void print_cpus(struct strbuf *b, const struct reasons_row *row)
{
    const struct reason *r = &row->reason;
    const char *have = row->nodes == 1 ? "has" : "have", *s = r->want == 1 ? "" : "s";
    switch (r->kind) {
    case REASON_NO_TOPOLOGY:
        strbuf_addf(b, "%s no CPU topology (%s)", have, r->what);
        break;
    case REASON_CPUS_CLOSED:
        strbuf_addf(b, "%s no container (%s)", row->nodes == 1 ? "pins" : "pin", r->what);
        break;
    case REASON_CPUS:
        strbuf_addf(b, "%s fewer than %lld CPU%s to pin (most free: %lld on %s)", have,
                    (long long)r->want, s, (long long)r->free, row->best_node);
        break;
    case REASON_CPUS_NUMA:
        strbuf_addf(b, "%s no NUMA node with %lld CPU%s to pin (most free: %lld on %s)", have,
                    (long long)r->want, s, (long long)r->free, row->best_node);
        break;
    case REASON_CPUS_SPLIT:
        strbuf_addf(b, "%s CPUs to pin only on more than %lld NUMA node%s (fewest: %lld on %s)",
                    have, (long long)r->want, s, (long long)-r->free, row->best_node);
        break;
    case REASON_CPUS_LENT:
        strbuf_addf(b,
                    "%s CPUs to pin only when those on loan are given back (asked: %lld, most "
                    "free: %lld on %s)",
                    have, (long long)r->want, (long long)r->free, row->best_node);
        break;
    default:
        break;
    }
}

static void print_row(struct strbuf *b, const struct reasons_row *row)
{
    const struct reason *r = &row->reason;
    bool one = row->nodes == 1;
    const char *have = one ? "has" : "have", *be = one ? "is" : "are";
    strbuf_addf(b, "%lld ", (long long)row->nodes);
    switch (r->kind) {
    case REASON_RESOURCE:
        strbuf_addf(b, "%s too little %s (", have, r->what);
        print_resource(b, r);
        strbuf_addf(b, " on %s)", row->best_node);
        break;
    case REASON_NOT_OFFERED:
        strbuf_addf(b, "%s not offer %s", one ? "does" : "do", r->what);
        break;
    case REASON_DEVICE_CLASS:
        strbuf_addf(b, "%s %s, which is not supported by this scheduler", have, r->what);
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
        strbuf_addf(b, "%s no GPU inventory (%s)", have, r->what);
        break;
    case REASON_GPU_MODE:
        strbuf_addf(b, "%s in mode %s", be, r->what);
        break;
    case REASON_GPU_SWITCHING:
        strbuf_addf(b, "%s switching to mode %s", be, r->what);
        break;
    case REASON_GPU_UNPLACED:
        strbuf_addf(b, "%s pods with GPUs on cards that are not known", have);
        break;
    case REASON_CARD:
        strbuf_addf(b, "%s %s free (largest free: %lld GiB", have, r->what, (long long)r->free);
        if (r->want_percent > 0)
            strbuf_addf(b, " and %lld %%", (long long)r->free_percent);
        strbuf_addf(b, " on %s", row->best_node);
        if (r->card >= 0)
            strbuf_addf(b, "/GPU%d", (int)r->card);
        strbuf_addc(b, ')');
        break;
    case REASON_CARDS:
        strbuf_addf(b, "%s fewer than %lld free card%s (most free: %lld on %s)", have,
                    (long long)r->want, r->want == 1 ? "" : "s", (long long)r->free,
                    row->best_node);
        break;
    case REASON_CARD_SICK:
        strbuf_addf(b, "%s %s and too little free beside it (on %s)", have, r->what,
                    row->best_node);
        break;
    case REASON_VIRTUAL:
        strbuf_addf(b, "%s virtual and the pod does not burst", be);
        break;
    case REASON_NOT_VIRTUAL:
        strbuf_addf(b, "%s not virtual and the pod asks for virtual nodes only", be);
        break;
    case REASON_POOL_REAL:
        strbuf_addf(b, "%s virtual and the gang is to stay on real nodes", be);
        break;
    case REASON_POOL_VIRTUAL:
        strbuf_addf(b, "%s not virtual and the gang is to stay on virtual nodes", be);
        break;
    case REASON_UNREADABLE:
        strbuf_addf(b, "%s a pod that cannot be read (on %s: %s)", one ? "runs" : "run",
                    row->best_node, r->detail);
        break;
    case REASON_PORT:
        strbuf_addf(b, "%s the host port %s taken", have, r->what);
        break;
    case REASON_FEATURE:
        strbuf_addf(b, "%s not declare the feature %s", one ? "does" : "do", r->what);
        break;
    case REASON_SPREAD:
        strbuf_addf(b, "would break the spread over %s (max skew %lld)", r->what,
                    (long long)r->want);
        break;
    case REASON_SPREAD_LABEL:
        strbuf_addf(b, "%s no label %s to spread over", have, r->what);
        break;
    case REASON_AFFINITY:
        strbuf_addf(b, "%s no pod in the same %s that the pod's affinity asks for", have, r->what);
        break;
    case REASON_AFFINITY_LABEL:
        strbuf_addf(b, "%s no label %s that the pod's affinity needs", have, r->what);
        break;
    case REASON_ANTI:
        strbuf_addf(b, "%s a pod in the same %s that the pod's anti-affinity forbids", have,
                    r->what);
        break;
    case REASON_EXISTING_ANTI:
        strbuf_addf(b, "%s a pod in the same %s whose anti-affinity forbids this pod", have,
                    r->what);
        break;
    case REASON_CLAIM:
    case REASON_VOLUME_REACH:
    case REASON_VOLUME_ZONE:
    case REASON_VOLUME_NONE:
    case REASON_VOLUME_ELSEWHERE:
    case REASON_VOLUME_TOPOLOGY:
    case REASON_VOLUME_CAPACITY:
    case REASON_VOLUME_TAKEN:
    case REASON_VOLUME_DRIVER:
    case REASON_VOLUME_LIMIT:
        print_volume(b, row);
        break;
    case REASON_REJECTED:
        strbuf_addf(b, "%s just sent a pod back for want of %s", have, r->what);
        break;
    case REASON_COMPUTE:
        strbuf_addf(b, "%s %s, which is not what the pod asks for", have, r->what);
        break;
    case REASON_UNIT:
        strbuf_addf(b, "%s %s", be, r->what);
        break;
    case REASON_RESERVED:
        strbuf_addf(b, "%s room for %s", one ? "keeps" : "keep", r->what);
        break;
    case REASON_NO_TOPOLOGY:
    case REASON_CPUS_CLOSED:
    case REASON_CPUS:
    case REASON_CPUS_NUMA:
    case REASON_CPUS_SPLIT:
    case REASON_CPUS_LENT:
        print_cpus(b, row);
        break;
    case REASON_KINDS:
        break;
    }
}

/* Most common first; equal counts by kind and name. */
static bool goes_before(const struct reasons_row *a, const struct reasons_row *b)
{
    if (a->nodes != b->nodes)
        return a->nodes > b->nodes;
    if (a->reason.kind != b->reason.kind)
        return a->reason.kind < b->reason.kind;
    return strcmp(str_or_empty(a->reason.what), str_or_empty(b->reason.what)) < 0;
}

static void order(const struct reasons *t, size_t *at)
{
    for (size_t i = 0; i < t->len; i++) {
        size_t j = i;
        for (; j > 0 && goes_before(&t->rows[i], &t->rows[at[j - 1]]); j--)
            at[j] = at[j - 1];
        at[j] = i;
    }
}

/* A reason that concerns the pod, if the only others are nodes of the wrong pool. */
static const char *of_pod(const struct reasons *t)
{
    const char *what = NULL;
    for (size_t i = 0; i < t->len; i++) {
        const struct reason *r = &t->rows[i].reason;
        if (r->kind == REASON_CLAIM && what == NULL)
            what = r->what;
        else if (r->kind != REASON_VIRTUAL && r->kind != REASON_NOT_VIRTUAL)
            return NULL;
    }
    return t->others == 0 ? what : NULL;
}

static void print_rows(struct strbuf *b, const struct reasons *t)
{
    size_t at[REASONS_MAX];
    order(t, at);
    for (size_t i = 0; i < t->len; i++) {
        if (i > 0)
            strbuf_adds(b, ", ");
        print_row(b, &t->rows[at[i]]);
    }
    if (t->others > 0)
        strbuf_addf(b, ", %lld for other reasons", (long long)t->others);
}

char *reasons_sentence(const struct reasons *t, struct arena *a)
{
    AUTO_STRBUF b = {0};
    const char *pods = of_pod(t), *of = t->of != NULL ? t->of : "nodes";
    bool only_virtual =
        t->lacks_virtual && t->len == 1 && t->rows[0].reason.kind == REASON_NOT_VIRTUAL;
    strbuf_addf(&b, "0/%lld %s fit: ", (long long)t->nodes, of);
    if (t->nodes == 0)
        strbuf_addf(&b, "the cluster has no %s", of);
    else if (pods != NULL)
        strbuf_adds(&b, pods);
    else if (only_virtual)
        strbuf_adds(&b, "the pod asks for virtual nodes only, and the cluster has none");
    else
        print_rows(&b, t);
    if (t->lacks_virtual && !only_virtual && t->nodes > 0)
        strbuf_adds(&b, "; the cluster has no virtual node to burst to");
    return arena_strdup(a, strbuf_str(&b));
}

uint64_t reasons_class(const struct reasons *t)
{
    uint64_t sum = (t->nodes == 0 ? 1U : 2U) + (t->lacks_virtual ? 4U : 0U);
    for (size_t i = 0; i < t->len; i++) {
        const char *what = str_or_empty(t->rows[i].reason.what);
        sum += str_hash(what, strlen(what)) * (uint64_t)(2 * t->rows[i].reason.kind + 3);
    }
    return sum;
}
