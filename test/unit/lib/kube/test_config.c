// SPDX-License-Identifier: Apache-2.0
#include "test/unit/lib/base/expect.h"
#include "test/unit/lib/base/scratch.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/str.h"
#include "lib/kube/config.h"

#define PEM "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==" /* "-----BEGIN CERTIFICATE-----\n" */
#define PEM_TEXT "-----BEGIN CERTIFICATE-----\n"
#define HEAD \
    "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u, namespace: team}}]\n"
#define CLUSTER "clusters: [{name: k, cluster: {server: 'https://h:6443'}}]\n"
#define USER(fields) "users: [{name: u, user: {" fields "}}]\n"
#define SERVER(fields) HEAD "clusters: [{name: k, cluster: {" fields "}}]\n" USER("token: t")

/* ---- a directory for each test -------------------------------------------------------------- */

static char dir[SCRATCH_PATH];

static int make_dir(void **state)
{
    (void)state;
    scratch_folder(dir, "config");
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    static const char *const names[] = {"config",       "ca.crt",    "token",
                                        "namespace",    "token.new", "key.pem",
                                        ".kube/config", ".kube",     "big"};
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        str_format(path, sizeof path, "%s/%s", dir, names[i]);
        remove(path);
    }
    return rmdir(dir);
}

static const char *in_dir(const char *name)
{
    static char path[4][128];
    static unsigned turn;
    char *p = path[turn++ % 4];
    str_format(p, sizeof path[0], "%s/%s", dir, name);
    return p;
}

