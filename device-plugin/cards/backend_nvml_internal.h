// SPDX-License-Identifier: Apache-2.0
/* backend_nvml_internal - the part of NVML's ABI that we use, transcribed by us; shared by the
 * backend_nvml files. */
#pragma once

#include <stdbool.h>

#include "device-plugin/cards/backend.h"
#include "lib/base/str.h"

typedef int nvml_return;
typedef struct nvml_device *nvml_device;
typedef struct nvml_event_set *nvml_event_set;

enum {
    NVML_OK = 0,
    NVML_NOT_SUPPORTED = 3,
    NVML_NOT_FOUND = 6,
    NVML_TOO_SMALL = 7,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_TIMEOUT = 10,
    NVML_LOST = 15,
};
enum { NVML_NAME_SIZE = 96, NVML_VERSION_SIZE = 80, NVML_LINKS_MAX = 18 };
enum { NVML_REMOTE_GPU = 0, NVML_REMOTE_SWITCH = 2 };
enum { NVML_EVENT_ECC = 0x2, NVML_EVENT_XID = 0x8 };
enum { NVML_ECC_UNCORRECTED = 1, NVML_ECC_VOLATILE = 0 };

struct nvml_memory {
    unsigned long long total, free, used;
};

struct nvml_pci {
    char bus_id_legacy[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
};

/* As filled by versions 2 and 3 of the process functions. */
struct nvml_process {
    unsigned pid;
    unsigned long long used; /* bytes; all ones: unknown */
    unsigned gpu_instance, compute_instance;
};

struct nvml_event {
    nvml_device device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};

/* How busy a process kept a card, in percent of the time before the stamp. */
struct nvml_utilization {
    unsigned pid;
    unsigned long long stamp_us;
    unsigned sm, memory, encoder, decoder;
};

typedef nvml_return nvml_processes(nvml_device, unsigned *len, struct nvml_process *);

struct nvml {
    nvml_return (*init)(void);
    nvml_return (*shutdown)(void);
    const char *(*error_string)(nvml_return);
    nvml_return (*driver_version)(char *, unsigned);
    nvml_return (*count)(unsigned *);
    nvml_return (*by_index)(unsigned, nvml_device *);
    nvml_return (*uuid)(nvml_device, char *, unsigned);
    nvml_return (*name)(nvml_device, char *, unsigned);
    nvml_return (*memory)(nvml_device, struct nvml_memory *);
    nvml_return (*pci)(nvml_device, struct nvml_pci *);
    /* Optional: NULL where the driver lacks them. */
    nvml_return (*mig_mode)(nvml_device, unsigned *current, unsigned *pending);
    nvml_return (*ancestor)(nvml_device, nvml_device, int *level);
    nvml_return (*link_state)(nvml_device, unsigned link, int *active);
    nvml_return (*link_remote)(nvml_device, unsigned link, struct nvml_pci *);
    nvml_return (*link_type)(nvml_device, unsigned link, int *type);
    nvml_return (*ecc)(nvml_device, int type, int counter, unsigned long long *);
    nvml_return (*remapped)(nvml_device, unsigned *corrected, unsigned *uncorrected,
                            unsigned *pending, unsigned *failed);
    nvml_return (*retiring)(nvml_device, int *pending);
    nvml_processes *compute, *graphics, *mps;
    nvml_return (*utilization)(nvml_device, struct nvml_utilization *, unsigned *len,
                               unsigned long long since_us);
    nvml_return (*event_set)(nvml_event_set *);
    nvml_return (*event_types)(nvml_device, unsigned long long *);
    nvml_return (*event_register)(nvml_device, unsigned long long types, nvml_event_set);
    nvml_return (*event_wait)(nvml_event_set, struct nvml_event *, unsigned ms);
    nvml_return (*event_free)(nvml_event_set);
};

struct backend {
    void *library;
    struct nvml nvml;
    bool initialised;
    /* A call failed: NVML must be initialised again to see a card after a reset. Not at every scan,
     * because events in between are lost. */
    bool stale;
    int scans; /* since the last initialisation */
    char *sysfs;
    _Atomic int32_t *asking, no_card;
    /* The last message about each card, by index; "": none. */
    char logged[GPU_CARDS_MAX][ERROR_TEXT_SIZE];
    /* Events: the set, and the registered cards, by index. */
    nvml_event_set events;
    bool hears;
    char heard[GPU_CARDS_MAX][BACKEND_UUID_SIZE];
    /* Device time: reported up to here, by index. */
    struct backend_nvml_reported {
        uint64_t stamp_us; /* by the driver's clock; 0: nothing yet */
        int64_t at_us;     /* by ours */
    } reported[GPU_CARDS_MAX];
};

/* "00000000:3B:00.0" → "0000:3b:00.0", as the kernel writes it. */
const char *backend_nvml_pci_name(struct arena *a, struct nvml_pci *pci);

/* The matrix between these cards, in nvidia-smi's names. */
const char **backend_nvml_links(struct backend *b, const nvml_device *devices,
                                const struct gpu_card *cards, size_t n, struct arena *a);
/* Memory errors, pending repairs, processes. */
void backend_nvml_condition(struct backend *b, nvml_device device, struct arena *a,
                            struct backend_card *out);
/* Registers for the card's error events, if the driver supports them. */
void backend_nvml_hear(struct backend *b, nvml_device device, const struct gpu_card *card);
int backend_nvml_wait(struct backend *b, int64_t ms, struct backend_event *out);
void backend_nvml_deafen(struct backend *b);
size_t backend_nvml_busy(struct backend *b, struct arena *a, struct backend_time **out);
