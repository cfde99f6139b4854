// SPDX-License-Identifier: Apache-2.0
/*
 * A libnvidia-ml.so.1 for machines without a GPU: the functions that
 * device-plugin/cards/backend_nvml asks for, under the names that the real library exports. It is
 * driven by the file that COSCHED_FAKE_NVML names, read again by nvmlInit_v2 and
 * nvmlDeviceGetCount_v2 (so at the start of every scan). Without the variable there are two cards
 * like a Tesla T4, 16,160 MiB each.
 *
 *   # a comment
 *   driver=535.104.05
 *   count=2                    number of cards; each starts as the default T4
 *   card.1.uuid=GPU-...        also name, mib, pci (00000000:3B:00.0), mig (1: on)
 *   card.1.lost=1              every call on this card answers "GPU is lost" (15)
 *   card.1.fail=999            every call on this card answers with this code
 *   card.1.ecc=2               uncorrected memory errors (without the line the card does not count
 *                              them)
 *   card.1.remap=1             waits for a reset (2: has no spare rows left)
 *   card.1.switched=12         so many NVLinks to a switch
 *   card.1.deaf=1              does not report errors
 *   link.0.1=NV2               both ways: NV<n>, PIX, PXB, PHB, NODE, SYS (the default)
 *   fail.nvmlInit_v2=9         this function answers with this code
 *   hang=nvmlDeviceGetCount_v2 this function does not return until the line is gone from the file
 *   hang=nvmlDeviceGetName 1   the same, when it is asked for this card
 *   process.0=1234 2048        process 1234 uses 2,048 MiB of card 0; may be repeated
 *                              ("graphics.0=..." for the other list)
 *   busy.0=1234 37 5000000     process 1234 kept card 0 busy for 37 % of the time until this stamp
 *                              (microseconds)
 *   cuda=FILE                  processes, their memory and how busy they are come from these
 *                              simulated cards (test/fake/cuda) as well
 *   reset=1                    the cards were reset so often: until nvmlInit_v2 is called again all
 *                              answer "GPU is lost"
 *   event.1=xid 1 79           the first event: card 1 reports XID 79; "event.2=ecc 0": a double
 *                              bit error
 *
 * Events are numbered from 1; each is delivered once, to event sets that were made before it was in
 * the file.
 *
 * A line that is none of these ends the process: a test with a typing error must not pass.
 */
#include "test/fake/nvml/nvml.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PROCESSES = 256, EVENTS = 256, POLL_MS = 20 };
enum { EVENT_ECC = 2, EVENT_XID = 8 };

struct nvmlMemory {
    unsigned long long total, free, used;
};
struct nvmlMemory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
struct nvmlPci {
    char busIdLegacy[16];
    unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
};

struct nvmlEvent {
    struct nvmlDevice *device;
    unsigned long long type, data;
    unsigned gpuInstance, computeInstance;
};
struct nvmlEventSet {
    unsigned next; /* number of the event that is delivered next */
    unsigned char hears[64];
};

int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int code);
int nvmlSystemGetDriverVersion(char *out, unsigned size);
int nvmlDeviceGetCount_v2(unsigned *out);
int nvmlDeviceGetHandleByIndex_v2(unsigned i, struct nvmlDevice **out);
int nvmlDeviceGetUUID(struct nvmlDevice *d, char *out, unsigned size);
int nvmlDeviceGetName(struct nvmlDevice *d, char *out, unsigned size);
int nvmlDeviceGetMemoryInfo(struct nvmlDevice *d, struct nvmlMemory *out);
int nvmlDeviceGetMemoryInfo_v2(struct nvmlDevice *d, struct nvmlMemory_v2 *out);
int nvmlDeviceGetPciInfo_v3(struct nvmlDevice *d, struct nvmlPci *out);
int nvmlDeviceGetMigMode(struct nvmlDevice *d, unsigned *current, unsigned *pending);
int nvmlDeviceGetTopologyCommonAncestor(struct nvmlDevice *a, struct nvmlDevice *b, int *level);
int nvmlDeviceGetNvLinkState(struct nvmlDevice *d, unsigned link, int *active);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct nvmlDevice *d, unsigned link, struct nvmlPci *out);

