// SPDX-License-Identifier: Apache-2.0
/* replay_documents - files as JSON documents: a JSON file is one, YAML may be several. They stay in
 * memory, so that readers may keep pointers into them until everything was read. */
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
/* path "-" is standard input. Calls fn with each document and its location ("FILE", or "FILE:
 * document 2"), which is borrowed. -1: the whole file is unusable. */
int replay_documents_read(struct replay_documents *d, const char *path,
                          void (*fn)(void *arg, json *root, const char *where), void *arg,
                          struct error *err);
