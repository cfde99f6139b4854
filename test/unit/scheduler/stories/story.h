// SPDX-License-Identifier: Apache-2.0
/*
 * story - a short random history of a small world (world.h), with a queue and the attempts of the
 * program. After every step what is due is tried, and then everybody who is parked is asked whether
 * he could go: nobody may sleep past his chance. A story that fails is shortened to the steps that
 * it needs and printed. Each step has a seed of its own, so that leaving one out does not change
 * what the others do.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "test/unit/scheduler/world.h"

enum { STORY_STEPS = 50, STORY_TEXT = 600 };

struct story {
    uint64_t seed;
    size_t len;
    uint32_t steps[STORY_STEPS]; /* their numbers, from 0: a shortened story leaves some out */
    const char *said;            /* of the last step */
    bool tells;                  /* prints each step and attempt */
    bool answers; /* also compare every filter's answers before and after each step */
    /* What went wrong; kind NULL: nothing. */
    const char *kind;
    size_t at; /* index of the step */
    char text[STORY_TEXT];
    uint64_t asked, placed; /* gangs asked in their sleep; pods placed */
};

void story_init(struct story *s, uint64_t seed, size_t len);
/* false: it failed. */
bool story_run(struct story *s);
/* Leaves out all steps without which it fails too. */
void story_shorten(struct story *s);
void story_print(const struct story *s);

/* story_check.c: false: the story failed. */
bool story_check_sleepers(struct story *s, struct world *w);
bool story_check_fresh(struct story *s, struct world *w);

/* story_answers.c: the answer of each filter about each waiting pod and node, before a step. */
void story_answers_note(struct world *w);
bool story_answers_check(struct story *s, struct world *w);

void story_fail(struct story *s, const char *kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
