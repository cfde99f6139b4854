// SPDX-License-Identifier: Apache-2.0
/*
 * Distances between cards, and the layout of a node's CPUs.
 *
 * Link names are those of nvidia-smi's matrix, from near to far: NV<n> (n NVLinks), PIX (one PCIe
 * switch), PXB (several switches), PHB (a host bridge), NODE (one NUMA node), SYS (between NUMA
 * nodes). One NVLink scores above the nearest PCIe path, and two score twice as much.
 *
 * The CPU layout uses the kernel's list form because it is short: 384 CPUs stay far below 4 KiB,
 * and each node heartbeat sends the annotation to every watcher. Cores have short forms for the two
 * usual ways to number threads; anything else is listed.
 */
#include "lib/model/topology.h"

#include "lib/base/json.h"
#include "lib/base/num.h"

enum { NVLINK_SCORE = 100, NVLINKS_MAX = 999 };

int32_t topology_link_score(const char *link)
{
    static const struct {
        const char *name;
        int32_t score;
    } ways[] = {{"X", INT32_MAX}, {"PIX", 50}, {"PXB", 40}, {"PHB", 30}, {"NODE", 20}, {"SYS", 10}};
    int64_t n;

    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        if (str_eq(link, ways[i].name))
            return ways[i].score;
    if (str_starts(link, "NV") && num_parse_range(link + 2, 1, NVLINKS_MAX, &n, NULL) == 0)
        return (int32_t)(NVLINK_SCORE * n);
    return 0;
}

/* A list of CPUs in a string. */
static int read_set(json *j, struct cpuset *out, struct error *err)
{
    if (!json_str(j))
        return error_set(err, ERROR_INVALID, "must be a string, not %s", json_kind_name(j));
    return cpuset_parse(json_str(j), out, err);
}

/* The groups of one level: no CPU may be in two. */
static int read_level(json *root, const char *field, struct arena *a, struct cpuset **out,
                      size_t *out_len, struct error *err)
{
    json *j = json_get(root, field);
    struct cpuset seen = {{0}};
    size_t n = json_len(j), i = 0;

    if (!json_is_array(j))
        return error_set(err, ERROR_INVALID, "%s: must be an array, not %s", field,
                         json_kind_name(j));
    if (n > TOPOLOGY_GROUPS_MAX)
        return error_set(err, ERROR_INVALID, "%s: more than %d groups", field, TOPOLOGY_GROUPS_MAX);
    *out = arena_new(a, struct cpuset, n);
    for (struct json_iter it = json_iter(j); json_next(&it); i++) {
        struct cpuset *set = &(*out)[i], twice;
        if (read_set(it.value, set, err) < 0)
            return error_wrap(err, "%s[%zu]", field, i);
        twice = *set;
        cpuset_intersect(&twice, &seen);
        if (!cpuset_is_empty(&twice))
            return error_set(err, ERROR_INVALID, "%s[%zu]: CPU %d is there twice", field, i,
                             cpuset_next(&twice, -1));
        cpuset_union(&seen, set);
    }
    *out_len = n;
    return 0;
}

static int read_list(json *root, const char *field, struct cpuset *out, struct error *err)
{
    json *j = json_get(root, field);

    if (!j || json_is_null(j))
        return 0;
    return read_set(j, out, err) < 0 ? error_wrap(err, "%s", field) : 0;
}

/* "smt2:128", "near2:128" */
static int read_counted(const char *text, const char *digits, struct cpu_topology *out,
                        struct error *err)
{
    const char *colon = strchr(digits, ':');
    int64_t threads, cores;

    if (!colon || num_parse(digits, (size_t)(colon - digits), &threads, NULL) < 0 ||
        num_parse(colon + 1, strlen(colon + 1), &cores, NULL) < 0)
        return error_set(err, ERROR_INVALID, "cores: must be like smt2:128: '%.32s'", text);
    if (threads != 1 && threads != 2 && threads != 4 && threads != 8)
        return error_set(err, ERROR_INVALID, "cores: threads must be 1, 2, 4 or 8: '%.32s'", text);
    if (cores < 1 || cores > CPUSET_MAX / threads)
        return error_set(err, ERROR_INVALID, "cores: must be 1 to %d CPUs: '%.32s'", CPUSET_MAX,
                         text);
    out->threads = (uint32_t)threads;
    out->cores = (uint32_t)cores;
    return 0;
}

