// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as a quantity. What is read must hold together: up and down differ by at most one,
 * milli are a thousand units, the sign mirrors the roundings, and what is printed is read as the
 * same amount.
 */
#include "lib/base/num.h"
#include "lib/model/quantity.h"
#include "test/fuzz/fuzz_kit.h"

static bool read(const char *text, size_t n, enum quantity_scale scale, enum quantity_round round,
                 int64_t *out)
{
    struct error err = ERROR_INIT;
    bool ok = quantity_parse(text, n, scale, round, out, &err) == 0;

    must(ok == (err.code == ERROR_NONE));
    must(ok || err.code == ERROR_INVALID || err.code == ERROR_RANGE);
    return ok;
}

static void check_printed(int64_t value)
{
    AUTO_STRBUF out;
    int64_t back;

    strbuf_init(&out);
    quantity_print_milli(value, &out);
    must(read(out.ptr, out.len, QUANTITY_MILLI, QUANTITY_UP, &back) && back == value);
    strbuf_reset(&out);
    quantity_print_bytes(value, &out);
    must(read(out.ptr, out.len, QUANTITY_UNITS, QUANTITY_DOWN, &back) && back == value);
}

/* -x rounded up is the negative of x rounded down. */
static void check_mirrored(const char *text, size_t n, int64_t down)
{
    AUTO_STRBUF negative = {0};
    int64_t up;

    if (n == 0 || text[0] == '-' || text[0] == '+')
        return;
    strbuf_addc(&negative, '-');
    strbuf_add(&negative, text, n);
    must(read(negative.ptr, negative.len, QUANTITY_UNITS, QUANTITY_UP, &up) && up == -down);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = text_of(data, size);
    int64_t up, down, milli_up, milli_down;

    bool has_down = read(text, size, QUANTITY_UNITS, QUANTITY_DOWN, &down);
    if (read(text, size, QUANTITY_UNITS, QUANTITY_UP, &up)) {
        check_printed(up);
        must(!has_down || (up >= down && up - down <= 1));
    }
    if (has_down && down >= 0)
        check_mirrored(text, size, down);
    if (read(text, size, QUANTITY_MILLI, QUANTITY_UP, &milli_up) &&
        read(text, size, QUANTITY_MILLI, QUANTITY_DOWN, &milli_down)) {
        must(milli_up >= milli_down && milli_up - milli_down <= 1);
        must(has_down);
        must(down == milli_down / 1000 - (milli_down % 1000 < 0 ? 1 : 0));
    }
    free(text);
    return 0;
}