static void put_file(const char *name, const char *text)
{
    FILE *f = fopen(in_dir(name), "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(0, fclose(f));
}

/* ---- text ----------------------------------------------------------------------------------- */

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *row, *text, *says;
        enum error_code code;
    } rows[] = {
        {"no YAML at all", "a: [", "", ERROR_INVALID},
        {"nothing", "", "", ERROR_INVALID},
        {"not an object", "[1]", "a kubeconfig is an object, this is array", ERROR_INVALID},
        {"no current context", "contexts: []", "no current-context, and no --context",
         ERROR_INVALID},
        {"current-context of the wrong kind", "current-context: [x]",
         "current-context: must be a string, is array", ERROR_INVALID},
        {"a context that is not there", "current-context: x\ncontexts: [{name: y}]",
         "contexts: no entry named 'x'", ERROR_NOT_FOUND},
        {"contexts of the wrong kind", "current-context: x\ncontexts: 3",
         "contexts: must be a list, is number", ERROR_INVALID},
        {"a context of the wrong kind", "current-context: x\ncontexts: [{name: x, context: [1]}]",
         "contexts 'x': context must be an object, is array", ERROR_INVALID},
        {"a context without a cluster", "current-context: x\ncontexts: [{name: x, context: {}}]",
         "context 'x': names no cluster", ERROR_INVALID},
        {"a namespace of the wrong kind",
         "current-context: x\ncontexts: [{name: x, context: {cluster: k, namespace: 3}}]",
         "context 'x': namespace: must be a string, is number", ERROR_INVALID},
        {"a cluster that is not there", HEAD "clusters: []", "clusters: no entry named 'k'",
         ERROR_NOT_FOUND},
        {"a user that is not there", HEAD CLUSTER "users: [{name: v}]", "users: no entry named 'u'",
         ERROR_NOT_FOUND},
        {"no server", SERVER(""), "cluster 'k': server: missing", ERROR_INVALID},
        {"a server without a scheme", SERVER("server: h"),
         "cluster 'k': server: must begin with https://", ERROR_INVALID},
        {"another scheme", SERVER("server: 'ftp://h'"),
         "cluster 'k': server: must begin with https://", ERROR_INVALID},
        {"a server without a host", SERVER("server: 'https:///x'"),
         "cluster 'k': server: no host: 'https:///x'", ERROR_INVALID},
        {"a server of slashes", SERVER("server: 'https://'"),
         "cluster 'k': server: no host: 'https://'", ERROR_INVALID},
        {"a password in the URL is not shown", SERVER("server: 'https://u:hunter2@h'"),
         "cluster 'k': server: not a URL of host, port and path", ERROR_INVALID},
        {"a blank in the URL", SERVER("server: 'https://h x'"),
         "cluster 'k': server: not a URL of host, port and path", ERROR_INVALID},
        {"plain http beyond loopback", SERVER("server: 'http://10.0.0.1:80'"),
         "cluster 'k': server: plain http is supported on loopback only: 'http://10.0.0.1:80'",
         ERROR_UNSUPPORTED},
        {"a name that looks like loopback", SERVER("server: 'http://127.0.0.1.example'"),
         "cluster 'k': server: plain http is supported on loopback only: 'http://127.0.0.1.example'",
         ERROR_UNSUPPORTED},
        {"another such name", SERVER("server: 'http://localhost.example'"),
         "cluster 'k': server: plain http is supported on loopback only: 'http://localhost.example'",
         ERROR_UNSUPPORTED},
        {"unverified TLS", SERVER("server: 'https://h', insecure-skip-tls-verify: true"),
         "cluster 'k': insecure-skip-tls-verify is not supported: TLS is always verified; give certificate-authority",
         ERROR_UNSUPPORTED},
        {"a proxy", SERVER("server: 'https://h', proxy-url: 'http://p'"),
         "cluster 'k': proxy-url is not supported: set HTTPS_PROXY in the environment",
         ERROR_UNSUPPORTED},
        {"a server name that is none", SERVER("server: 'https://h', tls-server-name: 'a/b'"),
         "cluster 'k': tls-server-name: not a host name: 'a/b'", ERROR_INVALID},
        {"CA data that is no base64",
         SERVER("server: 'https://h', certificate-authority-data: '*'"),
         "cluster 'k': certificate-authority-data: not base64", ERROR_INVALID},
        {"CA data that is no PEM",
         SERVER("server: 'https://h', certificate-authority-data: 'Zm9v'"),
         "cluster 'k': certificate-authority-data: not PEM", ERROR_INVALID},
        {"CA data with a NUL",
         SERVER("server: 'https://h', certificate-authority-data: 'LS0tLS1CRUdJTiAA'"),
         "cluster 'k': certificate-authority-data: not PEM", ERROR_INVALID},
        {"an exec plugin", HEAD CLUSTER USER("exec: {command: aws}"),
         "user 'u': exec is not supported: use a client certificate, token or tokenFile",
         ERROR_UNSUPPORTED},
        {"an auth provider", HEAD CLUSTER USER("auth-provider: {name: gcp}"),
         "user 'u': auth-provider is not supported: use a client certificate, token or tokenFile",
         ERROR_UNSUPPORTED},
        {"a password", HEAD CLUSTER USER("username: a, password: hunter2"),
         "user 'u': username is not supported: use a client certificate, token or tokenFile",
         ERROR_UNSUPPORTED},
        {"impersonation", HEAD CLUSTER USER("token: t, as: root"),
         "user 'u': as is not supported: use a client certificate, token or tokenFile",
         ERROR_UNSUPPORTED},
        {"a certificate without a key", HEAD CLUSTER USER("client-certificate-data: " PEM),
         "user 'u': client-certificate and client-key go together; only one is there",
         ERROR_INVALID},
        {"a token with a line break", HEAD CLUSTER USER("token: \"hunter2\\r\\nX: y\""),
         "user 'u': token has a character that no token may have, at byte 7", ERROR_INVALID},
        {"a token of the wrong kind", HEAD CLUSTER USER("token: 3"),
         "user 'u': token: must be a string, is number", ERROR_INVALID},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kube_config *c = NULL;
        struct error err = ERROR_INIT;
        expect_int(
            rows[i].row, -1,
            kube_config_parse(&c, rows[i].text, strlen(rows[i].text), NULL, "", false, &err));
        expect_int(rows[i].row, rows[i].code, err.code);
        if (rows[i].says[0])
            expect_str(rows[i].row, rows[i].says, err.text);
        expect_true(rows[i].row, strstr(err.text, "hunter2") == NULL);
        kube_config_free(c);
    }
    expect_done();
}

static void test_too_long(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct kube_config *c = NULL;
    AUTO_STRBUF b = {0};
    strbuf_adds(&b, HEAD CLUSTER "users: [{name: u, user: {token: ");
    for (int i = 0; i < KUBE_TOKEN_MAX; i++)
        strbuf_addc(&b, 't');
    strbuf_adds(&b, "}}]\n");
    assert_int_equal(-1, kube_config_parse(&c, strbuf_str(&b), b.len, NULL, "", false, &err));
    assert_int_equal(ERROR_TOO_LARGE, err.code);
    strbuf_reset(&b);
    for (int i = 0; i < 4 * 1024 * 1024 + 1; i++)
        strbuf_addc(&b, '#');
    assert_int_equal(-1, kube_config_parse(&c, strbuf_str(&b), b.len, NULL, "", false, &err));
    assert_int_equal(ERROR_TOO_LARGE, err.code);
}

