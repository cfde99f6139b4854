// SPDX-License-Identifier: Apache-2.0
/* Bytes that the kubelet would not send, and the bounds of those that it may. */
#include "device-plugin/kubelet/wire.h"

#include "test/unit/lib/base/expect.h"

#include "lib/base/str.h"

static struct arena a;

static int setup(void **state)
{
    (void)state;
    arena_init(&a, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_deinit(&a);
    return 0;
}

/* One length-delimited protobuf field. */
static void field(struct strbuf *out, unsigned number, const void *bytes, size_t n)
{
    strbuf_addc(out, (char)(number << 3 | 2));
    for (size_t left = n;; left >>= 7) {
        strbuf_addc(out, (char)(left > 127 ? (left & 127) | 128 : left));
        if (left <= 127)
            break;
    }
    strbuf_add(out, bytes, n);
}

static void text(struct strbuf *out, unsigned number, const char *s)
{
    field(out, number, s, strlen(s));
}

static int decode_allocate(const struct strbuf *b, size_t *containers, size_t *ids,
                           struct error *err)
{
    struct inventory_ids *out = NULL;
    *containers = *ids = 0;
    if (wire_decode_allocate(strbuf_str(b), b->len, &a, &out, containers, err) < 0)
        return -1;
    for (size_t i = 0; i < *containers; i++)
        *ids += out[i].len;
    return 0;
}

static void allocate_requests(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        size_t containers, ids; /* ids of each */
        const char *error;      /* NULL: read */
    } rows[] = {
        {"nothing", 0, 0, NULL},
        {"one container", 1, 3, NULL},
        {"a container without ids", 1, 0, NULL},
        {"the most containers", WIRE_CONTAINERS_MAX, 1, NULL},
        {"one more", WIRE_CONTAINERS_MAX + 1, 1, "65 container requests; at most 64 are read"},
        {"the most ids", 1, WIRE_IDS_MAX, NULL},
        {"one id more", 1, WIRE_IDS_MAX + 1, "65537 device ids; at most 65536 are read"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct error err = ERROR_INIT;
        AUTO_STRBUF one;
        AUTO_STRBUF all;
        strbuf_init(&one);
        strbuf_init(&all);
        for (size_t k = 0; k < rows[i].ids; k++)
            text(&one, 1, "GPU-a-_-0");
        for (size_t k = 0; k < rows[i].containers; k++)
            field(&all, 1, one.ptr, one.len);
        size_t containers, ids;
        expect_int(rows[i].row, rows[i].error == NULL ? 0 : -1,
                   decode_allocate(&all, &containers, &ids, &err));
        if (rows[i].error != NULL) {
            expect_str(rows[i].row, rows[i].error, err.text);
            continue;
        }
        expect_int(rows[i].row, (int64_t)rows[i].containers, (int64_t)containers);
        expect_int(rows[i].row, (int64_t)(rows[i].containers * rows[i].ids), (int64_t)ids);
    }
    expect_done();
}

/* A list with one pod of one container that holds ids of two resources, one of them in two
 * pieces. */
static void add_pod(struct strbuf *out, const char *name, size_t ids)
{
    AUTO_STRBUF mem;
    AUTO_STRBUF other;
    AUTO_STRBUF container;
    AUTO_STRBUF pod;
    strbuf_init(&mem);
    strbuf_init(&other);
    strbuf_init(&container);
    strbuf_init(&pod);
    text(&mem, 1, "aliyun.com/gpu-mem");
    for (size_t i = 0; i < ids; i++)
        text(&mem, 2, "GPU-a-_-0");
    text(&other, 1, "example.com/nic");
    text(&other, 2, "nic0");
    text(&container, 1, "c0");
    field(&container, 2, mem.ptr, mem.len);
    field(&container, 2, other.ptr, other.len);
    field(&container, 2, mem.ptr, mem.len);
    field(&container, 3, "\x02\x03", 2); /* exclusive CPUs, packed */
    text(&container, 9, "a field of tomorrow");
    text(&pod, 1, name);
    text(&pod, 2, "default");
    field(&pod, 3, container.ptr, container.len);
    field(out, 1, pod.ptr, pod.len);
}

static void pod_lists(void **state)
{
    (void)state;
    struct match_listing l;
    struct error err = ERROR_INIT;
    AUTO_STRBUF list;
    strbuf_init(&list);
    add_pod(&list, "p", 2);
    expect_int("a list", 0, wire_decode_pods(list.ptr, list.len, &a, &l, &err));
    expect_str("its pod", "default/p", l.pods[0].key);
    expect_int("the ids of ours, from both pieces", 4,
               (int64_t)l.pods[0].containers[0].held[MODE_GPU_MEM].len);
    for (int r = MODE_GPU_CORE; r < MODE_RESOURCES; r++)
        expect_int("none of others", 0, (int64_t)l.pods[0].containers[0].held[r].len);

    strbuf_reset(&list);
    add_pod(&list, "p", WIRE_IDS_MAX / 2 + 1);
    expect_int("too many ids, piece by piece", -1,
               wire_decode_pods(list.ptr, list.len, &a, &l, &err));
    expect_str("say whose",
               "pod default/p: container c0: 65538 device ids of aliyun.com/gpu-mem; at most 65536 "
               "are read",
               err.text);
    strbuf_reset(&list);
    for (int i = 0; i <= WIRE_PODS_MAX; i++)
        field(&list, 1, "", 0);
    expect_int("too many pods", -1, wire_decode_pods(list.ptr, list.len, &a, &l, &err));
    expect_str("say how many", "4097 pods; at most 4096 are read", err.text);
    expect_int("the most pods", 0, wire_decode_pods(list.ptr, list.len - 2, &a, &l, &err));
    expect_done();
}

static void bytes_that_are_no_message(void **state)
{
    (void)state;
    static const struct {
        const char *row, *bytes;
        size_t n;
    } rows[] = {
        {"a field that ends too early", "\x0a\x05x", 3},
        {"a length without end", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11},
        {"a number where text belongs", "\x08\x01", 2},
        {"no field has the number 0", "\x02\x00", 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const void *b = rows[i].bytes;
        size_t n = rows[i].n, len;
        struct wire_preference *wanted;
        struct inventory_ids *ids, one;
        struct match_listing l;
        struct error err = ERROR_INIT;
        expect_int(rows[i].row, -1, wire_decode_preferred(b, n, &a, &wanted, &len, &err));
        expect_str(rows[i].row, "GetPreferredAllocation: not a message of this kind", err.text);
        expect_int(rows[i].row, -1, wire_decode_allocate(b, n, &a, &ids, &len, &err));
        expect_int(rows[i].row, -1, wire_decode_pre_start(b, n, &a, &one, &err));
        expect_int(rows[i].row, -1, wire_decode_pods(b, n, &a, &l, &err));
    }
    /* Every beginning of a good message: read or refused, never more than that. */
    AUTO_STRBUF list;
    strbuf_init(&list);
    add_pod(&list, "p", 2);
    add_pod(&list, "q", 3);
    for (size_t n = 0; n <= list.len; n++) {
        char *exact = malloc(n + 1); /* so that the sanitizer sees a read past the end */
        struct match_listing l;
        memcpy(exact, list.ptr, n);
        (void)wire_decode_pods(exact, n, &a, &l, NULL);
        free(exact);
    }
    AUTO_STRBUF negative;
    AUTO_STRBUF request;
    strbuf_init(&negative);
    strbuf_init(&request);
    strbuf_add(&negative, "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11);
    field(&request, 1, negative.ptr, negative.len);
    struct wire_preference *wanted;
    size_t len;
    struct error err = ERROR_INIT;
    expect_int("fewer than none", -1,
               wire_decode_preferred(request.ptr, request.len, &a, &wanted, &len, &err));
    expect_str("by its name", "allocation_size: must not be negative: -1", err.text);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(allocate_requests, setup, teardown),
        cmocka_unit_test_setup_teardown(pod_lists, setup, teardown),
        cmocka_unit_test_setup_teardown(bytes_that_are_no_message, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
