// SPDX-License-Identifier: Apache-2.0
#include "scheduler/model/failures.h"

#include <stdlib.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/model/gang.h"

struct failures_gang {
    char *key;
    int32_t failed;
};

struct failures_pod {
    char *key, *uid;
    struct failures_gang *gang;
};

void failures_init(struct failures *f)
{
    map_init(&f->pods);
    map_init(&f->gangs);
}

static void pod_free_names(struct failures_pod *p)
{
    free(p->key);
    free(p->uid);
    free(p);
}

static void gang_free_name(struct failures_gang *g)
{
    free(g->key);
    free(g);
}

void failures_deinit(struct failures *f)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&f->pods, &i, &key, &value);)
        pod_free_names(value);
    for (size_t i = 0; map_next(&f->gangs, &i, &key, &value);)
        gang_free_name(value);
    map_deinit(&f->pods);
    map_deinit(&f->gangs);
}

static struct failures_gang *gang_get(struct failures *f, const char *ns, const char *name)
{
    AUTO_STRBUF key = {0};
    strbuf_addf(&key, "%s/%s", ns, name);
    struct failures_gang *g = map_get(&f->gangs, strbuf_str(&key));
    if (g == NULL) {
        g = mem_new(struct failures_gang, 1);
        g->key = strbuf_take(&key);
        map_put(&f->gangs, g->key, g);
    }
    return g;
}

void failures_note(struct failures *f, const struct pod *p)
{
    struct gang_ref ref;
    struct error ignored = ERROR_INIT; /* the pod was refused with this reason while it waited */
    if (p->phase != POD_FAILED || gang_of_pod(p, &ref, &ignored) < 0 || ref.form == GANG_NONE)
        return;
    failures_drop(f, p->key, NULL);
    struct failures_pod *noted = mem_new(struct failures_pod, 1);
    *noted = (struct failures_pod){.key = mem_strdup(p->key),
                                   .uid = mem_strdup(str_or_empty(p->uid)),
                                   .gang = gang_get(f, p->ns, ref.name)};
    noted->gang->failed++;
    map_put(&f->pods, noted->key, noted);
}

void failures_drop(struct failures *f, const char *key, const char *uid)
{
    struct failures_pod *p = map_get(&f->pods, key);
    if (p == NULL || (uid != NULL && !str_eq(p->uid, uid)))
        return;
    struct failures_gang *g = p->gang;
    map_remove(&f->pods, key);
    pod_free_names(p);
    if (--g->failed > 0)
        return;
    map_remove(&f->gangs, g->key);
    gang_free_name(g);
}

int32_t failures_count(const struct failures *f, const char *gang)
{
    const struct failures_gang *g = map_get(&f->gangs, gang);
    return g != NULL ? g->failed : 0;
}
