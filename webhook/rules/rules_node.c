// SPDX-License-Identifier: Apache-2.0
/* The two labels that choose a node's GPU mode. Only labels that the request changes are checked:
 * other clients update nodes all the time and are not responsible for the rest. */
#include "lib/base/str.h"
#include "lib/model/gpu.h"
#include "lib/model/names.h"
#include "webhook/rules/rules_internal.h"

static const char *before(const struct rules_subject *s, const char *key)
{
    json *labels = json_get(json_get(s->old, "metadata"), "labels");
    return json_get_str(labels, key);
}

/* The plugin keeps the last mode, so removing the label does not restore whole cards. */
static void check_removal(struct pod_view *own, const struct rules_subject *s)
{
    const char *was = before(s, NAME_LABEL_GPU_MODE);
    enum gpu_mode mode = GPU_MODE_DEFAULT;
    if (was && gpu_mode_parse(was, &mode) && mode != GPU_MODE_DEFAULT)
        pod_view_warn(own,
                      "metadata.labels[" NAME_LABEL_GPU_MODE
                      "]: without it the node stays in mode %s; write default for whole cards",
                      was);
}

void rules_node_check(struct pod_view *own, const struct rules_subject *s)
{
    const char *mode_text = pod_view_label(own, NAME_LABEL_GPU_MODE);
    const char *placement = pod_view_label(own, NAME_LABEL_GPU_PLACEMENT);
    enum gpu_mode mode = GPU_MODE_DEFAULT;
    bool mode_is_new = mode_text && !str_eq(mode_text, before(s, NAME_LABEL_GPU_MODE));
    bool placement_is_new = placement && !str_eq(placement, before(s, NAME_LABEL_GPU_PLACEMENT));
    bool legal = !mode_text || gpu_mode_parse(mode_text, &mode);
    if (!mode_text)
        check_removal(own, s);
    if (mode_is_new && !legal)
        pod_view_refuse(
            own, "metadata.labels[" NAME_LABEL_GPU_MODE "]: %s is not a mode; write one of %s",
            pod_view_quote(own, mode_text), gpu_mode_names());
    if (placement_is_new && !str_eq(placement, "binpack") && !str_eq(placement, "spread"))
        pod_view_refuse(own,
                        "metadata.labels[" NAME_LABEL_GPU_PLACEMENT
                        "]: %s is not known; write binpack or spread",
                        pod_view_quote(own, placement));
    else if (placement && (placement_is_new || mode_is_new) && legal && !gpu_mode_is_shared(mode))
        pod_view_warn(own,
                      "metadata.labels[" NAME_LABEL_GPU_PLACEMENT
                      "]: %s means nothing %s%s; it is for cgpu, core_mem, share and mps",
                      pod_view_quote(own, placement),
                      mode_text ? "in mode " : "without label " NAME_LABEL_GPU_MODE,
                      str_or_empty(mode_text));
}
