// SPDX-License-Identifier: Apache-2.0
/*
 * check - the rules on manifests, without a cluster: `cosched-webhook --check FILE...` on a laptop
 * or in a pipeline.
 */
#pragma once

#include <stddef.h>

#include "lib/base/str.h"
#include "webhook/rules/rules.h"

struct check_summary {
    size_t objects, refused, warnings;
    size_t errors; /* unreadable files, and things in them that are no objects */
};

/* Judges every object of the files (YAML or JSON, several documents, Lists; "-" is standard input,
 * a directory its manifests) as if created in a cluster that has the other ones: a line for each
 * sentence, "FILE: Job default/a: refused: spec...". ns: of objects that name none. What cannot be
 * judged has a line too, "FILE: error: ...", and the rest is still judged. */
void check_files(const struct rules_config *rules, const char *ns, const char *const *paths,
                 size_t n, struct strbuf *out, struct check_summary *sum);
