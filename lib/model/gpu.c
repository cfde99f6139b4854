// SPDX-License-Identifier: Apache-2.0
/*
 * A node's cards, and the annotation that publishes them.
 *
 * The device plugin writes it and the scheduler reads it, and their versions may differ: the
 * version number is checked, unknown fields are skipped, known fields must be valid. An inventory
 * that cannot be read means a node without cards, never a node with guessed ones.
 */
#include "lib/model/gpu.h"

enum {
    CARD_MIB_MAX = 1024 * 1024 * 1024, /* 1 PiB */
    CARD_TEXT_MAX = 128,               /* uuid, model, pci */
    WHY_TEXT_MAX = 256,
    LINK_TEXT_MAX = 16,
    NUMA_MAX = 1023,
};

static const char *const mode_names[GPU_MODES] = {"default", "cgpu", "core_mem",
                                                  "share",   "mps",  "topology"};

int64_t gpu_card_gib(const struct gpu_card *c)
{
    return c->mib / 1024;
}

int64_t gpu_inventory_gib(const struct gpu_inventory *inv)
{
    int64_t sum = 0;

    for (size_t i = 0; i < inv->cards_len; i++)
        sum += gpu_card_gib(&inv->cards[i]); /* 64 cards of at most 2^20 GiB */
    return sum;
}

const char *gpu_card_trouble(const struct gpu_card *c, struct arena *a)
{
    const char *why = str_or_empty(c->why);
    size_t n = str_starts(why, "XID ") ? strcspn(why, ":") : strlen(why);
    return n > 0 ? arena_printf(a, "unhealthy (%.*s)", (int)n, why) : "unhealthy";
}

bool gpu_mode_is_shared(enum gpu_mode mode)
{
    return mode == GPU_MODE_CGPU || mode == GPU_MODE_CORE_MEM || mode == GPU_MODE_SHARE ||
           mode == GPU_MODE_MPS;
}

const char *gpu_mode_name(enum gpu_mode mode)
{
    return (unsigned)mode < GPU_MODES ? mode_names[mode] : "unknown";
}

bool gpu_mode_parse(const char *text, enum gpu_mode *out)
{
    for (unsigned i = 0; i < GPU_MODES; i++)
        if (str_eq(text, mode_names[i])) {
            *out = (enum gpu_mode)i;
            return true;
        }
    return false;
}

const char *gpu_mode_names(void)
{
    return "default, cgpu, core_mem, share, mps, topology";
}

static bool is_absent(json *j)
{
    return !j || json_is_null(j);
}

/* A string of at most max bytes; *out is unchanged when the field is absent. */
static int read_text(json *obj, const char *field, size_t max, struct arena *a, const char **out,
                     struct error *err)
{
    json *j = json_get(obj, field);

    if (is_absent(j))
        return 0;
    if (!json_str(j))
        return error_set(err, ERROR_INVALID, "%s: must be a string, not %s", field,
                         json_kind_name(j));
    if (json_str_len(j) > max)
        return error_set(err, ERROR_INVALID, "%s: longer than %zu bytes", field, max);
    *out = arena_strdup(a, json_str(j));
    return 0;
}

static int read_int(json *obj, const char *field, int64_t min, int64_t max, int64_t *out,
                    struct error *err)
{
    if (!json_get_int(obj, field, out) || *out < min || *out > max)
        return error_set(err, ERROR_INVALID, "%s: must be an integer from %lld to %lld", field,
                         (long long)min, (long long)max);
    return 0;
}

static int read_mode(json *obj, const char *field, enum gpu_mode *out, struct error *err)
{
    const char *text = json_get_str(obj, field);

    if (!gpu_mode_parse(text, out))
        return error_set(err, ERROR_INVALID, "%s: must be one of %s: '%.32s'", field,
                         gpu_mode_names(), str_or_empty(text));
    return 0;
}

