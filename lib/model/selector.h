// SPDX-License-Identifier: Apache-2.0
/* selector - labels, label selectors (matchLabels, matchExpressions) and node selectors (terms of
 * matchExpressions and matchFields). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/base/str.h"

struct label {
    const char *key;
    const char *value;
};

/* Sorted by key. Annotations have the same shape. */
struct labels {
    struct label *items;
    size_t len;
};

const char *labels_get(const struct labels *l, const char *key); /* or NULL */
void labels_sort(struct labels *l);
/* A JSON object of strings (NULL and null are empty). A member that is not a string, or holds a
 * NUL, and a duplicate key are errors that name the key; *out then has all others (of duplicates
 * the last). `longest` gives the most bytes of a key's value, 0: the key is left out and nothing is
 * said about it; NULL: all of everything. A longer value is cut, at a character. Borrows nothing
 * from j. */
int labels_decode(json *j, struct arena *a, struct labels *out, struct error *err);
int labels_decode_some(json *j, size_t (*longest)(const char *key), struct arena *a,
                       struct labels *out, struct error *err);
/* A deep copy in the arena. */
struct labels labels_copy(const struct labels *from, struct arena *a);

enum selector_op {
    SELECTOR_IN,
    SELECTOR_NOT_IN,
    SELECTOR_EXISTS,
    SELECTOR_NOT_EXISTS,
    SELECTOR_GT,
    SELECTOR_LT
};

struct requirement {
    const char *key;
    enum selector_op op;
    const char **values;
    size_t values_len;
    int64_t number; /* Gt, Lt */
};

/* All requirements must hold. nothing: a nil LabelSelector, which selects nothing; an empty one
 * selects everything. */
struct selector {
    struct requirement *reqs;
    size_t len;
    bool nothing;
};

/* LabelSelector {matchLabels, matchExpressions: In NotIn Exists DoesNotExist}; j NULL or null
 * selects nothing. Errors have the path: "matchExpressions[0].operator: unknown operator 'in'". */
int selector_decode(json *j, struct arena *a, struct selector *out, struct error *err);
/* NotIn and DoesNotExist hold when the key is absent. Gt and Lt need an integer label value. */
bool selector_matches(const struct selector *s, const struct labels *l);

/* Canonical text, independent of order: "a in (x,y),!b"; "<nothing>" for a nil selector, "" for one
 * that selects everything. */
void selector_print(const struct selector *s, struct strbuf *out);
/* Adds a requirement with one value (NULL for Exists and DoesNotExist). key and value are borrowed
 * and must live as long as a. */
void selector_add(struct selector *s, const char *key, enum selector_op op, const char *value,
                  struct arena *a);

/* Whether Kubernetes allows it as a label's key ([prefix/]name) or value. */
bool selector_key_is_legal(const char *key);
bool selector_value_is_legal(const char *value);

struct node_term {
    struct selector labels;
    struct selector fields; /* metadata.name only; another makes the term invalid */
    /* why it can never match (Gt with "abc", a NUL in a value: the API server accepts these), or
     * NULL */
    const char *invalid;
};

/* Terms are ORed; a term with neither expressions nor fields matches nothing; no terms match
 * nothing. */
struct node_selector {
    struct node_term *terms;
    size_t len;
};

/* One NodeSelectorTerm: In NotIn Exists DoesNotExist Gt Lt. What cannot be read makes the term
 * invalid. */
void node_term_decode(json *j, struct arena *a, struct node_term *out);
int node_selector_decode(json *j, struct arena *a, struct node_selector *out, struct error *err);
bool node_term_matches(const struct node_term *t, const struct labels *node_labels,
                       const char *node_name);
bool node_selector_matches(const struct node_selector *s, const struct labels *node_labels,
                           const char *node_name);
