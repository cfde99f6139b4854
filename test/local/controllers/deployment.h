// SPDX-License-Identifier: Apache-2.0
/*
 * deployment - the state of one sync of a Deployment. For deployment*.c only.
 */
#pragma once

#include "test/local/controllers/controllers_internal.h"

#define DEPLOYMENT_REVISION "deployment.kubernetes.io/revision"
#define DEPLOYMENT_COMPONENT "deployment-controller"

struct deployment_set {
    struct object *o;
    struct jsontree *t;
    struct jsonnode *root;
    int64_t replicas;                                /* spec */
    int64_t has, ready, available, terminating;      /* status */
    int64_t revision, desired, max_size, created_ns; /* desired, max_size: -1 when it says none */
};

struct deployment {
    struct controllers *c;
    struct object *o;
    struct jsontree *t;
    struct jsonnode *root, *spec;
    int64_t replicas, max_surge, max_unavailable;
    bool recreate, paused;
    bool made;                                /* the current set was made just now */
    struct VEC(struct deployment_set *) sets; /* oldest first */
    struct deployment_set *current;           /* the template's, or NULL */
    int64_t *again_ms;
};

/* deployment_sets.c */
int deployment_sets_read(struct deployment *d, struct error *err);
void deployment_sets_deinit(struct deployment *d);
int64_t deployment_sets_old(const struct deployment *d);
int deployment_set_create(struct deployment *d, int64_t replicas, struct error *err);
/* Its size, and what it remembers of the Deployment's. */
int deployment_set_scale(struct deployment *d, struct deployment_set *s, int64_t replicas,
                         struct error *err);
/* The current set has the highest revision, and the deployment the same. */
int deployment_set_revise(struct deployment *d, struct error *err);
int deployment_sets_forget(struct deployment *d, struct error *err);

/* deployment_scale.c */
/* Is spec.replicas another number than the sets with pods know of? */
bool deployment_scale_is_due(const struct deployment *d);
int deployment_scale(struct deployment *d, struct error *err);

/* deployment_status.c */
/* As many pods as wanted, all of the current template and available. */
bool deployment_is_complete(const struct deployment *d);
int deployment_status_write(struct deployment *d, struct error *err);
