// SPDX-License-Identifier: Apache-2.0
/*
 * faults - see faults.h. The requests' side: rules, and how a request is treated.
 *
 * THE LANGUAGE. A fault is a JSON object; "fault" names it. POST it to /cosched/faults, or write it
 * behind a time in a script. GET lists the rules that are active and how often each fault was done;
 * DELETE /cosched/faults removes all rules, DELETE /cosched/faults/ID one.
 *
 * Rules, for requests that come:
 *   {"fault":"delay","ms":200}                        answered later
 *   {"fault":"drop"}                                  the connection is reset, nothing was done
 *   {"fault":"lose-reply"}                            it is done, and the connection is reset then
 *   {"fault":"reply","code":429,"retryAfterSeconds":1,"reason":"...","message":"..."}
 *                                                     not done; a Status with that code
 * each with, all optional:
 *   "match":{"method":"POST","path":"/binding","watch":true,"agent":"scheduler"}
 *                     method equal, path and User-Agent contain it, watch: is it one
 *   "every":3         every third request that matches
 *   "percent":10      each that matches with that chance
 *   "count":10        so often, then the rule goes
 *   "seconds":5       so long, then the rule goes
 * Several may meet in one request: delays add up, then the first drop or reply counts.
 *
 * On the spot:
 *   {"fault":"cut-watches","midLine":true}            all watches end (in the middle of a line)
 *   {"fault":"reset-connections"}                     every connection is reset
 *   {"fault":"hold-connections","ms":500}             new connections wait so long
 *   {"fault":"restart","ms":500}                      the API server is away so long, state is kept
 *   {"fault":"compact"}                               the history is dropped: resuming gets 410
 *   {"fault":"partition-node","node":"n1","bad":true}      the node is cut off (false: healed)
 *   {"fault":"restart-kubelet","node":"n1"}
 *   {"fault":"card","node":"n1","card":0,"bad":true}       the card is unhealthy (false: healthy)
 *   {"fault":"recreate-pods","namespace":"x","selector":"app=y","count":5}
 *                                                     deleted at once and made again, unbound
 *   {"fault":"garble","resource":"pods","namespace":"x","name":"y","member":"tolerations"}
 *                                                     spec.tolerations is a number, which no API
 *                                                     server stores; without member there is a
 *                                                     second spec, which is one, behind the first,
 *                                                     by which watches go on selecting it
 *
 *   faults_handle ──► admin: POST, GET, DELETE
 *        └──► weigh the rules ──► nothing: handle()
 *                   └──► delay? hold ──on_due──► drop │ reply │ handle() (its reply lost, if asked)
 */
#include "test/local/faults/faults.h"

#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "test/local/faults/faults_internal.h"

enum { RULES_MAX = 256 };

struct faults *faults_new(const struct faults_config *c)
{
    struct faults *f = mem_new(struct faults, 1);
    f->config = *c;
    f->next_id = 1;
    return f;
}

void faults_set_server(struct faults *f, struct server *server)
{
    f->config.server = server;
}

static void remove_rule(struct faults *f, size_t i)
{
    fault_free(f->rules.items[i]);
    f->rules.len--;
    for (; i < f->rules.len; i++) /* the order is the order of weighing */
        f->rules.items[i] = f->rules.items[i + 1];
}

static void free_held(struct faults_held *h)
{
    loop_timer_cancel(h->faults->config.loop, &h->timer);
    *h->prev = h->next;
    if (h->next)
        h->next->prev = h->prev;
    free(h->reason);
    free(h->message);
    free(h);
}

void faults_free(struct faults *f)
{
    if (!f)
        return;
    for (struct faults_held *h = f->held, *next; h; h = next) {
        next = h->next;
        call_drop(h->call);
        free_held(h);
    }
    while (f->rules.len > 0)
        remove_rule(f, f->rules.len - 1);
    vec_deinit(&f->rules);
    for (size_t i = 0; i < f->script.len; i++)
        free(f->script.items[i].text);
    vec_deinit(&f->script);
    fault_free(f->later);
    loop_timer_cancel(f->config.loop, &f->later_timer);
    loop_timer_cancel(f->config.loop, &f->reopen);
    loop_timer_cancel(f->config.loop, &f->accept);
    loop_timer_cancel(f->config.loop, &f->script_timer);
    free(f);
}

int64_t faults_count(const struct faults *f, const char *name)
{
    for (size_t i = 0; i < FAULT_KINDS; i++)
        if (str_eq(faults_names[i], name))
            return f->counts[i];
    return 0;
}

static int act(struct faults *f, const struct fault *fault, struct error *err)
{
    if (faults_act(f, fault, err) < 0)
        return -1;
    f->counts[fault->kind]++;
    log_info("fault", kv("fault", faults_names[fault->kind]));
    return 0;
}

