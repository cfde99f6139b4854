// SPDX-License-Identifier: Apache-2.0
/* wire - converts between our structs and the kubelet's protobuf messages (device plugin v1beta1,
 * pod resources v1). The only user of protobuf-c. Decoded data is bounded and copied into the
 * arena. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "device-plugin/cards/inventory.h"
#include "device-plugin/grant/match.h"
#include "device-plugin/grant/response.h"
#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/base/str.h"

#define WIRE_VERSION "v1beta1"
#define WIRE_REGISTER "/v1beta1.Registration/Register"
#define WIRE_OPTIONS "/v1beta1.DevicePlugin/GetDevicePluginOptions"
#define WIRE_LIST_AND_WATCH "/v1beta1.DevicePlugin/ListAndWatch"
#define WIRE_PREFERRED "/v1beta1.DevicePlugin/GetPreferredAllocation"
#define WIRE_ALLOCATE "/v1beta1.DevicePlugin/Allocate"
#define WIRE_PRE_START "/v1beta1.DevicePlugin/PreStartContainer"
#define WIRE_LIST_PODS "/v1.PodResourcesLister/List"

enum { WIRE_CONTAINERS_MAX = 64, WIRE_IDS_MAX = 64 * 1024, WIRE_PODS_MAX = 4096 };

struct wire_preference {
    struct inventory_ids available, must;
    size_t count;
};

/* Requests PreStartContainer and GetPreferredAllocation. */
void wire_encode_options(struct strbuf *out);
void wire_encode_register(const char *endpoint, const char *resource, struct strbuf *out);
void wire_encode_devices(const struct inventory_devices *d, struct strbuf *out);

int wire_decode_preferred(const void *bytes, size_t n, struct arena *a,
                          struct wire_preference **out, size_t *len, struct error *err);
void wire_encode_preferred(const struct inventory_ids *answers, size_t len, struct strbuf *out);
int wire_decode_allocate(const void *bytes, size_t n, struct arena *a, struct inventory_ids **out,
                         size_t *len, struct error *err);
void wire_encode_allocate(const struct response *answers, size_t len, struct strbuf *out);
int wire_decode_pre_start(const void *bytes, size_t n, struct arena *a, struct inventory_ids *out,
                          struct error *err);

/* ListPodResourcesResponse; ids of other resources are omitted. */
int wire_decode_pods(const void *bytes, size_t n, struct arena *a, struct match_listing *out,
                     struct error *err);
