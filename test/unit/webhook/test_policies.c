// SPDX-License-Identifier: Apache-2.0
/* The admission policies repeat lists of the programs in CEL. Here both are compared, so that none
 * changes alone. */
#include <stdio.h>

#include "device-plugin/isolation/shares.h"
#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/model/grant.h"
#include "lib/model/names.h"
#include "test/unit/lib/base/expect.h"
#include "webhook/rules/rules_internal.h"

#define TEMPLATES "deploy/chart/templates/"
#define HELPERS TEMPLATES "_helpers.tpl"

static struct strbuf text;

static int begin(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    if (file_read(HELPERS, 1 << 20, &text, &err) < 0)
        fail_msg("%s", err.text);
    return 0;
}

static int end(void **state)
{
    (void)state;
    strbuf_deinit(&text);
    return 0;
}

/* What a template says between its define and its end. */
static const char *find_definition(const char *name, size_t *len)
{
    char head[100];
    str_format(head, sizeof head, "{{- define \"%s\" -}}", name);
    const char *s = strstr(strbuf_str(&text), head);
    const char *e = s != NULL ? strstr(s, "{{- end }}") : NULL;
    if (e == NULL)
        fail_msg("%s: no %s", HELPERS, name);
    *len = (size_t)(e - s);
    return s;
}

/* How often the definition has 'word' in quotes, after `before`. */
static int count(const char *name, const char *before, const char *word)
{
    char quoted[200];
    size_t len;
    const char *s = find_definition(name, &len), *e = s + len;
    int n = 0;
    str_format(quoted, sizeof quoted, "%s'%s'", before, word);
    for (s = strstr(s, quoted); s != NULL && s < e; s = strstr(s + 1, quoted))
        n++;
    return n;
}

/* How many words in quotes the definition has. */
static int count_words(const char *name)
{
    size_t len, quotes = 0;
    const char *s = find_definition(name, &len);
    for (size_t i = 0; i < len; i++)
        quotes += s[i] == '\'';
    return (int)(quotes / 2);
}

static void result_keys(void **state)
{
    (void)state;
    int keys = 0;
    for (; grant_result_keys[keys] != NULL; keys++)
        expect_int(grant_result_keys[keys], 1,
                   count("cosched.isResultKey", "", grant_result_keys[keys]));
    expect_int("all of ours", 1, count("cosched.isResultKey", "k.startsWith(", NAME_PREFIX_OWN));
    static const char *const requests[] = {NAME_INJECT, NAME_ANN_CPUSET_SHARED};
    for (int i = 0; i < 2; i++) {
        expect_int("but for requests", 1, count("cosched.isResultKey", "", requests[i]));
        expect_true(requests[i], !grant_is_result_key(requests[i]));
    }
    expect_int("and no more", keys + 3, count_words("cosched.isResultKey"));
    expect_done();
}

static void variables(void **state)
{
    (void)state;
    int names = 0, prefixes = 0;
    for (; rules_env_names[names] != NULL; names++)
        expect_int(rules_env_names[names], 1,
                   count("cosched.isPluginVariable", "n == ", rules_env_names[names]));
    for (; rules_env_prefixes[prefixes] != NULL; prefixes++)
        expect_int(
            rules_env_prefixes[prefixes], 1,
            count("cosched.isPluginVariable", "n.startsWith(", rules_env_prefixes[prefixes]));
    expect_int("and no more", names + prefixes, count_words("cosched.isPluginVariable"));
    expect_done();
}

static void paths(void **state)
{
    (void)state;
    expect_str("the library's directory", SHARES_INSIDE, NAME_PATH_LIBRARY);
    expect_str("its preload file", SHARES_PRELOAD, NAME_PATH_PRELOAD);
    size_t len;
    const char *s = find_definition("cosched.hidesLibrary", &len);
    AUTO_STRBUF definition = {0};
    strbuf_add(&definition, s, len);
    expect_true("at or below",
                strstr(strbuf_str(&definition),
                       "'^/?(etc/ld[.]so[.]preload|usr/local/cosched-gpu)(/.*)?$'") != NULL);
    expect_true("unreadable", strstr(strbuf_str(&definition), "'[[:cntrl:]]|") != NULL);
    expect_true("above", strstr(strbuf_str(&definition), "'^/?(|etc|usr|usr/local)/?$'") != NULL);
    static const char *const hidden[] = {
        "/", "/etc", "/usr", "/usr/local", NAME_PATH_LIBRARY, NAME_PATH_PRELOAD};
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
        expect_true(hidden[i], rules_mount_hides(hidden[i]));
    for (int i = 0; rules_mount_paths[i] != NULL; i++)
        expect_true("none that the policy does not know",
                    str_eq(rules_mount_paths[i], SHARES_INSIDE) ||
                        str_eq(rules_mount_paths[i], SHARES_PRELOAD));
    expect_done();
}

/* The webhook's account changes one field of its configurations: the policy is about each kind that
 * its role lets it patch, and excepts that field alone. */
static void configurations(void **state)
{
    (void)state;
    AUTO_STRBUF role = {0}, policies = {0};
    struct error err = ERROR_INIT;
    if (file_read(TEMPLATES "webhook.yaml", 1 << 20, &role, &err) < 0 ||
        file_read(TEMPLATES "plugin-policies.yaml", 1 << 20, &policies, &err) < 0)
        fail_msg("%s", err.text);
    static const char kinds[] =
        "resources: [\"mutatingwebhookconfigurations\", \"validatingwebhookconfigurations\"]";
    const char *policy = strstr(strbuf_str(&policies), "  name: cosched-webhook-configurations\n");
    expect_true("in the role", strstr(strbuf_str(&role), kinds) != NULL);
    expect_true("there is a policy", policy != NULL);
    static const char *const said[] = {
        kinds,
        "operations: [\"UPDATE\"]",
        ":cosched-webhook'",
        "variables.now.map(w, w.name) == variables.before.map(w, w.name)",
        "w.all(k, k == 'clientConfig' || (k in b && b[k] == w[k])) && b.all(k, k in w)",
        "w.clientConfig.all(k, k == 'caBundle' || ",
        "[['managedFields', 'generation', 'resourceVersion']].all(kept,",
        "validationActions: [\"Deny\"]",
    };
    for (size_t i = 0; policy != NULL && i < sizeof said / sizeof said[0]; i++)
        expect_true(said[i], strstr(policy, said[i]) != NULL);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(result_keys, begin, end),
        cmocka_unit_test_setup_teardown(variables, begin, end),
        cmocka_unit_test_setup_teardown(paths, begin, end),
        cmocka_unit_test(configurations),
    };
    return cmocka_run_group_tests_name("policies", tests, NULL, NULL);
}
