// SPDX-License-Identifier: Apache-2.0
/* What the cache says of pods, what it tells its subscribers, and that other threads may look. */
#include "device-plugin/node/podcache.h"

#include "test/unit/lib/base/expect.h"

#include <stdatomic.h>
#include <string.h>

#include "lib/base/str.h"
#include "test/unit/device-plugin/cards.h"

#define GRANT(x) "\"scheduler.framework.gpushare.allocation\":\"" x "\""

struct fixture {
    struct podcache cache;
    struct strbuf told; /* "+name:arrival -name ! (told) * (told all)" since the last look */
};

static void on_put(void *arg, const struct podcache_pod *p)
{
    struct fixture *f = arg;
    strbuf_addf(&f->told, "+%s:%d%s ", p->pod->name, (int)p->arrival, p->remembered ? "?" : "");
    expect_true("it is there when it is told", podcache_find(&f->cache, p->pod->key) == p);
}

static void on_gone(void *arg, const struct podcache_pod *p)
{
    struct fixture *f = arg;
    strbuf_addf(&f->told, "-%s ", p->pod->uid);
}

static void on_told(void *arg, bool all)
{
    struct fixture *f = arg;
    strbuf_adds(&f->told, all ? "*" : "!");
}

static void begin(struct fixture *f)
{
    podcache_init(&f->cache);
    strbuf_init(&f->told);
    podcache_subscribe(&f->cache, &(struct podcache_subscriber){on_put, on_gone, on_told, f});
    podcache_subscribe(&f->cache, &(struct podcache_subscriber){.arg = NULL}); /* wants nothing */
}

static void end(struct fixture *f)
{
    podcache_deinit(&f->cache);
    strbuf_deinit(&f->told);
    expect_done();
}

static void expect_told(struct fixture *f, const char *row, const char *want)
{
    expect_str(row, want, strbuf_str(&f->told));
    strbuf_reset(&f->told);
}

static struct pod *pod(const char *name)
{
    return cards_pod(name, "c0=gpu-mem:3", GRANT("{\\\"0\\\":{\\\"1\\\":3}}"));
}

/* Another pod under the same name. */
static struct pod *namesake(const char *name, const char *uid)
{
    struct pod *p = pod(name);
    p->uid = uid;
    return p;
}

static struct pod *unreadable(const char *name)
{
    struct pod *p = pod(name);
    p->unreadable = "a field of tomorrow";
    return p;
}

static void one_by_one(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    podcache_put(&f.cache, pod("a"));
    expect_told(&f, "a new one", "+a:1 !");
    podcache_put(&f.cache, pod("b"));
    expect_told(&f, "a second", "+b:2 !");
    podcache_put(&f.cache, pod("a"));
    expect_told(&f, "another version is no other pod", "+a:1 !");
    const struct podcache_pod *a = podcache_find(&f.cache, "default/a");
    expect_true("by name and by uid", a != NULL && a == podcache_find_uid(&f.cache, "uid-a"));
    expect_int("with its claim", 1, (int)a->grant.shares_len);
    expect_int("on that card", 1, a->grant.shares[0].card);
    podcache_put(&f.cache, namesake("a", "uid-other"));
    expect_told(&f, "a namesake is one gone and one new", "-uid-a +a:3 !");
    expect_true("the old uid is forgotten", podcache_find_uid(&f.cache, "uid-a") == NULL);
    podcache_remove(&f.cache, "default/a");
    expect_told(&f, "removed", "-uid-other !");
    expect_true("it is gone", podcache_find(&f.cache, "default/a") == NULL &&
                                  podcache_find_uid(&f.cache, "uid-other") == NULL);
    podcache_remove(&f.cache, "default/a");
    expect_told(&f, "there was none", "!");
    podcache_put(&f.cache, cards_pod("c", "c0=gpu-mem:3", GRANT("not JSON")));
    expect_int("a grant that cannot be decoded is none", 0,
               (int)podcache_find(&f.cache, "default/c")->grant.shares_len);
    end(&f);
}

