// SPDX-License-Identifier: Apache-2.0
/*
 * agent - decides what this node offers. All its inputs are in struct agent. After every change
 * offer() recomputes everything from them: resources, ids, refusals and what is published. There is
 * no other path, so the state cannot depend on the order of events.
 *
 *   agent_cards ─┐
 *   agent_node ──┼─► offer ─► service (lists, refusal) ─► register (sockets) ─► publish
 *   poll_held ───┘      └─► state file
 *
 * Resources of former modes stay registered with an empty list: the kubelet then shows 0.
 */
#include "device-plugin/agent.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device-plugin/cards/inventory.h"
#include "device-plugin/cards/mode.h"
#include "device-plugin/isolation/mpsd.h"
#include "lib/base/statefile.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/model/names.h"

#define STATE_FILE "mode.json"
#define CDI_FILE "cosched.io-gpu.json"

struct agent {
    struct agent_config config;
    struct registrar *registrar;
    struct strbuf saved; /* content of the state file */

    struct arena cards_arena;
    struct gpu_inventory cards;
    bool cards_known;

    struct mode mode;
    bool node_known;
    bool foreign_nvidia;  /* another plugin serves nvidia.com/gpu */
    int64_t nvidia_shown; /* allocatable on the Node */
    struct loop_timer foreign;
    bool suspecting; /* the foreign timer is set */

    struct arena held_arena;
    struct inventory_ids held[MODE_RESOURCES];
    bool held_known; /* since the switch began */
    struct loop_timer poll, save, look;
    const struct isolation_engine *engine; /* the active one */
    struct mpsd *mpsd;
    struct strbuf cdi_written; /* the CDI spec; empty: none */
    char cdi_error[ERROR_TEXT_SIZE];
    /* The last error of each kind, logged once. */
    char save_error[ERROR_TEXT_SIZE], poll_error[ERROR_TEXT_SIZE], card_error[ERROR_TEXT_SIZE],
        mig_told[ERROR_TEXT_SIZE];
    char last_event[2][256]; /* reason and start of the message: sent once */
};

static struct metric advertised = {.kind = METRIC_GAUGE,
                                   .name = "cosched_device_plugin_advertised_ids",
                                   .help = "Healthy ids offered to the kubelet, by resource.",
                                   .label = "resource"};
static struct metric sick_cards = {.kind = METRIC_GAUGE,
                                   .name = "cosched_device_plugin_sick_cards",
                                   .help = "Cards that are lost or not healthy."};

static void poll_held(void *arg);
static void offer(struct agent *g);
static void suspect(struct agent *g);

static void say(struct agent *g, bool warning, const char *reason, const char *message)
{
    if (str_eq(g->last_event[0], reason) && str_starts(message, g->last_event[1]))
        return;
    (void)str_format(g->last_event[0], sizeof g->last_event[0], "%s", reason);
    (void)str_format(g->last_event[1], sizeof g->last_event[1], "%s", message);
    if (warning)
        log_warn(message, kv("reason", reason));
    else
        log_info(message, kv("reason", reason));
    if (g->config.event != NULL)
        g->config.event(g->config.arg, warning, reason, message);
}

static int load_state(struct agent *g, struct error *err)
{
    AUTO_STRBUF path;
    struct error why = ERROR_INIT;
    strbuf_init(&path);
    strbuf_addf(&path, "%s/%s", g->config.state_dir, STATE_FILE);
    int result = file_read(strbuf_str(&path), MODE_STATE_BYTES_MAX, &g->saved, &why);
    if (result < 0 && why.code == ERROR_NOT_FOUND)
        return 0;
    if (result < 0 && why.code != ERROR_TOO_LARGE) {
        *err = why;
        return error_wrap(err, "state file");
    }
    if (result < 0 || mode_decode(&g->mode, strbuf_str(&g->saved), g->saved.len, &why) < 0) {
        log_warn("state file ignored, the node's label decides", kv("file", strbuf_str(&path)),
                 kv("error", why.text));
        strbuf_reset(&g->saved);
    }
    return 0;
}

static void save_state(void *arg)
{
    struct agent *g = arg;
    struct error err = ERROR_INIT;
    AUTO_STRBUF text;
    strbuf_init(&text);
    mode_encode(&g->mode, &text);
    if (str_eq(strbuf_str(&text), strbuf_str(&g->saved)))
        return;
    int result = statefile_write(g->config.state_dir, STATE_FILE, text.ptr, text.len, &err);
    if (error_is_news(g->save_error, err.text))
        log_error("the mode would not survive a restart", kv("error", err.text));
    if (result < 0) {
        loop_timer_set(g->config.loop, &g->save, AGENT_SAVE_MS, save_state, g);
        return;
    }
    strbuf_reset(&g->saved);
    strbuf_add(&g->saved, text.ptr, text.len);
}

