// SPDX-License-Identifier: Apache-2.0
/*
 * api_internal - shared by the files of api and their tests only.
 */
#pragma once

#include "lib/base/arena.h"
#include "lib/base/loop.h"
#include "test/local/admission/admission.h"
#include "test/local/api/api.h"
#include "test/local/kinds/typed.h"
#include "test/local/store/uid.h"

enum { API_PATH_MAX = 1024, API_TRIES = 5 };

/* How an object is shown, from Accept. */
enum api_form { API_JSON, API_TABLE, API_TABLE_FULL, API_PARTIAL };

struct api_watches; /* api_watch.c */

struct api {
    struct api_config config;
    struct store *store;
    struct api_watches *watches;
    struct strbuf scratch;     /* text of an object on its way into the store */
    unsigned char random[512]; /* from the kernel, used up from the front */
    size_t random_used;
    int64_t shown_second; /* the time that `shown` says */
    char shown[32];
    struct api_request *waiting; /* for an admission */
};

/* What a path names. Strings lie in `buf`. */
struct api_target {
    const struct kind *kind;
    const char *ns;   /* NULL: none in the path (all namespaces, or a cluster object) */
    const char *name; /* NULL: the collection */
    const char *sub;  /* NULL: the object itself */
    bool watch;       /* /api/v1/watch/... */
    char buf[API_PATH_MAX];
};

enum api_write { API_CREATE, API_UPDATE, API_PATCH };
enum api_patch_type { API_PATCH_JSON, API_PATCH_MERGE, API_PATCH_STRATEGIC, API_PATCH_APPLY };

/* A write under way: it may wait for webhooks. */
struct api_request {
    struct api *api;
    struct call *call; /* NULL: api_free came first */
    struct api_target target;
    enum api_write what;
    enum api_patch_type patch_type;
    bool dry_run;
    bool creates;       /* an apply or a PUT that makes the object */
    bool changed;       /* by a webhook */
    bool own_version;   /* the client named the version it changes */
    bool strict, warns; /* fieldValidation */
    struct typed_notes notes;
    int tries;
    struct jsontree *tree;                      /* the object to be stored */
    struct object *old;                         /* a reference; NULL for create */
    char uid[UID_SIZE], name[256], created[32]; /* of a create, kept from the webhooks' eyes */
    struct api_request *next, **prev;
};

/* ---- api.c ---- */
void api_reply_error(struct call *c, const struct error *err, const struct kind *k,
                     const char *name);
/* The same with warnings, as headers; NULL: none. */
void api_reply_refusal(struct call *c, const struct error *err, const struct kind *k,
                       const char *name, const char *warnings);
/* An object in the form that Accept asks for. o or its text. */
void api_reply_object(struct api *a, struct call *c, int status, const char *warnings,
                      struct object *o);
