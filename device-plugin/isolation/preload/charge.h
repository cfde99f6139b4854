// SPDX-License-Identifier: Apache-2.0
/* charge - the steps of every allocation: take its bytes from the container's share, call the
 * driver, record the result under its handle; if the driver refuses, return the bytes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "device-plugin/isolation/preload/hooks.h"
#include "device-plugin/isolation/preload/share.h"

/* Calls into the driver; hooked functions that the driver calls meanwhile pass through. */
#define CHARGE_DRIVER(call) \
    do {                    \
        share_depth++;      \
        result = (call);    \
        share_depth--;      \
    } while (0)

/* Takes the bytes, if need be after trimming the pools of this process; counts a denial. */
CUresult charge_take(int card, uint64_t bytes);
/* After the driver's call: records the allocation, or returns the bytes. false: there was no space
 * to record it, and the bytes are returned. */
bool charge_written(CUresult result, enum share_kind kind, uint64_t key, uint64_t bytes, int card,
                    CUcontext context);
/* After the driver's call to free an item already removed from the records: returns its bytes, or
 * restores it if the driver refused. Returns result. */
CUresult charge_freed(CUresult result, const struct share_item *item);
/* The current context, whose end frees memory of this card. NULL for a card without a limit. */
CUcontext charge_context(const struct hooks_cuda *real, int card);
/* Upper bound for the rows of a pitched allocation, before the driver reports the pitch. */
uint64_t charge_rows(uint64_t width, uint64_t height);
/* Size of an array; saturates above any card. flags: those of 3D arrays. */
uint64_t charge_array(uint64_t width, uint64_t height, uint64_t depth, int format,
                      unsigned channels, unsigned flags);
/* The same with `levels` mipmap levels, the first of full size. Layers do not become fewer. */
uint64_t charge_levels(uint64_t width, uint64_t height, uint64_t depth, int format,
                       unsigned channels, unsigned flags, unsigned levels);
