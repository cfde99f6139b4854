// SPDX-License-Identifier: Apache-2.0
/* isolation_kernel - an isolation engine: the kernel's limits of device memory (cgroup v2,
 * dmem). */
#pragma once

#include "device-plugin/isolation/isolation.h"

/* The engine's functions: see struct isolation_engine. */
int isolation_kernel_check(const struct isolation_config *c, const struct gpu_inventory *inv,
                           struct error *err);
int isolation_kernel_start(const struct isolation_config *c, const struct gpu_inventory *inv,
                           const struct pod *p, const struct grant *grant, struct error *err);
int isolation_kernel_keep(const struct isolation_config *c, const struct gpu_inventory *inv,
                          const struct pod *p, const struct grant *grant, struct error *err);

enum { ISOLATION_REGION_SIZE = 128 };
/* Finds the memory of the card at this PCI address in the text of dmem.capacity:
 * "drm/0000:3b:00.0/vram0 17095983104". Takes the largest of several. false: not listed. */
bool isolation_kernel_region(const char *text, const char *pci, char region[ISOLATION_REGION_SIZE],
                             int64_t *bytes);
