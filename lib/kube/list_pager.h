// SPDX-License-Identifier: Apache-2.0
/* list_pager - a list, page by page: while the caller reads one, a thread fetches and parses the
 * next, so a long list takes as long as the slower of server and reader. At most two pages are in
 * memory.
 *
 * How large objects are is for their owners to choose, so a page that exceeds max_bytes is asked
 * for again with fewer objects, and the pages after it grow again. Only an object that alone
 * exceeds it is an error. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/base/str.h"
#include "lib/kube/http.h"

enum { LIST_PAGER_VERSION_SIZE = 128 };

struct list_pager_config {
    struct kube_http *http; /* ours until list_pager_deinit, except for kube_http_cancel */
    const char *path;       /* without a query */
    const char *query;      /* "&labelSelector=...", or "" */
    int64_t limit;          /* the most objects of a page */
    bool consistent;        /* the first page is the latest state, not from a watch cache */
    int64_t timeout_ms;     /* of a page */
    int64_t idle_ms;        /* longest silence within a page */
    int64_t max_bytes;      /* of a page */
};

struct list_pager_one {
    struct strbuf body;
    struct json_memory memory; /* of doc */
    struct json_doc *doc;
    int rc;
    struct error err;
};

struct list_pager {
    struct list_pager_config config;
    struct strbuf token; /* of the next page; empty: first page, or no more */
    int64_t limit;       /* of the next page */
    char version[LIST_PAGER_VERSION_SIZE];
    struct list_pager_one one[2], *now, *next;
    pthread_t thread;
    bool begun;
    bool ahead; /* the thread works on the next page */
    bool more;  /* another page follows the last one returned */
};

void list_pager_init(struct list_pager *p, const struct list_pager_config *c);
/* Waits for the thread, which ends soon after kube_http_cancel. */
void list_pager_deinit(struct list_pager *p);
/* 1: *root is the next page, valid until the next call. 0: no more. -1: error. */
int list_pager_next(struct list_pager *p, json **root, struct error *err);
/* The list's resourceVersion, after the first page. A watch from there reports what changed while
 * later pages were read. */
const char *list_pager_version(const struct list_pager *p);
