// SPDX-License-Identifier: Apache-2.0
/* report - formats what the program prints. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "kubectl/view.h"
#include "lib/base/error.h"
#include "lib/base/str.h"

struct report {
    const struct view *view;
    const char *node; /* NULL: all nodes */
    bool colours;
    struct arena *arena;
};

/* The documented table of nodes in shared modes. -1: no such node. */
int report_table(const struct report *r, struct strbuf *out, struct error *err);
/* Each node's pods with their share of each card. */
int report_details(const struct report *r, struct strbuf *out, struct error *err);
/* All nodes with cards, in any mode, with their pods. */
int report_json(const struct report *r, struct strbuf *out, struct error *err);
/* The node's link matrix and the pods on each card. */
int report_topology(const struct report *r, struct strbuf *out, struct error *err);
/* Why each card of each node fits the pod or does not. */
void report_why(const struct report *r, const struct pod *p, struct strbuf *out);
