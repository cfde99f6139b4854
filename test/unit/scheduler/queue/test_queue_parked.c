// SPDX-License-Identifier: Apache-2.0
/*
 * Found by the stories: a pod was refused because of its port. The port was freed, but not the room
 * beside it, so the pod was not woken; and when the node grew nobody remembered that it lacks room.
 */
#include "scheduler/queue/queue.h"

#include "test/unit/scheduler/model_kit.h"

static void who_is_left_asleep_for_lack_of_room_wakes_when_a_node_grows(void **state)
{
    (void)state;
    const struct {
        const char *row;
        int64_t cpu_milli; /* that the pod asks for, of 1000 that are free */
        uint32_t event;
        size_t woken_by_pod, woken_by_event;
    } rows[] = {
        {"there is room", 500, EVENT_NODE_CAPACITY, 1, 0},
        {"there is none, and the node grows", 1500, EVENT_NODE_CAPACITY, 0, 1},
        {"or has other cards", 1500, EVENT_NODE_GPU, 0, 1},
        {"a label is no room", 1500, EVENT_NODE_LABELS, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct queue queue;
        struct queue_need need = {0};
        fresh();
        (void)cluster_put_node(&c, NODE(.name = "n", .cpu_milli = 1000));
        struct cluster_pod *cp =
            PUT(.name = "p", .priority = 0, .c = {{.cpu_milli = rows[i].cpu_milli}});
        queue_init(&queue, &c);
        queue_need_add(&need, cp);
        queue_set_need(&queue, cp->gang, &need);
        queue_wait(&queue, cp->gang, EVENT_POD_GONE, 0);
        uint32_t freed = cluster_note_freed(&c, cluster_find_node(&c, "n"));
        expect_int(rows[i].row, (int64_t)rows[i].woken_by_pod,
                   (int64_t)queue_wake(&queue, freed, 0));
        expect_int(rows[i].row, (int64_t)rows[i].woken_by_event,
                   (int64_t)queue_wake(&queue, rows[i].event, 0));
        queue_deinit(&queue);
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(who_is_left_asleep_for_lack_of_room_wakes_when_a_node_grows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
