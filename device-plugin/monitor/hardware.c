// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/monitor/hardware.h"

#include <dirent.h>
#include <limits.h>

#include "device-plugin/cards/backend.h"
#include "device-plugin/monitor/scan.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/names.h"

#include <stdlib.h>

enum {
    MAILBOX = 256,
    END_MS = 1000,   /* how long a backend may take to stop */
    LISTEN_MS = 100, /* while it waits for an event, which only a timeout ends */
    SYSFS_BYTES_MAX = 4096,
};
enum { BACKEND_NVML, BACKEND_SIM, BACKEND_NONE, BACKEND_AUTO };

static const struct backend_type *const backends[] = {&backend_nvml, &backend_sim};

#define OFFSET(field) offsetof(struct hardware_options, field)

const struct option_row hardware_option_rows[] = {
    {.section = "CARDS"},
    {.name = "backend",
     .kind = OPTION_CHOICE,
     .offset = OFFSET(backend),
     .choices = "nvml|sim|none|auto",
     .fallback = "nvml",
     .help =
         "nvml asks NVIDIA's driver; sim reads --sim-file; none: the node has no cards, only its CPUs are served; auto: nvml where "
         "an NVIDIA card is on the PCI bus, otherwise none."},
    {.name = "nvml-library",
     .kind = OPTION_STRING,
     .offset = OFFSET(nvml_library),
     .fallback = "libnvidia-ml.so.1",
     .meta = "FILE",
     .help = "NVML, by name (found like any library) or by path."},
    {.name = "sim-file",
     .kind = OPTION_STRING,
     .offset = OFFSET(sim_file),
     .meta = "FILE",
     .help = "Simulated cards: JSON with the cards and links of annotation " NAME_ANN_GPU_INVENTORY
             ". Read again at every scan."},
    {.name = "sysfs",
     .kind = OPTION_STRING,
     .offset = OFFSET(sysfs),
     .fallback = "/sys",
     .meta = "DIR",
     .help = "Where the NUMA nodes of PCI devices are read."},
    {.name = "proc",
     .kind = OPTION_STRING,
     .offset = OFFSET(proc),
     .fallback = "/proc",
     .meta = "DIR",
     .help =
         "Where the cgroups of processes on the cards are read, to name their pods, and the mounts of new containers, to know "
         "which they are before they begin: the host's processes, so the plugin's pod needs hostPID."},
    {.name = "scan-interval",
     .kind = OPTION_DURATION,
     .offset = OFFSET(scan_interval_ms),
     .fallback = "10s",
     .min = 100,
     .max = 3600 * 1000,
     .meta = "DURATION",
     .help = "How often the cards are scanned. Errors that the driver reports take effect at "
             "once."},
    {.name = "scan-deadline",
     .kind = OPTION_DURATION,
     .offset = OFFSET(scan_deadline_ms),
     .fallback = "15s",
     .min = 1000,
     .max = 3600 * 1000,
     .meta = "DURATION",
     .help = "How long a call to the driver may take. Then the card that it was about is "
             "withdrawn, the others stay as they were, and an Event says so."},
    {.name = "recovery-hold",
     .kind = OPTION_DURATION,
     .offset = OFFSET(recovery_hold_ms),
     .fallback = "30s",
     .min = 100,
     .max = 24 * 3600 * 1000,
     .meta = "DURATION",
     .help =
         "A card with an error is withdrawn for at least this time after its last error, then "
         "offered again after three scans in a row without one. Doubled, up to 10 minutes, for a "
         "card that fails again within an hour."},
    {.name = "cpu-manager-state",
     .kind = OPTION_STRING,
     .offset = OFFSET(cpu_manager_state),
     .meta = "FILE",
     .help =
         "The kubelet's note of its CPU manager policy. KUBELET-DIR/cpu_manager_state unless set."},
    {0}};

struct hardware {
    struct mailbox *messages;
    struct scan *scan;
    struct monitor *monitor;
    void (*fatal)(void *arg);
    void *arg;
    char cpu_manager_state[PATH_MAX];
};

