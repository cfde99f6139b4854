// SPDX-License-Identifier: Apache-2.0
/*
 * decode_kit - rows of JSON for decoder tests, written with ' for ".
 */
#pragma once

#include "test/unit/lib/base/expect.h"

#include "lib/base/json.h"
#include "lib/base/str.h"
#include "lib/kube/decode.h"

static inline struct json_doc *decode_kit_parse(const char *text)
{
    struct json_doc *doc = NULL;
    struct error err = ERROR_INIT;
    char *copy = strdup(text);
    for (char *p = copy; *p; p++)
        if (*p == '\'')
            *p = '"';
    if (json_parse(&doc, copy, strlen(copy), &err) < 0)
        fail_msg("%s: %s", err.text, text);
    free(copy);
    return doc;
}

static inline struct pod *decode_kit_pod(const char *text)
{
    struct pod *p = NULL;
    struct error err = ERROR_INIT;
    AUTO_JSON *doc = decode_kit_parse(text);
    if (decode_pod(json_root(doc), &p, &err) < 0)
        fail_msg("%s", err.text);
    return p;
}

/* The row may be placed (says NULL), or may not, with these words. It decodes in any case. */
static inline void decode_kit_pod_row(const char *text, const char *says)
{
    struct pod *p = NULL;
    AUTO_JSON *doc = decode_kit_parse(text);
    expect_int(text, 0, decode_pod(json_root(doc), &p, NULL));
    expect_str(text, says, p->unplaceable);
    pod_free(p);
}
