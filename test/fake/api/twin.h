// SPDX-License-Identifier: Apache-2.0
/*
 * twin - a small API server for unit tests, on 127.0.0.1, that misbehaves on demand.
 *
 * It keeps pods (a list in pages, a watch with bookmarks and resume, a compaction floor) and Leases
 * (GET, POST, PUT with resourceVersion), takes Events, and answers anything else from a script.
 * Faults are queued: the next request of their class meets the first one. A running watch is broken
 * by twin_break.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/str.h"
#include "lib/kube/config.h"

struct twin;

enum twin_class { TWIN_LIST, TWIN_WATCH, TWIN_OTHER, TWIN_ANY };

enum twin_fault {
    TWIN_NONE,
    TWIN_CUT_LINE,    /* closes in the middle of a line, at the end of a chunk */
    TWIN_CUT_CHUNK,   /* closes in the middle of a chunk */
    TWIN_RESET,       /* a TCP reset instead of an answer */
    TWIN_CLOSE,       /* closes without an answer; a watch: ends in good order at once */
    TWIN_HANG,        /* reads the request and says nothing more */
    TWIN_HANG_MIDWAY, /* headers and a few bytes, then nothing */
    TWIN_TRICKLE,     /* the right answer, a few bytes at a time */
    TWIN_THROTTLE,    /* 429 with Retry-After: 1 */
    TWIN_500,
    TWIN_GONE_STATUS,  /* 410 */
    TWIN_GONE_EVENT,   /* 410 as an ERROR event under 200; on others like TWIN_GONE_STATUS */
    TWIN_REDIRECT,     /* 302 to itself */
    TWIN_HTML,         /* 200 and a page that is not JSON */
    TWIN_OVERSIZE,     /* a line, or a reply, that does not end for 4 MiB */
    TWIN_UNKNOWN_TYPE, /* an unknown event type */
    TWIN_NO_VERSION,   /* an event without resourceVersion */
    TWIN_FAULTS,
};
const char *twin_fault_name(enum twin_fault f);

struct twin_tls { /* PEM, made by twin_tls_new */
    char *ca, *other_ca, *server_cert, *server_key, *client_cert, *client_key;
};
/* A CA, a server certificate for the DNS name "twin.test" (and 127.0.0.1 if with_ip), a client
 * certificate, and a CA that signed none of them. */
struct twin_tls *twin_tls_new(bool with_ip);
void twin_tls_free(struct twin_tls *tls);
/* "KEY: <base64 of pem>, " for a kubeconfig. */
void twin_tls_add_data(struct strbuf *yaml, const char *key, const char *pem);

/* tls NULL: plain. want_client: TLS clients must show a certificate of the CA. */
struct twin *twin_start(const struct twin_tls *tls, bool want_client);
void twin_stop(struct twin *t);
uint16_t twin_port(const struct twin *t);
/* A configuration for it with the token "s3cr3t-t0ken"; aborts when that fails. */
struct kube_config *twin_config(const struct twin *t);
/* Small bounds and short times, for tests. */
struct kube_options twin_options(void);

/* Pods. json: members of the pod beside metadata ("\"spec\":{...}"), or NULL. */
void twin_put(struct twin *t, const char *name, const char *json);
void twin_delete(struct twin *t, const char *name);
void twin_bookmark(struct twin *t);
/* Everything before now is forgotten: older watches and continue tokens are 410. */
void twin_compact(struct twin *t);
/* No pods at all at this path: 404, until turned on again. */
void twin_absent(struct twin *t, bool absent);

struct twin_pod {
    char name[64];
    char uid[64];
    char version[32];
};
/* The pods there are, sorted by name; *out is malloc'ed. */
size_t twin_pods(struct twin *t, struct twin_pod **out);

void twin_fault(struct twin *t, enum twin_class class, enum twin_fault fault);
/* A running watch (or the next, if none runs) meets it as soon as it has said what there is to say.
 * Returns how many run; TWIN_NONE only asks. */
size_t twin_break(struct twin *t, enum twin_fault fault);
size_t twin_faults_left(struct twin *t);
/* Watches that met a twin_break so far. */
size_t twin_broken(struct twin *t);

/* The next request that is neither pods' list or watch nor a Lease is answered so. headers: "A:
 * b\r\n" or "". */
void twin_script(struct twin *t, int status, const char *headers, const char *body);
/* The same for the next one whose path contains `part`: for a test whose requests are under way
 * together. */
void twin_script_for(struct twin *t, const char *part, int status, const char *headers,
                     const char *body);
/* The same, but with these bytes, in two pieces when cut is within them; then the connection is
 * closed, or kept. */
void twin_script_raw(struct twin *t, const char *bytes, size_t cut, bool close);
size_t twin_requests(struct twin *t, enum twin_class class);
/* Connections accepted so far. */
size_t twin_connections(struct twin *t);
/* Head and body of the n-th last request of any class (0: the last) appended to out; false when
 * there are fewer (the last 64 are kept). */
bool twin_request(struct twin *t, size_t n, struct strbuf *out);
/* spec.holderIdentity of the only Lease, "" when released or none. */
void twin_lease_holder(struct twin *t, char *out, size_t size);
/* Writes the Lease as another candidate would. */
void twin_lease_set(struct twin *t, const char *holder);
void twin_lease_delete(struct twin *t);
