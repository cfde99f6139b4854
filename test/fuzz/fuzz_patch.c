// SPDX-License-Identifier: Apache-2.0
/*
 * An object and a patch, one per line, through each of the four patches, in two kinds: whatever
 * comes, what is left is a tree that prints as JSON which parses again; a refusal has an HTTP
 * status; a merge patch twice is the same as once.
 */
#include "test/fuzz/fuzz_kit.h"
#include "test/local/patch/patch.h"

static void print(struct jsontree *t, struct strbuf *out)
{
    AUTO_JSON *doc = NULL;
    strbuf_reset(out);
    jsontree_print(t, out);
    must(json_parse(&doc, strbuf_str(out), out->len, NULL) == 0);
}

static void try_patch(const char *object, size_t n, json *patch, int which)
{
    AUTO_JSONTREE *t = NULL;
    AUTO_STRBUF first;
    AUTO_STRBUF second;
    struct error err = ERROR_INIT;
    const char *kind = which % 2 ? "Pod" : NULL;
    int rc = 0;
    strbuf_init(&first);
    strbuf_init(&second);
    if (jsontree_parse(&t, object, n, NULL) < 0)
        return;
    switch (which / 2) {
    case 0:
        rc = patch_json(t, patch, &err);
        break;
    case 1:
        rc = patch_merge(t, patch, &err);
        break;
    case 2:
        rc = patch_strategic(t, kind, patch, &err);
        break;
    default:
        rc = patch_apply(t, kind, patch, "m", true, &err);
        break;
    }
    must(rc == 0 || (err.http_status >= 400 && err.text[0] != '\0'));
    print(t, &first);
    if (rc == 0 && which / 2 == 1) {
        must(patch_merge(t, patch, &err) == 0);
        print(t, &second);
        must(strcmp(strbuf_str(&first), strbuf_str(&second)) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *line = size > 0 ? memchr(text, '\n', size) : NULL;
    AUTO_JSON *patch = NULL;
    if (!line)
        return 0;
    size_t n = (size_t)(line - text);
    if (json_parse(&patch, line + 1, size - n - 1, NULL) < 0)
        return 0;
    for (int which = 0; which < 8; which++)
        try_patch(text, n, json_root(patch), which);
    return 0;
}
