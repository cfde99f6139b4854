// SPDX-License-Identifier: Apache-2.0
/* Certificate ::= SEQUENCE { tbsCertificate SEQUENCE { [0] version OPTIONAL, serialNumber,
 * signature, issuer, validity SEQUENCE { notBefore, notAfter }, ... (RFC 5280, 4.1). An element is
 * a tag, a length and content. A Time is UTCTime (two-digit year, 1950 to 2049) or GeneralizedTime
 * (four-digit), ending with Z. */
#include "kubectl/validity.h"

#include <string.h>

#include "lib/base/base64.h"
#include "lib/base/str.h"

enum { SEQUENCE = 0x30, VERSION = 0xa0, UTC_TIME = 0x17, GENERALIZED_TIME = 0x18 };

struct der {
    const unsigned char *at;
    size_t left;
};

/* Takes the first element off d; *in is its content. */
static bool next(struct der *d, int *tag, struct der *in)
{
    size_t head = 2, length, more;
    if (d->left < head)
        return false;
    *tag = d->at[0];
    length = d->at[1];
    if (length >= 0x80) { /* that many length bytes follow; DER has no indefinite lengths */
        more = length & 0x7f;
        if (more == 0 || more > 4 || d->left < head + more)
            return false;
        length = 0;
        for (size_t i = 0; i < more; i++)
            length = length << 8 | d->at[head + i];
        head += more;
    }
    if (length > d->left - head)
        return false;
    *in = (struct der){.at = d->at + head, .left = length};
    d->at += head + length;
    d->left -= head + length;
    return true;
}

static bool enter(struct der *d, int wanted, struct der *in)
{
    int tag;
    return next(d, &tag, in) && tag == wanted;
}

static bool read_time(struct der *d, char out[VALIDITY_TIME_SIZE])
{
    struct der in;
    int tag;
    if (!next(d, &tag, &in) || (tag != UTC_TIME && tag != GENERALIZED_TIME))
        return false;
    size_t years = tag == UTC_TIME ? 2 : 4, digits = years + 10;
    if (in.left != digits + 1 || in.at[digits] != 'Z')
        return false;
    for (size_t i = 0; i < digits; i++)
        if (in.at[i] < '0' || in.at[i] > '9')
            return false;
    const char *t = (const char *)in.at + years;
    const char *century = years == 4 ? "" : in.at[0] >= '5' ? "19" : "20";
    return str_format(out, VALIDITY_TIME_SIZE, "%s%.*s-%.2s-%.2sT%.2s:%.2s:%.2sZ", century,
                      (int)years, (const char *)in.at, t, t + 2, t + 4, t + 6, t + 8);
}

static bool walk(struct der d, struct validity *out)
{
    struct der certificate, tbs, ahead, skipped, validity;
    int tag;
    if (!enter(&d, SEQUENCE, &certificate) || !enter(&certificate, SEQUENCE, &tbs))
        return false;
    ahead = tbs;
    if (next(&ahead, &tag, &skipped) && tag == VERSION)
        tbs = ahead;
    for (int i = 0; i < 3; i++) /* serialNumber, signature, issuer */
        if (!next(&tbs, &tag, &skipped))
            return false;
    return enter(&tbs, SEQUENCE, &validity) && read_time(&validity, out->not_before) &&
           read_time(&validity, out->not_after);
}

bool validity_read(const char *pem, size_t n, struct validity *out)
{
    static const char begin[] = "-----BEGIN CERTIFICATE-----", end[] = "-----END CERTIFICATE-----";
    AUTO_STRBUF text = {0}, der = {0};
    if (n > VALIDITY_PEM_MAX)
        return false;
    strbuf_add(&text, pem, n);
    const char *from = strstr(strbuf_str(&text), begin);
    const char *to = from != NULL ? strstr(from, end) : NULL;
    if (to == NULL)
        return false;
    from += strlen(begin);
    return base64_decode(from, (size_t)(to - from), &der) &&
           walk((struct der){.at = (const unsigned char *)strbuf_str(&der), .left = der.len}, out);
}
