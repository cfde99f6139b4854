// SPDX-License-Identifier: Apache-2.0
/*
 * api_watch - watches: replay, then live.
 *
 *   api_watch ──► begin: what is there (ADDED), or what happened since (store_replay; too old:
 *                   │    an ERROR event with 410 under status 200)
 *                   │
 *                   ▼
 *                 live ──on_event──► a line per change that the selectors see
 *                   │  ──on_timer──► BOOKMARK, each minute and before the end
 *                   ▼
 *                 end: timeoutSeconds, api_close_watches; or gone: on_close
 *
 * For a watch with selectors an object that begins to match is ADDED, and one that ceases to match
 * is DELETED (its old state, with the version of the change).
 *
 * A line is encoded once per change and form, and shared by all watches that send it: with four
 * watchers and plain JSON an event costs one copy of its text. The store calls one listener per
 * kind that is watched.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/vec.h"
#include "test/local/api/api_internal.h"
#include "test/local/kinds/table.h"

enum { BOOKMARK_MS = 60 * 1000, BOOKMARK_BEFORE_END_MS = 2000, DEFAULT_TIMEOUT_S = 1800 };

enum line_type { LINE_ADDED, LINE_MODIFIED, LINE_DELETED, LINE_TYPES };
static const char *const type_names[LINE_TYPES] = {"ADDED", "MODIFIED", "DELETED"};

struct watch_room;

struct watch {
    struct watch_room *room;
    struct call *call;
    char ns[256]; /* "": all */
    bool one_ns;
    struct api_selection selection;
    enum api_form form;
    bool bookmarks;
    bool started;   /* a table's columns have been sent */
    uint64_t since; /* nothing up to this version is sent */
    int64_t end_ms, bookmark_ms;
    struct loop_timer timer;
    struct watch *next, **prev;
};

/* All watches of a kind. */
struct watch_room {
    struct api *api;
    const struct kind *kind;
    struct store_listener listener;
    struct watch *watches;
    struct watch **end;
};

struct api_watches {
    struct api *api;
    struct VEC(struct watch_room *) rooms;
};

/* ---- lines ---- */

/* The lines of one change, printed when the first watch needs them. Table rows are shared between
 * watches, except the first of each watch, which has the column definitions. */
struct lines {
    const struct store_event *event;
    struct shared_bytes *made[LINE_TYPES][API_PARTIAL + 1];
    struct object
        *left; /* the old state with the new version: for a selector that it no longer matches */
};

static void print_line(struct api *a, enum line_type type, enum api_form form, bool first,
                       struct object *o, struct strbuf *out)
{
    strbuf_reserve(out, o->text_len + 64);
    strbuf_adds(out, "{\"type\":\"");
    strbuf_adds(out, type_names[type]);
    strbuf_adds(out, "\",\"object\":");
    if (form == API_TABLE || form == API_TABLE_FULL)
        table_print_event_object(o->kind, o, form == API_TABLE_FULL, first, a->config.now_ns(),
                                 out);
    else
        api_print_object(a, form, o, out);
    strbuf_adds(out, "}\n");
}

/* The object as it was, numbered as the change that it left by. A copy of its own: few watches have
 * selectors, fewer objects leave them. */
static struct object *as_left(const struct store_event *e)
{
    struct jsontree *t = NULL;
    struct strbuf text;
    char version[24];
    if (jsontree_parse(&t, e->before->text, e->before->text_len, NULL) < 0)
        return object_ref(e->before);
    (void)str_format(version, sizeof version, "%llu", (unsigned long long)e->version);
    jsonnode_set_str(t, jsonnode_need_object(t, jsontree_root(t), "metadata"), "resourceVersion",
                     version);
    strbuf_init(&text);
    jsontree_print(t, &text);
    jsontree_free(t);
    /* One block, like every object. */
    char *block = mem_new(char, sizeof(struct object) + text.len + 1);
    struct object *o = (struct object *)(void *)block;
    *o = *e->before;
    o->refs = 1;
    o->version = e->version;
    o->text = memcpy(block + sizeof *o, strbuf_str(&text), text.len + 1);
    o->text_len = text.len;
    strbuf_deinit(&text);
    return o;
}

