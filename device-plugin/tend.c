// SPDX-License-Identifier: Apache-2.0
/*
 * tend - the state file {"v":1,"pods":[…]}: the pods of this node that ask for GPUs, in the API's own form and reduced to what
 * a claim needs. It is a few hundred bytes for each, written a second after something changed and not otherwise. Everything in
 * it can be rebuilt: from the API server's list, or from the kubelet's books. So nothing here stops the plugin; what cannot be
 * read or written is one line in the log, and the next second it is tried again.
 */
#include "device-plugin/tend.h"

#include <stdlib.h>
#include <unistd.h>

#include "device-plugin/statefile.h"
#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/kube/decode.h"

struct tend {
    struct loop *loop;
    struct service *service;
    char *dir;
    struct loop_timer timer;
    uint64_t saved;                                                /* version of the service */
    struct strbuf text;                                            /* what the file holds */
    char save_error[ERROR_TEXT_SIZE], list_error[ERROR_TEXT_SIZE]; /* said once */
};

static int restore(struct tend *t, const char *text, size_t n, struct error *err)
{
    AUTO_JSON *doc = NULL;
    int64_t version = 0;
    if (json_parse(&doc, text, n, err) < 0)
        return -1;
    if (!json_get_int(json_root(doc), "v", &version) || version != 1)
        return error_set(err, ERROR_INVALID, "v: must be 1");
    json *pods = json_get(json_root(doc), "pods");
    if (!json_is_array(pods) || json_len(pods) > TEND_PODS_MAX)
        return error_set(err, ERROR_INVALID, "pods: must be an array of at most %d", TEND_PODS_MAX);
    size_t i = 0, taken = 0;
    for (struct json_iter it = json_iter(pods); json_next(&it); i++) {
        struct pod *p = NULL;
        struct error why = ERROR_INIT;
        if (decode_pod(it.value, &p, &why) < 0) {
            log_warn("a remembered pod is left out", kv("at", i), kv("error", why.text));
            continue;
        }
        service_put_pod(t->service, p);
        taken++;
    }
    log_info("pods remembered", kv("pods", taken));
    return 0;
}

static void load(struct tend *t)
{
    AUTO_STRBUF path;
    AUTO_STRBUF text;
    struct error err = ERROR_INIT;
    strbuf_init(&path);
    strbuf_init(&text);
    strbuf_addf(&path, "%s/%s", t->dir, TEND_FILE);
    if (access(strbuf_str(&path), F_OK) < 0)
        return;
    if (file_read(strbuf_str(&path), TEND_BYTES_MAX, &text, &err) < 0 ||
        restore(t, strbuf_str(&text), text.len, &err) < 0)
        log_warn("state file ignored, the API server and the kubelet know the pods",
                 kv("file", strbuf_str(&path)), kv("error", err.text));
}

/* Is this text another than the one remembered? Then it is remembered. "": all is well again. */
static bool is_news(char last[ERROR_TEXT_SIZE], const char *text)
{
    bool news = !str_eq(last, text);
    (void)str_format(last, ERROR_TEXT_SIZE, "%s", text);
    return news && text[0] != '\0';
}

static void save(struct tend *t)
{
    uint64_t version = service_version(t->service);
    if (version == t->saved)
        return;
    AUTO_STRBUF text;
    struct error err = ERROR_INIT;
    strbuf_init(&text);
    strbuf_adds(&text, "{\"v\":1,\"pods\":");
    service_print_pods(t->service, &text);
    strbuf_adds(&text, "}\n");
    bool same = str_eq(strbuf_str(&text), strbuf_str(&t->text));
    if (!same && statefile_write(t->dir, TEND_FILE, text.ptr, text.len, &err) < 0) {
        if (is_news(t->save_error, err.text))
            log_error("the pods would not be remembered over a restart", kv("error", err.text));
        return;
    }
    t->save_error[0] = '\0';
    t->saved = version;
    strbuf_reset(&t->text);
    strbuf_add(&t->text, text.ptr, text.len);
}

static void tend(void *arg)
{
    struct tend *t = arg;
    struct error err = ERROR_INIT;
    if (service_reconcile(t->service, TEND_LIST_MS, &err) < 0 && is_news(t->list_error, err.text))
        log_warn("cannot see whether promises are kept", kv("error", err.text));
    save(t);
    loop_timer_set(t->loop, &t->timer, TEND_MS, tend, t);
}

void tend_new(struct tend **out, struct loop *loop, struct service *service, const char *state_dir)
{
    struct tend *t = mem_new(struct tend, 1);
    t->loop = loop;
    t->service = service;
    t->dir = mem_strdup(state_dir);
    strbuf_init(&t->text);
    load(t);
    loop_timer_set(loop, &t->timer, TEND_MS, tend, t);
    *out = t;
}

void tend_free(struct tend *t)
{
    if (t == NULL)
        return;
    loop_timer_cancel(t->loop, &t->timer);
    save(t);
    strbuf_deinit(&t->text);
    free(t->dir);
    free(t);
}
