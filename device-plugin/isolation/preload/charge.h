// SPDX-License-Identifier: Apache-2.0
/*
 * charge - the steps that every allocation takes: take its bytes from the container's share, call the driver, and write down what
 * was got under the handle that will be freed; if the driver refuses, give the bytes back.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "device-plugin/isolation/preload/hooks.h"
#include "device-plugin/isolation/preload/share.h"

/* Calls into the driver; what the driver calls of ours meanwhile passes. */
#define CHARGE_DRIVER(call) \
    do {                    \
        share_depth++;      \
        result = (call);    \
        share_depth--;      \
    } while (0)

/* Takes the bytes, if need be after the pools of this process have let go of what nobody uses; counts a denial. */
CUresult charge_take(int card, uint64_t bytes);
/* The driver has answered: into the books, or back. false: there was no room in the books, and the bytes are given back. */
bool charge_written(CUresult result, enum share_kind kind, uint64_t key, uint64_t bytes, int card,
                    CUcontext context);
/* What was taken out of the books before the driver was asked to free it: its bytes go back, or it does if the driver refused. Returns
 * result. */
CUresult charge_freed(CUresult result, const struct share_item *item);
/* The context that memory of this card ends with: the current one. NULL for a card without a limit. */
CUcontext charge_context(const struct hooks_cuda *real, int card);
/* Rows of a pitched allocation together, before the driver has said how long it makes them. */
uint64_t charge_rows(uint64_t width, uint64_t height);
/* What an array takes; more than any card has if that is more than can be said. flags: those of 3D arrays. */
uint64_t charge_array(uint64_t width, uint64_t height, uint64_t depth, int format,
                      unsigned channels, unsigned flags);
/* The same with `levels` smaller copies of itself, the first of full size. Layers do not become fewer. */
uint64_t charge_levels(uint64_t width, uint64_t height, uint64_t depth, int format,
                       unsigned channels, unsigned flags, unsigned levels);
