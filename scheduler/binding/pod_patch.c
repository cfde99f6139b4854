// SPDX-License-Identifier: Apache-2.0
#include "scheduler/binding/pod_patch.h"

#include "lib/base/clock.h"

void pod_patch_begin(struct json_writer *w, struct strbuf *out, const char *uid,
                     const char *version)
{
    json_writer_init(w, out);
    json_object_begin(w);
    json_key(w, "metadata");
    json_object_begin(w);
    json_kv_str(w, "uid", uid);
    if (version != NULL)
        json_kv_str(w, "resourceVersion", version);
}

void pod_patch_condition(struct strbuf *out, const char *uid, const char *version,
                         const struct pod_patch_condition *c)
{
    struct json_writer w;
    pod_patch_begin(&w, out, uid, version);
    json_object_end(&w);
    json_key(&w, "status");
    json_object_begin(&w);
    json_key(&w, "conditions");
    json_array_begin(&w);
    json_object_begin(&w);
    json_kv_str(&w, "type", c->type);
    json_kv_str(&w, "status", c->status);
    json_kv_str(&w, "reason", c->reason);
    json_kv_str(&w, "message", c->message);
    if (c->since != NULL)
        json_kv_str(&w, "lastTransitionTime", c->since);
    json_object_end(&w);
    json_array_end(&w);
    json_object_end(&w);
    json_object_end(&w);
}

void pod_patch_nominated(struct strbuf *out, const char *uid, const char *node)
{
    struct json_writer w;
    pod_patch_begin(&w, out, uid, NULL);
    json_object_end(&w);
    json_key(&w, "status");
    json_object_begin(&w);
    json_kv_str(&w, "nominatedNodeName", node);
    json_object_end(&w);
    json_object_end(&w);
}

static void put_texts(struct json_writer *w, const char *name, const struct labels *l)
{
    if (l == NULL || l->len == 0)
        return;
    json_key(w, name);
    json_object_begin(w);
    for (size_t i = 0; i < l->len; i++)
        json_kv_str(w, l->items[i].key, l->items[i].value);
    json_object_end(w);
}

void pod_patch_metadata(struct strbuf *out, const char *uid, const struct labels *annotations,
                        const struct labels *labels)
{
    struct json_writer w;
    pod_patch_begin(&w, out, uid, NULL);
    put_texts(&w, "annotations", annotations);
    put_texts(&w, "labels", labels);
    json_object_end(&w);
    json_object_end(&w);
}

void pod_patch_annotation(struct strbuf *out, const char *uid, const char *key, const char *value)
{
    struct label one = {.key = key, .value = value};
    pod_patch_metadata(out, uid, &(struct labels){&one, 1}, NULL);
}

void pod_patch_group(struct strbuf *out, const struct pod_group *g, const struct progress *now)
{
    struct json_writer w;
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_key(&w, "metadata");
    json_object_begin(&w);
    json_kv_str(&w, "uid", g->uid);
    json_object_end(&w);
    json_key(&w, "status");
    json_object_begin(&w);
    json_kv_str(&w, "phase", now->phase);
    json_kv_int(&w, "scheduled", now->scheduled);
    json_kv_int(&w, "running", now->running);
    json_kv_int(&w, "succeeded", now->succeeded);
    json_kv_int(&w, "failed", now->failed);
    json_key(&w, "scheduleStartTime");
    if (now->schedule_start_ns > 0) {
        char at[CLOCK_RFC3339_SIZE];
        clock_rfc3339(now->schedule_start_ns, 0, at);
        json_put_str(&w, at);
    } else {
        json_put_null(&w);
    }
    json_object_end(&w);
    json_object_end(&w);
}
