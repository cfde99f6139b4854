// SPDX-License-Identifier: Apache-2.0
/*
 * nodes_file - which nodes there are. JSON, strict: an unknown key is an error, since a
 * misspelt one would silently give another node.
 *
 *   {"nodes": [{
 *     "name": "gpu",              required
 *     "count": 3,                 gpu-1, gpu-2, gpu-3; without it just gpu
 *     "labels": {"k": "v"}, "annotations": {"k": "v"},
 *     "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}],
 *     "cpu": "32", "memory": "128Gi", "pods": 110, "ephemeral-storage": "200Gi",    (the defaults)
 *     "extra": {"example.com/thing": 4},      further allocatable amounts
 *     "topology": "pack:2 [numa] l3:4 core:8 pu:1",
 *                                 hwloc's synthetic form, or the name of an hwloc XML file (it ends
 *                                 in .xml, beside the node file); gives cpu when that is absent
 *     "address": "192.0.2.7",     by default the next of 192.0.2.1 to 192.0.2.254, then of the
 *                                 other two ranges for documentation, then of 100.64.0.0/10
 *     "gpus": {"model": "Tesla T4", "mib": 15360, "count": 4, "numa": 0},
 *                                 or an array of such, for nodes with different cards
 *     "links": "NV2",             between every two cards; or the whole matrix
 *                                 [["X","NV2"],["NV2","X"]]; by default PIX within a NUMA node and
 *                                 SYS between two
 *     "isolation": "none",        option of the device plugin
 *     "pluginArgs": ["--log-level=debug"],
 *     "plugin": true,             by default: where there are cards or a topology
 *     "reorderMs": 50,            new pods are collected for so long, then admitted in random order
 *     "virtual": true,            no kubelet, no device plugin; label type=virtual-kubelet, taint
 *                                 virtual-kubelet.io/provider=alibabacloud:NoSchedule
 *     "hollow": true              only an API object
 *   }]}
 *
 * Cards get uuids that follow from the node's name and their index: the same in every run, and
 * never the same on two nodes.
 */
#include "test/local/nodes/nodes_file.h"

#include <arpa/inet.h>

#include "lib/base/json.h"
#include "lib/base/map.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/cpuset.h"
#include "lib/model/names.h"
#include "lib/model/quantity.h"
#include "test/local/server/kubeconfig.h"
#include "test/local/nodes/cpucount.h"

enum { NAME_MAX_LEN = 253, TAINTS_MAX = 64, LINK_MAX = 16, REORDER_MAX_MS = 10 * 1000 };

static const char *const known_keys[] = {
    "name",   "count",     "labels", "annotations",       "taints",     "cpu",
    "memory", "pods",      "extra",  "ephemeral-storage", "topology",   "address",
    "gpus",   "links",     "plugin", "isolation",         "pluginArgs", "virtual",
    "hollow", "reorderMs", NULL};

/* Address n of those for documentation, then of 100.64.0.0/10. */
static const char *next_address(struct arena *a, uint32_t n)
{
    static const char *const ranges[] = {"192.0.2", "198.51.100", "203.0.113"};
    if (n < 3 * 254)
        return arena_printf(a, "%s.%u", ranges[n / 254], n % 254 + 1);
    n -= 3 * 254;
    return arena_printf(a, "100.%u.%u.%u", 64 + n / 254 / 256, n / 254 % 256, n % 254 + 1);
}

static bool name_is_legal(const char *s)
{
    size_t n = strlen(s);
    if (n == 0 || n > NAME_MAX_LEN)
        return false;
    for (size_t i = 0; i < n; i++) {
        bool inner = s[i] == '-' || s[i] == '.';
        bool plain = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= '0' && s[i] <= '9');
        if (!plain && (!inner || i == 0 || i == n - 1))
            return false;
    }
    return true;
}

static int check_keys(json *j, const char *const *known, struct error *err)
{
    if (!json_is_object(j))
        return error_set(err, ERROR_INVALID, "must be an object, not %s", json_kind_name(j));
    for (struct json_iter it = json_iter(j); json_next(&it);) {
        const char *const *k = known;
        while (*k != NULL && !str_eq(*k, it.key))
            k++;
        if (*k == NULL)
            return error_set(err, ERROR_INVALID, "%s: no such key", it.key);
    }
    return 0;
}

