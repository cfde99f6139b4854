// SPDX-License-Identifier: Apache-2.0
/*
 * What got past the library: the driver's list of processes against the slots of the pod's regions,
 * and the driver's memory against the limits; and device time: from the driver's measurements into
 * the regions, and what is said where there are none.
 */
#include "test/unit/device-plugin/isolation/audit.h"

#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "device-plugin/isolation/budget.h"
#include "device-plugin/isolation/isolation.h"
#include "device-plugin/isolation/shares.h"
#include "lib/base/clock.h"

/* Every question about a lock that this program asks. */
static _Atomic int queries;

int fcntl(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    void *arg = va_arg(args, void *);
    va_end(args);
    queries += command == F_OFD_GETLK || command == F_GETLK;
    return (int)syscall(SYS_fcntl, fd, command, arg);
}

static void loose_processes(void **state)
{
    struct audit_fixture f;
    struct regionfile one, two;
    (void)state;
    audit_begin(&f, false);
    audit_looks(&f, 2, 2);
    expect_int("for a moment", 0, audit_seen.events);
    audit_looks(&f, 1, 2);
    expect_int("a pod that should have our library and has no folder is not held", 1,
               audit_seen.events);
    monitor_mode(f.monitor, GPU_MODE_CGPU, ISOLATION_KERNEL);
    audit_looks(&f, 1, 2);
    audit_seen.events = 0;
    audit_looks(&f, 5, 2);
    expect_int("one of another engine needs none", 0, audit_seen.events);
    monitor_mode(f.monitor, GPU_MODE_CGPU, ISOLATION_LIBRARY);
    audit_give_folder(&f, "uid-trainer.0", 100, 0);
    assert_int_equal(0, regionfile_attach(&one, f.region));
    assert_int_equal(0, regionfile_attach(&two, f.region));
    audit_looks(&f, 5, 2);
    expect_int("each has its slot", 0, audit_seen.events);
    audit_looks(&f, 2, 3);
    expect_int("one more, for a moment", 0, audit_seen.events);
    audit_looks(&f, 1, 2);
    audit_looks(&f, 2, 3);
    expect_int("and once more", 0, audit_seen.events);
    audit_looks(&f, 1, 3);
    expect_int("it stays", 1, audit_seen.events);
    expect_str("what it is", "GpuIsolationBypassed", audit_seen.reason);
    expect_true("how many, and of what",
                strstr(audit_seen.message,
                       "1 of its 3 processes on the GPU are not held to its share of 3072 MiB") !=
                    NULL);
    expect_true("counted",
                audit_metric("pod_loose_processes{namespace=\"default\",pod=\"trainer\"} 1\n"));
    audit_looks(&f, 5, 3);
    expect_int("said once", 1, audit_seen.events);
    audit_looks(&f, 1, 2);
    audit_looks(&f, 3, 4);
    expect_int("and again after it was well", 2, audit_seen.events);
    expect_int("nobody is evicted unless asked for", 0, audit_seen.evictions);
    struct pod *unreadable = audit_trainer("a field of tomorrow");
    podcache_put(&f.pods, audit_trainer("a field of tomorrow"));
    expect_true("a version that cannot be read changes nothing",
                audit_metric("pod_loose_processes{namespace=\"default\",pod=\"trainer\"} 2\n"));
    podcache_reset(&f.pods, &unreadable, 1);
    audit_looks(&f, 1, 4);
    expect_true("nor in a list of all",
                audit_metric("pod_loose_processes{namespace=\"default\",pod=\"trainer\"} 2\n"));
    podcache_reset(&f.pods, NULL, 0);
    expect_true("one that is not there any more is forgotten",
                !audit_metric("pod_loose_processes{"));
    regionfile_detach(&one);
    regionfile_detach(&two);
    audit_end(&f);
}

