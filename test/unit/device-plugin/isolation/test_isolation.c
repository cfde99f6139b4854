// SPDX-License-Identifier: Apache-2.0
/* Which engine keeps containers to their share, what it puts into the answer, and the MPS daemon as
 * a child. */
#include "device-plugin/isolation/isolation.h"
#include "device-plugin/isolation/shares.h"
#include "device-plugin/isolation/isolation_kernel.h"
#include "device-plugin/isolation/mpsd.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "test/unit/lib/base/expect.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/loop.h"
#include "lib/base/str.h"
#include "test/unit/device-plugin/cards.h"
#include "test/unit/device-plugin/plugin.h"
#include "test/unit/lib/base/scratch.h"

struct fixture {
    char cgroups[SCRATCH_PATH + 8];
    char dir[SCRATCH_PATH], control[SCRATCH_PATH + sizeof "/control"];
    struct isolation_config config;
    struct arena a;
    struct gpu_inventory inv;
};

static void ignore(void *arg, const char *line, size_t n)
{
    (void)arg, (void)line, (void)n;
}

/* A file of a group; the group is made. */
static void put(const struct fixture *f, const char *group, const char *file, const char *text)
{
    char path[SCRATCH_PATH * 4];
    (void)str_format(path, sizeof path, "mkdir -p '%s/%s'", f->cgroups, group);
    assert_int_equal(0, system(path));
    (void)str_format(path, sizeof path, "%s/%s/%s", f->cgroups, group, file);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    (void)fputs(text, out);
    (void)fclose(out);
}

static const char *got(const struct fixture *f, const char *group, const char *file)
{
    static char text[512];
    char path[SCRATCH_PATH * 4];
    (void)str_format(path, sizeof path, "%s/%s/%s", f->cgroups, group, file);
    FILE *in = fopen(path, "r");
    size_t n = in != NULL ? fread(text, 1, sizeof text - 1, in) : 0;
    text[n] = '\0';
    if (in != NULL)
        (void)fclose(in);
    return in != NULL ? text : "(none)";
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    scratch_folder(f->dir, "iso");
    (void)str_format(f->control, sizeof f->control, "%s/control", f->dir);
    f->config = (struct isolation_config){
        .mps_pipe = f->dir, .mps_shm = "/run/mps/shm", .cgpu_dir = "/nonexistent/cgpu_km"};
    arena_init(&f->a, 0);
    cards_make(&f->inv, &f->a, (const int64_t[]){16160, 16160, 24 * 1024, 0});
    for (size_t i = 0; i < f->inv.cards_len; i++)
        f->inv.cards[i].pci = arena_printf(&f->a, "0000:%02zx:00.0", 0x3b + i);
    (void)str_format(f->cgroups, sizeof f->cgroups, "%s/cgroup", f->dir);
    put(f, "", "cgroup.controllers", "cpuset cpu io memory pids dmem\n");
    put(f, "", "cgroup.subtree_control", "cpuset cpu\n");
    put(f, "", "dmem.capacity",
        "drm/0000:3b:00.0/stolen 67108864\ndrm/0000:3b:00.0/vram0 16944988160\n"
        "drm/0000:3c:00.0/vram0 16944988160\ndrm/0000:3D:00.0/vram0 25769803776\n");
    log_set_sink(ignore, NULL);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[SCRATCH_PATH * 2];
    log_set_sink(NULL, NULL);
    (void)str_format(command, sizeof command, "rm -r '%s'", f->cgroups);
    assert_int_equal(0, system(command));
    assert_int_equal(0, plugin_remove_dir(f->dir));
    arena_deinit(&f->a);
    free(f);
    return 0;
}

static const char *found(struct fixture *f, enum gpu_mode mode, struct error *err)
{
    error_clear(err);
    const struct isolation_engine *e = isolation_find(&f->config, mode, &f->inv, err);
    return e != NULL ? e->name : "(none)";
}

