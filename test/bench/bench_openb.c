// SPDX-License-Identifier: Apache-2.0
/*
 * bench_openb - how much of the cards of a cluster can be used, by the placement policy: the
 * experiment of the paper on FGD (ATC'23), in process.
 *
 * GPU nodes only. Pods sorted by name and shuffled by the seeds 42 to 51; then uniform samples with
 * replacement until 130 % of the capacity has been requested. One at a time; a pod that does not
 * fit is dropped; none leaves. The figure is the mean of the allocated part of the cards while the
 * requested part rounds to 100 % (and to 130 %).
 *
 * In the same run: random, best-fit, FGD (which knows the most frequent shapes, 95 % of the trace),
 * ours (which knows the trace's demand too), and ours when it begins with nothing and learns from
 * the arrivals. The harness proves itself: best-fit and FGD must come to the published means.
 *
 * Third, the default trace with departures: each pod leaves after the time that the trace recorded
 * for it, and pods come whenever the load that was offered (those refused counted until they would
 * have left) is below 95 %: the same arrivals at the same times for every policy.
 *
 * Nothing is measured but one CPU time, so the figures are the same everywhere.
 *
 *     bench_openb [--data DIR] [TRACE...]
 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "lib/base/heap.h"
#include "scheduler/accounts/prices.h"
#include "test/bench/openb_run.h"
#include "test/bench/result.h"

enum { SEEDS = 10, FIRST_SEED = 42, POLICIES = OPENB_LEARNING + 1 };

/* Published means in hundredths of a point, and by how many of them FGD must be beaten. */
struct published {
    const char *name;
    int64_t best_fit, fgd, goal;
};

static const struct published published[] = {
    {"default", 9286, 9523, 90},    {"gpushare40", 9144, 9396, 75}, {"multigpu30", 9457, 9636, 65},
    {"gpuspec20", 8846, 9466, 120}, {"cpu100", 9326, 9521, 90},
};

/* In hundred-thousandths of the capacity. */
struct figure {
    int64_t at_100, at_130;
};

static struct figure run(const struct openb_trace *t, enum openb_policy policy, uint64_t seed)
{
    struct openb_run r;
    uint32_t len;
    int64_t arrived = 0, sum[2] = {0}, count[2] = {0};
    uint64_t chance = seed;
    uint32_t *order = openb_arrivals(t, 130, &chance, &len);
    openb_start(&r, t, policy, seed);
    for (uint32_t i = 0; i < len; i++) {
        uint32_t shape = t->pods.items[order[i]].shape;
        int32_t card;
        arrived += openb_milli(&t->shapes.items[shape]);
        (void)openb_place(&r, shape, &card);
        int64_t percent = (200 * arrived + t->capacity) / (2 * t->capacity);
        for (int k = 0; k < 2; k++)
            if (percent == (k == 0 ? 100 : 130)) {
                sum[k] += 100000 * r.used / t->capacity;
                count[k]++;
            }
    }
    openb_end(&r);
    free(order);
    return (struct figure){sum[0] / num_max(count[0], 1), sum[1] / num_max(count[1], 1)};
}

struct outcome {
    struct figure mean;
    struct figure of[SEEDS];
    int64_t us; /* CPU of one run, on average */
};

static void print_row(const char *trace, const char *policy, const struct outcome *o)
{
    printf("%-12s %-9s %6.2f %6.2f %8" PRId64 "\n", trace, policy, (double)o->mean.at_100 / 1000,
           (double)o->mean.at_130 / 1000, o->us / 1000);
    (void)fflush(stdout);
}

/* Of thousandths of a percent. */
static double percent_of(int64_t thousandths)
{
    return (double)thousandths / 1000;
}

