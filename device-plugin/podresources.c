// SPDX-License-Identifier: Apache-2.0
/* podresources - see the header. The kubelet allows 100 calls a second: we make one per admission step. */
#include "device-plugin/podresources.h"

#include <stdlib.h>

#include "device-plugin/rpc.h"
#include "device-plugin/wire.h"

struct podresources {
    struct rpc_channel *channel;
};

int podresources_new(struct podresources **out, const char *socket, struct error *err)
{
    struct rpc_channel *channel;
    if (rpc_channel_new(&channel, socket, err) < 0)
        return -1;
    struct podresources *p = calloc(1, sizeof *p);
    if (p == NULL)
        abort();
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
    if (rpc_channel_call(p->channel, WIRE_LIST_PODS, "", 0, timeout_ms, true, &reply, err) < 0 ||
        wire_decode_pods(strbuf_str(&reply), reply.len, a, out, err) < 0)
        return error_wrap(err, "pod resources");
    return 0;
}
