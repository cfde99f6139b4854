// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/settings.h"

#include <stdlib.h>

#include "lib/base/str.h"
#include "lib/model/names.h"

#define PROGRAM SETTINGS_PROGRAM

#define OFFSET(field) offsetof(struct settings, field)

const struct option_row settings_rows[] = {
    {.section = "NODE"},
    {.name = "node-name",
     .kind = OPTION_STRING,
     .offset = OFFSET(node),
     .meta = "NAME",
     .help = "Name of the Node object that this process serves. Also read from NODE_NAME."},
    {.name = "state-dir",
     .kind = OPTION_STRING,
     .offset = OFFSET(state_dir),
     .fallback = "/var/lib/cosched",
     .meta = "DIR",
     .help =
         "Remembers the node's mode, its pods, their CPUs and its sick cards over restarts and reboots. Made if its parent exists."},
    {.section = "MODES"},
    {.name = "exclusive-resource",
     .kind = OPTION_CHOICE,
     .offset = OFFSET(exclusive),
     .choices = "on|off",
     .fallback = "on",
     .help = "off leaves " NAME_RES_NVIDIA_GPU " in mode default to another device plugin."},
    {.name = "publish-interval",
     .kind = OPTION_DURATION,
     .offset = OFFSET(publish_interval_ms),
     .fallback = "10s",
     .min = 500,
     .max = 3600 * 1000,
     .meta = "DURATION",
     .help =
         "How long after a change of the Node (inventory, labels, " NAME_RES_GPU_COUNT
         ") the next one waits. Every change goes to all who watch nodes: shorter is for tests."},
    {.section = "KUBELET"},
    {.name = "kubelet-dir",
     .kind = OPTION_STRING,
     .offset = OFFSET(kubelet_dir),
     .fallback = "/var/lib/kubelet",
     .meta = "DIR",
     .help = "The kubelet's root directory, absolute."},
    {.name = "device-plugin-dir",
     .kind = OPTION_STRING,
     .offset = OFFSET(plugin_dir),
     .meta = "DIR",
     .help = "Where kubelet.sock and our sockets are. KUBELET-DIR/device-plugins unless set."},
    {.name = "pod-resources-socket",
     .kind = OPTION_STRING,
     .offset = OFFSET(pod_resources),
     .meta = "FILE",
     .help =
         "The kubelet's pod resources service. KUBELET-DIR/pod-resources/kubelet.sock unless set."},
    {0}};

const struct option_program settings_program = {
    .name = PROGRAM,
    .summary =
        "offers a node's GPUs to the kubelet, whole or in shares, and keeps pinned containers on their CPUs",
    .synopsis = "--node-name=NAME [OPTION]...",
    .description =
        "Runs on every node, as root. The node's label " NAME_LABEL_GPU_MODE " chooses the mode:\n"
        "\n"
        "    default               " NAME_RES_NVIDIA_GPU ": whole cards\n"
        "    cgpu, share, mps      " NAME_RES_GPU_MEM ": GiB of card memory\n"
        "    core_mem              " NAME_RES_GPU_MEM " and " NAME_RES_GPU_CORE "\n"
        "    topology              " NAME_RES_GPU ": whole cards, chosen by how they are linked\n"
        "\n"
        "A mode is left only when no container holds a GPU, and stays when the label is removed. Each container gets the "
        "cards that the scheduler wrote into its pod's annotations; a pod that came by another way gets cards by label " NAME_LABEL_GPU_PLACEMENT
        ", which are written there. A request that cannot be served is refused with a sentence. The node's cards are published in annotation " NAME_ANN_GPU_INVENTORY
        ", its CPUs in " NAME_ANN_CPU_TOPOLOGY
        ". Containers of pods that ask for it (" NAME_ANN_CPUSET_SCHEDULER
        ") are kept on the CPUs that the scheduler wrote into annotation " NAME_ANN_CPUSET ".",
    .trailer =
        "SIGNALS\n"
        "    SIGTERM, SIGINT  close the sockets and exit, within 2 seconds\n"
        "\n"
        "FILES\n"
        "    KUBELET-DIR/device-plugins/cosched-*.sock  one socket for each resource\n"
        "    STATE-DIR/mode.json                        the mode that the node is in\n"
        "    STATE-DIR/pods.json                        its GPU pods and their cards, for when the API server is away\n"
        "    STATE-DIR/health.json                      cards that are sick, until they have proved well\n"
        "\n"
        "EXAMPLES\n"
        "    On a node:\n"
        "        " PROGRAM " --node-name=$(hostname)\n"
        "    With two simulated cards, outside a cluster's pods:\n"
        "        " PROGRAM " --node-name=n1 --backend=sim --sim-file=cards.json \\\n"
        "            --kubeconfig=$KUBECONFIG --isolation=none --state-dir=/tmp/cosched\n",
};

/* The option's path, or the default below --kubelet-dir. */
static int place(char out[RPC_PATH_MAX + 1], const char *given, const char *option,
                 const char *kubelet_dir, const char *usual, struct error *err)
{
    bool set = given != NULL && given[0] != '\0';
    const char *path = set ? given : kubelet_dir;
    bool fits = set ? str_format(out, RPC_PATH_MAX + 1, "%s", given)
                    : str_format(out, RPC_PATH_MAX + 1, "%s/%s", kubelet_dir, usual);
    if (!fits || path[0] != '/')
        return error_set(err, ERROR_INVALID,
                         "%s: must be absolute, and sockets there at most %d bytes long: '%s'",
                         set ? option : "--kubelet-dir", RPC_PATH_MAX, path);
    return 0;
}

int settings_settle(struct settings *s, struct error *err)
{
    if (s->node == NULL || s->node[0] == '\0')
        s->node = getenv("NODE_NAME");
    if (s->node == NULL || s->node[0] == '\0')
        return error_set(err, ERROR_INVALID, "--node-name (or NODE_NAME) is needed");
    if (place(s->plugin_path, s->plugin_dir, "--device-plugin-dir", s->kubelet_dir,
              "device-plugins", err) < 0)
        return -1;
    return place(s->pod_resources_path, s->pod_resources, "--pod-resources-socket", s->kubelet_dir,
                 "pod-resources/kubelet.sock", err);
}