static struct shared_bytes *line_of(struct api *a, struct lines *l, enum line_type type,
                                    enum api_form form, bool first, bool leaves)
{
    struct object *o = l->event->object;
    if (!first && l->made[type][form])
        return shared_bytes_ref(l->made[type][form]);
    if (leaves) {
        if (!l->left)
            l->left = as_left(l->event);
        o = l->left;
    }
    struct strbuf text;
    strbuf_init(&text);
    print_line(a, type, form, first, o, &text);
    struct shared_bytes *b = shared_bytes_new(&text);
    /* An event is either a deletion for all or a change that some see as a leave: one DELETED
     * line. */
    if (!first)
        l->made[type][form] = shared_bytes_ref(b);
    return b;
}

static void drop_lines(struct lines *l)
{
    for (int t = 0; t < LINE_TYPES; t++)
        for (int f = 0; f <= API_PARTIAL; f++)
            if (l->made[t][f])
                shared_bytes_unref(l->made[t][f]);
    object_unref(l->left);
}

/* What a change is for a watch; LINE_TYPES: nothing. */
static enum line_type seen_as(const struct watch *w, const struct store_event *e, bool *leaves)
{
    const char *ns = w->one_ns ? w->ns : NULL;
    bool now = e->change != STORE_DELETED && api_selected(&w->selection, ns, e->object);
    bool before = e->before && api_selected(&w->selection, ns, e->before);
    *leaves = before && !now && e->change != STORE_DELETED;
    if (now)
        return before ? LINE_MODIFIED : LINE_ADDED;
    return before ? LINE_DELETED : LINE_TYPES;
}

static void send(struct watch *w, struct lines *l)
{
    bool leaves = false;
    if (l->event->version <= w->since)
        return;
    enum line_type type = seen_as(w, l->event, &leaves);
    if (type == LINE_TYPES)
        return;
    bool first = !w->started && (w->form == API_TABLE || w->form == API_TABLE_FULL);
    struct shared_bytes *b = line_of(w->room->api, l, type, w->form, first, leaves);
    w->started = true;
    call_stream_write(w->call, b);
    shared_bytes_unref(b);
}

static void on_event(void *arg, const struct store_event *e)
{
    struct watch_room *room = arg;
    struct lines l = {.event = e};
    for (struct watch *w = room->watches; w; w = w->next)
        send(w, &l);
    drop_lines(&l);
}

static void replay_one(void *arg, const struct store_event *e)
{
    struct lines l = {.event = e};
    send(arg, &l);
    drop_lines(&l);
}

static void write_text(struct watch *w, struct strbuf *take)
{
    struct shared_bytes *b = shared_bytes_new(take);
    call_stream_write(w->call, b);
    shared_bytes_unref(b);
}

static void send_existing(struct watch *w)
{
    struct api *a = w->room->api;
    struct api_objects all = {0};
    (void)api_collect(a, w->room->kind, w->one_ns ? w->ns : NULL, 0, &w->selection, NULL, &all);
    for (size_t i = 0; i < all.len; i++) {
        struct strbuf text;
        strbuf_init(&text);
        print_line(a, LINE_ADDED, w->form, !w->started, all.items[i], &text);
        w->started = true;
        write_text(w, &text);
    }
    api_objects_deinit(&all);
}

/* Everything up to the store's version has been sent. In a table it is a row, as an object would
 * be. */
