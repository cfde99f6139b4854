// SPDX-License-Identifier: Apache-2.0
#include "scheduler/replay/replay_load_head.h"

#include "lib/base/str.h"
#include "lib/kube/decode_field.h"
#include "scheduler/dump/dump.h"
#include "scheduler/replay/replay_load.h"

static void read_burst(struct replay_load *l, json *own, const char *where)
{
    struct error err = ERROR_INIT;
    const char *gangs = json_get_str(own, "gangBurst");
    if (str_eq(gangs, CLUSTER_BURST_WHOLE_NAME))
        l->cluster->gang_burst = CLUSTER_BURST_WHOLE;
    else if (str_eq(gangs, CLUSTER_BURST_MEMBER_NAME))
        l->cluster->gang_burst = CLUSTER_BURST_MEMBER;
    if (cluster_set_virtuals(l->cluster, json_get_str(own, "virtualNodeLabels"),
                             json_get_str(own, "virtualNodeTaints"), &err) < 0)
        replay_load_refuse(l, where, &err);
}

bool replay_load_head_read(struct replay_load *l, json *own, const char *where)
{
    const char *name = json_get_str(own, "schedulerName");
    int64_t version = DUMP_VERSION;
    if (json_get_int(own, "dump", &version) && version != DUMP_VERSION) {
        struct error err = ERROR_INIT;
        error_set(&err, ERROR_UNSUPPORTED,
                  "cosched.dump: version %lld of the dump, this program reads %d",
                  (long long)version, DUMP_VERSION);
        replay_load_refuse(l, where, &err);
        return false;
    }
    if (!l->scored && str_eq(json_get_str(own, "scoring"), CLUSTER_FULLEST_NAME))
        l->cluster->packing = CLUSTER_FULLEST_FIRST;
    if (name != NULL && !l->named) {
        l->cluster->scheduler_name = arena_strdup(&l->arena, name);
        l->named = true;
    }
    struct error err = ERROR_INIT;
    if (decode_field_time(json_get(own, "policiesAt"), "cosched.policiesAt",
                          &l->cluster->policies->now_ns, &err) < 0)
        replay_load_refuse(l, where, &err);
    if (own != NULL)
        read_burst(l, own, where);
    return true;
}
