// SPDX-License-Identifier: Apache-2.0
/*
 * kinds_amount - amounts of resources in Kubernetes' canonical form. It keeps the family of the
 * given suffix (Ki.., k.., e3) and the shortest number in that family; amounts finer than a
 * thousandth are rounded up.
 */
#include "test/local/kinds/kinds_amount.h"

#include "lib/base/vec.h"
#include "lib/model/quantity.h"

/* Thousandths when they fit, otherwise whole units (too large to have thousandths that matter). */
static bool read_amount(const char *s, int64_t *n, bool *milli)
{
    struct error err = ERROR_INIT;
    *milli = true;
    if (quantity_parse(s, strlen(s), QUANTITY_MILLI, QUANTITY_UP, n, &err) == 0)
        return true;
    *milli = false;
    return err.code == ERROR_RANGE &&
           quantity_parse(s, strlen(s), QUANTITY_UNITS, QUANTITY_UP, n, &err) == 0;
}

static void print_binary(int64_t units, struct strbuf *out)
{
    static const char *const suffixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    size_t i = 0;
    while (units != 0 && units % 1024 == 0 && i + 1 < sizeof suffixes / sizeof *suffixes) {
        units /= 1024;
        i++;
    }
    strbuf_addf(out, "%lld%s", (long long)units, suffixes[i]);
}

static void print_decimal(int64_t n, bool milli, bool exponent, struct strbuf *out)
{
    static const char *const suffixes[] = {"m", "", "k", "M", "G", "T", "P", "E"};
    size_t i = milli ? 0 : 1;
    if (n == 0)
        i = 1;
    while (n != 0 && n % 1000 == 0 && i + 1 < sizeof suffixes / sizeof *suffixes) {
        n /= 1000;
        i++;
    }
    strbuf_addf(out, "%lld", (long long)n);
    if (!exponent)
        strbuf_adds(out, suffixes[i]);
    else if (i != 1)
        strbuf_addf(out, "e%d", ((int)i - 1) * 3);
}

static const char *text_of(struct jsonnode *amount)
{
    const char *s = jsonnode_str(amount);
    return s ? s : jsonnode_number_text(amount);
}

bool kinds_amount_canonical(struct jsonnode *amount, struct strbuf *out)
{
    const char *s = text_of(amount);
    int64_t n;
    bool milli;
    if (!s || !read_amount(s, &n, &milli))
        return false;
    size_t len = strlen(s);
    bool binary = len > 1 && s[len - 1] == 'i';
    /* "5E" is a suffix, "5E3" and "5e3" are exponents. */
    bool exponent = strpbrk(s, "eE") && s[len - 1] >= '0' && s[len - 1] <= '9';
    bool whole = !milli || n % 1000 == 0;
    int64_t units = milli ? n / 1000 : n;
    if (binary && whole && (units >= 1024 || units <= -1024))
        print_binary(units, out);
    else
        print_decimal(n, milli, exponent, out);
    return true;
}

void kinds_amount_canonicalize(struct jsontree *t, struct jsonnode *list)
{
    AUTO_STRBUF text = {0};
    struct VEC(const char *) wrong = {0}; /* keys: an iterator does not survive a change */
    for (struct jsonnode_iter it = jsonnode_iter(list); jsonnode_next(&it);) {
        strbuf_reset(&text);
        if (it.key && kinds_amount_canonical(it.value, &text) &&
            !str_eq(jsonnode_str(it.value), strbuf_str(&text)))
            vec_push(&wrong, it.key);
    }
    for (size_t i = 0; i < wrong.len; i++) {
        strbuf_reset(&text);
        (void)kinds_amount_canonical(jsonnode_get(list, wrong.items[i]), &text);
        jsonnode_set_str(t, list, wrong.items[i], strbuf_str(&text));
    }
    vec_deinit(&wrong);
}

static void read_or_zero(struct jsonnode *amount, int64_t *n, bool *milli)
{
    const char *s = text_of(amount);
    if (!s || !read_amount(s, n, milli)) {
        *n = 0;
        *milli = true;
    }
}

int kinds_amount_compare(struct jsonnode *a, struct jsonnode *b)
{
    int64_t x, y;
    bool x_milli, y_milli;
    read_or_zero(a, &x, &x_milli);
    read_or_zero(b, &y, &y_milli);
    /* One that has no thousandths is beyond the other's range. */
    if (x_milli != y_milli)
        return x_milli ? (y > 0 ? -1 : 1) : (x > 0 ? 1 : -1);
    return x < y ? -1 : x > y ? 1 : 0;
}

bool kinds_amount_is_zero(struct jsonnode *amount)
{
    int64_t n;
    bool milli;
    const char *s = text_of(amount);
    return !s || !read_amount(s, &n, &milli) || n == 0;
}

bool kinds_amount_is_extended(const char *resource)
{
    const char *slash = strchr(resource, '/');
    if (!slash || str_starts(resource, "requests."))
        return false;
    AUTO_STRBUF prefix = {0};
    strbuf_add(&prefix, resource, (size_t)(slash - resource));
    return !str_eq(strbuf_str(&prefix), "kubernetes.io") &&
           !str_ends(strbuf_str(&prefix), ".kubernetes.io");
}

void kinds_amount_check(struct kinds_check *c, const char *at, const char *resource,
                        struct jsonnode *amount)
{
    const char *s = text_of(amount);
    int64_t n;
    bool milli;
    if (!s || !read_amount(s, &n, &milli)) {
        kinds_check_undecodable(c, "quantities must match the regular expression "
                                   "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
        return;
    }
    AUTO_STRBUF text = {0};
    kinds_amount_canonical(amount, &text);
    if (n < 0)
        kinds_check_invalid(c, at, strbuf_str(&text), "must be greater than or equal to 0");
    bool counted = kinds_amount_is_extended(resource) || str_eq(resource, "pods") ||
                   str_starts(resource, "hugepages-");
    if (counted && milli && n % 1000 != 0)
        kinds_check_invalid(c, at, strbuf_str(&text), "must be an integer");
}
