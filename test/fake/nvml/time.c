// SPDX-License-Identifier: Apache-2.0
/*
 * How busy processes keep the cards of the fake NVML: as its file says, or as the simulated cards
 * of the fake CUDA driver count it. Like the real library it takes a sample now and then, and tells
 * whole percents of the time between two samples.
 */
#include "test/fake/nvml/nvml.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "test/fake/cuda/card.h"

enum { LINES = 64, SAMPLE_US = 150000 };

struct nvmlUtilization {
    unsigned pid;
    unsigned long long timeStamp;
    unsigned smUtil, memUtil, encUtil, decUtil;
};

int nvmlDeviceGetProcessUtilization(struct nvmlDevice *d, struct nvmlUtilization *out,
                                    unsigned *len, unsigned long long since);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    unsigned card, pid, percent;
    unsigned long long stamp;
} lines[LINES];
static unsigned lines_len;

static struct card simulated;
static int has_simulated;
static struct sample {
    unsigned long long stamp; /* 0: none yet */
    uint64_t busy_ns[CARD_GROUPS];
    unsigned percent[CARD_GROUPS];
} samples[CARD_COUNT];

void nvml_time_forget(void)
{
    pthread_mutex_lock(&lock);
    lines_len = 0;
    pthread_mutex_unlock(&lock);
}

int nvml_time_line(const char *line)
{
    unsigned card, pid, percent;
    unsigned long long stamp;
    char path[256];
    int found = 1;
    pthread_mutex_lock(&lock);
    if (sscanf(line, "busy.%u=%u %u %llu", &card, &pid, &percent, &stamp) == 4 &&
        lines_len < LINES) {
        lines[lines_len].card = card;
        lines[lines_len].pid = pid;
        lines[lines_len].percent = percent;
        lines[lines_len++].stamp = stamp;
    } else if (sscanf(line, "cuda=%255[^\n]", path) == 1)
        has_simulated = has_simulated || card_open(&simulated, path, -1);
    else
        found = 0;
    pthread_mutex_unlock(&lock);
    return found;
}

unsigned nvml_time_processes(unsigned card, unsigned n, unsigned room, struct nvmlProcess *out)
{
    if (!has_simulated || card >= CARD_COUNT)
        return n;
    (void)card_used(&simulated, 0, (int)card); /* the dead are taken from the list */
    for (int i = 0; i < CARD_PROCESSES; i++) {
        const struct card_process *p = &simulated.world->processes[i];
        if (p->pid == 0)
            continue;
        if (n < room)
            out[n] = (struct nvmlProcess){.pid = (unsigned)p->pid, .used = p->used[card]};
        n++;
    }
    return n;
}

static unsigned long long now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (unsigned long long)t.tv_sec * 1000000 + (unsigned long long)t.tv_nsec / 1000;
}

static void take_sample(unsigned card)
{
    struct sample *s = &samples[card];
    unsigned long long now = now_us(), period = now - s->stamp;
    if (period < SAMPLE_US)
        return;
    for (int g = 0; g < CARD_GROUPS; g++) {
        uint64_t busy = card_busy_ns(&simulated, g, (int)card);
        s->percent[g] = (unsigned)((busy - s->busy_ns[g] + period * 5) / (period * 10));
        s->busy_ns[g] = busy;
    }
    if (s->stamp == 0)
        memset(s->percent, 0, sizeof s->percent);
    s->stamp = now;
}

/* The cards count by group; the first process of each is told to have done it all. */
static unsigned pid_of(int group)
{
    for (int i = 0; i < CARD_PROCESSES; i++)
        if (simulated.world->processes[i].pid != 0 && simulated.world->processes[i].group == group)
            return (unsigned)simulated.world->processes[i].pid;
    return 0;
}

int nvmlDeviceGetProcessUtilization(struct nvmlDevice *d, struct nvmlUtilization *out,
                                    unsigned *len, unsigned long long since)
{
    unsigned n = 0, room = *len;
    int code = nvml_enter(__func__, d);
    if (code != OK)
        return code;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < lines_len && n < room; i++)
        if (lines[i].card == d->index && lines[i].stamp > since)
            out[n++] = (struct nvmlUtilization){
                .pid = lines[i].pid, .smUtil = lines[i].percent, .timeStamp = lines[i].stamp};
    if (has_simulated && d->index < CARD_COUNT) {
        const struct sample *s = &samples[d->index];
        take_sample(d->index);
        for (int g = 0; g < CARD_GROUPS && n < room && s->stamp > since; g++)
            if (s->percent[g] > 0 && pid_of(g) != 0)
                out[n++] = (struct nvmlUtilization){
                    .pid = pid_of(g), .smUtil = s->percent[g], .timeStamp = s->stamp};
    }
    pthread_mutex_unlock(&lock);
    *len = n;
    return n > 0 ? OK : NOT_FOUND;
}
