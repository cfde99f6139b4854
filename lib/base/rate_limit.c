// SPDX-License-Identifier: Apache-2.0
#include "lib/base/rate_limit.h"

#include "lib/base/num.h"

enum { TOKEN = 1000 }; /* in thousandths */

void rate_limit_init(struct rate_limit *p, int64_t rate, int64_t slow_rate, int64_t now_ms)
{
    *p = (struct rate_limit){.rate = rate,
                             .slow_rate = slow_rate,
                             .tokens_milli = rate * TOKEN,
                             .slow_milli = TOKEN,
                             .at_ms = now_ms};
    pthread_mutex_init(&p->lock, NULL);
}

void rate_limit_deinit(struct rate_limit *p)
{
    pthread_mutex_destroy(&p->lock);
}

/* A clock that stops or goes back adds nothing. */
static void refill(struct rate_limit *p, int64_t now_ms)
{
    int64_t ms = num_min(num_max(now_ms - p->at_ms, 0), 1000);
    p->at_ms = num_max(now_ms, p->at_ms);
    p->tokens_milli = num_min(p->tokens_milli + ms * p->rate, p->rate * TOKEN);
    p->slow_milli = num_min(p->slow_milli + ms * p->slow_rate, TOKEN);
}

int64_t rate_limit_take(struct rate_limit *p, bool busy, int64_t now_ms)
{
    pthread_mutex_lock(&p->lock);
    refill(p, now_ms);
    int64_t *from = busy ? &p->slow_milli : &p->tokens_milli;
    int64_t rate = busy ? p->slow_rate : p->rate, wait_ms = 0;
    if (*from >= TOKEN) {
        *from -= TOKEN;
        if (busy) /* also taken from the full bucket */
            p->tokens_milli = num_max(p->tokens_milli - TOKEN, 0);
    } else {
        wait_ms = (TOKEN - *from + rate - 1) / rate;
    }
    pthread_mutex_unlock(&p->lock);
    return wait_ms;
}
