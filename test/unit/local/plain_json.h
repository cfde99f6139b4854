// SPDX-License-Identifier: Apache-2.0
/*
 * plain_json - JSON and sentences in C strings without backslashes: ' stands for ", and ~ for '.
 */
#pragma once

#include "test/local/patch/jsonnode.h"
#include "test/unit/lib/base/expect.h"

static inline void plain_json(const char *text, struct strbuf *out)
{
    for (; *text; text++)
        strbuf_addc(out, *text == '\'' ? '"' : *text == '~' ? '\'' : *text);
}

static inline struct jsontree *plain_tree(const char *text)
{
    AUTO_STRBUF b = {0};
    plain_json(text, &b);
    struct error err = ERROR_INIT;
    struct jsontree *t = NULL;
    if (jsontree_parse(&t, strbuf_str(&b), b.len, &err) < 0)
        fail_msg("not JSON: %s: %s", err.text, strbuf_str(&b));
    return t;
}
