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

static void print_resource(struct strbuf *b, const struct reason *r, const char *superlative)
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
    strbuf_addf(b, "asked: %s, %s: %s", strbuf_str(&want), superlative, strbuf_str(&left));
}

/* What is said after the number of nodes; the words in braces are in print_row and
 * print_word. */
static const char *const sentences[REASON_KINDS] = {
    [REASON_RESOURCE] = "{have} too little {what} ({amounts} on {node})",
    [REASON_RESOURCE_SIZE] = "{have} too little {what} even when empty ({sizes} on {node})",
    [REASON_NOT_OFFERED] = "{do} not offer {what}",
    [REASON_DEVICE_CLASS] = "{have} {what}, which is not supported by this scheduler",
    [REASON_PODS] = "{have} no pod place left",
    [REASON_UNSCHEDULABLE] = "{are} cordoned",
    [REASON_TAINT] = "{have} the taint {what} that the pod does not tolerate",
    [REASON_SELECTOR] = "{do} not match the pod's node selector or affinity",
    [REASON_NO_INVENTORY] = "{have} no GPU inventory ({what})",
    [REASON_GPU_MODE] = "{are} in mode {what}",
    [REASON_GPU_SWITCHING] = "{are} switching to mode {what}",
    [REASON_GPU_UNPLACED] = "{have} pods with GPUs on cards that are not known",
    [REASON_CARD] = "{have} {what} free (largest free: {card})",
    [REASON_CARD_SIZE] = "{have} {what} even when empty (largest: {card})",
    [REASON_CARDS] = "{have} fewer than {want} free card{plural} ({most})",
    [REASON_CARDS_SIZE] = "{have} fewer than {want} card{plural} even when empty ({all})",
    [REASON_CARD_SICK] = "{have} {what} and too little free beside it (on {node})",
    [REASON_VIRTUAL] = "{are} virtual and the pod does not burst",
    [REASON_NOT_VIRTUAL] = "{are} not virtual and the pod asks for virtual nodes only",
    [REASON_POOL_REAL] = "{are} virtual and the gang is to stay on real nodes",
    [REASON_POOL_VIRTUAL] = "{are} not virtual and the gang is to stay on virtual nodes",
    [REASON_PORT] = "{have} the host port {what} taken",
    [REASON_FEATURE] = "{do} not declare the feature {what}",
    [REASON_SPREAD] = "would break the spread over {what} (max skew {want})",
    [REASON_SPREAD_LABEL] = "{have} no label {what} to spread over",
    [REASON_AFFINITY] = "{have} no pod in the same {what} that the pod's affinity asks for",
    [REASON_AFFINITY_LABEL] = "{have} no label {what} that the pod's affinity needs",
    [REASON_ANTI] = "{have} a pod in the same {what} that the pod's anti-affinity forbids",
    [REASON_EXISTING_ANTI] = "{have} a pod in the same {what} whose anti-affinity forbids this pod",
    [REASON_CLAIM] = "cannot take the pod because {what}",
    [REASON_VOLUME_REACH] = "cannot reach {what}",
    [REASON_VOLUME_ZONE] = "{are} in another zone or region than volume {what}",
    [REASON_VOLUME_NONE] = "{have} no free volume that fits claim {what}",
    [REASON_VOLUME_ELSEWHERE] = "{are} not {what}",
    [REASON_VOLUME_TOPOLOGY] = "{are} outside the topologies of storage class {what}",
    [REASON_VOLUME_CAPACITY] = "{have} too little capacity in storage class {what}",
    [REASON_VOLUME_TAKEN] = "{have} the disk {what} mounted by another pod",
    [REASON_VOLUME_DRIVER] = "{have} no storage driver {what}",
    [REASON_VOLUME_LIMIT] =
        "{have} too few places for volumes of driver {what} (asked: {want}, {most})",
    [REASON_REJECTED] = "{have} just sent a pod back for want of {what}",
    [REASON_COMPUTE] = "{have} {what}, which is not what the pod asks for",
    [REASON_UNIT] = "{are} {what}",
    [REASON_RESERVED] = "keep{s} room for {what}",
    [REASON_NO_TOPOLOGY] = "{have} no CPU topology ({what})",
    [REASON_CPUS_CLOSED] = "pin{s} no container ({what})",
    [REASON_CPUS] = "{have} fewer than {want} CPU{plural} to pin ({most})",
    [REASON_CPUS_NUMA] = "{have} no NUMA node with {want} CPU{plural} to pin ({most})",
    [REASON_CPUS_SPLIT] =
        "{have} CPUs to pin only on more than {want} NUMA node{plural} (fewest: {need} on {node})",
    [REASON_CPUS_LENT] =
        "{have} CPUs to pin only when those on loan are given back (asked: {want}, {most})",
};