/* A number, or text of one: both are usual for amounts. */
static int read_amount(json *j, const char *name, const char *fallback, struct nodes_spec *s,
                       struct arena *a, struct error *err)
{
    const char *text = j == NULL ? fallback : json_is_number(j) ? json_number_text(j) : json_str(j);
    if (text == NULL)
        return error_set(err, ERROR_INVALID, "%s: must be an amount, not %s", name,
                         json_kind_name(j));
    return resources_set_text(&s->amounts, a, name, strlen(name), text, strlen(text), QUANTITY_DOWN,
                              err);
}

static int read_amounts(json *j, struct nodes_spec *s, struct arena *a, struct error *err)
{
    const char *cpus = s->topology != NULL ? arena_printf(a, "%u", s->cpus) : "32";
    if (read_amount(json_get(j, "cpu"), "cpu", cpus, s, a, err) < 0 ||
        read_amount(json_get(j, "memory"), "memory", "128Gi", s, a, err) < 0 ||
        read_amount(json_get(j, "pods"), "pods", "110", s, a, err) < 0 ||
        read_amount(json_get(j, "ephemeral-storage"), "ephemeral-storage", "200Gi", s, a, err) < 0)
        return -1;
    json *extra = json_get(j, "extra");
    if (extra != NULL && !json_is_object(extra))
        return error_set(err, ERROR_INVALID, "extra: must be an object, not %s",
                         json_kind_name(extra));
    for (struct json_iter it = json_iter(extra); json_next(&it);)
        if (read_amount(it.value, it.key, NULL, s, a, err) < 0)
            return error_wrap(err, "extra");
    if (s->topology == NULL) {
        s->cpus = (unsigned)num_min(s->amounts.cpu_milli / 1000, CPUSET_MAX);
        s->numa = 1;
    }
    return 0;
}

static int read_topology(json *j, const char *base_dir, struct nodes_spec *s, struct arena *a,
                         struct error *err)
{
    json *t = json_get(j, "topology");
    if (t == NULL)
        return 0;
    const char *text = json_str(t);
    if (text == NULL)
        return error_set(err, ERROR_INVALID, "topology: must be a string, not %s",
                         json_kind_name(t));
    bool xml = str_ends(text, ".xml");
    s->topology =
        xml && text[0] != '/' ? arena_printf(a, "%s/%s", base_dir, text) : arena_strdup(a, text);
    s->topology_is_xml = xml;
    struct cpucount count;
    if (cpucount_of(s->topology, xml, &count, err) < 0)
        return error_wrap(err, "topology");
    s->cpus = count.cpus;
    s->numa = count.numa;
    return 0;
}

/* Labels of the file, then those that every node has; the file's win. */
static int read_labels(json *j, const char *key, const struct label *add, size_t add_len,
                       struct labels *out, struct arena *a, struct error *err)
{
    AUTO_STRBUF text;
    strbuf_init(&text);
    struct json_writer w;
    json_writer_init(&w, &text);
    json *own = json_get(j, key);
    struct labels check;
    if (labels_decode(own, a, &check, err) < 0)
        return error_wrap(err, "%s", key);
    json_object_begin(&w);
    for (size_t i = 0; i < add_len; i++)
        if (labels_get(&check, add[i].key) == NULL)
            json_kv_str(&w, add[i].key, add[i].value);
    for (size_t i = 0; i < check.len; i++)
        json_kv_str(&w, check.items[i].key, check.items[i].value);
    json_object_end(&w);
    AUTO_JSON *doc = NULL;
    if (json_parse(&doc, strbuf_str(&text), text.len, err) < 0)
        return -1;
    return labels_decode(json_root(doc), a, out, err);
}

static int read_taints(json *j, struct nodes_spec *s, struct arena *a, struct error *err)
{
    static const char *const keys[] = {"key", "value", "effect", NULL};
    static const char *const effects[] = {"NoSchedule", "PreferNoSchedule", "NoExecute"};
    json *list = json_get(j, "taints");
    size_t i = 0;
    if (list != NULL && (!json_is_array(list) || json_len(list) > TAINTS_MAX))
        return error_set(err, ERROR_INVALID, "taints: must be an array of at most %d", TAINTS_MAX);
    s->taints = arena_new(a, struct taint, json_len(list) + 1);
    if (s->role == NODES_FILE_VIRTUAL)
        s->taints[s->taints_len++] =
            (struct taint){NAME_TAINT_VIRTUAL, NAME_TAINT_VIRTUAL_VALUE, TAINT_NO_SCHEDULE};
    for (struct json_iter it = json_iter(list); json_next(&it); i++) {
        struct taint *t = &s->taints[s->taints_len++];
        const char *effect = str_or_empty(json_get_str(it.value, "effect"));
        size_t e = 0;
        if (check_keys(it.value, keys, err) < 0)
            return error_wrap(err, "taints[%zu]", i);
        while (e < 3 && !str_eq(effects[e], effect))
            e++;
        if (e == 3)
            return error_set(err, ERROR_INVALID, "taints[%zu].effect: no such effect: '%s'", i,
                             effect);
        t->key = arena_strdup(a, str_or_empty(json_get_str(it.value, "key")));
        t->value = arena_strdup(a, str_or_empty(json_get_str(it.value, "value")));
        t->effect = (enum taint_effect)e;
        if (!selector_key_is_legal(t->key) || !selector_value_is_legal(t->value))
            return error_set(err, ERROR_INVALID, "taints[%zu]: not a legal taint: '%s=%s'", i,
                             t->key, t->value);
    }
    return 0;
}

