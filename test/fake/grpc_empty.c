// SPDX-License-Identifier: Apache-2.0
/*
 * grpc_empty - the least that a device plugin on gRPC core can be: our transport with its threads,
 * and as many bytes in answer to a method as it was told. bench_plugin measures the real one
 * against it. A program of its own, so that it loads gRPC's libraries and no others.
 *
 *     grpc_empty SOCKET METHOD BYTES METHOD BYTES      until SIGTERM
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include "device-plugin/kubelet/rpc.h"
#include "lib/base/num.h"

enum { BYTES_MAX = 1 << 20 };

static int64_t bytes[RPC_METHODS_MAX];

static int answer(size_t method, struct strbuf *reply)
{
    for (int64_t i = 0; i < bytes[method]; i++)
        strbuf_addc(reply, 'x');
    return 0;
}

static int answer_first(void *arg, const void *request, size_t n, struct strbuf *reply,
                        struct error *err)
{
    (void)arg, (void)request, (void)n, (void)err;
    return answer(0, reply);
}

static int answer_second(void *arg, const void *request, size_t n, struct strbuf *reply,
                         struct error *err)
{
    (void)arg, (void)request, (void)n, (void)err;
    return answer(1, reply);
}

int main(int argc, char **argv)
{
    struct rpc_method methods[] = {{.unary = answer_first}, {.unary = answer_second}};
    struct rpc_server *server;
    struct error err = ERROR_INIT;
    sigset_t end;
    int signo;
    if (argc != 6) {
        (void)fprintf(stderr, "usage: grpc_empty SOCKET METHOD BYTES METHOD BYTES\n");
        return 2;
    }
    for (int i = 0; i < 2; i++) {
        const char *text = argv[3 + 2 * i];
        methods[i].path = argv[2 + 2 * i];
        if (num_parse_range(text, 0, BYTES_MAX, &bytes[i], &err) < 0) {
            (void)fprintf(stderr, "grpc_empty: BYTES: %s\n", err.text);
            return 2;
        }
    }
    struct rpc_server_config c = {.path = argv[1], .methods = methods, .methods_len = 2};
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &end, NULL); /* before gRPC starts its threads */
    rpc_init();
    if (rpc_server_start(&server, &c, &err) < 0) {
        (void)fprintf(stderr, "grpc_empty: %s\n", err.text);
        return 1;
    }
    sigwait(&end, &signo);
    rpc_server_stop(server, 0);
    rpc_shutdown();
    return 0;
}
