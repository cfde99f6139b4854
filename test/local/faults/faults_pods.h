// SPDX-License-Identifier: Apache-2.0
/*
 * faults_pods - pods that vanish and come back under the same name, as when a controller is faster
 * than everyone who watches.
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
