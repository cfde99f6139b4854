// SPDX-License-Identifier: Apache-2.0
/*
 * pinner_plan - the decisions:
 *
 *   annotation     nothing held               held                            held and released
 *   none           nothing                    release                         nothing
 *   the same       take                       keep                            take
 *   fewer CPUs     take                       take: a loan is reclaimed       take
 *   other CPUs     take                       refuse, what is held stays      refuse
 *
 * The grant confirmed first is the limit for the pod's lifetime. The scheduler only ever shrinks
 * it. Anything beyond it was not written by the scheduler, and could move a container onto
 * another's CPUs.
 */
#include "device-plugin/cpu/pinner_plan.h"

static bool has_cpu(const struct cpu_topology *t, unsigned cpu)
{
    return cpu_topology_core_of(t, cpu) != TOPOLOGY_NO_CORE || cpuset_has(&t->offline, cpu);
}

/* Does every CPU exist, on the NUMA node that the grant names? */
static bool fits_machine(const struct cpu_grant *c, const struct cpu_topology *t,
                         struct strbuf *why)
{
    for (size_t i = 0; i < c->len; i++) {
        const struct cpu_grant_part *p = &c->parts[i];
        for (int cpu = -1; (cpu = cpuset_next(&p->cpus, cpu)) >= 0;) {
            if (!has_cpu(t, (unsigned)cpu)) {
                strbuf_addf(why, "the node has no CPU %d", cpu);
                return false;
            }
            bool there =
                (size_t)p->numa < t->numa_len && cpuset_has(&t->numa[p->numa], (unsigned)cpu);
            if (!there && !cpuset_has(&t->offline, (unsigned)cpu)) {
                strbuf_addf(why, "CPU %d is not on NUMA node %d", cpu, (int)p->numa);
                return false;
            }
        }
    }
    return true;
}

static bool is_free(const struct cpu_grant *c, const struct cpuset *taken, struct strbuf *why)
{
    struct cpuset both;
    pinner_plan_all(c, &both);
    cpuset_intersect(&both, taken);
    if (cpuset_is_empty(&both))
        return true;
    strbuf_adds(why, "CPUs ");
    cpuset_print(&both, why);
    strbuf_adds(why, " are bound to another pod");
    return false;
}

enum pinner_verdict pinner_plan(const struct pinner_facts *f, struct strbuf *why)
{
    bool holds = f->held->len > 0 && !f->released;
    if (f->unreadable != NULL) {
        strbuf_adds(why, f->unreadable);
        return PINNER_REFUSE;
    }
    if (f->asked->len == 0)
        return holds ? PINNER_RELEASE : PINNER_NOTHING;
    if (f->is_static) {
        strbuf_adds(
            why, "the kubelet's cpuManagerPolicy is static and would pin as well; it must be none");
        return PINNER_REFUSE;
    }
    if (holds && cpu_grant_equal(f->asked, f->held))
        return PINNER_KEEP;
    if (f->held->len > 0 && !cpu_grant_is_within(f->asked, f->held)) {
        strbuf_adds(
            why, "it exceeds the CPUs that were first granted to the pod; somebody has edited it");
        return PINNER_REFUSE;
    }
    if (!fits_machine(f->asked, f->machine, why) || (!holds && !is_free(f->asked, f->taken, why)))
        return PINNER_REFUSE;
    return PINNER_TAKE;
}

void pinner_plan_all(const struct cpu_grant *c, struct cpuset *out)
{
    cpuset_clear(out);
    for (size_t i = 0; i < c->len; i++)
        cpuset_union(out, &c->parts[i].cpus);
}

bool pinner_plan_cpus(const struct cpu_grant *held, uint32_t container,
                      const struct cpu_topology *machine, struct cpuset *out)
{
    if (container == PINNER_ANY)
        pinner_plan_all(held, out);
    else
        cpu_grant_of(held, container, out);
    cpuset_subtract(out, &machine->offline);
    return !cpuset_is_empty(out);
}

int pinner_plan_numa(const struct cpu_grant *held)
{
    int numa = held->len > 0 ? (int)held->parts[0].numa : -1;
    for (size_t i = 1; i < held->len; i++)
        if ((int)held->parts[i].numa != numa)
            return -1;
    return numa;
}
