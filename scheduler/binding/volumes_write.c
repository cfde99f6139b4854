// SPDX-License-Identifier: Apache-2.0
/*
 * One write (attempt):
 *
 *      GET ── already as wanted ────────────────► done
 *       ▲ │── taken by another, or gone ────────► error
 *       │ └── free: PATCH with its resourceVersion ── 200 ► done
 *       │                │
 *       └──── pause ─────┴── 409, no answer, 5xx, 429: GET again, TRIES times
 *
 * Undoing a volume cannot race with the controller: before it binds a claim it writes the volume's
 * phase, so either our PATCH comes first and the controller's write fails for its old version, or
 * ours does.
 */
#include "scheduler/binding/volumes_write.h"

#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "scheduler/binding/pod_patch.h"

#define SELECTED_NODE "volume.kubernetes.io/selected-node"
#define BOUND_BY_CONTROLLER "pv.kubernetes.io/bound-by-controller"

enum { TRIES = 4, PAUSE_FIRST_MS = 50 };

enum sight { SIGHT_DONE, SIGHT_FREE, SIGHT_NO };

static bool is_empty(const char *s)
{
    return s == NULL || s[0] == '\0';
}

static const char *meta_str(json *object, const char *key)
{
    return json_get_str(json_get(object, "metadata"), key);
}

static const char *annotation(json *object, const char *key)
{
    return json_get_str(json_get(json_get(object, "metadata"), "annotations"), key);
}

static int64_t version_of(json *object)
{
    int64_t n = -1;
    const char *text = meta_str(object, "resourceVersion");
    return text != NULL && num_parse(text, strlen(text), &n, NULL) == 0 ? n : -1;
}

static void begin(struct json_writer *w, struct strbuf *out, json *seen)
{
    pod_patch_begin(w, out, meta_str(seen, "uid"), meta_str(seen, "resourceVersion"));
    json_key(w, "annotations");
    json_object_begin(w);
}

static void print_claim(struct strbuf *out, json *seen, const char *node)
{
    struct json_writer w;
    begin(&w, out, seen);
    json_kv_str(&w, SELECTED_NODE, node); /* NULL removes it */
    json_object_end(&w);
    json_object_end(&w);
    json_object_end(&w);
}

/* A volume reserved by name was not bound by a controller, and returns to that state. */
static void print_volume(struct strbuf *out, json *seen, const struct volumes_item *it, bool back)
{
    struct json_writer w;
    begin(&w, out, seen);
    if (!it->by_name)
        json_kv_str(&w, BOUND_BY_CONTROLLER, back ? NULL : "yes");
    json_object_end(&w);
    json_object_end(&w);
    json_key(&w, "spec");
    json_object_begin(&w);
    json_key(&w, "claimRef");
    if (back && !it->by_name) {
        json_put_null(&w);
    } else {
        json_object_begin(&w);
        json_kv_str(&w, "apiVersion", "v1");
        json_kv_str(&w, "kind", "PersistentVolumeClaim");
        json_kv_str(&w, "namespace", it->ns);
        json_kv_str(&w, "name", it->claim);
        json_kv_str(&w, "uid", back ? NULL : it->claim_uid);
        json_object_end(&w);
    }
    json_object_end(&w);
    json_object_end(&w);
}

static enum sight no(struct error *err, const char *what, const char *problem)
{
    (void)error_set(err, ERROR_CONFLICT, "%s %s", what, problem);
    return SIGHT_NO;
}

static enum sight inspect_claim(json *seen, const struct volumes_item *it, struct error *err)
{
    const char *at = annotation(seen, SELECTED_NODE);
    if (!str_eq(meta_str(seen, "uid"), it->claim_uid))
        return no(err, "the claim", "is another one by now");
    if (str_eq(at, it->node))
        return SIGHT_DONE;
    if (!is_empty(json_get_str(json_get(seen, "spec"), "volumeName")))
        return no(err, "the claim", "was given a volume by somebody else");
    return is_empty(at) ? SIGHT_FREE : no(err, "the claim", "was given another node");
}

static enum sight inspect_volume(json *seen, struct volumes_item *it, struct error *err)
{
    json *ref = json_get(json_get(seen, "spec"), "claimRef");
    if (!str_eq(meta_str(seen, "uid"), it->volume_uid))
        return no(err, "the volume", "is another one by now");
    if (ref == NULL || json_is_null(ref))
        return SIGHT_FREE;
    if (!str_eq(json_get_str(ref, "namespace"), it->ns) ||
        !str_eq(json_get_str(ref, "name"), it->claim))
        return no(err, "the volume", "was reserved for another claim");
    if (str_eq(json_get_str(ref, "uid"), it->claim_uid))
        return SIGHT_DONE;
    if (!is_empty(json_get_str(ref, "uid")))
        return no(err, "the volume", "is reserved for an older claim of that name");
    it->by_name = true;
    return SIGHT_FREE;
}

