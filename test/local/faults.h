// SPDX-License-Identifier: Apache-2.0
/*
 * faults - trouble on demand, by the admin endpoint POST /cosched/faults (JSON) and by a script file with times: drop or delay connections, cut watches (in the middle of a line), 410,
 * 409 on every nth bind, 429 with Retry-After, 500, lose the reply of a request that was carried out, partition a node, restart the kubelet, restart the API server with state kept, fail
 * a card, delete and re-create pods.
 */
#pragma once

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "test/local/call.h"

struct faults;
/* What to do with a request before it is handled. */
enum faults_verdict { FAULTS_PASS, FAULTS_TAKEN /* answered, delayed or dropped here */ };
enum faults_verdict faults_before(struct faults *f, struct call *c);
/* After it was carried out: true when the reply must be lost (call_drop). */
bool faults_loses_reply(struct faults *f, const struct call *c);
