// SPDX-License-Identifier: Apache-2.0
/* The Makefile takes helpers of unit tests from test/unit: the twin lives with the other fakes. */
#include "test/fake/api/twin.c" // NOLINT(bugprone-suspicious-include)
