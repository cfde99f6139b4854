// SPDX-License-Identifier: Apache-2.0
#include "test/local/server/kubeconfig.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/base64.h"
#include "lib/base/cleanup.h"
#include "lib/base/mem.h"

enum { PEM_MAX = 64 * 1024, OPEN_DIRECTORIES = 16 };

int kubeconfig_read_file(const char *path, size_t max, struct strbuf *out, struct error *err)
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, errno, "%s", path);
    for (;;) {
        strbuf_reserve(out, 64 * 1024);
        ssize_t n = read(fd, out->ptr + out->len, 64 * 1024);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, errno, "%s", path);
        if (n == 0)
            break;
        out->len += (size_t)n;
        if (out->len > max)
            return error_set(err, ERROR_TOO_LARGE, "%s: more than %zu bytes", path, max);
    }
    out->ptr[out->len] = '\0';
    return 0;
}

int kubeconfig_write_file(const char *path, const char *text, size_t n, struct error *err)
{
    char *draft = NULL;
    struct strbuf name = {0};
    strbuf_addf(&name, "%s.%ld", path, (long)getpid());
    draft = strbuf_take(&name);
    AUTO_CLOSE int fd = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int rc = 0;
    if (fd < 0)
        rc = error_errno(err, errno, "%s", path);
    while (rc == 0 && n > 0) {
        ssize_t done = write(fd, text, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0) {
            rc = error_errno(err, errno, "%s", path);
            break;
        }
        text += done;
        n -= (size_t)done;
    }
    if (rc == 0 && rename(draft, path) < 0)
        rc = error_errno(err, errno, "%s", path);
    if (rc < 0)
        unlink(draft);
    free(draft);
    return rc;
}

static char *in_directory(const struct kubeconfig *k, const char *name)
{
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/%s", k->directory, name);
    return strbuf_take(&path);
}

static char *load(const struct kubeconfig *k, const char *name)
{
    AUTO_FREE char *path = in_directory(k, name);
    struct strbuf text = {0};
    if (kubeconfig_read_file(path, PEM_MAX, &text, NULL) < 0) {
        strbuf_deinit(&text);
        return NULL;
    }
    return strbuf_take(&text);
}

static int save(const struct kubeconfig *k, const char *name, const char *text, struct error *err)
{
    AUTO_FREE char *path = in_directory(k, name);
    return kubeconfig_write_file(path, text, strlen(text), err);
}

static int open_directory(struct kubeconfig *k, const char *directory, struct error *err)
{
    char path[PATH_MAX];
    if (!directory) {
        const char *tmp = getenv("TMPDIR");
        if (!str_format(path, sizeof path, "%s/cosched-local.XXXXXX", tmp && *tmp ? tmp : "/tmp") ||
            !mkdtemp(path))
            return error_errno(err, errno, "state directory");
        directory = path;
        k->temporary = true;
    } else if (mkdir(directory, 0700) < 0 && errno != EEXIST) {
        return error_errno(err, errno, "state directory %s", directory);
    }
    k->directory = realpath(directory, NULL);
    if (!k->directory)
        return error_errno(err, errno, "state directory %s", directory);
    k->path = in_directory(k, "kubeconfig");
    return 0;
}

/* All or nothing: a partial set could be a certificate with an unknown CA. */
static int open_pki(struct kubeconfig *k, struct error *err)
{
    static const char *const names[] = {
        "127.0.0.1", "localhost", "::1", "kubernetes", "kubernetes.default.svc", NULL};
    k->pki = (struct pki){.ca_pem = load(k, "ca.crt"),
                          .ca_key_pem = load(k, "ca.key"),
                          .cert_pem = load(k, "server.crt"),
                          .key_pem = load(k, "server.key")};
    if (k->pki.ca_pem && k->pki.ca_key_pem && k->pki.cert_pem && k->pki.key_pem)
        return 0;
    pki_deinit(&k->pki);
    if (pki_make(&k->pki, names, err) < 0 || save(k, "ca.crt", k->pki.ca_pem, err) < 0 ||
        save(k, "ca.key", k->pki.ca_key_pem, err) < 0 ||
        save(k, "server.crt", k->pki.cert_pem, err) < 0)
        return -1;
    return save(k, "server.key", k->pki.key_pem, err);
}

static int open_token(struct kubeconfig *k, struct error *err)
{
    AUTO_FREE char *token = load(k, "token");
    if (token && strlen(token) == PKI_TOKEN_SIZE - 1) {
        str_format(k->token, sizeof k->token, "%s", token);
        return 0;
    }
    return pki_token(k->token, err) < 0 ? -1 : save(k, "token", k->token, err);
}

int kubeconfig_open(struct kubeconfig *k, const char *directory, bool plain, struct error *err)
{
    *k = (struct kubeconfig){0};
    if (open_directory(k, directory, err) == 0 &&
        (plain || (open_pki(k, err) == 0 && open_token(k, err) == 0)))
        return 0;
    kubeconfig_discard(k);
    kubeconfig_deinit(k);
    return -1;
}

int kubeconfig_write(const struct kubeconfig *k, const char *address, uint16_t port, bool plain,
                     struct error *err)
{
    struct strbuf text = {0};
    bool v6 = strchr(address, ':') != NULL;
    strbuf_addf(&text,
                "apiVersion: v1\nkind: Config\nclusters:\n- name: cosched-local\n  cluster:\n"
                "    server: %s://%s%s%s:%u\n",
                plain ? "http" : "https", v6 ? "[" : "", address, v6 ? "]" : "", (unsigned)port);
    if (!plain) {
        strbuf_adds(&text, "    certificate-authority-data: ");
        base64_encode(k->pki.ca_pem, strlen(k->pki.ca_pem), &text);
        strbuf_addc(&text, '\n');
    }
    strbuf_adds(&text, "users:\n- name: admin\n");
    if (plain)
        strbuf_adds(&text, "  user: {}\n");
    else
        strbuf_addf(&text, "  user:\n    token: %s\n", k->token);
    strbuf_adds(&text, "contexts:\n- name: cosched-local\n  context:\n    cluster: cosched-local\n"
                       "    user: admin\n    namespace: default\ncurrent-context: cosched-local\n");
    int rc = kubeconfig_write_file(k->path, strbuf_str(&text), text.len, err);
    strbuf_deinit(&text);
    return rc;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    (void)remove(path); /* what cannot be removed is left, and so are the directories above it */
    return 0;
}

void kubeconfig_discard(struct kubeconfig *k)
{
    if (k->temporary && k->directory)
        (void)nftw(k->directory, remove_one, OPEN_DIRECTORIES, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    k->temporary = false;
}

void kubeconfig_deinit(struct kubeconfig *k)
{
    pki_deinit(&k->pki);
    free(k->directory);
    free(k->path);
    *k = (struct kubeconfig){0};
}
