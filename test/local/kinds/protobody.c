// SPDX-License-Identifier: Apache-2.0
/*
 * protobody - the envelope, and a walk along the tables.
 *
 *   "k8s\0" then Unknown{ 1 typeMeta{ 1 apiVersion, 2 kind }, 2 raw } with the object's message in
 *   raw
 *
 * A message is read twice: scan() checks all its fields and records the positions of those in the
 * table; then the fields are read in the table's order. Go writes fields in the order of their
 * numbers, so the second reading is one pass too; another order only rereads some bytes.
 *
 * The input is not trusted: every length is checked against the rest, the nesting is that of the
 * tables (which have no cycle), and the JSON has a bound. Of a repeated scalar the last counts; the
 * parts of a repeated message are merged by concatenation.
 */
#include "test/local/kinds/protobody.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/base64.h"
#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "test/local/kinds/protobody_internal.h"
#include "test/local/kinds/protobody_wire.h"

static const char magic[4] = {'k', '8', 's', '\0'};

/* ---- messages of fixed form ---- */

/* A Time of no bytes is Go's zero time, which is null. The years are those that RFC 3339 can
 * say. */
static int write_time(struct json_writer *w, const char *key, size_t key_len,
                      struct protobody_span m, bool micro, struct error *err)
{
    struct protobody_piece p[PROTOBODY_FEW + 1];
    struct tm tm = {0};
    char text[64];
    if (m.n == 0)
        return 0;
    if (protobody_wire_few(m, "00", p, err) < 0)
        return -1;
    time_t seconds = (time_t)(int64_t)p[1].value;
    int32_t nanos = micro ? (int32_t)(uint32_t)p[2].value : 0;
    if (seconds < -62135596800 || seconds > 253402300799 || nanos < 0 || nanos > 999999999 ||
        !gmtime_r(&seconds, &tm))
        return error_set(err, ERROR_INVALID, "not a time between the years 1 and 9999");
    (void)str_format(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d", tm.tm_year + 1900,
                     tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
    size_t n = strlen(text);
    if (micro)
        (void)str_format(text + n, sizeof text - n, ".%06dZ", (int)(nanos / 1000));
    else
        (void)str_format(text + n, sizeof text - n, "Z");
    json_key_n(w, key, key_len);
    json_put_str(w, text);
    return 0;
}

static int put_amount(struct json_writer *w, struct protobody_span m, struct error *err)
{
    struct protobody_piece p[PROTOBODY_FEW + 1];
    if (protobody_wire_few(m, "2", p, err) < 0)
        return -1;
    if (p[1].bytes.n == 0)
        json_put_str(w, "0");
    else
        json_put_str_n(w, p[1].bytes.at, p[1].bytes.n);
    return 0;
}

/* IntOrString{type (0: the number), intVal, strVal} */
static int put_port(struct json_writer *w, struct protobody_span m, struct error *err)
{
    struct protobody_piece p[PROTOBODY_FEW + 1];
    if (protobody_wire_few(m, "002", p, err) < 0)
        return -1;
    if (p[1].value > 1)
        return error_set(err, ERROR_INVALID, "impossible IntOrString.Type");
    if (p[1].value == 0)
        json_put_int(w, (int32_t)(uint32_t)p[2].value);
    else
        json_put_str_n(w, p[3].bytes.at, p[3].bytes.n);
    return 0;
}

static int put_json(struct json_writer *w, struct protobody_span m, struct error *err)
{
    struct protobody_piece p[PROTOBODY_FEW + 1];
    AUTO_JSON *doc = NULL;
    if (protobody_wire_few(m, "2", p, err) < 0)
        return -1;
    if (p[1].bytes.n > 0 && json_parse(&doc, p[1].bytes.at, p[1].bytes.n, err) < 0)
        return -1;
    json_put_value(w, doc ? json_root(doc) : NULL);
    return 0;
}

static void put_base64(struct json_writer *w, struct protobody_span s)
{
    AUTO_STRBUF text;
    strbuf_init(&text);
    base64_encode(s.at, s.n, &text);
    json_put_str_n(w, strbuf_str(&text), text.len);
}

/* ---- maps ---- */

struct entry {
    struct protobody_span key, value;
    size_t order;
};

static int compare_keys(const struct entry *a, const struct entry *b)
{
    size_t n = a->key.n < b->key.n ? a->key.n : b->key.n;
    int c = memcmp(a->key.at, b->key.at, n);
    if (c == 0)
        c = (a->key.n > b->key.n) - (a->key.n < b->key.n);
    return c;
}

static int compare_entries(const void *va, const void *vb)
{
    const struct entry *a = va;
    const struct entry *b = vb;
    int c = compare_keys(a, b);
    return c ? c : (a->order > b->order) - (a->order < b->order);
}

static int write_entry(struct json_writer *w, enum protobody_how how, const struct entry *e,
                       struct error *err)
{
    if (how == PROTOBODY_MAP_TIME)
        return write_time(w, e->key.at, e->key.n, e->value, false, err);
    json_key_n(w, e->key.at, e->key.n);
    if (how == PROTOBODY_MAP_AMOUNT)
        return put_amount(w, e->value, err);
    if (how == PROTOBODY_MAP_BYTES)
        put_base64(w, e->value);
    else
        json_put_str_n(w, e->value.at, e->value.n);
    return 0;
}

static int next_of(struct protobody_span *s, uint32_t number, struct protobody_piece *out,
                   struct error *err);

/* By key, as Go prints them. Of equal keys the last counts. */
static int write_map(struct json_writer *w, const struct protobody_field *f,
                     struct protobody_span range, size_t count, struct error *err)
{
    struct entry *entries = mem_new(struct entry, count);
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        struct protobody_piece p = {0};
        struct protobody_piece pair[PROTOBODY_FEW + 1];
        if (next_of(&range, f->number, &p, err) < 0 ||
            protobody_wire_few(p.bytes, "22", pair, err) < 0)
            rc = -1;
        else
            entries[i] = (struct entry){pair[1].bytes, pair[2].bytes, i};
    }
    if (rc == 0) {
        qsort(entries, count, sizeof *entries, compare_entries);
        json_key(w, f->name);
        json_object_begin(w);
        for (size_t i = 0; i < count && rc == 0; i++)
            if (i + 1 == count || compare_keys(&entries[i], &entries[i + 1]) != 0)
                rc = write_entry(w, (enum protobody_how)f->how, &entries[i], err);
        if (rc == 0)
            json_object_end(w);
    }
    free(entries);
    return rc;
}

