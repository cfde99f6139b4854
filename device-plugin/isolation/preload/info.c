// SPDX-License-Identifier: Apache-2.0
/* info - memory queries: programs see the container's share as if it were the card. */
#include "device-plugin/isolation/preload/hooks.h"
#include "device-plugin/isolation/preload/share.h"

#include <string.h>

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

int cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuDeviceTotalMem_v2 == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = real->cuDeviceTotalMem_v2(bytes, device);
    int card = result == CUDA_SUCCESS && share_depth == 0 ? share_card_of(device) : SHARE_FREE_CARD;
    if (card >= 0)
        *bytes = least(*bytes, share_limit(card)->bytes);
    return result;
}

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuMemGetInfo_v2 == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = real->cuMemGetInfo_v2(free_bytes, total);
    int card = result == CUDA_SUCCESS && share_depth == 0 ? share_card_current() : SHARE_FREE_CARD;
    if (card < 0)
        return result;
    uint64_t limit = share_limit(card)->bytes, used = share_used(card);
    *total = least(*total, limit);
    *free_bytes = least(*free_bytes, used < limit ? limit - used : 0);
    return result;
}

enum { NVML_UNINITIALIZED = 1, UUID_TEXT = 96 };

static int card_of(const struct hooks_nvml *real, nvmlDevice device)
{
    char text[UUID_TEXT];
    unsigned char uuid[16];
    if (real->nvmlDeviceGetUUID == NULL ||
        real->nvmlDeviceGetUUID(device, text, sizeof text) != 0 ||
        !limits_uuid(text, strnlen(text, sizeof text), uuid))
        return SHARE_FREE_CARD;
    return share_card_by_uuid(uuid);
}

static void show(int card, unsigned long long *total, unsigned long long *free_bytes,
                 unsigned long long *used)
{
    if (card < 0)
        return;
    *total = least(*total, share_limit(card)->bytes);
    *used = least(*total, share_used(card));
    *free_bytes = *total - *used;
}

int nvmlDeviceGetMemoryInfo(nvmlDevice device, nvmlMemory *out)
{
    const struct hooks_nvml *real = hooks_nvml();
    if (real == NULL || real->nvmlDeviceGetMemoryInfo == NULL)
        return NVML_UNINITIALIZED;
    int result = real->nvmlDeviceGetMemoryInfo(device, out);
    if (result == 0)
        show(card_of(real, device), &out->total, &out->free, &out->used);
    return result;
}

int nvmlDeviceGetMemoryInfo_v2(nvmlDevice device, nvmlMemory_v2 *out)
{
    const struct hooks_nvml *real = hooks_nvml();
    if (real == NULL || real->nvmlDeviceGetMemoryInfo_v2 == NULL)
        return NVML_UNINITIALIZED;
    int result = real->nvmlDeviceGetMemoryInfo_v2(device, out);
    int card = result == 0 ? card_of(real, device) : SHARE_FREE_CARD;
    show(card, &out->total, &out->free, &out->used);
    if (card >= 0)
        out->reserved = 0;
    return result;
}
