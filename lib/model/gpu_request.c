// SPDX-License-Identifier: Apache-2.0
#include "lib/model/gpu_request.h"

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/gpu.h"
#include "lib/model/names.h"

enum { PERCENT_STEP = GPU_REQUEST_PERCENT_STEP, PERCENT_MAX = 100 };
#define GIB (INT64_C(1) << 30)

const char *const gpu_request_names[GPU_REQUEST_RESOURCES] = {NAME_RES_ALL_GPU};

/* *list: the list that has the amount; may be NULL. */
static int64_t written(const struct container *c, const char *resource, const char **list)
{
    bool limited;
    int64_t v = resources_get(&c->limits, resource, &limited);
    if (list != NULL)
        *list = limited ? "limits" : "requests";
    return limited ? v : resources_get(&c->requests, resource, NULL);
}

int64_t gpu_request_amount(const struct container *c, const char *resource)
{
    return num_min(written(c, resource, NULL), GPU_REQUEST_MAX);
}

/* On a node an amount that nobody can represent is nothing: the kubelet, whose arithmetic
 * overflows, gives such a pod no card. */
static int64_t amount_of(const struct pod *p, size_t i, const char *resource)
{
    const struct container *c = pod_container(p, i);
    bool none = p->node != NULL && written(c, resource, NULL) == RESOURCES_TOO_LARGE;
    return none ? 0 : gpu_request_amount(c, resource);
}

/* The most that a pod uses of a resource at one time. */
struct peak {
    int64_t total;
    size_t container; /* the init container that needs more than the later ones */
    int64_t beyond;   /* so much more; 0: none does */
};

static struct peak peak_of(const struct pod *p, const char *resource)
{
    int64_t running = 0, sidecars = 0, most = 0;
    struct peak peak = {0};

    for (size_t i = 0; i < pod_container_count(p); i++) {
        const struct container *c = pod_container(p, i);
        int64_t amount = amount_of(p, i, resource);
        if (!pod_container_is_init(p, i)) {
            running = num_add_sat(running, amount);
            sidecars = num_add_sat(sidecars, c->sidecar ? amount : 0);
        } else if (num_add_sat(sidecars, amount) > most) {
            most = num_add_sat(sidecars, amount);
            peak.container = i;
        }
    }
    peak.beyond = num_max(num_sub_sat(most, running), 0);
    peak.total = num_min(num_max(most, running), GPU_REQUEST_MAX);
    return peak;
}

static int64_t share_of(const struct pod *p, size_t i, enum gpu_request_resource resource,
                        const struct peak *peak)
{
    if (!pod_container_is_init(p, i))
        return amount_of(p, i, gpu_request_names[resource]);
    return peak->container == i ? peak->beyond : 0;
}

static void read_shares(const struct pod *p, const struct peak *mem, const struct peak *core,
                        struct arena *a, struct gpu_request *out)
{
    size_t n = pod_container_count(p);

    out->shares = arena_new(a, struct gpu_request_share, n);
    for (size_t i = 0; i < n; i++) {
        struct gpu_request_share s = {.container = (uint32_t)i,
                                      .gib = share_of(p, i, GPU_REQUEST_MEM, mem),
                                      .percent = share_of(p, i, GPU_REQUEST_CORE, core)};
        if (s.gib > 0 || s.percent > 0)
            out->shares[out->shares_len++] = s;
        if (pod_container_is_init(p, i))
            out->one_card |=
                amount_of(p, i, NAME_RES_GPU_MEM) > 0 || amount_of(p, i, NAME_RES_GPU_CORE) > 0;
    }
}

size_t *gpu_request_largest_first(const struct gpu_request *r, struct arena *a)
{
    size_t *order = arena_new(a, size_t, r->shares_len);

    for (size_t i = 0; i < r->shares_len; i++) {
        size_t j = i;
        for (; j > 0 && r->shares[order[j - 1]].gib < r->shares[i].gib; j--)
            order[j] = order[j - 1];
        order[j] = i;
    }
    return order;
}

struct check {
    const struct pod *pod;
    struct arena *arena;
    struct request_errors *errors;
};

static const char *path_of(const struct check *k, size_t container, const char *list,
                           const char *resource)
{
    return arena_printf(k->arena, "%s.resources.%s[%s]",
                        request_container_path(k->pod, container, k->arena), list, resource);
}

static const char *path_of_written(const struct check *k, size_t container, const char *resource)
{
    const char *list;
    (void)written(pod_container(k->pod, container), resource, &list);
    return path_of(k, container, list, resource);
}

