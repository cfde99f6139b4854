// SPDX-License-Identifier: Apache-2.0
/*
 * cleanup - release at the end of the scope.
 *
 *     AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
 *     ...
 *     return take_fd(&fd);     // the caller owns it now
 */
#pragma once

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* p: address of any pointer. memcpy, since a `char *` must not be read through a `void **`. */
static inline void cleanup_free(void *p)
{
    void *held;
    memcpy(&held, p, sizeof held);
    free(held);
}

static inline void cleanup_close(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

#define AUTO_FREE __attribute__((cleanup(cleanup_free)))
#define AUTO_CLOSE __attribute__((cleanup(cleanup_close)))
/* AUTO(foo_freep): for a type's own `static inline void foo_freep(struct foo **)`. */
#define AUTO(fn) __attribute__((cleanup(fn)))

static inline int take_fd(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

static inline void *take_ptr_(void *pp)
{
    void *taken;
    void *none = NULL;
    memcpy(&taken, pp, sizeof taken);
    memcpy(pp, &none, sizeof none);
    return taken;
}
/* take_ptr(&p): returns *p and leaves NULL, so that AUTO_FREE does nothing. */
#define take_ptr(pp) ((__typeof__(*(pp)))take_ptr_(pp))
