// SPDX-License-Identifier: Apache-2.0
/* Which container is it? */
#include "device-plugin/cpu/podmounts.h"

#include <string.h>

#include "test/unit/lib/base/expect.h"

#define UID "1f2e3d4c-5b6a-7988-a7b6-c5d4e3f2a1b0"
#define OTHER "2f2e3d4c-5b6a-7988-a7b6-c5d4e3f2a1b0"
#define KUBELET "/var/lib/kubelet/pods/"
#define END " /dev/termination-log rw,relatime - ext4 /dev/vda rw\n"
#define AT "174 159 254:0 "
#define NAME63 "n23456789-123456789-123456789-123456789-123456789-123456789-123"

static void lines(void **state)
{
    (void)state;
    static const struct {
        const char *row, *text, *name; /* NULL: not said */
    } rows[] = {
        {"the kubelet's file for its last words", AT KUBELET UID "/containers/main/a02e12c6" END,
         "main"},
        {"after others",
         "157 1 0:61 / / rw - overlay overlay rw\n173 157 254:0 " KUBELET UID
         "/etc-hosts /etc/hosts rw - ext4 /dev/vda rw\n" AT KUBELET UID
         "/containers/main/a02e12c6" END,
         "main"},
        {"a file system of its own for the kubelet",
         AT "/pods/" UID "/containers/main/a02e12c6" END, "main"},
        {"or for the pods", AT "/" UID "/containers/main/a02e12c6" END, "main"},
        {"another path in the container, and the line is not ended",
         AT KUBELET UID "/containers/side-car/00000000 /tmp/last", "side-car"},
        {"the longest name", AT KUBELET UID "/containers/" NAME63 "/a02e12c6" END, NAME63},
        {"a longer one", AT KUBELET UID "/containers/" NAME63 "4/a02e12c6" END, NULL},
        {"another pod's", AT KUBELET OTHER "/containers/main/a02e12c6" END, NULL},
        {"a cgroup that is named after the pod",
         AT "/kubepods/pod" UID "/containers/x/a02e12c6" END, NULL},
        {"a volume", AT KUBELET UID "/volumes/kubernetes.io~empty-dir/main" END, NULL},
        {"in the mount's place in the container, not on the host",
         AT "/ " KUBELET UID "/containers/main/a02e12c6 rw - ext4 /dev/vda rw\n", NULL},
        {"no digits", AT KUBELET UID "/containers/main/a02e12cx" END, NULL},
        {"seven", AT KUBELET UID "/containers/main/a02e12c" END, NULL},
        {"nine", AT KUBELET UID "/containers/main/a02e12c66" END, NULL},
        {"something below", AT KUBELET UID "/containers/main/a02e12c6/x" END, NULL},
        {"no name", AT KUBELET UID "/containers//a02e12c6" END, NULL},
        {"nothing after the name", AT KUBELET UID "/containers/main" END, NULL},
        {"a line of three fields", "174 159 254:0\n", NULL},
        {"empty lines", "\n\n", NULL},
        {"nothing", "", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char name[PODMOUNTS_NAME_SIZE];
        bool found = podmounts_parse(rows[i].text, strlen(rows[i].text), UID, name);
        expect_int(rows[i].row, rows[i].name != NULL, found);
        expect_str(rows[i].row, rows[i].name != NULL ? rows[i].name : "", name);
    }
    char name[PODMOUNTS_NAME_SIZE];
    expect_int("a pod without uid", false,
               podmounts_parse(AT "/containers/main/a02e12c6" END,
                               strlen(AT "/containers/main/a02e12c6" END), "", name));
    expect_done();
}

static void what_is_mounted_somewhere(void **state)
{
    (void)state;
#define LINE(root, point) "174 159 254:0 " root " " point " ro,relatime - ext4 /dev/vda rw\n"
    static const struct {
        const char *row, *text, *name;
    } rows[] = {
        {"a folder", LINE("/lib/a/b", "/x") LINE("/var/lib/c/iso/uid.0", "/usr/local/g"), "uid.0"},
        {"something below it", LINE("/iso/uid.0/region", "/usr/local/g/region"), ""},
        {"covered by another",
         LINE("/iso/one.0", "/usr/local/g") LINE("/iso/two.1", "/usr/local/g"), "two.1"},
        {"the root of a file system", LINE("/", "/usr/local/g"), ""},
        {"a short line", "174 159 254:0 /a", ""},
        {"nothing", "", ""},
        {"too long a name",
         LINE("/0123456789012345678901234567890123456789012345678901234567890123", "/usr/local/g"),
         ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char name[PODMOUNTS_NAME_SIZE];
        bool found = podmounts_at(rows[i].text, strlen(rows[i].text), "/usr/local/g", name);
        expect_int(rows[i].row, rows[i].name[0] != '\0', found);
        expect_str(rows[i].row, rows[i].name, name);
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines),
                                       cmocka_unit_test(what_is_mounted_somewhere)};
    return cmocka_run_group_tests_name("podmounts", tests, NULL, NULL);
}
