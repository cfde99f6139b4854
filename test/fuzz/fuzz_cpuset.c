// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as a CPU list: what is read, printed and read again is the same set, and the walk over
 * it meets as many CPUs as are counted.
 */
#include "lib/model/cpuset.h"
#include "test/fuzz/fuzz_kit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = text_of(data, size);
    struct cpuset s, again;
    struct error err = ERROR_INIT;

    if (cpuset_parse(text, &s, &err) == 0) {
        AUTO_STRBUF out;
        unsigned met = 0;
        strbuf_init(&out);
        cpuset_print(&s, &out);
        must(cpuset_parse(strbuf_str(&out), &again, NULL) == 0 && cpuset_equal(&s, &again));
        for (int cpu = -1; (cpu = cpuset_next(&s, cpu)) >= 0; met++)
            must(cpuset_has(&s, (unsigned)cpu));
        must(met == cpuset_count(&s) && (met == 0) == cpuset_is_empty(&s));
        cpuset_subtract(&again, &s);
        must(cpuset_is_empty(&again));
    } else {
        must((err.code == ERROR_INVALID || err.code == ERROR_RANGE) && cpuset_is_empty(&s));
    }
    free(text);
    return 0;
}
