// SPDX-License-Identifier: Apache-2.0
#include "test/unit/scheduler/shell_kit.h"

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "test/unit/lib/base/expect.h"

static void free_node(void *object)
{
    node_free(object);
}

static void free_pod(void *object)
{
    pod_free(object);
}

static void free_pod_group(void *object)
{
    pod_group_free(object);
}

static void free_small(void *object)
{
    object_free(object);
}

static void (*free_of(enum intake_kind kind))(void *object)
{
    switch (kind) {
    case INTAKE_NODES:
        return free_node;
    case INTAKE_PODS:
    case INTAKE_REJECTED_PODS:
        return free_pod;
    case INTAKE_POD_GROUPS:
    case INTAKE_POD_GROUPS_X:
        return free_pod_group;
    default:
        return free_small;
    }
}

static struct reflector_message *message_of(struct intake *in, enum intake_kind kind,
                                            enum reflector_event event, size_t n,
                                            void *const *objects)
{
    struct reflector_message *message = mem_new(struct reflector_message, 1);
    in->sources[kind] = (struct intake_source){.intake = in, .kind = kind};
    *message = (struct reflector_message){.event = event,
                                          .objects = mem_new(void *, n),
                                          .len = n,
                                          .arg = &in->sources[kind],
                                          .free_object = free_of(kind)};
    for (size_t i = 0; i < n; i++)
        message->objects[i] = objects[i];
    return message;
}

void shell_message(struct intake *in, enum intake_kind kind, enum reflector_event event, size_t n,
                   void *const *objects)
{
    intake_message(in, message_of(in, kind, event, n, objects));
}

void shell_post(struct intake *in, enum intake_kind kind, enum reflector_event event, void *object)
{
    (void)intake_post(in, message_of(in, kind, event, 1, &object));
}

int shell_count(struct twin *t, const char *method, const char *part)
{
    int n = 0;
    for (size_t i = 0;; i++) {
        AUTO_STRBUF request = {0};
        if (!twin_request(t, i, &request))
            return n;
        n += str_starts(strbuf_str(&request), method) &&
             (part == NULL || strstr(strbuf_str(&request), part) != NULL);
    }
}

void shell_await(struct twin *t, const char *method, const char *part, int n)
{
    for (int64_t end = clock_mono_ms() + SHELL_WAIT_MS; shell_count(t, method, part) < n;
         clock_sleep_ms(1))
        if (clock_mono_ms() >= end)
            fail_msg("%s with '%s': expected %d, got %d after %d ms", method, str_or_empty(part), n,
                     shell_count(t, method, part), SHELL_WAIT_MS);
}
