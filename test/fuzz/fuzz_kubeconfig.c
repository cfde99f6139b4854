// SPDX-License-Identifier: Apache-2.0
/* Any text as a kubeconfig; no file is read. What is accepted keeps the promises of config.h. */
#include "lib/base/str.h"
#include "lib/kube/config.h"
#include "test/fuzz/fuzz_kit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char token[KUBE_TOKEN_MAX];
    struct kube_config *c = NULL;
    struct error err = ERROR_INIT;
    if (kube_config_parse(&c, (const char *)data, size, NULL, "/nonexistent", false, &err) < 0) {
        if (c || !err.text[0])
            abort();
        return 0;
    }
    const char *server = kube_config_server(c);
    if (!str_starts(server, "https://") &&
        !(str_starts(server, "http://") && kube_config_is_loopback(c)))
        abort();
    if (str_ends(server, "/") || !kube_config_namespace(c)[0])
        abort();
    if (!kube_config_cert_pem(c) != !kube_config_key_pem(c))
        abort();
    if (kube_config_token(c, token, sizeof token))
        for (const char *p = token; *p; p++)
            if (*p <= ' ' || *p > '~')
                abort();
    kube_config_free(c);
    return 0;
}
