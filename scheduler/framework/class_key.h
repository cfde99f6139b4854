// SPDX-License-Identifier: Apache-2.0
/* class_key - the text that identifies a pod's class: exactly what the plugins read of a pod, one
 * part per plugin. Pure. This file only joins the parts: what makes pods equal is the verb key in
 * each plugin. Printed once per pod, so it is built for speed: numbers in base 64, strings behind
 * their length. Each part begins with a letter of its plugin, so that different pods have different
 * texts. */
#pragma once

#include "lib/base/str.h"
#include "scheduler/framework/plugin.h"

/* The pod's whole text; ask->class is not known yet. */
void class_key_print(const struct plugin_ask *ask, struct strbuf *out);

/* For plugins: */
void class_key_number(struct strbuf *out, int64_t value);
void class_key_text(struct strbuf *out, const char *text); /* NULL is not "" */
