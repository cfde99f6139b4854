// SPDX-License-Identifier: Apache-2.0
/*
 * health - the verdict on each card.
 *
 *   well ──health_xid_seen: hardware, health_ecc_seen, health_hangs──► sick
 *   well ──health_seen: gone, HEALTH_MISSES scans unanswered, or new uncorrected errors──► sick
 *   sick ──health_seen: HEALTH_PROBES good ones in a row, hold_ms after the last bad sign──► well
 *
 * A probe is good when the card answers all queries and has no new uncorrected error and no pending
 * repair (a row to be remapped, a page to be retired: both happen at a reset). The hold doubles
 * each time a card becomes sick again soon after it recovered, up to ten minutes, to damp flapping.
 *
 * A pending repair alone does not make a card sick: corrected errors also remap rows, and the card
 * works until its next reset. It does together with uncorrected errors at the first scan: then the
 * error happened before this process started. Sick cards stay sick over a restart of this process
 * (health_recall): the hold starts again, and errors that were counted before are not new.
 *
 * XIDs are the driver's error numbers. Those caused by a program's own mistake (a bad pointer, an
 * illegal instruction) end only that program; if they made the card sick, any tenant could take it
 * from all others.
 */
#include "device-plugin/cards/health.h"

#include "lib/base/num.h"
#include "lib/base/str.h"

static const struct health_xid xids[] = {
    {8, HEALTH_APPLICATION, "a program's work did not end in time"},
    {13, HEALTH_APPLICATION, "a program's instruction or array access was illegal"},
    {31, HEALTH_APPLICATION, "a program used memory that is not its own"},
    {32, HEALTH_APPLICATION, "a program's stream of commands was broken"},
    {43, HEALTH_APPLICATION, "a program was stopped after its own error"},
    {45, HEALTH_APPLICATION, "a program's work was cleaned up when it ended"},
    {68, HEALTH_APPLICATION, "the video decoder was given something it cannot decode"},
    {69, HEALTH_APPLICATION, "a program's graphics command was illegal"},
    {109, HEALTH_APPLICATION, "a program held up a context switch for too long"},
    {63, HEALTH_NOTICE, "a memory row or page was noted for repair at the next reset"},
    {92, HEALTH_NOTICE, "many memory errors were corrected"},
    {154, HEALTH_NOTICE, "the driver recommends another recovery than before"},
    {38, HEALTH_HARDWARE, "the driver's firmware failed"},
    {46, HEALTH_HARDWARE, "the card stopped processing"},
    {48, HEALTH_HARDWARE, "a memory error could not be corrected"},
    {54, HEALTH_HARDWARE, "the card's power cable is missing or bad"},
    {61, HEALTH_HARDWARE, "the card's microcontroller hit a breakpoint"},
    {62, HEALTH_HARDWARE, "the card's microcontroller halted"},
    {64, HEALTH_HARDWARE, "a memory row or page could not be noted for repair"},
    {74, HEALTH_HARDWARE, "an NVLink failed"},
    {79, HEALTH_HARDWARE, "the card has fallen off the bus"},
    {94, HEALTH_HARDWARE,
     "a memory error could not be corrected and ended the program that met it"},
    {95, HEALTH_HARDWARE,
     "a memory error could not be corrected and may have harmed every program"},
    {110, HEALTH_HARDWARE, "the card's security engine failed"},
    {119, HEALTH_HARDWARE, "the card's system processor does not answer"},
    {120, HEALTH_HARDWARE, "the card's system processor failed"},
    {140, HEALTH_HARDWARE, "memory errors were left unrepaired"},
};

const struct health_xid *health_xid(int64_t number)
{
    static const struct health_xid unknown = {
        0, HEALTH_HARDWARE, "not in our table, so the card's until it proves well"};
    for (size_t i = 0; i < sizeof xids / sizeof xids[0]; i++)
        if (xids[i].number == number)
            return &xids[i];
    return &unknown;
}

void health_init(struct health *h, int64_t hold_ms)
{
    *h = (struct health){.hold_ms = hold_ms};
}

const struct health_card *health_find(const struct health *h, const char *uuid)
{
    for (size_t i = 0; i < GPU_CARDS_MAX; i++)
        if (h->cards[i].known && str_eq(h->cards[i].uuid, uuid))
            return &h->cards[i];
    return NULL;
}

static struct health_card *find(struct health *h, const char *uuid)
{
    for (size_t i = 0; i < GPU_CARDS_MAX; i++)
        if (h->cards[i].known && str_eq(h->cards[i].uuid, uuid))
            return &h->cards[i];
    return NULL;
}

/* Records a bad sign. true: it made the card sick. */
static bool worsen(const struct health *h, struct health_card *c, const char *why, int64_t now_ms)
{
    c->bad_ms = now_ms;
    c->good = 0;
    if (c->sick)
        return false;
    c->sick = true;
    (void)str_format(c->why, sizeof c->why, "%s", why);
    bool again = c->recovered_ms >= 0 && now_ms - c->recovered_ms < HEALTH_RELAPSE_MS;
    c->hold_ms =
        again ? num_max(h->hold_ms, num_min(c->hold_ms * 2, HEALTH_HOLD_MAX_MS)) : h->hold_ms;
    return true;
}

