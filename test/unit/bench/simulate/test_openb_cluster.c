// SPDX-License-Identifier: Apache-2.0
/*
 * openb traces: which rows are read, and that the List that comes of them is a cluster on which the
 * core gives the pods the parts of cards that the trace says.
 */
#include "test/bench/simulate/openb_cluster.h"

#include <stdio.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/replay/replay_load.h"
#include "scheduler/replay/replay_report.h"
#include "scheduler/replay/replay_run.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/lib/base/scratch.h"

static void note(void *arg, const char *text)
{
    strbuf_addf(arg, "%s\n", strstr(text, "line "));
}

/* Writes the objects of a file with this text; its warnings, and its error, without the path. */
static void convert(int (*fn)(struct json_writer *w, const char *path, struct csv_warn warn,
                              struct error *err),
                    const char *text, struct json_writer *w, struct strbuf *warnings)
{
    char path[SCRATCH_PATH];
    struct error err = ERROR_INIT;
    int fd = scratch_file(path, "openb");
    assert_true(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    (void)close(fd);
    if (fn(w, path, (struct csv_warn){note, warnings}, &err) < 0)
        strbuf_addf(warnings, "error%s\n", err.text + strlen(path));
    (void)unlink(path);
}

static void rows_are_read_or_named(void **state)
{
    (void)state;
    static const struct {
        const char *row, *text, *warnings;
        size_t objects;
    } rows[] = {
        {"columns by their names", "gpu_milli,name,num_gpu,memory_mib,cpu_milli\n500,p,1,10,100\n",
         "", 1},
        {"without a line at the end", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\r\np,1,1,0,0",
         "", 1},
        {"a column is missing", "name,cpu_milli,memory_mib,num_gpu\np,1,1,0\n",
         "error: line 1: there is no column gpu_milli\n", 0},
        {"a row is short", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1\nq,1,1,0,0\n",
         "line 2: memory_mib: missing\n", 1},
        {"a number is none", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,1,1001\n",
         "line 2: gpu_milli: must be between 0 and 1000: '1001'\n", 0},
        {"quotes", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n\"p\",1,1,0,0\n",
         "error: line 2: quoted fields are not read\n", 0},
        {"nothing", "", "error: is empty\n", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AUTO_STRBUF text = {0};
        AUTO_STRBUF warnings = {0};
        AUTO_JSON *doc = NULL;
        struct error err = ERROR_INIT;
        struct json_writer w;
        json_writer_init(&w, &text);
        json_array_begin(&w);
        convert(openb_cluster_pods, rows[i].text, &w, &warnings);
        json_array_end(&w);
        expect_str(rows[i].row, rows[i].warnings, strbuf_str(&warnings));
        expect_int(rows[i].row, 0, json_parse(&doc, strbuf_str(&text), text.len, &err));
        expect_int(rows[i].row, (int64_t)rows[i].objects, (int64_t)json_len(json_root(doc)));
    }
    expect_done();
}

static void a_trace_is_a_cluster(void **state)
{
    (void)state;
    static const char nodes[] = "sn,cpu_milli,memory_mib,gpu,model\n"
                                "node-0,8000,16384,2,T4\n"
                                "node-1,8000,16384,2,P100\n"
                                "node-2,4000,8192,0,\n";
    static const char pods[] =
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time\n"
        "pod-0,1000,1024,1,460,T4,LS,Running,10\n"
        "pod-1,1000,1024,1,540,T4,LS,Running,11\n"
        "pod-2,1000,1024,2,1000,,BE,Failed,12\n"
        "pod-3,1000,1024,1,1000,V100M16|T4,LS,Pending,13\n"
        "pod-4,1000,1024,1,10,,LS,Pending,14\n"
        "pod-5,4000,1024,0,0,,LS,Pending,15\n"
        "pod-6,4000,1024,x,0,,LS,Pending,15\n";
    static const char expected[] =
        "POD          NODE    CARDS\n"
        "openb/pod-0  node-0  GPU0: 460 GiB\n"
        "openb/pod-1  node-0  GPU0: 540 GiB\n"
        "openb/pod-2  node-1  GPU0: 1000 GiB, GPU1: 1000 GiB\n"
        "openb/pod-3  node-0  GPU1: 1000 GiB\n"
        "openb/pod-5  node-1  -\n"
        "\n"
        "WAITING      WHY\n"
        "openb/pod-4  0/3 nodes fit: 2 have too little aliyun.com/gpu-mem (asked: 10, largest free: 0 "
        "on node-0), 1 does not offer aliyun.com/gpu-mem\n"
        "\n"
        "5 of 6 pods placed, 1 waits\n"
        "allocated: cpu 40.0 %, memory 12.5 %, aliyun.com/gpu-mem 100.0 %\n";
    AUTO_STRBUF text = {0};
    AUTO_STRBUF warnings = {0};
    AUTO_STRBUF out = {0};
    AUTO_JSON *doc = NULL;
    struct error err = ERROR_INIT;
    struct json_writer w;
    json_writer_init(&w, &text);
    json_object_begin(&w);
    json_kv_str(&w, "kind", "List");
    json_key(&w, "items");
    json_array_begin(&w);
    convert(openb_cluster_nodes, nodes, &w, &warnings);
    convert(openb_cluster_pods, pods, &w, &warnings);
    json_array_end(&w);
    json_object_end(&w);
    expect_str("a row", "line 8: num_gpu: not an integer: 'x'\n", strbuf_str(&warnings));
    expect_int("a List", 0, json_parse(&doc, strbuf_str(&text), text.len, &err));

    struct cluster c;
    struct replay_run run;
    struct replay_load load;
    cluster_init(&c, NAME_SCHEDULER);
    replay_run_init(&run, &c);
    replay_load_init(&load, &c, &run.hooks);
    replay_load_object(&load, json_root(doc), "");
    replay_load_finish(&load);
    replay_run_all(&run);
    replay_report_text(&(struct replay_report){.run = &run}, &out);
    expect_str("placed", expected, strbuf_str(&out));
    replay_run_deinit(&run);
    cluster_deinit(&c);
    replay_load_deinit(&load);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_read_or_named),
        cmocka_unit_test(a_trace_is_a_cluster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
