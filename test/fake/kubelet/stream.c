// SPDX-License-Identifier: Apache-2.0
#include "test/fake/kubelet/stream.h"

#include <pthread.h>
#include <stdlib.h>

#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <grpc/support/time.h>

#include "lib/base/str.h"

#ifdef __SANITIZE_THREAD__
/* gRPC is not built with the sanitizer: what happens inside it cannot be judged, only our side. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "ignore_noninstrumented_modules=1";
}
#endif

struct stream {
    grpc_channel *channel;
    grpc_completion_queue *cq;
    grpc_call *call;
    pthread_t thread;
    void (*on_message)(void *arg, const void *bytes, size_t n);
    void *arg;
};

static bool batch(struct stream *s, const grpc_op *ops, size_t n)
{
    int tag = 0;
    if (grpc_call_start_batch(s->call, ops, n, &tag, NULL) != GRPC_CALL_OK)
        abort();
    return grpc_completion_queue_pluck(s->cq, &tag, gpr_inf_future(GPR_CLOCK_REALTIME), NULL)
               .success != 0;
}

static void *run(void *arg)
{
    struct stream *s = arg;
    grpc_metadata_array initial, trailing;
    grpc_metadata_array_init(&initial);
    grpc_metadata_array_init(&trailing);
    grpc_slice nothing = grpc_empty_slice();
    grpc_byte_buffer *empty = grpc_raw_byte_buffer_create(&nothing, 1);
    grpc_op begin[4] = {{.op = GRPC_OP_SEND_INITIAL_METADATA},
                        {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = empty},
                        {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT},
                        {.op = GRPC_OP_RECV_INITIAL_METADATA}};
    begin[3].data.recv_initial_metadata.recv_initial_metadata = &initial;
    bool open = batch(s, begin, 4);
    grpc_byte_buffer_destroy(empty);
    while (open) {
        grpc_byte_buffer *message = NULL;
        grpc_op next = {.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &message};
        grpc_byte_buffer_reader reader;
        open =
            batch(s, &next, 1) && message != NULL && grpc_byte_buffer_reader_init(&reader, message);
        if (open) {
            grpc_slice all = grpc_byte_buffer_reader_readall(&reader);
            s->on_message(s->arg, GRPC_SLICE_START_PTR(all), GRPC_SLICE_LENGTH(all));
            grpc_slice_unref(all);
            grpc_byte_buffer_reader_destroy(&reader);
        }
        grpc_byte_buffer_destroy(message);
    }
    grpc_status_code status = GRPC_STATUS_UNKNOWN;
    grpc_slice details = grpc_empty_slice();
    grpc_op end = {.op = GRPC_OP_RECV_STATUS_ON_CLIENT};
    end.data.recv_status_on_client.trailing_metadata = &trailing;
    end.data.recv_status_on_client.status = &status;
    end.data.recv_status_on_client.status_details = &details;
    batch(s, &end, 1);
    s->on_message(s->arg, NULL, 0);
    grpc_slice_unref(details);
    grpc_metadata_array_destroy(&initial);
    grpc_metadata_array_destroy(&trailing);
    return NULL;
}

struct stream *stream_open(const char *socket, const char *method,
                           void (*on_message)(void *arg, const void *bytes, size_t n), void *arg)
{
    struct stream *s = calloc(1, sizeof *s);
    if (s == NULL)
        abort();
    AUTO_STRBUF target;
    strbuf_init(&target);
    strbuf_addf(&target, "unix:%s", socket);
    /* With retries (gRPC's default) a stream that is cancelled while its server goes away may never
     * end: seen with 1.51. */
    char pool[] = GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, retries[] = GRPC_ARG_ENABLE_RETRIES;
    grpc_arg all[] = {{.type = GRPC_ARG_INTEGER, .key = pool, .value.integer = 1},
                      {.type = GRPC_ARG_INTEGER, .key = retries, .value.integer = 0}};
    grpc_channel_args args = {.num_args = 2, .args = all};
    grpc_channel_credentials *creds = grpc_insecure_credentials_create();
    s->channel = grpc_channel_create(strbuf_str(&target), creds, &args);
    grpc_channel_credentials_release(creds);
    s->cq = grpc_completion_queue_create_for_pluck(NULL);
    grpc_slice name = grpc_slice_from_copied_string(method);
    s->call = grpc_channel_create_call(s->channel, NULL, GRPC_PROPAGATE_DEFAULTS, s->cq, name, NULL,
                                       gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
    grpc_slice_unref(name);
    s->on_message = on_message;
    s->arg = arg;
    if (pthread_create(&s->thread, NULL, run, s) != 0)
        abort();
    return s;
}

void stream_close(struct stream *s)
{
    if (s == NULL)
        return;
    (void)grpc_call_cancel(s->call, NULL);
    pthread_join(s->thread, NULL);
    grpc_call_unref(s->call);
    grpc_completion_queue_shutdown(s->cq);
    grpc_completion_queue_destroy(s->cq);
    grpc_channel_destroy(s->channel);
    free(s);
}