int nvmlDeviceGetNvLinkRemoteDeviceType(struct nvmlDevice *d, unsigned link, int *type);
int nvmlDeviceGetTotalEccErrors(struct nvmlDevice *d, int type, int counter,
                                unsigned long long *out);
int nvmlDeviceGetRemappedRows(struct nvmlDevice *d, unsigned *corrected, unsigned *uncorrected,
                              unsigned *pending, unsigned *failed);
int nvmlDeviceGetComputeRunningProcesses_v3(struct nvmlDevice *d, unsigned *len,
                                            struct nvmlProcess *out);
int nvmlDeviceGetGraphicsRunningProcesses_v3(struct nvmlDevice *d, unsigned *len,
                                             struct nvmlProcess *out);
int nvmlEventSetCreate(struct nvmlEventSet **out);
int nvmlDeviceGetSupportedEventTypes(struct nvmlDevice *d, unsigned long long *out);
int nvmlDeviceRegisterEvents(struct nvmlDevice *d, unsigned long long types,
                             struct nvmlEventSet *set);
int nvmlEventSetWait_v2(struct nvmlEventSet *set, struct nvmlEvent *out, unsigned ms);
int nvmlEventSetFree(struct nvmlEventSet *set);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct nvmlDevice cards[CARDS];
static unsigned cards_len;
static char links[CARDS][CARDS][8];
static char driver[TEXT];
static char hang[TEXT];
static int hang_card; /* -1: any */
static unsigned resets, resets_seen;
static struct {
    unsigned card, pid;
    long long mib;
    int graphics;
} processes[PROCESSES];
static unsigned processes_len;
static struct {
    unsigned number, card, xid; /* xid 0: a double bit error */
} events[EVENTS];
static unsigned events_len;
static struct {
    char name[TEXT];
    int code;
} fails[16];
static unsigned fails_len;

static void die(const char *line)
{
    fprintf(stderr, "fake NVML: not understood: %s\n", line);
    _Exit(99);
}

static void defaults(void)
{
    snprintf(driver, sizeof driver, "535.104.05");
    hang[0] = '\0';
    hang_card = -1;
    resets = 0;
    fails_len = processes_len = events_len = 0;
    nvml_time_forget();
    cards_len = 2;
    for (unsigned i = 0; i < CARDS; i++) {
        struct nvmlDevice *d = &cards[i];
        *d = (struct nvmlDevice){.index = i, .mib = 16160, .ecc = -1};
        snprintf(d->uuid, sizeof d->uuid, "GPU-00000000-0000-4000-8000-%012u", i);
        snprintf(d->name, sizeof d->name, "Tesla T4");
        snprintf(d->pci, sizeof d->pci, "00000000:%02X:00.0", 0x3bu + i);
        for (unsigned k = 0; k < CARDS; k++)
            snprintf(links[i][k], sizeof links[i][k], "SYS");
    }
}

static void card_line(const char *line)
{
    unsigned i = 0;
    char key[16], value[TEXT];
    if (sscanf(line, "card.%u.%15[a-z]=%95[^\n]", &i, key, value) != 3 || i >= CARDS)
        die(line);
    struct nvmlDevice *d = &cards[i];
    struct {
        const char *key;
        unsigned *to;
    } numbers[] = {{"mig", &d->mig},     {"lost", &d->lost},         {"fail", &d->fail},
                   {"remap", &d->remap}, {"switched", &d->switched}, {"deaf", &d->deaf}};
    if (strcmp(key, "uuid") == 0)
        snprintf(d->uuid, sizeof d->uuid, "%s", value);
    else if (strcmp(key, "name") == 0)
        snprintf(d->name, sizeof d->name, "%s", value);
    else if (strcmp(key, "pci") == 0)
        snprintf(d->pci, sizeof d->pci, "%.31s", value);
    else if ((strcmp(key, "mib") == 0 && sscanf(value, "%llu", &d->mib) == 1) ||
             (strcmp(key, "ecc") == 0 && sscanf(value, "%d", &d->ecc) == 1))
        return;
    else {
        for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++)
            if (strcmp(key, numbers[k].key) == 0 && sscanf(value, "%u", numbers[k].to) == 1)
                return;
        die(line);
    }
}