static const char *card_uuid(struct arena *a, const char *node, size_t i)
{
    uint64_t x = str_hash(node, strlen(node)), y = x * 0x9e3779b97f4a7c15U + i;
    return arena_printf(a, "GPU-%08x-%04x-%04x-%04x-%04x%08x", (unsigned)(x >> 32),
                        (unsigned)(x >> 16 & 0xffff), (unsigned)(x & 0xffff),
                        (unsigned)(y >> 48 & 0xffff), (unsigned)(y >> 32 & 0xffff),
                        (unsigned)(y & 0xffffffff));
}

static int read_card_group(json *j, struct nodes_spec *s, struct arena *a, struct error *err)
{
    static const char *const keys[] = {"model", "mib", "count", "numa", NULL};
    int64_t mib = 0, count = 1, numa = -2;
    if (check_keys(j, keys, err) < 0)
        return -1;
    if (!json_get_int(j, "mib", &mib) || mib <= 0)
        return error_set(err, ERROR_INVALID, "mib: must be a positive integer");
    if (json_get(j, "count") != NULL && (!json_get_int(j, "count", &count) || count < 0 ||
                                         count > GPU_CARDS_MAX - (int64_t)s->cards.cards_len))
        return error_set(err, ERROR_INVALID, "count: a node has 0 to %d cards", GPU_CARDS_MAX);
    if (json_get(j, "numa") != NULL &&
        (!json_get_int(j, "numa", &numa) || numa < -1 || numa > 1023))
        return error_set(err, ERROR_INVALID, "numa: must be between -1 and 1023");
    const char *model = json_get_str(j, "model");
    for (int64_t i = 0; i < count; i++) {
        size_t k = s->cards.cards_len++;
        s->cards.cards[k] =
            (struct gpu_card){.index = (int32_t)k,
                              .uuid = card_uuid(a, s->name, k),
                              .model = arena_strdup(a, model != NULL ? model : "Tesla T4"),
                              .mib = mib,
                              /* In equal parts over the NUMA nodes, in order. */
                              .numa = (int32_t)(numa != -2 ? numa : i * (int64_t)s->numa / count),
                              .pci = arena_printf(a, "0000:%02x:00.0", (unsigned)(0x1a + k)),
                              .health = GPU_HEALTH_OK};
    }
    return 0;
}

static int read_links(json *j, struct nodes_spec *s, struct arena *a, struct error *err)
{
    struct gpu_inventory *inv = &s->cards;
    size_t n = inv->cards_len;
    json *links = json_get(j, "links");
    const char *all = json_str(links);
    if (links != NULL && all == NULL && (!json_is_array(links) || json_len(links) != n))
        return error_set(err, ERROR_INVALID, "links: must be a string or an array of %zu rows", n);
    if (n == 0)
        return 0;
    inv->links = arena_new(a, const char *, n *n);
    for (size_t r = 0; r < n; r++) {
        json *row = all == NULL ? json_at(links, r) : NULL;
        if (links != NULL && all == NULL && (!json_is_array(row) || json_len(row) != n))
            return error_set(err, ERROR_INVALID, "links[%zu]: must be an array of %zu links", r, n);
        for (size_t c = 0; c < n; c++) {
            const char *near = inv->cards[r].numa == inv->cards[c].numa ? "PIX" : "SYS";
            const char *link = r == c        ? "X"
                               : all != NULL ? all
                               : row == NULL ? near
                                             : json_str(json_at(row, c));
            if (link == NULL || link[0] == '\0' || strlen(link) > LINK_MAX)
                return error_set(err, ERROR_INVALID,
                                 "links[%zu][%zu]: must be a string of 1 to %d bytes", r, c,
                                 LINK_MAX);
            inv->links[r * n + c] = arena_strdup(a, link);
        }
    }
    return 0;
}