/* ---- messages by their tables ---- */

/* Where a field of the table lies in its message: from its first occurrence to the end of its
 * last. */
struct place {
    const char *from, *to;
    size_t count;
};

static bool is_number(const struct protobody_field *f)
{
    switch ((enum protobody_how)f->how) {
    case PROTOBODY_INT:
    case PROTOBODY_LONG:
    case PROTOBODY_BOOL:
    case PROTOBODY_INT0:
    case PROTOBODY_LONG0:
    case PROTOBODY_BOOL0:
        return true;
    default:
        return false;
    }
}

static bool is_numbers(const struct protobody_field *f)
{
    return f->how == PROTOBODY_INTS || f->how == PROTOBODY_LONGS;
}

static int wrong_wire(const struct protobody_piece *p, const char *name, struct error *err)
{
    return error_set(err, ERROR_INVALID, "proto: wrong wireType = %u for field %s", p->wire, name);
}

static int scan(const struct protobody_field *table, struct protobody_span m,
                struct place places[PROTOBODY_MAX_FIELDS], struct error *err)
{
    for (size_t i = 0; i < PROTOBODY_MAX_FIELDS; i++)
        places[i] = (struct place){NULL, NULL, 0};
    while (m.n > 0) {
        struct protobody_piece p = {0};
        const char *from = m.at;
        if (protobody_wire_piece(&m, &p, err) < 0)
            return -1;
        size_t i = 0;
        while (table[i].number != 0 && table[i].number != p.number)
            i++;
        if (table[i].number == 0)
            continue;
        unsigned wanted = is_number(&table[i]) ? PROTOBODY_WIRE_VARINT : PROTOBODY_WIRE_BYTES;
        if (p.wire != wanted && !(is_numbers(&table[i]) && p.wire == PROTOBODY_WIRE_VARINT))
            return wrong_wire(&p, table[i].name ? table[i].name : "inline", err);
        if (places[i].count++ == 0)
            places[i].from = from;
        places[i].to = m.at;
    }
    return 0;
}

