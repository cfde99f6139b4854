// SPDX-License-Identifier: Apache-2.0
/* backend_nvml_watch - the state of a card: memory errors, pending repairs, processes, and error
 * events. All of it is optional. What the driver does not count or list is unknown, never 0; a card
 * that cannot report errors is judged by the scans alone. */
#include "device-plugin/cards/backend_nvml_internal.h"

#include <stdlib.h>

#include "lib/base/log.h"
#include "lib/base/num.h"

static const char *repair_of(struct backend *b, nvml_device device)
{
    unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
    int retiring = 0;
    if (b->nvml.remapped != NULL &&
        b->nvml.remapped(device, &corrected, &uncorrected, &pending, &failed) == NVML_OK) {
        if (failed != 0)
            return "a replacement: no spare memory rows are left";
        if (pending != 0)
            return "a reset, to replace memory rows";
    }
    if (b->nvml.retiring != NULL && b->nvml.retiring(device, &retiring) == NVML_OK && retiring != 0)
        return "a reset, to retire memory pages";
    return NULL;
}

static int by_pid(const void *x, const void *y)
{
    const struct backend_process *p = x, *q = y;
    return p->pid < q->pid ? -1 : p->pid > q->pid;
}

static void add_processes(nvml_processes *list, nvml_device device, struct backend_card *out)
{
    struct nvml_process some[BACKEND_PROCESSES_MAX];
    unsigned n = BACKEND_PROCESSES_MAX;
    if (list == NULL || list(device, &n, some) != NVML_OK || n > BACKEND_PROCESSES_MAX)
        return;
    out->processes_known = true;
    for (unsigned i = 0; i < n && out->processes_len < BACKEND_PROCESSES_MAX; i++)
        out->processes[out->processes_len++] = (struct backend_process){
            .pid = (int64_t)some[i].pid,
            .mib = some[i].used == ~0ULL ? -1 : (int64_t)(some[i].used / (1024 * 1024))};
}

/* A process may both compute and draw; the driver then reports its whole memory twice. */
static void add_all_processes(struct backend *b, nvml_device device, struct arena *a,
                              struct backend_card *out)
{
    struct backend_process all[BACKEND_PROCESSES_MAX];
    out->processes = all;
    add_processes(b->nvml.compute, device, out);
    add_processes(b->nvml.graphics, device, out);
    add_processes(b->nvml.mps, device, out);
    qsort(all, out->processes_len, sizeof all[0], by_pid);
    size_t kept = 0;
    for (size_t i = 0; i < out->processes_len; i++) {
        if (kept > 0 && all[kept - 1].pid == all[i].pid)
            all[kept - 1].mib = num_max(all[kept - 1].mib, all[i].mib);
        else
            all[kept++] = all[i];
    }
    out->processes_len = kept;
    out->processes = arena_new(a, struct backend_process, kept);
    for (size_t i = 0; i < kept; i++)
        out->processes[i] = all[i];
}

void backend_nvml_condition(struct backend *b, nvml_device device, struct arena *a,
                            struct backend_card *out)
{
    unsigned long long errors = 0;
    *out = (struct backend_card){.ecc = -1, .repair = repair_of(b, device)};
    if (b->nvml.ecc != NULL &&
        b->nvml.ecc(device, NVML_ECC_UNCORRECTED, NVML_ECC_VOLATILE, &errors) == NVML_OK)
        out->ecc = errors > INT64_MAX ? INT64_MAX : (int64_t)errors;
    add_all_processes(b, device, a, out);
}

static bool can_hear(const struct nvml *n)
{
    return n->event_set != NULL && n->event_types != NULL && n->event_register != NULL &&
           n->event_wait != NULL && n->event_free != NULL;
}

void backend_nvml_hear(struct backend *b, nvml_device device, const struct gpu_card *card)
{
    unsigned long long types = 0;
    if (!can_hear(&b->nvml) || str_eq(b->heard[card->index], card->uuid))
        return;
    if (b->events == NULL && b->nvml.event_set(&b->events) != NVML_OK) {
        b->events = NULL;
        return;
    }
    (void)str_format(b->heard[card->index], sizeof b->heard[card->index], "%s", card->uuid);
    nvml_return code = b->nvml.event_types(device, &types);
    types &= NVML_EVENT_ECC | NVML_EVENT_XID;
    if (code == NVML_OK && types != 0)
        code = b->nvml.event_register(device, types, b->events);
    if (code == NVML_OK && types != 0)
        b->hears = true;
    else
        log_warn("the driver does not report errors of this card: its scans alone tell its health",
                 kv("card", card->index), kv("code", code));
}

int backend_nvml_wait(struct backend *b, int64_t ms, struct backend_event *out)
{
    struct nvml_event event = {0};
    if (!b->hears)
        return -1;
    nvml_return code = b->nvml.event_wait(b->events, &event, (unsigned)ms);
    if (code == NVML_TIMEOUT)
        return 0;
    if (code != NVML_OK) {
        b->stale = true;
        return -1; /* perhaps a lost card: the next scan will show which */
    }
    if (!(event.type & (NVML_EVENT_ECC | NVML_EVENT_XID)))
        return 0;
    *out = (struct backend_event){.kind = event.type & NVML_EVENT_XID ? BACKEND_XID : BACKEND_ECC,
                                  .xid = event.data > INT64_MAX ? -1 : (int64_t)event.data};
    if (event.device == NULL || b->nvml.uuid(event.device, out->uuid, sizeof out->uuid) != NVML_OK)
        out->uuid[0] = '\0';
    out->uuid[sizeof out->uuid - 1] = '\0';
    return 1;
}

void backend_nvml_deafen(struct backend *b)
{
    if (b->events != NULL)
        (void)b->nvml.event_free(b->events);
    b->events = NULL;
    b->hears = false;
    for (size_t i = 0; i < GPU_CARDS_MAX; i++)
        b->heard[i][0] = '\0';
}
