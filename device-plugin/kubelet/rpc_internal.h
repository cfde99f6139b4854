// SPDX-License-Identifier: Apache-2.0
/*
 * rpc_internal - what rpc and rpc_channel share. Nobody else includes it.
 */
#pragma once

#include <grpc/grpc.h>

#include "device-plugin/kubelet/rpc.h"

/* key has the type that gRPC wants: a compound literal of one of its GRPC_ARG_* does. */
static inline grpc_arg rpc_integer(char *key, int value)
{
    return (grpc_arg){.type = GRPC_ARG_INTEGER, .key = key, .value.integer = value};
}

int rpc_check_path(const char *path, struct error *err);
/* A copy. */
grpc_byte_buffer *rpc_buffer_of(const void *bytes, size_t n);
/* Appends them. */
int rpc_bytes_of(grpc_byte_buffer *buffer, struct strbuf *out, struct error *err);
enum error_code rpc_code_of(grpc_status_code status);
/* rpc_abandon_when was called; and it says yes. */
bool rpc_may_abandon(void);
bool rpc_is_abandoned(void);
