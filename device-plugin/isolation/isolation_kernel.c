// SPDX-License-Identifier: Apache-2.0
/*
 * dmem.capacity, in the root group, lists the memories that drivers have registered, by PCI
 * address. If all cards of the node are listed, the kernel itself counts what each group uses of
 * them and refuses more than dmem.max, whatever the program is linked with.
 *
 *   before a start   the pod's group gets what the pod was granted of each card. The kubelet has
 *                    created that group and asks us before it starts a container, so the container
 *                    never runs without a limit; if the limit cannot be set it does not start
 *   kept             each container's own group gets the container's share once the pod's status
 *                    names it; until then containers of one pod can take from each other, never
 *                    from another pod. Checked periodically: other writers' changes are reverted
 *
 * A value is written only if it differs, and then read back: the kernel's value counts.
 */
#include "device-plugin/isolation/isolation_kernel.h"

#include <dirent.h>
#include <string.h>

#include "device-plugin/cpu/cgroups.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/grant.h"
#include "lib/model/names.h"

#define CAPACITY "dmem.capacity"
#define MAX "dmem.max"

/* The next line's name and the rest of the line. false: no more lines. */
static bool next_line(const char **at, const char **name, size_t *name_len, const char **value,
                      size_t *value_len)
{
    while (**at != '\0') {
        const char *line = *at;
        size_t len = strcspn(line, "\n");
        const char *space = memchr(line, ' ', len);
        *at = line + len + (line[len] == '\n');
        if (space == NULL)
            continue;
        *name = line;
        *name_len = (size_t)(space - line);
        *value = space + 1;
        *value_len = len - *name_len - 1;
        return true;
    }
    return false;
}

/* Is part one of name's components between slashes, ignoring case? */
static bool has_part(const char *name, size_t n, const char *part)
{
    size_t len = strlen(part);
    for (size_t at = 0; len > 0 && at + len <= n; at++)
        if ((at == 0 || name[at - 1] == '/') && (at + len == n || name[at + len] == '/') &&
            strncasecmp(name + at, part, len) == 0)
            return true;
    return false;
}

bool isolation_kernel_region(const char *text, const char *pci, char region[ISOLATION_REGION_SIZE],
                             int64_t *bytes)
{
    const char *name, *value;
    size_t name_len, value_len;
    int64_t n;
    *bytes = 0;
    while (next_line(&text, &name, &name_len, &value, &value_len))
        if (name_len < ISOLATION_REGION_SIZE && has_part(name, name_len, pci) &&
            num_parse(value, value_len, &n, NULL) == 0 && n > *bytes) {
            memcpy(region, name, name_len);
            region[name_len] = '\0';
            *bytes = n;
        }
    return *bytes > 0;
}

/* The region's limit in dmem.max; INT64_MAX: none. */
static int64_t limit_in(const char *text, const char *region)
{
    const char *name, *value;
    size_t name_len, value_len;
    int64_t n;
    while (next_line(&text, &name, &name_len, &value, &value_len))
        if (name_len == strlen(region) && memcmp(name, region, name_len) == 0)
            return num_parse(value, value_len, &n, NULL) == 0 ? n : INT64_MAX;
    return INT64_MAX;
}

static int open_groups(const struct isolation_config *c, struct cgroups *g, struct strbuf *capacity,
                       struct error *err)
{
    if (c->cgroup_mount == NULL)
        return error_set(err, ERROR_UNAVAILABLE, "it is not known where cgroups are");
    if (cgroups_open(g, c->cgroup_mount, c->cgroup_root, err) < 0)
        return -1;
    if (!g->v2)
        return error_set(err, ERROR_UNAVAILABLE, "%s is cgroup v1, which has no dmem",
                         c->cgroup_mount);
    if (cgroups_text(g, "", CAPACITY, capacity, NULL) < 0)
        return error_set(err, ERROR_UNAVAILABLE,
                         "there is no %s/" CAPACITY ": the kernel (6.14 or later) has no dmem",
                         c->cgroup_mount);
    return 0;
}

static int hold(const struct cgroups *g, const char *path, const char *region, int64_t bytes,
                struct error *err)
{
    AUTO_STRBUF text;
    char line[ISOLATION_REGION_SIZE + 32];
    strbuf_init(&text);
    if (cgroups_text(g, path, MAX, &text, NULL) < 0) {
        if (cgroups_enable(g, path, "dmem", err) < 0 || cgroups_text(g, path, MAX, &text, err) < 0)
            return -1;
    }
    if (limit_in(strbuf_str(&text), region) == bytes)
        return 0;
    (void)str_format(line, sizeof line, "%s %lld\n", region, (long long)bytes);
    strbuf_reset(&text);
    if (cgroups_put(g, path, MAX, line, err) < 0 || cgroups_text(g, path, MAX, &text, err) < 0)
        return -1;
    if (limit_in(strbuf_str(&text), region) == bytes)
        return 0;
    return error_set(err, ERROR_CONFLICT, "%s: " MAX " does not hold what was written", path);
}