/* An NVIDIA display controller: class 0x03, vendor 0x10de. */
static bool is_nvidia(const char *sysfs, const char *device)
{
    char path[PATH_MAX];
    AUTO_STRBUF vendor;
    AUTO_STRBUF class;
    strbuf_init(&vendor);
    strbuf_init(&class);
    return str_format(path, sizeof path, "%s/bus/pci/devices/%s/vendor", sysfs, device) &&
           file_read(path, SYSFS_BYTES_MAX, &vendor, NULL) == 0 &&
           str_format(path, sizeof path, "%s/bus/pci/devices/%s/class", sysfs, device) &&
           file_read(path, SYSFS_BYTES_MAX, &class, NULL) == 0 &&
           str_starts(strbuf_str(&vendor), "0x10de") && str_starts(strbuf_str(&class), "0x03");
}

void hardware_settle(struct hardware_options *o)
{
    char path[PATH_MAX];
    if (o->backend != BACKEND_AUTO)
        return;
    o->backend = BACKEND_NONE;
    DIR *d = str_format(path, sizeof path, "%s/bus/pci/devices", o->sysfs) ? opendir(path) : NULL;
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        if (is_nvidia(o->sysfs, e->d_name))
            o->backend = BACKEND_NVML;
    if (d != NULL)
        closedir(d);
}

bool hardware_has_cards(const struct hardware_options *o)
{
    return o->backend < BACKEND_NONE;
}

const char *hardware_backend_name(const struct hardware_options *o)
{
    return hardware_has_cards(o) ? backends[o->backend]->name : "none";
}

static void on_message(void *arg, void *msg)
{
    struct hardware *h = arg;
    struct scan_message *l = msg;
    if (l->kind == SCAN_FATAL) {
        log_error("no cards", kv("error", l->err.text));
        h->fatal(h->arg);
    } else {
        monitor_message(h->monitor, l);
    }
    scan_message_free(l);
}

int hardware_start(struct hardware **out, struct loop *loop, const struct hardware_options *o,
                   const char *kubelet_dir, const struct monitor_hooks *hooks,
                   void (*fatal)(void *arg), struct error *err)
{
    struct hardware *h = mem_new(struct hardware, 1);
    h->fatal = fatal;
    h->arg = hooks->arg;
    bool given = o->cpu_manager_state != NULL && o->cpu_manager_state[0] != '\0';
    if (!str_format(h->cpu_manager_state, sizeof h->cpu_manager_state, "%s%s",
                    given ? o->cpu_manager_state : kubelet_dir,
                    given ? "" : "/cpu_manager_state")) {
        free(h);
        return error_set(err, ERROR_INVALID, "--cpu-manager-state: too long");
    }
    *out = h; /* also on failure: the metrics may be collected from now on */
    struct monitor_config watch = {.loop = loop,
                                   .interval_ms = o->scan_interval_ms,
                                   .deadline_ms = o->scan_deadline_ms,
                                   .hold_ms = o->recovery_hold_ms,
                                   .cpu_manager_state = h->cpu_manager_state,
                                   .hooks = *hooks};
    if (monitor_new(&h->monitor, &watch, err) < 0)
        return -1;
    struct scan_config scan = {
        .type = backends[o->backend],
        .backend = {.nvml_library = o->nvml_library, .sysfs = o->sysfs, .sim_file = o->sim_file},
        .proc = o->proc,
        .interval_ms = o->scan_interval_ms,
        /* So that waiting for events does not look like a hanging driver. */
        .slice_ms = num_min(SCAN_SLICE_MS, o->scan_deadline_ms / 2)};
    if (mailbox_new(&h->messages, loop, MAILBOX, on_message, scan_message_free, h, err) < 0)
        return -1;
    scan.mailbox = h->messages;
    if (scan_start(&h->scan, &scan, err) < 0)
        return -1;
    monitor_watch(h->monitor, h->scan);
    return 0;
}

struct monitor *hardware_monitor(struct hardware *h)
{
    return h->monitor;
}

bool hardware_stop(struct hardware *h)
{
    if (h == NULL)
        return true;
    monitor_watch(h->monitor, NULL);
    bool listening = h->scan != NULL && scan_is_listening(h->scan);
    bool clean = scan_stop(h->scan, listening ? LISTEN_MS : END_MS);
    if (clean)
        h->scan = NULL;
    else if (!scan_is_listening(h->scan))
        log_warn("the card backend did not return and is left behind");
    return monitor_stop(h->monitor) && clean;
}

void hardware_free(struct hardware *h)
{
    if (h == NULL)
        return;
    if (h->messages != NULL)
        mailbox_free(h->messages);
    monitor_free(h->monitor);
    free(h);
}
