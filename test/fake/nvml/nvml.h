// SPDX-License-Identifier: Apache-2.0
/* nvml - what the files of the fake NVML share. */
#pragma once

enum { CARDS = 64, TEXT = 96 };
enum {
    OK = 0,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    TOO_SMALL = 7,
    TIMEOUT = 10,
    LOST = 15
};

struct nvmlDevice {
    unsigned index;
    char uuid[TEXT], name[TEXT], pci[32];
    unsigned long long mib;
    unsigned mig, lost, fail, remap, switched, deaf;
    int ecc; /* -1: not counted */
};

struct nvmlProcess {
    unsigned pid;
    unsigned long long used;
    unsigned gpuInstance, computeInstance;
};

/* What the file says about the function: a code, after the hang if there is one. */
int nvml_enter(const char *function, const struct nvmlDevice *d);

/* The file is read from its beginning. */
void nvml_time_forget(void);
/* Is it a line about how busy processes are? */
int nvml_time_line(const char *line);
/* Appends the processes of the simulated cards; returns how many there are then, also if there is
 * no room for them. */
unsigned nvml_time_processes(unsigned card, unsigned n, unsigned room, struct nvmlProcess *out);