static void send_bookmark(struct watch *w, bool initial_end)
{
    const struct kind *k = w->room->kind;
    uint64_t now = store_version(w->room->api->store);
    unsigned long long version = now > w->since ? now : w->since;
    bool table = w->form == API_TABLE || w->form == API_TABLE_FULL;
    bool whole = w->form == API_JSON || w->form == API_TABLE_FULL;
    struct strbuf text;
    strbuf_init(&text);
    strbuf_adds(&text, "{\"type\":\"BOOKMARK\",\"object\":");
    if (table)
        strbuf_addf(&text,
                    "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":"
                    "{\"resourceVersion\":\"%llu\"},\"columnDefinitions\":null,\"rows\":"
                    "[{\"cells\":[],\"object\":",
                    version);
    strbuf_addf(
        &text,
        "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":{\"resourceVersion\":\"%llu\"%s}}",
        whole ? k->kind : "PartialObjectMetadata", whole ? k->api_version : "meta.k8s.io/v1",
        version, initial_end ? ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}" : "");
    strbuf_adds(&text, table ? "}]}}\n" : "}\n");
    write_text(w, &text);
}

/* ---- life ---- */

static struct watch_room *room_of(struct api *a, const struct kind *k)
{
    struct api_watches *all = a->watches;
    for (size_t i = 0; i < all->rooms.len; i++)
        if (all->rooms.items[i]->kind == k)
            return all->rooms.items[i];
    struct watch_room *room = mem_new(struct watch_room, 1);
    *room = (struct watch_room){.api = a, .kind = k};
    room->end = &room->watches;
    room->listener = (struct store_listener){.kind = k, .fn = on_event, .arg = room};
    store_listen(a->store, &room->listener);
    vec_push(&all->rooms, room);
    return room;
}

static void watch_free(struct watch *w)
{
    if (w->prev) {
        *w->prev = w->next;
        if (w->next)
            w->next->prev = w->prev;
        else
            w->room->end = w->prev;
    }
    loop_timer_cancel(w->room->api->config.loop, &w->timer);
    api_selection_deinit(&w->selection);
    free(w);
}

static void on_close(void *arg)
{
    watch_free(arg);
}

static void end_watch(struct watch *w)
{
    struct call *c = w->call;
    watch_free(w);
    call_stream_end(c);
}

static void on_timer(void *arg);

static void set_timer(struct watch *w)
{
    int64_t now = clock_mono_ms();
    int64_t next = w->end_ms;
    if (w->bookmarks && w->bookmark_ms < next)
        next = w->bookmark_ms;
    loop_timer_set(w->room->api->config.loop, &w->timer, num_max(next - now, 0), on_timer, w);
}

static void on_timer(void *arg)
{
    struct watch *w = arg;
    int64_t now = clock_mono_ms();
    if (now >= w->end_ms) {
        end_watch(w);
        return;
    }
    if (w->bookmarks && now >= w->bookmark_ms) {
        send_bookmark(w, false);
        int64_t last = w->end_ms - BOOKMARK_BEFORE_END_MS;
        w->bookmark_ms = now + BOOKMARK_MS;
        if (now < last && last < w->bookmark_ms)
            w->bookmark_ms = last;
    }
    set_timer(w);
}

/* ---- beginning ---- */

struct options {
    uint64_t since;
    bool from_there; /* since is a version; otherwise it begins with all there is, or now */
    bool existing;   /* all there is comes first */
    bool mark;       /* and a bookmark says where it ends */
    int64_t timeout_s;
};

static int read_options(const struct call *c, struct watch *w, struct options *o, struct error *err)
{
    struct api_list_options l;
    if (api_list_options(c, true, &l, err) < 0 ||
        api_version_of(l.version, "", 500, &o->since, err) < 0)
        return -1;
    w->bookmarks = l.bookmarks;
    o->from_there = o->since != 0 && !l.initial;
    o->existing = !o->from_there && (l.initial || !l.initial_given);
    o->mark = l.initial && l.bookmarks;
    o->timeout_s = l.timeout_s;
    if (o->timeout_s <= 0 || o->timeout_s > 24 * 3600)
        o->timeout_s = DEFAULT_TIMEOUT_S + clock_jitter(DEFAULT_TIMEOUT_S);
    return 0;
}

/* ERROR under status 200: the stream has already begun. */
static void reply_error_event(struct call *c, const struct strbuf *status)
{
    struct strbuf text;
    strbuf_init(&text);
    strbuf_addf(&text, "{\"type\":\"ERROR\",\"object\":%s}\n", strbuf_str(status));
    call_reply(c, 200, "application/json", NULL, &text);
}

static void refuse_as_too_old(struct call *c, uint64_t since, uint64_t oldest)
{
    AUTO_STRBUF status;
    char message[96];
    strbuf_init(&status);
    (void)str_format(message, sizeof message, "too old resource version: %llu (%llu)",
                     (unsigned long long)since, (unsigned long long)oldest);
    api_status_failure(&status, 410, "Expired", message, NULL);
    reply_error_event(c, &status);
}

/* All there is at a version that is not yet. A real server waits for it a while. */
static void refuse_as_too_new(struct call *c, uint64_t since, uint64_t now)
{
    AUTO_STRBUF status;
    strbuf_init(&status);
    api_print_too_large(since, now, &status);
    reply_error_event(c, &status);
}

static void ignore_event(void *arg, const struct store_event *e)
{
    (void)arg;
    (void)e;
}

static void begin(struct watch *w, struct call *c, const struct options *o)
{
    struct api *a = w->room->api;
    uint64_t now = store_version(a->store);
    /* A replay that would fail must not have begun its stream. */
    if (o->from_there && o->since < now && o->since < store_oldest(a->store) &&
        !store_replay(a->store, w->room->kind, o->since, ignore_event, NULL)) {
        refuse_as_too_old(c, o->since, store_oldest(a->store));
        watch_free(w);
        return;
    }
    if (!o->from_there && o->since > now) {
        refuse_as_too_new(c, o->since, now);
        watch_free(w);
        return;
    }
    int64_t mono = clock_mono_ms();
    w->call = c;
    w->end_ms = mono + o->timeout_s * 1000;
    w->bookmark_ms = mono + num_min(BOOKMARK_MS, o->timeout_s * 1000 - BOOKMARK_BEFORE_END_MS);
    if (w->bookmark_ms <= mono) /* too short for one */
        w->bookmark_ms = w->end_ms;
    call_stream_begin(c, 200, "application/json", on_close, w);
    w->since = o->from_there ? o->since : now;
    if (o->existing)
        send_existing(w);
    if (o->from_there && o->since < now)
        (void)store_replay(a->store, w->room->kind, o->since, replay_one, w);
    if (o->mark)
        send_bookmark(w, true);
    call_stream_begun(c);
    w->prev = w->room->end;
    *w->room->end = w;
    w->room->end = &w->next;
    set_timer(w);
}

void api_watch(struct api *a, struct call *c, const struct api_target *t)
{
    struct error err = ERROR_INIT;
    struct options o = {0};
    struct watch *w = mem_new(struct watch, 1);
    w->room = room_of(a, t->kind);
    arena_init(&w->selection.arena, 0);
    if (t->ns) {
        w->one_ns = true;
        (void)str_format(w->ns, sizeof w->ns, "%s", t->ns);
    }
    if (api_form_of(c, &w->form, &err) < 0 || api_select(c, t, &w->selection, &err) < 0 ||
        read_options(c, w, &o, &err) < 0) {
        watch_free(w);
        api_reply_error(c, &err, NULL, NULL);
        return;
    }
    begin(w, c, &o);
}

void api_close_watches(struct api *a)
{
    for (size_t i = 0; i < a->watches->rooms.len; i++)
        for (struct watch *w = a->watches->rooms.items[i]->watches, *next; w; w = next) {
            next = w->next;
            end_watch(w);
        }
}

struct api_watches *api_watches_new(struct api *a)
{
    struct api_watches *w = mem_new(struct api_watches, 1);
    w->api = a;
    return w;
}

void api_watches_free(struct api_watches *all)
{
    api_close_watches(all->api);
    for (size_t i = 0; i < all->rooms.len; i++) {
        store_unlisten(all->api->store, &all->rooms.items[i]->listener);
        free(all->rooms.items[i]);
    }
    vec_deinit(&all->rooms);
    free(all);
}