int isolation_kernel_check(const struct isolation_config *c, const struct gpu_inventory *inv,
                           struct error *err)
{
    struct cgroups g;
    char region[ISOLATION_REGION_SIZE];
    int64_t bytes;
    AUTO_STRBUF capacity;
    strbuf_init(&capacity);
    if (open_groups(c, &g, &capacity, err) < 0)
        return -1;
    for (size_t i = 0; i < inv->cards_len; i++)
        if (!isolation_kernel_region(strbuf_str(&capacity), str_or_empty(inv->cards[i].pci), region,
                                     &bytes))
            return error_set(err, ERROR_UNAVAILABLE,
                             "%s/" CAPACITY " does not list card %d (%s): its driver does not "
                             "register its memory with the kernel",
                             c->cgroup_mount, inv->cards[i].index, str_or_empty(inv->cards[i].pci));
    return inv->cards_len > 0 ? 0 : error_set(err, ERROR_UNAVAILABLE, "there are no cards");
}

/* The pod's grant on the card. On a single card it also covers init containers, which have no
 * shares of their own. */
static int64_t pod_gib(const struct pod *p, const struct grant *grant, int32_t card)
{
    int64_t gib = grant_card_gib(grant, card);
    return gib > 0 && gib == grant_total_gib(grant)
               ? num_max(gib, resources_get(&p->request, NAME_RES_GPU_MEM, NULL))
               : gib;
}

/* container -1: the pod's group. */
static int hold_all(const struct cgroups *g, const char *path, const char *capacity,
                    const struct gpu_inventory *inv, const struct pod *p, const struct grant *grant,
                    int64_t container, struct error *err)
{
    char region[ISOLATION_REGION_SIZE];
    int64_t bytes;
    for (size_t i = 0; i < inv->cards_len; i++) {
        int32_t card = inv->cards[i].index;
        int64_t gib = container < 0 ? pod_gib(p, grant, card) : 0;
        for (size_t k = 0; container >= 0 && k < grant->shares_len; k++)
            if (grant->shares[k].container == (uint32_t)container && grant->shares[k].card == card)
                gib = num_add_sat(gib, grant->shares[k].gib);
        if (gib == 0)
            continue;
        if (!isolation_kernel_region(capacity, str_or_empty(inv->cards[i].pci), region, &bytes))
            return error_set(err, ERROR_UNAVAILABLE, CAPACITY " does not list card %d", card);
        if (hold(g, path, region, gib << 30, err) < 0)
            return -1;
    }
    return 0;
}

int isolation_kernel_start(const struct isolation_config *c, const struct gpu_inventory *inv,
                           const struct pod *p, const struct grant *grant, struct error *err)
{
    struct cgroups g;
    char path[CGROUPS_PATH_SIZE];
    AUTO_STRBUF capacity;
    strbuf_init(&capacity);
    if (open_groups(c, &g, &capacity, err) < 0)
        return error_wrap(err, "limit of GPU memory");
    if (!cgroups_find_pod(&g, p->uid, path))
        return error_set(err, ERROR_NOT_FOUND,
                         "limit of GPU memory: the pod's cgroup is not found below %s",
                         c->cgroup_mount);
    if (hold_all(&g, path, strbuf_str(&capacity), inv, p, grant, -1, err) < 0)
        return error_wrap(err, "limit of GPU memory");
    return 0;
}

static int64_t container_of(const struct pod *p, const char *id)
{
    for (size_t i = 0; i < pod_container_count(p); i++)
        if (str_eq(cgroups_path_id(pod_container(p, i)->id), id))
            return (int64_t)i;
    return -1;
}

int isolation_kernel_keep(const struct isolation_config *c, const struct gpu_inventory *inv,
                          const struct pod *p, const struct grant *grant, struct error *err)
{
    struct cgroups g;
    char path[CGROUPS_PATH_SIZE], full[CGROUPS_PATH_SIZE], id[CGROUPS_ID_SIZE];
    int result = 0;
    AUTO_STRBUF capacity;
    strbuf_init(&capacity);
    if (open_groups(c, &g, &capacity, err) < 0)
        return error_wrap(err, "limit of GPU memory");
    if (!cgroups_find_pod(&g, p->uid, path)) /* not started, or ended */
        return 0;
    if (hold_all(&g, path, strbuf_str(&capacity), inv, p, grant, -1, err) < 0)
        result = -1;
    DIR *d = result == 0 && cgroups_full(&g, path, NULL, full) ? opendir(full) : NULL;
    for (struct dirent *e; result == 0 && d != NULL && (e = readdir(d)) != NULL;) {
        if (!cgroups_path_container(e->d_name, id) || container_of(p, id) < 0 ||
            !str_format(full, sizeof full, "%s/%s", path, e->d_name))
            continue;
        result = hold_all(&g, full, strbuf_str(&capacity), inv, p, grant, container_of(p, id), err);
    }
    if (d != NULL)
        closedir(d);
    /* A group that disappears meanwhile needs no limit. */
    return result == 0 || (err != NULL && err->code == ERROR_NOT_FOUND)
               ? 0
               : error_wrap(err, "limit of GPU memory");
}