static int process_line(const char *line)
{
    unsigned card = 0, pid = 0;
    long long mib = 0;
    int graphics = sscanf(line, "graphics.%u=%u %lld", &card, &pid, &mib) == 3;
    if (!graphics && sscanf(line, "process.%u=%u %lld", &card, &pid, &mib) != 3)
        return 0;
    if (card >= CARDS || processes_len == PROCESSES)
        die(line);
    processes[processes_len].card = card;
    processes[processes_len].pid = pid;
    processes[processes_len].graphics = graphics;
    processes[processes_len++].mib = mib;
    return 1;
}

static int event_line(const char *line)
{
    unsigned number = 0, card = 0, xid = 0;
    if (sscanf(line, "event.%u=xid %u %u", &number, &card, &xid) != 3 &&
        sscanf(line, "event.%u=ecc %u", &number, &card) != 2)
        return 0;
    if (card >= CARDS || events_len == EVENTS)
        die(line);
    events[events_len].number = number;
    events[events_len].card = card;
    events[events_len++].xid = xid;
    return 1;
}

static void read_line(const char *line)
{
    unsigned i = 0, k = 0;
    char value[8];
    if (line[0] == '#' || line[0] == '\n' || line[0] == '\0')
        return;
    if (strncmp(line, "card.", 5) == 0)
        card_line(line);
    else if (sscanf(line, "driver=%95[^\n]", driver) == 1 ||
             sscanf(line, "hang=%95[A-Za-z0-9_] %d", hang, &hang_card) >= 1 || process_line(line) ||
             nvml_time_line(line) || event_line(line))
        return;
    else if (sscanf(line, "reset=%u", &resets) == 1)
        return;
    else if (sscanf(line, "count=%u", &i) == 1 && i <= CARDS)
        cards_len = i;
    else if (sscanf(line, "link.%u.%u=%7[A-Z0-9]", &i, &k, value) == 3 && i < CARDS && k < CARDS) {
        snprintf(links[i][k], sizeof links[i][k], "%s", value);
        snprintf(links[k][i], sizeof links[k][i], "%s", value);
    } else if (fails_len < sizeof fails / sizeof fails[0] &&
               sscanf(line, "fail.%95[A-Za-z0-9_]=%d", fails[fails_len].name,
                      &fails[fails_len].code) == 2)
        fails_len++;
    else
        die(line);
}

static void load(void)
{
    const char *path = getenv("COSCHED_FAKE_NVML");
    defaults();
    if (path == NULL || path[0] == '\0')
        return;
    FILE *f = fopen(path, "re");
    if (f == NULL)
        die(path);
    char line[512];
    while (fgets(line, sizeof line, f) != NULL)
        read_line(line);
    fclose(f);
}

/* What the file says about the function: a code, after the hang if there is one. */
int nvml_enter(const char *function, const struct nvmlDevice *d)
{
    pthread_mutex_lock(&lock);
    while (strcmp(hang, function) == 0 &&
           (hang_card < 0 || (d != NULL && d->index == (unsigned)hang_card))) {
        pthread_mutex_unlock(&lock);
        nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
        pthread_mutex_lock(&lock);
        load();
    }
    int code = d != NULL && (d->lost || resets != resets_seen) ? LOST : OK;
    if (d != NULL && d->fail)
        code = (int)d->fail;
    for (unsigned i = 0; i < fails_len; i++)
        if (strcmp(fails[i].name, function) == 0)
            code = fails[i].code;
    pthread_mutex_unlock(&lock);
    return code;
}

static int text(const char *from, char *out, unsigned size)
{
    return (unsigned)snprintf(out, size, "%s", from) < size ? OK : TOO_SMALL;
}

int nvmlInit_v2(void)
{
    pthread_mutex_lock(&lock);
    load();
    resets_seen = resets;
    pthread_mutex_unlock(&lock);
    return nvml_enter(__func__, NULL);
}

int nvmlShutdown(void)
{
    return OK;
}

const char *nvmlErrorString(int code)
{
    switch (code) {
    case OK:
        return "Success";
    case INVALID_ARGUMENT:
        return "Invalid Argument";
    case NOT_SUPPORTED:
        return "Not Supported";
    case 9:
        return "Driver Not Loaded";
    case LOST:
        return "GPU is lost";
    default:
        return "Unknown Error";
    }
}

