// SPDX-License-Identifier: Apache-2.0
/*
 * Reads a kubeconfig or our pod's service account into one struct, immutable except for the token.
 *
 * A kubeconfig is YAML, so it goes through yaml → json and is read like any reply of the API
 * server. Unsupported features are refused by name (exec, auth-provider, passwords, impersonation,
 * proxy-url, unverified TLS): ignoring one would mean using a wrong identity, or trusting a wrong
 * server.
 *
 * The kubelet replaces the token file by a rename behind a symlink, so a changed inode, size or
 * mtime means a new token. A request that needs a token checks the file if the last check is a
 * second old; the file is read again when it changed, and at least every minute. If it cannot be
 * read or is invalid, the last good token stays: the server decides whether it is still accepted.
 */
#include "lib/kube/config.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/base64.h"
#include "lib/base/arena.h"
#include "lib/base/file.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

#ifdef __APPLE__
#define st_mtim st_mtimespec
#endif
#include "lib/base/yaml.h"

enum {
    FILE_MAX = 4 * 1024 * 1024, /* kubeconfig, certificate, key */
    TOKEN_CHECK_MS = 1000,
    TOKEN_READ_MS = 60 * 1000,
};
#define SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

#define ROW(field, ...)                                             \
    {                                                               \
        .offset = offsetof(struct kube_options, field), __VA_ARGS__ \
    }
const struct option_row kube_option_rows[] = {
    {.section = "KUBERNETES API"},
    ROW(kubeconfig, .name = "kubeconfig", .kind = OPTION_STRING, .meta = "FILE",
        .help =
            "The kubeconfig to use. Without it: $KUBECONFIG, the pod's service account, ~/.kube/config, whichever is there first."),
    ROW(context, .name = "context", .kind = OPTION_STRING, .meta = "NAME",
        .help = "The context of the kubeconfig; its current-context otherwise."),
    ROW(request_timeout_ms, .name = "request-timeout", .kind = OPTION_DURATION, .fallback = "30s",
        .min = 100, .max = 600000, .meta = "TIME",
        .help = "How long one request may take, its retries included. Watches have no such limit."),
    ROW(watch_timeout_ms, .name = "watch-timeout", .kind = OPTION_DURATION, .fallback = "5m",
        .min = 1000, .max = 86400000, .meta = "TIME",
        .help =
            "After this time (and up to half as much again) the server ends a watch, which is then resumed; spreads clients over servers."),
    ROW(watch_idle_ms, .name = "watch-idle", .kind = OPTION_DURATION, .fallback = "90s", .min = 100,
        .max = 3600000, .meta = "TIME",
        .help =
            "A watch that brings no byte for so long is dropped and resumed. The server sends a bookmark about every minute."),
    ROW(page_size, .name = "list-page-size", .kind = OPTION_INT, .fallback = "5000", .min = 1,
        .max = 1000000, .meta = "N", .help = "Objects asked for in one page of a list."),
    ROW(max_list_bytes, .name = "max-list-bytes", .kind = OPTION_SIZE, .fallback = "256MiB",
        .min = 4096, .max = 4294967296, .meta = "SIZE",
        .help =
            "The largest page of a list that is accepted; a larger one is asked for with fewer objects."),
    ROW(max_line_bytes, .name = "max-watch-line-bytes", .kind = OPTION_SIZE, .fallback = "32MiB",
        .min = 1024, .max = 1073741824, .meta = "SIZE",
        .help =
            "The largest event of a watch that is accepted; beyond it the collection is listed again."),
    ROW(max_reply_bytes, .name = "max-reply-bytes", .kind = OPTION_SIZE, .fallback = "16MiB",
        .min = 4096, .max = 1073741824, .meta = "SIZE",
        .help = "The largest reply to any other request that is accepted."),
    ROW(max_objects, .name = "max-objects", .kind = OPTION_INT, .fallback = "1000000", .min = 1,
        .max = 100000000, .meta = "N",
        .help = "The most objects of one kind that are kept; a longer list is an error."),
    ROW(qps, .name = "kube-qps", .kind = OPTION_INT, .fallback = "0", .min = 0, .max = 1000000,
        .meta = "N",
        .help =
            "Requests per second of the whole process (watches, lists, the lease and Events aside); 0 leaves it to the server's own fairness."),
    ROW(burst, .name = "kube-burst", .kind = OPTION_INT, .fallback = "100", .min = 1,
        .max = 1000000, .meta = "N",
        .help = "Requests that may go out at once before --kube-qps holds them back."),
    {0}};
#undef ROW