static void memory_beyond_the_limit(void **state)
{
    struct audit_fixture f;
    struct regionfile one;
    (void)state;
    audit_begin(&f, true);
    static const struct {
        const char *row;
        uint64_t context_mib;
        int64_t mib;
        const char *folder;
        bool over;
    } rows[] = {
        {"all of it, and what the driver takes", 0, 3072 + 512, "uid-trainer.0", false},
        {"one MiB more", 0, 3072 + 513, "uid-trainer.0", true},
        {"a charged context is in the limit, a module is not", 300, 3072 + 212, "uid-trainer.0",
         false},
        {"one MiB more", 300, 3072 + 213, "uid-trainer.0", true},
        {"a context larger than what is allowed", 600, 3072, "uid-trainer.0", false},
        {"one MiB more", 600, 3073, "uid-trainer.0", true},
        {"mounts that do not tell: the pod has one container", 300, 3072 + 213, "", true},
        {"another container of the pod, which has no limits", 300, 9000, "uid-trainer.7", true},
        {"the driver does not tell", 300, -1, "uid-trainer.0", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        audit_give_folder(&f, "uid-trainer.0", 100, rows[i].context_mib);
        assert_int_equal(0, regionfile_attach(&one, f.region));
        struct usage_process p = audit_process(100, rows[i].mib, rows[i].folder);
        audit_messages(&f, 1, NULL, 0);
        audit_seen.events = audit_seen.evictions = 0;
        audit_messages(&f, 2, &p, 1);
        expect_int(rows[i].row, 0, audit_seen.events + audit_seen.evictions);
        audit_messages(&f, 1, &p, 1);
        expect_int(rows[i].row, rows[i].over, audit_seen.events);
        expect_int(rows[i].row, rows[i].over, audit_seen.evictions);
        if (rows[i].over) {
            char line[CREW_LINE];
            (void)str_format(line, sizeof line,
                             "the driver counts %lld MiB of card 1 for a pod that may have 3072",
                             (long long)rows[i].mib);
            expect_true(rows[i].row, strstr(audit_seen.message, line) != NULL);
            expect_str("who", "default/trainer uid-trainer", audit_seen.evicted);
            expect_true("what happens", strstr(audit_seen.message, "The pod is evicted") != NULL);
            (void)str_format(line, sizeof line,
                             "pod_over_mib{namespace=\"default\",pod=\"trainer\"} %lld\n",
                             (long long)rows[i].mib - 3072);
            expect_true("counted", audit_metric(line));
            audit_messages(&f, 2, &p, 1);
            expect_int("the eviction is under way", 1, audit_seen.evictions);
            audit_messages(&f, 1, &p, 1);
            expect_int("it is still there", 2, audit_seen.evictions);
            expect_int("said once", 1, audit_seen.events);
        }
        regionfile_detach(&one);
    }
    audit_end(&f);
}

/* A process can have a folder of any name mounted where ours is; that of a container whose pod was
 * not known has no uid in it. */
static void another_pods_folder(void **state)
{
    struct audit_fixture f;
    struct regionfile one;
    (void)state;
    audit_begin(&f, true);
    audit_give_folder(&f, "unknown-0123.0", 100, 300);
    (void)str_format(f.region, sizeof f.region, "%s/unknown-0123.0/region", f.base);
    assert_int_equal(0, regionfile_attach(&one, f.region));
    struct usage_process list[] = {audit_process(100, 3000, "unknown-0123.0"),
                                   audit_process(200, 9000, "unknown-0123.0")};
    (void)str_format(list[1].uid, sizeof list[1].uid, "uid-intruder");
    audit_messages(&f, 5, list, 2);
    expect_int("what another pod says is not its doing", 0,
               audit_seen.events + audit_seen.evictions);
    list[0].mib = 3072 + 213;
    audit_messages(&f, 3, list, 1);
    expect_int("its own memory is", 1, audit_seen.evictions);
    list[0] = audit_process(100, 500, "unknown-0123.0");
    list[1] = audit_process(101, 500, "unknown-0123.0");
    audit_messages(&f, 1, NULL, 0);
    audit_seen.events = 0;
    audit_messages(&f, 3, list, 2);
    expect_true("and so are its processes",
                strstr(audit_seen.message, "1 of its 2 processes") != NULL);
    regionfile_detach(&one);
    audit_end(&f);
}

/* What an earlier pod of the same name left is not this pod's doing. */
static void an_earlier_pods_folder(void **state)
{
    struct audit_fixture f;
    struct error err = ERROR_INIT;
    (void)state;
    audit_begin(&f, true);
    audit_give_folder(&f, "unknown-0123.0", 100, 0);
    (void)str_format(f.region, sizeof f.region, "%s/unknown-0123.0/region", f.base);
    struct shares_owner earlier = {.folder = "unknown-0123.0",
                                   .uid = "uid-earlier",
                                   .ns = "default",
                                   .pod = "trainer",
                                   .container = "c0"};
    assert_int_equal(0, shares_complete(f.base, &earlier, 100, &err));
    assert_int_equal(0, truncate(f.region, 0));
    audit_looks(&f, 5, 0);
    expect_int("another uid", 0, audit_seen.events + audit_seen.evictions);
    earlier.uid = "uid-trainer";
    assert_int_equal(0, shares_complete(f.base, &earlier, 100, &err));
    audit_looks(&f, 3, 0);
    expect_int("its own", 1, audit_seen.evictions);
    audit_end(&f);
}

/* ---- what a container may do to its region ---- */

static void lock_byte(int fd, off_t at)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    assert_int_equal(0, fcntl(fd, F_OFD_SETLK, &l));
}

