// SPDX-License-Identifier: Apache-2.0
/*
 * kinds_check - rules of objects, in the sentences of Kubernetes: each finding is `path: what is
 * wrong`, several are `[one, two]`, and clients and tests read them, so the words are the real
 * server's.
 *
 * A value that Kubernetes cannot even decode (a list where text belongs, "4x" as an amount) is
 * another matter there, a 400 instead of a 422, and goes first: kinds_check_undecodable.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"
#include "test/local/patch/jsonnode.h"

struct kinds_check {
    struct strbuf text;
    size_t count;
    struct strbuf undecodable; /* the first of them; empty: none */
};
/* Reports what was found, and releases. 0: nothing was. */
int kinds_check_done(struct kinds_check *c, struct jsonnode *object, struct error *err);

void kinds_check_add(struct kinds_check *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* detail may be NULL. */
void kinds_check_required(struct kinds_check *c, const char *at, const char *detail);
void kinds_check_invalid(struct kinds_check *c, const char *at, const char *value,
                         const char *detail);
void kinds_check_invalid_node(struct kinds_check *c, const char *at, struct jsonnode *value,
                              const char *detail);
void kinds_check_duplicate(struct kinds_check *c, const char *at, const char *value);
void kinds_check_forbidden(struct kinds_check *c, const char *at, const char *detail);
/* allowed: NULL-terminated. absent is legal. */
void kinds_check_one_of(struct kinds_check *c, const char *at, struct jsonnode *value,
                        const char *const *allowed);
/* An integer of at least min, when it is there. */
void kinds_check_at_least(struct kinds_check *c, const char *at, struct jsonnode *value,
                          int64_t min);
void kinds_check_undecodable(struct kinds_check *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* A map of texts that holds something else is undecodable. field: "ConfigMap.data". */
void kinds_check_texts(struct kinds_check *c, const char *field, struct jsonnode *map);

/* Names. */
void kinds_check_label_name(struct kinds_check *c, const char *at, const char *s);
void kinds_check_subdomain_name(struct kinds_check *c, const char *at, const char *s);
void kinds_check_qualified(struct kinds_check *c, const char *at, const char *s);
void kinds_check_label_value(struct kinds_check *c, const char *at, const char *s);
void kinds_check_labels(struct kinds_check *c, const char *at, struct jsonnode *labels);
enum kinds_name_rule { KINDS_NAME_SUBDOMAIN, KINDS_NAME_LABEL, KINDS_NAME_SEGMENT };
/* One of Kubernetes' own finalizers, or a name with a domain. */
void kinds_check_finalizer(struct kinds_check *c, const char *at, const char *name);
/* metadata.name, labels, annotations, owners, finalizers. */
void kinds_check_metadata(struct kinds_check *c, struct jsonnode *object,
                          enum kinds_name_rule rule);
/* A LabelSelector's keys, operators and values. */
void kinds_check_selector(struct kinds_check *c, const char *at, struct jsonnode *selector);
/* Does a LabelSelector select these labels? A selector of nothing does not. */
bool kinds_check_selects(struct jsonnode *selector, struct jsonnode *labels);