struct kube_config {
    struct arena arena;
    const char *server, *ns, *ca, *cert, *key, *tls_server_name;
    bool loopback;

    pthread_mutex_t lock; /* of the fields below */
    const char *token_file;
    char *token; /* heap, wiped before it is freed */
    struct timespec token_mtime;
    off_t token_size;
    ino_t token_inode;
    int64_t checked_ms, read_ms;
};

static struct kube_config *config_new(void)
{
    struct kube_config *c = mem_new(struct kube_config, 1);
    arena_init(&c->arena, 4096);
    pthread_mutex_init(&c->lock, NULL);
    c->ns = "default";
    return c;
}

static void wipe(char *s)
{
    if (s)
        mem_wipe(s, strlen(s));
    free(s);
}

void kube_config_free(struct kube_config *c)
{
    if (!c)
        return;
    wipe(c->token);
    pthread_mutex_destroy(&c->lock);
    arena_deinit(&c->arena);
    free(c);
}

static void config_freep(struct kube_config **c)
{
    kube_config_free(*c);
}

static const char *resolve(struct arena *a, const char *base_dir, const char *path)
{
    return path[0] == '/' || !base_dir[0] ? arena_strdup(a, path)
                                          : arena_printf(a, "%s/%s", base_dir, path);
}

/* The token goes into a header line: only printable ASCII without blanks, so it cannot start
 * another header. The error does not show the token. */
static int check_token(const char *s, size_t n, struct error *err)
{
    if (n == 0)
        return error_set(err, ERROR_INVALID, "token is empty");
    if (n >= KUBE_TOKEN_MAX)
        return error_set(err, ERROR_TOO_LARGE, "token is longer than %d bytes", KUBE_TOKEN_MAX - 1);
    for (size_t i = 0; i < n; i++)
        if (s[i] <= ' ' || s[i] > '~')
            return error_set(err, ERROR_INVALID,
                             "token has a character that no token may have, at byte %zu", i);
    return 0;
}

static void set_token(struct kube_config *c, const char *s, size_t n)
{
    wipe(c->token);
    c->token = strndup(s, n);
    if (!c->token)
        abort();
}

static int read_token(struct kube_config *c, struct error *err)
{
    AUTO_STRBUF text = {0};
    strbuf_reserve(&text, KUBE_TOKEN_MAX + 64); /* never reallocated, so that wiping it wipes all */
    int rc = file_read(c->token_file, KUBE_TOKEN_MAX + 16, &text, err);
    size_t n = text.len;
    while (n > 0 && (text.ptr[n - 1] == '\n' || text.ptr[n - 1] == '\r' || text.ptr[n - 1] == ' '))
        n--;
    if (rc == 0 && (rc = check_token(text.ptr, n, err)) < 0)
        error_wrap(err, "%s", c->token_file);
    if (rc == 0)
        set_token(c, text.ptr, n);
    mem_wipe(text.ptr, text.len);
    return rc;
}

static bool token_file_changed(struct kube_config *c)
{
    struct stat st;
    if (stat(c->token_file, &st) < 0)
        return false;
    bool same = st.st_ino == c->token_inode && st.st_size == c->token_size &&
                st.st_mtim.tv_sec == c->token_mtime.tv_sec &&
                st.st_mtim.tv_nsec == c->token_mtime.tv_nsec;
    c->token_inode = st.st_ino;
    c->token_size = st.st_size;
    c->token_mtime = st.st_mtim;
    return !same;
}

static void refresh_token(struct kube_config *c, int64_t now_ms)
{
    if (now_ms - c->checked_ms < TOKEN_CHECK_MS)
        return;
    c->checked_ms = now_ms;
    bool changed = token_file_changed(c);
    if (!changed && now_ms - c->read_ms < TOKEN_READ_MS)
        return;
    c->read_ms = now_ms;
    struct error err = ERROR_INIT;
    if (read_token(c, &err) < 0)
        log_warn("token file not read, the last token stays", kv("error", err.text));
}

bool kube_config_token(struct kube_config *c, char *buf, size_t size)
{
    pthread_mutex_lock(&c->lock);
    if (c->token_file)
        refresh_token(c, clock_mono_ms());
    size_t n = c->token ? strlen(c->token) : 0;
    bool have = c->token && n < size;
    if (have)
        memcpy(buf, c->token, n + 1);
    pthread_mutex_unlock(&c->lock);
    return have;
}

/* The first read: a missing token file is an error now, not at the first request. */
static int open_token_file(struct kube_config *c, const char *path, struct error *err)
{
    c->token_file = path;
    (void)token_file_changed(c);
    c->checked_ms = c->read_ms = clock_mono_ms();
    return read_token(c, err);
}

