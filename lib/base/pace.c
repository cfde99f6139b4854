// SPDX-License-Identifier: Apache-2.0
#include "lib/base/pace.h"

#include "lib/base/num.h"

enum { TOKEN = 1000 }; /* thousandths: what a rate of 1 brings in 1000 ms */

void pace_init(struct pace *p, int64_t rate, int64_t slow_rate, int64_t now_ms)
{
    *p = (struct pace){.rate = rate,
                       .slow_rate = slow_rate,
                       .tokens_milli = rate * TOKEN,
                       .slow_milli = TOKEN,
                       .at_ms = now_ms};
    pthread_mutex_init(&p->lock, NULL);
}

void pace_deinit(struct pace *p)
{
    pthread_mutex_destroy(&p->lock);
}

/* A clock that stands still or goes back brings nothing. */
static void refill(struct pace *p, int64_t now_ms)
{
    int64_t ms = num_min(num_max(now_ms - p->at_ms, 0), 1000);
    p->at_ms = num_max(now_ms, p->at_ms);
    p->tokens_milli = num_min(p->tokens_milli + ms * p->rate, p->rate * TOKEN);
    p->slow_milli = num_min(p->slow_milli + ms * p->slow_rate, TOKEN);
}

int64_t pace_take(struct pace *p, bool busy, int64_t now_ms)
{
    pthread_mutex_lock(&p->lock);
    refill(p, now_ms);
    int64_t *from = busy ? &p->slow_milli : &p->tokens_milli;
    int64_t rate = busy ? p->slow_rate : p->rate, wait_ms = 0;
    if (*from >= TOKEN) {
        *from -= TOKEN;
        if (busy) /* also of the whole: a busy token is not a second one */
            p->tokens_milli = num_max(p->tokens_milli - TOKEN, 0);
    } else {
        wait_ms = (TOKEN - *from + rate - 1) / rate;
    }
    pthread_mutex_unlock(&p->lock);
    return wait_ms;
}
