// SPDX-License-Identifier: Apache-2.0
/*
 * podresources_list - what a kubelet's pod resources service says at this moment, for the suites:
 * they speak no gRPC.
 *
 *     podresources_list SOCKET     once
 *     podresources_list -          for each line of standard input, which is a socket, until it
 *                                  ends
 *
 * One line of JSON: {"ns/pod": {"container": {"aliyun.com/gpu-mem": ["GPU-a-_-0", …]}}}, resources
 * that are ours; with `-` a line "error: …" where there was none. Ordinary init containers are not
 * in it: the kubelet does not list them.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "device-plugin/kubelet/podresources.h"
#include "device-plugin/kubelet/rpc.h"
#include "lib/base/json.h"
#include "lib/base/str.h"

enum { LIST_MS = 5000 };

static void print(const struct match_listing *l, struct strbuf *out)
{
    struct json_writer w;
    json_writer_init(&w, out);
    json_object_begin(&w);
    for (size_t i = 0; i < l->len; i++) {
        json_key(&w, l->pods[i].key);
        json_object_begin(&w);
        for (size_t k = 0; k < l->pods[i].containers_len; k++) {
            const struct match_listed_container *c = &l->pods[i].containers[k];
            json_key(&w, c->name);
            json_object_begin(&w);
            for (int r = 0; r < MODE_RESOURCES; r++) {
                if (c->held[r].len == 0)
                    continue;
                json_key(&w, mode_resource_name((enum mode_resource)r));
                json_array_begin(&w);
                for (size_t n = 0; n < c->held[r].len; n++)
                    json_put_str(&w, c->held[r].items[n]);
                json_array_end(&w);
            }
            json_object_end(&w);
        }
        json_object_end(&w);
    }
    json_object_end(&w);
}

/* A client of its own each time: the kubelet may have made its socket anew. */
static int list(const char *socket, struct strbuf *text, struct error *err)
{
    struct podresources *p = NULL;
    struct match_listing listing;
    struct arena a;
    arena_init(&a, 0);
    int result = podresources_new(&p, socket, err);
    if (result == 0)
        result = podresources_list(p, LIST_MS, &a, &listing, err);
    if (result == 0)
        print(&listing, text);
    podresources_free(p);
    arena_deinit(&a);
    return result;
}

static int list_once(const char *socket)
{
    struct error err = ERROR_INIT;
    AUTO_STRBUF text;
    strbuf_init(&text);
    int result = list(socket, &text, &err);
    if (result == 0)
        (void)printf("%s\n", strbuf_str(&text));
    else
        (void)fprintf(stderr, "podresources_list: %s\n", err.text);
    return result == 0 ? 0 : 1;
}

static int list_each(void)
{
    char socket[PATH_MAX];
    while (fgets(socket, (int)sizeof socket, stdin) != NULL) {
        struct error err = ERROR_INIT;
        AUTO_STRBUF text;
        strbuf_init(&text);
        socket[strcspn(socket, "\n")] = '\0';
        if (list(socket, &text, &err) == 0)
            (void)printf("%s\n", strbuf_str(&text));
        else
            (void)printf("error: %s\n", err.text);
        (void)fflush(stdout);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        (void)fprintf(stderr, "usage: podresources_list SOCKET|-\n");
        return 2;
    }
    rpc_init();
    int result = str_eq(argv[1], "-") ? list_each() : list_once(argv[1]);
    rpc_shutdown();
    return result;
}