static int read_cards(json *j, struct nodes_spec *s, struct arena *a, struct error *err)
{
    json *gpus = json_get(j, "gpus");
    s->cards.cards = arena_new(a, struct gpu_card, GPU_CARDS_MAX);
    if (json_is_array(gpus)) {
        size_t i = 0;
        for (struct json_iter it = json_iter(gpus); json_next(&it); i++)
            if (read_card_group(it.value, s, a, err) < 0)
                return error_wrap(err, "gpus[%zu]", i);
    } else if (gpus != NULL && read_card_group(gpus, s, a, err) < 0) {
        return error_wrap(err, "gpus");
    }
    return read_links(j, s, a, err);
}

static int read_plugin(json *j, struct nodes_spec *s, struct arena *a, struct error *err)
{
    json *args = json_get(j, "pluginArgs");
    if (args != NULL && (!json_is_array(args) || json_len(args) > NODES_FILE_ARGS_MAX))
        return error_set(err, ERROR_INVALID, "pluginArgs: must be an array of at most %d",
                         NODES_FILE_ARGS_MAX);
    s->plugin_args = arena_new(a, const char *, json_len(args) + 1);
    size_t n = 0;
    for (struct json_iter it = json_iter(args); json_next(&it); n++) {
        if (json_str(it.value) == NULL)
            return error_set(err, ERROR_INVALID, "pluginArgs[%zu]: must be a string", n);
        s->plugin_args[n] = arena_strdup(a, json_str(it.value));
    }
    const char *isolation = json_get_str(j, "isolation");
    if (json_get(j, "isolation") != NULL && isolation == NULL)
        return error_set(err, ERROR_INVALID, "isolation: must be a string");
    s->isolation = isolation != NULL ? arena_strdup(a, isolation) : NULL;
    bool wanted = json_get_bool(j, "plugin", s->cards.cards_len > 0 || s->topology != NULL);
    s->plugin = wanted && s->role == NODES_FILE_KUBELET;
    if (json_get(j, "reorderMs") != NULL && (!json_get_int(j, "reorderMs", &s->reorder_ms) ||
                                             s->reorder_ms < 0 || s->reorder_ms > REORDER_MAX_MS))
        return error_set(err, ERROR_INVALID, "reorderMs: must be an integer, 0 to %d",
                         REORDER_MAX_MS);
    return 0;
}

static int read_address(json *j, struct nodes_spec *s, struct arena *a, struct error *err)
{
    const char *address = json_get_str(j, "address");
    unsigned char bytes[sizeof(struct in6_addr)];
    if (json_get(j, "address") == NULL)
        s->address = next_address(a, s->number);
    else if (address == NULL ||
             (inet_pton(AF_INET, address, bytes) != 1 && inet_pton(AF_INET6, address, bytes) != 1))
        return error_set(err, ERROR_INVALID, "address: not an IP address: '%s'",
                         str_or_empty(address));
    else
        s->address = arena_strdup(a, address);
    return 0;
}

static int read_one(json *j, const char *base_dir, struct nodes_spec *s, struct arena *a,
                    struct error *err)
{
    bool is_virtual = json_get_bool(j, "virtual", false),
         hollow = json_get_bool(j, "hollow", false);
    if (is_virtual && hollow)
        return error_set(err, ERROR_INVALID, "virtual and hollow exclude each other");
    s->role = is_virtual ? NODES_FILE_VIRTUAL : hollow ? NODES_FILE_HOLLOW : NODES_FILE_KUBELET;
    const struct label usual[] = {
        {"kubernetes.io/hostname", s->name},  {"kubernetes.io/os", "linux"},
        {"kubernetes.io/arch", "amd64"},      {"beta.kubernetes.io/os", "linux"},
        {"beta.kubernetes.io/arch", "amd64"}, {NAME_LABEL_NODE_TYPE, NAME_NODE_TYPE_VIRTUAL}};
    if (read_labels(j, "labels", usual, is_virtual ? 6 : 5, &s->labels, a, err) < 0 ||
        read_labels(j, "annotations", NULL, 0, &s->annotations, a, err) < 0 ||
        read_taints(j, s, a, err) < 0 || read_topology(j, base_dir, s, a, err) < 0 ||
        read_amounts(j, s, a, err) < 0 || read_cards(j, s, a, err) < 0 ||
        read_plugin(j, s, a, err) < 0)
        return -1;
    for (size_t i = 0; i < s->labels.len; i++)
        if (!selector_key_is_legal(s->labels.items[i].key) ||
            !selector_value_is_legal(s->labels.items[i].value))
            return error_set(err, ERROR_INVALID, "labels: not a legal label: '%s=%s'",
                             s->labels.items[i].key, s->labels.items[i].value);
    return read_address(j, s, a, err);
}

