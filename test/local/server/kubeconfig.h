// SPDX-License-Identifier: Apache-2.0
/*
 * kubeconfig - the state directory: certificates, token and kubeconfig of a cluster on this
 * machine, and small files in general.
 *
 *     ca.crt ca.key server.crt server.key token    made once, kept for the next start
 *     kubeconfig                                   written at each start (the port may differ)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"
#include "test/local/server/pki.h"

struct kubeconfig {
    char *directory; /* absolute */
    char *path;      /* of the kubeconfig */
    struct pki pki;  /* empty with plain HTTP */
    char token[PKI_TOKEN_SIZE];
    bool temporary; /* kubeconfig_open made the directory */
};

/* directory NULL: a new one below $TMPDIR or /tmp. Makes what is missing; files are for the owner
 * alone. */
int kubeconfig_open(struct kubeconfig *k, const char *directory, bool plain, struct error *err);
/* Writes the kubeconfig for that address. */
int kubeconfig_write(const struct kubeconfig *k, const char *address, uint16_t port, bool plain,
                     struct error *err);
void kubeconfig_deinit(struct kubeconfig *k); /* files stay */
/* Removes a temporary directory and all that is in it; any other one stays. */
void kubeconfig_discard(struct kubeconfig *k);

/* Whole files; at most max bytes. Writing replaces at once (by rename), mode 0600. */
int kubeconfig_read_file(const char *path, size_t max, struct strbuf *out, struct error *err);
int kubeconfig_write_file(const char *path, const char *text, size_t n, struct error *err);
