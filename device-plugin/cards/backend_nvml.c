// SPDX-License-Identifier: Apache-2.0
/*
 * backend_nvml - NVIDIA's management library. Only the backend_nvml files know NVML.
 *
 * The library belongs to the node's driver, so it is loaded with dlopen, and each function by its
 * exported, versioned name. NVIDIA's header is not used; the prototypes in backend_nvml_internal.h
 * are our own. If the driver lacks a required function, the error names it, the driver's version
 * and the remedy. What optional functions report is otherwise unknown.
 *
 * Each scan queries everything: a card that has fallen off the bus answers "lost" to some call and
 * becomes a failure in the list (device-plugin/monitor records it as unhealthy). Only the last
 * message about each card is kept, so that a lost one is not logged at every scan.
 */
#include "device-plugin/cards/backend.h"

#include <ctype.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/log.h"
#include "lib/base/num.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "device-plugin/cards/backend_nvml_internal.h"

enum { AGAIN_SCANS = 6 };

static const struct symbol {
    const char *name;
    size_t offset;
    bool optional;
} symbols[] = {
    {"nvmlInit_v2", offsetof(struct nvml, init), false},
    {"nvmlShutdown", offsetof(struct nvml, shutdown), false},
    {"nvmlErrorString", offsetof(struct nvml, error_string), false},
    {"nvmlSystemGetDriverVersion", offsetof(struct nvml, driver_version), false},
    {"nvmlDeviceGetCount_v2", offsetof(struct nvml, count), false},
    {"nvmlDeviceGetHandleByIndex_v2", offsetof(struct nvml, by_index), false},
    {"nvmlDeviceGetUUID", offsetof(struct nvml, uuid), false},
    {"nvmlDeviceGetName", offsetof(struct nvml, name), false},
    {"nvmlDeviceGetMemoryInfo", offsetof(struct nvml, memory), false},
    {"nvmlDeviceGetPciInfo_v3", offsetof(struct nvml, pci), false},
    {"nvmlDeviceGetMigMode", offsetof(struct nvml, mig_mode), true},
    {"nvmlDeviceGetTopologyCommonAncestor", offsetof(struct nvml, ancestor), true},
    {"nvmlDeviceGetNvLinkState", offsetof(struct nvml, link_state), true},
    {"nvmlDeviceGetNvLinkRemotePciInfo_v2", offsetof(struct nvml, link_remote), true},
    {"nvmlDeviceGetNvLinkRemoteDeviceType", offsetof(struct nvml, link_type), true},
    {"nvmlDeviceGetTotalEccErrors", offsetof(struct nvml, ecc), true},
    {"nvmlDeviceGetRemappedRows", offsetof(struct nvml, remapped), true},
    {"nvmlDeviceGetRetiredPagesPendingStatus", offsetof(struct nvml, retiring), true},
    /* The second version of the process functions fills the same structure as the third. */
    {"nvmlDeviceGetComputeRunningProcesses_v2", offsetof(struct nvml, compute), true},
    {"nvmlDeviceGetComputeRunningProcesses_v3", offsetof(struct nvml, compute), true},
    {"nvmlDeviceGetGraphicsRunningProcesses_v2", offsetof(struct nvml, graphics), true},
    {"nvmlDeviceGetGraphicsRunningProcesses_v3", offsetof(struct nvml, graphics), true},
    {"nvmlDeviceGetMPSComputeRunningProcesses_v2", offsetof(struct nvml, mps), true},
    {"nvmlDeviceGetMPSComputeRunningProcesses_v3", offsetof(struct nvml, mps), true},
    {"nvmlDeviceGetProcessUtilization", offsetof(struct nvml, utilization), true},
    {"nvmlEventSetCreate", offsetof(struct nvml, event_set), true},
    {"nvmlDeviceGetSupportedEventTypes", offsetof(struct nvml, event_types), true},
    {"nvmlDeviceRegisterEvents", offsetof(struct nvml, event_register), true},
    {"nvmlEventSetWait_v2", offsetof(struct nvml, event_wait), true},
    {"nvmlEventSetFree", offsetof(struct nvml, event_free), true},
};

static int nvml_error(struct backend *b, struct error *err, nvml_return code, const char *what)
{
    enum error_code kind = code == NVML_DRIVER_NOT_LOADED ? ERROR_UNAVAILABLE : ERROR_IO;
    return error_set(err, kind, "NVML: %s: %s (%d)", what, str_or_empty(b->nvml.error_string(code)),
                     code);
}

