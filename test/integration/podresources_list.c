// SPDX-License-Identifier: Apache-2.0
/*
 * podresources_list - what a kubelet's pod resources service says at this moment, for the suites: they speak no gRPC.
 *
 *     podresources_list SOCKET
 *
 * One line of JSON: {"ns/pod": {"container": {"aliyun.com/gpu-mem": ["GPU-a-_-0", …]}}}, resources that are ours.
 * Ordinary init containers are not in it: the kubelet does not list them.
 */
#include <stdio.h>

#include "device-plugin/podresources.h"
#include "device-plugin/rpc.h"
#include "lib/base/json.h"

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

int main(int argc, char **argv)
{
    struct error err = ERROR_INIT;
    struct podresources *p = NULL;
    struct match_listing listing;
    struct arena a;
    if (argc != 2) {
        (void)fprintf(stderr, "usage: podresources_list SOCKET\n");
        return 2;
    }
    AUTO_STRBUF text;
    strbuf_init(&text);
    arena_init(&a, 0);
    rpc_init();
    int result = podresources_new(&p, argv[1], &err);
    if (result == 0)
        result = podresources_list(p, LIST_MS, &a, &listing, &err);
    if (result == 0) {
        print(&listing, &text);
        (void)printf("%s\n", strbuf_str(&text));
    } else {
        (void)fprintf(stderr, "podresources_list: %s\n", err.text);
    }
    podresources_free(p);
    rpc_shutdown();
    arena_deinit(&a);
    return result == 0 ? 0 : 1;
}
