// SPDX-License-Identifier: Apache-2.0
/*
 * replay_documents - files as JSON documents: JSON is one, YAML may be several. They stay in
 * memory, so that readers may keep what they found there until everything else was read.
 */
#pragma once

#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/base/vec.h"

struct replay_documents {
    size_t max_bytes; /* of one file */
    struct VEC(struct replay_document {
        struct json_doc *doc;
        char *text; /* that doc points into, or NULL */
    }) all;
};

void replay_documents_deinit(struct replay_documents *d);
/* path "-" is standard input. fn is called with each document and where it is ("FILE", or
 * "FILE: document 2"), which is only borrowed. -1: the file as a whole is of no use. */
int replay_documents_read(struct replay_documents *d, const char *path,
                          void (*fn)(void *arg, json *root, const char *where), void *arg,
                          struct error *err);
