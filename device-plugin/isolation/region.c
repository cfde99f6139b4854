// SPDX-License-Identifier: Apache-2.0
/*
 * region - reservations that survive the death of their process.
 *
 * One compare-and-swap on the card's word enforces the limit, so that many processes together can
 * never exceed it. But if a process dies right after the swap, exactly what it took must be
 * returned, and that is recorded elsewhere, in its slot. The two cannot be written at once, so the
 * word also names the slot and the number of the last change, and the slot says what it holds
 * before and after that change:
 *
 *     word     used : 40 bits │ slot : 10 │ number of the change, its low 14 bits
 *     slot     intent = n, total[n & 1] = held after change n, total[(n-1) & 1] = after change n-1
 *     take     total[n & 1] = held + bytes; intent = n; swap the word for (used + bytes, slot, n)
 *
 * Change n happened if the word still names it. A process about to replace a word that names
 * another's change first records in that slot that it is done. So at any instant, for a living or a
 * dead process:
 *
 *     held = total[intent & 1]         if done ≥ intent, or the word names (slot, intent)
 *     held = total[(intent - 1) & 1]   otherwise: it was begun and never happened
 *
 * A change begins only after the previous one happened, so only the newest is ever in doubt, and
 * the 14 bits are only compared with numbers that differ by at most one. Returning what a dead
 * process held is the same operation, made in its slot by the process that has acquired it
 * (regionfile.c): dying in the middle of that is no different.
 */
#include "device-plugin/isolation/region.h"

enum { SLOT_BITS = 10, NUMBER_BITS = 14, START_BITS = 42 };
#define NUMBER_MASK ((UINT64_C(1) << NUMBER_BITS) - 1)
#define SLOT_MASK ((UINT64_C(1) << SLOT_BITS) - 1)
#define START_MASK ((UINT64_C(1) << START_BITS) - 1)

static uint64_t word_make(uint64_t used, uint32_t slot, uint64_t number)
{
    return used << (SLOT_BITS + NUMBER_BITS) | (uint64_t)slot << NUMBER_BITS |
           (number & NUMBER_MASK);
}

static uint64_t word_used(uint64_t word)
{
    return word >> (SLOT_BITS + NUMBER_BITS);
}

static uint32_t word_slot(uint64_t word)
{
    return (uint32_t)(word >> NUMBER_BITS & SLOT_MASK);
}

static bool word_names(uint64_t word, uint32_t slot, uint64_t number)
{
    return word_slot(word) == slot && (word & NUMBER_MASK) == (number & NUMBER_MASK);
}

/* Code that appends a field must check region_*.size before using it: rows may be older. */
_Static_assert(sizeof(struct region_card) == REGION_FIRST_CARD, "appended: see the rule");
_Static_assert(sizeof(struct region_slot) == REGION_FIRST_SLOT, "appended: see the rule");
_Static_assert(sizeof(struct region_held) == REGION_FIRST_HELD, "appended: see the rule");
_Static_assert(sizeof(struct region_header) == 64, "the header does not grow");

static size_t slot_bytes(uint32_t cards)
{
    return sizeof(struct region_slot) + cards * sizeof(struct region_held);
}

size_t region_bytes(uint32_t slots, uint32_t cards)
{
    return sizeof(struct region_header) + cards * sizeof(struct region_card) +
           slots * slot_bytes(cards);
}

void region_format(void *base, uint32_t slots, uint32_t cards)
{
    struct region_header *h = base;
    *h = (struct region_header){.magic = REGION_MAGIC,
                                .version = REGION_VERSION,
                                .size = (uint32_t)region_bytes(slots, cards),
                                .cards = cards,
                                .card_offset = sizeof(struct region_header),
                                .card_size = sizeof(struct region_card),
                                .slots = slots,
                                .slot_offset = (uint32_t)(sizeof(struct region_header) +
                                                          cards * sizeof(struct region_card)),
                                .slot_size = (uint32_t)slot_bytes(cards),
                                .held_size = sizeof(struct region_held)};
}

/* Do n rows of this size, each aligned and at least the minimum, lie inside? */
static bool rows_fit(size_t size, uint32_t n, uint32_t offset, uint32_t row, size_t least)
{
    return row >= least && row % sizeof(uint64_t) == 0 && offset % sizeof(uint64_t) == 0 &&
           offset >= sizeof(struct region_header) && (uint64_t)offset + (uint64_t)n * row <= size;
}

bool region_open(struct region *r, void *base, size_t size)
{
    const volatile struct region_header *h = base;
    if (size < sizeof *h || h->magic != REGION_MAGIC || h->version != REGION_VERSION)
        return false;
    *r = (struct region){.base = base,
                         .cards = h->cards,
                         .card_offset = h->card_offset,
                         .card_size = h->card_size,
                         .slots = h->slots,
                         .slot_offset = h->slot_offset,
                         .slot_size = h->slot_size,
                         .held_size = h->held_size};
    return r->cards > 0 && r->cards <= REGION_CARDS_MAX && r->slots > 0 &&
           r->slots <= REGION_SLOTS_MAX && r->held_size >= REGION_FIRST_HELD &&
           r->held_size <= REGION_BYTES_MAX && r->held_size % sizeof(uint64_t) == 0 &&
           rows_fit(size, r->cards, r->card_offset, r->card_size, REGION_FIRST_CARD) &&
           rows_fit(size, r->slots, r->slot_offset, r->slot_size,
                    REGION_FIRST_SLOT + (size_t)r->cards * r->held_size);
}