/* Every slot has an owner and holds memory, and the file has thousands of locks. */
static int crowd(const char *path, int locks)
{
    struct regionfile r;
    assert_int_equal(0, regionfile_attach(&r, path));
    for (uint32_t slot = 0; slot < r.region.slots; slot++) {
        atomic_store(&region_slot(&r.region, slot)->owner, 4711 + slot);
        assert_true(slot == r.slot || region_take(&r.region, slot, 0, 1, UINT64_MAX));
    }
    munmap(r.map, r.size);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    for (int i = 0; i < locks; i++)
        lock_byte(fd, 2 * i);
    return fd;
}

static void keep_broken(void *arg, const struct shares_scan *l)
{
    *(const char **)arg = l->broken;
}

/* A question costs what the container wants it to cost: it may hold any number of locks. */
static void locks_on_the_region(void **state)
{
    struct audit_fixture f;
    (void)state;
    audit_begin(&f, false);
    audit_give_folder(&f, "uid-trainer.0", 100, 0);
    int fd = crowd(f.region, 3000);
    queries = 0;
    audit_looks(&f, 1, 1);
    expect_true("a look asks once for each slot at most", queries <= REGION_SLOTS);
    queries = 0;
    (void)audit_metric("");
    expect_int("a scrape asks nothing", 0, queries);
    queries = 0;
    const char *broken = NULL;
    shares_each(f.base, 0, keep_broken, &broken);
    expect_int("no more after the time is over", 1, queries);
    expect_str("then it cannot be read", "it has so many locks that they cannot be counted",
               broken);
    close(fd);
    audit_end(&f);
}

/* Its clients say themselves what they are limited to: the driver's figures decide. */
static void clients_of_mps(void **state)
{
    struct audit_fixture f;
    (void)state;
    audit_begin(&f, true);
    monitor_mode(f.monitor, GPU_MODE_MPS, ISOLATION_MPS);
    audit_looks(&f, 5, 6);
    expect_int("six processes within the share, and what the driver takes", 0, audit_seen.events);
    struct usage_process list[] = {audit_process(100, 3000, ""), audit_process(101, 1097, "")};
    audit_messages(&f, 5, list, 2);
    expect_int("they need no folder", 1, audit_seen.events);
    expect_str("too much", "GpuIsolationBypassed", audit_seen.reason);
    expect_true("how much, and why",
                strstr(audit_seen.message,
                       "the driver counts 4097 MiB of card 1 for a pod that may have 3072."
                       " Not held are clients of MPS that change their own limits") != NULL);
    expect_int("evicted", 1, audit_seen.evictions);
    list[0].card = 0; /* which it was not given */
    audit_messages(&f, 1, NULL, 0);
    audit_seen.events = 0;
    audit_messages(&f, 3, list, 2);
    expect_true("another card",
                strstr(audit_seen.message, "3000 MiB of card 0 for a pod that may have 0") != NULL);
    monitor_mode(f.monitor, GPU_MODE_MPS, "none");
    audit_messages(&f, 1, NULL, 0);
    audit_seen.events = 0;
    audit_messages(&f, 5, list, 2);
    expect_int("without an engine nothing was promised", 0, audit_seen.events);
    audit_end(&f);
}

