// SPDX-License-Identifier: Apache-2.0
#include "test/local/server/server_parse.h"

/* Decodes s in place. false: a bad escape, or a NUL. */
static bool decode(char *s, bool plus_is_blank)
{
    char *w = s;
    for (; *s; s++) {
        if (*s == '%') {
            int high = http_parse_hex(s[1]);
            int low = high < 0 ? -1 : http_parse_hex(s[2]);
            if (low < 0 || (high == 0 && low == 0))
                return false;
            *w++ = (char)(high * 16 + low);
            s += 2;
        } else {
            *w++ = *s == '+' && plus_is_blank ? ' ' : *s;
        }
    }
    *w = '\0';
    return true;
}

static bool parse_query(struct server_parse *p, char *base, char *query)
{
    for (char *next; query && *query; query = next) {
        next = strchr(query, '&');
        if (next)
            *next++ = '\0';
        if (!*query)
            continue;
        if (p->query_len == SERVER_QUERY_MAX)
            return false;
        char *value = strchr(query, '=');
        if (value)
            *value++ = '\0';
        else
            value = query + strlen(query);
        if (!decode(query, true) || (*value && !decode(value, true)))
            return false;
        p->query[p->query_len++] = (struct http_parse_pair){.name = (uint32_t)(query - base),
                                                            .value = (uint32_t)(value - base)};
    }
    return true;
}

/* "/path?query", once its line was read. */
static bool parse_target(struct server_parse *p, char *base)
{
    char *target = base + p->message.target;
    if (strncmp(target, "http://", 7) == 0) /* absolute form, as to a proxy */
        target = strchr(target + 7, '/') ? strchr(target + 7, '/') : target;
    char *query = strchr(target, '?');
    if (query)
        *query++ = '\0';
    p->has_path = true;
    p->path = (uint32_t)(target - base);
    return *target == '/' && decode(target, false) && parse_query(p, base, query);
}

enum http_parse_progress server_parse(struct server_parse *p, struct strbuf *in, size_t max_body)
{
    enum http_parse_progress got = http_parse(&p->message, in, max_body);
    if (got == HTTP_PARSE_REFUSED || p->has_path || p->message.phase == HTTP_PARSE_FIRST_LINE ||
        parse_target(p, in->ptr))
        return got;
    p->message.refusal = 400;
    p->message.why = "the target is not a path, has a bad escape, or too many arguments";
    return HTTP_PARSE_REFUSED;
}

const char *server_parse_query(const struct server_parse *p, const char *buf, const char *name)
{
    for (unsigned i = 0; i < p->query_len; i++)
        if (strcmp(buf + p->query[i].name, name) == 0)
            return buf + p->query[i].value;
    return NULL;
}
