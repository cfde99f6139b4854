// SPDX-License-Identifier: Apache-2.0
/*
 * typed - JSON against the types of its kind, as Go's decoder in an API server takes it, and in its
 * words. Pure.
 *
 * What an API server stores is not what it was sent, but what its types could hold of it: a member
 * that the type does not have is gone, null is absent, an empty list or map is absent, and a text
 * where a number belongs is refused. So here.
 */
#pragma once

#include "lib/base/error.h"
#include "lib/base/jsontree.h"
#include "lib/base/vec.h"

enum { TYPED_NOTES_MAX = 100 };

/* What a strict decoder refuses and a lenient one warns of: `unknown field "spec.x"`, `duplicate
 * field "data.a"`. Owned texts. */
struct typed_notes VEC(char *);
void typed_notes_deinit(struct typed_notes *n);

/* Are there types for it? Custom kinds, and some that nobody here writes, have none. */
bool typed_knows(const char *api_version, const char *kind);
/* Brings the object into the form in which it is stored. notes may be NULL. A value of the wrong
 * type is ERROR_INVALID with Go's sentence (`json: cannot unmarshal string into Go struct field
 * PodSpec.spec.volumes of type []v1.Volume`), and the tree is half changed. A kind without types:
 * 0, untouched. */
int typed_decode(struct jsontree *t, const char *api_version, const char *kind,
                 struct typed_notes *notes, struct error *err);
