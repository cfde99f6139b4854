// SPDX-License-Identifier: Apache-2.0
/* elf - finds functions in loaded objects without dlsym, which we replace. Only reads the loader's
 * list of objects, so it neither loads anything nor affects dlerror. */
#pragma once

/* The function in the object whose file name begins with `object` ("libcuda.so"); NULL: none.
 * object NULL: in the first object that has one and is not ours. */
void *elf_find(const char *object, const char *name);
/* The path by which such an object was loaded. 0: none, or it does not fit. */
int elf_path(const char *object, char *out, unsigned long size);
/* The folder our own library was loaded from, ending in '/'. 0: it does not fit. */
int elf_folder(char *out, unsigned long size);
