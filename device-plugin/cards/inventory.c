// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/cards/inventory.h"

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/names.h"

#define SLICE "-_-"

static bool is_plain(const char *uuid)
{
    size_t n = uuid != NULL ? strlen(uuid) : 0;
    for (size_t k = 0; k < n; k++) {
        char ch = uuid[k];
        if (!((ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
              ch == '-' || ch == '_' || ch == '.'))
            return false;
    }
    return n > 0 && n <= INVENTORY_UUID_MAX && strstr(uuid, SLICE) == NULL;
}

/* Can the card be served beside those already picked? */
static int check_card(const struct gpu_card *c, const struct gpu_inventory *picked,
                      struct error *err)
{
    if (!is_plain(c->uuid))
        return error_set(err, ERROR_INVALID,
                         "card %d: uuid: must be 1 to %d letters, digits, '-', '_', '.': '%s'",
                         c->index, INVENTORY_UUID_MAX, str_or_empty(c->uuid));
    if (c->mib <= 0 || gpu_card_gib(c) > INVENTORY_CARD_GIB_MAX)
        return error_set(err, ERROR_RANGE, "card %d: memory: must be 1 MiB to %d GiB: %lld MiB",
                         c->index, INVENTORY_CARD_GIB_MAX, (long long)c->mib);
    if (picked->cards_len == GPU_CARDS_MAX)
        return error_set(err, ERROR_TOO_LARGE, "card %d: at most %d cards are supported", c->index,
                         GPU_CARDS_MAX);
    if (gpu_inventory_gib(picked) + gpu_card_gib(c) > INVENTORY_GIB_MAX)
        return error_set(err, ERROR_TOO_LARGE,
                         "card %d: memory: with it the node would offer over %d GiB", c->index,
                         INVENTORY_GIB_MAX);
    for (size_t k = 0; k < picked->cards_len; k++) {
        if (str_eq(picked->cards[k].uuid, c->uuid))
            return error_set(err, ERROR_INVALID, "cards %d and %d have the same uuid %s",
                             picked->cards[k].index, c->index, c->uuid);
        if (picked->cards[k].index == c->index)
            return error_set(err, ERROR_INVALID, "two cards have the index %d", c->index);
    }
    return 0;
}

int inventory_pick(const struct gpu_inventory *scan, struct arena *a, struct gpu_inventory *out,
                   struct error *err)
{
    size_t from[GPU_CARDS_MAX] = {0};
    int result = 0;
    *out = (struct gpu_inventory){
        .cards = arena_new(a, struct gpu_card,
                           scan->cards_len < GPU_CARDS_MAX ? scan->cards_len : GPU_CARDS_MAX)};
    for (size_t i = 0; i < scan->cards_len; i++) {
        if (check_card(&scan->cards[i], out, result == 0 ? err : NULL) < 0) {
            result = -1;
            continue;
        }
        from[out->cards_len] = i;
        out->cards[out->cards_len++] = scan->cards[i];
    }
    size_t n = out->cards_len;
    if (scan->links == NULL)
        return result;
    out->links = arena_new(a, const char *, n *n);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            out->links[i * n + k] = scan->links[from[i] * scan->cards_len + from[k]];
    return result;
}

static int32_t by_uuid(const struct gpu_inventory *inv, const char *uuid)
{
    for (size_t i = 0; inv != NULL && i < inv->cards_len; i++)
        if (str_eq(inv->cards[i].uuid, uuid))
            return (int32_t)i;
    return INVENTORY_NONE;
}

int32_t inventory_card(const struct gpu_inventory *inv, int32_t index)
{
    for (size_t i = 0; inv != NULL && i < inv->cards_len; i++)
        if (inv->cards[i].index == index)
            return (int32_t)i;
    return INVENTORY_NONE;
}

static void copy_card(struct gpu_card *to, const struct gpu_card *from, struct arena *a)
{
    *to = *from;
    to->uuid = arena_strdup(a, from->uuid);
    to->model = arena_strdup(a, str_or_empty(from->model));
    to->pci = arena_strdup(a, str_or_empty(from->pci));
    to->why = arena_strdup(a, str_or_empty(from->why));
}

static const char *link_of(const struct gpu_inventory *inv, const char *x, const char *y)
{
    int32_t i = by_uuid(inv, x), k = by_uuid(inv, y);
    if (i < 0 || k < 0 || inv->links == NULL)
        return NULL;
    return inv->links[(size_t)i * inv->cards_len + (size_t)k];
}

void inventory_merge(const struct gpu_inventory *old, const struct gpu_inventory *scan,
                     struct arena *a, struct gpu_inventory *out)
{
    size_t cap = scan->cards_len + (old != NULL ? old->cards_len : 0), len = 0;
    struct gpu_card *cards = arena_new(a, struct gpu_card, cap);
    for (size_t i = 0; i < scan->cards_len; i++)
        copy_card(&cards[len++], &scan->cards[i], a);
    for (size_t i = 0; old != NULL && i < old->cards_len; i++) {
        const struct gpu_card *c = &old->cards[i];
        if (by_uuid(scan, c->uuid) >= 0 || inventory_card(scan, c->index) >= 0 ||
            len >= GPU_CARDS_MAX)
            continue;
        copy_card(&cards[len], c, a);
        cards[len++].health = GPU_HEALTH_SICK;
    }
    /* By index: a few cards, already nearly in order. */
    for (size_t i = 1; i < len; i++) {
        struct gpu_card c = cards[i];
        size_t k = i;
        for (; k > 0 && cards[k - 1].index > c.index; k--)
            cards[k] = cards[k - 1];
        cards[k] = c;
    }
    *out = (struct gpu_inventory){.cards = cards, .cards_len = len};
    if (scan->links == NULL && (old == NULL || old->links == NULL))
        return;
    out->links = arena_new(a, const char *, len *len);
    for (size_t i = 0; i < len; i++) {
        for (size_t k = 0; k < len; k++) {
            const char *link = i == k ? "X" : link_of(scan, cards[i].uuid, cards[k].uuid);
            if (link == NULL)
                link = link_of(old, cards[i].uuid, cards[k].uuid);
            out->links[i * len + k] = arena_strdup(a, link != NULL ? link : "SYS");
        }
    }
}

size_t inventory_in_mode(const struct gpu_inventory *inv, enum gpu_mode mode, struct arena *a,
                         struct gpu_inventory *out)
{
    size_t left_out = 0;
    *out = *inv;
    out->cards = arena_new(a, struct gpu_card, inv->cards_len);
    for (size_t i = 0; i < inv->cards_len; i++) {
        out->cards[i] = inv->cards[i];
        if (!inv->cards[i].mig || !gpu_mode_is_shared(mode))
            continue;
        out->cards[i].health = GPU_HEALTH_SICK;
        out->cards[i].why = "cut into MIG instances";
        left_out++;
    }
    return left_out;
}

bool inventory_equal(const struct gpu_inventory *x, const struct gpu_inventory *y)
{
    if (x->cards_len != y->cards_len || (x->links == NULL) != (y->links == NULL))
        return false;
    for (size_t i = 0; i < x->cards_len; i++) {
        const struct gpu_card *p = &x->cards[i], *q = &y->cards[i];
        if (p->index != q->index || p->mib != q->mib || p->numa != q->numa ||
            p->health != q->health || p->mig != q->mig || !str_eq(p->uuid, q->uuid) ||
            !str_eq(str_or_empty(p->model), str_or_empty(q->model)) ||
            !str_eq(str_or_empty(p->pci), str_or_empty(q->pci)) ||
            !str_eq(str_or_empty(p->why), str_or_empty(q->why)))
            return false;
    }
    for (size_t i = 0; x->links != NULL && i < x->cards_len * x->cards_len; i++)
        if (!str_eq(x->links[i], y->links[i]))
            return false;
    return true;
}

int64_t inventory_card_size(const struct gpu_card *card, enum mode_resource r)
{
    if (mode_resource_is_whole(r))
        return 1;
    return r == MODE_GPU_MEM ? gpu_card_gib(card) : INVENTORY_CORES;
}

void inventory_devices(const struct gpu_inventory *inv, enum mode_resource r,
                       const struct inventory_ids *only, struct arena *a,
                       struct inventory_devices *out)
{
    if (only != NULL) {
        out->items = arena_new(a, struct inventory_device, only->len);
        out->len = only->len;
        for (size_t i = 0; i < only->len; i++)
            out->items[i] = (struct inventory_device){
                .id = arena_strdup(a, only->items[i]), .healthy = true, .numa = -1};
        return;
    }
    size_t total = 0;
    for (size_t i = 0; i < inv->cards_len; i++)
        total += (size_t)inventory_card_size(&inv->cards[i], r);
    out->items = arena_new(a, struct inventory_device, total);
    out->len = 0;
    for (size_t i = 0; i < inv->cards_len; i++) {
        const struct gpu_card *c = &inv->cards[i];
        bool healthy = c->health == GPU_HEALTH_OK;
        if (mode_resource_is_whole(r)) {
            out->items[out->len++] = (struct inventory_device){
                .id = arena_strdup(a, c->uuid), .healthy = healthy, .numa = c->numa};
            continue;
        }
        /* Shares carry no NUMA node: the Topology Manager would prefer ids of another card. */
        for (int64_t n = 0; n < inventory_card_size(c, r); n++)
            out->items[out->len++] = (struct inventory_device){
                .id = arena_printf(a, "%s" SLICE "%lld", c->uuid, (long long)n),
                .healthy = healthy,
                .numa = -1};
    }
}

int32_t inventory_find(const struct gpu_inventory *inv, enum mode_resource r, const char *id)
{
    for (size_t i = 0; i < inv->cards_len; i++) {
        const struct gpu_card *c = &inv->cards[i];
        if (!str_starts(id, c->uuid))
            continue;
        const char *rest = id + strlen(c->uuid);
        if (mode_resource_is_whole(r)) {
            if (rest[0] == '\0')
                return (int32_t)i;
            continue;
        }
        int64_t slice;
        if (!str_starts(rest, SLICE))
            continue;
        rest += strlen(SLICE);
        if (num_parse(rest, strlen(rest), &slice, NULL) == 0 && slice >= 0 &&
            slice < inventory_card_size(c, r) && (rest[0] != '0' || rest[1] == '\0'))
            return (int32_t)i;
    }
    return INVENTORY_NONE;
}

/* A label's value: spaces become '-', other invalid characters '_'; at most 63 characters, with
 * alphanumeric ends. */
static char *label_value(struct arena *a, const char *text)
{
    enum { LABEL_MAX = 63 };
    char *s = arena_strndup(a, text, strnlen(text, LABEL_MAX));
    size_t n = strlen(s);
    for (size_t i = 0; i < n; i++) {
        char c = s[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!plain && c != '-' && c != '_' && c != '.')
            s[i] = c == ' ' ? '-' : '_';
    }
    while (n > 0 && (s[n - 1] == '-' || s[n - 1] == '_' || s[n - 1] == '.'))
        s[--n] = '\0';
    while (*s == '-' || *s == '_' || *s == '.')
        s++;
    return s;
}

void inventory_labels(const struct gpu_inventory *inv, struct arena *a, struct labels *out)
{
    *out = (struct labels){.items = arena_new(a, struct label, 3), .len = 3};
    out->items[0].key = NAME_LABEL_ACCEL_COUNT;
    out->items[1].key = NAME_LABEL_ACCEL_MEM;
    out->items[2].key = NAME_LABEL_ACCEL_NAME;
    if (inv->cards_len == 0)
        return;
    const char *name = NULL;
    size_t most = 0;
    int64_t smallest_mib = inv->cards[0].mib;
    for (size_t i = 0; i < inv->cards_len; i++) {
        size_t same = 0;
        for (size_t k = 0; k < inv->cards_len; k++)
            same += str_eq(inv->cards[i].model, inv->cards[k].model);
        if (same > most) {
            most = same;
            name = inv->cards[i].model;
        }
        smallest_mib = num_min(smallest_mib, inv->cards[i].mib);
    }
    out->items[0].value = arena_printf(a, "%zu", inv->cards_len);
    out->items[1].value = arena_printf(a, "%lldMiB", (long long)smallest_mib);
    out->items[2].value = label_value(a, str_or_empty(name));
}
