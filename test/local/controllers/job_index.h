// SPDX-License-Identifier: Apache-2.0
/*
 * job_index - completion indexes of Indexed Jobs: which are done, which are taken. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/str.h"
#include "test/local/patch/jsonnode.h"

struct job_index {
    int64_t n;
    unsigned char *marks; /* DONE, TAKEN */
};
enum { JOB_INDEX_MAX = 100000 };

/* done: "0,2-5", or NULL. What is not understood is not done. */
void job_index_init(struct job_index *x, int64_t completions, const char *done);
void job_index_deinit(struct job_index *x);
/* true: it was not done yet. */
bool job_index_add(struct job_index *x, int64_t i);
void job_index_take(struct job_index *x, int64_t i);
/* Takes the first index that is neither done nor taken; -1: none. */
int64_t job_index_free(struct job_index *x);
void job_index_print(const struct job_index *x, struct strbuf *out);
/* Annotation, label, hostname and environment of a pod with that index. */
void job_index_mark(struct jsontree *t, struct jsonnode *pod, const char *job, int64_t i);