/* Why new containers are refused, or NULL. */
static const char *refusal(struct agent *g, struct arena *a)
{
    const struct mode *m = &g->mode;
    if (m->switching)
        return arena_printf(
            a,
            "this node is leaving GPU mode %s for %s: it takes no new GPU pods until the running ones are gone",
            gpu_mode_name(m->current), gpu_mode_name(m->to));
    if (g->foreign_nvidia && m->current != GPU_MODE_DEFAULT)
        return arena_printf(a,
                            "GPU mode %s is refused: another device plugin serves %s on this node",
                            gpu_mode_name(m->current), NAME_RES_NVIDIA_GPU);
    if (g->foreign_nvidia && g->config.exclusive)
        return arena_printf(a, "another device plugin serves %s on this node", NAME_RES_NVIDIA_GPU);
    struct error why = ERROR_INIT;
    g->engine = isolation_find(&g->config.isolation, m->current, &g->cards, &why);
    if (g->engine == NULL && mode_needs_isolation(m->current))
        return arena_printf(
            a,
            "GPU mode %s promises isolation and no engine for it was found (%s): bring it, choose mode share, or start the "
            "device plugin with --isolation=none to accept that containers can take more than their share",
            gpu_mode_name(m->current), why.text);
    if (g->config.list == AGENT_CDI && g->cdi_error[0] != '\0')
        return arena_printf(a, "containers are to get their cards by CDI, and there is no spec: %s",
                            g->cdi_error);
    return NULL;
}

/* The mode's resources that we may register. */
static uint32_t ours(const struct agent *g)
{
    uint32_t mask = mode_resources(g->mode.current);
    if (!g->config.exclusive || g->foreign_nvidia)
        mask &= ~(1u << MODE_NVIDIA_GPU);
    return mask;
}

static void offer_list(struct agent *g, enum mode_resource r, const struct gpu_inventory *cards,
                       const char *why_not, struct arena *a)
{
    struct inventory_devices d = {0};
    if (g->mode.switching) {
        if (!g->held_known)
            return; /* the old offer stays until the kubelet has told what is held */
        inventory_devices(cards, r, &g->held[r], a, &d);
    } else if (why_not == NULL && ours(g) & 1u << r) {
        inventory_devices(cards, r, NULL, a, &d);
    }
    int64_t healthy = 0;
    for (size_t i = 0; i < d.len; i++)
        healthy += d.items[i].healthy;
    metrics_set(&advertised, mode_resource_name(r), healthy);
    if (g->config.offered != NULL)
        g->config.offered(g->config.arg, r, &d);
    if (service_set_devices(g->config.service, r, &d)) {
        register_notify(g->registrar, r);
        log_info("device list", kv("resource", mode_resource_name(r)), kv("ids", d.len),
                 kv("healthy", healthy));
    }
}

static void offer_publish(struct agent *g, const struct gpu_inventory *cards, const char *why_not,
                          struct arena *a)
{
    const struct mode *m = &g->mode;
    struct gpu_inventory inv = *cards;
    inv.mode = m->current;
    inv.switching = m->switching;
    inv.switching_to = m->to;
    bool shared = gpu_mode_is_shared(m->current);
    inv.isolation = shared && g->engine != NULL ? g->engine->name : NULL;
    AUTO_STRBUF text;
    strbuf_init(&text);
    gpu_inventory_encode(&inv, &text);
    struct publish_wanted w = {.inventory = strbuf_str(&text)};
    w.gpu_count = shared && (why_not == NULL || m->switching) ? (int64_t)g->cards.cards_len : 0;
    inventory_labels(&g->cards, a, &w.labels);
    if (g->config.publish != NULL)
        g->config.publish(g->config.arg, &w);
}