struct source {
    struct kube_config *config;
    const char *base_dir;
    bool read_files;
};

/* An optional string member; *out is NULL when absent or "". */
static int get_text(json *obj, const char *key, const char **out, struct error *err)
{
    *out = NULL;
    json *v = json_get(obj, key);
    if (!v || json_is_null(v))
        return 0;
    const char *s = json_str(v);
    if (!s)
        return error_set(err, ERROR_INVALID, "%s: must be a string, is %s", key, json_kind_name(v));
    if (s[0])
        *out = s;
    return 0;
}

/* The entry of a list [{name, <member>: {...}}] with that name. */
static int find_named(json *root, const char *list, const char *member, const char *name,
                      json **out, struct error *err)
{
    json *array = json_get(root, list);
    if (array && !json_is_null(array) && !json_is_array(array))
        return error_set(err, ERROR_INVALID, "%s: must be a list, is %s", list,
                         json_kind_name(array));
    for (struct json_iter it = json_iter(array); json_next(&it);) {
        if (!str_eq(json_get_str(it.value, "name"), name))
            continue;
        *out = json_get(it.value, member);
        if (*out && !json_is_object(*out) && !json_is_null(*out))
            return error_set(err, ERROR_INVALID, "%s '%s': %s must be an object, is %s", list, name,
                             member, json_kind_name(*out));
        return 0;
    }
    return error_set(err, ERROR_NOT_FOUND, "%s: no entry named '%s'", list, name);
}

/* Stores PEM text in the arena and wipes pem. name: for messages. */
static int keep_pem(struct kube_config *c, const char *name, struct strbuf *pem, const char **out,
                    struct error *err)
{
    const char *text = strbuf_str(pem);
    bool good = strstr(text, "-----BEGIN ") && strlen(text) == pem->len;
    if (good)
        *out = arena_strndup(&c->arena, text, pem->len);
    if (pem->ptr)
        mem_wipe(pem->ptr, pem->len);
    return good ? 0 : error_set(err, ERROR_INVALID, "%s: not PEM", name);
}

/* <key>-data (base64) or <key> (a file) as PEM text; NULL when both are absent. */
static int get_pem(const struct source *s, json *obj, const char *key, const char **out,
                   struct error *err)
{
    struct arena *a = &s->config->arena;
    const char *data, *path;
    const char *data_key = arena_printf(a, "%s-data", key);
    if (get_text(obj, data_key, &data, err) < 0 || get_text(obj, key, &path, err) < 0)
        return -1;
    AUTO_STRBUF pem = {0};
    if (data) {
        if (!base64_decode(data, strlen(data), &pem))
            return error_set(err, ERROR_INVALID, "%s: not base64", data_key);
    } else if (path) {
        path = resolve(a, s->base_dir, path);
        if (s->read_files && file_read(path, FILE_MAX, &pem, err) < 0)
            return error_wrap(err, "%s", key);
        if (!s->read_files)
            strbuf_adds(&pem, "-----BEGIN UNREAD-----\n");
    } else {
        return 0;
    }
    return keep_pem(s->config, data ? data_key : key, &pem, out, err);
}

static int refuse(json *obj, const char *key, const char *instead, struct error *err)
{
    json *v = json_get(obj, key);
    if (!v || json_is_null(v) || (json_is_bool(v) && !json_bool(v, true)) ||
        str_eq(json_str(v), ""))
        return 0;
    return error_set(err, ERROR_UNSUPPORTED, "%s is not supported: %s", key, instead);
}

/* Whether host[:port][/path] names this machine. "127.evil.example" does not. */
static bool loopback_host(const char *host)
{
    size_t n = host[0] == '[' ? strcspn(host, "]/") + 1 : strcspn(host, ":/");
    if (str_starts(host, "127."))
        return strspn(host, "0123456789.") == n;
    return (n == 9 && str_starts(host, "localhost")) || (n == 5 && str_starts(host, "[::1]"));
}

/* https://host[:port], or plain http on loopback only: credentials never leave the machine
 * unencrypted. Errors do not show a URL that holds a password. */