static void print_card(struct strbuf *b, const struct reasons_row *row)
{
    const struct reason *r = &row->reason;
    strbuf_addf(b, "%lld GiB", (long long)r->free);
    if (r->want_percent > 0)
        strbuf_addf(b, " and %lld %%", (long long)r->free_percent);
    strbuf_addf(b, " on %s", row->best_node);
    if (r->card >= 0)
        strbuf_addf(b, "/GPU%d", (int)r->card);
}

static void print_word(struct strbuf *b, const char *word, size_t len,
                       const struct reasons_row *row)
{
    const struct reason *r = &row->reason;
    bool one = row->nodes == 1;
    const struct {
        const char *word, *text; /* text NULL: the number */
        int64_t number;
    } words[] = {{"have", one ? "has" : "have", 0},
                 {"are", one ? "is" : "are", 0},
                 {"do", one ? "does" : "do", 0},
                 {"s", one ? "s" : "", 0},
                 {"plural", r->want == 1 ? "" : "s", 0},
                 {"what", str_or_empty(r->what), 0},
                 {"node", row->best_node, 0},
                 {"want", NULL, r->want},
                 {"need", NULL, -r->free}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i].word) == len && strncmp(words[i].word, word, len) == 0) {
            if (words[i].text != NULL)
                strbuf_adds(b, words[i].text);
            else
                strbuf_addf(b, "%lld", (long long)words[i].number);
        }
}

static void print_row(struct strbuf *b, const struct reasons_row *row)
{
    strbuf_addf(b, "%lld ", (long long)row->nodes);
    for (const char *at = sentences[row->reason.kind]; *at != '\0'; at++) {
        if (*at != '{') {
            strbuf_addc(b, *at);
            continue;
        }
        size_t len = strcspn(++at, "}");
        if (str_starts(at, "amounts}"))
            print_resource(b, &row->reason, "largest free");
        else if (str_starts(at, "sizes}"))
            print_resource(b, &row->reason, "largest");
        else if (str_starts(at, "card}"))
            print_card(b, row);
        else if (str_starts(at, "all}"))
            strbuf_addf(b, "most: %lld on %s", (long long)row->reason.free, row->best_node);
        else if (str_starts(at, "most}"))
            strbuf_addf(b, "most free: %lld on %s", (long long)row->reason.free, row->best_node);
        else
            print_word(b, at, len, row);
        at += len;
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

/* Whether each node is too small or refuses for what no pod's end changes. Cordoned nodes and those
 * that have not published what they have may turn out large enough. */
static bool is_hopeless(const struct reasons *t)
{
    bool small = false;
    for (size_t i = 0; i < t->len; i++)
        switch (t->rows[i].reason.kind) {
        case REASON_RESOURCE_SIZE:
        case REASON_CARD_SIZE:
        case REASON_CARDS_SIZE:
            small = true;
            break;
        case REASON_NOT_OFFERED:
        case REASON_DEVICE_CLASS:
        case REASON_TAINT:
        case REASON_SELECTOR:
        case REASON_GPU_MODE:
        case REASON_VIRTUAL:
        case REASON_NOT_VIRTUAL:
        case REASON_FEATURE:
        case REASON_COMPUTE:
            break;
        default:
            return false;
        }
    return small && t->others == 0;
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
    if (t->of == NULL && is_hopeless(t))
        strbuf_adds(b, "; no node could ever take it");
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