/* Logs once while the message stays the same. why "": the card is fine. */
static void log_once(struct backend *b, unsigned index, const char *why)
{
    if (why[0] != '\0' && !str_eq(b->logged[index], why))
        log_warn("card is not offered", kv("card", index), kv("error", why));
    (void)str_format(b->logged[index], sizeof b->logged[index], "%s", why);
}

static int load(struct backend *b, const char *path, struct error *err)
{
    b->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (b->library == NULL) {
        (void)error_set(
            err, ERROR_NOT_FOUND,
            "NVML: %s (is the NVIDIA driver installed, and its library visible to this process? see "
            "--nvml-library)",
            dlerror());
        return -1;
    }
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *address = dlsym(b->library, symbols[i].name);
        if (address == NULL && !symbols[i].optional) {
            (void)error_set(err, ERROR_UNSUPPORTED,
                            "NVML: %s has no %s: the driver is too old (450 or newer is needed) or "
                            "this is not NVML",
                            path, symbols[i].name);
            return -1;
        }
        if (address != NULL) /* the newest version is listed last */
            memcpy((char *)&b->nvml + symbols[i].offset, &address, sizeof address);
    }
    return 0;
}

static void nvml_close(struct backend *b)
{
    if (b == NULL)
        return;
    backend_nvml_deafen(b);
    if (b->initialised)
        (void)b->nvml.shutdown();
    if (b->library != NULL)
        dlclose(b->library);
    free(b->sysfs);
    free(b);
}

static int begin(struct backend *b, struct error *err)
{
    nvml_return code = b->nvml.init();
    if (code != NVML_OK)
        return nvml_error(b, err, code, "nvmlInit_v2");
    b->initialised = true;
    b->stale = false;
    b->scans = 0;
    return 0;
}

/* NVML must be initialised again to see a card that was reset, or a reloaded driver. */
static int begin_again(struct backend *b, struct error *err)
{
    if (b->initialised && (!b->stale || b->scans < AGAIN_SCANS))
        return 0;
    backend_nvml_deafen(b);
    if (b->initialised)
        (void)b->nvml.shutdown();
    b->initialised = false;
    return begin(b, err);
}

static int nvml_open(struct backend **out, const struct backend_config *c, struct error *err)
{
    struct backend *b = mem_new(struct backend, 1);
    struct strbuf sysfs;
    strbuf_init(&sysfs);
    strbuf_adds(&sysfs, c->sysfs != NULL ? c->sysfs : "/sys");
    b->sysfs = strbuf_take(&sysfs);
    b->asking = c->asking != NULL ? c->asking : &b->no_card;
    if (load(b, c->nvml_library, err) < 0) {
        nvml_close(b);
        return -1;
    }
    if (begin(b, err) < 0) {
        nvml_close(b);
        return -1;
    }
    char version[NVML_VERSION_SIZE] = "";
    if (b->nvml.driver_version(version, sizeof version) == NVML_OK) {
        version[sizeof version - 1] = '\0';
        log_info("NVML loaded", kv("library", c->nvml_library), kv("driver", version));
    }
    *out = b;
    return 0;
}

/* From sysfs, because NVML reports it only since driver 530. -1: unknown. */
static int32_t numa_of(const struct backend *b, const char *pci)
{
    AUTO_STRBUF path;
    strbuf_init(&path);
    strbuf_addf(&path, "%s/bus/pci/devices/%s/numa_node", b->sysfs, pci);
    AUTO_CLOSE int fd = open(strbuf_str(&path), O_RDONLY | O_CLOEXEC);
    char text[16];
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : -1;
    while (n > 0 && isspace((unsigned char)text[n - 1]))
        n--;
    int64_t node;
    if (n <= 0 || num_parse(text, (size_t)n, &node, NULL) < 0 || node < 0 || node > 1023)
        return -1;
    return (int32_t)node;
}

/* The text goes into JSON. The API server would change invalid UTF-8, and we would publish again at
 * every comparison. */
static char *valid_text(struct arena *a, const char *text)
{
    size_t n = strlen(text);
    char *out = arena_strndup(a, text, n);
    for (size_t i = 0; i < n;) {
        size_t len = str_utf8_len(out + i, n - i);
        if (len == 0)
            out[i] = '?';
        i += len > 0 ? len : 1;
    }
    return out;
}

const char *backend_nvml_pci_name(struct arena *a, struct nvml_pci *pci)
{
    pci->bus_id[sizeof pci->bus_id - 1] = '\0';
    const char *text = pci->bus_id;
    const char *s = strlen(text) == 16 && str_starts(text, "0000") ? text + 4 : text;
    char *out = valid_text(a, s);
    for (char *p = out; *p != '\0'; p++)
        *p = (char)tolower((unsigned char)*p);
    return out;
}

