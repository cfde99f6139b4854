// SPDX-License-Identifier: Apache-2.0
/*
 * faults_pods - deletes pods and creates them again under the same name, as a controller does that
 * is faster than the watchers.
 */
#pragma once

#include <stdint.h>

#include "test/local/api/api.h"

struct faults_pods {
    struct api *api;
    struct store *store;
};

/* arg is a struct faults_pods: for faults_config.recreate. */
int faults_pods_recreate(void *arg, const char *ns, const char *selector, int64_t count,
                         int64_t *done, struct error *err);
