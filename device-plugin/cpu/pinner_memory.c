// SPDX-License-Identifier: Apache-2.0
/*
 * pinner_memory - keeps what was confirmed over restarts: STATE-DIR/cpu-claims.json
 *
 *   {"v":1,"pool":false,"pods":[{"uid":"…","cpuset":"{\"main\":{\"0\":{\"elems\":{\"1\":{}}}}}",
 *                                "released":false,"limits":[1000]}]}
 *
 * The answer in cosched.io/cpuset-applied has the same content, but anyone who may edit a pod may
 * edit it, and nothing repairs it while the pinner is down. So a grant is saved before it is
 * answered, and after a restart the file decides: a pod that is not in it was never confirmed here,
 * whatever its annotations say. The annotation is used only if there is no readable file. limits
 * are the containers' limits.cpu in thousandths, to notice a resize. pool records --shared-pool, so
 * that a process started without it knows that it must give CPUs back. Deleted pods are dropped
 * with the next write, but not before the first list of pods.
 */
#include "device-plugin/cpu/pinner_internal.h"

#include <string.h>
#include <sys/stat.h>

#include "lib/base/statefile.h"
#include "lib/base/json.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define MEMORY_FILE "cpu-claims.json"

enum { FILE_BYTES_MAX = 16 * 1024 * 1024, PODS_MAX = 8192, UID_MAX = 128, CONTAINERS_MAX = 4096 };

static int recall_one(json *j, void *user, struct error *err)
{
    struct pinner_memory *m = user;
    const char *uid = json_get_str(j, "uid"), *text = json_get_str(j, "cpuset");
    if (uid == NULL || uid[0] == '\0' || strlen(uid) > UID_MAX)
        return error_set(err, ERROR_INVALID, "uid: must be a text of 1 to %d bytes", UID_MAX);
    if (text == NULL || text[0] == '\0' || strlen(text) > CPU_GRANT_BYTES_MAX)
        return error_set(err, ERROR_INVALID, "cpuset: must be a text of 1 to %d bytes",
                         CPU_GRANT_BYTES_MAX);
    json *limits = json_get(j, "limits");
    if (limits != NULL && (!json_is_array(limits) || json_len(limits) > CONTAINERS_MAX))
        return error_set(err, ERROR_INVALID, "limits: must be an array of at most %d",
                         CONTAINERS_MAX);
    struct pinner_remembered *r = arena_new(&m->arena, struct pinner_remembered, 1);
    r->limits_milli = arena_new(&m->arena, int64_t, json_len(limits));
    for (struct json_iter it = json_iter(limits); json_next(&it);)
        if (!json_int(it.value, &r->limits_milli[r->limits_len++]))
            return error_set(err, ERROR_INVALID, "limits: must be integers");
    r->text = arena_strdup(&m->arena, text);
    r->released = json_get_bool(j, "released", false);
    (void)map_put(&m->grants, arena_strdup(&m->arena, uid), r);
    return 0;
}

static void recall_rest(json *root, void *user)
{
    struct pinner_memory *m = user;
    m->known = true;
    m->pool = json_get_bool(root, "pool", false);
}

void pinner_memory_load(struct pinner *p)
{
    const struct statefile_list file = {.dir = p->config.state_dir,
                                        .name = MEMORY_FILE,
                                        .list = "pods",
                                        .bytes_max = FILE_BYTES_MAX,
                                        .max = PODS_MAX,
                                        .root = recall_rest};
    struct error err = ERROR_INIT;
    arena_init(&p->memory.arena, 0);
    map_init(&p->memory.grants);
    if (file.dir != NULL && statefile_read(&file, recall_one, &p->memory, &err) < 0)
        log_warn("state file ignored, the CPUs confirmed in the pods' annotations count",
                 kv("error", err.text));
}

void pinner_memory_forget(struct pinner *p)
{
    map_deinit(&p->memory.grants);
    map_init(&p->memory.grants);
    arena_deinit(&p->memory.arena);
    arena_init(&p->memory.arena, 0);
}

void pinner_memory_deinit(struct pinner *p)
{
    map_deinit(&p->memory.grants);
    arena_deinit(&p->memory.arena);
}

const struct pinner_remembered *pinner_memory_find(const struct pinner *p, const char *uid)
{
    return map_get(&p->memory.grants, uid);
}

/* Up to limits, which the caller adds. */
static void put_begin(struct json_writer *w, const char *uid, const char *text, bool released)
{
    json_object_begin(w);
    json_kv_str(w, "uid", uid);
    json_kv_str(w, "cpuset", text);
    json_kv_bool(w, "released", released);
    json_key(w, "limits");
    json_array_begin(w);
}

static void put_end(struct json_writer *w)
{
    json_array_end(w);
    json_object_end(w);
}

static void put_pod(struct json_writer *w, const struct pinner_pod *x)
{
    put_begin(w, x->pod->uid, x->held_text, x->released);
    for (size_t i = 0; i < pod_container_count(x->pod); i++)
        json_put_int(w, pod_container(x->pod, i)->limits.cpu_milli);
    put_end(w);
}

static void print(struct pinner *p, struct strbuf *out)
{
    struct json_writer w;
    const char *key;
    void *value;
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_kv_int(&w, "v", 1);
    json_kv_bool(&w, "pool", p->config.shared_pool || p->give_back);
    json_key(&w, "pods");
    json_array_begin(&w);
    for (size_t i = 0; map_next(&p->pods, &i, &key, &value);) {
        const struct pinner_pod *x = value;
        if (x->held.len > 0)
            put_pod(&w, x);
        (void)map_remove(&p->memory.grants, key);
    }
    for (size_t i = 0; map_next(&p->memory.grants, &i, &key, &value);) {
        const struct pinner_remembered *r = value;
        put_begin(&w, key, r->text, r->released);
        for (size_t k = 0; k < r->limits_len; k++)
            json_put_int(&w, r->limits_milli[k]);
        put_end(&w);
    }
    json_array_end(&w);
    json_object_end(&w);
    strbuf_adds(out, "\n");
}

void pinner_memory_save(struct pinner *p)
{
    struct pinner_memory *m = &p->memory;
    AUTO_STRBUF text;
    struct error err = ERROR_INIT;
    strbuf_init(&text);
    if (!m->unsaved || p->config.state_dir == NULL)
        return;
    print(p, &text);
    (void)mkdir(p->config.state_dir, 0755); /* if this fails, so does the write */
    if (statefile_write(p->config.state_dir, MEMORY_FILE, text.ptr, text.len, &err) == 0) {
        m->unsaved = false;
        m->known = true;
    }
    if (error_is_news(m->complaint, err.text))
        log_error("pods' CPUs would not be remembered over a restart", kv("error", err.text));
}
