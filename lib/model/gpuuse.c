// SPDX-License-Identifier: Apache-2.0
#include "lib/model/gpuuse.h"

#include <string.h>

#include "lib/base/json.h"
#include "lib/model/names.h"

void gpuuse_print(const struct gpuuse *u, struct strbuf *out)
{
    struct json_writer w;
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_kv_int(&w, "mib", u->mib);
    json_kv_int(&w, "processes", u->processes);
    json_object_end(&w);
}

static int read_count(json *j, const char *key, int64_t *out, struct error *err)
{
    if (!json_get_int(j, key, out) || *out < 0)
        return error_set(err, ERROR_INVALID,
                         NAME_ANN_GPU_USED ": %s: must be an integer of at least 0", key);
    return 0;
}

int gpuuse_read(const struct pod *p, struct gpuuse *out, struct error *err)
{
    const char *text = labels_get(&p->annotations, NAME_ANN_GPU_USED);
    AUTO_JSON *doc = NULL;
    *out = (struct gpuuse){0};
    if (text == NULL || text[0] == '\0')
        return 0;
    size_t n = strlen(text);
    if (n > GPUUSE_BYTES_MAX)
        return error_set(err, ERROR_TOO_LARGE, NAME_ANN_GPU_USED ": longer than %d bytes",
                         GPUUSE_BYTES_MAX);
    if (json_parse(&doc, text, n, err) < 0)
        return error_wrap(err, NAME_ANN_GPU_USED);
    struct gpuuse u;
    if (read_count(json_root(doc), "mib", &u.mib, err) < 0 ||
        read_count(json_root(doc), "processes", &u.processes, err) < 0)
        return -1;
    *out = u;
    return 1;
}