/* Reports cards that a shared mode leaves out. */
static void tell_mig(struct agent *g, size_t n, struct arena *a)
{
    const char *list = "";
    for (size_t i = 0; n > 0 && i < g->cards.cards_len; i++)
        if (g->cards.cards[i].mig)
            list = arena_printf(a, "%s%s%d", list, list[0] != '\0' ? ", " : "",
                                g->cards.cards[i].index);
    const char *text =
        n == 0
            ? ""
            : arena_printf(
                  a,
                  "GPU mode %s leaves out %zu of the node's %zu cards, which are in MIG mode: %s. "
                  "Turn MIG off to share them, or use mode default",
                  gpu_mode_name(g->mode.current), n, g->cards.cards_len, list);
    if (g->node_known && error_is_news(g->mig_told, text))
        say(g, true, "GpuMig", text);
}

static void tell_ready(void *arg)
{
    struct agent *g = arg;
    if (g->config.ready != NULL)
        g->config.ready(g->config.arg, g->cards_known, g->mode.known,
                        g->cards_known && g->mode.known && register_done(g->registrar));
}

/* Writes the CDI spec if containers get cards by it. In auto mode, an existing directory for specs
 * means that the runtime reads them. */
static void write_cdi(struct agent *g)
{
    struct error err = ERROR_INIT;
    AUTO_STRBUF text;
    strbuf_init(&text);
    if (g->config.cdi_dir == NULL || g->config.cdi_nvidia || g->config.list == AGENT_ENVVAR ||
        g->config.list == AGENT_DEVICE_SPECS)
        return;
    if (g->config.list == AGENT_AUTO && access(g->config.cdi_dir, F_OK) < 0)
        return;
    /* CDI was chosen explicitly: its directory may not exist yet. The write below reports
     * errors. */
    if (g->config.list == AGENT_CDI)
        (void)mkdir(g->config.cdi_dir, 0755);
    response_cdi_spec(&g->cards, &text);
    if (str_eq(strbuf_str(&text), strbuf_str(&g->cdi_written)))
        return;
    int result = statefile_write(g->config.cdi_dir, CDI_FILE, text.ptr, text.len, &err);
    if (error_is_news(g->cdi_error, err.text))
        log_error("the CDI spec cannot be written", kv("error", err.text));
    strbuf_reset(&g->cdi_written);
    if (result == 0)
        strbuf_add(&g->cdi_written, text.ptr, text.len);
}

static void set_answer(struct agent *g)
{
    struct service_answer w = {.engine = g->engine, .isolation = &g->config.isolation};
    if (g->config.list == AGENT_DEVICE_SPECS)
        w.list = RESPONSE_DEVICE_SPECS;
    else if (g->config.cdi_nvidia && (g->config.list == AGENT_CDI ||
                                      (g->config.list == AGENT_AUTO && g->config.cdi_dir != NULL &&
                                       access(g->config.cdi_dir, F_OK) == 0)))
        w.list = RESPONSE_CDI_NVIDIA;
    else if (g->cdi_written.len > 0)
        w.list = RESPONSE_CDI;
    service_set_answer(g->config.service, &w);
}

/* Has the engine appeared or disappeared since the last offer? */
static void look_for_engine(void *arg)
{
    struct agent *g = arg;
    struct error why = ERROR_INIT;
    if (!g->mode.known || !mode_needs_isolation(g->mode.current) || g->config.isolation.none)
        return;
    if (isolation_find(&g->config.isolation, g->mode.current, &g->cards, &why) != g->engine) {
        offer(g);
        return;
    }
    service_keep(g->config.service);
    loop_timer_beat(g->config.loop, &g->look, AGENT_ENGINE_MS, look_for_engine, g);
}

static void offer(struct agent *g)
{
    if (!g->cards_known || !g->mode.known) {
        tell_ready(g);
        return;
    }
    struct arena a;
    arena_init(&a, 0);
    if (g->mpsd != NULL)
        mpsd_want(g->mpsd, g->mode.current == GPU_MODE_MPS && !g->config.isolation.none);
    write_cdi(g);
    const char *why_not = refusal(g, &a);
    set_answer(g);
    loop_timer_beat(g->config.loop, &g->look, AGENT_ENGINE_MS, look_for_engine, g);
    struct gpu_inventory cards;
    size_t mig = inventory_in_mode(&g->cards, g->mode.current, &a, &cards);
    service_set_inventory(g->config.service, &cards);
    service_set_mode(g->config.service, g->mode.current, why_not);
    if (g->config.in_force != NULL)
        g->config.in_force(g->config.arg, g->mode.current, g->engine);
    g->mode.served |= ours(g);
    if (!g->config.exclusive || (g->foreign_nvidia && g->mode.current == GPU_MODE_DEFAULT))
        g->mode.served &= ~(1u << MODE_NVIDIA_GPU);
    save_state(g);
    for (int r = 0; r < MODE_RESOURCES; r++)
        if (g->mode.served & 1u << r)
            offer_list(g, (enum mode_resource)r, &cards, why_not, &a);
    register_want(g->registrar, g->mode.served);
    offer_publish(g, &cards, why_not, &a);
    tell_mig(g, mig, &a);
    /* An Event needs the node's uid; once the node is known, offer runs again. */
    if (why_not != NULL && !g->mode.switching && g->node_known)
        say(g, true, g->foreign_nvidia ? "ForeignDevicePlugin" : "IsolationMissing", why_not);
    arena_deinit(&a);
    tell_ready(g);
}

