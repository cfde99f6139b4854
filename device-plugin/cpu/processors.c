// SPDX-License-Identifier: Apache-2.0
/* The topology is read at the start and whenever the kernel's online CPUs or the reserved CPUs
 * change. Both are small files, checked every ten seconds: CPUs go offline when they fail or an
 * administrator takes them offline, and the scheduler plans with the annotation, not the
 * machine. */
#include "device-plugin/cpu/processors.h"

#include <limits.h>
#include <stdlib.h>

#include "device-plugin/cpu/cpuinfo.h"
#include "lib/base/arena.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/yaml.h"
#include "lib/model/names.h"

enum { KUBELET_CONFIG_MAX = 1024 * 1024 };

#define OFFSET(field) offsetof(struct processors_options, field)

const struct option_row processors_option_rows[] = {
    {.section = "CPUS"},
    {.name = "cpu-topology",
     .kind = OPTION_STRING,
     .offset = OFFSET(topology),
     .fallback = "live",
     .meta = "SOURCE",
     .help = "Source of the layout in annotation " NAME_ANN_CPU_TOPOLOGY
             ": live (this machine), xml:FILE (saved by hwloc's lstopo), synthetic:TEXT (hwloc's "
             "description, such as 'pack:2 [numa] l3:8 core:8 pu:2'), off (nothing is published)."},
    {.name = "reserved-cpus",
     .kind = OPTION_STRING,
     .offset = OFFSET(reserved),
     .meta = "LIST",
     .help = "CPUs to which no container is pinned, such as 0-1,64. Default: reservedSystemCPUs of "
             "--kubelet-config."},
    {.name = "kubelet-config",
     .kind = OPTION_STRING,
     .offset = OFFSET(kubelet_config),
     .meta = "FILE",
     .help = "The kubelet's configuration. Default: KUBELET-DIR/config.yaml."},
    {.name = "cgroup-root",
     .kind = OPTION_STRING,
     .offset = OFFSET(cgroup_mount),
     .fallback = "/sys/fs/cgroup",
     .meta = "DIR",
     .help =
         "Where the host's cgroups are mounted, v1 or v2. The plugin pins containers of pods with "
         "annotation " NAME_ANN_CPUSET " to the CPUs that it names."},
    {.name = "kubelet-cgroup-root",
     .kind = OPTION_STRING,
     .offset = OFFSET(kubelet_cgroup_root),
     .meta = "PATH",
     .help =
         "The kubelet's cgroupRoot, the parent of kubepods. Default: that of --kubelet-config."},
    {.name = "pin-memory",
     .kind = OPTION_BOOL,
     .offset = OFFSET(pin_memory),
     .help = "Also bind the memory of a pod whose CPUs are on one NUMA node to that node "
             "(cpuset.mems)."},
    {.name = "shared-pool",
     .kind = OPTION_BOOL,
     .offset = OFFSET(shared_pool),
     .help =
         "Keep all other containers off the CPUs of pinned ones. A plugin that starts without this "
         "option restores their CPUs, as recorded in --state-dir."},
    {0}};

struct processors {
    struct processors_config config;
    char kubelet_config[PATH_MAX];
    char cpu_manager_state[PATH_MAX];
    char cgroup_root[PATH_MAX];
    struct pinner *pinner;
    struct loop_timer look;
    bool known;                           /* the four below were published */
    struct cpuset online;                 /* of the live machine */
    struct cpuset reserved;               /* as configured, whether such CPUs exist or not */
    char closed[TOPOLOGY_CLOSED_MAX + 1]; /* why no pods are pinned; "": they are */
    char complaint[ERROR_TEXT_SIZE];      /* logged once */
};

static bool is_live(const struct processors *p)
{
    return str_eq(p->config.options->topology, "live");
}

static bool is_set(const char *s)
{
    return s != NULL && s[0] != '\0';
}

int processors_check(const struct processors_options *o, struct error *err)
{
    struct cpuset set;
    if (!str_eq(o->topology, "off") && cpuinfo_check_source(o->topology, err) < 0)
        return error_wrap(err, "--cpu-topology");
    if (is_set(o->reserved) && cpuset_parse(o->reserved, &set, err) < 0)
        return error_wrap(err, "--reserved-cpus");
    return 0;
}

static void complain(struct processors *p, const char *what, const struct error *err)
{
    if (error_is_news(p->complaint, err->text))
        log_warn(what, kv("error", err->text));
}

/* A kubelet without a config file uses flags, which we cannot see: *doc stays NULL. */
static int read_kubelet(const char *path, struct json_doc **doc, struct error *err)
{
    AUTO_STRBUF text;
    struct error why = ERROR_INIT;
    strbuf_init(&text);
    if (file_read(path, KUBELET_CONFIG_MAX, &text, &why) < 0) {
        if (why.code == ERROR_NOT_FOUND)
            return 0;
        *err = why;
        return -1;
    }
    if (yaml_parse(doc, strbuf_str(&text), text.len, 4 * KUBELET_CONFIG_MAX, err) < 0)
        return error_wrap(err, "%s", path);
    return 0;
}

static int kubelet_reserved(const char *path, struct cpuset *out, struct error *err)
{
    AUTO_JSON *doc = NULL;
    cpuset_clear(out);
    if (read_kubelet(path, &doc, err) < 0)
        return -1;
    const char *list = doc != NULL ? json_get_str(json_root(doc), "reservedSystemCPUs") : NULL;
    if (list != NULL && cpuset_parse(list, out, err) < 0)
        return error_wrap(err, "%s: reservedSystemCPUs", path);
    return 0;
}

