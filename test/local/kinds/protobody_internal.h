// SPDX-License-Identifier: Apache-2.0
/*
 * protobody_internal - what protobody and its tables share; typed.c checks JSON against the same
 * tables. Only these files and tests include it.
 *
 * A message is a list of fields in the order in which they are written, closed by END. A field has
 * its number, its name in JSON, and the way its value is written. The numbers and names are those
 * of Kubernetes 1.36; fields are never renumbered, so older clients are read as well.
 *
 * A Kubernetes message carries every scalar that is no pointer in Go, also when it is zero.
 * encoding/json leaves such a zero out if the field is marked so (STR), and prints it if it is not
 * marked, or is a pointer to a zero (STR0). `replicas: 0` depends on it.
 */
#pragma once

#include <stdint.h>

enum protobody_how {
    PROTOBODY_END,
    PROTOBODY_STR, /* the scalars: dropped when zero */
    PROTOBODY_INT, /* 32 bits */
    PROTOBODY_LONG,
    PROTOBODY_BOOL,
    PROTOBODY_STR0, /* the scalars: written when there */
    PROTOBODY_INT0,
    PROTOBODY_LONG0,
    PROTOBODY_BOOL0,
    PROTOBODY_STRS,
    PROTOBODY_INTS,
    PROTOBODY_LONGS,
    PROTOBODY_MSG,
    PROTOBODY_LIST,   /* of messages */
    PROTOBODY_INLINE, /* a message whose members are members of ours */
    PROTOBODY_TIME,   /* to the second; MICRO: to the microsecond */
    PROTOBODY_MICRO,
    PROTOBODY_AMOUNT, /* a Quantity */
    PROTOBODY_PORT,   /* an IntOrString */
    PROTOBODY_JSON,   /* bytes that are JSON */
    PROTOBODY_MAP_STR,
    PROTOBODY_MAP_BYTES,
    PROTOBODY_MAP_AMOUNT,
    PROTOBODY_MAP_TIME,
};

struct protobody_field {
    uint16_t number;
    uint8_t how;      /* enum protobody_how */
    const char *name; /* in JSON; NULL: INLINE */
    const struct protobody_field *of;
    const char *type; /* the C name of `of`, which Go's is made from; "NULL" without one */
};

enum { PROTOBODY_MAX_FIELDS = 48 }; /* of one message; a test holds the tables to it */

#define END                                         \
    {                                               \
        0, (uint8_t)PROTOBODY_END, NULL, NULL, NULL \
    }
#define PROTOBODY_FIELD(number, how, name, of)          \
    {                                                   \
        number, (uint8_t)PROTOBODY_##how, name, of, #of \
    }
#define STR(number, name) PROTOBODY_FIELD(number, STR, #name, NULL)
#define INT(number, name) PROTOBODY_FIELD(number, INT, #name, NULL)
#define LONG(number, name) PROTOBODY_FIELD(number, LONG, #name, NULL)
#define BOOL(number, name) PROTOBODY_FIELD(number, BOOL, #name, NULL)
#define STR0(number, name) PROTOBODY_FIELD(number, STR0, #name, NULL)
#define INT0(number, name) PROTOBODY_FIELD(number, INT0, #name, NULL)
#define LONG0(number, name) PROTOBODY_FIELD(number, LONG0, #name, NULL)
#define BOOL0(number, name) PROTOBODY_FIELD(number, BOOL0, #name, NULL)
#define STRS(number, name) PROTOBODY_FIELD(number, STRS, #name, NULL)
#define INTS(number, name) PROTOBODY_FIELD(number, INTS, #name, NULL)
#define LONGS(number, name) PROTOBODY_FIELD(number, LONGS, #name, NULL)
#define TIME(number, name) PROTOBODY_FIELD(number, TIME, #name, NULL)
#define MICRO(number, name) PROTOBODY_FIELD(number, MICRO, #name, NULL)
#define AMOUNT(number, name) PROTOBODY_FIELD(number, AMOUNT, #name, NULL)
#define PORT(number, name) PROTOBODY_FIELD(number, PORT, #name, NULL)
#define JSON(number, name) PROTOBODY_FIELD(number, JSON, #name, NULL)
#define MAP_STR(number, name) PROTOBODY_FIELD(number, MAP_STR, #name, NULL)
#define MAP_BYTES(number, name) PROTOBODY_FIELD(number, MAP_BYTES, #name, NULL)
#define MAP_AMOUNT(number, name) PROTOBODY_FIELD(number, MAP_AMOUNT, #name, NULL)
#define MAP_TIME(number, name) PROTOBODY_FIELD(number, MAP_TIME, #name, NULL)
#define MSG(number, name, of) PROTOBODY_FIELD(number, MSG, #name, of)
#define LIST(number, name, of) PROTOBODY_FIELD(number, LIST, #name, of)
#define INLINE(number, of) PROTOBODY_FIELD(number, INLINE, NULL, of)

/* A kind that may stand in the envelope. */
struct protobody_kind {
    const char *api_version; /* NULL: any (DeleteOptions belong to every group) */
    const char *kind;
    const struct protobody_field *fields;
};
extern const struct protobody_kind protobody_kinds[]; /* closed by one without a kind */

/* ---- protobody_core.c ---- */
extern const struct protobody_field protobody_object_meta[];
extern const struct protobody_field protobody_label_selector[];
extern const struct protobody_field protobody_namespace[];
extern const struct protobody_field protobody_config_map[];
extern const struct protobody_field protobody_secret[];
extern const struct protobody_field protobody_service_account[];
extern const struct protobody_field protobody_resource_quota[];
extern const struct protobody_field protobody_limit_range[];
extern const struct protobody_field protobody_service[];
extern const struct protobody_field protobody_core_event[];
extern const struct protobody_field protobody_persistent_volume_claim[];
extern const struct protobody_field protobody_binding[];
extern const struct protobody_field protobody_node[];
extern const struct protobody_field protobody_object_reference[];
extern const struct protobody_field protobody_event_source[];
extern const struct protobody_field protobody_condition[];
extern const struct protobody_field protobody_delete_options[];
/* ---- protobody_pod.c ---- */
extern const struct protobody_field protobody_pod[];
extern const struct protobody_field protobody_pod_spec[];
/* ---- protobody_volumes.c ---- */
extern const struct protobody_field protobody_volume[];
extern const struct protobody_field protobody_local_object_reference[];
extern const struct protobody_field protobody_object_field_selector[];
extern const struct protobody_field protobody_resource_field_selector[];
extern const struct protobody_field protobody_persistent_volume_claim_spec[];
