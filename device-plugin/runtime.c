// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/runtime.h"

#include <limits.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device-plugin/isolation/regionfs.h"
#include "device-plugin/isolation/shares.h"
#include "lib/base/log.h"
#include "lib/base/str.h"
#include "lib/model/names.h"

enum { AUTO, NONE, BY_MPS, BY_KERNEL, BY_CGPU, BY_LIBRARY };
enum { CDI_OWN, CDI_NVIDIA };
enum { ENFORCE_REPORT, ENFORCE_EVICT };
enum { MPS_PIPE_BYTES = 16 << 20, MPS_SHM_BYTES = 64 << 20 };

#define OFFSET(field) offsetof(struct runtime_options, field)

const struct option_row runtime_option_rows[] = {
    {.section = "CONTAINERS"},
    {.name = "isolation",
     .kind = OPTION_CHOICE,
     .offset = OFFSET(isolation),
     .choices = "auto|none|mps|kernel|cgpu|library",
     .fallback = "auto",
     .help = "How modes cgpu, core_mem and mps enforce a container's share. auto: serve a mode "
             "only with an engine that enforces it (mps: NVIDIA's MPS; cgpu: the kernel's limits "
             "of device memory, cgroup v2 dmem, where it lists the cards; cgpu, core_mem: else "
             "the cGPU kernel module, or else our own library); without one, offer 0 of its "
             "resources and report why in an Event. none: serve them without enforcement. A name: "
             "use this engine only. Mode share enforces nothing and is always served."},
    {.name = "isolation-library",
     .kind = OPTION_STRING,
     .offset = OFFSET(library),
     .fallback = SHARES_INSTALLED,
     .meta = "FILE",
     .help = "Our own library, " SHARES_LIBRARY ", as installed beside this program."},
    {.name = "isolation-context",
     .kind = OPTION_SIZE,
     .offset = OFFSET(context_bytes),
     .fallback = "0",
     .min = 0,
     .max = INT64_C(64) << 30,
     .meta = "SIZE",
     .help = "With our own library: the card memory that the driver takes for each context. It is "
             "charged to the container, as on a card of its own. 0: measure it, by creating a "
             "context on each card once in a process of our own and reading that process's memory "
             "from NVML; if this fails, contexts are not charged, and the audit allows 512 MiB "
             "for each process."},
    {.name = "cuda-library",
     .kind = OPTION_STRING,
     .offset = OFFSET(cuda_library),
     .fallback = "libcuda.so.1",
     .meta = "FILE",
     .help = "The CUDA driver's library, by name or by path, for the process that measures "
             "contexts."},
    {.name = "enforce",
     .kind = OPTION_CHOICE,
     .offset = OFFSET(enforce),
     .choices = "report|evict",
     .fallback = "report",
     .help = "What to do with a pod whose processes bypassed our own library (static binaries, "
             "direct use of the device) or, by the driver's figures, have more memory than their "
             "share, also in mode mps. report: Event GpuIsolationBypassed and metrics; evict: "
             "also evict it, which needs the right to create pods/eviction."},
    {.name = "isolation-dir",
     .kind = OPTION_STRING,
     .offset = OFFSET(shares),
     .fallback = "/var/lib/cosched/isolation",
     .meta = "DIR",
     .help = "With our own library: the parent of the folders that are mounted into containers, "
             "one for each. The same path here and on the host; created if its parent exists."},
    {.name = "mount-only",
     .kind = OPTION_BOOL,
     .offset = OFFSET(mount_only),
     .fallback = "false",
     .help =
         "Only mount small file systems (tmpfs, nosuid, nodev, noexec) for what containers "
         "write, then exit: for an init container, which may mount where the plugin itself "
         "may not. Mounts ISOLATION-DIR/" SHARES_REGIONS
         " for the regions of our own library, which cannot grow there; without it they are "
         "files in ISOLATION-DIR: the plugin warns, and every scan truncates those that are "
         "too large. With --mps-control also --mps-pipe-dir and, unless it is " ISOLATION_MPS_SHM
         ", --mps-shm-dir."},
    {.name = "mps-control",
     .kind = OPTION_STRING,
     .offset = OFFSET(mps_control),
     .meta = "FILE",
     .help = "nvidia-cuda-mps-control, which this process runs and supervises in mode mps. "
             "Default: something else runs it."},
    {.name = "mps-pipe-dir",
     .kind = OPTION_STRING,
     .offset = OFFSET(mps_pipe),
     .fallback = ISOLATION_MPS_PIPE,
     .meta = "DIR",
     .help = "The MPS control daemon's pipe directory; mounted into containers in mode mps."},
    {.name = "mps-log-dir",
     .kind = OPTION_STRING,
     .offset = OFFSET(mps_log),
     .fallback = "/var/log/nvidia-mps",
     .meta = "DIR",
     .help = "Log directory of a daemon that --mps-control starts."},
    {.name = "mps-shm-dir",
     .kind = OPTION_STRING,
     .offset = OFFSET(mps_shm),
     .fallback = ISOLATION_MPS_SHM,
     .meta = "DIR",
     .help = "The daemon's shared memory; mounted at " ISOLATION_MPS_SHM
             " in mode mps. All its clients write there, so prefer a separate one to the node's: "
             "see --mount-only."},
    {.name = "cgpu-dir",
     .kind = OPTION_STRING,
     .offset = OFFSET(cgpu_dir),
     .fallback = ISOLATION_CGPU_DIR,
     .meta = "DIR",
     .help = "A directory that exists while the cGPU kernel module is loaded."},
    {.name = "device-list",
     .kind = OPTION_CHOICE,
     .offset = OFFSET(device_list),
     .choices = "auto|envvar|cdi|device-specs",
     .fallback = "auto",
     .help =
         "How the container runtime is told which cards a container gets. envvar: in " NAME_ENV_VISIBLE
         ", for NVIDIA's runtime; cdi: by a CDI spec in --cdi-dir; device-specs: by the "
         "device files themselves; auto: cdi where --cdi-dir exists, else envvar. The "
         "environment is the same in all."},
    {.name = "cdi-dir",
     .kind = OPTION_STRING,
     .offset = OFFSET(cdi_dir),
     .fallback = "/var/run/cdi",
     .meta = "DIR",
     .help = "Where the container runtime looks for CDI specs. With --device-list=cdi it is "
             "created if its parent exists."},
    {.name = "cdi-spec",
     .kind = OPTION_CHOICE,
     .offset = OFFSET(cdi_spec),
     .choices = "own|nvidia",
     .fallback = "own",
     .help = "Which CDI spec names the cards. own: ours, written here, with the device files and "
             "nothing else. nvidia: that of NVIDIA's toolkit (nvidia-ctk cdi generate, with names "
             "by uuid), which also adds the driver's libraries."},
    {0}};

