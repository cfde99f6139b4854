// SPDX-License-Identifier: Apache-2.0
/*
 * kinds_spec - PodSpec, which pods have and templates too: its defaults and its rules.
 */
#pragma once

#include "test/local/kinds/kinds_check.h"
#include "test/local/patch/jsonnode.h"

void kinds_spec_defaults(struct jsontree *t, struct jsonnode *spec);
/* at: "spec", "spec.template.spec". spec may be NULL. */
void kinds_spec_check(struct kinds_check *c, const char *at, struct jsonnode *spec);
