// SPDX-License-Identifier: Apache-2.0
/*
 * backend_sim - cards from a JSON file, read at every scan, so that a test or demo can remove a
 * card by editing it. The format is that of the cosched.io/gpu-inventory annotation, cards and
 * links:
 *
 *     {"cards":[{"i":0,"uuid":"GPU-a","model":"Tesla T4","mib":16160,"numa":0,
 *                "pci":"0000:3b:00.0","health":"ok"}],
 *      "links":[["X"]]}
 */
#include "device-plugin/cards/backend.h"

#include <stdlib.h>

#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

struct backend {
    char *path;
};

static int sim_open(struct backend **out, const struct backend_config *c, struct error *err)
{
    if (c->sim_file == NULL || c->sim_file[0] == '\0')
        return error_set(err, ERROR_INVALID, "--backend=sim needs --sim-file");
    struct backend *b = mem_new(struct backend, 1);
    struct strbuf path;
    strbuf_init(&path);
    strbuf_adds(&path, c->sim_file);
    b->path = strbuf_take(&path);
    *out = b;
    return 0;
}

static int decode(const struct strbuf *text, struct arena *a, struct gpu_inventory *out,
                  struct error *err)
{
    AUTO_JSON *doc = NULL;
    if (json_parse(&doc, strbuf_str(text), text->len, err) < 0)
        return -1;
    return gpu_inventory_read_cards(json_root(doc), a, out, err);
}

static int sim_scan(struct backend *b, struct arena *a, struct backend_sight *out,
                    struct error *err)
{
    *out = (struct backend_sight){0};
    AUTO_STRBUF text;
    strbuf_init(&text);
    if (file_read(b->path, GPU_INVENTORY_BYTES_MAX, &text, err) < 0 ||
        decode(&text, a, &out->inventory, err) < 0)
        return error_wrap(err, "simulated cards %s", b->path);
    out->cards = arena_new(a, struct backend_card, out->inventory.cards_len);
    for (size_t i = 0; i < out->inventory.cards_len; i++)
        out->cards[i].ecc = -1;
    return 0;
}

static void sim_close(struct backend *b)
{
    if (b == NULL)
        return;
    free(b->path);
    free(b);
}

const struct backend_type backend_sim = {
    .name = "sim", .open = sim_open, .scan = sim_scan, .close = sim_close};