void api_print_object(struct api *a, enum api_form form, struct object *o, struct strbuf *out);
void api_reply_text(struct call *c, int status, const char *warnings, struct strbuf *take);
int api_form_of(const struct call *c, enum api_form *out, struct error *err);
/* error_set with a status: code follows from it. */
int api_fail(struct error *err, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int api_not_found(struct error *err, const struct kind *k, const char *name);
/* ---- api_options.c ---- */
/* The request's dryRun. options: "CreateOptions". */
int api_dry_run(const struct call *c, const char *options, bool *out, struct error *err);
/* The request's fieldManager: printable, at most 128 bytes. */
int api_field_manager(const struct call *c, const char *options, struct error *err);
/* The request's fieldValidation. */
int api_field_validation(const struct call *c, const char *options, bool *strict,
                         struct error *err);
int api_query_int(const struct call *c, const char *name, int64_t fallback, int64_t *out,
                  struct error *err);
/* As Go reads a truth in a query: "false" in any case and "0" are false, anything else that is
 * there is true. */
bool api_query_bool(const char *value);
/* A resourceVersion; absent and empty are 0. A bad one is an error of that status. */
int api_version_of(const char *text, const char *before, int status, uint64_t *out,
                   struct error *err);
struct api_list_options {
    const char *version, *match, *token; /* as they came; NULL: not there */
    int64_t limit, timeout_s;
    bool initial_given, initial; /* sendInitialEvents */
    bool bookmarks;
};
/* Of a list or a watch; what cannot go together is 422. */
int api_list_options(const struct call *c, bool watch, struct api_list_options *out,
                     struct error *err);

/* ---- api_body.c ---- */
/* The body as a tree: JSON, YAML or protobuf by Content-Type; an object, within bounds. what:
 * "Pod"; NULL for DeleteOptions, whose sentences are shorter. */
int api_body(struct call *c, const char *what, struct jsontree **out, struct error *err);
/* A patch as it came: YAML for apply, JSON otherwise. */
int api_patch_body(const struct call *c, enum api_patch_type type, struct json_doc **out,
                   struct error *err);
/* What a body is to be. */
struct api_type {
    const char *api_version, *kind;
    const char *older; /* a version that is read as well, or NULL */
};
/* apiVersion and kind are absent, or these. */
int api_check_kind(struct jsonnode *root, const struct api_type *type, struct error *err);
/* The tree holds what the type holds of it. notes (may be NULL): what it does not know, which is an
 * error if strict. */
int api_decode(struct jsontree *t, const struct api_type *type, bool strict,
               struct typed_notes *notes, struct error *err);

/* ---- api_status.c ---- */
/* code 0: none is written; k NULL: no details. */
void api_status_success(struct strbuf *out, const struct kind *k, const char *name, const char *uid,
                        int code);
/* Any Status of a failure; reason NULL: none. details: JSON text or NULL. */
void api_status_failure(struct strbuf *out, int code, const char *reason, const char *message,
                        const char *details);

/* ---- api_select.c ---- */
struct api_selection {
    struct arena arena;
    struct selector labels, fields;
    bool all; /* neither was given */
};
int api_select(const struct call *c, const struct api_target *t, struct api_selection *out,
               struct error *err);
void api_selection_deinit(struct api_selection *s);
bool api_selected(const struct api_selection *s, const char *ns, const struct object *o);

/* ---- api_meta.c ---- */
void api_uid(struct api *a, char out[UID_SIZE]);
void api_now(struct api *a, int64_t plus_s, char out[32]);
/* What every object's metadata is made of; apiVersion and kind are filled in and come first. */
int api_meta_shape(struct jsontree *t, const struct kind *k, struct error *err);
/* Names, labels and annotations that Kubernetes allows. */
int api_meta_validate(struct jsonnode *object, const struct kind *k, struct error *err);
void api_meta_create(struct api *a, struct api_request *r);
/* What a client cannot change is as it was; generation counts. sub: "status" or NULL... */
int api_meta_update(struct jsontree *t, const struct kind *k, struct jsonnode *old, const char *sub,
                    struct error *err);
/* The object is being deleted and nothing holds it any more. */
bool api_meta_is_gone(struct jsonnode *object, const struct kind *k);
bool api_has_finalizer(struct jsonnode *object, const char *name);
/* Members of a pod's status.conditions: sets one by type. */
void api_set_condition(struct api *a, struct jsontree *t, struct jsonnode *object, const char *type,
                       const char *status, const char *reason, const char *message);
/* Prints the tree into the scratch buffer and stores it. expected 0: any version. */
int api_store_tree(struct api *a, const struct kind *k, struct jsontree *t, bool create,
                   uint64_t expected, struct object **out, struct error *err);

/* ---- verbs ---- */
void api_get(struct api *a, struct call *c, const struct api_target *t);
void api_list(struct api *a, struct call *c, const struct api_target *t);
void api_watch(struct api *a, struct call *c, const struct api_target *t);
void api_write(struct api *a, struct call *c, const struct api_target *t, enum api_write what);
void api_delete_one(struct api *a, struct call *c, const struct api_target *t);
void api_delete_many(struct api *a, struct call *c, const struct api_target *t);
struct api_page {
    const char *after; /* only keys behind this one; NULL: from the start */
    size_t limit;      /* 0: none */
    size_t left;       /* out: how many there are behind it; with a selector, some or none */
};
struct api_objects {
    struct object **items; /* references */
    size_t len, cap;
};
/* Collects, in order, what a list at `version` (0: now) shows; page NULL: all of it. false: too
 * old. */
bool api_collect(struct api *a, const struct kind *k, const char *ns, uint64_t version,
                 const struct api_selection *s, struct api_page *page, struct api_objects *out);
void api_objects_deinit(struct api_objects *o);
/* A Status: that version is in the future. */
void api_print_too_large(uint64_t version, uint64_t now, struct strbuf *out);
void api_print_list(struct api *a, enum api_form form, const struct kind *k,
                    struct object *const *items, size_t n, const char *meta, struct strbuf *out);

struct api_delete_options {
    bool grace_given;
    int64_t grace_s; /* less than 0 means 1 */
    const char *uid, *version;
    enum api_propagation how;
    bool how_given;
    bool by_request; /* of a client: where it does not say how, the kind does */
    bool dry_run;
};
/* DeleteOptions, of the right types. The strings belong to the tree. */
int api_delete_options(struct jsonnode *options, struct api_delete_options *out, struct error *err);
/* 409 unless o is the object, and the version of it, that was meant. */
int api_check_preconditions(const struct object *o, const struct api_delete_options *d,
                            struct error *err);
/* o is a reference of the caller's. shown: gets the object of the reply, or nothing if it was
 * deleted at once (the reply is a Status). */
int api_delete_object(struct api *a, struct object *o, const struct api_delete_options *d,
                      struct strbuf *shown, struct error *err);

/* Subresources; false: none of this file's. */
bool api_pods_sub(struct api *a, struct call *c, const struct api_target *t);
void api_pods_bind(struct api *a, struct call *c, const struct api_target *t);
void api_scale_sub(struct api *a, struct call *c, const struct api_target *t);

/* Appends a header line `Warning: 299 - "text"`. */
void api_print_warning(const char *text, struct strbuf *out);
void api_request_free(struct api_request *r);
/* r->old: what is there now. -1: nothing (404). */
int api_request_read_old(struct api_request *r, struct error *err);
/* r->tree is an object of the path's kind, name and namespace. */
int api_request_decode(struct api_request *r, struct error *err);
/* r->tree: what the patch makes of what is there, or of nothing (apply). */
int api_request_patch(struct api_request *r, struct error *err);
/* A patch that leaves what cannot be decoded is 422, and the whole result is in the sentence: here
 * its beginning. Returns -1. */
int api_blame_patch(struct jsontree *t, struct error *err);
/* 400 unless the name in a body is that of the path. */
int api_check_name(const char *name, const char *wanted, struct error *err);
/* 409 unless it is the object's uid. */
int api_check_uid(const struct object *o, const char *uid, struct error *err);
/* 409 unless text is empty, "0" or the object's version. */
int api_check_version(const struct object *o, const char *text, struct error *err);
/* fieldManager and force, as far as the type of patch wants and allows them. */
int api_patch_options(const struct call *c, enum api_patch_type type, struct error *err);
/* kind NULL: of no type that strategic merge and apply know. */
int api_apply_patch(const struct call *c, struct jsontree *t, enum api_patch_type type,
                    const char *kind, json *patch, struct error *err);
int api_patch_type_of(const struct call *c, const struct kind *k, enum api_patch_type *out,
                      struct error *err);

struct api_watches *api_watches_new(struct api *a);
void api_watches_free(struct api_watches *w);