/* What nobody does by chance is told at once, though it was undone. */
static void a_larger_region(void **state)
{
    struct audit_fixture f;
    (void)state;
    audit_begin(&f, true);
    audit_give_folder(&f, "uid-trainer.0", 100, 0);
    audit_looks(&f, 5, 0);
    expect_int("as it was made", 0, audit_seen.events);
    assert_int_equal(0, truncate(f.region, 200 << 20));
    audit_looks(&f, 1, 0);
    expect_int("larger", 1, audit_seen.events);
    expect_str("what it is", "GpuIsolationBypassed", audit_seen.reason);
    expect_true("why", strstr(audit_seen.message,
                              "the region that container c0 shares with the node does not "
                              "count: it was made larger") != NULL);
    expect_int("evicted", 1, audit_seen.evictions);
    audit_looks(&f, 5, 0);
    expect_int("it is well again", 1, audit_seen.events);
    struct regionfile one;
    assert_int_equal(0, regionfile_attach(&one, f.region));
    memset(one.map, 0xff, one.size);
    audit_looks(&f, 2, 0);
    expect_int("unreadable, for a moment", 1, audit_seen.events);
    audit_looks(&f, 1, 0);
    expect_int("it stays", 2, audit_seen.events);
    munmap(one.map, one.size);
    audit_end(&f);
}