static int set_server(struct kube_config *c, const char *server, struct error *err)
{
    if (!server)
        return error_set(err, ERROR_INVALID, "server: missing");
    bool https = str_starts(server, "https://"), http = str_starts(server, "http://");
    const char *host = https ? server + 8 : http ? server + 7 : NULL;
    if (!host)
        return error_set(err, ERROR_INVALID, "server: must begin with https://");
    size_t n = strlen(server);
    while (n > 0 && server[n - 1] == '/')
        n--;
    for (const char *p = host; p < server + n; p++)
        if (*p <= ' ' || *p > '~' || *p == '@' || *p == '?' || *p == '#')
            return error_set(err, ERROR_INVALID, "server: not a URL of host, port and path");
    if (host >= server + n || *host == '/' || *host == ':')
        return error_set(err, ERROR_INVALID, "server: no host: '%s'", server);
    if (http && !loopback_host(host))
        return error_set(err, ERROR_UNSUPPORTED,
                         "server: plain http is supported on loopback only: '%s'", server);
    c->server = arena_strndup(&c->arena, server, n);
    c->loopback = loopback_host(host);
    return 0;
}

static int read_cluster(const struct source *s, json *cluster, struct error *err)
{
    struct kube_config *c = s->config;
    const char *server, *name;
    if (refuse(cluster, "insecure-skip-tls-verify",
               "TLS is always verified; give certificate-authority", err) < 0 ||
        refuse(cluster, "proxy-url", "set HTTPS_PROXY in the environment", err) < 0)
        return -1;
    if (get_text(cluster, "server", &server, err) < 0 || set_server(c, server, err) < 0 ||
        get_text(cluster, "tls-server-name", &name, err) < 0 ||
        get_pem(s, cluster, "certificate-authority", &c->ca, err) < 0)
        return -1;
    for (const char *p = name; p && *p; p++)
        if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
              *p == '.' || *p == '-'))
            return error_set(err, ERROR_INVALID, "tls-server-name: not a host name: '%s'", name);
    c->tls_server_name = name ? arena_strdup(&c->arena, name) : NULL;
    return 0;
}

