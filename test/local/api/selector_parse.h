// SPDX-License-Identifier: Apache-2.0
/* selector_parse - the query form of a label selector, as kubectl -l sends it. */
#pragma once

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/model/selector.h"

enum { SELECTOR_TEXT_MAX = 64 * 1024 };
/* "a=b,c==d,e!=f,g in (x,y),h notin (z),i,!j,k>5,l<9", with optional blanks. "" selects
 * everything. */
int selector_parse(const char *text, struct arena *a, struct selector *out, struct error *err);
