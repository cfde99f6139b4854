// SPDX-License-Identifier: Apache-2.0
/*
 * protobody_wire - every length is checked against the rest of the message first; nothing here
 * recurses or allocates.
 */
#include "test/local/kinds/protobody_wire.h"

#include <string.h>

static int cut_off(struct error *err)
{
    return error_set(err, ERROR_INVALID, "unexpected EOF");
}

int protobody_wire_varint(struct protobody_span *s, uint64_t *out, struct error *err)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (s->n == 0)
            return cut_off(err);
        unsigned char byte = (unsigned char)*s->at;
        s->at++;
        s->n--;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = value;
            return 0;
        }
    }
    return error_set(err, ERROR_INVALID, "proto: integer overflow");
}

static int read_bytes(struct protobody_span *s, uint64_t n, struct protobody_span *out,
                      struct error *err)
{
    if (n > s->n)
        return cut_off(err);
    *out = (struct protobody_span){s->at, (size_t)n};
    s->at += n;
    s->n -= (size_t)n;
    return 0;
}

static int read_tag(struct protobody_span *s, struct protobody_piece *out, struct error *err)
{
    uint64_t tag = 0;
    if (protobody_wire_varint(s, &tag, err) < 0)
        return -1;
    if (tag >> 3 == 0 || tag >> 3 > INT32_MAX)
        return error_set(err, ERROR_INVALID, "proto: illegal tag %llu",
                         (unsigned long long)(tag >> 3));
    *out = (struct protobody_piece){.number = (uint32_t)(tag >> 3), .wire = (unsigned)(tag & 7)};
    return 0;
}

static int read_value(struct protobody_span *s, struct protobody_piece *p, struct error *err)
{
    uint64_t n = 0;
    switch (p->wire) {
    case PROTOBODY_WIRE_VARINT:
        return protobody_wire_varint(s, &p->value, err);
    case PROTOBODY_WIRE_64:
        return read_bytes(s, 8, &p->bytes, err);
    case PROTOBODY_WIRE_32:
        return read_bytes(s, 4, &p->bytes, err);
    case PROTOBODY_WIRE_BYTES:
        return protobody_wire_varint(s, &n, err) < 0 ? -1 : read_bytes(s, n, &p->bytes, err);
    default:
        return error_set(err, ERROR_INVALID, "proto: illegal wireType %u", p->wire);
    }
}

int protobody_wire_piece(struct protobody_span *s, struct protobody_piece *out, struct error *err)
{
    struct protobody_piece inside = {0};
    if (read_tag(s, out, err) < 0)
        return -1;
    if (out->wire != PROTOBODY_WIRE_GROUP)
        return read_value(s, out, err);
    for (size_t depth = 1; depth > 0;) {
        if (read_tag(s, &inside, err) < 0)
            return -1;
        if (inside.wire == PROTOBODY_WIRE_GROUP)
            depth++;
        else if (inside.wire == PROTOBODY_WIRE_GROUP_END)
            depth--;
        else if (read_value(s, &inside, err) < 0)
            return -1;
    }
    return 0;
}

int protobody_wire_few(struct protobody_span m, const char *wires,
                       struct protobody_piece out[PROTOBODY_FEW + 1], struct error *err)
{
    size_t n = strlen(wires);
    for (size_t i = 0; i <= PROTOBODY_FEW; i++)
        out[i] = (struct protobody_piece){.bytes = {"", 0}};
    while (m.n > 0) {
        struct protobody_piece p = {0};
        if (protobody_wire_piece(&m, &p, err) < 0)
            return -1;
        if (p.number > n)
            continue;
        if (p.wire != (unsigned)(wires[p.number - 1] - '0'))
            return error_set(err, ERROR_INVALID, "proto: wrong wireType = %u for field %u", p.wire,
                             p.number);
        out[p.number] = p;
    }
    return 0;
}
