// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/isolation/preload/charge.h"

#define MIN_PITCH 512u

/* Flags of arrays: depth counts layers or faces; arrays without memory, into which cuMemCreate's is
 * mapped. */
enum { ARRAY_LAYERED = 0x01, ARRAY_CUBEMAP = 0x04, ARRAY_SPARSE = 0x40, ARRAY_DEFERRED = 0x80 };

CUcontext charge_context(const struct hooks_cuda *real, int card)
{
    CUcontext c = NULL;
    if (card >= 0 && real->cuCtxGetCurrent != NULL)
        (void)real->cuCtxGetCurrent(&c);
    return c;
}

CUresult charge_take(int card, uint64_t bytes)
{
    CUresult result = share_take(card, bytes);
    if (result == CUDA_SUCCESS)
        return result;
    share_pools_begin();
    share_pools_trim();
    share_pools_end();
    return share_take(card, bytes) == CUDA_SUCCESS ? CUDA_SUCCESS : share_denied(card);
}

bool charge_written(CUresult result, enum share_kind kind, uint64_t key, uint64_t bytes, int card,
                    CUcontext context)
{
    struct share_item item = {.key = key,
                              .size = bytes,
                              .context = context,
                              .card = (int16_t)card,
                              .kind = (uint8_t)kind,
                              .refs = 1};
    if (card < 0 || (result == CUDA_SUCCESS && share_put(&item)))
        return true;
    share_give(card, bytes);
    return result != CUDA_SUCCESS;
}

CUresult charge_freed(CUresult result, const struct share_item *item)
{
    if (result == CUDA_SUCCESS)
        share_give(item->card, item->size);
    else
        (void)share_put(item);
    return result;
}

static uint64_t multiply(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? REGION_USED_MAX + 1 : product;
}

static uint64_t at_least_one(uint64_t n)
{
    return n > 0 ? n : 1;
}

uint64_t charge_rows(uint64_t width, uint64_t height)
{
    uint64_t row;
    if (__builtin_add_overflow(width, MIN_PITCH - 1, &row))
        return REGION_USED_MAX + 1;
    return multiply(row / MIN_PITCH * MIN_PITCH, height);
}

/* Upper bound for the bytes of one element: formats by their numbers in CUDA's headers. */
static uint64_t element_bytes(int format, unsigned channels)
{
    uint64_t n = at_least_one(channels);
    if (format >= 0x91 && format <= 0x9e)
        return 1; /* compressed: 8 or 16 bytes for 16 elements, with all their channels */
    switch (format) {
    case 0x01: /* 8 bits */
    case 0x08:
    case 0xc0:
    case 0xc1:
    case 0xc2:
    case 0xc6:
    case 0xc7:
    case 0xc8:
        return n;
    case 0x02: /* 16 bits, and half */
    case 0x09:
    case 0x10:
    case 0xc3:
    case 0xc4:
    case 0xc5:
    case 0xc9:
    case 0xca:
    case 0xcb:
        return 2 * n;
    default: /* 32 bits and float; video formats never need more */
        return 4 * n;
    }
}

uint64_t charge_array(uint64_t width, uint64_t height, uint64_t depth, int format,
                      unsigned channels, unsigned flags)
{
    if (flags & (ARRAY_SPARSE | ARRAY_DEFERRED))
        return 0;
    uint64_t plane = multiply(at_least_one(width), at_least_one(height));
    return multiply(multiply(plane, at_least_one(depth)), element_bytes(format, channels));
}

uint64_t charge_levels(uint64_t width, uint64_t height, uint64_t depth, int format,
                       unsigned channels, unsigned flags, unsigned levels)
{
    uint64_t bytes = 0;
    bool layers = (flags & (ARRAY_LAYERED | ARRAY_CUBEMAP)) != 0;
    for (unsigned i = 0; i < levels && i < 64; i++)
        if (__builtin_add_overflow(bytes,
                                   charge_array(width >> i, height >> i,
                                                layers ? depth : depth >> i, format, channels,
                                                flags),
                                   &bytes))
            bytes = REGION_USED_MAX + 1;
    return bytes;
}