int faults_add(struct faults *f, json *j, int64_t *id, struct error *err)
{
    struct fault *fault;
    if (fault_parse(&fault, j, err) < 0)
        return -1;
    if (id)
        *id = 0;
    if (fault->kind < FAULT_CUT_WATCHES) {
        if (f->rules.len >= RULES_MAX) {
            fault_free(fault);
            return error_set(err, ERROR_TOO_LARGE, "there are %d rules already", RULES_MAX);
        }
        fault->id = f->next_id++;
        if (fault->until_ms > 0)
            fault->until_ms = num_add_sat(clock_mono_ms(), fault->until_ms);
        if (id)
            *id = fault->id;
        vec_push(&f->rules, fault);
        return 0;
    }
    int rc = act(f, fault, err);
    fault_free(fault);
    return rc;
}

/* ---- requests ---- */

static bool is_watch(const struct call *c)
{
    const char *watch = call_query(c, "watch");
    return watch && (str_eq(watch, "1") || str_eq(watch, "true"));
}

static bool matches(const struct fault *r, const struct call *c)
{
    const char *agent = str_or_empty(call_header(c, "user-agent"));
    return (!r->method || str_eq(r->method, call_method(c))) &&
           (!r->path || strstr(call_path(c), r->path)) && (!r->agent || strstr(agent, r->agent)) &&
           (r->watch < 0 || (r->watch != 0) == is_watch(c));
}

/* Whether the rule applies to this request. */
static bool strikes(struct fault *r, const struct call *c)
{
    if (!matches(r, c))
        return false;
    r->matched++;
    if (r->every > 1 && r->matched % r->every != 0)
        return false;
    if (r->percent < 100 && clock_jitter(100) >= r->percent)
        return false;
    r->fired++;
    return true;
}

static void reply(struct call *c, int64_t code, const char *reason, const char *message,
                  int64_t retry_after_s)
{
    struct strbuf body = {0};
    struct json_writer w;
    json_writer_init(&w, &body);
    json_object_begin(&w);
    json_kv_str(&w, "kind", "Status");
    json_kv_str(&w, "apiVersion", "v1");
    json_key(&w, "metadata");
    json_object_begin(&w);
    json_object_end(&w);
    json_kv_str(&w, "status", "Failure");
    json_kv_str(&w, "message", message);
    json_kv_str(&w, "reason", reason);
    if (retry_after_s > 0) {
        json_key(&w, "details");
        json_object_begin(&w);
        json_kv_int(&w, "retryAfterSeconds", retry_after_s);
        json_object_end(&w);
    }
    json_kv_int(&w, "code", code);
    json_object_end(&w);
    char retry[64] = "";
    if (retry_after_s > 0)
        str_format(retry, sizeof retry, "Retry-After: %lld\r\n", (long long)retry_after_s);
    call_reply(c, (int)code, "application/json", retry, &body);
}

static void pass_on(struct faults *f, struct call *c)
{
    f->config.handle(f->config.handle_arg, c);
}

static void on_due(void *arg)
{
    struct faults_held *h = arg;
    struct faults *f = h->faults;
    struct call *c = h->call;
    if (h->drop)
        call_drop(c);
    else if (h->code)
        reply(c, h->code, h->reason, h->message, h->retry_after_s);
    else
        pass_on(f, c);
    free_held(h);
}

static void hold(struct faults *f, struct call *c, int64_t ms, const struct fault *end)
{
    struct faults_held *h = mem_new(struct faults_held, 1);
    h->faults = f;
    h->call = c;
    h->next = f->held;
    h->prev = &f->held;
    if (h->next)
        h->next->prev = &h->next;
    f->held = h;
    if (end && end->kind == FAULT_DROP) {
        h->drop = true;
    } else if (end) {
        h->code = end->code;
        h->retry_after_s = end->retry_after_s;
        h->reason = mem_strdup(end->reason);
        h->message = mem_strdup(end->message);
    }
    loop_timer_set(f->config.loop, &h->timer, ms, on_due, h);
}

static bool is_over(const struct fault *r)
{
    return (r->count > 0 && r->fired >= r->count) ||
           (r->until_ms > 0 && clock_mono_ms() >= r->until_ms);
}

static void weigh(struct faults *f, struct call *c)
{
    int64_t delay = 0;
    const struct fault *end = NULL;
    bool lose = false, over = false;
    for (size_t i = 0; i < f->rules.len; i++) {
        struct fault *r = f->rules.items[i];
        over |= is_over(r);
        if (is_over(r) || (end && r->kind != FAULT_DELAY) || !strikes(r, c))
            continue;
        f->counts[r->kind]++;
        over |= is_over(r);
        if (r->kind == FAULT_DELAY)
            delay = num_add_sat(delay, r->ms);
        else if (r->kind == FAULT_LOSE_REPLY)
            lose = true;
        else
            end = r;
    }
    if (lose && !end)
        call_lose_reply(c);
    if (delay > 0)
        hold(f, c, delay, end);
    else if (!end)
        pass_on(f, c);
    else if (end->kind == FAULT_DROP)
        call_drop(c);
    else
        reply(c, end->code, end->reason, end->message, end->retry_after_s);
    if (!over) /* handle() may have changed the rules, but has not been told of `end` */
        return;
    for (size_t i = f->rules.len; i-- > 0;)
        if (is_over(f->rules.items[i]))
            remove_rule(f, i);
}

