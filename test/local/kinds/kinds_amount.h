// SPDX-License-Identifier: Apache-2.0
/*
 * kinds_amount - amounts of resources in objects: read, compared, written as Kubernetes writes them
 * back.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/str.h"
#include "test/local/kinds/kinds_check.h"
#include "test/local/patch/jsonnode.h"

/* A number or a text as Kubernetes writes it after reading it: "0.5" is "500m", "1024Mi" is "1Gi",
 * "1000" is "1k"; false: not an amount. */
bool kinds_amount_canonical(struct jsonnode *amount, struct strbuf *out);
/* Brings every amount of the list into that form; what is none stays for the rules to find. */
void kinds_amount_canonicalize(struct jsontree *t, struct jsonnode *list);
/* Exact comparison in thousandths: -1, 0, 1. What is no amount counts as 0. */
int kinds_amount_compare(struct jsonnode *a, struct jsonnode *b);
bool kinds_amount_is_zero(struct jsonnode *amount);
/* vendor.example/name, which is counted in whole units and whose request is its limit. */
bool kinds_amount_is_extended(const char *resource);
/* It can be decoded, is not negative, and whole where it must be. */
void kinds_amount_check(struct kinds_check *c, const char *at, const char *resource,
                        struct jsonnode *amount);