/* Extended resources cannot be overcommitted: Kubernetes wants both lists equal. */
static void check_equal(const struct check *k, size_t container, const char *resource)
{
    const struct container *c = pod_container(k->pod, container);
    bool limited, requested;
    int64_t limit = resources_get(&c->limits, resource, &limited);
    int64_t request = resources_get(&c->requests, resource, &requested);
    if (limited && requested && limit != request)
        request_errors_add(k->errors, k->arena,
                           "%s: %lld differs from the limit %lld; write the same, or leave it out",
                           path_of(k, container, "requests", resource), (long long)request,
                           (long long)limit);
}

static void check_percent(const struct check *k, size_t container, int64_t percent)
{
    int64_t below =
        num_max(PERCENT_STEP, num_min(percent, PERCENT_MAX)) / PERCENT_STEP * PERCENT_STEP;
    if (percent < PERCENT_STEP || percent > PERCENT_MAX)
        request_errors_add(
            k->errors, k->arena, "%s: %lld is not between 5 and 100 percent of a card; write %lld",
            path_of_written(k, container, NAME_RES_GPU_CORE), (long long)percent, (long long)below);
    else if (percent % PERCENT_STEP != 0)
        request_errors_add(k->errors, k->arena,
                           "%s: %lld is not a multiple of 5; write %lld or %lld",
                           path_of_written(k, container, NAME_RES_GPU_CORE), (long long)percent,
                           (long long)below, (long long)below + PERCENT_STEP);
}

static void check_container(const struct check *k, size_t container)
{
    const struct container *c = pod_container(k->pod, container);
    int64_t gib = written(c, NAME_RES_GPU_MEM, NULL), percent = written(c, NAME_RES_GPU_CORE, NULL);
    bool limited, requested;
    (void)resources_get(&c->limits, NAME_RES_GPU_COUNT, &limited);
    (void)resources_get(&c->requests, NAME_RES_GPU_COUNT, &requested);

    for (int r = 0; r < GPU_REQUEST_RESOURCES; r++)
        check_equal(k, container, gpu_request_names[r]);
    /* Users write other memory amounts in bytes: the size tells 5Gi from 5. */
    if (gib >= GPU_REQUEST_GIB_MAX)
        request_errors_add(k->errors, k->arena,
                           "%s: is %lld GiB, as the resource counts GiB and not bytes; write %lld",
                           path_of_written(k, container, NAME_RES_GPU_MEM), (long long)gib,
                           (long long)num_max(1, gib / GIB + (gib % GIB > 0)));
    if (percent > 0)
        check_percent(k, container, percent);
    if (percent > 0 && gib == 0)
        request_errors_add(
            k->errors, k->arena,
            "%s: %lld percent of a card without memory of it; write " NAME_RES_GPU_MEM
            " in GiB beside it",
            path_of_written(k, container, NAME_RES_GPU_CORE), (long long)percent);
    if (limited || requested)
        request_errors_add(
            k->errors, k->arena,
            "%s: cannot be asked for, it says how many cards a node has; write "
            "metadata.labels[" NAME_RES_GPU_COUNT "] to spread memory over cards",
            path_of(k, container, limited ? "limits" : "requests", NAME_RES_GPU_COUNT));
}

static const char *first_path(const struct check *k, const char *resource)
{
    size_t i = 0;
    while (i + 1 < pod_container_count(k->pod) &&
           gpu_request_amount(pod_container(k->pod, i), resource) == 0)
        i++;
    return path_of_written(k, i, resource);
}

static void check_kinds(const struct check *k, const struct gpu_request *r)
{
    enum gpu_request_resource kinds[3];
    size_t n = 0;
    if (r->shared)
        kinds[n++] = r->total[GPU_REQUEST_MEM] > 0 ? GPU_REQUEST_MEM : GPU_REQUEST_CORE;
    if (r->total[GPU_REQUEST_CARDS] > 0)
        kinds[n++] = GPU_REQUEST_CARDS;
    if (r->total[GPU_REQUEST_NVIDIA] > 0)
        kinds[n++] = GPU_REQUEST_NVIDIA;
    for (size_t i = 1; i < n; i++)
        request_errors_add(
            k->errors, k->arena,
            "%s: does not go together with %s in one pod: a node has one kind of GPU at a time; "
            "write one of them",
            first_path(k, gpu_request_names[kinds[i]]), gpu_request_names[kinds[0]]);
}

