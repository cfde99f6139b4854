// SPDX-License-Identifier: Apache-2.0
/* The thread lives for one page: it starts when the page's token is known, and is joined before the
 * page is used. So each field belongs to one thread at a time (token, version and next to the
 * thread while `ahead`, the rest to the caller), and no lock is needed. Starting a thread costs a
 * thousandth of a full page. If that fails, the page is fetched when the caller wants it. */
#include "lib/kube/list_pager.h"

#include <string.h>

#include "lib/base/num.h"

void list_pager_init(struct list_pager *p, const struct list_pager_config *c)
{
    *p = (struct list_pager){.config = *c, .limit = c->limit};
    p->one[0].memory.keep = p->one[1].memory.keep = SIZE_MAX;
    p->now = &p->one[0];
    p->next = &p->one[1];
}

static void discard(struct list_pager_one *one)
{
    json_free(one->doc);
    one->doc = NULL;
    strbuf_reset(&one->body);
}

static int read_meta(struct list_pager *p, json *root, struct error *err)
{
    json *meta = json_get(root, "metadata");
    const char *version = str_or_empty(json_get_str(meta, "resourceVersion"));
    if (!version[0] || strlen(version) >= LIST_PAGER_VERSION_SIZE)
        return error_set(err, ERROR_INVALID, "metadata.resourceVersion: '%.32s'", version);
    if (!p->version[0]) /* from the first page */
        memcpy(p->version, version, strlen(version) + 1);
    strbuf_reset(&p->token);
    strbuf_adds(&p->token, str_or_empty(json_get_str(meta, "continue")));
    return 0;
}

static int parse(struct list_pager *p, struct list_pager_one *one, struct error *err)
{
    strbuf_reserve(&one->body, JSON_PADDING);
    if (json_parse_within(&one->doc, one->body.ptr, one->body.len, &one->memory, err) < 0 ||
        read_meta(p, json_root(one->doc), err) < 0)
        return error_wrap(err, "list");
    return 0;
}

static int fetch_once(struct list_pager *p, struct list_pager_one *one, struct error *err)
{
    AUTO_STRBUF path = {0};
    strbuf_addf(&path, "%s?limit=%lld%s", p->config.path, (long long)p->limit, p->config.query);
    if (p->token.len > 0) {
        strbuf_adds(&path, "&continue=");
        kube_http_escape(&path, strbuf_str(&p->token));
    } else if (!p->config.consistent) {
        strbuf_adds(&path, "&resourceVersion=0");
    }
    struct kube_request q = {.method = "GET",
                             .path = strbuf_str(&path),
                             .timeout_ms = p->config.timeout_ms,
                             .idle_ms = p->config.idle_ms,
                             .max_bytes = p->config.max_bytes};
    discard(one);
    if (kube_http_do(p->config.http, &q, &one->body, NULL, NULL, err) < 0)
        return -1;
    return parse(p, one, err);
}

static int fetch(struct list_pager *p, struct list_pager_one *one, struct error *err)
{
    struct error why = ERROR_INIT;
    while (fetch_once(p, one, &why) < 0) {
        if (why.code != ERROR_TOO_LARGE || p->limit == 1) {
            if (err != NULL)
                *err = why;
            return -1;
        }
        p->limit = num_max(p->limit / 2, 1);
        p->config.consistent = true; /* a watch cache ignores the limit */
        error_clear(&why);
    }
    p->limit = num_min(p->limit * 2, p->config.limit);
    return 0;
}

static void *worker_fetch(void *arg)
{
    struct list_pager *p = arg;
    (void)pthread_setname_np(pthread_self(), "list");
    p->next->rc = fetch(p, p->next, &p->next->err);
    return NULL;
}

static void join(struct list_pager *p)
{
    if (p->ahead)
        pthread_join(p->thread, NULL);
    p->ahead = false;
}

/* Makes the next page the current one. */
static int turn(struct list_pager *p, struct error *err)
{
    if (!p->ahead)
        return fetch(p, p->now, err);
    join(p);
    struct list_pager_one *done = p->now;
    p->now = p->next;
    p->next = done;
    discard(p->next);
    if (p->now->rc < 0 && err != NULL)
        *err = p->now->err;
    return p->now->rc;
}

int list_pager_next(struct list_pager *p, json **root, struct error *err)
{
    if (p->begun && !p->more)
        return 0;
    p->begun = true;
    p->more = false;
    if (turn(p, err) < 0)
        return -1;
    p->more = p->token.len > 0;
    error_clear(&p->next->err);
    /* Two pages of objects that tenants made large would be too much memory at once. */
    bool small = (int64_t)p->now->body.len <= p->config.max_bytes / 4;
    p->ahead = p->more && small && pthread_create(&p->thread, NULL, worker_fetch, p) == 0;
    *root = json_root(p->now->doc);
    return 1;
}

const char *list_pager_version(const struct list_pager *p)
{
    return p->version;
}

void list_pager_deinit(struct list_pager *p)
{
    join(p);
    for (size_t i = 0; i < 2; i++) {
        discard(&p->one[i]);
        json_memory_deinit(&p->one[i].memory);
        strbuf_deinit(&p->one[i].body);
    }
    strbuf_deinit(&p->token);
}