static struct kube_config *parse(const char *text, const char *context, bool read_files)
{
    struct kube_config *c = NULL;
    struct error err = ERROR_INIT;
    if (kube_config_parse(&c, text, strlen(text), context, dir, read_files, &err) < 0)
        fail_msg("not accepted: %s", err.text);
    return c;
}

static void test_inline(void **state)
{
    (void)state;
    char token[KUBE_TOKEN_MAX];
    struct kube_config *c = parse(
        HEAD
        "clusters: [{name: k, cluster: {server: 'https://h:6443//', tls-server-name: kubernetes.default,"
        " insecure-skip-tls-verify: false, certificate-authority-data: " PEM "}}]\n" USER(
            "client-certificate-data: " PEM ", client-key-data: " PEM ", token: abc, username: ''"),
        NULL, false);
    assert_string_equal("https://h:6443", kube_config_server(c));
    assert_string_equal("team", kube_config_namespace(c));
    assert_string_equal("kubernetes.default", kube_config_tls_server_name(c));
    assert_string_equal(PEM_TEXT, kube_config_ca_pem(c));
    assert_string_equal(PEM_TEXT, kube_config_cert_pem(c));
    assert_string_equal(PEM_TEXT, kube_config_key_pem(c));
    assert_false(kube_config_is_loopback(c));
    assert_true(kube_config_token(c, token, sizeof token));
    assert_string_equal("abc", token);
    assert_false(kube_config_token(c, token, 3)); /* buffer too small */
    kube_config_free(c);
}

static void test_sparse(void **state)
{
    (void)state;
    char token[KUBE_TOKEN_MAX];
    static const char text[] =
        "contexts: [{name: a, context: {cluster: k}}, {name: b, context: {cluster: l, user: u}}]\n"
        "clusters: [{name: k, cluster: {server: 'http://[::1]:80'}}, {name: l, cluster: {server: 'http://localhost'}}]\n"
        "users: [{name: u, user: null}]\n";
    struct kube_config *c = parse(text, "a", false);
    assert_string_equal("http://[::1]:80", kube_config_server(c));
    assert_string_equal("default", kube_config_namespace(c));
    assert_null(kube_config_ca_pem(c));
    assert_null(kube_config_cert_pem(c));
    assert_null(kube_config_tls_server_name(c));
    assert_true(kube_config_is_loopback(c));
    assert_false(kube_config_token(c, token, sizeof token));
    kube_config_free(c);
    c = parse(text, "b", false);
    assert_string_equal("http://localhost", kube_config_server(c));
    assert_true(kube_config_is_loopback(c));
    kube_config_free(c);
}

/* ---- files ---------------------------------------------------------------------------------- */

