// SPDX-License-Identifier: Apache-2.0
/*
 * protobody_wire - fields of a protobuf message, one after the other, each checked against what is
 * left of its message. Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"

enum {
    PROTOBODY_WIRE_VARINT = 0,
    PROTOBODY_WIRE_64 = 1,
    PROTOBODY_WIRE_BYTES = 2,
    PROTOBODY_WIRE_GROUP = 3,
    PROTOBODY_WIRE_GROUP_END = 4,
    PROTOBODY_WIRE_32 = 5
};

struct protobody_span {
    const char *at;
    size_t n;
};

/* One field of a message. */
struct protobody_piece {
    uint32_t number; /* 0: none */
    unsigned wire;
    uint64_t value;              /* VARINT */
    struct protobody_span bytes; /* BYTES */
};

int protobody_wire_varint(struct protobody_span *s, uint64_t *out, struct error *err);
/* The next field, whole; s is behind it. A group (an old form, which nothing in Kubernetes uses) is
 * read over, with the groups in it. */
int protobody_wire_piece(struct protobody_span *s, struct protobody_piece *out, struct error *err);

enum { PROTOBODY_FEW = 4 };
/* A message of at most PROTOBODY_FEW fields, numbered from 1: out[N] is the last one with number N,
 * or zero and empty. wires: their wire types, one digit each; another one is an error. */
int protobody_wire_few(struct protobody_span m, const char *wires,
                       struct protobody_piece out[PROTOBODY_FEW + 1], struct error *err);
