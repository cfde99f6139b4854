// SPDX-License-Identifier: Apache-2.0
/*
 * discovery_internal - what discovery's files share: walking the table by group and version, and
 * the OpenAPI documents.
 */
#pragma once

#include "lib/base/str.h"
#include "test/local/kinds/kinds.h"

/* The first kind of each group and version speaks for it: they lie together in the table. */
static inline bool discovery_begins_version(size_t i)
{
    return i == 0 || !str_eq(kinds_all[i]->api_version, kinds_all[i - 1]->api_version);
}

static inline bool discovery_same_version(const struct kind *a, const struct kind *b)
{
    return b && str_eq(a->api_version, b->api_version);
}

/* "api/v1", "apis/apps/v1" */
static inline void discovery_add_prefix(struct strbuf *b, const struct kind *k)
{
    strbuf_addf(b, "%s/%s", *k->group ? "apis" : "api", k->api_version);
}

/* discovery_openapi.c: v2, as protobuf; v3's list of documents, and the one of the version that
 * begins there. */
void discovery_openapi_v2(struct strbuf *out);
void discovery_openapi_index(struct strbuf *out);
void discovery_openapi_version(size_t first, struct strbuf *out);