static void compare(const char *trace, const struct published *p, const struct outcome *all)
{
    const struct outcome *fgd = &all[OPENB_FGD], *ours = &all[OPENB_OURS];
    int64_t gain = ours->mean.at_100 - fgd->mean.at_100, worst = INT64_MAX;
    for (int i = 0; i < SEEDS; i++)
        worst = num_min(worst, ours->of[i].at_100 - fgd->of[i].at_100);
    char name[128];
    struct result r = {.name = name, .unit = "percent", .places = 2};
    (void)str_format(name, sizeof name, "openb-%s", trace);
    r.value = percent_of(ours->mean.at_100);
    r.baseline = percent_of(fgd->mean.at_100);
    r.goal = r.baseline + (p != NULL ? (double)p->goal / 100 : 0);
    r.met = result_met(gain >= (p != NULL ? p->goal * 10 : 0) && worst >= 0);
    result_print(&r,
                 "gain=%.2f worst-seed=%.2f at-130=%.2f at-130-fgd=%.2f best-fit=%.2f random=%.2f",
                 percent_of(gain), percent_of(worst), percent_of(ours->mean.at_130),
                 percent_of(fgd->mean.at_130), percent_of(all[OPENB_BEST_FIT].mean.at_100),
                 percent_of(all[OPENB_RANDOM].mean.at_100));
    int64_t learning = all[OPENB_LEARNING].mean.at_100;
    (void)str_format(name, sizeof name, "openb-%s-learning", trace);
    r.value = percent_of(learning);
    r.goal = r.baseline;
    r.met = result_met(learning >= fgd->mean.at_100);
    result_print(&r, "gain=%.2f", percent_of(learning - fgd->mean.at_100));
    if (p != NULL) {
        int64_t best_fit = all[OPENB_BEST_FIT].mean.at_100 - p->best_fit * 10;
        int64_t by = fgd->mean.at_100 - p->fgd * 10;
        (void)str_format(name, sizeof name, "openb-%s-proof", trace);
        r.value = percent_of(fgd->mean.at_100);
        r.goal = r.baseline = percent_of(p->fgd * 10);
        r.met = result_met(by <= 200 && by >= -200 && best_fit <= 300 && best_fit >= -300);
        result_print(&r, "off=%.2f may-be-off=0.20 best-fit-off=%.2f best-fit-may-be-off=0.30",
                     percent_of(by), percent_of(best_fit));
    }
    (void)str_format(name, sizeof name, "openb-%s-run", trace);
    result_print(&(struct result){.name = name,
                                  .unit = "s",
                                  .places = 3,
                                  .value = (double)ours->us / 1e6,
                                  .baseline = (double)fgd->us / 1e6,
                                  .goal = 1,
                                  .met = result_met(ours->us <= 1000000)},
                 "%s", "");
}

static void measure(const struct openb_trace *t, const char *name)
{
    struct outcome all[POLICIES] = {0};
    const struct published *p = NULL;
    for (size_t i = 0; i < sizeof published / sizeof published[0]; i++)
        if (str_eq(published[i].name, name))
            p = &published[i];
    for (int policy = 0; policy < POLICIES; policy++) {
        struct outcome *o = &all[policy];
        for (int i = 0; i < SEEDS; i++) {
            int64_t from = result_cpu_us();
            o->of[i] = run(t, (enum openb_policy)policy, (uint64_t)(FIRST_SEED + i));
            o->us += (result_cpu_us() - from) / SEEDS;
            o->mean.at_100 += o->of[i].at_100;
            o->mean.at_130 += o->of[i].at_130;
        }
        o->mean.at_100 /= SEEDS;
        o->mean.at_130 /= SEEDS;
        print_row(name, openb_policies[policy], o);
    }
    compare(name, p, all);
}

/* ---- with departures ---- */

enum { DEPARTURE_ARRIVALS = 30000, DEPARTURE_LOAD = 95 };

struct stay {
    struct heap_node heap;
    int64_t until_s;
    uint32_t shape, number;
    int32_t node, card; /* node -1: it was refused */
};

static bool leaves_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct stay *x = container_of_const(a, struct stay, heap);
    const struct stay *y = container_of_const(b, struct stay, heap);
    return x->until_s != y->until_s ? x->until_s < y->until_s : x->number < y->number;
}

struct departures {
    int64_t allocated; /* mean, in hundred-thousandths */
    int64_t refused;   /* pods that asked for cards */
    int64_t asked;
};

