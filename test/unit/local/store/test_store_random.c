// SPDX-License-Identifier: Apache-2.0
/* Random changes of the store against a model that is too simple to be wrong, and watchers that
 * sleep, wake and resume: all of them see the same in the end. */
#include "test/local/store/store.h"

#include "test/unit/lib/base/expect.h"

#include "lib/base/num.h"

static const char *const fields[] = {"spec.nodeName", NULL};
static const struct kind pods = {.group = "",
                                 .version = "v1",
                                 .api_version = "v1",
                                 .kind = "Pod",
                                 .resource = "pods",
                                 .namespaced = true,
                                 .fields = fields};

enum { NAMES = 400, STEPS = 20000, VIEWS = 5 };

struct model { /* version and payload by number of the name; 0: not there */
    uint64_t version[NAMES];
    int payload[NAMES];
    size_t count;
};

struct view { /* a watcher that sleeps, wakes and resumes */
    uint64_t at;
    uint64_t version[NAMES];
    bool wrong;
};

static uint64_t seed = 88172645463325252u;
static uint64_t dice(uint64_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % n;
}

static size_t print_pod(char *text, size_t size, size_t i, int payload)
{
    str_format(
        text, size,
        "{\"metadata\":{\"name\":\"p%zu\",\"namespace\":\"ns%zu\",\"labels\":{\"v\":\"%d\"}},"
        "\"spec\":{\"nodeName\":\"%d\"}}",
        i, i % 3, payload, payload);
    return strlen(text);
}

static size_t number_of(const struct object *o)
{
    int64_t n = -1;
    assert_int_equal(0, num_parse(o->name + 1, strlen(o->name + 1), &n, NULL));
    return (size_t)n;
}

static void apply(void *arg, const struct store_event *e)
{
    struct view *v = arg;
    size_t i = number_of(e->object);
    bool known = v->version[i] != 0;
    if (e->version <= v->at || (e->change == STORE_ADDED) == known ||
        (e->before == NULL) != (e->change == STORE_ADDED) ||
        (e->before && e->before->version != v->version[i]) || e->object->version != e->version)
        v->wrong = true;
    v->at = e->version;
    v->version[i] = e->change == STORE_DELETED ? 0 : e->version;
}

static bool relist(void *arg, struct object *o)
{
    struct view *v = arg;
    v->version[number_of(o)] = o->version;
    return true;
}

static void resume(struct store *s, struct view *v)
{
    if (!store_replay(s, &pods, v->at, apply, v)) {
        memset(v->version, 0, sizeof v->version);
        store_each(s, &pods, NULL, NULL, relist, v);
    }
    v->at = store_version(s);
}

static void one_step(struct store *s, struct model *m)
{
    size_t i = dice(NAMES);
    char text[300], ns[16], name[16];
    str_format(ns, sizeof ns, "ns%zu", i % 3);
    str_format(name, sizeof name, "p%zu", i);
    int payload = (int)dice(4);
    size_t n = print_pod(text, sizeof text, i, payload);
    uint64_t expected = dice(3) ? 0 : dice(2) ? m->version[i] : m->version[i] + 1;
    uint64_t next = store_version(s) + 1;
    struct object *o = NULL;
    switch (dice(3)) {
    case 0:
        assert_int_equal(m->version[i] ? -1 : 0, store_create(s, &pods, text, n, &o, NULL));
        if (m->version[i])
            return;
        m->count++;
        break;
    case 1: {
        bool ok = m->version[i] && (expected == 0 || expected == m->version[i]);
        assert_int_equal(ok ? 0 : -1, store_update(s, &pods, text, n, expected, &o, NULL));
        if (!ok)
            return;
        if (payload == m->payload[i]) {
            assert_int_equal(m->version[i], o->version);
            return;
        }
        break;
    }
    default: {
        bool ok = m->version[i] && (expected == 0 || expected == m->version[i]);
        assert_int_equal(ok ? 0 : -1, store_delete(s, &pods, ns, name, expected, NULL));
        if (ok) {
            m->version[i] = 0;
            m->count--;
        }
        return;
    }
    }
    assert_int_equal(next, o->version);
    m->version[i] = next;
    m->payload[i] = payload;
}

struct check {
    const struct model *model;
    char last[64];
    size_t count;
};

static bool check_object(void *arg, struct object *o)
{
    struct check *c = arg;
    size_t i = number_of(o);
    char payload[8];
    str_format(payload, sizeof payload, "%d", c->model->payload[i]);
    assert_int_equal(c->model->version[i], o->version);
    assert_string_equal(payload, labels_get(&o->fields, "spec.nodeName"));
    assert_true(strcmp(c->last, o->key) < 0);
    str_format(c->last, sizeof c->last, "%s", o->key);
    c->count++;
    return true;
}

static void random_changes_agree_with_a_model(void **state)
{
    (void)state;
    struct store *s = store_new(50);
    struct model m = {0};
    static struct view views[VIEWS];
    static struct view live;
    memset(views, 0, sizeof views);
    memset(&live, 0, sizeof live);
    struct store_listener l = {.kind = &pods, .fn = apply, .arg = &live};
    store_listen(s, &l);
    for (int step = 0; step < STEPS; step++) {
        one_step(s, &m);
        if (dice(500) == 0)
            store_compact(s);
        struct view *v = &views[dice(VIEWS)];
        if (dice(20) == 0)
            resume(s, v);
        if (step % 997 != 0)
            continue;
        struct check c = {.model = &m};
        store_each(s, &pods, NULL, NULL, check_object, &c);
        assert_int_equal(m.count, c.count);
        assert_int_equal(m.count, store_count(s, &pods));
        for (size_t i = 0; i < VIEWS; i++) {
            resume(s, &views[i]);
            assert_memory_equal(m.version, views[i].version, sizeof m.version);
            assert_false(views[i].wrong);
        }
        assert_memory_equal(m.version, live.version, sizeof m.version);
        assert_false(live.wrong);
    }
    store_unlisten(s, &l);
    store_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_changes_agree_with_a_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