int nvmlSystemGetDriverVersion(char *out, unsigned size)
{
    int code = nvml_enter(__func__, NULL);
    return code != OK ? code : text(driver, out, size);
}

int nvmlDeviceGetCount_v2(unsigned *out)
{
    pthread_mutex_lock(&lock);
    load();
    pthread_mutex_unlock(&lock);
    int code = nvml_enter(__func__, NULL);
    *out = cards_len;
    return code;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, struct nvmlDevice **out)
{
    if (i >= cards_len)
        return INVALID_ARGUMENT;
    int code = nvml_enter(__func__, &cards[i]);
    if (code == OK)
        *out = &cards[i];
    return code;
}

int nvmlDeviceGetUUID(struct nvmlDevice *d, char *out, unsigned size)
{
    int code = nvml_enter(__func__, d);
    return code != OK ? code : text(d->uuid, out, size);
}

int nvmlDeviceGetName(struct nvmlDevice *d, char *out, unsigned size)
{
    int code = nvml_enter(__func__, d);
    return code != OK ? code : text(d->name, out, size);
}

int nvmlDeviceGetMemoryInfo(struct nvmlDevice *d, struct nvmlMemory *out)
{
    int code = nvml_enter(__func__, d);
    *out = (struct nvmlMemory){.total = d->mib << 20, .free = d->mib << 20};
    return code;
}

/* A sixteenth is the driver's own. */
int nvmlDeviceGetMemoryInfo_v2(struct nvmlDevice *d, struct nvmlMemory_v2 *out)
{
    int code = nvml_enter(__func__, d);
    unsigned long long total = d->mib << 20;
    *out = (struct nvmlMemory_v2){.version = out->version,
                                  .total = total,
                                  .reserved = total / 16,
                                  .free = total - total / 16};
    return code;
}

int nvmlDeviceGetPciInfo_v3(struct nvmlDevice *d, struct nvmlPci *out)
{
    int code = nvml_enter(__func__, d);
    *out = (struct nvmlPci){0};
    snprintf(out->busId, sizeof out->busId, "%s", d->pci);
    return code;
}

int nvmlDeviceGetMigMode(struct nvmlDevice *d, unsigned *current, unsigned *pending)
{
    int code = nvml_enter(__func__, d);
    *current = *pending = d->mig;
    return code;
}

int nvmlDeviceGetTopologyCommonAncestor(struct nvmlDevice *a, struct nvmlDevice *b, int *level)
{
    static const struct {
        const char *name;
        int level;
    } levels[] = {{"PIX", 10}, {"PXB", 20}, {"PHB", 30}, {"NODE", 40}};
    int code = nvml_enter(__func__, a);
    *level = 50;
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
        if (strcmp(links[a->index][b->index], levels[i].name) == 0)
            *level = levels[i].level;
    return code;
}

/* Links are numbered card by card: those to card 0 first. */
static struct nvmlDevice *link_peer(const struct nvmlDevice *d, unsigned link)
{
    for (unsigned k = 0; k < cards_len; k++) {
        unsigned n = 0;
        if (sscanf(links[d->index][k], "NV%u", &n) != 1)
            continue;
        if (link < n)
            return &cards[k];
        link -= n;
    }
    return NULL;
}

static unsigned links_of(const struct nvmlDevice *d)
{
    unsigned n = 0;
    while (link_peer(d, n) != NULL)
        n++;
    return n;
}

