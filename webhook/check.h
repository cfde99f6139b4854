// SPDX-License-Identifier: Apache-2.0
/*
 * check - the rules on manifests, without a cluster: `cosched-webhook --check FILE...` on a laptop or in a pipeline.
 */
#pragma once

#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/str.h"
#include "webhook/rules.h"

struct check_summary {
    size_t objects, refused, warnings;
};

/* Judges every object of the files (YAML or JSON, several documents, Lists; "-" is standard input) as if each were created in a cluster that has the other ones:
 * a line for each sentence, "FILE: Job default/a: refused: spec...". ns: of objects that name none. A file that cannot be read or parsed is an error that names it;
 * what was found before stays in out. */
int check_files(const struct rules_config *rules, const char *ns, const char *const *paths,
                size_t n, struct strbuf *out, struct check_summary *sum, struct error *err);