/* What a container writes, mounts or breaks does not hide what the driver counts. */
static void nothing_hides_memory(void **state)
{
    static const struct {
        const char *row, *folder; /* what is mounted where its folder should be */
        bool unreadable;
    } rows[] = {
        {"a volume of a name like ours", "unknown-0badc0de.0", false},
        {"another container's folder", "uid-trainer.7", false},
        {"another pod's folder", "uid-other.0", false},
        {"no mounts at all", "", false},
        {"a region that is none", "uid-trainer.0", true},
        {"both", "unknown-0badc0de.0", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct audit_fixture f;
        audit_begin(&f, true);
        audit_give_folder(&f, "uid-trainer.0", 100, 300);
        audit_give_folder(&f, "uid-trainer.1", 100, 300); /* a second container */
        struct regionfile one;
        assert_int_equal(0, regionfile_attach(&one, f.region));
        if (rows[i].unreadable)
            memset(one.map, 0xff, one.size);
        struct usage_process list[] = {audit_process(100, 15000, rows[i].folder),
                                       audit_process(200, 300, "")};
        list[1].uid[0] = '\0'; /* a process that has ended, or whose cgroup cannot be read */
        audit_messages(&f, 50, list, 2);
        expect_int(rows[i].row, 1, audit_seen.events);
        expect_str(rows[i].row, "GpuIsolationBypassed", audit_seen.reason);
        expect_true(rows[i].row, strstr(audit_seen.message, "15000 MiB of card 1") != NULL);
        expect_true(rows[i].row, audit_seen.evictions > 0);
        munmap(one.map, one.size);
        audit_end(&f);
    }
}

/* ---- time ---- */

static struct region_card read_card(const char *path)
{
    struct regionfile r;
    assert_int_equal(0, regionfile_attach(&r, path));
    struct region_card c = *region_card(&r.region, 0);
    regionfile_detach(&r);
    return c;
}

static void time_is_measured(void **state)
{
    struct audit_fixture f;
    char second[CREW_PATH];
    (void)state;
    audit_begin(&f, false);
    audit_messages(&f, 1, NULL, 0); /* the cards are known */
    audit_give_folder(&f, "uid-trainer.0", 30, 0);
    (void)str_format(second, sizeof second, "%s/uid-trainer.1/region", f.base);
    struct scan_busy busy[] = {{audit_process(100, -1, "uid-trainer.0"), 5000},
                               {audit_process(101, -1, "uid-trainer.0"), 700},
                               {audit_process(102, -1, ""), 11},
                               {audit_process(103, -1, "uid-other.0"), 100000},
                               {audit_process(104, -1, "uid-trainer.0"), 1000000}};
    busy[3].process.uid[4] = 'o';
    busy[4].process.card = 0;
    uint64_t now = (uint64_t)clock_mono_us() * 1000;
    audit_measured(&f, busy, 5, true, now);
    struct region_card c = read_card(f.region);
    expect_int("its processes together, on this card", 5711, (int64_t)c.measured_ns);
    expect_int("when", (int64_t)now, (int64_t)c.measured_at_ns);
    expect_true("whole", c.measured_check == budget_check(c.measured_ns, c.measured_at_ns));
    audit_measured(&f, NULL, 0, true, now + 1000);
    c = read_card(f.region);
    expect_int("nothing more", 5711, (int64_t)c.measured_ns);
    expect_int("but looked at", (int64_t)now + 1000, (int64_t)c.measured_at_ns);
    audit_measured(&f, busy, 5, false, now + 2000);
    c = read_card(f.region);
    expect_int("a card that does not tell is not written to", (int64_t)now + 1000,
               (int64_t)c.measured_at_ns);
    audit_give_folder(&f, "uid-trainer.1", 100, 0);
    audit_measured(&f, busy, 5, true, now + 3000);
    c = read_card(f.region);
    expect_int("of two containers the mounts choose; what names none counts for each", 2 * 5711,
               (int64_t)c.measured_ns);
    c = read_card(second);
    expect_int("a container that may have all is left alone", 0, (int64_t)c.measured_at_ns);
    expect_int("nothing to say", 0, audit_seen.events);
    audit_give_folder(&f, "unknown-0123.0", 30, 0);
    (void)str_format(second, sizeof second, "%s/unknown-0123.0/region", f.base);
    struct scan_busy two[] = {{audit_process(100, -1, "unknown-0123.0"), 5000},
                              {audit_process(200, -1, "unknown-0123.0"), 100000}};
    (void)str_format(two[1].process.uid, sizeof two[1].process.uid, "uid-intruder");
    audit_measured(&f, two, 2, true, now + 4000);
    c = read_card(second);
    expect_int("without the time of another pod's process", 5000, (int64_t)c.measured_ns);
    audit_end(&f);
}

static void time_is_not_measured(void **state)
{
    struct audit_fixture f;
    struct regionfile one;
    (void)state;
    audit_begin(&f, false);
    audit_give_folder(&f, "uid-trainer.0", 30, 0);
    assert_int_equal(0, regionfile_attach(&one, f.region));
    struct region_card *c = region_card(&one.region, 0);
    audit_messages(&f, 5, NULL, 0);
    expect_int("it has launched nothing", 0, audit_seen.events);
    (void)budget_charge(c, 30, 1, (uint64_t)clock_mono_us() * 1000);
    f.conditions[0].processes_known = f.conditions[1].processes_known = false;
    audit_messages(&f, 2, NULL, 0);
    expect_int("for a moment", 0, audit_seen.events);
    audit_messages(&f, 4, NULL, 0);
    expect_int("it stays, and is said once", 1, audit_seen.events);
    expect_str("what it is", "GpuTimeUnmeasured", audit_seen.reason);
    expect_true(
        "counted",
        audit_metric("container_time_unmeasured{namespace=\"default\",pod=\"trainer\",container="
                     "\"c0\",card=\"0\"} 1\n"));
    audit_measured(&f, NULL, 0, true, (uint64_t)clock_mono_us() * 1000);
    audit_messages(&f, 1, NULL, 0);
    expect_true(
        "then it is",
        audit_metric("container_time_unmeasured{namespace=\"default\",pod=\"trainer\",container="
                     "\"c0\",card=\"0\"} 0\n"));
    regionfile_detach(&one);
    audit_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loose_processes),     cmocka_unit_test(memory_beyond_the_limit),
        cmocka_unit_test(another_pods_folder), cmocka_unit_test(an_earlier_pods_folder),
        cmocka_unit_test(locks_on_the_region), cmocka_unit_test(nothing_hides_memory),
        cmocka_unit_test(a_larger_region),     cmocka_unit_test(clients_of_mps),
        cmocka_unit_test(time_is_measured),    cmocka_unit_test(time_is_not_measured)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
