// SPDX-License-Identifier: Apache-2.0
/*
 * replay_openb - the openb traces (nodes and pods of a GPU cluster as CSV) → cluster.
 *
 * The trace asks for GPUs in thousandths of a card, and its nodes mix pods with a part of a card and pods with whole ones. So every GPU node is in mode `share`, and a thousandth
 * of a card is one GiB of aliyun.com/gpu-mem on cards of 1000 GiB: exact, nothing is rounded. Whole cards ask for 1000 GiB of each; several cards by the label aliyun.com/gpu-count.
 */
#pragma once

#include "lib/base/error.h"
#include "scheduler/replay/replay_load.h"

enum { REPLAY_OPENB_CARD_GIB = 1000 };

/* Columns are found by their names in the first line: sn,cpu_milli,memory_mib,gpu,model. A row that cannot be read is a warning with its line. */
int replay_openb_nodes(struct replay_load *l, const char *path, struct error *err);
/* name,cpu_milli,memory_mib,num_gpu,gpu_milli and, where they are, gpu_spec ("T4|P100": only these models) and creation_time. Every pod waits, whatever its pod_phase. */
int replay_openb_pods(struct replay_load *l, const char *path, struct error *err);
