// SPDX-License-Identifier: Apache-2.0
/* dump_parts - parts of Kubernetes objects as JSON, shared by the dump_* files. Pure. Empty fields
 * and Kubernetes' defaults are left out, unless noted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/json.h"
#include "lib/model/pod.h"
#include "lib/model/resources.h"
#include "lib/model/selector.h"

/* Key and the opening bracket. */
void dump_parts_object(struct json_writer *w, const char *key);
void dump_parts_array(struct json_writer *w, const char *key);

void dump_parts_text(struct json_writer *w, const char *key, const char *text);
void dump_parts_true(struct json_writer *w, const char *key, bool b);
void dump_parts_strings(struct json_writer *w, const char *key, const char *const *list,
                        size_t len);
/* RFC 3339, always printed. */
void dump_parts_time(struct json_writer *w, const char *key, int64_t ns);
/* The model knows that deletion was requested, but not when. */
void dump_parts_terminating(struct json_writer *w, bool terminating);
void dump_parts_labels(struct json_writer *w, const char *key, const struct labels *l);
/* Only those that the scheduler reads: others may hold anything (kubectl's
 * last-applied-configuration has the whole manifest with its environment). */
void dump_parts_annotations(struct json_writer *w, const struct labels *l);

bool dump_parts_is_none(const struct resources *r);
void dump_parts_resources(struct json_writer *w, const char *key, const struct resources *r);
void dump_parts_resources_even_none(struct json_writer *w, const char *key,
                                    const struct resources *r);
/* Always printed. */
void dump_parts_bytes(struct json_writer *w, const char *key, int64_t bytes);

const char *dump_parts_effect(enum taint_effect e);
/* A LabelSelector; prints nothing if it selects nothing, {} if it selects everything. */
void dump_parts_selector(struct json_writer *w, const char *key, const struct selector *s);
void dump_parts_node_term(struct json_writer *w, const struct node_term *t);
void dump_parts_node_selector(struct json_writer *w, const char *key,
                              const struct node_selector *s);