/* false: the card cannot be queried; failure has the reason, logged once. */
static bool read_card(struct backend *b, unsigned index, struct arena *a, nvml_device *device,
                      struct gpu_card *out, struct backend_failure *failure)
{
    char uuid[BACKEND_UUID_SIZE] = "", name[NVML_NAME_SIZE] = "";
    struct nvml_memory memory = {0};
    struct nvml_pci pci = {0};
    unsigned mig = 0, pending = 0;
    const char *what = "nvmlDeviceGetHandleByIndex_v2";
    nvml_return code = b->nvml.by_index(index, device);
    if (code == NVML_OK) {
        what = "nvmlDeviceGetUUID";
        code = b->nvml.uuid(*device, uuid, sizeof uuid);
    }
    if (code == NVML_OK) {
        what = "nvmlDeviceGetName";
        code = b->nvml.name(*device, name, sizeof name);
    }
    if (code == NVML_OK) {
        what = "nvmlDeviceGetMemoryInfo";
        code = b->nvml.memory(*device, &memory);
    }
    if (code == NVML_OK) {
        what = "nvmlDeviceGetPciInfo_v3";
        code = b->nvml.pci(*device, &pci);
    }
    if (code != NVML_OK) {
        struct error err = ERROR_INIT;
        (void)nvml_error(b, &err, code, what);
        log_once(b, index, err.text);
        *failure = (struct backend_failure){
            .index = (int32_t)index, .gone = code == NVML_LOST, .why = arena_strdup(a, err.text)};
        return false;
    }
    uuid[sizeof uuid - 1] = name[sizeof name - 1] = '\0';
    *out = (struct gpu_card){.index = (int32_t)index,
                             .uuid = arena_strdup(a, uuid),
                             .model = valid_text(a, name),
                             .mib = (int64_t)(memory.total / (1024 * 1024)),
                             .pci = backend_nvml_pci_name(a, &pci),
                             .health = GPU_HEALTH_OK};
    out->numa = numa_of(b, out->pci);
    out->mig = b->nvml.mig_mode != NULL && b->nvml.mig_mode(*device, &mig, &pending) == NVML_OK &&
               mig != 0;
    log_once(b, index, "");
    return true;
}

static void read_cards(struct backend *b, unsigned count, nvml_device *devices, struct arena *a,
                       struct backend_sight *out)
{
    struct gpu_inventory *inv = &out->inventory;
    for (unsigned i = 0; i < count; i++) {
        size_t n = inv->cards_len;
        atomic_store(b->asking, (int32_t)i);
        if (!read_card(b, i, a, &devices[n], &inv->cards[n], &out->failures[out->failures_len])) {
            out->failures_len++;
            continue;
        }
        backend_nvml_condition(b, devices[n], a, &out->cards[n]);
        backend_nvml_hear(b, devices[n], &inv->cards[n]);
        inv->cards_len++;
    }
    atomic_store(b->asking, BACKEND_NO_CARD);
}

static int nvml_scan(struct backend *b, struct arena *a, struct backend_sight *out,
                     struct error *err)
{
    unsigned count = 0;
    if (begin_again(b, err) < 0)
        return -1;
    b->scans++;
    nvml_return code = b->nvml.count(&count);
    if (code != NVML_OK) {
        b->stale = true;
        return nvml_error(b, err, code, "nvmlDeviceGetCount_v2");
    }
    if (count > GPU_CARDS_MAX)
        return error_set(err, ERROR_TOO_LARGE, "NVML: %u cards; at most %d are supported", count,
                         GPU_CARDS_MAX);
    nvml_device devices[GPU_CARDS_MAX] = {NULL};
    *out = (struct backend_sight){.inventory.cards = arena_new(a, struct gpu_card, count),
                                  .cards = arena_new(a, struct backend_card, count),
                                  .failures = arena_new(a, struct backend_failure, count)};
    read_cards(b, count, devices, a, out);
    b->stale = b->stale || out->failures_len > 0;
    out->inventory.links =
        backend_nvml_links(b, devices, out->inventory.cards, out->inventory.cards_len, a);
    return 0;
}

const struct backend_type backend_nvml = {.name = "nvml",
                                          .open = nvml_open,
                                          .scan = nvml_scan,
                                          .wait = backend_nvml_wait,
                                          .busy = backend_nvml_busy,
                                          .close = nvml_close};
