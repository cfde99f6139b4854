// SPDX-License-Identifier: Apache-2.0
/*
 * server_in - the receiving side of a connection: bytes become requests, requests become calls, and
 * the server's handler gets them one at a time.
 */
#pragma once

#include "test/local/server/server_conn.h"

enum {
    SERVER_IN_WAITING = 64 * 1024,          /* bytes read ahead while a call is being answered */
    SERVER_IN_HIGH_WATER = 4 * 1024 * 1024, /* unsent replies: no new requests of this connection */
};

/* Reads what is there, a bounded number of times, and processes it. The rest has its turn in the
 * next round. A broken connection becomes dead. */
void server_in_receive(struct conn *c);
/* Requests that are in the buffer, while there is no reason to wait. */
void server_in_process(struct conn *c);
/* Answers before a request is complete, then closes the connection. */
void server_in_refuse(struct conn *c, int status, const char *why);
