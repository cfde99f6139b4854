// SPDX-License-Identifier: Apache-2.0
/* The Makefile takes helpers of unit tests from test/unit: it lives with the other fakes. */
#include "test/fake/api/twin_tls.c" // NOLINT(bugprone-suspicious-include)