static void mode_changed(struct agent *g, enum mode_change change, const char *label)
{
    struct arena a;
    arena_init(&a, 0);
    switch (change) {
    case MODE_SAME:
        break;
    case MODE_ENTERED:
        say(g, false, "GpuMode",
            arena_printf(&a, "the node is in GPU mode %s", gpu_mode_name(g->mode.current)));
        break;
    case MODE_RETURNED:
        say(g, false, "GpuMode",
            arena_printf(&a, "the node stays in GPU mode %s", gpu_mode_name(g->mode.current)));
        break;
    case MODE_SWITCHING:
        g->held_known = false;
        loop_timer_set(g->config.loop, &g->poll, MODE_SETTLE_MS, poll_held, g);
        say(g, false, "GpuModeSwitch",
            arena_printf(&a,
                         "the node goes from GPU mode %s to %s as soon as no container holds a GPU",
                         gpu_mode_name(g->mode.current), gpu_mode_name(g->mode.to)));
        break;
    case MODE_UNKNOWN_LABEL:
        say(g, true, "GpuModeUnknown",
            arena_printf(&a, "label %s is '%.63s', which is none of %s: the node stays in mode %s",
                         NAME_LABEL_GPU_MODE, str_or_empty(label), gpu_mode_names(),
                         gpu_mode_name(g->mode.current)));
        break;
    }
    arena_deinit(&a);
}

static void poll_held(void *arg)
{
    struct agent *g = arg;
    struct error err = ERROR_INIT;
    struct arena fresh;
    struct inventory_ids held[MODE_RESOURCES];
    if (!g->mode.switching)
        return;
    int64_t asked_ms = clock_mono_ms();
    arena_init(&fresh, 0);
    if (service_held(g->config.service, REGISTER_RETRY_MS * 5, &fresh, held, &err) < 0) {
        arena_deinit(&fresh);
        if (error_is_news(g->poll_error, err.text))
            log_warn("cannot check whether the mode can be switched", kv("error", err.text));
    } else {
        g->poll_error[0] = '\0';
        arena_deinit(&g->held_arena);
        g->held_arena = fresh;
        memcpy(g->held, held, sizeof held);
        g->held_known = true;
        uint32_t resources = mode_resources(g->mode.current);
        size_t n = service_init_holders(g->config.service, resources);
        for (int r = 0; r < MODE_RESOURCES; r++)
            if (resources & 1u << r)
                n += held[r].len;
        mode_changed(g, mode_held(&g->mode, n, asked_ms), NULL);
        offer(g);
        suspect(g);
    }
    if (g->mode.switching)
        loop_timer_set(g->config.loop, &g->poll, AGENT_HELD_MS, poll_held, g);
}

void agent_cards(struct agent *g, const struct gpu_inventory *scan)
{
    struct error err = ERROR_INIT;
    struct arena fresh;
    struct gpu_inventory picked, merged;
    arena_init(&fresh, 0);
    (void)inventory_pick(scan, &fresh, &picked, &err);
    if (error_is_news(g->card_error, err.text))
        log_error("a card cannot be offered", kv("error", err.text));
    inventory_merge(g->cards_known ? &g->cards : NULL, &picked, &fresh, &merged);
    if (g->cards_known && inventory_equal(&g->cards, &merged)) {
        arena_deinit(&fresh);
        return;
    }
    int64_t sick = 0;
    for (size_t i = 0; i < merged.cards_len; i++) {
        const struct gpu_card *c = &merged.cards[i];
        sick += c->health != GPU_HEALTH_OK;
        log_info("card", kv("index", c->index), kv("uuid", c->uuid), kv("model", c->model),
                 kv("mib", c->mib), kv("numa", c->numa),
                 kv("health", c->health == GPU_HEALTH_OK ? "ok" : "sick"));
    }
    metrics_set(&sick_cards, NULL, sick);
    arena_deinit(&g->cards_arena);
    g->cards_arena = fresh;
    g->cards = merged;
    g->cards_known = true;
    offer(g);
}