static int read_user(const struct source *s, json *user, struct error *err)
{
    static const char instead[] = "use a client certificate, token or tokenFile";
    static const char *const refused[] = {"exec", "auth-provider", "username", "password",
                                          "as",   "as-uid",        "as-groups"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (refuse(user, refused[i], instead, err) < 0)
            return -1;
    struct kube_config *c = s->config;
    const char *token, *token_file;
    if (get_pem(s, user, "client-certificate", &c->cert, err) < 0 ||
        get_pem(s, user, "client-key", &c->key, err) < 0 ||
        get_text(user, "token", &token, err) < 0 ||
        get_text(user, "tokenFile", &token_file, err) < 0)
        return -1;
    if (!c->cert != !c->key)
        return error_set(err, ERROR_INVALID,
                         "client-certificate and client-key go together; only one is there");
    if (token) {
        if (check_token(token, strlen(token), err) < 0)
            return -1;
        set_token(c, token, strlen(token));
    }
    if (token_file && s->read_files) /* takes precedence over token, as in other clients */
        return open_token_file(c, resolve(&c->arena, s->base_dir, token_file), err);
    return 0;
}

int kube_config_parse(struct kube_config **out, const char *text, size_t n, const char *context,
                      const char *base_dir, bool read_files, struct error *err)
{
    AUTO(config_freep) struct kube_config *c = config_new();
    AUTO_JSON *doc = NULL;
    if (n > FILE_MAX)
        return error_set(err, ERROR_TOO_LARGE, "kubeconfig is larger than %d bytes", FILE_MAX);
    if (yaml_parse(&doc, text, n, FILE_MAX, err) < 0)
        return -1;
    json *root = json_root(doc), *ctx = NULL, *cluster = NULL, *user = NULL;
    if (!json_is_object(root))
        return error_set(err, ERROR_INVALID, "a kubeconfig is an object, this is %s",
                         json_kind_name(root));
    if (!context && get_text(root, "current-context", &context, err) < 0)
        return -1;
    if (!context)
        return error_set(err, ERROR_INVALID, "no current-context, and no --context");
    if (find_named(root, "contexts", "context", context, &ctx, err) < 0)
        return -1;
    const char *cluster_name, *user_name, *ns;
    if (get_text(ctx, "cluster", &cluster_name, err) < 0 ||
        get_text(ctx, "user", &user_name, err) < 0 || get_text(ctx, "namespace", &ns, err) < 0)
        return error_wrap(err, "context '%s'", context);
    if (!cluster_name)
        return error_set(err, ERROR_INVALID, "context '%s': names no cluster", context);
    struct source s = {.config = c, .base_dir = base_dir ? base_dir : "", .read_files = read_files};
    if (find_named(root, "clusters", "cluster", cluster_name, &cluster, err) < 0)
        return -1;
    if (read_cluster(&s, cluster, err) < 0)
        return error_wrap(err, "cluster '%s'", cluster_name);
    if (user_name) {
        if (find_named(root, "users", "user", user_name, &user, err) < 0)
            return -1;
        if (read_user(&s, user, err) < 0)
            return error_wrap(err, "user '%s'", user_name);
    }
    if (ns)
        c->ns = arena_strdup(&c->arena, ns);
    *out = take_ptr(&c);
    return 0;
}

static int load_file(struct kube_config **out, const char *path, const char *context,
                     struct error *err)
{
    AUTO_STRBUF text = {0};
    if (file_read(path, FILE_MAX, &text, err) < 0)
        return error_wrap(err, "kubeconfig");
    const char *slash = strrchr(path, '/');
    AUTO_STRBUF dir = {0};
    if (slash)
        strbuf_add(&dir, path, (size_t)(slash - path + (slash == path)));
    int rc =
        kube_config_parse(out, strbuf_str(&text), text.len, context, strbuf_str(&dir), true, err);
    if (text.ptr)
        mem_wipe(text.ptr, text.len);
    return rc < 0 ? error_wrap(err, "%s", path) : 0;
}

int kube_config_in_cluster(struct kube_config **out, const char *dir, const char *host,
                           const char *port, struct error *err)
{
    AUTO(config_freep) struct kube_config *c = config_new();
    bool v6 = strchr(host, ':') != NULL;
    const char *server =
        arena_printf(&c->arena, v6 ? "https://[%s]:%s" : "https://%s:%s", host, port);
    if (set_server(c, server, err) < 0)
        return -1;
    AUTO_STRBUF ca = {0};
    const char *ca_file = arena_printf(&c->arena, "%s/ca.crt", dir);
    if (file_read(ca_file, FILE_MAX, &ca, err) < 0 || keep_pem(c, ca_file, &ca, &c->ca, err) < 0)
        return error_wrap(err, "service account");
    if (open_token_file(c, arena_printf(&c->arena, "%s/token", dir), err) < 0)
        return error_wrap(err, "service account");
    AUTO_STRBUF ns = {0};
    struct error ignored;
    if (file_read(arena_printf(&c->arena, "%s/namespace", dir), 256, &ns, &ignored) == 0) {
        while (ns.len > 0 && (ns.ptr[ns.len - 1] == '\n' || ns.ptr[ns.len - 1] == ' '))
            ns.len--;
        if (ns.len > 0)
            c->ns = arena_strndup(&c->arena, ns.ptr, ns.len);
    }
    *out = take_ptr(&c);
    return 0;
}

/* The first existing file of a list a:b:c. */
static bool first_existing(const char *list, struct strbuf *out)
{
    for (const char *p = list; *p;) {
        size_t n = strcspn(p, ":");
        strbuf_reset(out);
        strbuf_add(out, p, n);
        if (n > 0 && access(strbuf_str(out), F_OK) == 0)
            return true;
        p += n + (p[n] == ':');
    }
    return false;
}

int kube_config_load(struct kube_config **out, const struct kube_options *o, struct error *err)
{
    if (o->kubeconfig)
        return load_file(out, o->kubeconfig, o->context, err);
    AUTO_STRBUF path = {0};
    const char *list = getenv("KUBECONFIG");
    if (list && list[0]) {
        if (!first_existing(list, &path))
            return error_set(err, ERROR_NOT_FOUND, "no file of $KUBECONFIG exists: '%s'", list);
        return load_file(out, strbuf_str(&path), o->context, err);
    }
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
    if (host && host[0] && port && port[0])
        return kube_config_in_cluster(out, SERVICE_ACCOUNT_DIR, host, port, err);
    const char *home = getenv("HOME");
    strbuf_addf(&path, "%s/.kube/config", home ? home : "");
    if (home && access(strbuf_str(&path), F_OK) == 0)
        return load_file(out, strbuf_str(&path), o->context, err);
    return error_set(
        err, ERROR_NOT_FOUND,
        "no way to the API server: no --kubeconfig, no $KUBECONFIG, not in a pod, no ~/.kube/config");
}

const char *kube_config_server(const struct kube_config *c)
{
    return c->server;
}

const char *kube_config_namespace(const struct kube_config *c)
{
    return c->ns;
}

const char *kube_config_ca_pem(const struct kube_config *c)
{
    return c->ca;
}

const char *kube_config_cert_pem(const struct kube_config *c)
{
    return c->cert;
}

const char *kube_config_key_pem(const struct kube_config *c)
{
    return c->key;
}

const char *kube_config_tls_server_name(const struct kube_config *c)
{
    return c->tls_server_name;
}

bool kube_config_is_loopback(const struct kube_config *c)
{
    return c->loopback;
}
