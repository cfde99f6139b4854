// SPDX-License-Identifier: Apache-2.0
#include "test/local/gauges.h"

#include "lib/base/metrics.h"

enum gauge { REQUESTS, CONNECTIONS, WATCHES, SLOW_WATCHES, BYTES_OUT, VERSION, PODS, NODES };

static struct server *const *measured_server; /* NULL inside: not started */
static const struct store *measured_store;

static int64_t read_gauge(void *arg)
{
    struct server_stats stats = {0};
    if (*measured_server)
        server_stats(*measured_server, &stats);
    switch (*(const enum gauge *)arg) {
    case REQUESTS:
        return stats.requests;
    case CONNECTIONS:
        return stats.open_connections;
    case WATCHES:
        return stats.open_streams;
    case SLOW_WATCHES:
        return stats.slow_streams;
    case BYTES_OUT:
        return stats.bytes_out;
    case VERSION:
        return (int64_t)store_version(measured_store);
    case PODS:
        return (int64_t)store_count(measured_store, &kind_pods);
    case NODES:
        return (int64_t)store_count(measured_store, &kind_nodes);
    }
    return 0;
}

void gauges_register(struct server *const *server, const struct store *store)
{
    static enum gauge which[] = {REQUESTS,  CONNECTIONS, WATCHES, SLOW_WATCHES,
                                 BYTES_OUT, VERSION,     PODS,    NODES};
    static const char *const names[][2] = {
        {"cosched_local_requests", "Requests since the start."},
        {"cosched_local_connections", "Open connections."},
        {"cosched_local_watches", "Open watches."},
        {"cosched_local_slow_watches", "Watches that were dropped since the start."},
        {"cosched_local_sent_bytes", "Bytes sent since the start."},
        {"cosched_local_version", "The newest resourceVersion."},
        {"cosched_local_pods", "Pods."},
        {"cosched_local_nodes", "Nodes."},
    };
    static struct metric gauges[sizeof names / sizeof *names];
    measured_server = server;
    measured_store = store;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        gauges[i] = (struct metric){.kind = METRIC_GAUGE,
                                    .name = names[i][0],
                                    .help = names[i][1],
                                    .read = read_gauge,
                                    .arg = &which[i]};
        metrics_register(&gauges[i]);
    }
}
