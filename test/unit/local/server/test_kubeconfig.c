// SPDX-License-Identifier: Apache-2.0
/* The state directory: what is written is what our own client reads. */
#include "test/local/server/kubeconfig.h"

#include "test/unit/lib/base/expect.h"

#include <errno.h>
#include <sys/stat.h>

#include "lib/base/cleanup.h"
#include "lib/base/mem.h"
#include "lib/kube/config.h"

static void remove_all(const char *directory)
{
    static const char *const names[] = {"ca.crt",     "ca.key", "server.crt",
                                        "server.key", "token",  "kubeconfig"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512];
        str_format(path, sizeof path, "%s/%s", directory, names[i]);
        unlink(path);
    }
    assert_int_equal(0, rmdir(directory)); /* nothing else was left in it */
}

static struct kube_config *read_back(const struct kubeconfig *k)
{
    struct kube_config *c = NULL;
    struct error err = ERROR_INIT;
    struct strbuf text = {0};
    if (kubeconfig_read_file(k->path, 65536, &text, &err) < 0 ||
        kube_config_parse(&c, strbuf_str(&text), text.len, NULL, "", true, &err) < 0)
        fail_msg("%s", err.text);
    strbuf_deinit(&text);
    return c;
}

static void a_client_can_read_it(void **state)
{
    (void)state;
    struct kubeconfig k, again;
    struct error err = ERROR_INIT;
    if (kubeconfig_open(&k, NULL, false, &err) < 0 ||
        kubeconfig_write(&k, "127.0.0.1", 4321, false, &err) < 0)
        fail_msg("%s", err.text);
    struct kube_config *c = read_back(&k);
    char token[KUBE_TOKEN_MAX];
    expect_str("server", "https://127.0.0.1:4321", kube_config_server(c));
    expect_str("namespace", "default", kube_config_namespace(c));
    expect_str("CA", k.pki.ca_pem, kube_config_ca_pem(c));
    expect_true("token", kube_config_token(c, token, sizeof token));
    expect_str("token", k.token, token);
    expect_int("token", 64, (int64_t)strlen(token));
    kube_config_free(c);
    struct stat st;
    assert_int_equal(0, stat(k.path, &st));
    expect_int("nobody else may read it", 0600, st.st_mode & 0777);

    if (kubeconfig_open(&again, k.directory, false, &err) < 0)
        fail_msg("%s", err.text);
    expect_str("the CA is kept", k.pki.ca_pem, again.pki.ca_pem);
    expect_str("the key is kept", k.pki.key_pem, again.pki.key_pem);
    expect_str("the token is kept", k.token, again.token);
    kubeconfig_deinit(&again);
    remove_all(k.directory);
    kubeconfig_deinit(&k);
    expect_done();
}

static void plain_http_has_no_secrets(void **state)
{
    (void)state;
    struct kubeconfig k;
    struct error err = ERROR_INIT;
    if (kubeconfig_open(&k, NULL, true, &err) < 0 ||
        kubeconfig_write(&k, "::1", 80, true, &err) < 0)
        fail_msg("%s", err.text);
    struct kube_config *c = read_back(&k);
    char token[KUBE_TOKEN_MAX];
    expect_str("server", "http://[::1]:80", kube_config_server(c));
    expect_int("no token", false, kube_config_token(c, token, sizeof token));
    expect_str("no CA", NULL, kube_config_ca_pem(c));
    kube_config_free(c);
    remove_all(k.directory);
    kubeconfig_deinit(&k);
    expect_done();
}

static void files_that_cannot_be(void **state)
{
    (void)state;
    struct kubeconfig k;
    struct error err = ERROR_INIT;
    expect_int("a directory in a file", -1, kubeconfig_open(&k, "/dev/null/x", true, &err));
    expect_int("a file in no directory", -1, kubeconfig_write_file("/nonexistent/x", "a", 1, &err));
    struct strbuf text = {0};
    expect_int("no such file", -1, kubeconfig_read_file("/nonexistent", 10, &text, &err));
    expect_int("no such file", ERROR_NOT_FOUND, err.code);
    expect_int("more than allowed", -1, kubeconfig_read_file("/proc/self/status", 10, &text, &err));
    expect_int("more than allowed", ERROR_TOO_LARGE, err.code);
    strbuf_deinit(&text);
    expect_done();
}

static void only_a_temporary_directory_is_discarded(void **state)
{
    (void)state;
    struct kubeconfig k, again;
    struct error err = ERROR_INIT;
    char inner[512];
    if (kubeconfig_open(&k, NULL, true, &err) < 0 ||
        kubeconfig_open(&again, k.directory, true, &err) < 0)
        fail_msg("%s", err.text);
    str_format(inner, sizeof inner, "%s/nodes", k.directory);
    assert_int_equal(0, mkdir(inner, 0700));
    str_format(inner, sizeof inner, "%s/nodes/file", k.directory);
    assert_int_equal(0, kubeconfig_write_file(inner, "x", 1, &err));
    struct stat st;
    kubeconfig_discard(&again);
    expect_int("one that was given stays", 0, stat(inner, &st));
    kubeconfig_discard(&k);
    expect_int("its own goes, with all in it", -1, stat(k.directory, &st));
    kubeconfig_deinit(&again);
    kubeconfig_deinit(&k);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_can_read_it),
        cmocka_unit_test(plain_http_has_no_secrets),
        cmocka_unit_test(files_that_cannot_be),
        cmocka_unit_test(only_a_temporary_directory_is_discarded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