static void lists(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    podcache_restore(&f.cache, pod("old"));
    podcache_restore(&f.cache, pod("b"));
    expect_told(&f, "from a state file", "+old:1? !+b:2? !");
    podcache_restore(&f.cache, pod("b"));
    expect_told(&f, "one that is known stays", "");
    struct pod *first[] = {pod("c"), pod("b"), pod("a")};
    first[2]->created_ns = 2;
    first[0]->created_ns = 1;
    podcache_reset(&f.cache, first, 3);
    expect_told(&f, "all at once, the new ones by age", "-uid-old +b:2 +c:3 +a:4 *");
    struct pod *second[] = {pod("a"), namesake("c", "uid-other")};
    podcache_reset(&f.cache, second, 2);
    expect_told(&f, "what is not in a list is gone", "-uid-c -uid-b +c:5 +a:4 *");
    size_t n = 0;
    for (size_t i = 0; podcache_next(&f.cache, &i) != NULL;)
        n++;
    expect_int("these are all", 2, (int)n);
    podcache_reset(&f.cache, NULL, 0);
    expect_told(&f, "an empty list", "-uid-other -uid-a *");
    end(&f);
}

static void versions_that_cannot_be_read(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    podcache_put(&f.cache, unreadable("a"));
    expect_told(&f, "one that is not known is left out", "");
    podcache_put(&f.cache, pod("a"));
    podcache_put(&f.cache, pod("b"));
    expect_told(&f, "known", "+a:1 !+b:2 !");
    podcache_put(&f.cache, unreadable("a"));
    expect_told(&f, "nothing is new", "");
    struct pod *list[] = {unreadable("a"), unreadable("c")};
    podcache_reset(&f.cache, list, 2);
    expect_told(&f, "it is in the list all the same", "-uid-b +a:1 *");
    expect_int("and has what it had", 1,
               (int)podcache_find(&f.cache, "default/a")->grant.shares_len);
    podcache_put(&f.cache, pod("d"));
    struct pod *ended = unreadable("d");
    ended->phase = POD_SUCCEEDED;
    expect_told(&f, "one more", "+d:3 !");
    podcache_put(&f.cache, ended);
    expect_told(&f, "it has finished, whatever else it says", "-uid-d !");
    struct pod *other = unreadable("a");
    other->uid = "uid-other";
    podcache_reset(&f.cache, &other, 1);
    expect_told(&f, "a namesake's does not keep it", "-uid-a *");
    end(&f);
}

static void messages(void **state)
{
    (void)state;
    struct fixture f;
    static const struct {
        enum reflector_event event;
        const char *told;
    } rows[] = {
        {REFLECTOR_RESET, "+a:1 *"}, {REFLECTOR_PUT, "+a:1 !"}, {REFLECTOR_DELETE, "-uid-a !"}};
    begin(&f);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct reflector_message *l = calloc(1, sizeof *l);
        assert_non_null(l);
        *l = (struct reflector_message){
            .event = rows[i].event, .len = 1, .one = pod("a"), .free_object = podcache_type.free};
        l->objects = &l->one;
        podcache_message(&f.cache, l);
        expect_told(&f, "a letter", rows[i].told);
    }
    end(&f);
}