struct region_card *region_card(const struct region *r, uint32_t card)
{
    return (void *)(r->base + r->card_offset + (size_t)card * r->card_size);
}

struct region_slot *region_slot(const struct region *r, uint32_t slot)
{
    return (void *)(r->base + r->slot_offset + (size_t)slot * r->slot_size);
}

static struct region_held *held_of(const struct region *r, uint32_t slot, uint32_t card)
{
    return (void *)((unsigned char *)region_slot(r, slot) + sizeof(struct region_slot) +
                    (size_t)card * r->held_size);
}

uint64_t region_owner(uint32_t pid, uint64_t start)
{
    return (uint64_t)pid << START_BITS | (start & START_MASK);
}

uint32_t region_owner_pid(uint64_t owner)
{
    return (uint32_t)(owner >> START_BITS);
}

bool region_owner_is(uint64_t owner, uint32_t pid, uint64_t start)
{
    return owner == region_owner(pid, start);
}

uint64_t region_used(const struct region *r, uint32_t card)
{
    return word_used(atomic_load(&region_card(r, card)->word));
}

/* The newest change of the slot that happened. */
static uint64_t last_change(const struct region *r, uint32_t slot, uint32_t card)
{
    struct region_held *h = held_of(r, slot, card);
    uint64_t intent = atomic_load(&h->intent);
    /* Read the word first: a process that replaces it writes `done` before. */
    bool named = word_names(atomic_load(&region_card(r, card)->word), slot, intent);
    return named || atomic_load(&h->done) >= intent ? intent : intent - 1;
}

uint64_t region_held(const struct region *r, uint32_t slot, uint32_t card)
{
    return atomic_load(&held_of(r, slot, card)->total[last_change(r, slot, card) & 1]);
}

/* Before the word is replaced: records the change that it names in its process's slot. */
static void write_down(const struct region *r, uint32_t card, uint64_t word)
{
    uint32_t slot = word_slot(word);
    if (slot >= r->slots)
        return; /* corrupted */
    struct region_held *h = held_of(r, slot, card);
    uint64_t known = atomic_load(&h->done);
    uint64_t intent = atomic_load(&h->intent);
    if (intent > known && word_names(word, slot, intent) &&
        atomic_load(&region_card(r, card)->word) == word) {
        /* May lose against a process that records an older change; then retries. */
        while (known < intent && !atomic_compare_exchange_strong(&h->done, &known, intent))
            ;
    }
}

static void raise_peak(struct region_card *c, uint64_t used)
{
    uint64_t peak = atomic_load_explicit(&c->peak, memory_order_relaxed);
    while (used > peak && !atomic_compare_exchange_weak(&c->peak, &peak, used))
        ;
}

static bool change(const struct region *r, uint32_t slot, uint32_t card, uint64_t from, uint64_t to,
                   uint64_t limit)
{
    struct region_card *c = region_card(r, card);
    struct region_held *h = held_of(r, slot, card);
    uint64_t number = last_change(r, slot, card) + 1, after;
    atomic_store(&h->total[number & 1], to);
    atomic_store(&h->intent, number);
    uint64_t word = atomic_load(&c->word);
    do {
        uint64_t used = word_used(word);
        uint64_t others = used > from ? used - from : 0;
        if (to > from && (to > limit || others > limit - to))
            return false;
        after = others + to;
        write_down(r, card, word);
    } while (!atomic_compare_exchange_strong(&c->word, &word, word_make(after, slot, number)));
    raise_peak(c, after);
    return true;
}

bool region_take(const struct region *r, uint32_t slot, uint32_t card, uint64_t bytes,
                 uint64_t limit)
{
    uint64_t held = region_held(r, slot, card);
    if (limit > REGION_USED_MAX)
        limit = REGION_USED_MAX;
    if (bytes > REGION_USED_MAX || held > REGION_USED_MAX - bytes)
        return false;
    return bytes == 0 || change(r, slot, card, held, held + bytes, limit);
}

void region_give(const struct region *r, uint32_t slot, uint32_t card, uint64_t bytes)
{
    uint64_t held = region_held(r, slot, card);
    if (bytes > held)
        bytes = held;
    if (bytes > 0)
        (void)change(r, slot, card, held, held - bytes, 0);
}

void region_clear(const struct region *r, uint32_t slot)
{
    for (uint32_t card = 0; card < r->cards; card++)
        region_give(r, slot, card, UINT64_MAX);
}

void region_note_denied(const struct region *r, uint32_t card)
{
    atomic_fetch_add_explicit(&region_card(r, card)->denied, 1, memory_order_relaxed);
}
