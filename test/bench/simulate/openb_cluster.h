// SPDX-License-Identifier: Apache-2.0
/*
 * openb_cluster - the openb traces (nodes and pods of a GPU cluster as CSV) as a Kubernetes List,
 * which cosched-replay reads.
 *
 * The trace asks for GPUs in thousandths of a card, and its nodes mix pods with a part of a card
 * and pods with whole ones. So every GPU node is in mode `share`, and a thousandth of a card is one
 * GiB of aliyun.com/gpu-mem on cards of 1000 GiB: exact, nothing is rounded. Whole cards ask for
 * 1000 GiB of each; several cards by the label aliyun.com/gpu-count.
 */
#pragma once

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "test/bench/simulate/csv.h"

enum { OPENB_CLUSTER_CARD_GIB = 1000 };

/* Both write items of a List that the caller has begun. Columns are found by their names in the
 * first line. A row that cannot be read is a warning with its line.
 *
 * sn,cpu_milli,memory_mib,gpu,model */
int openb_cluster_nodes(struct json_writer *w, const char *path, struct csv_warn warn,
                        struct error *err);
/* name,cpu_milli,memory_mib,num_gpu,gpu_milli and, where they are, gpu_spec ("T4|P100": only these
 * models) and creation_time. Every pod waits, whatever its pod_phase. */
int openb_cluster_pods(struct json_writer *w, const char *path, struct csv_warn warn,
                       struct error *err);
