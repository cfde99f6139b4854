// SPDX-License-Identifier: Apache-2.0
/*
 * A libnvidia-ml.so.1 for machines without a GPU: the functions that device-plugin/backend_nvml asks for, under the names
 * that the real library exports. It is driven by the file that COSCHED_FAKE_NVML names, read again by nvmlInit_v2 and
 * nvmlDeviceGetCount_v2 (so at the start of every scan). Without the variable there are two cards like a Tesla T4, 16,160
 * MiB each.
 *
 *   # a comment
 *   driver=535.104.05
 *   count=2                    number of cards; each starts as the default T4
 *   card.1.uuid=GPU-...        also name, mib, pci (00000000:3B:00.0), mig (1: on)
 *   card.1.lost=1              every call on this card answers "GPU is lost" (15)
 *   link.0.1=NV2               both ways: NV<n>, PIX, PXB, PHB, NODE, SYS (the default)
 *   fail.nvmlInit_v2=9         this function answers with this code
 *   hang=nvmlDeviceGetCount_v2 this function does not return until the line is gone from the file
 *
 * A line that is none of these ends the process: a test with a typing error must not pass.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CARDS = 64, TEXT = 96 };
enum { OK = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, LOST = 15 };

struct nvmlMemory {
    unsigned long long total, free, used;
};
struct nvmlPci {
    char busIdLegacy[16];
    unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
};

struct nvmlDevice {
    unsigned index;
    char uuid[TEXT], name[TEXT], pci[32];
    unsigned long long mib;
    unsigned mig, lost;
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
int nvmlDeviceGetPciInfo_v3(struct nvmlDevice *d, struct nvmlPci *out);
int nvmlDeviceGetMigMode(struct nvmlDevice *d, unsigned *current, unsigned *pending);
int nvmlDeviceGetTopologyCommonAncestor(struct nvmlDevice *a, struct nvmlDevice *b, int *level);
int nvmlDeviceGetNvLinkState(struct nvmlDevice *d, unsigned link, int *active);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct nvmlDevice *d, unsigned link, struct nvmlPci *out);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct nvmlDevice cards[CARDS];
static unsigned cards_len;
static char links[CARDS][CARDS][8];
static char driver[TEXT];
static char hang[TEXT];
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
    fails_len = 0;
    cards_len = 2;
    for (unsigned i = 0; i < CARDS; i++) {
        struct nvmlDevice *d = &cards[i];
        *d = (struct nvmlDevice){.index = i, .mib = 16160};
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
    if (strcmp(key, "uuid") == 0)
        snprintf(d->uuid, sizeof d->uuid, "%s", value);
    else if (strcmp(key, "name") == 0)
        snprintf(d->name, sizeof d->name, "%s", value);
    else if (strcmp(key, "pci") == 0)
        snprintf(d->pci, sizeof d->pci, "%.31s", value);
    else if (strcmp(key, "mib") == 0 && sscanf(value, "%llu", &d->mib) == 1)
        return;
    else if (strcmp(key, "mig") == 0 && sscanf(value, "%u", &d->mig) == 1)
        return;
    else if (strcmp(key, "lost") == 0 && sscanf(value, "%u", &d->lost) == 1)
        return;
    else if (strcmp(key, "uuid") != 0 && strcmp(key, "name") != 0 && strcmp(key, "pci") != 0)
        die(line);
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
             sscanf(line, "hang=%95[A-Za-z0-9_]", hang) == 1)
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
static int enter(const char *function, const struct nvmlDevice *d)
{
    pthread_mutex_lock(&lock);
    while (strcmp(hang, function) == 0) {
        pthread_mutex_unlock(&lock);
        nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
        pthread_mutex_lock(&lock);
        load();
    }
    int code = d != NULL && d->lost ? LOST : OK;
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
    pthread_mutex_unlock(&lock);
    return enter(__func__, NULL);
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
    int code = enter(__func__, NULL);
    return code != OK ? code : text(driver, out, size);
}

int nvmlDeviceGetCount_v2(unsigned *out)
{
    pthread_mutex_lock(&lock);
    load();
    pthread_mutex_unlock(&lock);
    int code = enter(__func__, NULL);
    *out = cards_len;
    return code;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, struct nvmlDevice **out)
{
    if (i >= cards_len)
        return INVALID_ARGUMENT;
    int code = enter(__func__, &cards[i]);
    if (code == OK)
        *out = &cards[i];
    return code;
}

int nvmlDeviceGetUUID(struct nvmlDevice *d, char *out, unsigned size)
{
    int code = enter(__func__, d);
    return code != OK ? code : text(d->uuid, out, size);
}

int nvmlDeviceGetName(struct nvmlDevice *d, char *out, unsigned size)
{
    int code = enter(__func__, d);
    return code != OK ? code : text(d->name, out, size);
}

int nvmlDeviceGetMemoryInfo(struct nvmlDevice *d, struct nvmlMemory *out)
{
    int code = enter(__func__, d);
    *out = (struct nvmlMemory){.total = d->mib << 20, .free = d->mib << 20};
    return code;
}

int nvmlDeviceGetPciInfo_v3(struct nvmlDevice *d, struct nvmlPci *out)
{
    int code = enter(__func__, d);
    *out = (struct nvmlPci){0};
    snprintf(out->busId, sizeof out->busId, "%s", d->pci);
    return code;
}

int nvmlDeviceGetMigMode(struct nvmlDevice *d, unsigned *current, unsigned *pending)
{
    int code = enter(__func__, d);
    *current = *pending = d->mig;
    return code;
}

int nvmlDeviceGetTopologyCommonAncestor(struct nvmlDevice *a, struct nvmlDevice *b, int *level)
{
    static const struct {
        const char *name;
        int level;
    } levels[] = {{"PIX", 10}, {"PXB", 20}, {"PHB", 30}, {"NODE", 40}};
    int code = enter(__func__, a);
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

int nvmlDeviceGetNvLinkState(struct nvmlDevice *d, unsigned link, int *active)
{
    int code = enter(__func__, d);
    *active = link_peer(d, link) != NULL;
    return code;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct nvmlDevice *d, unsigned link, struct nvmlPci *out)
{
    const struct nvmlDevice *peer = link_peer(d, link);
    int code = enter(__func__, d);
    if (peer == NULL)
        return NOT_FOUND;
    *out = (struct nvmlPci){0};
    snprintf(out->busId, sizeof out->busId, "%s", peer->pci);
    return code;
}