static void engines_by_mode(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    static const struct {
        const char *row;
        enum gpu_mode mode;
        bool none, module;
        const char *engine;
        bool library;
        const char *only;
        bool kernel;
    } rows[] = {
        {"share promises nothing", GPU_MODE_SHARE, false, false, "none", false, NULL, false},
        {"with the module neither", GPU_MODE_SHARE, false, true, "none", false, NULL, false},
        {"cgpu without the module", GPU_MODE_CGPU, false, false, "(none)", false, NULL, false},
        {"cgpu with it", GPU_MODE_CGPU, false, true, "cgpu", false, NULL, false},
        {"core_mem with it", GPU_MODE_CORE_MEM, false, true, "cgpu", false, NULL, false},
        {"core_mem without", GPU_MODE_CORE_MEM, false, false, "(none)", false, NULL, false},
        {"mps is not the module's", GPU_MODE_MPS, false, true, "(none)", false, NULL, false},
        {"accepted explicitly", GPU_MODE_MPS, true, false, "none", false, NULL, false},
        {"explicitly also where there is an engine", GPU_MODE_CGPU, true, true, "none", false, NULL,
         false},
        {"whole cards need none", GPU_MODE_TOPOLOGY, false, true, "(none)", false, NULL, false},
        {"our own library", GPU_MODE_CGPU, false, false, "library", true, NULL, false},
        {"the module comes first", GPU_MODE_CGPU, false, true, "cgpu", true, NULL, false},
        {"unless the library is named", GPU_MODE_CGPU, false, true, "library", true, "library",
         false},
        {"named and not there", GPU_MODE_CGPU, false, true, "(none)", false, "library", false},
        {"the module is named and not there", GPU_MODE_CGPU, false, false, "(none)", true, "cgpu",
         false},
        {"and of time", GPU_MODE_CORE_MEM, false, false, "library", true, NULL, false},
        {"the kernel comes before both", GPU_MODE_CGPU, false, true, "kernel", true, NULL, true},
        {"it knows nothing of time", GPU_MODE_CORE_MEM, false, true, "cgpu", true, NULL, true},
        {"nor of MPS", GPU_MODE_MPS, false, true, "(none)", true, NULL, true},
        {"the module is named", GPU_MODE_CGPU, false, true, "cgpu", true, "cgpu", true},
        {"the library is named", GPU_MODE_CGPU, false, true, "library", true, "library", true},
        {"the kernel is named", GPU_MODE_CGPU, false, true, "kernel", true, "kernel", true},
        {"named and without time", GPU_MODE_CORE_MEM, false, true, "(none)", true, "kernel", true},
        {"named and not there", GPU_MODE_CGPU, false, true, "(none)", true, "kernel", false},
        {"an engine for another mode", GPU_MODE_CGPU, false, true, "(none)", true, "mps", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        f->config.none = rows[i].none;
        f->config.cgpu_dir = rows[i].module ? f->dir : "/nonexistent/cgpu_km";
        f->config.library = rows[i].library ? "/bin/sh" : "/nonexistent/library";
        f->config.shares = f->dir;
        f->config.only = rows[i].only;
        f->config.cgroup_mount = rows[i].kernel ? f->cgroups : "/nonexistent/cgroup";
        expect_str(rows[i].row, rows[i].engine, found(f, rows[i].mode, &err));
    }
    (void)found(f, GPU_MODE_TOPOLOGY, &err);
    expect_str("whole cards are no error", "", err.text);
    (void)found(f, GPU_MODE_CGPU, &err);
    expect_str("an engine for another mode",
               "the one that --isolation names does not serve this mode", err.text);
    f->config.none = false;
    f->config.cgpu_dir = "/nonexistent/cgpu_km";
    f->config.library = "/nonexistent/library";
    f->config.only = NULL;
    (void)found(f, GPU_MODE_CGPU, &err);
    expect_str(
        "the reason names the places",
        "/nonexistent/cgroup: neither cgroup.controllers (v2) nor cpuset (v1) is there; or there is no "
        "/nonexistent/cgpu_km: load the cGPU kernel module; or there is no library "
        "/nonexistent/library: install it",
        err.text);
    expect_done();
}

static void the_daemon_must_answer(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    expect_str("no daemon", "(none)", found(f, GPU_MODE_MPS, &err));
    expect_true("says where and how", strstr(err.text, "does not answer at ") != NULL &&
                                          strstr(err.text, f->dir) != NULL &&
                                          strstr(err.text, "--mps-control=PATH") != NULL);
    FILE *plain = fopen(f->control, "w");
    assert_non_null(plain);
    (void)fclose(plain);
    expect_str("a plain file is none", "(none)", found(f, GPU_MODE_MPS, &err));
    assert_int_equal(0, unlink(f->control));

    assert_int_equal(0, mkfifo(f->control, 0600));
    expect_str("a fifo that nobody reads", "(none)", found(f, GPU_MODE_MPS, &err));
    int reader = open(f->control, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    expect_str("and one that is read", "mps", found(f, GPU_MODE_MPS, &err));
    close(reader);
    assert_int_equal(0, unlink(f->control));

    static const int types[] = {SOCK_SEQPACKET, SOCK_STREAM};
    for (size_t i = 0; i < 2; i++) {
        struct sockaddr_un at = {.sun_family = AF_UNIX};
        (void)str_format(at.sun_path, sizeof at.sun_path, "%s", f->control);
        int fd = socket(AF_UNIX, types[i] | SOCK_CLOEXEC, 0);
        assert_int_equal(0, bind(fd, (const struct sockaddr *)&at, sizeof at));
        expect_str("a socket that nobody listens on", "(none)", found(f, GPU_MODE_MPS, &err));
        assert_int_equal(0, listen(fd, 8));
        expect_str("and one that accepts", "mps", found(f, GPU_MODE_MPS, &err));
        close(fd);
        expect_str("a daemon that has died leaves its socket behind", "(none)",
                   found(f, GPU_MODE_MPS, &err));
        assert_int_equal(0, unlink(f->control));
    }
    expect_done();
}

/* "KEY=VALUE; …; mount HOST:CONTAINER; …; device PATH; …; cdi NAME". */
static const char *print(struct arena *a, const struct response *r)
{
    const char *line = "";
    for (size_t i = 0; i < r->envs_len; i++)
        line = arena_printf(a, "%s%s=%s; ", line, r->envs[i].key, r->envs[i].value);
    for (size_t i = 0; i < r->mounts_len; i++)
        line = arena_printf(a, "%smount %s:%s; ", line, r->mounts[i].host_path,
                            r->mounts[i].container_path);
    for (size_t i = 0; i < r->devices_len; i++)
        line = arena_printf(a, "%sdevice %s; ", line, r->devices[i]);
    for (size_t i = 0; i < r->cdi_len; i++)
        line = arena_printf(a, "%scdi %s; ", line, r->cdi[i]);
    return line;
}

static void what_containers_get(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    struct match_share shares[] = {{.card = 0, .gib = 3}, {.card = 2, .gib = 6}};
    struct match_grant one = {.shares = shares, .shares_len = 1}, two = one, least = one;
    struct match_share little = {.card = 2, .gib = 0, .percent = 5};
    struct response r;
    two.shares_len = 2;
    least.shares = &little;
    assert_int_equal(0, mkfifo(f->control, 0600));
    int reader = open(f->control, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    const struct isolation_engine *mps = isolation_find(&f->config, GPU_MODE_MPS, &f->inv, &err);
    assert_non_null(mps);
    r = (struct response){0};
    mps->dress(&f->config, &f->inv, &one, &f->a, &r);
    expect_str("3 of 15 GiB are 20 % of the threads",
               arena_printf(&f->a,
                            "CUDA_MPS_PIPE_DIRECTORY=%s; CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=3G; "
                            "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=20; mount %s:%s; "
                            "mount /run/mps/shm:/dev/shm; ",
                            f->dir, f->dir, f->dir),
               print(&f->a, &r));
    r = (struct response){0};
    mps->dress(&f->config, &f->inv, &two, &f->a, &r);
    expect_str("cards as the container counts them", "0=3G,1=6G", r.envs[1].value);
    expect_str("the smaller part of both", "20", r.envs[2].value);
    r = (struct response){0};
    mps->dress(&f->config, &f->inv, &least, &f->a, &r);
    expect_str("never nothing", "1", r.envs[2].value);
    close(reader);

    f->config.cgpu_dir = f->dir;
    const struct isolation_engine *cgpu = isolation_find(&f->config, GPU_MODE_CGPU, &f->inv, &err);
    assert_non_null(cgpu);
    r = (struct response){0};
    cgpu->dress(&f->config, &f->inv, &two, &f->a, &r);
    expect_str("the module's variable", "ALIYUN_COM_GPU_VISIBLE_DEVICES=0,2; ", print(&f->a, &r));

    f->config.cgpu_dir = "/nonexistent/cgpu_km";
    f->config.library = "/bin/sh";
    f->config.shares = f->dir;
    const struct isolation_engine *library =
        isolation_find(&f->config, GPU_MODE_CGPU, &f->inv, &err);
    assert_non_null(library);
    f->inv.cards[0].uuid = "GPU-00000000-0000-4000-8000-000000000000";
    struct match_grant unknown_pod = {.shares = shares,
                                      .shares_len = 1,
                                      .partial = true,
                                      .container_gib = 3,
                                      .ids_digest = "0123456789abcdef"};
    r = (struct response){0};
    library->dress(&f->config, &f->inv, &unknown_pod, &f->a, &r);
    expect_str(
        "the folder, its region and the loader's file",
        arena_printf(&f->a,
                     "mount %s/unknown-0123456789abcdef.0:/usr/local/cosched-gpu; "
                     "mount %s/unknown-0123456789abcdef.0/region:/usr/local/cosched-gpu/region; "
                     "mount %s/ld.so.preload:/etc/ld.so.preload; ",
                     f->dir, f->dir, f->dir),
        print(&f->a, &r));
    f->config.regions_apart = true;
    struct response apart = {0};
    library->dress(&f->config, &f->inv, &unknown_pod, &f->a, &apart);
    expect_str("a region in a file system of its own",
               arena_printf(&f->a, "%s/regions/unknown-0123456789abcdef.0", f->dir),
               apart.mounts[1].host_path);
    expect_true("it is made there", apart.share->apart && !r.share->apart);
    f->config.regions_apart = false;
    expect_true("read-only but for the region",
                r.mounts[0].read_only && !r.mounts[1].read_only && r.mounts[2].read_only);
    assert_non_null(r.share);
    expect_true("all of its cards", r.share->complete);
    expect_int("3 GiB", INT64_C(3) << 30, (int64_t)r.share->limits.cards[0].bytes);
    f->inv.cards[0].uuid = "GPU-7";
    r = (struct response){0};
    library->dress(&f->config, &f->inv, &unknown_pod, &f->a, &r);
    expect_int("a card without a uuid", -1, library->prepare(&f->config, r.share, &err));
    expect_str("is refused",
               "isolation of GPU memory: at most 16 cards for a container, each with a uuid",
               err.text);
    r = (struct response){0};
    unknown_pod.ids_digest = NULL;
    library->dress(&f->config, &f->inv, &unknown_pod, &f->a, &r);
    expect_true("no memory, no share", r.share == NULL && r.mounts_len == 0);
    expect_done();
}

static void how_the_runtime_is_told(void **state)
{
    struct fixture *f = *state;
    struct match_share shares[] = {{.card = 0, .gib = 3}, {.card = 2, .gib = 6}};
    size_t visible[] = {1};
    struct match_grant shared = {.shares = shares, .shares_len = 2},
                       whole = {.whole = true, .visible = visible, .visible_len = 1};
    struct response r;
    response_build(&f->inv, GPU_MODE_CGPU, RESPONSE_ENVVAR, &shared, &f->a, &r);
    expect_int("by the environment alone", 0, (int64_t)(r.devices_len + r.cdi_len));
    response_build(&f->inv, GPU_MODE_CGPU, RESPONSE_CDI, &shared, &f->a, &r);
    expect_int("by CDI: each card", 2, (int64_t)r.cdi_len);
    expect_str("by its uuid", "cosched.io/gpu=GPU-c", r.cdi[1]);
    expect_str("with the same environment", "GPU-a,GPU-c", r.envs[0].value);
    response_build(&f->inv, GPU_MODE_TOPOLOGY, RESPONSE_CDI_NVIDIA, &whole, &f->a, &r);
    expect_str("by NVIDIA's names for them",
               "NVIDIA_VISIBLE_DEVICES=GPU-b; cdi nvidia.com/gpu=GPU-b; ", print(&f->a, &r));
    response_build(&f->inv, GPU_MODE_TOPOLOGY, RESPONSE_DEVICE_SPECS, &whole, &f->a, &r);
    expect_str("by files: the card's and the common ones",
               "NVIDIA_VISIBLE_DEVICES=GPU-b; device /dev/nvidia1; device /dev/nvidiactl; "
               "device /dev/nvidia-uvm; device /dev/nvidia-uvm-tools; ",
               print(&f->a, &r));
    AUTO_STRBUF spec;
    strbuf_init(&spec);
    f->inv.cards_len = 1;
    response_cdi_spec(&f->inv, &spec);
    expect_str(
        "the spec",
        "{\"cdiVersion\":\"0.5.0\",\"kind\":\"cosched.io/gpu\",\"devices\":[{\"name\":\"GPU-a\","
        "\"containerEdits\":{\"deviceNodes\":[{\"path\":\"/dev/nvidia0\"}]}}],"
        "\"containerEdits\":{\"deviceNodes\":[{\"path\":\"/dev/nvidiactl\"},"
        "{\"path\":\"/dev/nvidia-uvm\"},{\"path\":\"/dev/nvidia-uvm-tools\"}]}}",
        strbuf_str(&spec));
    expect_done();
}

static void on_changed(void *arg)
{
    (*(int *)arg)++;
}

static void turn(struct loop *loop, struct fixture *f, bool answers)
{
    struct error err = ERROR_INIT;
    for (int i = 0; i < 400 && str_eq(found(f, GPU_MODE_MPS, &err), "mps") != answers; i++)
        loop_once(loop, 25);
    expect_str("the daemon answers, or not", answers ? "mps" : "(none)",
               found(f, GPU_MODE_MPS, &err));
}

static void the_daemon_is_supervised(void **state)
{
    struct fixture *f = *state;
    struct loop *loop;
    struct mpsd *m;
    struct error err = ERROR_INIT;
    char script[128], log_dir[128], pid_file[128];
    int changes = 0;
    long pid = 0;
    (void)str_format(script, sizeof script, "%s/daemon", f->dir);
    (void)str_format(pid_file, sizeof pid_file, "%s/pid", f->dir);
    (void)str_format(log_dir, sizeof log_dir, "%s/log", f->dir);
    FILE *file = fopen(script, "w");
    assert_non_null(file);
    /* A reader of the fifo, as the daemon is; it says where it runs. */
    (void)fprintf(
        file,
        "#!/bin/sh\n[ \"$1\" = -f ] || exit 1\ncd \"$CUDA_MPS_PIPE_DIRECTORY\" || exit 1\n"
        "[ -d \"$CUDA_MPS_LOG_DIRECTORY\" ] || exit 1\n[ -p control ] || /usr/bin/mkfifo control\n"
        "[ \"$CUDA_MPS_PINNED_DEVICE_MEM_LIMIT\" = 0=8G ] || exit 1\n"
        "[ -z \"$CUDA_MPS_ACTIVE_THREAD_PERCENTAGE\" ] || exit 1\n"
        "echo $$ > pid\nexec /bin/sleep 1000 <> control\n");
    (void)fclose(file);
    assert_int_equal(0, chmod(script, 0700));
    assert_int_equal(0, loop_new(&loop, &err));
    assert_int_equal(0, setenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=8G", 1));
    mpsd_new(&m, loop, script, f->dir, log_dir, on_changed, &changes);
    assert_int_equal(0, unsetenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"));
    expect_str("not before it is wanted", "(none)", found(f, GPU_MODE_MPS, &err));
    mpsd_want(m, true);
    turn(loop, f, true);
    file = fopen(pid_file, "r");
    assert_non_null(file);
    assert_int_equal(1, fscanf(file, "%ld", &pid));
    (void)fclose(file);
    int before = changes;
    assert_int_equal(0, kill((pid_t)pid, SIGKILL));
    turn(loop, f, false);
    turn(loop, f, true);
    expect_true("its end and its start are told", changes >= before + 2);
    mpsd_want(m, false);
    expect_str("gone when it is not wanted", "(none)", found(f, GPU_MODE_MPS, &err));
    mpsd_want(m, true);
    turn(loop, f, true);
    mpsd_free(m);
    expect_str("and with us", "(none)", found(f, GPU_MODE_MPS, &err));
    loop_free(loop);
    assert_int_equal(0, rmdir(log_dir));
    expect_done();
}

/* Two Allocates of a container whose pod nobody knows: each says what its own ids are. Before its
 * start all are known. */
static void a_pod_that_is_not_known(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    struct match_grant grant;
    struct response r = {0};
    char library[SCRATCH_PATH * 2], limits[SCRATCH_PATH * 2];
    const char *build = getenv("BUILD_DIR");
    (void)str_format(library, sizeof library, "%s/lib/libcosched-gpu.so",
                     build != NULL ? build : "build/asan");
    f->inv.cards[1].uuid = "GPU-00000000-0000-4000-8000-000000000001";
    f->config.library = library;
    f->config.shares = f->cgroups; /* any folder that is removed with all in it */
    const struct isolation_engine *e = isolation_find(&f->config, GPU_MODE_CORE_MEM, &f->inv, &err);
    assert_non_null(e);
    struct inventory_devices all;
    struct match_listed_container held = {.name = "main"};
    const struct match_listed l = {
        .ns = "team", .name = "stranger", .key = "team/stranger", .uid = "u"};
    for (int i = 0; i < 2; i++) {
        enum mode_resource resource = i == 0 ? MODE_GPU_MEM : MODE_GPU_CORE;
        size_t want = i == 0 ? 2 : 30;
        struct inventory_ids *ids = &held.held[resource];
        inventory_devices(&f->inv, resource, NULL, &f->a, &all);
        ids->items = arena_new(&f->a, const char *, want);
        for (size_t k = 0; k < all.len && ids->len < want; k++)
            if (inventory_find(&f->inv, resource, all.items[k].id) == 1)
                ids->items[ids->len++] = all.items[k].id;
        assert_int_equal(want, ids->len);
        assert_int_equal(0, match_grant_ids(&f->inv, resource, ids, &f->a, &grant, &err));
        r = (struct response){0};
        e->dress(&f->config, &f->inv, &grant, &f->a, &r);
        if (i == 0 && e->prepare(&f->config, r.share, &err) < 0)
            fail_msg("%s", err.text);
        expect_int("only memory has a folder", i == 0, r.share != NULL);
    }
    const char *folder =
        arena_printf(&f->a, "unknown-%s.0", match_digest(&held.held[MODE_GPU_MEM], &f->a));
    (void)str_format(limits, sizeof limits, "%s", got(f, folder, "limits"));
    expect_str(
        "at first",
        "cosched-gpu-limits 1\ncard GPU-00000000-0000-4000-8000-000000000001 mib=2048 percent=100 context=0\n",
        limits);
    expect_int("before it starts", 0, e->complete(&f->config, &l, &held, &f->a, &err));
    expect_str(
        "its part of the time, too",
        "cosched-gpu-limits 1\ncard GPU-00000000-0000-4000-8000-000000000001 mib=2048 percent=30 context=0\n",
        got(f, folder, "limits"));
    expect_str("and whose it is", "team stranger main u", got(f, folder, "owner"));
    held.held[MODE_GPU_MEM].len = 1;
    expect_int("one whose pod was known has no such folder", 0,
               e->complete(&f->config, &l, &held, &f->a, &err));
    expect_done();
}

/* ---- the kernel ---- */

static void memories_of_cards(void **state)
{
    (void)state;
    static const struct {
        const char *row, *text, *region;
        int64_t bytes;
    } rows[] = {
        {"one", "drm/0000:3b:00.0/vram0 100\n", "drm/0000:3b:00.0/vram0", 100},
        {"the largest of several", "drm/0000:3b:00.0/stolen 7\ndrm/0000:3b:00.0/vram0 100",
         "drm/0000:3b:00.0/vram0", 100},
        {"whatever the driver calls it", "nvidia/0000:3B:00.0 5\n", "nvidia/0000:3B:00.0", 5},
        {"another card", "drm/0000:3c:00.0/vram0 100\n", NULL, 0},
        {"a longer address", "drm/10000:3b:00.0/vram0 100\ndrm/0000:3b:00.01/x 5\n", NULL, 0},
        {"no size", "drm/0000:3b:00.0/vram0\ndrm/0000:3b:00.0/vram1 max\n", NULL, 0},
        {"none of it", "drm/0000:3b:00.0/vram0 0\n", NULL, 0},
        {"nothing", "", NULL, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char region[ISOLATION_REGION_SIZE] = "";
        int64_t bytes;
        bool found = isolation_kernel_region(rows[i].text, "0000:3b:00.0", region, &bytes);
        expect_int(rows[i].row, rows[i].region != NULL, found);
        expect_str(rows[i].row, rows[i].region != NULL ? rows[i].region : "", region);
        expect_int(rows[i].row, rows[i].bytes, bytes);
    }
    char region[ISOLATION_REGION_SIZE];
    int64_t bytes;
    expect_true("a card without an address",
                !isolation_kernel_region("drm//vram0 100\n", "", region, &bytes));
    expect_done();
}

static void the_kernel_must_list_every_card(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    f->config.cgroup_mount = f->cgroups;
    f->config.only = "kernel";
    expect_str("all are", "kernel", found(f, GPU_MODE_CGPU, &err));
    put(f, "", "dmem.capacity", "drm/0000:3b:00.0/vram0 16944988160\n");
    expect_str("one is", "(none)", found(f, GPU_MODE_CGPU, &err));
    expect_true("which is not, and why",
                strstr(err.text, "dmem.capacity does not list card 1 (0000:3c:00.0): its driver "
                                 "does not register its memory with the kernel") != NULL);
    char path[SCRATCH_PATH * 2];
    (void)str_format(path, sizeof path, "%s/dmem.capacity", f->cgroups);
    assert_int_equal(0, unlink(path));
    expect_str("a kernel without dmem", "(none)", found(f, GPU_MODE_CGPU, &err));
    expect_true("says so", strstr(err.text, "the kernel (6.14 or later) has no dmem") != NULL);
    (void)str_format(path, sizeof path, "%s/cgroup.controllers", f->cgroups);
    assert_int_equal(0, unlink(path));
    put(f, "cpuset", "x", "");
    expect_str("cgroup v1", "(none)", found(f, GPU_MODE_CGPU, &err));
    expect_true("says so", strstr(err.text, "is cgroup v1, which has no dmem") != NULL);
    expect_done();
}

#define POD "kubepods/burstable/poduid-trainer"
#define BOX_A POD "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define BOX_B POD "/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static void the_kernel_holds_pods_and_containers(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    struct grant grant;
    f->config.cgroup_mount = f->cgroups;
    const struct isolation_engine *e = isolation_find(&f->config, GPU_MODE_CGPU, &f->inv, &err);
    assert_non_null(e);
    expect_str("it", "kernel", e->name);
    struct pod *p = cards_pod("trainer", "a=gpu-mem:3 b=gpu-mem:2 c",
                              "\"scheduler.framework.gpushare.allocation\":"
                              "\"{\\\"0\\\":{\\\"1\\\":3},\\\"1\\\":{\\\"1\\\":2}}\"");
    assert_int_equal(0, grant_decode(p, &f->a, &grant, &err));
    expect_int("no group", -1, e->start(&f->config, &f->inv, p, &grant, &err));
    expect_true("is said", strstr(err.text, "the pod's cgroup is not found below") != NULL);
    expect_int("kept nevertheless", 0, e->keep(&f->config, &f->inv, p, &grant, &err));

    put(f, "kubepods", "cgroup.subtree_control", "cpu\n");
    put(f, "kubepods/burstable", "cgroup.subtree_control", "cpu dmem\n");
    put(f, POD, "cgroup.subtree_control", "\n");
    error_clear(&err);
    expect_int("no file", -1, e->start(&f->config, &f->inv, p, &grant, &err));
    expect_str("enabled at the top", "+dmem", got(f, "", "cgroup.subtree_control"));
    expect_str("and below", "+dmem", got(f, "kubepods", "cgroup.subtree_control"));
    expect_str("where it was not", "cpu dmem\n",
               got(f, "kubepods/burstable", "cgroup.subtree_control"));
    put(f, POD, "dmem.max", "drm/0000:3b:00.0/vram0 max\ndrm/0000:3c:00.0/vram0 max\n");
    error_clear(&err);
    expect_int("before a start", 0, e->start(&f->config, &f->inv, p, &grant, &err));
    expect_str("all that it was promised", "drm/0000:3c:00.0/vram0 5368709120\n",
               got(f, POD, "dmem.max"));

    put(f, BOX_A, "dmem.max", "");
    put(f, BOX_B, "dmem.max", "");
    expect_int("its status names nobody yet", 0, e->keep(&f->config, &f->inv, p, &grant, &err));
    expect_str("so they have the pod's", "", got(f, BOX_A, "dmem.max"));
    p->containers[0].id = "containerd://"
                          "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    p->containers[1].id = "containerd://"
                          "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
    expect_int("then it does", 0, e->keep(&f->config, &f->inv, p, &grant, &err));
    expect_str("its own share", "drm/0000:3c:00.0/vram0 3221225472\n", got(f, BOX_A, "dmem.max"));
    expect_str("and its own", "drm/0000:3c:00.0/vram0 2147483648\n", got(f, BOX_B, "dmem.max"));
    put(f, BOX_A, "dmem.max", "drm/0000:3c:00.0/vram0 max\n");
    expect_int("somebody else wrote there", 0, e->keep(&f->config, &f->inv, p, &grant, &err));
    expect_str("it is put right", "drm/0000:3c:00.0/vram0 3221225472\n", got(f, BOX_A, "dmem.max"));
    pod_free(p);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(engines_by_mode, setup, teardown),
        cmocka_unit_test_setup_teardown(the_daemon_must_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(what_containers_get, setup, teardown),
        cmocka_unit_test_setup_teardown(how_the_runtime_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(the_daemon_is_supervised, setup, teardown),
        cmocka_unit_test_setup_teardown(a_pod_that_is_not_known, setup, teardown),
        cmocka_unit_test(memories_of_cards),
        cmocka_unit_test_setup_teardown(the_kernel_must_list_every_card, setup, teardown),
        cmocka_unit_test_setup_teardown(the_kernel_holds_pods_and_containers, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
