// SPDX-License-Identifier: Apache-2.0
/* rpc - gRPC over a unix socket: a server for unary and server-streaming methods, and unary client
 * calls. Only the rpc files know gRPC core. Messages are bytes here; device-plugin/kubelet/wire
 * decodes them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

enum { RPC_METHODS_MAX = 8, RPC_PATH_MAX = 107 /* sun_path */, RPC_LOOK_MS = 50 };

/* Once per process, after signals are blocked (gRPC starts threads) and before anything below. */
void rpc_init(void);
/* After every server and channel is freed. Waits for gRPC's own threads. */
void rpc_shutdown(void);
/* While when returns true, every rpc_channel_call, including one in progress, ends with
 * ERROR_CANCELLED within RPC_LOOK_MS, so that a hanging peer does not delay shutdown. when is
 * called on any thread. Set it before the first call; NULL: never. */
void rpc_abandon_when(bool (*when)(void *arg), void *arg);

struct rpc_server;

struct rpc_method {
    const char *path; /* "/v1beta1.DevicePlugin/Allocate" */
    /* Unary. Runs on a server thread and may block it. Appends the reply, or returns -1: the peer
     * then gets err's text and a status derived from its code. NULL for a streaming method. */
    int (*unary)(void *arg, const void *request, size_t n, struct strbuf *reply, struct error *err);
    /* Server streaming: the newest message and its generation. Called on a server thread or inside
     * rpc_server_notify. A stream sends only when the generation differs from the last one it sent,
     * so rapid changes become one message. */
    uint64_t (*newest)(void *arg, struct strbuf *message);
};

struct rpc_server_config {
    const char *path; /* socket file, absolute; an existing file is removed */
    const struct rpc_method *methods;
    size_t methods_len;
    void *arg;
    /* The peer ended a stream. On a server thread; must not call rpc_server_*. May be NULL. */
    void (*stream_ended)(void *ended_arg);
    void *ended_arg;
};

/* Listens and serves. Methods that are not in the list get UNIMPLEMENTED. */
int rpc_server_start(struct rpc_server **out, const struct rpc_server_config *c, struct error *err);
/* The streams have a newer message. Any thread. */
void rpc_server_notify(struct rpc_server *s);
/* Open streams. Any thread. */
size_t rpc_server_streams(struct rpc_server *s);
/* Ends the streams with OK, gives running calls grace_ms, cancels the rest, removes the socket,
 * frees. */
void rpc_server_stop(struct rpc_server *s, int64_t grace_ms);

struct rpc_channel;

/* Connects on first use; reconnects 100 ms after a connection is lost. */
int rpc_channel_new(struct rpc_channel **out, const char *path, struct error *err);
void rpc_channel_free(struct rpc_channel *c);
/* One unary call; appends the reply. Any thread, concurrently. wait_for_ready: waits up to the
 * timeout for an absent peer instead of failing at once with ERROR_UNAVAILABLE. ERROR_THROTTLED:
 * the peer answered ResourceExhausted. ERROR_CANCELLED: see rpc_abandon_when. */
int rpc_channel_call(struct rpc_channel *c, const char *method, const void *request, size_t n,
                     int64_t timeout_ms, bool wait_for_ready, struct strbuf *reply,
                     struct error *err);