static bool improve(struct health_card *c, int64_t now_ms)
{
    if (!c->sick || ++c->good < HEALTH_PROBES || now_ms - c->bad_ms < c->hold_ms)
        return false;
    c->sick = false;
    c->recovered_ms = now_ms;
    (void)str_format(c->why, sizeof c->why, "%d good probes in a row", c->good);
    return true;
}

void health_recall(struct health *h, const struct health_memory *m)
{
    if (h->recalled_len == GPU_CARDS_MAX)
        return;
    struct health_memory *kept = &h->recalled[h->recalled_len++];
    *kept = *m;
    kept->hold_ms = num_max(h->hold_ms, num_min(m->hold_ms, HEALTH_HOLD_MAX_MS));
}

size_t health_remember(const struct health *h, struct health_memory out[GPU_CARDS_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < GPU_CARDS_MAX; i++) {
        const struct health_card *c = &h->cards[i];
        if (!c->known || !c->sick)
            continue;
        out[n] = (struct health_memory){.hold_ms = c->hold_ms, .ecc = c->ecc};
        (void)str_format(out[n].uuid, sizeof out[n].uuid, "%s", c->uuid);
        (void)str_format(out[n].why, sizeof out[n].why, "%s", c->why);
        n++;
    }
    for (size_t i = 0; i < h->recalled_len && n < GPU_CARDS_MAX; i++)
        out[n++] = h->recalled[i];
    return n;
}

/* At the first sight of a card, recalled data becomes its history. */
static void begin(struct health *h, struct health_card *c, const char *uuid, int64_t now_ms)
{
    *c = (struct health_card){.known = true, .recovered_ms = -1, .ecc = -1, .hold_ms = h->hold_ms};
    (void)str_format(c->uuid, sizeof c->uuid, "%s", uuid);
    for (size_t i = 0; i < h->recalled_len; i++) {
        struct health_memory *m = &h->recalled[i];
        if (!str_eq(m->uuid, uuid))
            continue;
        c->sick = true;
        c->bad_ms = now_ms;
        c->hold_ms = m->hold_ms;
        c->ecc = m->ecc;
        (void)str_format(c->why, sizeof c->why, "%s", m->why);
        *m = h->recalled[--h->recalled_len];
        return;
    }
}

/* The card at this index, if it is still the known one; another card there starts afresh. */
static struct health_card *card_of(struct health *h, const struct health_sight *s, int64_t now_ms)
{
    if (s->index < 0 || s->index >= GPU_CARDS_MAX)
        return NULL;
    struct health_card *c = &h->cards[s->index];
    if (s->uuid == NULL)
        return c->known ? c : NULL;
    if (c->known && str_eq(c->uuid, s->uuid))
        return c;
    struct health_card *elsewhere = find(h, s->uuid); /* the same card under another index */
    struct health_card moved = elsewhere != NULL ? *elsewhere : (struct health_card){0};
    if (elsewhere != NULL) {
        elsewhere->known = false;
        *c = moved;
        return c;
    }
    begin(h, c, s->uuid, now_ms);
    return c;
}

bool health_seen(struct health *h, const struct health_sight *s, int64_t now_ms)
{
    char why[HEALTH_WHY_SIZE];
    struct health_card *c = card_of(h, s, now_ms);
    if (c == NULL)
        return false;
    if (s->sick != NULL) {
        c->good = 0;
        if (++c->misses < HEALTH_MISSES && !s->gone) {
            c->bad_ms = now_ms;
            return false;
        }
        return worsen(h, c, s->sick, now_ms);
    }
    c->misses = 0;
    int64_t before = c->ecc;
    c->ecc = s->ecc;
    /* Fewer than before: the driver was reloaded, or the card reset. */
    int64_t fresh = s->ecc > before ? s->ecc - num_max(before, 0) : 0;
    if (fresh > 0 && (before >= 0 || s->repair != NULL)) {
        (void)str_format(why, sizeof why, "%lld uncorrected memory errors%s%s", (long long)fresh,
                         s->repair != NULL ? ", and the card waits for " : "",
                         str_or_empty(s->repair));
        return worsen(h, c, why, now_ms);
    }
    if (s->repair != NULL && c->sick) {
        c->good = 0;
        return false;
    }
    return improve(c, now_ms);
}

bool health_xid_seen(struct health *h, const char *uuid, int64_t number, int64_t now_ms)
{
    char why[HEALTH_WHY_SIZE];
    struct health_card *c = find(h, uuid);
    const struct health_xid *x = health_xid(number);
    if (c == NULL || x->class != HEALTH_HARDWARE)
        return false;
    (void)str_format(why, sizeof why, "XID %lld: %s", (long long)number, x->what);
    return worsen(h, c, why, now_ms);
}

bool health_ecc_seen(struct health *h, const char *uuid, int64_t now_ms)
{
    struct health_card *c = find(h, uuid);
    return c != NULL && worsen(h, c, "a memory error could not be corrected", now_ms);
}

bool health_hangs(struct health *h, int32_t index, int64_t now_ms)
{
    if (index < 0 || index >= GPU_CARDS_MAX || !h->cards[index].known)
        return false;
    return worsen(h, &h->cards[index], "the driver does not answer when it is asked about the card",
                  now_ms);
}
