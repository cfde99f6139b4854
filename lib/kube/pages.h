// SPDX-License-Identifier: Apache-2.0
/*
 * pages - a list, page after page: while one is being read the next is fetched and parsed, on a thread of its own. So server and reader work at the same time,
 * and a long list takes as long as the slower of them. At most two pages are in memory.
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

enum { PAGES_VERSION_SIZE = 128 };

struct pages_config {
    struct kube_http *http; /* ours until pages_deinit, but for kube_http_cancel */
    const char *path;       /* with a query: limit, selectors */
    bool consistent;        /* the first page is of the latest state, not from a watch cache */
    int64_t timeout_ms;     /* of a page */
    int64_t idle_ms;        /* between two pieces of it */
    int64_t max_bytes;      /* of a page */
};

struct pages_one {
    struct strbuf body;
    struct json_memory memory; /* of doc */
    struct json_doc *doc;
    int rc;
    struct error err;
};

struct pages {
    struct pages_config config;
    struct strbuf token; /* of the next page; empty: the first, or no more */
    char version[PAGES_VERSION_SIZE];
    struct pages_one one[2], *now, *next;
    pthread_t thread;
    bool begun;
    bool ahead; /* the thread is at the next one */
    bool more;  /* another page follows the one that was given out last */
};

void pages_init(struct pages *p, const struct pages_config *c);
/* Waits for the thread: after kube_http_cancel not for long. */
void pages_deinit(struct pages *p);
/* 1: *root is the next page, valid until the next call. 0: that was all. -1: err says why. */
int pages_next(struct pages *p, json **root, struct error *err);
/* The resourceVersion of the list, once there was a page. Whatever changed while the others were turned is told by a watch from there. */
const char *pages_version(const struct pages *p);
