// SPDX-License-Identifier: Apache-2.0
/* backend_nvml_time - how much of each card's time its processes used. The driver reports, for each
 * busy process, the percentage of the time since a given stamp for which it kept the
 * multiprocessors busy; percentage times duration is device time. "Nothing found" means that no
 * process was busy, or that there is no sample yet: some cards take one a second. So the stamp
 * stays, and moves only after a longer pause, to avoid counting the first work after a pause for
 * all of it. */
#include "device-plugin/cards/backend_nvml_internal.h"

#include "lib/base/clock.h"
#include "lib/base/num.h"

enum { SAMPLE_US = 1000 * 1000 /* no card samples less often */ };

/* Is there no later entry of the same process? */
static bool is_newest(const struct nvml_utilization *list, unsigned len, unsigned at)
{
    for (unsigned i = 0; i < len; i++)
        if (list[i].pid == list[at].pid && (list[i].stamp_us > list[at].stamp_us ||
                                            (list[i].stamp_us == list[at].stamp_us && i < at)))
            return false;
    return true;
}

static void credit(const struct nvml_utilization *list, unsigned len, uint64_t since_us,
                   struct arena *a, struct backend_time *out)
{
    out->processes = arena_new(a, struct backend_busy, len);
    for (unsigned i = 0; i < len; i++) {
        if (list[i].stamp_us <= since_us || list[i].sm == 0 || !is_newest(list, len, i))
            continue;
        uint64_t us = list[i].stamp_us - since_us;
        if (us > 2 * (uint64_t)SAMPLE_US) /* the clock was set */
            us = 2 * (uint64_t)SAMPLE_US;
        out->processes[out->processes_len++] =
            (struct backend_busy){.pid = (int64_t)list[i].pid,
                                  .ns = (int64_t)(us * 10 * (list[i].sm < 100 ? list[i].sm : 100))};
    }
}

static void ask(struct backend *b, unsigned index, nvml_device device, int64_t now_us,
                struct arena *a, struct backend_time *out)
{
    struct nvml_utilization list[BACKEND_PROCESSES_MAX];
    struct backend_nvml_reported *reported = &b->reported[index];
    unsigned len = BACKEND_PROCESSES_MAX;
    if (reported->stamp_us > (uint64_t)(clock_wall_ns() / 1000 + 5 * SAMPLE_US))
        reported->stamp_us = 0; /* the clock was set back: no sample would be newer for long */
    nvml_return code = b->nvml.utilization(device, list, &len, reported->stamp_us);
    if (code == NVML_NOT_FOUND || len > BACKEND_PROCESSES_MAX)
        len = 0;
    out->known = code == NVML_OK || code == NVML_NOT_FOUND;
    if (!out->known) {
        *reported = (struct backend_nvml_reported){0};
        return;
    }
    uint64_t newest = 0;
    for (unsigned i = 0; i < len; i++)
        newest = list[i].stamp_us > newest ? list[i].stamp_us : newest;
    if (newest > 0) {
        if (reported->stamp_us > 0) /* the first answer covers an unknown period */
            credit(list, len, reported->stamp_us, a, out);
        *reported = (struct backend_nvml_reported){.stamp_us = newest, .at_us = now_us};
    } else if (reported->stamp_us > 0 && now_us - reported->at_us > SAMPLE_US) {
        reported->stamp_us += (uint64_t)(now_us - reported->at_us - SAMPLE_US);
        reported->at_us = now_us - SAMPLE_US;
    }
}

size_t backend_nvml_busy(struct backend *b, struct arena *a, struct backend_time **out)
{
    unsigned count = 0;
    nvml_device device = NULL;
    int64_t now_us = clock_mono_us();
    if (!b->initialised || b->nvml.count(&count) != NVML_OK || count > GPU_CARDS_MAX)
        count = 0;
    *out = arena_new(a, struct backend_time, count);
    for (unsigned i = 0; i < count; i++) {
        struct backend_time *t = &(*out)[i];
        *t = (struct backend_time){.index = (int32_t)i};
        atomic_store(b->asking, (int32_t)i);
        if (b->nvml.utilization != NULL && b->nvml.by_index(i, &device) == NVML_OK)
            ask(b, i, device, now_us, a, t);
    }
    atomic_store(b->asking, BACKEND_NO_CARD);
    return count;
}