static int patch(struct kube_client *client, const struct lease *lease, bool volume,
                 const struct volumes_item *it, const struct strbuf *body, struct json_doc **out,
                 struct error *err)
{
    if (lease != NULL && !lease_may_write(lease))
        return error_set(err, ERROR_CANCELLED, "the lease does not allow writing");
    return kube_patch(client, volume ? &kube_volumes : &kube_claims, volume ? NULL : it->ns,
                      volume ? it->volume : it->claim, NULL, KUBE_PATCH_MERGE, strbuf_str(body),
                      body->len, out, err);
}

static int get(struct kube_client *client, bool volume, const struct volumes_item *it,
               struct json_doc **out, struct error *err)
{
    return kube_get(client, volume ? &kube_volumes : &kube_claims, volume ? NULL : it->ns,
                    volume ? it->volume : it->claim, out, err);
}

/* 1: GET again, err says why. */
static int attempt(struct kube_client *client, const struct lease *lease, struct volumes_item *it,
                   struct error *err)
{
    AUTO_JSON *doc = NULL;
    AUTO_JSON *reply = NULL;
    AUTO_STRBUF body = {0};
    bool volume = it->volume != NULL;
    if (get(client, volume, it, &doc, err) < 0)
        return -1;
    json *seen = json_root(doc);
    enum sight sight = volume ? inspect_volume(seen, it, err) : inspect_claim(seen, it, err);
    if (sight != SIGHT_FREE) {
        it->version = version_of(seen);
        it->written |= sight == SIGHT_DONE;
        return sight == SIGHT_DONE ? 0 : -1;
    }
    if (volume)
        print_volume(&body, seen, it, false);
    else
        print_claim(&body, seen, it->node);
    it->written = true;
    if (patch(client, lease, volume, it, &body, &reply, err) < 0)
        return err->code == ERROR_CONFLICT ? 1 : -1;
    it->version = version_of(json_root(reply));
    return 0;
}

/* false: no more tries, or we are stopping. */
static bool pause_before(struct kube_client *client, int tried, const struct error *err)
{
    return tried + 1 < TRIES && kube_client_pause(client, PAUSE_FIRST_MS, tried, err);
}

int volumes_write_do(struct kube_client *client, const struct lease *lease, struct volumes_item *it,
                     struct error *err)
{
    it->version = -1;
    for (int tried = 0;; tried++) {
        error_clear(err);
        int rc = attempt(client, lease, it, err);
        if (rc == 0)
            return 0;
        if ((rc < 0 && !error_is_transient(err)) || !pause_before(client, tried, err))
            return it->volume != NULL ? error_wrap(err, "volume %s", it->volume)
                                      : error_wrap(err, "claim %s/%s", it->ns, it->claim);
    }
}

/* Whether the claim is still unbound. */
static int claim_waits(struct kube_client *client, const struct volumes_item *it, bool *out,
                       struct error *err)
{
    AUTO_JSON *doc = NULL;
    *out = true;
    if (get(client, false, it, &doc, err) < 0)
        return err->code == ERROR_NOT_FOUND ? 0 : -1;
    json *seen = json_root(doc);
    *out = !str_eq(meta_str(seen, "uid"), it->claim_uid) ||
           is_empty(json_get_str(json_get(seen, "spec"), "volumeName"));
    return 0;
}

/* The controller has started or finished binding it. */
static bool is_under_way(json *seen)
{
    return str_eq(json_get_str(json_get(seen, "status"), "phase"), "Bound") ||
           !is_empty(json_get_str(json_get(seen, "spec"), "volumeName"));
}

static int attempt_undo(struct kube_client *client, const struct lease *lease,
                        struct volumes_item *it, struct error *err)
{
    AUTO_JSON *doc = NULL;
    AUTO_STRBUF body = {0};
    struct error seen_err = ERROR_INIT;
    bool volume = it->volume != NULL, waits = true;
    if (get(client, volume, it, &doc, err) < 0)
        return err->code == ERROR_NOT_FOUND ? 0 : -1;
    json *seen = json_root(doc);
    bool by_name = it->by_name;
    enum sight sight =
        volume ? inspect_volume(seen, it, &seen_err) : inspect_claim(seen, it, &seen_err);
    it->by_name = by_name;
    if (sight != SIGHT_DONE || is_under_way(seen))
        return 0;
    if (volume && claim_waits(client, it, &waits, err) < 0)
        return -1;
    if (!waits)
        return 0;
    if (volume)
        print_volume(&body, seen, it, true);
    else
        print_claim(&body, seen, NULL);
    if (patch(client, lease, volume, it, &body, NULL, err) < 0)
        return err->code == ERROR_CONFLICT ? 1 : -1;
    return 0;
}

int volumes_write_undo(struct kube_client *client, const struct lease *lease,
                       const struct volumes_item *it, struct error *err)
{
    struct volumes_item copy = *it;
    for (int tried = 0; it->written && !it->others_count; tried++) {
        error_clear(err);
        int rc = attempt_undo(client, lease, &copy, err);
        if (rc == 0)
            return 0;
        if ((rc < 0 && !error_is_transient(err)) || !pause_before(client, tried, err))
            return error_wrap(err, "claim %s/%s", it->ns, it->claim);
    }
    return 0;
}