/* Decodes a pod with these annotations of 250 KiB together; returns its bytes. */
static size_t bytes_of(const char *phase, const char *const *keys)
{
    AUTO_STRBUF text = {0};
    AUTO_JSON *doc = NULL;
    struct error err = ERROR_INIT;
    void *out = NULL;
    size_t n = 0;
    while (keys[n] != NULL)
        n++;
    strbuf_addf(&text, "{\"metadata\":{\"name\":\"x\",\"namespace\":\"default\",\"uid\":\"u\","
                       "\"annotations\":{");
    for (size_t i = 0; i < n; i++)
        strbuf_addf(&text, "%s\"%s\":\"%0*d\"", i == 0 ? "" : ",", keys[i], (int)(250 * 1024 / n),
                    1);
    strbuf_addf(&text, "}},\"spec\":{\"containers\":[]},\"status\":{\"phase\":\"%s\"}}", phase);
    assert_int_equal(0, json_parse(&doc, strbuf_str(&text), text.len, &err));
    assert_int_equal(0, podcache_type.decode(json_root(doc), &out, &err));
    const struct pod *p = out;
    size_t bytes = sizeof *p;
    for (size_t i = 0; i < p->annotations.len; i++)
        bytes += strlen(p->annotations.items[i].key) + strlen(p->annotations.items[i].value);
    podcache_type.free(out);
    return bytes;
}

/* 800 pods that name the node, with all that the API server takes. */
static void what_is_kept_of_a_pod(void **state)
{
    static const struct {
        const char *row, *phase, *keys[12];
        size_t kib;
    } rows[] = {
        {"a key that nobody reads", "Running", {"alibabacloud.com/x"}, 4},
        {"beside one that is read", "Pending", {"gang.scheduling.koordinator.sh/names"}, 4},
        {"a long value", "Running", {"cpu-policy"}, 9},
        {"all that a tenant may set",
         "Running",
         {"cpu-policy", "cpuset-scheduler", "alibabacloud.com/burst-resource",
          "scheduling.alibabacloud.com/numa-topology-spec",
          "pod-group.scheduling.sigs.k8s.io/groups", "gang.scheduling.koordinator.sh/groups",
          "gang.scheduling.koordinator.sh/name", "kubernetes.io/config.mirror"},
         100},
        {"a finished pod", "Failed", {"gang.scheduling.koordinator.sh/groups"}, 4},
        {"another", "Succeeded", {"cosched.io/cpuset-applied"}, 4},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_true(rows[i].row, bytes_of(rows[i].phase, rows[i].keys) <= rows[i].kib * 1024);
    static const char *const cpus[] = {"cpuset", NULL};
    expect_true("the longest value that is legal", bytes_of("Running", cpus) > CPU_GRANT_BYTES_MAX);
    expect_done();
}

/* Another thread looks while the loop changes: sanitizers watch. */
static _Atomic bool done;

static void *look(void *arg)
{
    struct podcache *c = arg;
    volatile size_t seen = 0; /* read, so that the reads are not left out */
    while (!atomic_load(&done)) {
        const struct podcache_pod *p;
        pthread_mutex_lock(&c->lock);
        for (size_t i = 0; (p = podcache_next(c, &i)) != NULL;)
            seen = seen + strlen(p->pod->uid) + p->grant.shares_len;
        pthread_mutex_unlock(&c->lock);
    }
    return NULL;
}

static void another_thread(void **state)
{
    (void)state;
    struct fixture f;
    pthread_t thread;
    begin(&f);
    atomic_store(&done, false);
    assert_int_equal(0, pthread_create(&thread, NULL, look, &f.cache));
    for (int i = 0; i < 200; i++) {
        struct pod *list[] = {pod("a"), pod("b")};
        podcache_reset(&f.cache, list, 2);
        podcache_put(&f.cache, pod("a"));
        podcache_remove(&f.cache, "default/b");
    }
    atomic_store(&done, true);
    pthread_join(thread, NULL);
    expect_true("the last version is there", podcache_find_uid(&f.cache, "uid-a") != NULL);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_by_one),
                                       cmocka_unit_test(lists),
                                       cmocka_unit_test(versions_that_cannot_be_read),
                                       cmocka_unit_test(messages),
                                       cmocka_unit_test(what_is_kept_of_a_pod),
                                       cmocka_unit_test(another_thread)};
    return cmocka_run_group_tests_name("podcache", tests, NULL, NULL);
}
