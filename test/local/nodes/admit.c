// SPDX-License-Identifier: Apache-2.0
#include "test/local/nodes/admit.h"

#include "lib/base/num.h"

void admit_add(struct admit_used *u, const struct pod *p)
{
    u->cpu_milli = num_add_sat(u->cpu_milli, p->request.cpu_milli);
    u->memory_bytes = num_add_sat(u->memory_bytes, p->request.memory_bytes);
    u->ephemeral_bytes = num_add_sat(u->ephemeral_bytes, p->request.ephemeral_bytes);
    u->pods++;
}

bool admit_fits(const struct pod *p, const struct admit_used *u,
                const struct resources *allocatable, char *reason, size_t reason_size,
                struct strbuf *message)
{
    const struct {
        const char *name;
        int64_t wanted, used, size;
    } rows[] = {
        {"pods", 1, u->pods, allocatable->pods},
        {"cpu", p->request.cpu_milli, u->cpu_milli, allocatable->cpu_milli},
        {"memory", p->request.memory_bytes, u->memory_bytes, allocatable->memory_bytes},
        {"ephemeral-storage", p->request.ephemeral_bytes, u->ephemeral_bytes,
         allocatable->ephemeral_bytes},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].wanted == 0 || num_add_sat(rows[i].wanted, rows[i].used) <= rows[i].size)
            continue;
        (void)str_format(reason, reason_size, "OutOf%s", rows[i].name);
        strbuf_addf(message,
                    "Node didn't have enough resource: %s, requested: %lld, used: %lld, capacity: "
                    "%lld",
                    rows[i].name, (long long)rows[i].wanted, (long long)rows[i].used,
                    (long long)rows[i].size);
        return false;
    }
    return true;
}
