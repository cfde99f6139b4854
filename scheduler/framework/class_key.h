// SPDX-License-Identifier: Apache-2.0
/*
 * class_key - the text that makes pods equal: what the plugins read of a pod, each in its own part
 * (plugin.h, the verb key), and nothing else. Pure.
 *
 * Printed once for each pod, so it is quick rather than pretty: numbers in base 64, strings behind
 * their length. Each part begins with a letter of its plugin's own, so that no two different pods have
 * the same text.
 */
#pragma once

#include "lib/base/str.h"
#include "scheduler/framework/plugin.h"

/* The pod's whole text. Its traits in the index are made on the way; ask->class is not known yet. */
void class_key_print(struct cluster *c, struct cluster_pod *cp, const struct plugin_ask *ask,
                     struct strbuf *out);

/* For plugins: */
void class_key_number(struct strbuf *out, int64_t value);
void class_key_text(struct strbuf *out, const char *text); /* NULL is not "" */