static void run_departures(const struct openb_trace *t, enum openb_policy policy, uint64_t seed,
                           struct departures *out)
{
    struct openb_run r;
    struct heap staying;
    struct stay *all = mem_new(struct stay, DEPARTURE_ARRIVALS);
    uint32_t *order = mem_new(uint32_t, t->pods.len);
    int64_t offered = 0, now = 0, sum = 0, count = 0;
    uint64_t chance = seed;
    openb_shuffle(order, (uint32_t)t->pods.len, &chance);
    openb_start(&r, t, policy, seed);
    heap_init(&staying, leaves_before);
    for (uint32_t i = 0; i < DEPARTURE_ARRIVALS; i++) {
        uint32_t pod = i < t->pods.len ? order[i] : openb_below(&chance, (uint32_t)t->pods.len);
        struct stay *s = &all[i];
        *s = (struct stay){.shape = t->pods.items[pod].shape, .number = i};
        int64_t milli = openb_milli(&t->shapes.items[s->shape]);
        while (offered + milli > t->capacity / 100 * DEPARTURE_LOAD && heap_top(&staying) != NULL) {
            struct stay *gone = container_of(heap_pop(&staying), struct stay, heap);
            now = gone->until_s;
            offered -= openb_milli(&t->shapes.items[gone->shape]);
            if (gone->node >= 0)
                openb_leave(&r, gone->shape, gone->node, gone->card);
            count += count == 0; /* from the first time on that the load was reached */
        }
        offered += milli;
        s->until_s = now + t->pods.items[pod].lasts_s;
        s->node = openb_place(&r, s->shape, &s->card);
        heap_push(&staying, &s->heap);
        if (count > 0) {
            sum += 100000 * r.used / t->capacity;
            count++;
            out->asked += milli > 0;
            out->refused += milli > 0 && s->node < 0;
        }
    }
    out->allocated += sum / num_max(count - 1, 1);
    heap_deinit(&staying);
    openb_end(&r);
    free(order);
    free(all);
}

static void measure_departures(const struct openb_trace *t, const char *name)
{
    struct departures of[POLICIES] = {0};
    for (int policy = OPENB_BEST_FIT; policy < POLICIES; policy++) {
        for (int i = 0; i < SEEDS; i++)
            run_departures(t, (enum openb_policy)policy, (uint64_t)(FIRST_SEED + i), &of[policy]);
        of[policy].allocated /= SEEDS;
        printf("%-12s %-9s departures: %.2f %% allocated, %" PRId64 " of %" PRId64
               " pods with cards refused\n",
               name, openb_policies[policy], (double)of[policy].allocated / 1000,
               of[policy].refused, of[policy].asked);
    }
    const struct departures *ours = &of[OPENB_LEARNING], *fgd = &of[OPENB_FGD];
    char result[128];
    (void)str_format(result, sizeof result, "openb-%s-departures", name);
    result_print(&(struct result){.name = result,
                                  .unit = "percent",
                                  .places = 2,
                                  .value = percent_of(ours->allocated),
                                  .baseline = percent_of(fgd->allocated),
                                  .goal = percent_of(fgd->allocated),
                                  .met = result_met(ours->allocated >= fgd->allocated)},
                 "best-fit=%.2f known=%.2f refused=%" PRId64 " refused-fgd=%" PRId64
                 " refused-best-fit=%" PRId64,
                 percent_of(of[OPENB_BEST_FIT].allocated), percent_of(of[OPENB_OURS].allocated),
                 ours->refused, fgd->refused, of[OPENB_BEST_FIT].refused);
}

/* ---- files ---- */

static void warn(void *arg, const char *text)
{
    (void)arg;
    fprintf(stderr, "bench_openb: %s\n", text);
}

static void measure_file(const char *data, const char *name)
{
    struct error err = ERROR_INIT;
    struct openb_trace t = {0};
    AUTO_STRBUF nodes = {0}, pods = {0};
    strbuf_addf(&nodes, "%s/openb/openb_node_list_gpu_node.csv", data);
    strbuf_addf(&pods, "%s/openb/openb_pod_list_%s.csv", data, name);
    bool read = openb_read(&t, strbuf_str(&nodes), strbuf_str(&pods), (struct csv_warn){warn, NULL},
                           &err) == 0;
    if (read)
        measure(&t, name);
    if (read && str_eq(name, "default"))
        measure_departures(&t, name);
    if (!read && err.code == ERROR_NOT_FOUND)
        printf("SKIPPED name=openb-%s why=\"%s; these files are data/csv/openb_*.csv in the "
               "repository hkust-adsl/kubernetes-scheduler-simulator\"\n",
               name, err.text);
    else if (!read)
        result_fail(name, err.text);
    openb_free(&t);
}

int main(int argc, char **argv)
{
    const char *data = "../shared/data";
    int at = 1;
    if (argc > 2 && str_eq(argv[1], "--data")) {
        data = argv[2];
        at = 3;
    }
    printf("trace        policy     100 %%   130 %%   CPU ms\n");
    for (int i = at; i < argc; i++)
        measure_file(data, argv[i]);
    for (size_t i = 0; at == argc && i < sizeof published / sizeof published[0]; i++)
        measure_file(data, published[i].name);
    return 0;
}
