// SPDX-License-Identifier: Apache-2.0
/*
 * podcgroup - parses the kubelet's paths. Each line is "ID:CONTROLLERS:PATH" (cgroup v2:
 * "0::PATH"). All lines of a container name the same pod, so the first that names one is used:
 *
 *   cgroupfs   /kubepods/burstable/pod<UID>/<ID>
 *   systemd    /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<UID, '_' for
 *              '-'>.slice/cri-containerd-<ID>.scope
 *
 * They may be below any root (--cgroup-root), have any runtime's prefix before the id
 * (cri-containerd-, crio-, docker-), and continue with groups made inside the container. A static
 * pod's UID is a hash of 32 digits without '-'. Only components below one that begins with
 * "kubepods" or contains "-kubepods" count: users may name their own group "pod1". A plugin with a
 * cgroup namespace of its own, as container runtimes make them, sees the other pods of its QoS
 * class without that component, "/../../pod<UID>/<ID>", and those of another class as
 * "/../../../besteffort/pod<UID>/<ID>". So a pod or a class that follows ".." directly counts too:
 * were it passed by, a group made inside the container could name another pod.
 */
#include "device-plugin/cpu/podcgroup.h"

#include <string.h>

enum { UID_LONG = 36, UID_HASH = 32, ID_LEN = 64 };

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* Parses a uid, with '-' or '_' as separators, or a hash; writes it with '-'. */
static bool take_uid(const char *s, size_t n, char out[PODCGROUP_UID_SIZE])
{
    if (n != UID_LONG && n != UID_HASH)
        return false;
    for (size_t i = 0; i < n; i++) {
        bool dash = n == UID_LONG && (i == 8 || i == 13 || i == 18 || i == 23);
        if (dash ? s[i] != '-' && s[i] != '_' : !is_hex(s[i]))
            return false;
        out[i] = dash ? '-' : s[i];
    }
    out[n] = '\0';
    return true;
}

static const char *find(const char *s, size_t n, const char *what)
{
    size_t len = strlen(what);
    for (size_t i = 0; i + len <= n; i++)
        if (memcmp(s + i, what, len) == 0)
            return s + i;
    return NULL;
}

static bool is_root(const char *s, size_t n)
{
    return (n >= 8 && memcmp(s, "kubepods", 8) == 0) || find(s, n, "-kubepods") != NULL;
}

static bool is_class(const char *s, size_t n)
{
    return (n == 10 && memcmp(s, "besteffort", 10) == 0) ||
           (n == 9 && memcmp(s, "burstable", 9) == 0);
}

/* "pod<UID>", or "kubepods-burstable-pod<UID>.slice". */
static bool is_pod(const char *s, size_t n, char out[PODCGROUP_UID_SIZE])
{
    static const char slice[] = ".slice";
    if (n > 3 && memcmp(s, "pod", 3) == 0)
        return take_uid(s + 3, n - 3, out);
    if (n <= sizeof slice - 1 || memcmp(s + n - (sizeof slice - 1), slice, sizeof slice - 1) != 0)
        return false;
    n -= sizeof slice - 1;
    const char *mark = find(s, n, "-pod");
    if (mark == NULL)
        return false;
    mark += 4;
    return take_uid(mark, n - (size_t)(mark - s), out);
}

/* "<ID>", or "cri-containerd-<ID>.scope". */
static void take_container(const char *s, size_t n, char out[PODCGROUP_CONTAINER_SIZE])
{
    static const char scope[] = ".scope";
    out[0] = '\0';
    if (n > sizeof scope - 1 && memcmp(s + n - (sizeof scope - 1), scope, sizeof scope - 1) == 0)
        n -= sizeof scope - 1;
    if (n < ID_LEN || (n > ID_LEN && s[n - ID_LEN - 1] != '-'))
        return;
    for (size_t i = n - ID_LEN; i < n; i++)
        if (!is_hex(s[i]))
            return;
    memcpy(out, s + n - ID_LEN, ID_LEN);
    out[ID_LEN] = '\0';
}

static bool parse_path(const char *s, size_t n, struct podcgroup *out)
{
    bool below = false, beside = false, pod = false;
    for (size_t at = 0; at < n;) {
        const char *slash = memchr(s + at, '/', n - at);
        size_t len = slash != NULL ? (size_t)(slash - (s + at)) : n - at;
        if (pod) {
            take_container(s + at, len, out->container);
            return true;
        }
        pod = (below || beside) && is_pod(s + at, len, out->uid);
        below = below || is_root(s + at, len) || (beside && is_class(s + at, len));
        beside = len == 2 && memcmp(s + at, "..", 2) == 0;
        at += len + 1;
    }
    return pod;
}

bool podcgroup_parse(const char *text, size_t n, struct podcgroup *out)
{
    *out = (struct podcgroup){0};
    for (size_t at = 0; at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t len = end != NULL ? (size_t)(end - (text + at)) : n - at;
        const char *line = text + at;
        const char *colon = memchr(line, ':', len);
        const char *path =
            colon != NULL ? memchr(colon + 1, ':', len - (size_t)(colon + 1 - line)) : NULL;
        if (path != NULL && parse_path(path + 1, len - (size_t)(path + 1 - line), out))
            return true;
        at += len + 1;
    }
    *out = (struct podcgroup){0};
    return false;
}
