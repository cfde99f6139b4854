// SPDX-License-Identifier: Apache-2.0
/* Every layout of cgroups: what is written where, byte for byte, and that nothing else in the tree
 * is touched. */
#include "test/unit/device-plugin/pinner_kit.h"

#define UID_ "11111111_0000_4000_8000_000000000000"
#define FILES_MAX 128

/* One pod with one container. All groups above it are named, from the top. */
static const struct layout {
    const char *row;
    bool v2;
    const char *above[3]; /* below the hierarchy; the last is the pod's */
    const char *box;      /* of its container */
} layouts[] = {
    {"v1, cgroupfs, guaranteed, containerd", false, {"kubepods", "kubepods/pod" UID}, ID(1)},
    {"v1, cgroupfs, burstable, docker",
     false,
     {"kubepods", "kubepods/burstable", "kubepods/burstable/pod" UID},
     ID(1)},
    {"v1, cgroupfs, best effort, CRI-O",
     false,
     {"kubepods", "kubepods/besteffort", "kubepods/besteffort/pod" UID},
     "crio-" ID(1)},
    {"v1, systemd, guaranteed, containerd: as the CPU document shows it",
     false,
     {"kubepods.slice", "kubepods.slice/kubepods-pod" UID_ ".slice"},
     "cri-containerd-" ID(1) ".scope"},
    {"v1, systemd, burstable, CRI-O",
     false,
     {"kubepods.slice", "kubepods.slice/kubepods-burstable.slice",
      "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice"},
     "crio-" ID(1) ".scope"},
    {"v2, cgroupfs, guaranteed, containerd", true, {"kubepods", "kubepods/pod" UID}, ID(1)},
    {"v2, cgroupfs, best effort, CRI-O",
     true,
     {"kubepods", "kubepods/besteffort", "kubepods/besteffort/pod" UID},
     "crio-" ID(1)},
    {"v2, systemd, guaranteed, containerd: as the CPU document shows it",
     true,
     {"kubepods.slice", "kubepods.slice/kubepods-pod" UID_ ".slice"},
     "cri-containerd-" ID(1) ".scope"},
    {"v2, systemd, burstable, docker",
     true,
     {"kubepods.slice", "kubepods.slice/kubepods-burstable.slice",
      "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice"},
     "docker-" ID(1) ".scope"},
    {"v2, systemd, best effort, CRI-O",
     true,
     {"kubepods.slice", "kubepods.slice/kubepods-besteffort.slice",
      "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_ ".slice"},
     "crio-" ID(1) ".scope"},
};

/* Every file of the tree with its bytes: "PATH=BYTES|". */
static struct strbuf *seen;

static int see_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    AUTO_STRBUF text;
    (void)st, (void)where;
    strbuf_init(&text);
    const char *below = path + strlen(f.tree.top);
    if (kind != FTW_F || str_starts(below, "/memory/"))
        return 0;
    assert_int_equal(0, file_read(path, 4096, &text, NULL));
    /* The order of a directory is not given: each line is looked for on its own. */
    strbuf_addf(seen, "|%s=%s|", below, strbuf_str(&text));
    return 0;
}

static void see(struct strbuf *out)
{
    strbuf_reset(out);
    seen = out;
    (void)nftw(f.tree.top, see_one, 16, FTW_PHYS);
}

static size_t bytes_of(const char *path, const char *text)
{
    return strlen(path) + strlen(text) + 3;
}

/* The tree has just these files: all lines are there, and nothing else has room. */
struct expected {
    char path[FILES_MAX][512];
    char text[FILES_MAX][64];
    size_t len;
};

static void file_is(struct expected *x, const char *top, const char *group, const char *name,
                    const char *text)
{
    char path[512];
    assert_true(
        str_format(path, sizeof path, "%s%s%s/%s", top, group[0] != '\0' ? "/" : "", group, name));
    for (size_t i = 0; i < x->len; i++)
        if (str_eq(x->path[i], path)) {
            (void)str_format(x->text[i], sizeof x->text[i], "%s", text);
            return;
        }
    assert_true(x->len < FILES_MAX);
    (void)str_format(x->path[x->len], sizeof x->path[0], "%s", path);
    (void)str_format(x->text[x->len++], sizeof x->text[0], "%s", text);
}

static void expect_tree(const char *row, const struct expected *x)
{
    AUTO_STRBUF text;
    size_t bytes = 0;
    strbuf_init(&text);
    see(&text);
    for (size_t i = 0; i < x->len; i++) {
        char line[1024];
        assert_true(str_format(line, sizeof line, "|%s=%s|", x->path[i], x->text[i]));
        bytes += bytes_of(x->path[i], x->text[i]);
        if (strstr(strbuf_str(&text), line) == NULL)
            expect_str(row, line, strbuf_str(&text));
    }
    expect_int(row, (int64_t)bytes, (int64_t)text.len);
}

