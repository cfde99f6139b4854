// SPDX-License-Identifier: Apache-2.0
/* health_store - {"v":1,"sick":[{"uuid":"GPU-…","why":"XID 48: …","holdMs":30000,"ecc":2}]}. The
 * driver reports an XID once. A process started later sees a card that answers every query, and
 * would offer it again: so the cause is stored before it is published, and removed when the card
 * has recovered. No times are stored: to be careful, the hold starts again with the process. */
#include "device-plugin/cards/health_store.h"

#include "lib/base/statefile.h"
#include "lib/base/json.h"
#include "lib/base/log.h"
#include "lib/base/str.h"

static int recall(json *j, void *user, struct error *err)
{
    struct health *h = user;
    struct health_memory m = {.ecc = -1};
    const char *uuid = json_get_str(j, "uuid"), *why = json_get_str(j, "why");
    if (uuid == NULL || uuid[0] == '\0' || !str_format(m.uuid, sizeof m.uuid, "%s", uuid))
        return error_set(err, ERROR_INVALID, "uuid: must be a text of 1 to %d bytes",
                         HEALTH_UUID_SIZE - 1);
    if (why == NULL || !str_format(m.why, sizeof m.why, "%s", why))
        return error_set(err, ERROR_INVALID, "why: must be a text of at most %d bytes",
                         HEALTH_WHY_SIZE - 1);
    if (!json_get_int(j, "holdMs", &m.hold_ms) || m.hold_ms < 0)
        return error_set(err, ERROR_INVALID, "holdMs: must be an integer of at least 0");
    if (!json_get_int(j, "ecc", &m.ecc) || m.ecc < -1)
        return error_set(err, ERROR_INVALID, "ecc: must be an integer of at least -1");
    health_recall(h, &m);
    log_warn("a card was sick before this start and must recover first", kv("uuid", m.uuid),
             kv("why", m.why));
    return 0;
}

void health_store_load(const char *dir, struct health *h)
{
    const struct statefile_list file = {.dir = dir,
                                        .name = HEALTH_STORE,
                                        .list = "sick",
                                        .bytes_max = HEALTH_STORE_BYTES_MAX,
                                        .max = GPU_CARDS_MAX};
    struct error err = ERROR_INIT;
    if (statefile_read(&file, recall, h, &err) < 0)
        log_warn("state file ignored, every card that answers counts as healthy",
                 kv("error", err.text));
}

void health_store_save(const char *dir, const struct health *h)
{
    struct health_memory sick[GPU_CARDS_MAX];
    size_t n = health_remember(h, sick);
    AUTO_STRBUF text;
    struct json_writer w;
    struct error err = ERROR_INIT;
    strbuf_init(&text);
    json_writer_init(&w, &text);
    json_object_begin(&w);
    json_kv_int(&w, "v", 1);
    json_key(&w, "sick");
    json_array_begin(&w);
    for (size_t i = 0; i < n; i++) {
        json_object_begin(&w);
        json_kv_str(&w, "uuid", sick[i].uuid);
        json_kv_str(&w, "why", sick[i].why);
        json_kv_int(&w, "holdMs", sick[i].hold_ms);
        json_kv_int(&w, "ecc", sick[i].ecc);
        json_object_end(&w);
    }
    json_array_end(&w);
    json_object_end(&w);
    strbuf_adds(&text, "\n");
    if (statefile_write(dir, HEALTH_STORE, text.ptr, text.len, &err) < 0)
        log_error("sick cards would not be remembered over a restart", kv("error", err.text));
}
