// SPDX-License-Identifier: Apache-2.0
/*
 * The query form of a label selector, as kubectl -l takes it.
 *
 *     selector    = [ requirement { "," requirement } ]
 *     requirement = KEY
 *                 | "!" KEY
 *                 | KEY ("=" | "==" | "!=" | ">" | "<") VALUE
 *                 | KEY ("in" | "notin") "(" [ VALUE { "," VALUE } ] ")"
 *
 * `in` and `notin` are operators only after a key, so they may also be keys and values. A VALUE may
 * be empty: "a=" and "a in ()" mean the empty string. Requirements are counted first, so that
 * nothing is reallocated.
 */
#include "test/local/api/selector_parse.h"

#include "lib/base/num.h"
#include "lib/base/str.h"

struct reader {
    const char *at;
    const char *text;
    struct arena *a;
    struct error *err;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_symbol(char c)
{
    return c == '=' || c == '!' || c == '(' || c == ')' || c == ',' || c == '>' || c == '<';
}

static void skip_blanks(struct reader *r)
{
    while (is_blank(*r->at))
        r->at++;
}

static int expected(const struct reader *r, const char *what)
{
    return error_set(r->err, ERROR_INVALID, "selector, byte %zu: expected %s, found '%.20s'",
                     (size_t)(r->at - r->text), what, r->at);
}

/* The next word, "" if a symbol or the end is next. */
static const char *take_word(struct reader *r)
{
    skip_blanks(r);
    const char *begin = r->at;
    while (*r->at != '\0' && !is_blank(*r->at) && !is_symbol(*r->at))
        r->at++;
    return arena_strndup(r->a, begin, (size_t)(r->at - begin));
}

static bool take(struct reader *r, const char *symbol)
{
    skip_blanks(r);
    if (!str_starts(r->at, symbol))
        return false;
    r->at += strlen(symbol);
    return true;
}

static void one_value(struct reader *r, struct requirement *out)
{
    out->values = arena_new(r->a, const char *, 1);
    out->values[0] = take_word(r);
    out->values_len = 1;
}

static int value_set(struct reader *r, struct requirement *out)
{
    size_t commas = 0;

    if (!take(r, "("))
        return expected(r, "'('");
    for (const char *s = r->at; *s != '\0' && *s != ')'; s++)
        commas += *s == ',';
    out->values = arena_new(r->a, const char *, commas + 1);
    do {
        out->values[out->values_len++] = take_word(r);
    } while (take(r, ","));
    if (!take(r, ")"))
        return expected(r, "',' or ')'");
    return 0;
}

static int check(const struct reader *r, struct requirement *q)
{
    if (!selector_key_is_legal(q->key))
        return error_set(r->err, ERROR_INVALID, "not a label key: '%s'", q->key);
    for (size_t i = 0; i < q->values_len; i++)
        if (!selector_value_is_legal(q->values[i]))
            return error_set(r->err, ERROR_INVALID, "key '%s': not a label value: '%s'", q->key,
                             q->values[i]);
    if ((q->op == SELECTOR_GT || q->op == SELECTOR_LT) &&
        num_parse(q->values[0], strlen(q->values[0]), &q->number, r->err) < 0)
        return error_wrap(r->err, "key '%s'", q->key);
    return 0;
}

static int read_requirement(struct reader *r, struct requirement *out)
{
    bool negated = take(r, "!");

    out->key = take_word(r);
    if (out->key[0] == '\0')
        return expected(r, "a key");
    skip_blanks(r);
    if (negated || *r->at == ',' || *r->at == '\0') {
        out->op = negated ? SELECTOR_NOT_EXISTS : SELECTOR_EXISTS;
    } else if (take(r, "==") || take(r, "=")) {
        out->op = SELECTOR_IN;
        one_value(r, out);
    } else if (take(r, "!=")) {
        out->op = SELECTOR_NOT_IN;
        one_value(r, out);
    } else if (*r->at == '>' || *r->at == '<') {
        out->op = *r->at++ == '>' ? SELECTOR_GT : SELECTOR_LT;
        one_value(r, out);
    } else {
        const char *before = r->at, *word = take_word(r);
        bool in = str_eq(word, "in");
        if (!in && !str_eq(word, "notin")) {
            r->at = before;
            return expected(r, "an operator");
        }
        out->op = in ? SELECTOR_IN : SELECTOR_NOT_IN;
        if (value_set(r, out) < 0)
            return -1;
    }
    return check(r, out);
}

int selector_parse(const char *text, struct arena *a, struct selector *out, struct error *err)
{
    struct reader r = {.at = text, .text = text, .a = a, .err = err};
    size_t commas = 0;

    *out = (struct selector){0};
    if (strlen(text) > SELECTOR_TEXT_MAX)
        return error_set(err, ERROR_TOO_LARGE, "selector longer than %d bytes", SELECTOR_TEXT_MAX);
    skip_blanks(&r);
    if (*r.at == '\0')
        return 0;
    for (const char *s = text; *s != '\0'; s++)
        commas += *s == ',';
    struct selector s = {.reqs = arena_new(a, struct requirement, commas + 1)};
    do {
        if (read_requirement(&r, &s.reqs[s.len]) < 0)
            return -1;
        s.len++;
    } while (take(&r, ","));
    if (*r.at != '\0')
        return expected(&r, "',' or the end");
    *out = s;
    return 0;
}
