// SPDX-License-Identifier: Apache-2.0
#include "test/unit/device-plugin/plugin.h"

#include <dirent.h>

#include "device-plugin/kubelet/rpc.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"

static const char *const one[] = {"c0", NULL};

static void ignore(void *arg, const char *line, size_t n)
{
    (void)arg;
    if (getenv("SHOW_LOG") != NULL)
        (void)!write(2, line, n);
}

static int get_pod(void *arg, const char *ns, const char *name, int64_t timeout_ms,
                   struct pod **out, struct error *err)
{
    struct plugin_fixture *f = arg;
    (void)ns;
    f->gets++;
    if (timeout_ms <= 0 || timeout_ms > SERVICE_GET_MS)
        return error_set(err, ERROR_INTERNAL, "%lld ms", (long long)timeout_ms);
    if (f->remote_error != ERROR_NONE)
        return error_set(err, (enum error_code)f->remote_error, "the API server is away");
    if (!str_eq(name, f->remote_name))
        return error_set(err, ERROR_NOT_FOUND, "no such pod");
    *out = cards_pod(f->remote_name, f->remote_containers, f->remote_annotations);
    if (f->meanwhile != NULL)
        f->meanwhile(f);
    return 0;
}

static void on_starting(void *arg, const char *ns, const char *name, const struct pod *pod,
                        bool placed)
{
    struct plugin_fixture *f = arg;
    (void)ns, (void)name, (void)pod, (void)placed;
    f->starting++;
}

static void on_record(void *arg, const struct pod *pod, const struct grant *grant,
                      const struct gpu_inventory *inv)
{
    struct plugin_fixture *f = arg;
    AUTO_STRBUF patch;
    strbuf_init(&patch);
    publish_grant_patch(pod, grant, inv, &patch);
    (void)str_format(f->record, sizeof f->record, "%s", strbuf_str(&patch));
    f->records++;
}

static void on_refused(void *arg, const struct pod *pod, const char *why)
{
    struct plugin_fixture *f = arg;
    (void)pod;
    (void)str_format(f->refusal, sizeof f->refusal, "%s", why);
    f->refused++;
}

static void on_unheld(void *arg, const struct pod *pod, const char *why)
{
    struct plugin_fixture *f = arg;
    (void)pod, (void)why;
    f->unheld++;
}

static void on_changed(void *arg)
{
    struct plugin_fixture *f = arg;
    f->changes++;
}

static void on_publish(void *arg, const struct publish_wanted *w)
{
    struct plugin_fixture *f = arg;
    (void)str_format(f->inventory, sizeof f->inventory, "%s", w->inventory);
    f->gpu_count = w->gpu_count;
}

static void on_event(void *arg, bool warning, const char *reason, const char *message)
{
    struct plugin_fixture *f = arg;
    (void)warning;
    (void)str_format(f->reason, sizeof f->reason, "%s", reason);
    (void)str_format(f->message, sizeof f->message, "%s", message);
}

static void on_ready(void *arg, bool cards, bool mode, bool registered)
{
    struct plugin_fixture *f = arg;
    f->ready = cards && mode && registered;
}

void plugin_start(struct plugin_fixture *f)
{
    struct error err = ERROR_INIT;
    char checkpoint[256];
    assert_true(str_format(checkpoint, sizeof checkpoint, "%s/kubelet_internal_checkpoint",
                           kubelet_plugin_dir(f->kubelet)));
    struct service_hooks hooks = {.get_pod = get_pod,
                                  .starting = on_starting,
                                  .record = on_record,
                                  .refused = on_refused,
                                  .unheld = on_unheld,
                                  .changed = on_changed,
                                  .pods = &f->pods,
                                  .checkpoint = checkpoint,
                                  .arg = f};
    podcache_init(&f->pods);
    if (service_new(&f->service, kubelet_pod_resources(f->kubelet), &hooks, &err) < 0)
        fail_msg("%s", err.text);
    f->config.service = f->service;
    if (agent_new(&f->agent, &f->config, &err) < 0)
        fail_msg("%s", err.text);
    agent_cards(f->agent, &f->cards);
}

void plugin_stop(struct plugin_fixture *f)
{
    agent_free(f->agent);
    service_free(f->service);
    podcache_deinit(&f->pods);
    f->agent = NULL;
    f->service = NULL;
}

int plugin_setup(void **state)
{
    struct plugin_fixture *f = calloc(1, sizeof *f);
    struct error err = ERROR_INIT;
    scratch_folder(f->dir, "agent");
    assert_true(str_format(f->state_dir, sizeof f->state_dir, "%s/state", f->dir));
    arena_init(&f->arena, 0);
    cards_make(&f->cards, &f->arena, (const int64_t[]){16160, 16160, 0});
    log_set_sink(ignore, NULL);
    rpc_init();
    f->kubelet = kubelet_new(f->dir);
    kubelet_start(f->kubelet);
    assert_int_equal(0, loop_new(&f->loop, &err));
    f->config = (struct agent_config){.loop = f->loop,
                                      .plugin_dir = kubelet_plugin_dir(f->kubelet),
                                      .state_dir = f->state_dir,
                                      .isolation = {.none = true,
                                                    .mps_pipe = f->dir,
                                                    .mps_shm = f->dir,
                                                    .cgpu_dir = "/nonexistent"},
                                      .exclusive = true,
                                      .publish = on_publish,
                                      .event = on_event,
                                      .ready = on_ready,
                                      .arg = f};
    plugin_start(f);
    *state = f;
    return 0;
}

int plugin_teardown(void **state)
{
    struct plugin_fixture *f = *state;
    char path[160];
    plugin_stop(f);
    kubelet_free(f->kubelet);
    loop_free(f->loop);
    rpc_shutdown();
    metrics_reset();
    log_set_sink(NULL, NULL);
    static const char *const files[] = {"mode.json", "pods.json", "pods.json.new"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        (void)str_format(path, sizeof path, "%s/%s", f->state_dir, files[i]);
        unlink(path);
    }
    rmdir(f->state_dir);
    assert_int_equal(0, rmdir(f->dir));
    arena_deinit(&f->arena);
    free(f);
    return 0;
}

void plugin_node(struct plugin_fixture *f, const char *labels, const char *allocatable)
{
    struct node *n = cards_node(labels, allocatable);
    agent_node(f->agent, n);
    node_free(n);
}

void plugin_arrive(struct plugin_fixture *f, const char *name, const char *containers,
                   const char *annotations)
{
    podcache_put(&f->pods, cards_pod(name, containers, annotations));
    kubelet_add_pod(f->kubelet, "default", name, one);
}

void plugin_remote(struct plugin_fixture *f, const char *name, const char *containers,
                   const char *annotations)
{
    f->remote_name = name;
    f->remote_containers = containers;
    f->remote_annotations = annotations;
    f->remote_error =
        ERROR_NONE; /* written last and read first: hands the others to the transport's threads */
}

const char *plugin_allocate(struct plugin_fixture *f, const char *resource, size_t count,
                            struct kubelet_answer *env, struct error *err)
{
    struct kubelet_ids available, chosen;
    kubelet_free_ids(f->kubelet, resource, &available);
    error_clear(err);
    if (kubelet_prefer(f->kubelet, resource, &available, count, &chosen, err) < 0 ||
        kubelet_allocate(f->kubelet, resource, &chosen, env, err) < 0)
        return err->text;
    return kubelet_env(env, "NVIDIA_VISIBLE_DEVICES");
}

int plugin_remove_dir(const char *dir)
{
    DIR *d = opendir(dir);
    if (d == NULL)
        return -1;
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        (void)unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
    return rmdir(dir);
}
