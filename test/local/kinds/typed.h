// SPDX-License-Identifier: Apache-2.0
/*
 * typed - JSON against the types of its kind, as Go's decoder in an API server takes it, and in its
 * words. Pure.
 *
 * As in an API server, the stored object is what the types can hold: members that the type does not
 * have are dropped, null and empty lists and maps are absent, and a string in place of a number is
 * refused.
 */
#pragma once

#include "lib/base/error.h"
#include "lib/base/vec.h"
#include "test/local/patch/jsonnode.h"

enum { TYPED_NOTES_MAX = 100 };

/* What a strict decoder refuses and a lenient one warns of: `unknown field "spec.x"`, `duplicate
 * field "data.a"`. Owned texts. */
struct typed_notes VEC(char *);
void typed_notes_deinit(struct typed_notes *n);

/* Whether it has types. Custom kinds have none, nor some that no client here writes. */
bool typed_knows(const char *api_version, const char *kind);
/* Brings the object into the form in which it is stored. notes may be NULL. A value of the wrong
 * type is ERROR_INVALID with Go's sentence (`json: cannot unmarshal string into Go struct field
 * PodSpec.spec.volumes of type []v1.Volume`), and the tree is half changed. A kind without types:
 * 0, untouched. */
int typed_decode(struct jsontree *t, const char *api_version, const char *kind,
                 struct typed_notes *notes, struct error *err);
