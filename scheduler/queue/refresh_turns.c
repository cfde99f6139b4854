// SPDX-License-Identifier: Apache-2.0
#include "scheduler/queue/refresh_turns.h"

static const int64_t pause_ms[REFRESH_BANDS] = {
    [REFRESH_YOUNG] = REFRESH_PAUSE_MS, [REFRESH_AMOUNTS] = 30000, [REFRESH_REST] = 60000};

static const enum refresh_band wheel[] = {REFRESH_YOUNG,   REFRESH_UNFINISHED, REFRESH_YOUNG,
                                          REFRESH_AMOUNTS, REFRESH_YOUNG,      REFRESH_UNFINISHED,
                                          REFRESH_YOUNG,   REFRESH_REST};
enum { WHEEL = sizeof wheel / sizeof wheel[0] };

static void leave(struct refresh_entry *e)
{
    if (e->older == NULL)
        return;
    e->older->newer = e->newer;
    e->newer->older = e->older;
    e->older = e->newer = NULL;
}

static void entry_end(void *memory)
{
    leave(memory);
}

void refresh_turns_init(struct refresh_turns *t)
{
    *t = (struct refresh_turns){0};
    ids_table_init(&t->entries, sizeof(struct refresh_entry), entry_end);
    for (size_t i = 0; i < REFRESH_BANDS; i++)
        t->bands[i].older = t->bands[i].newer = &t->bands[i];
}

void refresh_turns_deinit(struct refresh_turns *t)
{
    ids_table_deinit(&t->entries);
}

enum refresh_band refresh_turns_band(bool amounts, int64_t waited_ms)
{
    if (!amounts)
        return REFRESH_REST;
    return waited_ms < REFRESH_YOUNG_MS ? REFRESH_YOUNG : REFRESH_AMOUNTS;
}

void refresh_turns_put(struct refresh_turns *t, struct id gang, enum refresh_band band,
                       int64_t now_ms)
{
    struct refresh_entry *e = ids_at(&t->entries, gang), *head = &t->bands[band];
    leave(e);
    *e = (struct refresh_entry){.older = head->older,
                                .newer = head,
                                .gang = gang,
                                .band = band,
                                .due_ms = now_ms + pause_ms[band]};
    e->older->newer = e;
    head->older = e;
}

bool refresh_turns_has(const struct refresh_turns *t, struct id gang)
{
    const struct refresh_entry *e = ids_find(&t->entries, gang);
    return e != NULL && e->older != NULL;
}

/* The head's newer end is the one that was looked at longest ago; NULL: the band is empty. */
static struct refresh_entry *first(const struct refresh_turns *t, size_t band)
{
    struct refresh_entry *e = t->bands[band].newer;
    return e != &t->bands[band] ? e : NULL;
}

bool refresh_turns_take(struct refresh_turns *t, int64_t now_ms, struct refresh_turn *out)
{
    for (size_t i = 0; i < WHEEL; i++) {
        struct refresh_entry *e = first(t, wheel[(t->turn + i) % WHEEL]);
        if (e == NULL || e->due_ms > now_ms)
            continue;
        t->turn = (t->turn + i + 1) % WHEEL;
        *out = (struct refresh_turn){.gang = e->gang, .band = e->band};
        leave(e);
        return true;
    }
    return false;
}

int64_t refresh_turns_next_due(const struct refresh_turns *t)
{
    int64_t due_ms = -1;
    for (size_t i = 0; i < REFRESH_BANDS; i++) {
        const struct refresh_entry *e = first(t, i);
        if (e != NULL && (due_ms < 0 || e->due_ms < due_ms))
            due_ms = e->due_ms;
    }
    return due_ms;
}