/* Does the Node show nvidia.com/gpu that we do not offer? If we never served it, it is another
 * plugin's. If we have, it may be our own until the kubelet reports our change, so only time
 * tells. */
static bool is_suspect(const struct agent *g)
{
    return g->nvidia_shown > 0 && g->mode.known && !g->mode.switching &&
           g->mode.current != GPU_MODE_DEFAULT && g->mode.served & 1u << MODE_NVIDIA_GPU;
}

static void foreign_after_all(void *arg)
{
    struct agent *g = arg;
    g->suspecting = false;
    if (!is_suspect(g))
        return;
    g->mode.served &= ~(1u << MODE_NVIDIA_GPU);
    g->foreign_nvidia = true;
    offer(g);
}

static void suspect(struct agent *g)
{
    bool now = is_suspect(g);
    if (now && !g->suspecting)
        loop_timer_set(g->config.loop, &g->foreign,
                       g->config.foreign_ms > 0 ? g->config.foreign_ms : AGENT_FOREIGN_MS,
                       foreign_after_all, g);
    else if (!now && g->suspecting)
        loop_timer_cancel(g->config.loop, &g->foreign);
    g->suspecting = now;
}

void agent_node(struct agent *g, const struct node *node)
{
    const char *label = labels_get(&node->labels, NAME_LABEL_GPU_MODE);
    bool first = !g->node_known;
    bool had_foreign = g->foreign_nvidia;
    g->node_known = true;
    g->nvidia_shown = resources_get(&node->allocatable, NAME_RES_NVIDIA_GPU, NULL);
    g->foreign_nvidia = !(g->mode.served & 1u << MODE_NVIDIA_GPU) && g->nvidia_shown > 0;
    service_set_placement(g->config.service,
                          str_eq(labels_get(&node->labels, NAME_LABEL_GPU_PLACEMENT), "spread")
                              ? GPU_SPREAD
                              : GPU_BINPACK);
    enum mode_change change = mode_label(&g->mode, label, clock_mono_ms());
    mode_changed(g, change, label);
    if (first || had_foreign != g->foreign_nvidia ||
        (change != MODE_SAME && change != MODE_UNKNOWN_LABEL))
        offer(g);
    suspect(g);
}

int agent_new(struct agent **out, const struct agent_config *c, struct error *err)
{
    struct agent *g = mem_new(struct agent, 1);
    g->config = *c;
    strbuf_init(&g->saved);
    strbuf_init(&g->cdi_written);
    if (c->mps_control != NULL && c->mps_control[0] != '\0') {
        g->config.isolation.mps_own = true;
        mpsd_new(&g->mpsd, c->loop, c->mps_control, c->isolation.mps_pipe, c->mps_log,
                 look_for_engine, g);
    }
    arena_init(&g->cards_arena, 0);
    arena_init(&g->held_arena, 0);
    metrics_register(&advertised);
    metrics_register(&sick_cards);
    int result = 0;
    if ((mkdir(c->state_dir, 0755) < 0 && errno != EEXIST) || access(c->state_dir, W_OK) < 0)
        result = error_errno(err, errno, "state directory %s", c->state_dir);
    if (result < 0 || load_state(g, err) < 0 ||
        register_new(&g->registrar, c->loop, c->plugin_dir, c->service, tell_ready, g, err) < 0) {
        agent_free(g);
        return -1;
    }
    if (g->mode.switching) { /* since before a restart */
        g->mode.since_ms = clock_mono_ms();
        loop_timer_set(c->loop, &g->poll, MODE_SETTLE_MS, poll_held, g);
    }
    *out = g;
    return 0;
}

void agent_free(struct agent *g)
{
    if (g == NULL)
        return;
    loop_timer_cancel(g->config.loop, &g->poll);
    loop_timer_cancel(g->config.loop, &g->save);
    loop_timer_cancel(g->config.loop, &g->look);
    mpsd_free(g->mpsd);
    loop_timer_cancel(g->config.loop, &g->foreign);
    register_free(g->registrar);
    arena_deinit(&g->cards_arena);
    arena_deinit(&g->held_arena);
    strbuf_deinit(&g->saved);
    strbuf_deinit(&g->cdi_written);
    free(g);
}
