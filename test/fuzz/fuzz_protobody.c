// SPDX-License-Identifier: Apache-2.0
/*
 * Bytes in the place of a protobuf body: whatever comes, either there is a reason, or the text is
 * one JSON object with apiVersion and kind; and the same bytes give the same text.
 */
#include "lib/base/json.h"
#include "test/fuzz/fuzz_kit.h"
#include "test/local/kinds/protobody.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_STRBUF first;
    AUTO_STRBUF second;
    AUTO_JSON *doc = NULL;
    struct error err = ERROR_INIT;
    strbuf_init(&first);
    strbuf_init(&second);
    int rc = protobody_to_json((const char *)data, size, &first, &err);
    if (rc < 0) {
        must(err.text[0] != '\0' && (err.code == ERROR_INVALID || err.code == ERROR_UNSUPPORTED ||
                                     err.code == ERROR_TOO_LARGE));
        return 0;
    }
    must(json_parse(&doc, strbuf_str(&first), first.len, NULL) == 0);
    must(json_get_str(json_root(doc), "kind") &&
         json_is_string(json_get(json_root(doc), "apiVersion")));
    must(protobody_to_json((const char *)data, size, &second, &err) == 0);
    must(first.len == second.len && memcmp(first.ptr, second.ptr, first.len) == 0);
    return 0;
}
