// SPDX-License-Identifier: Apache-2.0
/* rpc_internal - shared by rpc and rpc_channel only. */
#pragma once

#include <grpc/grpc.h>

#include "device-plugin/kubelet/rpc.h"

/* gRPC wants a non-const key: pass a compound literal of a GRPC_ARG_*. */
static inline grpc_arg rpc_integer(char *key, int value)
{
    return (grpc_arg){.type = GRPC_ARG_INTEGER, .key = key, .value.integer = value};
}

int rpc_check_path(const char *path, struct error *err);
/* Copies. */
grpc_byte_buffer *rpc_buffer_of(const void *bytes, size_t n);
/* Appends the bytes. */
int rpc_bytes_of(grpc_byte_buffer *buffer, struct strbuf *out, struct error *err);
enum error_code rpc_code_of(grpc_status_code status);
/* Was rpc_abandon_when called; does it return true now? */
bool rpc_may_abandon(void);
bool rpc_is_abandoned(void);
