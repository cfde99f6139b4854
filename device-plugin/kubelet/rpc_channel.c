// SPDX-License-Identifier: Apache-2.0
/* rpc_channel - unary client calls on gRPC core. Each call has its own completion queue, so that
 * threads can call concurrently without seeing each other's replies. */
#include "device-plugin/kubelet/rpc_internal.h"

#include <stdlib.h>

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>
#include <grpc/support/time.h>

#include "lib/base/mem.h"

enum { GREETING_MS = 5000 /* to connect; a call may end earlier */ };

struct rpc_channel {
    grpc_channel *channel;
};

int rpc_channel_new(struct rpc_channel **out, const char *path, struct error *err)
{
    if (rpc_check_path(path, err) < 0)
        return -1;
    AUTO_STRBUF target;
    strbuf_init(&target);
    strbuf_addf(&target, "unix:%s", path);
    grpc_arg args[] = {
        rpc_integer((char[]){GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS}, 100),
        rpc_integer((char[]){GRPC_ARG_MIN_RECONNECT_BACKOFF_MS}, GREETING_MS),
        rpc_integer((char[]){GRPC_ARG_MAX_RECONNECT_BACKOFF_MS}, 100),
        rpc_integer((char[]){GRPC_ARG_ENABLE_HTTP_PROXY}, 0),
        rpc_integer((char[]){GRPC_ARG_HTTP2_BDP_PROBE}, 0),
        /* gRPC 1.51 may lose a cancelled call in its retries, and the callers retry themselves. */
        rpc_integer((char[]){GRPC_ARG_ENABLE_RETRIES}, 0),
        rpc_integer((char[]){GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL}, 1)};
    grpc_channel_args all = {.num_args = sizeof args / sizeof args[0], .args = args};
    struct rpc_channel *c = mem_new(struct rpc_channel, 1);
    grpc_channel_credentials *creds = grpc_insecure_credentials_create();
    c->channel = grpc_channel_create(strbuf_str(&target), creds, &all);
    grpc_channel_credentials_release(creds);
    *out = c;
    return 0;
}

void rpc_channel_free(struct rpc_channel *c)
{
    if (c == NULL)
        return;
    grpc_channel_destroy(c->channel);
    free(c);
}

/* Waits for the call's only batch, until the call's deadline or rpc_abandon_when. */
static void await_batch(grpc_completion_queue *cq, grpc_call *call, void *tag)
{
    gpr_timespec look = gpr_inf_future(GPR_CLOCK_MONOTONIC);
    do {
        if (rpc_is_abandoned()) {
            (void)grpc_call_cancel(call, NULL);
            look = gpr_inf_future(GPR_CLOCK_MONOTONIC); /* a cancelled batch completes at once */
        } else if (rpc_may_abandon()) {
            look = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                gpr_time_from_millis(RPC_LOOK_MS, GPR_TIMESPAN));
        }
    } while (grpc_completion_queue_pluck(cq, tag, look, NULL).type == GRPC_QUEUE_TIMEOUT);
}

int rpc_channel_call(struct rpc_channel *c, const char *method, const void *request, size_t n,
                     int64_t timeout_ms, bool wait_for_ready, struct strbuf *reply,
                     struct error *err)
{
    grpc_completion_queue *cq = grpc_completion_queue_create_for_pluck(NULL);
    gpr_timespec deadline =
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(timeout_ms, GPR_TIMESPAN));
    grpc_slice name = grpc_slice_from_copied_string(method);
    grpc_call *call = grpc_channel_create_call(c->channel, NULL, GRPC_PROPAGATE_DEFAULTS, cq, name,
                                               NULL, deadline, NULL);
    grpc_slice_unref(name);
    grpc_byte_buffer *message = rpc_buffer_of(request, n), *answered = NULL;
    grpc_metadata_array initial, trailing;
    grpc_metadata_array_init(&initial), grpc_metadata_array_init(&trailing);
    grpc_status_code status = GRPC_STATUS_UNKNOWN;
    grpc_slice details = grpc_empty_slice();
    grpc_op ops[6] = {{.op = GRPC_OP_SEND_INITIAL_METADATA},
                      {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = message},
                      {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT},
                      {.op = GRPC_OP_RECV_INITIAL_METADATA},
                      {.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &answered},
                      {.op = GRPC_OP_RECV_STATUS_ON_CLIENT}};
    if (wait_for_ready)
        ops[0].flags = GRPC_INITIAL_METADATA_WAIT_FOR_READY |
                       GRPC_INITIAL_METADATA_WAIT_FOR_READY_EXPLICITLY_SET;
    ops[3].data.recv_initial_metadata.recv_initial_metadata = &initial;
    ops[5].data.recv_status_on_client.trailing_metadata = &trailing;
    ops[5].data.recv_status_on_client.status = &status;
    ops[5].data.recv_status_on_client.status_details = &details;
    int tag = 0, result = 0;
    if (grpc_call_start_batch(call, ops, 6, &tag, NULL) != GRPC_CALL_OK)
        abort();
    await_batch(cq, call, &tag);
    if (status != GRPC_STATUS_OK) {
        char *text = grpc_slice_to_c_string(details);
        result = error_set(err, rpc_code_of(status), "%s: %s", method, text);
        gpr_free(text);
    } else {
        result = rpc_bytes_of(answered, reply, err) < 0 ? error_wrap(err, "%s", method) : 0;
    }
    grpc_slice_unref(details);
    grpc_metadata_array_destroy(&initial), grpc_metadata_array_destroy(&trailing);
    grpc_byte_buffer_destroy(message), grpc_byte_buffer_destroy(answered);
    grpc_call_unref(call);
    grpc_completion_queue_shutdown(cq), grpc_completion_queue_destroy(cq);
    return result;
}
