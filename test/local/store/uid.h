// SPDX-License-Identifier: Apache-2.0
/*
 * uid - the usual form of 16 random bytes: a version 4 UUID. Pure.
 */
#pragma once

enum { UID_BYTES = 16, UID_SIZE = 37 };
void uid_print(const unsigned char random[UID_BYTES], char out[UID_SIZE]);