static void read_reserved(struct processors *p, struct cpuset *out)
{
    struct error err = ERROR_INIT;
    const char *given = p->config.options->reserved;
    if (is_set(given) ? cpuset_parse(given, out, &err) < 0
                      : kubelet_reserved(p->kubelet_config, out, &err) < 0) {
        complain(p, "the kubelet's reserved CPUs are not known, those known before stay", &err);
        *out = p->reserved;
    }
}

/* Drops reserved CPUs that the machine lacks. */
static void keep_known(struct cpu_topology *t, const struct cpuset *reserved)
{
    t->reserved = *reserved;
    for (int cpu = -1; (cpu = cpuset_next(&t->reserved, cpu)) >= 0;)
        if (cpu_topology_core_of(t, (unsigned)cpu) == TOPOLOGY_NO_CORE &&
            !cpuset_has(&t->offline, (unsigned)cpu))
            cpuset_remove(&t->reserved, (unsigned)cpu);
}

static int read_layout(struct processors *p, const struct cpuset *reserved, const char *closed,
                       struct error *err)
{
    AUTO_STRBUF text;
    struct cpu_topology t;
    struct arena a;
    strbuf_init(&text);
    arena_init(&a, 0);
    int result = cpuinfo_read(p->config.options->topology, p->config.sysfs, &a, &t, err);
    if (result == 0) {
        keep_known(&t, reserved);
        t.closed = closed[0] != '\0' ? closed : NULL;
        cpu_topology_encode(&t, &text);
        if (text.len > TOPOLOGY_BYTES_MAX)
            result = error_set(err, ERROR_TOO_LARGE, "CPU topology: longer than %d bytes",
                               TOPOLOGY_BYTES_MAX);
    }
    if (result == 0) {
        log_info("CPUs", kv("topology", strbuf_str(&text)));
        p->config.publish(p->config.pinner.arg, strbuf_str(&text));
        if (p->pinner != NULL)
            pinner_machine(p->pinner, &t);
    }
    arena_deinit(&a);
    return result;
}

/* Reads the topology again if anything it depends on has changed. */
static int look(struct processors *p, struct error *err)
{
    struct cpuset online = {{0}}, reserved;
    char closed[sizeof p->closed];
    read_reserved(p, &reserved);
    (void)str_format(closed, sizeof closed, "%s", str_or_empty(pinner_closed(p->pinner)));
    if (is_live(p) && cpuinfo_list(p->config.sysfs, "online", &online, err) < 0)
        return -1;
    if (p->known && cpuset_equal(&online, &p->online) && cpuset_equal(&reserved, &p->reserved) &&
        str_eq(closed, p->closed))
        return 0;
    if (read_layout(p, &reserved, closed, err) < 0)
        return -1;
    (void)str_format(p->closed, sizeof p->closed, "%s", closed);
    p->known = true;
    p->online = online;
    p->reserved = reserved;
    p->complaint[0] = '\0';
    return 0;
}

static void on_scan(void *arg)
{
    struct processors *p = arg;
    struct error err = ERROR_INIT;
    if (look(p, &err) < 0)
        complain(p, "the layout of the CPUs cannot be read", &err);
    loop_timer_beat(p->config.pinner.loop, &p->look,
                    p->config.look_ms > 0 ? p->config.look_ms : PROCESSORS_LOOK_MS, on_scan, p);
}

/* The option's path, or the default below the kubelet's directory. */
static int place(char out[PATH_MAX], const char *given, const char *dir, const char *usual,
                 struct error *err)
{
    if (is_set(given) ? str_format(out, PATH_MAX, "%s", given)
                      : str_format(out, PATH_MAX, "%s/%s", dir, usual))
        return 0;
    return error_set(err, ERROR_INVALID, "%.64s...: too long", is_set(given) ? given : dir);
}

static void find_cgroup_root(struct processors *p)
{
    AUTO_JSON *doc = NULL;
    struct error err = ERROR_INIT;
    const char *given = p->config.options->kubelet_cgroup_root;
    if (!is_set(given) && read_kubelet(p->kubelet_config, &doc, &err) == 0 && doc != NULL)
        given = json_get_str(json_root(doc), "cgroupRoot");
    (void)str_format(p->cgroup_root, sizeof p->cgroup_root, "%s", str_or_empty(given));
}

int processors_start(struct processors **out, const struct processors_config *c, struct error *err)
{
    *out = NULL;
    if (str_eq(c->options->topology, "off"))
        return 0;
    struct processors *p = mem_new(struct processors, 1);
    p->config = *c;
    *out = p;
    if (place(p->kubelet_config, c->options->kubelet_config, c->kubelet_dir, "config.yaml", err) <
            0 ||
        place(p->cpu_manager_state, c->pinner.cpu_manager_state, c->kubelet_dir,
              "cpu_manager_state", err) < 0)
        return -1;
    find_cgroup_root(p);
    struct pinner_config *pin = &p->config.pinner;
    pin->cgroup_mount = c->options->cgroup_mount;
    pin->cgroup_root = p->cgroup_root;
    pin->cpu_manager_state = p->cpu_manager_state;
    pin->memory = c->options->pin_memory;
    pin->shared_pool = c->options->shared_pool;
    if (pinner_start(&p->pinner, pin, err) < 0 || (!is_live(p) && look(p, err) < 0))
        return -1;
    on_scan(p);
    return 0;
}

const char *processors_cgroup_root(const struct processors *p)
{
    return p != NULL ? p->cgroup_root : "";
}

void processors_stop(struct processors *p)
{
    if (p == NULL)
        return;
    loop_timer_cancel(p->config.pinner.loop, &p->look);
    pinner_stop(p->pinner);
    free(p);
}
