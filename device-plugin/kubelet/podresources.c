// SPDX-License-Identifier: Apache-2.0
/* The kubelet serves 100 of these calls a second, ten at once, and refuses the rest. A burst of
 * pods makes more: two per resource of each admitted container, one per container start. A failed
 * call would reject the pod for good, so throttled calls are retried until the timeout. */
#include "device-plugin/kubelet/podresources.h"

#include <stdlib.h>

#include "device-plugin/kubelet/rpc.h"
#include "device-plugin/kubelet/wire.h"
#include "lib/base/mem.h"
#include "lib/base/clock.h"

enum { PAUSE_MS = 10 /* the kubelet allows one more call per pause */ };

struct podresources {
    struct rpc_channel *channel;
};

int podresources_new(struct podresources **out, const char *socket, struct error *err)
{
    struct rpc_channel *channel;
    if (rpc_channel_new(&channel, socket, err) < 0)
        return -1;
    struct podresources *p = mem_new(struct podresources, 1);
    p->channel = channel;
    *out = p;
    return 0;
}

void podresources_free(struct podresources *p)
{
    if (p == NULL)
        return;
    rpc_channel_free(p->channel);
    free(p);
}

int podresources_list(struct podresources *p, int64_t timeout_ms, struct arena *a,
                      struct match_listing *out, struct error *err)
{
    AUTO_STRBUF reply;
    strbuf_init(&reply);
    int64_t end_ms = clock_mono_ms() + timeout_ms, left_ms = timeout_ms;
    int result;
    for (;;) {
        struct error why = ERROR_INIT;
        result = rpc_channel_call(p->channel, WIRE_LIST_PODS, "", 0, left_ms, true, &reply, &why);
        left_ms = end_ms - clock_mono_ms() - PAUSE_MS;
        if (result == 0 || why.code != ERROR_THROTTLED || left_ms <= 0) {
            if (result < 0 && err != NULL)
                *err = why;
            break;
        }
        clock_sleep_ms(PAUSE_MS);
    }
    if (result < 0 || wire_decode_pods(strbuf_str(&reply), reply.len, a, out, err) < 0)
        return error_wrap(err, "pod resources");
    return 0;
}