/* ---- the admin endpoint ---- */

static void list(const struct faults *f, struct call *c)
{
    struct strbuf body = {0};
    struct json_writer w;
    json_writer_init(&w, &body);
    json_object_begin(&w);
    json_key(&w, "rules");
    json_array_begin(&w);
    for (size_t i = 0; i < f->rules.len; i++) {
        const struct fault *r = f->rules.items[i];
        json_object_begin(&w);
        json_kv_int(&w, "id", r->id);
        json_kv_int(&w, "matched", r->matched);
        json_kv_int(&w, "fired", r->fired);
        json_key(&w, "rule");
        json_put_raw(&w, r->text, strlen(r->text));
        json_object_end(&w);
    }
    json_array_end(&w);
    json_key(&w, "done");
    json_object_begin(&w);
    for (size_t i = 0; i < FAULT_KINDS; i++)
        json_kv_int(&w, faults_names[i], f->counts[i]);
    json_object_end(&w);
    json_kv_int(&w, "scriptLinesLeft", (int64_t)(f->script.len - f->script_at));
    json_object_end(&w);
    strbuf_addc(&body, '\n');
    call_reply(c, 200, "application/json", NULL, &body);
}

static void on_later(void *arg)
{
    struct faults *f = arg;
    struct fault *fault = f->later;
    struct error err = ERROR_INIT;
    f->later = NULL;
    if (act(f, fault, &err) < 0)
        log_warn("fault", kv("error", err.text));
    fault_free(fault);
}

/* Resets of the caller's own connection come after its reply. */
static bool postpone(struct faults *f, json *j)
{
    struct fault *fault;
    if (f->later || !f->config.server || fault_parse(&fault, j, NULL) < 0)
        return false;
    if (fault->kind != FAULT_RESET && fault->kind != FAULT_RESTART) {
        fault_free(fault);
        return false;
    }
    f->later = fault;
    loop_timer_set(f->config.loop, &f->later_timer, 1, on_later, f);
    return true;
}

static void add_by_call(struct faults *f, struct call *c)
{
    struct error err = ERROR_INIT;
    AUTO_JSON *doc = NULL;
    size_t n;
    const char *text = call_body(c, &n);
    int64_t id = 0;
    if (json_parse(&doc, text, n, &err) < 0 ||
        (!postpone(f, json_root(doc)) && faults_add(f, json_root(doc), &id, &err) < 0)) {
        reply(c, 400, "BadRequest", err.text, 0);
        return;
    }
    struct strbuf body = {0};
    strbuf_addf(&body, "{\"id\":%lld}\n", (long long)id);
    call_reply(c, 201, "application/json", NULL, &body);
}

static void remove_by_call(struct faults *f, struct call *c, const char *which)
{
    int64_t id = 0;
    if (*which && num_parse(which + 1, strlen(which + 1), &id, NULL) < 0)
        id = -1;
    size_t before = f->rules.len;
    for (size_t i = f->rules.len; i-- > 0;)
        if (id == 0 || f->rules.items[i]->id == id)
            remove_rule(f, i);
    if (id != 0 && f->rules.len == before) {
        reply(c, 404, "NotFound", "there is no such rule", 0);
        return;
    }
    struct strbuf body = {0};
    strbuf_addf(&body, "{\"removed\":%zu}\n", before - f->rules.len);
    call_reply(c, 200, "application/json", NULL, &body);
}

void faults_handle(struct faults *f, struct call *c)
{
    static const char admin[] = "/cosched/faults";
    const char *path = call_path(c);
    if (!str_starts(path, admin) || (path[sizeof admin - 1] && path[sizeof admin - 1] != '/')) {
        weigh(f, c);
        return;
    }
    const char *which = path + sizeof admin - 1, *method = call_method(c);
    if (!call_authenticated(c))
        reply(c, 401, "Unauthorized", "Unauthorized", 0);
    else if (str_eq(method, "GET") && !*which)
        list(f, c);
    else if (str_eq(method, "POST") && !*which)
        add_by_call(f, c);
    else if (str_eq(method, "DELETE"))
        remove_by_call(f, c, which);
    else
        reply(c, 405, "MethodNotAllowed", "GET, POST and DELETE are known here", 0);
}
