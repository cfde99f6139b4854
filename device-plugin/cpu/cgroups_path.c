// SPDX-License-Identifier: Apache-2.0
/*
 * cgroups_path - the paths:
 *
 *   cgroupfs   kubepods[/burstable|/besteffort]/pod<UID>/<ID>
 *   systemd    kubepods.slice[/kubepods-<class>.slice]/
 *              kubepods[-<class>]-pod<UID>.slice/<runtime>-<ID>.scope
 *
 * Guaranteed pods are directly below kubepods. A slice's name repeats those of all slices above it;
 * within each part '-' becomes '_', since '-' separates the parts. The runtime's prefix is
 * cri-containerd, crio or docker; CRI-O also uses it with cgroupfs. crio-conmon-<ID> is not the
 * container but its monitor.
 */
#include "device-plugin/cpu/cgroups_path.h"

#include <string.h>

#include "lib/base/str.h"

enum { PARTS_MAX = 32, ID_MIN = 12 };

struct parts {
    const char *start[PARTS_MAX];
    size_t len[PARTS_MAX];
    size_t n;
};

static bool add(struct parts *p, const char *s, size_t len)
{
    if (p->n == PARTS_MAX)
        return false;
    p->start[p->n] = s;
    p->len[p->n++] = len;
    return true;
}

static bool split(struct parts *p, unsigned place, const char *root)
{
    static const char *const classes[] = {NULL, "burstable", "besteffort"};
    const char *class = classes[place % 3];
    for (const char *at = str_or_empty(root); *at != '\0';) {
        size_t len = strcspn(at, "/");
        if (len > 0 && !add(p, at, len))
            return false;
        at += len + (at[len] == '/');
    }
    return add(p, "kubepods", strlen("kubepods")) &&
           (class == NULL || add(p, class, strlen(class)));
}

static bool put(char *out, size_t *at, const char *s, size_t n, bool escaped)
{
    if (*at + n >= CGROUPS_PATH_SIZE)
        return false;
    for (size_t i = 0; i < n; i++)
        out[(*at)++] = escaped && s[i] == '-' ? '_' : s[i];
    out[*at] = '\0';
    return true;
}

static bool join(const struct parts *p, bool systemd, char *out)
{
    size_t at = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (i > 0 && !put(out, &at, "/", 1, false))
            return false;
        for (size_t k = systemd ? 0 : i; k <= i; k++)
            if ((systemd && k > 0 && !put(out, &at, "-", 1, false)) ||
                !put(out, &at, p->start[k], p->len[k], systemd))
                return false;
        if (systemd && !put(out, &at, ".slice", strlen(".slice"), false))
            return false;
    }
    return true;
}

bool cgroups_path_class(unsigned place, const char *root, char out[CGROUPS_PATH_SIZE])
{
    struct parts p = {.n = 0};
    return split(&p, place, root) && join(&p, place >= 3, out);
}

bool cgroups_path_pod(unsigned place, const char *root, const char *uid,
                      char out[CGROUPS_PATH_SIZE])
{
    struct parts p = {.n = 0};
    char pod[CGROUPS_PATH_SIZE];
    return split(&p, place, root) && str_format(pod, sizeof pod, "pod%s", uid) &&
           add(&p, pod, strlen(pod)) && join(&p, place >= 3, out);
}

static bool is_hex(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!((s[i] >= '0' && s[i] <= '9') || (s[i] >= 'a' && s[i] <= 'f')))
            return false;
    return n >= ID_MIN;
}

bool cgroups_path_container(const char *name, char id[CGROUPS_ID_SIZE])
{
    static const char *const prefixes[] = {"cri-containerd-", "crio-", "docker-", "libpod-", ""};
    static const char scope[] = ".scope";
    size_t n = strlen(name);
    if (n > sizeof scope - 1 && str_eq(name + n - (sizeof scope - 1), scope))
        n -= sizeof scope - 1;
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        size_t skip = strlen(prefixes[i]);
        if (!str_starts(name, prefixes[i]) || n < skip || !is_hex(name + skip, n - skip) ||
            n - skip >= CGROUPS_ID_SIZE)
            continue;
        memcpy(id, name + skip, n - skip);
        id[n - skip] = '\0';
        return true;
    }
    return false;
}

const char *cgroups_path_id(const char *status_id)
{
    const char *mark = status_id != NULL ? strstr(status_id, "://") : NULL;
    return mark != NULL ? mark + 3 : "";
}