static uint16_t *no_cores(struct arena *a)
{
    uint16_t *core_of = arena_new(a, uint16_t, CPUSET_MAX);

    for (size_t i = 0; i < CPUSET_MAX; i++)
        core_of[i] = TOPOLOGY_NO_CORE;
    return core_of;
}

static int read_core(struct cpu_topology *out, const char *text, struct error *err)
{
    struct cpuset set;

    if (cpuset_parse(text, &set, err) < 0)
        return -1;
    unsigned threads = cpuset_count(&set);
    if (threads < 1 || threads > TOPOLOGY_THREADS_MAX)
        return error_set(err, ERROR_INVALID, "must have 1 to %d CPUs: '%.32s'",
                         TOPOLOGY_THREADS_MAX, text);
    for (int cpu = -1; (cpu = cpuset_next(&set, cpu)) >= 0;) {
        if (out->core_of[cpu] != TOPOLOGY_NO_CORE)
            return error_set(err, ERROR_INVALID, "CPU %d is there twice", cpu);
        out->core_of[cpu] = (uint16_t)out->cores;
    }
    out->threads = threads > out->threads ? threads : out->threads;
    out->cores++; /* each has a CPU of its own, so there are at most CPUSET_MAX */
    return 0;
}

/* "0-1;2;3,7" */
static int read_listed(const char *text, struct arena *a, struct cpu_topology *out,
                       struct error *err)
{
    AUTO_STRBUF core = {0};

    out->core_of = no_cores(a);
    for (const char *at = text, *end; at; at = end ? end + 1 : NULL) {
        end = strchr(at, ';');
        strbuf_reset(&core);
        strbuf_add(&core, at, end ? (size_t)(end - at) : strlen(at));
        if (read_core(out, strbuf_str(&core), err) < 0)
            return error_wrap(err, "cores[%lu]", (unsigned long)out->cores);
    }
    return 0;
}

static int read_cores(json *root, struct arena *a, struct cpu_topology *out, struct error *err)
{
    const char *text = str_or_empty(json_get_str(root, "cores"));

    if (str_starts(text, "smt")) {
        out->numbering = TOPOLOGY_SPREAD;
        return read_counted(text, text + 3, out, err);
    }
    if (str_starts(text, "near")) {
        out->numbering = TOPOLOGY_NEAR;
        return read_counted(text, text + 4, out, err);
    }
    if (text[0] < '0' || text[0] > '9')
        return error_set(err, ERROR_INVALID, "cores: must be like smt2:128: '%.32s'", text);
    out->numbering = TOPOLOGY_LISTED;
    return read_listed(text, a, out, err);
}

/* A CPU that is in no core; -1: none. */
static int unknown_cpu(const struct cpu_topology *t, const struct cpuset *set)
{
    for (int cpu = -1; (cpu = cpuset_next(set, cpu)) >= 0;)
        if (cpu_topology_core_of(t, (unsigned)cpu) == TOPOLOGY_NO_CORE &&
            (t->numbering != TOPOLOGY_LISTED || !cpuset_has(&t->offline, (unsigned)cpu)))
            return cpu;
    return -1;
}

static int check_numbers(const struct cpu_topology *t, struct error *err)
{
    const struct {
        const char *field;
        const struct cpuset *sets;
        size_t n;
    } all[] = {{"sockets", t->sockets, t->sockets_len},
               {"numa", t->numa, t->numa_len},
               {"l3", t->l3, t->l3_len},
               {"offline", &t->offline, 1},
               {"reserved", &t->reserved, 1}};

    for (size_t f = 0; f < sizeof all / sizeof all[0]; f++)
        for (size_t i = 0; i < all[f].n; i++) {
            int cpu = unknown_cpu(t, &all[f].sets[i]);
            if (cpu < 0)
                continue;
            if (t->numbering == TOPOLOGY_LISTED)
                return error_set(err, ERROR_INVALID, "%s: CPU %d is in no core, and not offline",
                                 all[f].field, cpu);
            return error_set(err, ERROR_INVALID, "%s: CPU %d, but cores says there are %d",
                             all[f].field, cpu, (int)(t->threads * t->cores));
        }
    return 0;
}