/* The next occurrence of a field that scan() has seen. */
static int next_of(struct protobody_span *s, uint32_t number, struct protobody_piece *out,
                   struct error *err)
{
    do {
        if (protobody_wire_piece(s, out, err) < 0)
            return -1;
    } while (out->number != number);
    return 0;
}

/* The last value of a field; of a message all of them, merged. merged: keeps the bytes if there are
 * several. */
static int read_whole(const struct protobody_field *f, struct protobody_span range, size_t count,
                      struct strbuf *merged, struct protobody_piece *out, struct error *err)
{
    bool is_message = f->of || (f->how >= PROTOBODY_TIME && f->how <= PROTOBODY_JSON);
    for (size_t i = 0; i < count; i++) {
        if (next_of(&range, f->number, out, err) < 0)
            return -1;
        if (is_message && count > 1)
            strbuf_add(merged, out->bytes.at, out->bytes.n);
    }
    if (is_message && count > 1)
        out->bytes = (struct protobody_span){strbuf_str(merged), merged->len};
    return 0;
}

static int write_members(struct json_writer *w, const struct protobody_field *table,
                         struct protobody_span m, struct error *err);

static int put_message(struct json_writer *w, const struct protobody_field *table,
                       struct protobody_span m, struct error *err)
{
    json_object_begin(w);
    if (write_members(w, table, m, err) < 0)
        return -1;
    json_object_end(w);
    return 0;
}

static int64_t integer_of(const struct protobody_field *f, uint64_t value)
{
    bool is_long =
        f->how == PROTOBODY_LONG || f->how == PROTOBODY_LONG0 || f->how == PROTOBODY_LONGS;
    return is_long ? (int64_t)value : (int32_t)(uint32_t)value;
}

/* Numbers come one by one, or packed in one field. */
static int put_numbers(struct json_writer *w, const struct protobody_field *f,
                       const struct protobody_piece *p, struct error *err)
{
    struct protobody_span s = p->bytes;
    if (p->wire == PROTOBODY_WIRE_VARINT)
        json_put_int(w, integer_of(f, p->value));
    while (p->wire == PROTOBODY_WIRE_BYTES && s.n > 0) {
        uint64_t value = 0;
        if (protobody_wire_varint(&s, &value, err) < 0)
            return -1;
        json_put_int(w, integer_of(f, value));
    }
    return 0;
}

static int write_list(struct json_writer *w, const struct protobody_field *f,
                      struct protobody_span range, size_t count, struct error *err)
{
    int rc = 0;
    json_key(w, f->name);
    json_array_begin(w);
    for (size_t i = 0; i < count && rc == 0; i++) {
        struct protobody_piece p = {0};
        rc = next_of(&range, f->number, &p, err);
        if (rc == 0 && f->of)
            rc = put_message(w, f->of, p.bytes, err);
        else if (rc == 0 && f->how == PROTOBODY_STRS)
            json_put_str_n(w, p.bytes.at, p.bytes.n);
        else if (rc == 0)
            rc = put_numbers(w, f, &p, err);
    }
    if (rc == 0)
        json_array_end(w);
    return rc;
}

static void write_scalar(struct json_writer *w, const struct protobody_field *f,
                         const struct protobody_piece *p)
{
    bool is_zero = is_number(f) ? p->value == 0 : p->bytes.n == 0;
    if (is_zero && f->how <= PROTOBODY_BOOL)
        return;
    json_key(w, f->name);
    if (!is_number(f))
        json_put_str_n(w, p->bytes.at, p->bytes.n);
    else if (f->how == PROTOBODY_BOOL || f->how == PROTOBODY_BOOL0)
        json_put_bool(w, p->value != 0);
    else
        json_put_int(w, integer_of(f, p->value));
}

static int write_one(struct json_writer *w, const struct protobody_field *f,
                     struct protobody_span range, size_t count, struct error *err)
{
    struct protobody_piece p = {0};
    AUTO_STRBUF merged;
    strbuf_init(&merged);
    if (read_whole(f, range, count, &merged, &p, err) < 0)
        return -1;
    switch ((enum protobody_how)f->how) {
    case PROTOBODY_INLINE:
        return write_members(w, f->of, p.bytes, err);
    case PROTOBODY_TIME:
    case PROTOBODY_MICRO:
        return write_time(w, f->name, strlen(f->name), p.bytes, f->how == PROTOBODY_MICRO, err);
    case PROTOBODY_MSG:
        json_key(w, f->name);
        return put_message(w, f->of, p.bytes, err);
    case PROTOBODY_AMOUNT:
        json_key(w, f->name);
        return put_amount(w, p.bytes, err);
    case PROTOBODY_PORT:
        json_key(w, f->name);
        return put_port(w, p.bytes, err);
    case PROTOBODY_JSON:
        json_key(w, f->name);
        return put_json(w, p.bytes, err);
    default:
        write_scalar(w, f, &p);
        return 0;
    }
}

