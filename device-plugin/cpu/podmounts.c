// SPDX-License-Identifier: Apache-2.0
/*
 * podmounts - a cgroup's name is the container's id, and the pod's status maps ids to containers
 * only a second after the start. But the kubelet mounts its termination message file into every
 * container, and the file's host path names the container:
 *
 *   174 159 254:0 /var/lib/kubelet/pods/<UID>/containers/<NAME>/<8 digits> /dev/termination-log
 *   rw,relatime - ext4 /dev/vda rw
 *
 * The fourth field is a path in the mounted file system, which may begin anywhere above the uid.
 * The mounts exist before the container's program runs, with every runtime that uses the host's
 * kernel; a sandbox has none. A user can imitate such a line with a volume, but only confuse the
 * containers of their own pod.
 */
#include "device-plugin/cpu/podmounts.h"

#include <string.h>

enum { ROOT_FIELD = 3, POINT_FIELD = 4, DIGITS = 8 };

/* The field's start and length; NULL: the line has fewer. */
static const char *field(const char *line, size_t n, unsigned number, size_t *len)
{
    for (;; number--) {
        const char *space = memchr(line, ' ', n);
        *len = space != NULL ? (size_t)(space - line) : n;
        if (number == 0)
            return line;
        if (space == NULL)
            return NULL;
        n -= *len + 1;
        line = space + 1;
    }
}

static bool take(const char **at, size_t *n, const char *what)
{
    size_t len = strlen(what);
    if (*n < len || memcmp(*at, what, len) != 0)
        return false;
    *at += len;
    *n -= len;
    return true;
}

static bool take_name(const char *at, size_t n, const char *uid, char out[PODMOUNTS_NAME_SIZE])
{
    if (!take(&at, &n, uid) || !take(&at, &n, "/containers/"))
        return false;
    const char *slash = memchr(at, '/', n);
    if (slash == NULL || slash == at || slash - at >= PODMOUNTS_NAME_SIZE ||
        n - (size_t)(slash - at) - 1 != DIGITS)
        return false;
    for (const char *digit = slash + 1; digit < at + n; digit++)
        if (!((*digit >= '0' && *digit <= '9') || (*digit >= 'a' && *digit <= 'f')))
            return false;
    memcpy(out, at, (size_t)(slash - at));
    out[slash - at] = '\0';
    return true;
}

static bool parse_line(const char *line, size_t n, const char *uid, char out[PODMOUNTS_NAME_SIZE])
{
    size_t len;
    const char *root = field(line, n, ROOT_FIELD, &len);
    if (root == NULL)
        return false;
    for (const char *slash = root;
         (slash = memchr(slash, '/', len - (size_t)(slash - root))) != NULL;) {
        slash++;
        if (take_name(slash, len - (size_t)(slash - root), uid, out))
            return true;
    }
    return false;
}

bool podmounts_parse(const char *text, size_t n, const char *uid, char out[PODMOUNTS_NAME_SIZE])
{
    out[0] = '\0';
    for (size_t at = 0; at < n && uid[0] != '\0';) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t len = end != NULL ? (size_t)(end - (text + at)) : n - at;
        if (parse_line(text + at, len, uid, out))
            return true;
        at += len + 1;
    }
    return false;
}

bool podmounts_at(const char *text, size_t n, const char *at, char out[PODMOUNTS_NAME_SIZE])
{
    bool found = false;
    out[0] = '\0';
    for (size_t i = 0, len; i < n; i += len + 1) {
        const char *end = memchr(text + i, '\n', n - i);
        size_t root_len, point_len;
        len = end != NULL ? (size_t)(end - (text + i)) : n - i;
        const char *root = field(text + i, len, ROOT_FIELD, &root_len);
        const char *point = field(text + i, len, POINT_FIELD, &point_len);
        if (point == NULL || point_len != strlen(at) || memcmp(point, at, point_len) != 0)
            continue;
        const char *slash = memrchr(root, '/', root_len);
        const char *name = slash != NULL ? slash + 1 : root;
        size_t name_len = root_len - (size_t)(name - root);
        found = name_len > 0 && name_len < PODMOUNTS_NAME_SIZE;
        memcpy(out, name, found ? name_len : 0);
        out[found ? name_len : 0] = '\0';
    }
    return found;
}
