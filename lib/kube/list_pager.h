// SPDX-License-Identifier: Apache-2.0
/*
 * list_pager - a list, page after page: while one is being read the next is fetched and parsed, on
 * a thread of its own. So server and reader work at the same time, and a long list takes as long as
 * the slower of them. At most two pages are in memory.
 */
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
    struct kube_http *http; /* ours until list_pager_deinit, but for kube_http_cancel */
    const char *path;       /* with a query: limit, selectors */
    bool consistent;        /* the first page is of the latest state, not from a watch cache */
    int64_t timeout_ms;     /* of a page */
    int64_t idle_ms;        /* between two pieces of it */
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
    struct strbuf token; /* of the next page; empty: the first, or no more */
    char version[LIST_PAGER_VERSION_SIZE];
    struct list_pager_one one[2], *now, *next;
    pthread_t thread;
    bool begun;
    bool ahead; /* the thread is at the next one */
    bool more;  /* another page follows the one that was given out last */
};

void list_pager_init(struct list_pager *p, const struct list_pager_config *c);
/* Waits for the thread: after kube_http_cancel not for long. */
void list_pager_deinit(struct list_pager *p);
/* 1: *root is the next page, valid until the next call. 0: that was all. -1: err says why. */
int list_pager_next(struct list_pager *p, json **root, struct error *err);
/* The resourceVersion of the list, once there was a page. Whatever changed while the others were
 * turned is told by a watch from there. */
const char *list_pager_version(const struct list_pager *p);