static void write_tree(const struct expected *x)
{
    for (size_t i = 0; i < x->len; i++) {
        char dir[512];
        const char *slash = strrchr(x->path[i], '/');
        assert_true(str_format(dir, sizeof dir, "%.*s", (int)(slash - x->path[i]), x->path[i]));
        tree_dir(&f.tree, dir + (dir[0] == '/'));
        tree_put(&f.tree, dir, slash + 1, x->text[i]);
    }
}

/* As the kubelet and the runtime leave it. v2: nobody has enabled the controller, so its files are
 * not there. */
static void fill(const struct layout *l, struct expected *x, char box[512])
{
    const char *top = l->v2 ? "" : "/cpuset";
    const char *pod = l->above[2] != NULL ? l->above[2] : l->above[1];
    assert_true(str_format(box, 512, "%s/%s", pod, l->box));
    x->len = 0;
    if (l->v2) {
        file_is(x, top, "", "cgroup.controllers", "cpuset cpu memory\n");
        file_is(x, top, "", "cgroup.subtree_control", "cpu memory\n");
        file_is(x, top, box, "cgroup.controllers", "cpu memory\n");
    } else {
        file_is(x, top, "", "cpuset.cpus", "0-3\n");
        file_is(x, top, box, "cpuset.cpus", "0-3\n");
        file_is(x, top, box, "cpuset.mems", "0-1\n");
    }
    for (size_t i = 0; i < 3 && l->above[i] != NULL; i++)
        if (l->v2) {
            file_is(x, top, l->above[i], "cgroup.subtree_control", "cpu memory\n");
        } else {
            file_is(x, top, l->above[i], "cpuset.cpus", "0-3\n");
            file_is(x, top, l->above[i], "cpuset.mems", "0-1\n");
        }
}

/* v2: the controller was enabled along the path; the kernel's part of it is played here. */
static void enabled(const struct layout *l, struct expected *x, const char *box)
{
    file_is(x, "", "", "cgroup.subtree_control", "+cpuset");
    for (size_t i = 0; i < 3 && l->above[i] != NULL; i++)
        file_is(x, "", l->above[i], "cgroup.subtree_control", "+cpuset");
    expect_tree(l->row, x);
    file_is(x, "", box, "cpuset.cpus", "\n");
    file_is(x, "", box, "cpuset.mems", "\n");
    file_is(x, "", box, "cpuset.cpus.effective", "2-3\n");
    write_tree(x);
}

static void wait_answer(const char *row, const char *text)
{
    for (int64_t until = clock_mono_ms() + 10000;
         !str_eq(f.answer, text) && clock_mono_ms() < until;)
        loop_once(f.loop, 20);
    expect_str(row, text, f.answer);
}

static void every_layout(void **state)
{
    static struct expected x;
    (void)state;
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        const struct layout *l = &layouts[i];
        const char *top = l->v2 ? "" : "/cpuset";
        char box_path[512];
        teardown(NULL);
        setup(NULL);
        f.config.memory = true;
        tree_remove(&f.tree, "cpuset");
        fill(l, &x, box_path);
        write_tree(&x);
        start();
        f.answer[0] = '-';
        put("p", UID, ASKS GRANT("{\\\"a\\\":{\\\"1\\\":" CPU(ON(2) "," ON(3)) "}}"), "");
        if (l->v2)
            enabled(l, &x, box_path);
        wait_answer(l->row, "{\"a\":{\"1\":{\"elems\":{\"2\":{},\"3\":{}}}}}");
        file_is(&x, top, box_path, "cpuset.cpus", "2-3");
        file_is(&x, top, box_path, "cpuset.mems", "1");
        expect_tree(l->row, &x);

        file_is(&x, top, box_path, "cpuset.cpus", "0\n");
        write_tree(&x);
        for (int64_t until = clock_mono_ms() + 10000; clock_mono_ms() < until;) {
            char dir[600];
            assert_true(str_format(dir, sizeof dir, "%s/%s", top, box_path));
            if (str_eq(tree_get(&f.tree, dir, "cpuset.cpus"), "2-3"))
                break;
            loop_once(f.loop, 20);
        }
        file_is(&x, top, box_path, "cpuset.cpus", "2-3");
        expect_tree(l->row, &x);

        if (l->v2) /* the kernel's word on what it has then */
            file_is(&x, top, box_path, "cpuset.cpus.effective", "0-3\n");
        put("p", UID, ASKS "\"x\":\"y\"", "");
        if (l->v2)
            tree_put(&f.tree, box_path, "cpuset.cpus.effective", "0-3\n");
        wait_answer(l->row, "");
        file_is(&x, top, box_path, "cpuset.cpus", l->v2 ? "\n" : "0-3");
        file_is(&x, top, box_path, "cpuset.mems", l->v2 ? "\n" : "0-1");
        expect_tree(l->row, &x);
        expect_int(l->row, 0, f.events);
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_layout, setup, teardown),
    };
    return cmocka_run_group_tests_name("pinner_groups", tests, NULL, NULL);
}