static int read_health(json *obj, enum gpu_health *out, struct error *err)
{
    const char *text = json_get_str(obj, "health");

    if (!str_eq(text, "ok") && !str_eq(text, "sick"))
        return error_set(err, ERROR_INVALID, "health: must be ok or sick: '%.32s'",
                         str_or_empty(text));
    *out = str_eq(text, "ok") ? GPU_HEALTH_OK : GPU_HEALTH_SICK;
    return 0;
}

static int read_card(json *j, struct arena *a, struct gpu_card *out, struct error *err)
{
    int64_t index, numa = -1;

    if (!json_is_object(j))
        return error_set(err, ERROR_INVALID, "must be an object, not %s", json_kind_name(j));
    *out = (struct gpu_card){.uuid = "", .model = "", .pci = "", .why = ""};
    if (read_int(j, "i", 0, GPU_CARDS_MAX - 1, &index, err) < 0 ||
        read_text(j, "uuid", CARD_TEXT_MAX, a, &out->uuid, err) < 0 ||
        read_text(j, "model", CARD_TEXT_MAX, a, &out->model, err) < 0 ||
        read_text(j, "pci", CARD_TEXT_MAX, a, &out->pci, err) < 0 ||
        read_int(j, "mib", 1, CARD_MIB_MAX, &out->mib, err) < 0 ||
        read_health(j, &out->health, err) < 0 ||
        read_text(j, "why", WHY_TEXT_MAX, a, &out->why, err) < 0)
        return -1;
    if (!is_absent(json_get(j, "numa")) && read_int(j, "numa", -1, NUMA_MAX, &numa, err) < 0)
        return -1;
    if (out->uuid[0] == '\0')
        return error_set(err, ERROR_INVALID, "uuid: must not be empty");
    out->index = (int32_t)index;
    out->numa = (int32_t)numa;
    return 0;
}

static int read_cards(json *j, struct arena *a, struct gpu_inventory *out, struct error *err)
{
    if (!json_is_array(j))
        return error_set(err, ERROR_INVALID, "cards: must be an array, not %s", json_kind_name(j));
    if (json_len(j) > GPU_CARDS_MAX)
        return error_set(err, ERROR_INVALID, "cards: more than %d", GPU_CARDS_MAX);
    out->cards = arena_new(a, struct gpu_card, json_len(j));
    for (struct json_iter it = json_iter(j); json_next(&it); out->cards_len++) {
        struct gpu_card *card = &out->cards[out->cards_len];
        if (read_card(it.value, a, card, err) < 0)
            return error_wrap(err, "cards[%zu]", out->cards_len);
        for (size_t i = 0; i < out->cards_len; i++) {
            if (out->cards[i].index == card->index)
                return error_set(err, ERROR_INVALID, "cards[%zu].i: card %d is there twice",
                                 out->cards_len, (int)card->index);
            if (str_eq(out->cards[i].uuid, card->uuid))
                return error_set(err, ERROR_INVALID, "cards[%zu].uuid: '%s' is there twice",
                                 out->cards_len, card->uuid);
        }
    }
    return 0;
}

static int read_links(json *j, struct arena *a, struct gpu_inventory *out, struct error *err)
{
    size_t n = out->cards_len, row = 0;

    if (is_absent(j))
        return 0;
    if (!json_is_array(j) || json_len(j) != n)
        return error_set(err, ERROR_INVALID, "links: must be an array of %zu rows", n);
    const char **links = arena_new(a, const char *, n *n);
    for (struct json_iter it = json_iter(j); json_next(&it); row++) {
        size_t column = 0;
        if (!json_is_array(it.value) || json_len(it.value) != n)
            return error_set(err, ERROR_INVALID, "links[%zu]: must be an array of %zu links", row,
                             n);
        for (struct json_iter cell = json_iter(it.value); json_next(&cell); column++) {
            const char *text = json_str(cell.value);
            if (!text || text[0] == '\0' || json_str_len(cell.value) > LINK_TEXT_MAX)
                return error_set(err, ERROR_INVALID,
                                 "links[%zu][%zu]: must be a string of 1 to %d bytes", row, column,
                                 LINK_TEXT_MAX);
            links[row * n + column] = arena_strdup(a, text);
        }
    }
    out->links = links;
    return 0;
}

