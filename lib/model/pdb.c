// SPDX-License-Identifier: Apache-2.0
#include "lib/model/pdb.h"

#include "lib/base/str.h"

static bool is_disrupted(const struct pdb *b, const char *pod)
{
    for (size_t i = 0; i < b->disrupted_len; i++)
        if (str_eq(b->disrupted[i], pod))
            return true;
    return false;
}

bool pdb_covers(const struct pdb *b, const char *ns, const char *pod, const struct labels *labels)
{
    return str_eq(b->object.ns, ns) && selector_matches(&b->selector, labels) &&
           !is_disrupted(b, pod);
}