/* Present only where containers are not pinned. */
static int read_closed(json *root, struct arena *a, const char **out, struct error *err)
{
    json *j = json_get(root, "closed");
    const char *text = json_str(j);

    if (!j || json_is_null(j))
        return 0;
    if (!text || text[0] == '\0' || strlen(text) > TOPOLOGY_CLOSED_MAX)
        return error_set(err, ERROR_INVALID, "closed: must be a text of 1 to %d bytes",
                         TOPOLOGY_CLOSED_MAX);
    *out = arena_strdup(a, text);
    return 0;
}

static int read_topology(json *root, struct arena *a, struct cpu_topology *out, struct error *err)
{
    int64_t version;

    if (!json_is_object(root))
        return error_set(err, ERROR_INVALID, "must be an object, not %s", json_kind_name(root));
    if (!json_get_int(root, "v", &version) || version != 1)
        return error_set(err, ERROR_INVALID, "v: only version 1 is known");
    if (read_level(root, "sockets", a, &out->sockets, &out->sockets_len, err) < 0 ||
        read_level(root, "numa", a, &out->numa, &out->numa_len, err) < 0 ||
        read_level(root, "l3", a, &out->l3, &out->l3_len, err) < 0 ||
        read_cores(root, a, out, err) < 0 || read_list(root, "offline", &out->offline, err) < 0 ||
        read_list(root, "reserved", &out->reserved, err) < 0 ||
        read_closed(root, a, &out->closed, err) < 0)
        return -1;
    return check_numbers(out, err);
}

int cpu_topology_decode(const char *text, size_t n, struct arena *a, struct cpu_topology *out,
                        struct error *err)
{
    struct cpu_topology t = {0};
    AUTO_JSON *doc = NULL;

    *out = t;
    if (n > TOPOLOGY_BYTES_MAX)
        return error_set(err, ERROR_INVALID, "cpu topology: longer than %d bytes",
                         TOPOLOGY_BYTES_MAX);
    if (json_parse(&doc, text, n, err) < 0 || read_topology(json_root(doc), a, &t, err) < 0)
        return error_wrap(err, "cpu topology");
    *out = t;
    return 0;
}

static void write_set(struct json_writer *w, const struct cpuset *s)
{
    AUTO_STRBUF text = {0};

    cpuset_print(s, &text);
    json_put_str(w, strbuf_str(&text));
}

static void write_level(struct json_writer *w, const char *field, const struct cpuset *sets,
                        size_t n)
{
    json_key(w, field);
    json_array_begin(w);
    for (size_t i = 0; i < n; i++)
        write_set(w, &sets[i]);
    json_array_end(w);
}

static void print_cores(const struct cpu_topology *t, struct strbuf *out)
{
    struct arena a;

    if (t->numbering != TOPOLOGY_LISTED) {
        strbuf_addf(out, "%s%lu:%lu", t->numbering == TOPOLOGY_NEAR ? "near" : "smt",
                    (unsigned long)t->threads, (unsigned long)t->cores);
        return;
    }
    arena_init(&a, 0);
    const struct cpuset *cores = cpu_topology_cores(t, &a);
    for (uint32_t c = 0; c < t->cores; c++) {
        if (c > 0)
            strbuf_addc(out, ';');
        cpuset_print(&cores[c], out);
    }
    arena_deinit(&a);
}

void cpu_topology_encode(const struct cpu_topology *t, struct strbuf *out)
{
    struct json_writer w;
    AUTO_STRBUF cores = {0};

    json_writer_init(&w, out);
    json_object_begin(&w);
    json_kv_int(&w, "v", 1);
    write_level(&w, "sockets", t->sockets, t->sockets_len);
    write_level(&w, "numa", t->numa, t->numa_len);
    write_level(&w, "l3", t->l3, t->l3_len);
    print_cores(t, &cores);
    json_kv_str(&w, "cores", strbuf_str(&cores));
    json_key(&w, "offline");
    write_set(&w, &t->offline);
    json_key(&w, "reserved");
    write_set(&w, &t->reserved);
    if (t->closed)
        json_kv_str(&w, "closed", t->closed);
    json_object_end(&w);
}

