// SPDX-License-Identifier: Apache-2.0
/*
 * load - what bench_local and bench_scale both do to a server: a large number of pods of a usual
 * size, sent over plain HTTP on LOAD_CONNECTIONS connections, one request at a time on each,
 * without curl; and a plain GET.
 */
#pragma once

#include <poll.h>

#include "lib/base/cleanup.h"
#include "lib/base/json.h"
#include "lib/base/options.h"
#include "test/bench/local.h"

enum { LOAD_CONNECTIONS = 16, LOAD_PIECE = 256 * 1024 };

static struct load_options {
    int64_t nodes, pods, rounds;
} load;

static inline enum options_result load_parse(const char *name, const char *summary, int argc,
                                             char **argv)
{
    static const struct option_row rows[] = {{.name = "nodes",
                                              .kind = OPTION_INT,
                                              .offset = offsetof(struct load_options, nodes),
                                              .fallback = "10000",
                                              .min = 1,
                                              .max = 100000,
                                              .meta = "N",
                                              .help = "Hollow nodes."},
                                             {.name = "pods",
                                              .kind = OPTION_INT,
                                              .offset = offsetof(struct load_options, pods),
                                              .fallback = "100000",
                                              .min = 1,
                                              .max = 1000000,
                                              .meta = "N",
                                              .help = "Pods."},
                                             {.name = "rounds",
                                              .kind = OPTION_INT,
                                              .offset = offsetof(struct load_options, rounds),
                                              .fallback = "3",
                                              .min = 1,
                                              .max = 9,
                                              .meta = "N",
                                              .help = "Repeats; the figures are medians."},
                                             {0}};
    const struct option_program program = {
        .name = name, .summary = summary, .synopsis = "[OPTION]..."};
    const struct option_table tables[] = {{rows, &load}, {NULL, NULL}};
    struct error err = ERROR_INIT;
    enum options_result got = options_parse(&program, tables, argc, argv, NULL, &err);
    if (got == OPTIONS_ERROR)
        fprintf(stderr, "%s: %s\n", name, err.text);
    return got;
}

/* One piece more; dies when the other side has closed. */
static inline void load_receive(int fd, struct strbuf *in, size_t room, int flags)
{
    strbuf_reserve(in, room + JSON_PADDING);
    ssize_t n = recv(fd, in->ptr + in->len, room, flags);
    if (n <= 0)
        die("connection lost");
    in->len += (size_t)n;
    in->ptr[in->len] = '\0';
}

/* GET on a connection of its own: the reply's status and body; 0: connection refused. */
static inline int load_get(uint16_t port, const char *target, struct strbuf *reply)
{
    AUTO_CLOSE int fd = local_try_dial(port);
    AUTO_STRBUF text = {0};
    struct http_parse parse = {.reply = true};
    strbuf_reset(reply);
    if (fd < 0)
        return 0;
    strbuf_addf(&text, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n\r\n",
                target);
    local_send(fd, &text);
    while (!local_is_complete(&parse, reply))
        load_receive(fd, reply, LOAD_PIECE, 0);
    strbuf_consume(reply, parse.body_at);
    return parse.status;
}

static inline void load_print_post(struct strbuf *out, const char *path, const struct strbuf *body)
{
    strbuf_addf(out,
                "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nAccept: "
                "application/json\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                path, body->len);
    strbuf_add(out, body->ptr, body->len);
}

/* The request that creates pod i for this scheduler. */
static inline void load_print_pod(struct strbuf *out, const char *scheduler, int64_t i)
{
    static struct strbuf body;
    strbuf_reset(&body);
    strbuf_addf(
        &body,
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"worker-%06lld\","
        "\"namespace\":\"default\",\"labels\":{\"app\":\"train\",\"job\":\"job-%lld\",\"role\":"
        "\"worker\",\"team\":\"vision\"},\"annotations\":{\"example.org/owner\":\"someone@example.org"
        "\",\"example.org/purpose\":\"a pod of a size that is usual for a training job\"}},"
        "\"spec\":{\"schedulerName\":\"%s\",\"containers\":[{\"name\":\"main\","
        "\"image\":\"registry.example.org/team/train:v1.2.3\",\"command\":[\"python\",\"train.py\","
        "\"--epochs=90\",\"--batch-size=256\"],\"env\":[{\"name\":\"RANK\",\"value\":\"%lld\"},"
        "{\"name\":\"MASTER_ADDR\",\"value\":\"worker-0\"},{\"name\":\"MASTER_PORT\",\"value\":"
        "\"23456\"},{\"name\":\"NCCL_DEBUG\",\"value\":\"INFO\"}],\"resources\":{\"limits\":{\"cpu\":"
        "\"2\",\"memory\":\"4Gi\"},\"requests\":{\"cpu\":\"2\",\"memory\":\"4Gi\"}},"
        "\"volumeMounts\":[{\"name\":\"data\",\"mountPath\":\"/data\"}]}],\"volumes\":[{\"name\":"
        "\"data\",\"emptyDir\":{}}],\"restartPolicy\":\"Never\",\"tolerations\":[{\"key\":\"gpu\","
        "\"operator\":\"Exists\",\"effect\":\"NoSchedule\"}]}}",
        (long long)i, (long long)(i / 32), scheduler, (long long)(i % 32));
    load_print_post(out, "/api/v1/namespaces/default/pods", &body);
}

struct load_connection {
    int fd;
    struct strbuf in;
    struct http_parse parse;
    bool waiting;
};

typedef void (*load_print)(struct strbuf *out, int64_t i);

static inline void load_send(struct load_connection *c, load_print print, int64_t i)
{
    static struct strbuf text;
    strbuf_reset(&text);
    print(&text, i);
    local_send(c->fd, &text);
    c->parse = (struct http_parse){.reply = true};
    c->waiting = true;
}

/* One reply more, or not yet. */
static inline bool load_take_reply(struct load_connection *c)
{
    load_receive(c->fd, &c->in, 16384, MSG_DONTWAIT);
    if (!local_is_complete(&c->parse, &c->in))
        return false;
    if (c->parse.status / 10 != 20)
        die(c->in.ptr + c->parse.body_at);
    strbuf_consume(&c->in, c->parse.at);
    c->waiting = false;
    return true;
}

/* Sends requests from..to-1 and takes their replies; each must be 200 or 201. */
static inline void load_run(uint16_t port, load_print print, int64_t from, int64_t to)
{
    struct load_connection all[LOAD_CONNECTIONS] = {0};
    struct pollfd polls[LOAD_CONNECTIONS];
    for (size_t i = 0; i < LOAD_CONNECTIONS; i++)
        all[i].fd = local_dial(port);
    for (int64_t next = from, done = from; done < to;) {
        for (size_t i = 0; i < LOAD_CONNECTIONS; i++) {
            if (!all[i].waiting && next < to)
                load_send(&all[i], print, next++);
            polls[i] = (struct pollfd){.fd = all[i].fd, .events = POLLIN};
        }
        if (poll(polls, LOAD_CONNECTIONS, 60000) <= 0)
            die("no reply within a minute");
        for (size_t i = 0; i < LOAD_CONNECTIONS; i++)
            if (polls[i].revents)
                done += load_take_reply(&all[i]);
    }
    for (size_t i = 0; i < LOAD_CONNECTIONS; i++) {
        close(all[i].fd);
        strbuf_deinit(&all[i].in);
    }
}
