// SPDX-License-Identifier: Apache-2.0
/*
 * rpc - gRPC over a unix socket: a server for unary and server-streaming methods, and unary calls.
 * The only file that knows gRPC core. Messages are bytes here; device-plugin/kubelet/wire gives
 * them meaning.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

enum { RPC_METHODS_MAX = 8, RPC_PATH_MAX = 107 /* sun_path */, RPC_LOOK_MS = 50 };

/* Once per process, after the signals are blocked (gRPC starts threads) and before anything
 * below. */
void rpc_init(void);
/* After every server and channel is gone. Waits for gRPC's own threads. */
void rpc_shutdown(void);
/* While when says yes, every call of rpc_channel_call, also one under way, ends with
 * ERROR_CANCELLED within RPC_LOOK_MS: a peer that hangs does not hold up the end of the program.
 * Any thread asks it. Before the first call; NULL: never. */
void rpc_abandon_when(bool (*when)(void *arg), void *arg);

struct rpc_server;

struct rpc_method {
    const char *path; /* "/v1beta1.DevicePlugin/Allocate" */
    /* Unary. Runs on one of the server's threads and may block it; appends the reply, or returns
     * -1: the peer then gets the text of err and a status made from its code. NULL for a streaming
     * method. */
    int (*unary)(void *arg, const void *request, size_t n, struct strbuf *reply, struct error *err);
    /* Server streaming: the newest message and its generation. Called on a server thread or inside
     * rpc_server_notify; each stream sends every generation that differs from the one it sent last,
     * so changes in quick succession become one message. */
    uint64_t (*newest)(void *arg, struct strbuf *message);
};

struct rpc_server_config {
    const char *path; /* the socket's file, absolute; whatever lies there is removed */
    const struct rpc_method *methods;
    size_t methods_len;
    void *arg;
    /* A stream ended although we did not end it. On a server thread; may not call rpc_server_*. May
     * be NULL. */
    void (*stream_ended)(void *ended_arg);
    void *ended_arg;
};

/* Listens, and answers from now on: methods that are not in the list get UNIMPLEMENTED. */
int rpc_server_start(struct rpc_server **out, const struct rpc_server_config *c, struct error *err);
/* There is a newer message for the streams. Any thread. */
void rpc_server_notify(struct rpc_server *s);
/* Streams that are open now. Any thread. */
size_t rpc_server_streams(struct rpc_server *s);
/* Ends the streams with OK, gives running calls grace_ms, cancels the rest, frees. Removes the
 * socket. */
void rpc_server_stop(struct rpc_server *s, int64_t grace_ms);

struct rpc_channel;

/* Connects when it is first used, and again (100 ms apart) when the connection is lost. */
int rpc_channel_new(struct rpc_channel **out, const char *path, struct error *err);
void rpc_channel_free(struct rpc_channel *c);
/* One unary call. wait_for_ready: an absent peer is waited for, up to the timeout, instead of being
 * ERROR_UNAVAILABLE at once. ERROR_THROTTLED: the peer has enough (ResourceExhausted). Any thread,
 * several at a time. The reply is appended. ERROR_CANCELLED: rpc_abandon_when. */
int rpc_channel_call(struct rpc_channel *c, const char *method, const void *request, size_t n,
                     int64_t timeout_ms, bool wait_for_ready, struct strbuf *reply,
                     struct error *err);
