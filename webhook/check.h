// SPDX-License-Identifier: Apache-2.0
/* check - `cosched-webhook --check FILE...`: runs the rules on manifests without a cluster. */
#pragma once

#include <stddef.h>

#include "lib/base/str.h"
#include "webhook/rules/rules.h"

struct check_summary {
    size_t objects, refused, warnings;
    size_t errors; /* unreadable files, and documents that are no objects */
};

/* Judges every object of the files as if created in a cluster that has the others. Files are YAML
 * or JSON, with several documents and Lists; "-" is standard input; a directory stands for its
 * manifests. Appends a line for each finding, "FILE: Job default/a: refused: spec...". Errors get a
 * line "FILE: error: ..." and do not stop the run. ns: default namespace of the objects. */
void check_files(const struct rules_config *rules, const char *ns, const char *const *paths,
                 size_t n, struct strbuf *out, struct check_summary *sum);
