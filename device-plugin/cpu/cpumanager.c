// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/cpu/cpumanager.h"

#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/base/str.h"

enum { STATE_BYTES_MAX = 4 * 1024 * 1024 };

bool cpumanager_is_static(const char *path)
{
    AUTO_STRBUF text;
    AUTO_JSON *doc = NULL;
    strbuf_init(&text);
    return file_read(path, STATE_BYTES_MAX, &text, NULL) == 0 &&
           json_parse(&doc, strbuf_str(&text), text.len, NULL) == 0 &&
           str_eq(json_get_str(json_root(doc), "policyName"), "static");
}