static int write_field(struct json_writer *w, const struct protobody_field *f,
                       const struct place *at, struct error *err)
{
    struct protobody_span range = {at->from, (size_t)(at->to - at->from)};
    switch ((enum protobody_how)f->how) {
    case PROTOBODY_STRS:
    case PROTOBODY_INTS:
    case PROTOBODY_LONGS:
    case PROTOBODY_LIST:
        return write_list(w, f, range, at->count, err);
    case PROTOBODY_MAP_STR:
    case PROTOBODY_MAP_BYTES:
    case PROTOBODY_MAP_AMOUNT:
    case PROTOBODY_MAP_TIME:
        return write_map(w, f, range, at->count, err);
    default:
        return write_one(w, f, range, at->count, err);
    }
}

/* The message's members, into the object that is open. */
static int write_members(struct json_writer *w, const struct protobody_field *table,
                         struct protobody_span m, struct error *err)
{
    struct place places[PROTOBODY_MAX_FIELDS];
    if (scan(table, m, places, err) < 0)
        return -1;
    for (size_t i = 0; table[i].number != 0; i++) {
        if (places[i].count == 0)
            continue;
        if (write_field(w, &table[i], &places[i], err) < 0)
            return table[i].name ? error_wrap(err, "%s", table[i].name) : -1;
        if (w->out->len > PROTOBODY_MAX_JSON)
            return error_set(err, ERROR_TOO_LARGE, "more than %d bytes as JSON",
                             PROTOBODY_MAX_JSON);
    }
    return 0;
}

/* ---- the envelope ---- */

static bool span_is(struct protobody_span s, const char *text)
{
    return s.n == strlen(text) && memcmp(s.at, text, s.n) == 0;
}

static const struct protobody_kind *find_kind(struct protobody_span api_version,
                                              struct protobody_span kind)
{
    for (const struct protobody_kind *k = protobody_kinds; k->kind; k++)
        if (span_is(kind, k->kind) && (!k->api_version || span_is(api_version, k->api_version)))
            return k;
    return NULL;
}

int protobody_to_json(const char *bytes, size_t n, struct strbuf *out, struct error *err)
{
    struct protobody_piece unknown[PROTOBODY_FEW + 1];
    struct protobody_piece type[PROTOBODY_FEW + 1];
    struct json_writer w;
    if (n == 0)
        return error_set(err, ERROR_INVALID, "empty data");
    if (n < sizeof magic || memcmp(bytes, magic, sizeof magic) != 0)
        return error_set(err, ERROR_INVALID,
                         "provided data does not appear to be a protobuf message, expected prefix "
                         "[107 56 115 0]");
    if (n == sizeof magic)
        return error_set(err, ERROR_INVALID, "empty body");
    struct protobody_span rest = {bytes + sizeof magic, n - sizeof magic};
    if (protobody_wire_few(rest, "2222", unknown, err) < 0 ||
        protobody_wire_few(unknown[1].bytes, "22", type, err) < 0)
        return -1;
    struct protobody_span api_version = type[1].bytes;
    struct protobody_span kind = type[2].bytes;
    if (kind.n == 0)
        return error_set(err, ERROR_INVALID, "Object 'Kind' is missing");
    const struct protobody_kind *k = find_kind(api_version, kind);
    if (!k)
        return error_set(err, ERROR_UNSUPPORTED,
                         "kind %.*s of %.*s is not read in its protobuf form",
                         (int)num_min((int64_t)kind.n, 100), kind.at,
                         (int)num_min((int64_t)api_version.n, 100), api_version.at);
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_key(&w, "apiVersion");
    json_put_str_n(&w, api_version.at, api_version.n);
    json_kv_str(&w, "kind", k->kind);
    if (write_members(&w, k->fields, unknown[2].bytes, err) < 0)
        return -1;
    json_object_end(&w);
    return 0;
}