static const char *const engines[] = {[BY_MPS] = ISOLATION_MPS,
                                      [BY_KERNEL] = ISOLATION_KERNEL,
                                      [BY_CGPU] = "cgpu",
                                      [BY_LIBRARY] = ISOLATION_LIBRARY};

bool runtime_evicts(const struct runtime_options *o)
{
    return o->enforce == ENFORCE_EVICT;
}

static bool regions(const struct runtime_options *o, char path[PATH_MAX])
{
    return str_format(path, PATH_MAX, "%s/" SHARES_REGIONS, o->shares);
}

static void mount_one(const char *path, int64_t bytes, unsigned mode)
{
    struct error err = ERROR_INIT;
    if (regionfs_mount_tmpfs(path, bytes, mode, &err) == 0)
        log_info("mounted", kv("path", path));
    else
        log_warn("a file system for what containers write cannot be mounted",
                 kv("error", err.text));
}

void runtime_mount(const struct runtime_options *o)
{
    char path[PATH_MAX];
    (void)mkdir(o->shares, 0700); /* the mount reports errors */
    if (regions(o, path))
        mount_one(path, REGIONFS_BYTES, 0700);
    if (o->mps_control == NULL || o->mps_control[0] == '\0')
        return;
    mount_one(o->mps_pipe, MPS_PIPE_BYTES, 0755);
    if (!str_eq(o->mps_shm, ISOLATION_MPS_SHM))
        mount_one(o->mps_shm, MPS_SHM_BYTES, 01777);
}

void runtime_apply(const struct runtime_options *o, struct agent_config *c)
{
    char path[PATH_MAX];
    bool apart = regions(o, path) && regionfs_is(path);
    if (!apart && (o->isolation == AUTO || o->isolation == BY_LIBRARY) &&
        access(o->library, F_OK) == 0)
        log_warn("there is no file system of regions: what containers write there is only cut "
                 "afterwards; --mount-only mounts it",
                 kv("path", path));
    c->isolation = (struct isolation_config){.none = o->isolation == NONE,
                                             .mps_pipe = o->mps_pipe,
                                             .mps_shm = o->mps_shm,
                                             .cgpu_dir = o->cgpu_dir,
                                             .only = engines[o->isolation],
                                             .library = o->library,
                                             .context_mib = o->context_bytes >> 20,
                                             .shares = o->shares,
                                             .regions_apart = apart};
    c->mps_control = o->mps_control;
    c->mps_log = o->mps_log;
    c->list = (enum agent_list)o->device_list;
    c->cdi_dir = o->cdi_dir;
    c->cdi_nvidia = o->cdi_spec == CDI_NVIDIA;
}
