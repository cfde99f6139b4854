// SPDX-License-Identifier: Apache-2.0
/* Paths at which the device plugin mounts the isolation library into a container. A pod's own mount
 * there wins over the plugin's, and the container runs without its limits. One above them, in a
 * volume that another container has too, lets that container remove what is mounted on it. Like the
 * variables in rules_env.c this ignores scheduler and opt-out. Admission policy cosched-gpu-pods
 * (deploy/chart/templates/gpu-pods.yaml) says the same without the webhook. */
#include "lib/base/str.h"
#include "lib/model/names.h"
#include "webhook/rules/rules_internal.h"

const char *const rules_mount_paths[] = {NAME_PATH_PRELOAD, NAME_PATH_LIBRARY, NULL};

/* An empty part in the middle, "." or "..": what it means depends on the container's links. */
static bool is_plain(const char *path)
{
    for (const char *s = path; *s != '\0';) {
        size_t n = strcspn(s, "/");
        if ((n == 0 && s != path) || (n == 1 && s[0] == '.') ||
            (n == 2 && s[0] == '.' && s[1] == '.'))
            return false;
        s += n + (s[n] == '/');
    }
    return true;
}

/* Whether a is b or a directory above it. Both are plain and without slashes at their ends. */
static bool is_above(const char *a, size_t a_len, const char *b, size_t b_len)
{
    return a_len == 0 ||
           (a_len <= b_len && memcmp(a, b, a_len) == 0 && (a_len == b_len || b[a_len] == '/'));
}

bool rules_mount_hides(const char *path)
{
    if (!is_plain(path))
        return true;
    path += *path == '/'; /* the kubelet takes a relative path from the root */
    size_t n = strlen(path);
    n -= n > 0 && path[n - 1] == '/';
    for (size_t i = 0; rules_mount_paths[i]; i++) {
        const char *own = rules_mount_paths[i] + 1;
        size_t own_len = strlen(own);
        if (is_above(path, n, own, own_len) || is_above(own, own_len, path, n))
            return true;
    }
    return false;
}

static bool has_control(const char *path)
{
    for (; *path != '\0'; path++)
        if ((unsigned char)*path < ' ' || *path == '\x7f')
            return true;
    return false;
}

/* A path with a NUL ends there for whoever mounts it, and cannot be read here. */
static void check_path(struct pod_view *l, const char *list, size_t container, const char *field,
                       json *value)
{
    const char *path = json_str(value);
    if (!value || json_is_null(value))
        return;
    if (!path || has_control(path))
        pod_view_refuse(l,
                        "spec.%s[%zu].%s: is no path that can be read, or has a control character; "
                        "write a path of printable characters",
                        list, container, field);
    else if (rules_mount_hides(path))
        pod_view_refuse(l,
                        "spec.%s[%zu].%s: %s hides, or may hide, what the device plugin mounts "
                        "at " NAME_PATH_PRELOAD " and " NAME_PATH_LIBRARY
                        "; write another path, without '//', '.' and '..'",
                        list, container, field, pod_view_quote(l, path));
}

static void check_list(struct pod_view *l, const char *list, size_t container, json *items,
                       const char *field, const char *member)
{
    size_t i = 0;
    for (struct json_iter it = json_iter(items); json_next(&it); i++)
        check_path(l, list, container, arena_printf(l->arena, "%s[%zu].%s", field, i, member),
                   json_get(it.value, member));
}

static void check_container(struct pod_view *l, const char *list, size_t index, json *container)
{
    check_list(l, list, index, json_get(container, "volumeMounts"), "volumeMounts", "mountPath");
    check_list(l, list, index, json_get(container, "volumeDevices"), "volumeDevices", "devicePath");
    check_path(l, list, index, "terminationMessagePath",
               json_get(container, "terminationMessagePath"));
}

void rules_mount_check(struct pod_view *l)
{
    if (l->home || !rules_gpu_asks_ours(l))
        return;
    for (struct pod_view_container c = {0}; pod_view_next_container(l, &c);)
        check_container(l, c.list, c.index, c.value);
}

void rules_mount_debug(struct pod_view *own, size_t index, json *container)
{
    if (!own->home && rules_gpu_asks_ours(own))
        check_container(own, "ephemeralContainers", index, container);
}