static void test_files_beside_the_kubeconfig(void **state)
{
    (void)state;
    char token[KUBE_TOKEN_MAX];
    put_file("ca.crt", PEM_TEXT "ca\n");
    put_file("key.pem", PEM_TEXT "key\n");
    put_file("token", "from-file\n");
    AUTO_STRBUF text = {0};
    strbuf_addf(
        &text,
        HEAD
        "clusters: [{name: k, cluster: {server: 'https://h', certificate-authority: ca.crt}}]\n"
        "users: [{name: u, user: {client-certificate: %s/ca.crt, client-key: key.pem, token: inline, tokenFile: token}}]\n",
        dir);
    put_file("config", strbuf_str(&text));
    struct kube_config *c = NULL;
    struct kube_options o = {.kubeconfig = in_dir("config")};
    struct error err = ERROR_INIT;
    if (kube_config_load(&c, &o, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(PEM_TEXT "ca\n", kube_config_ca_pem(c));
    assert_string_equal(PEM_TEXT "ca\n", kube_config_cert_pem(c));
    assert_string_equal(PEM_TEXT "key\n", kube_config_key_pem(c));
    assert_true(kube_config_token(c, token, sizeof token));
    assert_string_equal("from-file", token);
    kube_config_free(c);
}

static void expect_load_error(const char *row, const struct kube_options *o, enum error_code code,
                              const char *says)
{
    struct kube_config *c = NULL;
    struct error err = ERROR_INIT;
    expect_int(row, -1, kube_config_load(&c, o, &err));
    expect_int(row, code, err.code);
    if (!strstr(err.text, says))
        expect_str(row, says, err.text);
}

static void test_files_that_do_not_help(void **state)
{
    (void)state;
    struct kube_options o = {.kubeconfig = in_dir("config")};
    expect_load_error("no kubeconfig", &o, ERROR_NOT_FOUND, "kubeconfig: ");
    put_file("config", "");
    expect_load_error("an empty one", &o, ERROR_INVALID, "/config: ");
    put_file(
        "config", HEAD
        "clusters: [{name: k, cluster: {server: 'https://h', certificate-authority: ca.crt}}]\n" USER(
            ""));
    expect_load_error("no CA file", &o, ERROR_NOT_FOUND, "cluster 'k': certificate-authority: ");
    put_file("ca.crt", "not PEM");
    expect_load_error("a CA file that is no PEM", &o, ERROR_INVALID,
                      "certificate-authority: not PEM");
    put_file("config", HEAD CLUSTER USER("tokenFile: token"));
    expect_load_error("no token file", &o, ERROR_NOT_FOUND, "user 'u': ");
    put_file("token", " \n");
    expect_load_error("an empty token file", &o, ERROR_INVALID, "token is empty");
    AUTO_STRBUF big = {0};
    for (int i = 0; i < KUBE_TOKEN_MAX + 17; i++)
        strbuf_addc(&big, 't');
    put_file("token", strbuf_str(&big));
    expect_load_error("a token file too large", &o, ERROR_TOO_LARGE, "larger than");
    o.kubeconfig = dir;
    expect_load_error("a directory", &o, ERROR_IO, "kubeconfig: ");
    expect_done();
}

/* ---- the token moves ------------------------------------------------------------------------ */

/* Waits for the token to become `want`: the file is looked at once a second. */
static void await_token(struct kube_config *c, const char *want)
{
    char token[KUBE_TOKEN_MAX] = "";
    for (int64_t end = clock_mono_ms() + 30000; clock_mono_ms() < end; clock_sleep_ms(20))
        if (kube_config_token(c, token, sizeof token) && str_eq(token, want))
            return;
    fail_msg("expected token %s, got %s after 30 s", want, token);
}

static int warnings;
static void count_line(void *arg, const char *line, size_t n)
{
    (void)arg, (void)n;
    warnings++;
    if (strstr(line, "t0ken"))
        fail_msg("a token in the log: %s", line);
}

static void test_token_rotation(void **state)
{
    (void)state;
    char token[KUBE_TOKEN_MAX];
    put_file("ca.crt", PEM_TEXT);
    put_file("token", "t0ken-1");
    put_file("namespace", "kube-system\n");
    struct kube_config *c = NULL;
    struct error err = ERROR_INIT;
    if (kube_config_in_cluster(&c, dir, "10.96.0.1", "443", &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal("https://10.96.0.1:443", kube_config_server(c));
    assert_string_equal("kube-system", kube_config_namespace(c));
    await_token(c, "t0ken-1");
    put_file("token.new", "t0ken-2");
    assert_int_equal(0, rename(in_dir("token.new"), in_dir("token"))); /* as the kubelet does */
    await_token(c, "t0ken-2");
    log_set_sink(count_line, NULL);
    put_file("token", "t0ken 3"); /* nonsense: the last good one stays */
    for (int64_t end = clock_mono_ms() + 30000; warnings == 0 && clock_mono_ms() < end;
         clock_sleep_ms(20))
        assert_true(kube_config_token(c, token, sizeof token));
    assert_int_equal(1, warnings);
    assert_string_equal("t0ken-2", token);
    log_set_sink(NULL, NULL);
    remove(in_dir("token")); /* away for a moment */
    await_token(c, "t0ken-2");
    put_file("token", "t0ken-4");
    await_token(c, "t0ken-4");
    kube_config_free(c);
}

static void test_in_cluster(void **state)
{
    (void)state;
    struct kube_config *c = NULL;
    struct error err = ERROR_INIT;
    assert_int_equal(-1, kube_config_in_cluster(&c, dir, "10.0.0.1", "443", &err));
    assert_int_equal(ERROR_NOT_FOUND, err.code);
    put_file("ca.crt", "not PEM"); /* said now, not at the first handshake */
    assert_int_equal(-1, kube_config_in_cluster(&c, dir, "10.0.0.1", "443", &err));
    assert_int_equal(ERROR_INVALID, err.code);
    assert_non_null(strstr(err.text, "/ca.crt: not PEM"));
    put_file("ca.crt", PEM_TEXT);
    assert_int_equal(-1, kube_config_in_cluster(&c, dir, "10.0.0.1", "443", &err));
    assert_non_null(strstr(err.text, "service account: "));
    assert_int_equal(-1, kube_config_in_cluster(&c, dir, "a b", "443", &err));
    put_file("token", "t");
    assert_int_equal(0, kube_config_in_cluster(&c, dir, "fd00::1", "6443", &err));
    assert_string_equal("https://[fd00::1]:6443", kube_config_server(c));
    assert_string_equal("default", kube_config_namespace(c));
    kube_config_free(c);
}

/* ---- where it is looked for ----------------------------------------------------------------- */

static void test_order(void **state)
{
    (void)state;
    struct kube_config *c = NULL;
    struct error err = ERROR_INIT;
    struct kube_options o = {0};
    AUTO_STRBUF list = {0};
    static const char minimal[] =
        "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n"
        "clusters: [{name: k, cluster: {server: 'https://%s'}}]\n";
    char text[512];
    unsetenv("KUBECONFIG");
    unsetenv("KUBERNETES_SERVICE_HOST");
    unsetenv("KUBERNETES_SERVICE_PORT");
    setenv("HOME", dir, 1);
    expect_load_error("nothing anywhere", &o, ERROR_NOT_FOUND, "no way to the API server");
    assert_int_equal(0, mkdir(in_dir(".kube"), 0700));
    str_format(text, sizeof text, minimal, "home");
    put_file(".kube/config", text);
    assert_int_equal(0, kube_config_load(&c, &o, &err));
    expect_str("the home directory last", "https://home", kube_config_server(c));
    kube_config_free(c);
    setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1", 1);
    setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    expect_load_error("in a pod, its service account", &o, ERROR_NOT_FOUND, "service account: ");
    strbuf_addf(&list, ":%s/none:%s/config", dir, dir);
    setenv("KUBECONFIG", strbuf_str(&list), 1);
    expect_load_error("none of the list", &o, ERROR_NOT_FOUND, "no file of $KUBECONFIG exists");
    str_format(text, sizeof text, minimal, "list");
    put_file("config", text);
    assert_int_equal(0, kube_config_load(&c, &o, &err));
    expect_str("the first of the list that exists", "https://list", kube_config_server(c));
    kube_config_free(c);
    unsetenv("KUBECONFIG");
    unsetenv("KUBERNETES_SERVICE_HOST");
    expect_done();
}

static void test_rows(void **state)
{
    (void)state;
    struct kube_options o = {0};
    const struct option_table tables[] = {{.rows = kube_option_rows, .target = &o}, {0}};
    static const struct option_program program = {
        .name = "p", .summary = "s", .synopsis = "", .description = ""};
    char name[] = "p";
    char *argv[] = {name, NULL};
    struct options_operands operands;
    struct error err = ERROR_INIT;
    if (options_parse(&program, tables, 1, argv, &operands, &err) != OPTIONS_RUN)
        fail_msg("%s", err.text);
    assert_int_equal(256 << 20, o.max_list_bytes);
    assert_int_equal(32 << 20, o.max_line_bytes);
    assert_int_equal(16 << 20, o.max_reply_bytes);
    assert_int_equal(1000000, o.max_objects);
    assert_int_equal(5000, o.page_size);
    assert_int_equal(30000, o.request_timeout_ms);
    assert_int_equal(300000, o.watch_timeout_ms);
    assert_int_equal(90000, o.watch_idle_ms);
    assert_int_equal(0, o.qps);
    assert_null(o.kubeconfig);
}

int main(void)
{
#define WITH_DIR(fn) cmocka_unit_test_setup_teardown(fn, make_dir, remove_dir)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_inline),
        cmocka_unit_test(test_sparse),
        WITH_DIR(test_files_beside_the_kubeconfig),
        WITH_DIR(test_files_that_do_not_help),
        WITH_DIR(test_token_rotation),
        WITH_DIR(test_in_cluster),
        WITH_DIR(test_order),
        cmocka_unit_test(test_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
