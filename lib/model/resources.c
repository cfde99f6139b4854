// SPDX-License-Identifier: Apache-2.0
/*
 * Lists of amounts. The four names that every node has are fields; all others are a short array
 * sorted by name, so that two lists are added or compared in one pass, and the result does not
 * depend on input order.
 *
 * Only its owner changes an array in place: set, add and max work on a list that began as {0}. The
 * array is reallocated when names are added, and arenas do not free memory; but accounting adds
 * lists of the same names, which costs nothing, and a decoder reserves first.
 */
#include "lib/model/resources.h"

#include "lib/base/num.h"
#include "lib/model/names.h"

enum {
    NAME_MAX_BYTES = 253 + 1 + 63, /* prefix, '/', name */
    SHOWN = 64                     /* bytes of a value in a message */
};

/* The four fields, by name. */
static const struct {
    const char *name;
    uint8_t bit;
    enum quantity_scale scale;
} fields[] = {
    {"cpu", RESOURCES_HAS_CPU, QUANTITY_MILLI},
    {"memory", RESOURCES_HAS_MEMORY, QUANTITY_UNITS},
    {"ephemeral-storage", RESOURCES_HAS_EPHEMERAL, QUANTITY_UNITS},
    {"pods", RESOURCES_HAS_PODS, QUANTITY_UNITS},
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

static int64_t *field_of(struct resources *r, size_t i)
{
    int64_t *const at[FIELDS] = {&r->cpu_milli, &r->memory_bytes, &r->ephemeral_bytes, &r->pods};
    return at[i];
}

static int64_t field_value(const struct resources *r, size_t i)
{
    const int64_t at[FIELDS] = {r->cpu_milli, r->memory_bytes, r->ephemeral_bytes, r->pods};
    return at[i];
}

/* The index of the name's field, or FIELDS. */
static size_t field_index(const char *name, size_t n)
{
    size_t i = 0;

    while (i < FIELDS && (strlen(fields[i].name) != n || memcmp(fields[i].name, name, n) != 0))
        i++;
    return i;
}

/* Orders a name of n bytes (without NUL) against an entry. */
static int name_order(const char *name, size_t n, const char *entry)
{
    int c = strncmp(name, entry, n);
    return c != 0 ? c : entry[n] == '\0' ? 0 : -1;
}

/* The index of the entry, or where to insert it. */
static uint32_t extra_index(const struct resources *r, const char *name, size_t n, bool *found)
{
    uint32_t lo = 0, hi = r->extra_len;

    *found = false;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        int c = name_order(name, n, r->extra[mid].name);
        if (c == 0) {
            *found = true;
            return mid;
        }
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

int64_t resources_get(const struct resources *r, const char *name, bool *present)
{
    size_t n = strlen(name), f = field_index(name, n);
    bool found;
    int64_t value;

    if (f < FIELDS) {
        found = (r->has & fields[f].bit) != 0;
        value = field_value(r, f);
    } else {
        uint32_t at = extra_index(r, name, n, &found);
        value = found ? r->extra[at].value : 0;
    }
    if (present)
        *present = found;
    return value;
}

/* Cards are counted however many other names stand before theirs. */
static bool may_insert(const struct resources *r, const char *name, size_t n)
{
    static const char *const cards[] = {NAME_RES_ALL_GPU};
    for (size_t i = 0; i < sizeof cards / sizeof cards[0]; i++)
        if (name_order(name, n, cards[i]) == 0)
            return true;
    return r->extra_len < RESOURCES_EXTRA_MAX;
}

void resources_reserve(struct resources *r, struct arena *a, size_t names)
{
    size_t n = names < RESOURCES_EXTRA_MAX ? names : RESOURCES_EXTRA_MAX;
    struct resource_extra *grown = arena_new(a, struct resource_extra, r->extra_len + n);

    if (r->extra_len > 0)
        memcpy(grown, r->extra, r->extra_len * sizeof grown[0]);
    r->extra = grown;
    r->extra_free = (uint16_t)n;
}

/* Inserts a new name at its index. */
static void extra_insert(struct resources *r, struct arena *a, uint32_t at, const char *name,
                         int64_t value)
{
    if (r->extra_free == 0)
        resources_reserve(r, a, 1);
    memmove(r->extra + at + 1, r->extra + at, (r->extra_len - at) * sizeof r->extra[0]);
    r->extra[at] = (struct resource_extra){name, value};
    r->extra_len++;
    r->extra_free--;
}

static int set_text(struct resources *r, struct arena *a, const char *name, size_t name_len,
                    const char *text, size_t text_len, enum quantity_round round, struct error *err)
{
    size_t f = field_index(name, name_len);
    int64_t value = -1;
    bool found;

    if (quantity_parse(text, text_len, f < FIELDS ? fields[f].scale : QUANTITY_UNITS, round, &value,
                       err) < 0) {
        if (value != INT64_MAX)
            return -1;
        error_clear(err); /* too large: the largest */
    }
    if (value < 0)
        return error_set(err, ERROR_INVALID, "must not be negative: '%.*s'",
                         (int)(text_len < SHOWN ? text_len : SHOWN), text);
    if (round == QUANTITY_DOWN)
        value = num_min(value, RESOURCES_TOO_LARGE - 1);
    if (f < FIELDS) {
        *field_of(r, f) = value;
        r->has = (uint8_t)(r->has | fields[f].bit);
        return 0;
    }
    uint32_t at = extra_index(r, name, name_len, &found);
    if (found) {
        r->extra[at].value = value;
        return 0;
    }
    if (!may_insert(r, name, name_len))
        return error_set(err, ERROR_TOO_LARGE, "more than %d extended resources",
                         RESOURCES_EXTRA_MAX);
    extra_insert(r, a, at, arena_strndup(a, name, name_len), value);
    return 0;
}

int resources_set_text(struct resources *r, struct arena *a, const char *name, size_t name_len,
                       const char *text, size_t text_len, enum quantity_round round,
                       struct error *err)
{
    if (name_len == 0 || name_len > NAME_MAX_BYTES || memchr(name, '\0', name_len))
        return error_set(err, ERROR_INVALID,
                         "resource name: must have 1 to %d bytes, none of them NUL",
                         NAME_MAX_BYTES);
    if (set_text(r, a, name, name_len, text, text_len, round, err) < 0)
        return error_wrap(err, "resource %.*s", (int)name_len, name);
    return 0;
}

static int64_t combine(int64_t a, int64_t b, bool sum)
{
    return sum ? num_add_sat(a, b) : num_max(a, b);
}

/* dst = dst + src, or max(dst, src), for each name of src. */
static bool merge(struct resources *dst, const struct resources *src, struct arena *a, bool sum)
{
    bool all = true;

    for (size_t i = 0; i < FIELDS; i++)
        *field_of(dst, i) = combine(field_value(dst, i), field_value(src, i), sum);
    dst->has = (uint8_t)(dst->has | src->has);

    for (uint32_t i = 0; i < src->extra_len; i++) {
        const struct resource_extra *e = &src->extra[i];
        bool found;
        uint32_t at = extra_index(dst, e->name, strlen(e->name), &found);
        if (found) {
            dst->extra[at].value = combine(dst->extra[at].value, e->value, sum);
        } else if (may_insert(dst, e->name, strlen(e->name))) {
            if (dst->extra_free == 0)
                resources_reserve(dst, a, src->extra_len - i);
            extra_insert(dst, a, at, e->name, e->value);
        } else {
            all = false;
        }
    }
    return all;
}

bool resources_add(struct resources *dst, const struct resources *src, struct arena *a)
{
    return merge(dst, src, a, true);
}

bool resources_max(struct resources *dst, const struct resources *src, struct arena *a)
{
    return merge(dst, src, a, false);
}

/* Whether the non-zero extras of a have the same amount in b. */
static bool extras_within(const struct resources *a, const struct resources *b)
{
    for (uint32_t i = 0; i < a->extra_len; i++)
        if (a->extra[i].value != 0 && resources_get(b, a->extra[i].name, NULL) != a->extra[i].value)
            return false;
    return true;
}

bool resources_equal(const struct resources *a, const struct resources *b)
{
    for (size_t i = 0; i < FIELDS; i++)
        if (field_value(a, i) != field_value(b, i))
            return false;
    return extras_within(a, b) && extras_within(b, a);
}

void resources_print(const struct resources *r, struct strbuf *out)
{
    const char *comma = "";

    for (size_t i = 0; i < FIELDS; i++) {
        int64_t value = field_value(r, i);
        if (value == 0)
            continue;
        strbuf_addf(out, "%s%s ", comma, fields[i].name);
        comma = ", ";
        if (fields[i].scale == QUANTITY_MILLI)
            quantity_print_milli(value, out);
        else if (fields[i].bit == RESOURCES_HAS_PODS)
            strbuf_addf(out, "%lld", (long long)value);
        else
            quantity_print_bytes(value, out);
    }
    for (uint32_t i = 0; i < r->extra_len; i++) {
        if (r->extra[i].value == 0)
            continue;
        strbuf_addf(out, "%s%s ", comma, r->extra[i].name);
        comma = ", ";
        if (str_starts(r->extra[i].name, "hugepages-"))
            quantity_print_bytes(r->extra[i].value, out);
        else
            strbuf_addf(out, "%lld", (long long)r->extra[i].value);
    }
}