int gpu_inventory_read_cards(json *root, struct arena *a, struct gpu_inventory *out,
                             struct error *err)
{
    *out = (struct gpu_inventory){0};
    if (read_cards(json_get(root, "cards"), a, out, err) < 0 ||
        read_links(json_get(root, "links"), a, out, err) < 0)
        return error_wrap(err, "gpu inventory");
    return 0;
}

static int read_inventory(json *root, struct arena *a, struct gpu_inventory *out, struct error *err)
{
    int64_t version;

    if (!json_is_object(root))
        return error_set(err, ERROR_INVALID, "must be an object, not %s", json_kind_name(root));
    if (!json_get_int(root, "v", &version) || version != 1)
        return error_set(err, ERROR_INVALID, "v: only version 1 is known");
    if (read_mode(root, "mode", &out->mode, err) < 0)
        return -1;
    out->switching = !is_absent(json_get(root, "switchingTo"));
    if (out->switching && read_mode(root, "switchingTo", &out->switching_to, err) < 0)
        return -1;
    if (read_text(root, "isolation", CARD_TEXT_MAX, a, &out->isolation, err) < 0 ||
        read_cards(json_get(root, "cards"), a, out, err) < 0)
        return -1;
    return read_links(json_get(root, "links"), a, out, err);
}

int gpu_inventory_decode(const char *text, size_t n, struct arena *a, struct gpu_inventory *out,
                         struct error *err)
{
    struct gpu_inventory inv = {0};
    AUTO_JSON *doc = NULL;

    *out = inv;
    if (n > GPU_INVENTORY_BYTES_MAX)
        return error_set(err, ERROR_INVALID, "gpu inventory: longer than %d bytes",
                         GPU_INVENTORY_BYTES_MAX);
    if (json_parse(&doc, text, n, err) < 0 || read_inventory(json_root(doc), a, &inv, err) < 0)
        return error_wrap(err, "gpu inventory");
    *out = inv;
    return 0;
}

static void write_card(struct json_writer *w, const struct gpu_card *c)
{
    json_object_begin(w);
    json_kv_int(w, "i", c->index);
    json_kv_str(w, "uuid", str_or_empty(c->uuid));
    json_kv_str(w, "model", str_or_empty(c->model));
    json_kv_int(w, "mib", c->mib);
    json_kv_int(w, "numa", c->numa);
    json_kv_str(w, "pci", str_or_empty(c->pci));
    json_kv_str(w, "health", c->health == GPU_HEALTH_OK ? "ok" : "sick");
    if (c->health != GPU_HEALTH_OK && str_or_empty(c->why)[0] != '\0')
        json_kv_str(w, "why", c->why);
    json_object_end(w);
}

void gpu_inventory_encode(const struct gpu_inventory *inv, struct strbuf *out)
{
    struct json_writer w;

    json_writer_init(&w, out);
    json_object_begin(&w);
    json_kv_int(&w, "v", 1);
    json_kv_str(&w, "mode", gpu_mode_name(inv->mode));
    json_kv_str(&w, "switchingTo", inv->switching ? gpu_mode_name(inv->switching_to) : NULL);
    if (inv->isolation)
        json_kv_str(&w, "isolation", inv->isolation);
    json_key(&w, "cards");
    json_array_begin(&w);
    for (size_t i = 0; i < inv->cards_len; i++)
        write_card(&w, &inv->cards[i]);
    json_array_end(&w);
    if (inv->links) {
        json_key(&w, "links");
        json_array_begin(&w);
        for (size_t i = 0; i < inv->cards_len; i++) {
            json_array_begin(&w);
            for (size_t k = 0; k < inv->cards_len; k++)
                json_put_str(&w, inv->links[i * inv->cards_len + k]);
            json_array_end(&w);
        }
        json_array_end(&w);
    }
    json_object_end(&w);
}
