// SPDX-License-Identifier: Apache-2.0
/*
 * patch - the four ways to change an object by a patch. Pure.
 */
#pragma once

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "test/local/patch/jsonnode.h"

/* RFC 6902: add, remove, replace, move, copy, test. A failed test is ERROR_INVALID (422). All or
 * nothing: on error the tree may be half changed and is thrown away. */
int patch_json(struct jsontree *t, json *patch, struct error *err);
/* RFC 7386. */
int patch_merge(struct jsontree *t, json *patch, struct error *err);
/* Strategic merge for core types: lists merge by key as Kubernetes' types say (containers by name,
 * conditions by type, ports, env, volumes, tolerations atomic, ...), $patch delete|replace|merge,
 * $deleteFromPrimitiveList, $setElementOrder, $retainKeys. kind decides the types: "Pod". */
int patch_strategic(struct jsontree *t, const char *kind, json *patch, struct error *err);
/* Server-side apply for simple cases: what the patch names is set, lists merge by the same keys;
 * what this manager set last time and does not name now is removed (remembered in
 * metadata.managedFields of that manager). Another manager's field with another value is
 * ERROR_CONFLICT (409) unless force. */
int patch_apply(struct jsontree *t, const char *kind, json *patch, const char *manager, bool force,
                struct error *err);
