// SPDX-License-Identifier: Apache-2.0
/*
 * tend - the state file {"v":1,"pods":[…]}: the pods of this node that ask for GPUs, in the API's own form and reduced to what
 * a claim needs. It is a few hundred bytes for each, written a second after something changed and not otherwise. Everything in
 * it can be rebuilt: from the API server's list, or from the kubelet's books. So nothing here stops the plugin; what cannot be
 * read or written is one line in the log, and it is tried again.
 *
 *   tend_poke (any thread) ──eventfd──► TEND_MS later: tend ── all done ──► sleeps until the next poke
 *                                                       └── not all ──► again, each time twice as late, up to TEND_SLOW_MS
 *
 * What remains to be done is most often a stranger: containers hold ids for a pod that the watch has not brought. When it does,
 * that is a poke; the slow repeats are for a kubelet that does not answer and a disk that is full.
 */
#include "device-plugin/kubelet/tend.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/statefile.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/kube/decode.h"

struct tend {
    struct loop *loop;
    struct service *service;
    char *dir;
    int poked_fd; /* eventfd */
    struct loop_timer timer;
    int64_t due_ms;                                                /* of the timer; 0: not set */
    int64_t wait_ms;                                               /* before the next repeat */
    uint64_t saved;                                                /* version of the service */
    struct strbuf text;                                            /* what the file holds */
    char save_error[ERROR_TEXT_SIZE], list_error[ERROR_TEXT_SIZE]; /* said once */
};

static int restore(json *j, void *user, struct error *err)
{
    struct tend *t = user;
    struct pod *p = NULL;
    if (decode_pod(j, &p, err) < 0)
        return -1;
    service_put_pod(t->service, p);
    return 0;
}

static void load(struct tend *t)
{
    const struct statefile_list file = {.dir = t->dir,
                                        .name = TEND_FILE,
                                        .list = "pods",
                                        .bytes_max = TEND_BYTES_MAX,
                                        .max = TEND_PODS_MAX};
    struct error err = ERROR_INIT;
    int taken = statefile_read(&file, restore, t, &err);
    if (taken < 0)
        log_warn("state file ignored, the API server and the kubelet know the pods",
                 kv("error", err.text));
    else
        log_info("pods remembered", kv("pods", taken));
}

/* Is this text another than the one remembered? Then it is remembered. "": all is well again. */
static bool is_news(char last[ERROR_TEXT_SIZE], const char *text)
{
    bool news = !str_eq(last, text);
    (void)str_format(last, ERROR_TEXT_SIZE, "%s", text);
    return news && text[0] != '\0';
}

/* false: it has to be tried again. */
static bool save(struct tend *t)
{
    uint64_t version = service_version(t->service);
    if (version == t->saved)
        return true;
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
        return false;
    }
    t->save_error[0] = '\0';
    t->saved = version;
    strbuf_reset(&t->text);
    strbuf_add(&t->text, text.ptr, text.len);
    return true;
}

static void tend(void *arg);

static void tend_in(struct tend *t, int64_t ms)
{
    t->due_ms = clock_mono_ms() + ms;
    loop_timer_set(t->loop, &t->timer, ms, tend, t);
}

static void tend(void *arg)
{
    struct tend *t = arg;
    struct error err = ERROR_INIT;
    t->due_ms = 0;
    if (service_reconcile(t->service, TEND_LIST_MS, &err) < 0 && is_news(t->list_error, err.text))
        log_warn("cannot see whether promises are kept", kv("error", err.text));
    bool saved = save(t);
    if (saved && !service_owes(t->service)) {
        t->wait_ms = TEND_MS;
        return;
    }
    t->wait_ms = num_min(t->wait_ms * 2, TEND_SLOW_MS);
    tend_in(t, t->wait_ms);
}

void tend_poke(const struct tend *t)
{
    uint64_t one = 1;
    /* It can only fail when the counter is full: then the loop is awake already. */
    if (write(t->poked_fd, &one, sizeof one) < 0)
        return;
}

static void on_poked(void *arg, uint32_t events)
{
    struct tend *t = arg;
    uint64_t n;
    (void)events;
    if (read(t->poked_fd, &n, sizeof n) < 0)
        return;
    t->wait_ms = TEND_MS;
    /* One that is due before stays: whoever pokes all the time does not put it off. */
    if (t->due_ms == 0 || t->due_ms > clock_mono_ms() + TEND_MS)
        tend_in(t, TEND_MS);
}

int tend_new(struct tend **out, struct loop *loop, struct service *service, const char *state_dir,
             struct error *err)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return error_errno(err, errno, "eventfd");
    struct tend *t = mem_new(struct tend, 1);
    t->loop = loop;
    t->service = service;
    t->poked_fd = fd;
    t->wait_ms = TEND_MS;
    t->dir = mem_strdup(state_dir);
    strbuf_init(&t->text);
    if (loop_watch_fd(loop, fd, EPOLLIN, on_poked, t, err) < 0) {
        close(fd);
        strbuf_deinit(&t->text);
        free(t->dir);
        free(t);
        return -1;
    }
    load(t);
    tend_in(t, TEND_MS);
    *out = t;
    return 0;
}

void tend_free(struct tend *t)
{
    if (t == NULL)
        return;
    loop_timer_cancel(t->loop, &t->timer);
    loop_unwatch_fd(t->loop, t->poked_fd);
    close(t->poked_fd);
    (void)save(t);
    strbuf_deinit(&t->text);
    free(t->dir);
    free(t);
}
