// SPDX-License-Identifier: Apache-2.0
/*
 * resolve - how programs reach our functions instead of the driver's, on every path:
 *
 *   linked with libcuda      our symbols are found first: we were loaded first
 *   dlopen and dlsym         we replace dlsym, for names in our list that begin with cu or nvml
 *   cuGetProcAddress         is in the list itself (the CUDA runtime uses it for everything)
 *
 * The real lookup comes first and decides whether the function exists; only then ours replaces it.
 * For other names dlsym jumps to the real one: RTLD_NEXT and RTLD_DEFAULT depend on the caller,
 * which the C library finds by the return address. Such a jump needs assembly.
 */
#include "device-plugin/isolation/preload/elf.h"
#include "device-plugin/isolation/preload/hooks.h"
#include "device-plugin/isolation/preload/share.h"

#include <dlfcn.h>
#include <string.h>

struct row {
    const char *name, *base;
    int since;
    void (*hook)(void);
    size_t at; /* offset of the pointer in its struct */
};

#define ROW_CUDA(name, base, since, args) \
    {#name, base, since, (void (*)(void))name, offsetof(struct hooks_cuda, name)},
#define ROW_NVML(name, base, since, args) \
    {#name, base, since, (void (*)(void))name, offsetof(struct hooks_nvml, name)},
#define ASK_CUDA(name, base, since, args) \
    {#name, base, since, NULL, offsetof(struct hooks_cuda, name)},
#define ASK_NVML(name, base, since, args) \
    {#name, base, since, NULL, offsetof(struct hooks_nvml, name)},

static const struct row cuda_rows[] = {HOOKS_CUDA(ROW_CUDA) HOOKS_ASK_CUDA(ASK_CUDA)};
static const struct row nvml_rows[] = {HOOKS_NVML(ROW_NVML) HOOKS_ASK_NVML(ASK_NVML)};
enum {
    PATH_BYTES = 1024,
    CUDA_ROWS = sizeof cuda_rows / sizeof cuda_rows[0],
    NVML_ROWS = sizeof nvml_rows / sizeof nvml_rows[0],
};

static struct hooks_cuda cuda;
static struct hooks_nvml nvml;
static atomic_bool cuda_ready, nvml_ready;

/* Keeps the driver loaded: unloading it would leave our pointers dangling. */
static void keep_loaded(const char *path)
{
    void *(*open_object)(const char *, int) =
        (void *(*)(const char *, int))(uintptr_t)elf_find(NULL, "dlopen");
    if (open_object != NULL)
        (void)open_object(path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

/* Threads may do this concurrently: they write the same values. */
static bool fill(const char *object, const struct row *rows, size_t len, void *table)
{
    char path[PATH_BYTES];
    if (!elf_path(object, path, sizeof path))
        return false;
    keep_loaded(path);
    for (size_t i = 0; i < len; i++) {
        void **at = (void **)((char *)table + rows[i].at);
        __atomic_store_n(at, elf_find(object, rows[i].name), __ATOMIC_RELAXED);
    }
    return true;
}

const struct hooks_cuda *hooks_cuda(void)
{
    if (atomic_load_explicit(&cuda_ready, memory_order_acquire))
        return &cuda;
    if (!fill("libcuda.so", cuda_rows, CUDA_ROWS, &cuda))
        return NULL;
    atomic_store_explicit(&cuda_ready, true, memory_order_release);
    return &cuda;
}

const struct hooks_nvml *hooks_nvml(void)
{
    if (atomic_load_explicit(&nvml_ready, memory_order_acquire))
        return &nvml;
    if (!fill("libnvidia-ml.so", nvml_rows, NVML_ROWS, &nvml))
        return NULL;
    atomic_store_explicit(&nvml_ready, true, memory_order_release);
    return &nvml;
}

static bool is_ptsz(const char *name)
{
    size_t n = strlen(name);
    return n > 5 && strcmp(name + n - 5, "_ptsz") == 0;
}

/* Our function for the driver's answer. If the driver exports the answer under a name, that decides
 * the form; otherwise symbol and version do. */
static void *ours_for(const void *found, const char *symbol, int version, uint64_t flags)
{
    const struct row *best = NULL;
    for (size_t i = 0; i < CUDA_ROWS; i++) {
        const struct row *r = &cuda_rows[i];
        void *real = *(void **)((char *)&cuda + r->at);
        if (r->hook != NULL && real != NULL && real == found)
            return (void *)(uintptr_t)r->hook;
    }
    for (size_t i = 0; i < CUDA_ROWS; i++) {
        const struct row *r = &cuda_rows[i];
        if (r->hook != NULL && strcmp(r->base, symbol) == 0 && r->since <= version &&
            *(void **)((char *)&cuda + r->at) != NULL &&
            (!is_ptsz(r->name) || (flags & CU_PROC_PER_THREAD_STREAM)))
            best = r;
    }
    return best != NULL ? (void *)(uintptr_t)best->hook : NULL;
}

static CUresult found(CUresult result, const char *symbol, void **out, int version, uint64_t flags)
{
    if (result != CUDA_SUCCESS || symbol == NULL || out == NULL || *out == NULL)
        return result;
    void *ours = ours_for(*out, symbol, version, flags);
    if (ours != NULL)
        *out = ours;
    return result;
}

int cuGetProcAddress(const char *symbol, void **out, int version, uint64_t flags)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuGetProcAddress == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    share_depth++;
    CUresult result = real->cuGetProcAddress(symbol, out, version, flags);
    share_depth--;
    return share_depth > 0 ? result : found(result, symbol, out, version, flags);
}

int cuGetProcAddress_v2(const char *symbol, void **out, int version, uint64_t flags, int *status)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuGetProcAddress_v2 == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    share_depth++;
    CUresult result = real->cuGetProcAddress_v2(symbol, out, version, flags, status);
    share_depth--;
    return share_depth > 0 ? result : found(result, symbol, out, version, flags);
}

typedef void *(*dlsym_function)(void *, const char *);
typedef void *(*dlvsym_function)(void *, const char *, const char *);

/* Called by the assembly below. */
__attribute__((visibility("hidden"))) void *resolve_dlsym(void *handle, const char *name);
__attribute__((visibility("hidden"))) void *resolve_dlvsym(void *handle, const char *name,
                                                           const char *version);
__attribute__((visibility("hidden"))) extern void *resolve_real_dlsym, *resolve_real_dlvsym;
void *resolve_real_dlsym, *resolve_real_dlvsym;

/* What resolve_<name> returns for a final NULL. */
#define NOTHING ((void *)1)

static const char *name_of_driver(const struct row *r)
{
    return r->name[0] == 'c' ? "libcuda.so" : "libnvidia-ml.so";
}

static const struct row *listed(const char *name)
{
    const struct row *rows = NULL;
    size_t len = 0;
    if (name != NULL && name[0] == 'c' && name[1] == 'u') {
        rows = cuda_rows;
        len = CUDA_ROWS;
    } else if (name != NULL && strncmp(name, "nvml", 4) == 0) {
        rows = nvml_rows;
        len = NVML_ROWS;
    }
    for (size_t i = 0; i < len; i++)
        if (rows[i].hook != NULL && strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

static void *find_real(void **at, const char *name)
{
    void *real = __atomic_load_n(at, __ATOMIC_ACQUIRE);
    if (real == NULL) {
        real = elf_find(NULL, name);
        __atomic_store_n(at, real, __ATOMIC_RELEASE);
    }
    return real;
}

/* Without a driver, a search through all objects finds a listed name in our library: such a program
 * must not find CUDA. */
static bool is_only_ours(const void *found, const struct row *r)
{
    char path[PATH_BYTES];
    return found == (void *)(uintptr_t)r->hook && !elf_path(name_of_driver(r), path, sizeof path);
}

/* Our function for the name; NULL: continue with the real dlsym, which also sets dlerror. */
void *resolve_dlsym(void *handle, const char *name)
{
    dlsym_function real = (dlsym_function)(uintptr_t)find_real(&resolve_real_dlsym, "dlsym");
    const struct row *r = share_depth > 0 ? NULL : listed(name);
    const void *found = r != NULL ? real(handle, name) : NULL;
    if (found == NULL)
        return NULL;
    if (!is_only_ours(found, r))
        return (void *)(uintptr_t)r->hook;
    (void)real(handle, "of a driver that is not loaded");
    return NOTHING;
}

void *resolve_dlvsym(void *handle, const char *name, const char *version)
{
    dlvsym_function real = (dlvsym_function)(uintptr_t)find_real(&resolve_real_dlvsym, "dlvsym");
    const struct row *r = share_depth > 0 ? NULL : listed(name);
    const void *found = r != NULL ? real(handle, name, version) : NULL;
    if (found == NULL)
        return NULL;
    if (!is_only_ours(found, r))
        return (void *)(uintptr_t)r->hook;
    (void)real(handle, "of a driver that is not loaded", version);
    return NOTHING;
}

/* name: saves the arguments and calls resolve_<name>. Returns its answer (1 stands for NULL), or
 * else jumps to the real one with the original arguments and return address. */
#if defined(__x86_64__)
#define JUMP(name)                                                       \
    __asm__(".pushsection .text\n"                                       \
            ".globl " #name "\n.type " #name ", @function\n" #name ":\n" \
            "\tpush %rdi\n\tpush %rsi\n\tpush %rdx\n"                    \
            "\tcall resolve_" #name "\n"                                 \
            "\tpop %rdx\n\tpop %rsi\n\tpop %rdi\n"                       \
            "\ttest %rax, %rax\n"                                        \
            "\tjz 1f\n"                                                  \
            "\tcmp $1, %rax\n"                                           \
            "\tjne 2f\n"                                                 \
            "\txor %eax, %eax\n"                                         \
            "2:\tret\n"                                                  \
            "1:\tjmp *resolve_real_" #name "(%rip)\n"                    \
            ".size " #name ", . - " #name "\n"                           \
            ".popsection\n")
#elif defined(__aarch64__)
#define JUMP(name)                                                       \
    __asm__(".pushsection .text\n"                                       \
            ".globl " #name "\n.type " #name ", %function\n" #name ":\n" \
            "\tstp x29, x30, [sp, #-48]!\n"                              \
            "\tstp x0, x1, [sp, #16]\n"                                  \
            "\tstr x2, [sp, #32]\n"                                      \
            "\tbl resolve_" #name "\n"                                   \
            "\tmov x9, x0\n"                                             \
            "\tldp x0, x1, [sp, #16]\n"                                  \
            "\tldr x2, [sp, #32]\n"                                      \
            "\tldp x29, x30, [sp], #48\n"                                \
            "\tcbz x9, 1f\n"                                             \
            "\tcmp x9, #1\n"                                             \
            "\tcsel x0, xzr, x9, eq\n"                                   \
            "\tret\n"                                                    \
            "1:\tadrp x9, resolve_real_" #name "\n"                      \
            "\tldr x9, [x9, #:lo12:resolve_real_" #name "]\n"            \
            "\tbr x9\n"                                                  \
            ".size " #name ", . - " #name "\n"                           \
            ".popsection\n")
#else
#error "dlsym: write the jump for this processor"
#endif
JUMP(dlsym);
JUMP(dlvsym);