int nvmlDeviceGetNvLinkState(struct nvmlDevice *d, unsigned link, int *active)
{
    int code = nvml_enter(__func__, d);
    *active = link < links_of(d) + d->switched;
    return code;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct nvmlDevice *d, unsigned link, struct nvmlPci *out)
{
    const struct nvmlDevice *peer = link_peer(d, link);
    int code = nvml_enter(__func__, d);
    *out = (struct nvmlPci){0};
    if (peer == NULL && link >= links_of(d) + d->switched)
        return NOT_FOUND;
    snprintf(out->busId, sizeof out->busId, "%s", peer != NULL ? peer->pci : "00000000:C1:00.0");
    return code;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(struct nvmlDevice *d, unsigned link, int *type)
{
    int code = nvml_enter(__func__, d);
    *type = link_peer(d, link) != NULL ? 0 : 2;
    return code;
}

int nvmlDeviceGetTotalEccErrors(struct nvmlDevice *d, int type, int counter,
                                unsigned long long *out)
{
    int code = nvml_enter(__func__, d);
    if (type != 1 || counter != 0)
        return INVALID_ARGUMENT;
    if (d->ecc < 0)
        return NOT_SUPPORTED;
    *out = (unsigned long long)d->ecc;
    return code;
}

int nvmlDeviceGetRemappedRows(struct nvmlDevice *d, unsigned *corrected, unsigned *uncorrected,
                              unsigned *pending, unsigned *failed)
{
    int code = nvml_enter(__func__, d);
    *corrected = *uncorrected = 0;
    *pending = d->remap == 1;
    *failed = d->remap == 2;
    return code;
}

static int list_processes(const struct nvmlDevice *d, unsigned *len, struct nvmlProcess *out,
                          int graphics)
{
    unsigned n = 0, room = *len;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < processes_len; i++) {
        if (processes[i].card != d->index || processes[i].graphics != graphics)
            continue;
        if (n < room)
            out[n] = (struct nvmlProcess){
                .pid = processes[i].pid,
                .used = processes[i].mib < 0 ? ~0ULL : (unsigned long long)processes[i].mib << 20};
        n++;
    }
    if (!graphics)
        n = nvml_time_processes(d->index, n, room, out);
    pthread_mutex_unlock(&lock);
    *len = n;
    return n > room ? TOO_SMALL : OK;
}

int nvmlDeviceGetComputeRunningProcesses_v3(struct nvmlDevice *d, unsigned *len,
                                            struct nvmlProcess *out)
{
    int code = nvml_enter(__func__, d);
    return code != OK ? code : list_processes(d, len, out, 0);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(struct nvmlDevice *d, unsigned *len,
                                             struct nvmlProcess *out)
{
    int code = nvml_enter(__func__, d);
    return code != OK ? code : list_processes(d, len, out, 1);
}

/* ---- events ---- */

int nvmlEventSetCreate(struct nvmlEventSet **out)
{
    int code = nvml_enter(__func__, NULL);
    if (code != OK)
        return code;
    struct nvmlEventSet *set = calloc(1, sizeof *set);
    if (set == NULL)
        abort();
    pthread_mutex_lock(&lock);
    set->next = 1;
    for (unsigned i = 0; i < events_len; i++)
        if (events[i].number >= set->next)
            set->next = events[i].number + 1;
    pthread_mutex_unlock(&lock);
    *out = set;
    return OK;
}

int nvmlDeviceGetSupportedEventTypes(struct nvmlDevice *d, unsigned long long *out)
{
    int code = nvml_enter(__func__, d);
    *out = d->deaf ? 0 : 0x1f;
    return code;
}

int nvmlDeviceRegisterEvents(struct nvmlDevice *d, unsigned long long types,
                             struct nvmlEventSet *set)
{
    int code = nvml_enter(__func__, d);
    if (types != (EVENT_ECC | EVENT_XID))
        return INVALID_ARGUMENT;
    if (code == OK)
        set->hears[d->index] = 1;
    return code;
}

int nvmlEventSetWait_v2(struct nvmlEventSet *set, struct nvmlEvent *out, unsigned ms)
{
    int code = nvml_enter(__func__, NULL);
    for (unsigned waited = 0; code == OK; waited += POLL_MS) {
        pthread_mutex_lock(&lock);
        load();
        for (unsigned i = 0; i < events_len; i++) {
            if (events[i].number != set->next)
                continue;
            set->next++;
            if (!set->hears[events[i].card])
                continue;
            *out = (struct nvmlEvent){.device = &cards[events[i].card],
                                      .type = events[i].xid != 0 ? EVENT_XID : EVENT_ECC,
                                      .data = events[i].xid};
            pthread_mutex_unlock(&lock);
            return OK;
        }
        pthread_mutex_unlock(&lock);
        if (waited >= ms)
            return TIMEOUT;
        nanosleep(&(struct timespec){.tv_nsec = POLL_MS * 1000 * 1000}, NULL);
    }
    return code;
}

int nvmlEventSetFree(struct nvmlEventSet *set)
{
    free(set);
    return OK;
}
