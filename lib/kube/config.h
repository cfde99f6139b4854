// SPDX-License-Identifier: Apache-2.0
/*
 * config - the API server's address and our credentials: a kubeconfig file or the pod's service
 * account.
 *
 * Order: --kubeconfig, $KUBECONFIG (first file of the list that exists), the in-cluster files,
 * ~/.kube/config. Supported in a kubeconfig: server, certificate-authority(-data), tls-server-name,
 * client-certificate(-data), client-key(-data), token, tokenFile, contexts. `exec`,
 * `auth-provider`, username/password and insecure-skip-tls-verify are refused as "not supported"
 * (TLS is always verified), and so is plain http beyond loopback. Token files are read again when
 * they change, at the latest every minute.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/options.h"

/* Connection options, and bounds for everything that the API server sends. Rows:
 * kube_option_rows. */
struct kube_options {
    const char *kubeconfig; /* --kubeconfig */
    const char *context;    /* --context */
    int64_t max_list_bytes; /* --max-list-bytes: one page of a list, default 256 MiB */
    /* --max-watch-line-bytes: one watch event, default 32 MiB. etcd's 1.5 MiB may be 9 MiB of
     * JSON, which writes "<" in six bytes. */
    int64_t max_line_bytes;
    int64_t max_reply_bytes;    /* --max-reply-bytes: any other reply, default 16 MiB */
    int64_t max_objects;        /* --max-objects: in one list, default 1,000,000 */
    int64_t page_size;          /* --list-page-size, default 5000 */
    int64_t request_timeout_ms; /* --request-timeout, default 30s */
    /* --watch-timeout: the server ends a watch after it, default 5m (spread by jitter) */
    int64_t watch_timeout_ms;
    /* --watch-idle: drops the connection after so long without a byte (or bookmark), default 90s */
    int64_t watch_idle_ms;
    int64_t qps;   /* --kube-qps: 0 = no limit */
    int64_t burst; /* --kube-burst */
};
extern const struct option_row kube_option_rows[];

struct kube_config; /* immutable except for the token; any thread */

int kube_config_load(struct kube_config **out, const struct kube_options *o, struct error *err);
/* From kubeconfig text, for tests and fuzzing. base_dir resolves relative paths ("" for none);
 * files are read only if read_files. */
int kube_config_parse(struct kube_config **out, const char *text, size_t n, const char *context,
                      const char *base_dir, bool read_files, struct error *err);
/* The service account whose files (ca.crt, token, namespace) are in dir. */
int kube_config_in_cluster(struct kube_config **out, const char *dir, const char *host,
                           const char *port, struct error *err);
void kube_config_free(struct kube_config *c);

const char *
kube_config_server(const struct kube_config *c); /* "https://host:port" without a trailing slash */
const char *kube_config_namespace(
    const struct kube_config *c); /* context's or the service account's; "default" */
const char *kube_config_ca_pem(const struct kube_config *c);   /* NULL: the system's store */
const char *kube_config_cert_pem(const struct kube_config *c); /* NULL: none */
const char *kube_config_key_pem(const struct kube_config *c);
const char *kube_config_tls_server_name(const struct kube_config *c); /* NULL: the host of server */
bool kube_config_is_loopback(const struct kube_config *c);
/* Copies the current bearer token into buf, re-reading its file when due; false: there is none. Any
 * thread. */
enum { KUBE_TOKEN_MAX = 16 * 1024 };
bool kube_config_token(struct kube_config *c, char *buf, size_t size);