uint32_t cpu_topology_core_of(const struct cpu_topology *t, unsigned cpu)
{
    if (t->numbering == TOPOLOGY_LISTED)
        return cpu < CPUSET_MAX ? t->core_of[cpu] : TOPOLOGY_NO_CORE;
    if (cpu >= t->threads * t->cores)
        return TOPOLOGY_NO_CORE;
    return t->numbering == TOPOLOGY_NEAR ? cpu / t->threads : cpu % t->cores;
}

struct cpuset *cpu_topology_cores(const struct cpu_topology *t, struct arena *a)
{
    struct cpuset *cores = arena_new(a, struct cpuset, t->cores);

    for (unsigned cpu = 0; cpu < CPUSET_MAX; cpu++) {
        uint32_t core = cpu_topology_core_of(t, cpu);
        if (core < t->cores)
            cpuset_add(&cores[core], cpu);
    }
    return cores;
}

/* Whether the form puts any two known CPUs into one core exactly when core_of does. */
static bool says_the_same(const struct cpu_topology *form, const uint16_t *core_of)
{
    uint16_t theirs[CPUSET_MAX], ours[CPUSET_MAX];

    for (size_t i = 0; i < CPUSET_MAX; i++)
        theirs[i] = ours[i] = TOPOLOGY_NO_CORE;
    for (unsigned cpu = 0; cpu < CPUSET_MAX; cpu++) {
        uint32_t core = cpu_topology_core_of(form, cpu);
        if (core_of[cpu] == TOPOLOGY_NO_CORE)
            continue;
        if (core == TOPOLOGY_NO_CORE)
            return false;
        if (ours[core] == TOPOLOGY_NO_CORE && theirs[core_of[cpu]] == TOPOLOGY_NO_CORE) {
            ours[core] = core_of[cpu];
            theirs[core_of[cpu]] = (uint16_t)core;
        }
        if (ours[core] != core_of[cpu] || theirs[core_of[cpu]] != core)
            return false;
    }
    return true;
}

static bool fits_form(struct cpu_topology *t, const uint16_t *core_of, unsigned cpus)
{
    static const enum topology_numbering forms[] = {TOPOLOGY_SPREAD, TOPOLOGY_NEAR};

    if (t->threads == 0 || (t->threads & (t->threads - 1)) != 0 || cpus % t->threads != 0)
        return false;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        t->numbering = forms[i];
        t->cores = cpus / t->threads;
        if (says_the_same(t, core_of))
            return true;
    }
    return false;
}

bool cpu_topology_number(struct cpu_topology *t, const uint16_t *core_of, struct arena *a)
{
    uint16_t number[CPUSET_MAX], size[CPUSET_MAX] = {0};
    struct cpuset known = {{0}}, all;

    t->core_of = no_cores(a);
    t->threads = t->cores = 0;
    for (size_t i = 0; i < CPUSET_MAX; i++)
        number[i] = TOPOLOGY_NO_CORE;
    for (unsigned cpu = 0; cpu < CPUSET_MAX; cpu++) {
        uint16_t theirs = core_of[cpu];
        if (theirs >= CPUSET_MAX)
            continue;
        if (number[theirs] == TOPOLOGY_NO_CORE)
            number[theirs] = (uint16_t)t->cores++;
        t->core_of[cpu] = number[theirs];
        if (++size[theirs] > t->threads)
            t->threads = size[theirs];
        cpuset_add(&known, cpu);
    }
    if (cpuset_is_empty(&known) || t->threads > TOPOLOGY_THREADS_MAX)
        return false;
    all = known;
    cpuset_union(&all, &t->offline);
    unsigned cpus = cpuset_count(&all);
    struct cpu_topology form = *t;
    /* The counted forms cover the CPUs 0 to N-1. */
    if (cpuset_next(&all, (int)cpus - 1) < 0 && fits_form(&form, t->core_of, cpus)) {
        form.core_of = NULL;
        *t = form;
        return true;
    }
    t->numbering = TOPOLOGY_LISTED;
    return true;
}
