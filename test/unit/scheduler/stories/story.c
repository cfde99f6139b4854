// SPDX-License-Identifier: Apache-2.0
#include "test/unit/scheduler/stories/story.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/str.h"
#include "scheduler/cache/replacement_hold.h"
#include "test/unit/scheduler/world_internal.h"

void story_init(struct story *s, uint64_t seed, size_t len)
{
    *s = (struct story){.seed = seed, .len = len};
    for (size_t i = 0; i < len; i++)
        s->steps[i] = (uint32_t)i;
}

void story_fail(struct story *s, const char *kind, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    s->kind = kind;
    (void)vsnprintf(s->text, sizeof s->text, format, ap);
    va_end(ap);
}

/* Few nodes and pods: then each refusal counts, and what refused a pod is often all there is. */
static void begin(struct world *w, uint64_t seed)
{
    world_init(w, seed);
    w->random = seed;
    w->nodes = 1 + world_random(w, 3);
    w->pods = 4 + world_random(w, 8);
    w->affinity = world_chance(w, 40) ? 50 : 0;
    w->pinned = world_chance(w, 20);
    w->plain = world_chance(w, 60);
    w->ganged = w->plain && world_chance(w, 50);
    w->policied = world_chance(w, 30);
    w->bundled = world_chance(w, 20);
    w->bursting = world_chance(w, 30);
    w->stored = world_chance(w, 25);
    w->budgeted = world_chance(w, 20);
    w->reserving = world_chance(w, 25);
    if (w->reserving)
        w->cluster.reservations->options = (struct reservation_options){.after_ms = 5000};
    replacement_hold_enable(&w->cluster, world_chance(w, 50));
    w->attempt.all_stay = world_chance(w, 20);
}

/* Everybody whose turn it is; then only those wait who wait for something. */
static void drain(struct world *w)
{
    enum { MOST = 200 };
    for (int i = 0; i < MOST && world_try(w); i++)
        ;
}

/* A pod that exists, if a few tries find one. */
static uint64_t some_pod(struct world *w)
{
    enum { TRIES = 6 };
    uint64_t i = 0;
    for (int k = 0; k < TRIES; k++) {
        char key[32];
        i = world_random(w, w->pods);
        (void)str_format(key, sizeof key, "d/%s", w->slots[i].name);
        if (cluster_find_pod(&w->cluster, key) != NULL)
            break;
    }
    return i;
}

static void happen(struct world *w)
{
    uint64_t pick = world_random(w, 100);
    if (pick < 24)
        world_new_pod(w, world_random(w, w->pods));
    else if (pick < 46)
        world_update_pod(w, some_pod(w));
    else if (pick < 58)
        world_remove_pod(w, &w->slots[some_pod(w)]);
    else if (pick < 72)
        world_change_node(w, world_random(w, w->nodes),
                          (enum world_aspect)world_random(w, WORLD_ASPECTS));
    else if (pick < 75)
        world_put_node(w, world_random(w, w->nodes));
    else if (pick < 76)
        world_remove_node(w, world_random(w, w->nodes));
    else if (pick < 79)
        world_put_group(w);
    else if (pick < 82)
        world_put_namespace(w);
    else if (pick < 84)
        world_reject(w);
    else if (pick < 89 && w->policied)
        world_put_policy(w);
    else if (pick < 92 && w->budgeted)
        world_put_budget(w);
    else if (w->stored)
        world_put_storage(w);
    else
        world_wait(w);
}

static void take_step(struct world *w, uint64_t seed, uint32_t number)
{
    enum { FIRST = 8, PAST_BACKOFFS_MS = 10000 };
    w->random = seed + (number + 1) * UINT64_C(0xd1342543de82ef95);
    if (number < w->nodes) {
        world_put_node(w, number);
    } else if (number < FIRST) {
        world_new_pod(w, world_random(w, w->pods));
    } else if (world_chance(w, 25)) {
        w->now_ms += PAST_BACKOFFS_MS;
        world_wait(w);
    } else {
        happen(w);
    }
}

bool story_run(struct story *s)
{
    static struct world w;
    begin(&w, s->seed);
    w.tells = s->tells;
    s->kind = NULL;
    for (size_t i = 0; i < s->len && s->kind == NULL; i++) {
        s->at = i;
        if (s->answers)
            story_answers_note(&w);
        w.events = 0;
        if (s->tells)
            fprintf(stderr, "    step %u\n", (unsigned)s->steps[i]);
        take_step(&w, s->seed, s->steps[i]);
        s->said = w.said;
        if (s->tells)
            fprintf(stderr, "    is %s, events %x\n", w.said, (unsigned)w.events);
        if (s->answers && !story_answers_check(s, &w))
            break;
        drain(&w);
        if (!story_check_sleepers(s, &w))
            break;
    }
    if (s->kind == NULL && !s->answers)
        (void)story_check_fresh(s, &w);
    s->placed += w.placed;
    world_deinit(&w);
    return s->kind == NULL;
}

static bool fails_without(struct story *s, size_t from, size_t n)
{
    struct story less = *s;
    memmove(&less.steps[from], &less.steps[from + n], (less.len - from - n) * sizeof *less.steps);
    less.len -= n;
    if (story_run(&less) || !str_eq(less.kind, s->kind))
        return false;
    less.len = less.at + 1 < less.len ? less.at + 1 : less.len;
    *s = less;
    return true;
}

void story_shorten(struct story *s)
{
    s->len = s->at + 1;
    for (size_t n = s->len / 2; n > 0; n /= 2)
        for (size_t from = 0; from + n <= s->len;)
            if (!fails_without(s, from, n))
                from += n;
}

void story_print(const struct story *s)
{
    struct story again = *s;
    fprintf(stderr, "COSCHED_SEED=%llu, steps:\n", (unsigned long long)s->seed);
    again.tells = true;
    (void)story_run(&again);
    fprintf(stderr, "  %s: %s\n", again.kind, again.text);
}