/* One entry of the file: as many nodes as it counts. */
static int read_entry(struct nodes_file *f, size_t *cap, json *j, const char *base_dir,
                      struct error *err)
{
    struct arena *a = &f->arena;
    int64_t count = 1;
    if (check_keys(j, known_keys, err) < 0)
        return -1;
    const char *name = json_get_str(j, "name");
    bool numbered = json_get(j, "count") != NULL;
    if (name == NULL || !name_is_legal(name))
        return error_set(err, ERROR_INVALID, "name: not a legal node name: '%s'",
                         str_or_empty(name));
    if (numbered && (!json_get_int(j, "count", &count) || count < 0 ||
                     count > NODES_FILE_NODES_MAX - (int64_t)f->len))
        return error_set(err, ERROR_INVALID, "count: there may be 0 to %d nodes",
                         NODES_FILE_NODES_MAX);
    if (numbered && count != 1 && json_get(j, "address") != NULL)
        return error_set(err, ERROR_INVALID, "address: %d nodes cannot have the same", (int)count);
    if (f->len + (size_t)count > *cap) {
        *cap = (f->len + (size_t)count) * 2;
        struct nodes_spec *more = arena_new(a, struct nodes_spec, *cap);
        if (f->len > 0)
            memcpy(more, f->items, f->len * sizeof *more);
        f->items = more;
    }
    for (int64_t i = 0; i < count; i++) {
        struct nodes_spec *s = &f->items[f->len];
        s->number = (uint32_t)f->len;
        s->name = numbered ? arena_printf(a, "%s-%d", name, (int)i + 1) : arena_strdup(a, name);
        if (read_one(j, base_dir, s, a, err) < 0)
            return -1;
        f->len++;
    }
    return 0;
}

static int check_names(const struct nodes_file *f, struct error *err)
{
    struct map seen;
    int result = 0;
    map_init(&seen);
    for (size_t i = 0; i < f->len && result == 0; i++)
        if (map_put(&seen, f->items[i].name, &f->items[i]) != NULL)
            result = error_set(err, ERROR_INVALID, "node %s is there twice", f->items[i].name);
    map_deinit(&seen);
    return result;
}

static int parse(struct nodes_file *f, json *root, const char *base_dir, struct error *err)
{
    static const char *const keys[] = {"nodes", NULL};
    json *list = json_get(root, "nodes");
    size_t i = 0, cap = 0;
    if (check_keys(root, keys, err) < 0)
        return -1;
    if (!json_is_array(list))
        return error_set(err, ERROR_INVALID, "nodes: must be an array, not %s",
                         json_kind_name(list));
    for (struct json_iter it = json_iter(list); json_next(&it); i++)
        if (read_entry(f, &cap, it.value, base_dir, err) < 0)
            return error_wrap(err, "nodes[%zu]", i);
    return check_names(f, err);
}

int nodes_file_parse(struct nodes_file *out, const char *text, size_t n, const char *base_dir,
                     struct error *err)
{
    AUTO_JSON *doc = NULL;
    *out = (struct nodes_file){0};
    arena_init(&out->arena, 0);
    if (json_parse(&doc, text, n, err) == 0 && parse(out, json_root(doc), base_dir, err) == 0)
        return 0;
    nodes_file_deinit(out);
    return -1;
}

int nodes_file_load(struct nodes_file *out, const char *path, struct error *err)
{
    AUTO_STRBUF text;
    AUTO_STRBUF dir;
    strbuf_init(&text);
    strbuf_init(&dir);
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        strbuf_adds(&dir, ".");
    else
        strbuf_add(&dir, path, (size_t)(slash - path));
    if (kubeconfig_read_file(path, NODES_FILE_BYTES_MAX, &text, err) < 0 ||
        nodes_file_parse(out, strbuf_str(&text), text.len, strbuf_str(&dir), err) < 0)
        return error_wrap(err, "node file %s", path);
    return 0;
}

void nodes_file_deinit(struct nodes_file *f)
{
    arena_deinit(&f->arena);
    *f = (struct nodes_file){0};
}

void nodes_file_print_cards(const struct gpu_inventory *cards, struct strbuf *out)
{
    gpu_inventory_encode(cards, out);
    strbuf_addc(out, '\n');
}
