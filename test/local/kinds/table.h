// SPDX-License-Identifier: Apache-2.0
/*
 * table - what `kubectl get` prints: objects as a meta.k8s.io/v1 Table, asked for by Accept:
 * application/json;as=Table;v=v1;g=meta.k8s.io. Columns come from the kind's row.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/str.h"
#include "test/local/kinds/kinds.h"
#include "test/local/store/store.h"

/* Appends a Table with one row per object. list_metadata_json: the object of the list's own
 * metadata, as JSON text ({"resourceVersion":"7"}). include_object: rows carry whole objects,
 * otherwise PartialObjectMetadata. now_ns: for ages. */
void table_print_list(const struct kind *k, struct object *const *objs, size_t n,
                      const char *list_metadata_json, bool include_object, int64_t now_ns,
                      struct strbuf *out);
/* The object of one watch event: a Table with one row; column definitions only when first is true
 * (a stream's first event). */
void table_print_event_object(const struct kind *k, struct object *o, bool include_object,
                              bool first, int64_t now_ns, struct strbuf *out);
