// SPDX-License-Identifier: Apache-2.0
#include "test/local/controllers/job_index.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "test/local/controllers/controllers_internal.h"

enum { DONE = 1, TAKEN = 2 };

void job_index_init(struct job_index *x, int64_t completions, const char *done)
{
    x->n = num_min(num_max(completions, 0), JOB_INDEX_MAX);
    x->marks = mem_new(unsigned char, (size_t)x->n);
    while (done && *done) {
        size_t part = strcspn(done, ",");
        size_t dash = strcspn(done, "-,");
        int64_t first, last;
        if (num_parse(done, dash, &first, NULL) == 0) {
            last = first;
            if (dash < part && num_parse(done + dash + 1, part - dash - 1, &last, NULL) < 0)
                last = first;
            for (int64_t i = num_max(first, 0); i <= last && i < x->n; i++)
                x->marks[i] |= DONE;
        }
        done += part + (done[part] == ',');
    }
}

void job_index_deinit(struct job_index *x)
{
    free(x->marks);
    x->marks = NULL;
}

bool job_index_add(struct job_index *x, int64_t i)
{
    if (i < 0 || i >= x->n || (x->marks[i] & DONE))
        return false;
    x->marks[i] |= DONE;
    return true;
}

void job_index_take(struct job_index *x, int64_t i)
{
    if (i >= 0 && i < x->n)
        x->marks[i] |= TAKEN;
}

int64_t job_index_free(struct job_index *x)
{
    for (int64_t i = 0; i < x->n; i++)
        if (!x->marks[i]) {
            x->marks[i] |= TAKEN;
            return i;
        }
    return -1;
}

void job_index_print(const struct job_index *x, struct strbuf *out)
{
    for (int64_t i = 0; i < x->n; i++) {
        if (!(x->marks[i] & DONE))
            continue;
        int64_t last = i;
        while (last + 1 < x->n && (x->marks[last + 1] & DONE))
            last++;
        strbuf_addf(out, "%s%lld", out->len ? "," : "", (long long)i);
        if (last > i) /* two in a row are "0,1" in the real one */
            strbuf_addf(out, last == i + 1 ? ",%lld" : "-%lld", (long long)last);
        i = last;
    }
}

static void add_environment(struct jsontree *t, struct jsonnode *containers)
{
    for (size_t i = 0; i < jsonnode_len(containers); i++) {
        struct jsonnode *one = jsonnode_at(containers, i), *env = jsonnode_get(one, "env");
        bool there = false;
        for (size_t k = 0; k < jsonnode_len(env); k++)
            there |= str_eq(jsonnode_get_str(jsonnode_at(env, k), "name"), "JOB_COMPLETION_INDEX");
        if (there)
            continue;
        if (!jsonnode_is_array(env)) {
            env = jsonnode_array(t);
            jsonnode_set(t, one, "env", env);
        }
        struct jsonnode *var = jsonnode_object(t);
        jsonnode_set_str(t, var, "name", "JOB_COMPLETION_INDEX");
        struct jsonnode *field = jsonnode_need_path(t, var, "valueFrom", "fieldRef", NULL);
        jsonnode_set_str(t, field, "apiVersion", "v1");
        jsonnode_set_str(t, field, "fieldPath", "metadata.labels['" CONTROLLERS_INDEX "']");
        jsonnode_append(env, var);
    }
}

void job_index_mark(struct jsontree *t, struct jsonnode *pod, const char *job, int64_t i)
{
    char number[24], host[300];
    str_format(number, sizeof number, "%lld", (long long)i);
    str_format(host, sizeof host, "%.200s-%s", job, number);
    struct jsonnode *spec = jsonnode_get(pod, "spec");
    jsonnode_set_str(t, jsonnode_need_path(t, pod, "metadata", "annotations", NULL),
                     CONTROLLERS_INDEX, number);
    jsonnode_set_str(t, jsonnode_need_path(t, pod, "metadata", "labels", NULL), CONTROLLERS_INDEX,
                     number);
    if (!jsonnode_get_str(spec, "hostname"))
        jsonnode_set_str(t, spec, "hostname", host);
    add_environment(t, jsonnode_get(spec, "containers"));
    add_environment(t, jsonnode_get(spec, "initContainers"));
}