static void check_parts(const struct check *k, int64_t cards)
{
    for (size_t i = 0; i < pod_container_count(k->pod); i++) {
        int64_t gib = gpu_request_amount(pod_container(k->pod, i), NAME_RES_GPU_MEM);
        if (gib % cards != 0)
            request_errors_add(k->errors, k->arena,
                               "%s: %lld GiB cannot be spread over the %lld cards of "
                               "label " NAME_RES_GPU_COUNT
                               " in equal whole parts; write a multiple of %lld",
                               path_of_written(k, i, NAME_RES_GPU_MEM), (long long)gib,
                               (long long)cards, (long long)cards);
        if (gib > 0 && pod_container_is_init(k->pod, i))
            request_errors_add(
                k->errors, k->arena,
                "%s: %lld GiB in an init container cannot be spread over %lld cards, because the "
                "kubelet hands them on in any order; write it in spec.containers, or "
                "label " NAME_RES_GPU_COUNT " 1",
                path_of_written(k, i, NAME_RES_GPU_MEM), (long long)gib, (long long)cards);
    }
}

/* The label's value; 1 if it is absent or invalid. */
static int64_t read_count(const struct check *k, const struct gpu_request *r)
{
    const char *text = labels_get(&k->pod->labels, NAME_RES_GPU_COUNT);
    int64_t cards = 1;
    size_t before = k->errors->len;

    if (text == NULL || (!r->any && r->total[GPU_REQUEST_NVIDIA] == 0))
        return 1;
    if (num_parse_range(text, 1, GPU_CARDS_MAX, &cards, NULL) < 0)
        request_errors_add(k->errors, k->arena,
                           "metadata.labels[" NAME_RES_GPU_COUNT
                           "]: %s is not a number of cards; write an integer from 1 to %d",
                           request_quote(text, k->arena), GPU_CARDS_MAX);
    else if (cards == 1)
        return 1;
    else if (r->total[GPU_REQUEST_CORE] > 0)
        request_errors_add(k->errors, k->arena,
                           "metadata.labels[" NAME_RES_GPU_COUNT
                           "]: %s spreads memory only; remove it, or " NAME_RES_GPU_CORE,
                           request_quote(text, k->arena));
    else if (r->total[GPU_REQUEST_MEM] == 0)
        request_errors_add(
            k->errors, k->arena,
            "metadata.labels[" NAME_RES_GPU_COUNT "]: %s spreads " NAME_RES_GPU_MEM
            " over cards, which this pod does not ask for; write the number of cards into %s",
            request_quote(text, k->arena),
            r->total[GPU_REQUEST_CARDS] > 0 ? NAME_RES_GPU : NAME_RES_NVIDIA_GPU);
    else
        check_parts(k, cards);
    return k->errors->len == before && k->errors->left_out == 0 ? cards : 1;
}

/* Most pods request only CPU and memory. */
static bool has_extra(const struct pod *p)
{
    for (size_t i = 0; i < pod_container_count(p); i++)
        if (pod_container(p, i)->limits.extra_len > 0 ||
            pod_container(p, i)->requests.extra_len > 0)
            return true;
    return false;
}

void gpu_request_read(const struct pod *p, struct arena *a, struct gpu_request *out,
                      struct request_errors *errors)
{
    struct request_errors found = {.len = 0};
    struct check k = {.pod = p, .arena = a, .errors = &found};
    struct peak peaks[GPU_REQUEST_RESOURCES];

    *out = (struct gpu_request){.spread_over = 1};
    if (errors != NULL)
        *errors = found;
    if (!has_extra(p))
        return;
    for (int r = 0; r < GPU_REQUEST_RESOURCES; r++) {
        peaks[r] = peak_of(p, gpu_request_names[r]);
        out->total[r] = peaks[r].total;
    }
    out->shared = out->total[GPU_REQUEST_MEM] > 0 || out->total[GPU_REQUEST_CORE] > 0;
    out->any = out->shared || out->total[GPU_REQUEST_CARDS] > 0;
    if (out->shared)
        read_shares(p, &peaks[GPU_REQUEST_MEM], &peaks[GPU_REQUEST_CORE], a, out);
    for (size_t i = 0; i < pod_container_count(p); i++)
        check_container(&k, i);
    check_kinds(&k, out);
    out->spread_over = read_count(&k, out);
    out->illegal = request_errors_first(&found);
    if (errors != NULL)
        *errors = found;
}
