// SPDX-License-Identifier: Apache-2.0
#include "lib/base/rfc3339.h"

#include <stdbool.h>

#include "lib/base/str.h"

enum { NS_IN_S = 1000000000, S_IN_DAY = 86400 };

static bool is_leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static void digits(char *out, int64_t n, size_t len)
{
    for (; len > 0; n /= 10)
        out[--len] = (char)('0' + n % 10);
}

void rfc3339_text(int64_t ns, char out[RFC3339_SIZE])
{
    static const int month_days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t days = ns / NS_IN_S / S_IN_DAY, s = ns / NS_IN_S % S_IN_DAY, rest = ns % NS_IN_S;
    int64_t year = 1970;
    for (; days >= 365 + is_leap(year); year++) /* at most 292: int64 ends in 2262 */
        days -= 365 + is_leap(year);
    int month = 0;
    for (; days >= month_days[month] + (month == 1 && is_leap(year)); month++)
        days -= month_days[month] + (month == 1 && is_leap(year));
    char text[] = "0000-00-00T00:00:00.000000000Z";
    digits(text, year, 4);
    digits(text + 5, month + 1, 2);
    digits(text + 8, days + 1, 2);
    digits(text + 11, s / 3600, 2);
    digits(text + 14, s / 60 % 60, 2);
    digits(text + 17, s % 60, 2);
    digits(text + 20, rest, 9);
    if (rest == 0)
        (void)str_format(text + 19, sizeof text - 19, "Z");
    (void)str_format(out, RFC3339_SIZE, "%s", text);
}
