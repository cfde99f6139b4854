// SPDX-License-Identifier: Apache-2.0
/*
 * Trimmed pages of code come back when they are used; pages that were changed in memory are kept.
 * gRPC serves as a large library whose threads run meanwhile.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "device-plugin/kubelet/rpc.h"
#include "lib/base/rss_trim.h"
#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/num.h"
#include "lib/base/str.h"

/* Pages of files in this process's memory. */
static int64_t file_kib(void)
{
    AUTO_STRBUF text = {0};
    int64_t n = 0;
    assert_int_equal(file_read("/proc/self/status", 65536, &text, NULL), 0);
    const char *at = strstr(strbuf_str(&text), "RssFile:");
    assert_non_null(at);
    at += strlen("RssFile:");
    at += strspn(at, " \t");
    assert_int_equal(num_parse(at, strspn(at, "0123456789"), &n, NULL), 0);
    return n;
}

static uintptr_t page_of(const void *p)
{
    return (uintptr_t)p & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

/* About in the middle of gRPC. */
static const unsigned char *much_code(void)
{
    const unsigned char *at = dlsym(RTLD_DEFAULT, "grpc_server_create");
    assert_non_null(at);
    return at;
}

static void unused_code_is_trimmed_and_comes_back(void **state)
{
    (void)state;
    enum { KIB = 512, PAGE = 4096 };
    const unsigned char *code = (const unsigned char *)page_of(much_code());
    unsigned before = 0, after = 0;
    for (size_t i = 0; i < KIB * 1024; i += PAGE)
        before += code[i];
    int64_t full = file_kib();
    rss_trim_now();
    int64_t trimmed = file_kib();
    if (full - trimmed < KIB)
        print_error("expected %d KiB less, got %lld KiB before and %lld after\n", KIB,
                    (long long)full, (long long)trimmed);
    assert_true(full - trimmed >= KIB);
    for (size_t i = 0; i < KIB * 1024; i += PAGE)
        after += code[i];
    assert_int_equal(before, after);
}

static void a_library_loaded_later_keeps_its_changed_pages(void **state)
{
    (void)state;
    const char *build = getenv("BUILD_DIR");
    AUTO_STRBUF path = {0};
    strbuf_addf(&path, "%s/lib/libnvidia-ml.so.1", build != NULL ? build : "build/asan");
    void *library = dlopen(strbuf_str(&path), RTLD_NOW);
    assert_non_null(library);
    unsigned char *code = dlsym(library, "nvmlInit_v2");
    assert_non_null(code);
    void *page = (void *)page_of(code);
    size_t two_pages = 2 * (size_t)sysconf(_SC_PAGESIZE);
    unsigned char original = code[0];
    assert_int_equal(mprotect(page, two_pages, PROT_READ | PROT_WRITE), 0);
    code[0] = (unsigned char)(original ^ 0xff); /* not called */
    assert_int_equal(mprotect(page, two_pages, PROT_READ | PROT_EXEC), 0);
    rss_trim_now();
    assert_int_equal(code[0], original ^ 0xff);
    dlclose(library);
}

static void the_heap_is_untouched(void **state)
{
    (void)state;
    char *blocks[64];
    for (size_t i = 0; i < 64; i++) {
        blocks[i] = malloc(8192);
        assert_non_null(blocks[i]);
        memset(blocks[i], (int)i, 8192);
    }
    for (size_t i = 0; i < 64; i += 2)
        free(blocks[i]);
    rss_trim_now();
    for (size_t i = 1; i < 64; i += 2) {
        assert_int_equal(blocks[i][0], i);
        assert_int_equal(blocks[i][8191], i);
        free(blocks[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unused_code_is_trimmed_and_comes_back),
        cmocka_unit_test(a_library_loaded_later_keeps_its_changed_pages),
        cmocka_unit_test(the_heap_is_untouched),
    };
    rss_trim_init();
    rpc_init();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rpc_shutdown();
    return failed;
}
