// SPDX-License-Identifier: Apache-2.0
/* elf - looks up the dynamic symbol table of a loaded object by its hash table. dl_iterate_phdr
 * gives each object's load address and program headers; the dynamic section gives symbols, names
 * and the hash table (GNU's, or the older one). glibc adds the load address to the pointers there,
 * other loaders do not: a pointer below it is taken as an offset. */
#include "device-plugin/isolation/preload/elf.h"

#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct table {
    const ElfW(Sym) * symbols;
    const char *names;
    const uint32_t *gnu, *sysv;
};

struct query {
    const char *object, *name;
    void *found;
};

static const void *absolute(const struct dl_phdr_info *o, ElfW(Addr) p)
{
    return (const void *)(p < o->dlpi_addr ? p + o->dlpi_addr
                                           : p); // NOLINT(performance-no-int-to-ptr)
}

static void read_dynamic(const struct dl_phdr_info *o, const ElfW(Dyn) * d, struct table *out)
{
    for (; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_SYMTAB)
            out->symbols = absolute(o, d->d_un.d_ptr);
        else if (d->d_tag == DT_STRTAB)
            out->names = absolute(o, d->d_un.d_ptr);
        else if (d->d_tag == DT_GNU_HASH)
            out->gnu = absolute(o, d->d_un.d_ptr);
        else if (d->d_tag == DT_HASH)
            out->sysv = absolute(o, d->d_un.d_ptr);
    }
}

static int is_function(const struct table *t, uint32_t i, const char *name)
{
    const ElfW(Sym) *s = &t->symbols[i];
    return s->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(s->st_info) == STT_FUNC &&
           strcmp(t->names + s->st_name, name) == 0;
}

static const ElfW(Sym) * by_gnu_hash(const struct table *t, const char *name)
{
    uint32_t h = 5381;
    for (const char *c = name; *c != '\0'; c++)
        h = h * 33 + (unsigned char)*c;
    uint32_t buckets = t->gnu[0], first = t->gnu[1], words = t->gnu[2];
    const uint32_t *bucket = t->gnu + 4 + words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *chain = bucket + buckets;
    uint32_t i = buckets > 0 ? bucket[h % buckets] : 0;
    if (i < first)
        return NULL;
    for (;; i++) {
        if ((chain[i - first] | 1) == (h | 1) && is_function(t, i, name))
            return &t->symbols[i];
        if (chain[i - first] & 1)
            return NULL;
    }
}

static const ElfW(Sym) * by_sysv_hash(const struct table *t, const char *name)
{
    uint32_t h = 0;
    for (const char *c = name; *c != '\0'; c++) {
        h = (h << 4) + (unsigned char)*c;
        h = (h ^ (h & 0xf0000000) >> 24) & 0x0fffffff;
    }
    uint32_t buckets = t->sysv[0];
    for (uint32_t i = buckets > 0 ? t->sysv[2 + h % buckets] : 0; i != 0;
         i = t->sysv[2 + buckets + i])
        if (is_function(t, i, name))
            return &t->symbols[i];
    return NULL;
}

static int begins(const char *path, const char *object)
{
    const char *slash = strrchr(path, '/');
    return strncmp(slash != NULL ? slash + 1 : path, object, strlen(object)) == 0;
}

static int is_ours(const struct dl_phdr_info *o)
{
    static const char here;
    uintptr_t at = (uintptr_t)&here;
    for (int i = 0; i < o->dlpi_phnum; i++) {
        uintptr_t from = o->dlpi_addr + o->dlpi_phdr[i].p_vaddr;
        if (o->dlpi_phdr[i].p_type == PT_LOAD && at >= from && at < from + o->dlpi_phdr[i].p_memsz)
            return 1;
    }
    return 0;
}

static int match_symbol(struct dl_phdr_info *o, size_t size, void *arg)
{
    struct query *q = arg;
    struct table t = {0};
    (void)size;
    if (q->object != NULL ? !begins(o->dlpi_name, q->object) : is_ours(o))
        return 0;
    for (int i = 0; i < o->dlpi_phnum; i++)
        if (o->dlpi_phdr[i].p_type == PT_DYNAMIC)
            read_dynamic(o, absolute(o, o->dlpi_addr + o->dlpi_phdr[i].p_vaddr), &t);
    if (t.symbols == NULL || t.names == NULL || (t.gnu == NULL && t.sysv == NULL))
        return 0;
    const ElfW(Sym) *s = t.gnu != NULL ? by_gnu_hash(&t, q->name) : by_sysv_hash(&t, q->name);
    if (s != NULL)
        q->found = (void *)(o->dlpi_addr + s->st_value); // NOLINT(performance-no-int-to-ptr)
    return s != NULL;
}

void *elf_find(const char *object, const char *name)
{
    struct query q = {.object = object, .name = name};
    (void)dl_iterate_phdr(match_symbol, &q);
    return q.found;
}

struct path {
    const char *object;
    char *out;
    unsigned long size;
    int found;
};

static int match_path(struct dl_phdr_info *o, size_t size, void *arg)
{
    struct path *p = arg;
    (void)size;
    size_t n = strlen(o->dlpi_name) + 1;
    if (!begins(o->dlpi_name, p->object))
        return 0;
    p->found = n <= p->size;
    if (p->found)
        memcpy(p->out, o->dlpi_name, n);
    return 1;
}

int elf_path(const char *object, char *out, unsigned long size)
{
    struct path p = {object, out, size, 0};
    (void)dl_iterate_phdr(match_path, &p);
    return p.found;
}

struct folder {
    char *out;
    unsigned long size;
    int found;
};

static int match_self(struct dl_phdr_info *o, size_t size, void *arg)
{
    struct folder *f = arg;
    (void)size;
    if (!is_ours(o))
        return 0;
    const char *slash = strrchr(o->dlpi_name, '/');
    size_t n = slash != NULL ? (size_t)(slash - o->dlpi_name) + 1 : 0;
    if (n > 0 && n < f->size) {
        memcpy(f->out, o->dlpi_name, n);
        f->out[n] = '\0';
        f->found = 1;
    }
    return 1;
}

int elf_folder(char *out, unsigned long size)
{
    struct folder f = {out, size, 0};
    (void)dl_iterate_phdr(match_self, &f);
    return f.found;
}
