// SPDX-License-Identifier: Apache-2.0
/*
 * runplan - what a container of a simulated node would do. Nothing is run; a few words of the shell
 * are understood, those that the manifests of tests and documents use to say "be busy for a while":
 *
 *   sleep N, true, false, :, echo ..., exit N, date, hostname
 *
 * alone or as sh -c "…" with ; && and newlines between them. A script with anything else in it runs
 * for ever, as a server would.
 */
#include "test/local/nodes/runplan.h"

#include <string.h>

#include "lib/base/num.h"
#include "lib/base/str.h"

enum { WORDS_MAX = 8, DAY_MS = 24 * 3600 * 1000 };

struct word {
    const char *at;
    size_t len;
};

static bool word_is(const struct word *w, const char *text)
{
    return w->len == strlen(text) && memcmp(w->at, text, w->len) == 0;
}

/* The program's name without its directory. */
static struct word base_name(struct word w)
{
    for (size_t i = w.len; i > 0; i--)
        if (w.at[i - 1] == '/')
            return (struct word){w.at + i, w.len - i};
    return w;
}

bool runplan_duration(const char *text, size_t n, int64_t *ms)
{
    int64_t unit = 1000, value = 0, fraction = 0, scale = 1;
    size_t i = 0, digits = 0;
    if ((n == 8 && memcmp(text, "infinity", 8) == 0) || (n == 3 && memcmp(text, "inf", 3) == 0)) {
        *ms = RUNPLAN_FOREVER;
        return true;
    }
    for (; i < n && text[i] >= '0' && text[i] <= '9'; i++, digits++)
        if (!num_mul(value, 10, &value) || !num_add(value, text[i] - '0', &value))
            return false;
    if (i < n && text[i] == '.')
        for (i++; i < n && text[i] >= '0' && text[i] <= '9'; i++, digits++)
            if (scale < 1000) {
                fraction = fraction * 10 + (text[i] - '0');
                scale *= 10;
            }
    if (digits == 0)
        return false;
    if (i < n) {
        unit = text[i] == 's'   ? 1000
               : text[i] == 'm' ? 60 * 1000
               : text[i] == 'h' ? 3600 * 1000
               : text[i] == 'd' ? DAY_MS
                                : 0;
        i++;
    }
    if (i != n || unit == 0 || !num_mul(value, unit, &value) ||
        !num_add(value, fraction * unit / scale, &value))
        return false;
    *ms = value;
    return true;
}

/* One simple command. true: understood; *ended when nothing after it is run. */
static bool step(const struct word *words, size_t n, struct runplan *out, bool *ended)
{
    static const char *const quick[] = {"true", ":", "echo", "date", "hostname", "printf", "set"};
    struct word first = base_name(words[0]);
    int64_t ms = 0;
    struct error ignored;
    for (size_t i = 0; i < sizeof quick / sizeof quick[0]; i++)
        if (word_is(&first, quick[i])) {
            out->exit_code = 0;
            return true;
        }
    if (word_is(&first, "false")) {
        out->exit_code = 1;
        return true;
    }
    if (word_is(&first, "exit") && n <= 2) {
        *ended = true;
        if (n == 1)
            return true;
        if (num_parse(words[1].at, words[1].len, &ms, &ignored) < 0 || ms < 0 || ms > 255)
            return false;
        out->exit_code = (int)ms;
        return true;
    }
    if (word_is(&first, "sleep") && n == 2 && runplan_duration(words[1].at, words[1].len, &ms)) {
        out->exit_code = 0;
        if (ms == RUNPLAN_FOREVER || !num_add(out->run_ms, ms, &out->run_ms)) {
            out->run_ms = RUNPLAN_FOREVER;
            *ended = true;
        }
        return true;
    }
    return false;
}

/* Words of the command at *s; *s is moved behind it and its separator. Quotes are taken off the
 * ends of words only. */
static size_t next_command(const char **s, struct word *words, bool *only_if_ok)
{
    size_t n = 0;
    const char *p = *s;
    *only_if_ok = false;
    while (*p != '\0' && *p != ';' && *p != '\n' && *p != '&') {
        if (*p == ' ' || *p == '\t') {
            p++;
            continue;
        }
        const char *from = p;
        char quote = *p == '"' || *p == '\'' ? *p : '\0';
        if (quote != '\0') {
            for (from = ++p; *p != '\0' && *p != quote; p++)
                ;
        } else {
            while (*p != '\0' && strchr(" \t;\n&", *p) == NULL)
                p++;
        }
        if (n < WORDS_MAX)
            words[n++] = (struct word){from, (size_t)(p - from)};
        if (quote != '\0' && *p == quote)
            p++;
    }
    *only_if_ok = p[0] == '&' && p[1] == '&';
    if (p[0] == '&' && !*only_if_ok && n < WORDS_MAX) /* in the background: not understood */
        words[0] = (struct word){"&", 1};
    *s = *p == '\0' ? p : p + (*only_if_ok ? 2 : 1);
    return n;
}

void runplan_of_script(const char *script, struct runplan *out)
{
    *out = (struct runplan){.known = true};
    bool ended = false, ok_before = true, skipping = false;
    while (*script != '\0' && !ended) {
        struct word words[WORDS_MAX];
        bool and_then;
        size_t n = next_command(&script, words, &and_then);
        if (n > 0 && !(skipping && !ok_before) && !step(words, n, out, &ended)) {
            *out = (struct runplan){.run_ms = RUNPLAN_FOREVER};
            return;
        }
        ok_before = out->exit_code == 0;
        skipping = and_then;
    }
}

void runplan_of_command(const char *const *argv, struct runplan *out)
{
    struct word words[WORDS_MAX];
    size_t n = 0;
    bool ended = false;
    *out = (struct runplan){.run_ms = RUNPLAN_FOREVER};
    if (argv[0] == NULL)
        return;
    for (; argv[n] != NULL && n < WORDS_MAX; n++)
        words[n] = (struct word){argv[n], strlen(argv[n])};
    struct word first = base_name(words[0]);
    bool shell = word_is(&first, "sh") || word_is(&first, "bash") || word_is(&first, "ash");
    if (shell && n >= 3 && argv[1][0] == '-' && str_ends(argv[1], "c")) {
        runplan_of_script(argv[2], out);
        return;
    }
    struct runplan p = {.known = true};
    if (step(words, n, &p, &ended))
        *out = p;
}
