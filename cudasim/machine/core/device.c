/* Limits as in the CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", and what
 * cuDeviceGetAttribute gives on such devices. */
#include "device.h"

#include <stddef.h>
#include <string.h>

static const struct device_limits devices[] = {
    { .name = "sm_90a",
      .title = "cudasim sm_90a",
      .sm = 90,
      .major = 9,
      .minor = 0,
      .shared_per_sm = 233472,
      .shared_per_block = 49152,
      .shared_per_block_optin = 232448,
      .shared_reserved = 1024,
      .registers_per_sm = 65536,
      .registers_per_block = 65536,
      .threads_per_sm = 2048,
      .threads_per_block = 1024,
      .blocks_per_sm = 32,
      .cluster_portable = 8,
      .cluster_max = 16,
      .tensor_columns = 0,
      .clock_khz = 1980000,
      .memory_clock_khz = 3201000,
      .bus_bits = 6144,
      .l2_bytes = 62914560 },
    { .name = "sm_100a",
      .title = "cudasim sm_100a",
      .sm = 100,
      .major = 10,
      .minor = 0,
      .shared_per_sm = 233472,
      .shared_per_block = 49152,
      .shared_per_block_optin = 232448,
      .shared_reserved = 1024,
      .registers_per_sm = 65536,
      .registers_per_block = 65536,
      .threads_per_sm = 2048,
      .threads_per_block = 1024,
      .blocks_per_sm = 32,
      .cluster_portable = 8,
      .cluster_max = 16,
      .tensor_columns = 512,
      .clock_khz = 1965000,
      .memory_clock_khz = 3996000,
      .bus_bits = 7680,
      .l2_bytes = 132644864 },
    { .name = "sm_103a",
      .title = "cudasim sm_103a",
      .sm = 103,
      .major = 10,
      .minor = 3,
      .shared_per_sm = 233472,
      .shared_per_block = 49152,
      .shared_per_block_optin = 232448,
      .shared_reserved = 1024,
      .registers_per_sm = 65536,
      .registers_per_block = 65536,
      .threads_per_sm = 2048,
      .threads_per_block = 1024,
      .blocks_per_sm = 32,
      .cluster_portable = 8,
      .cluster_max = 16,
      .tensor_columns = 512,
      .clock_khz = 1965000,
      .memory_clock_khz = 3996000,
      .bus_bits = 7680,
      .l2_bytes = 132644864 },
    { .name = "sm_120a",
      .title = "cudasim sm_120a",
      .sm = 120,
      .major = 12,
      .minor = 0,
      .shared_per_sm = 102400,
      .shared_per_block = 49152,
      .shared_per_block_optin = 101376,
      .shared_reserved = 1024,
      .registers_per_sm = 65536,
      .registers_per_block = 65536,
      .threads_per_sm = 1536,
      .threads_per_block = 1024,
      .blocks_per_sm = 24,
      .cluster_portable = 8,
      .cluster_max = 8,
      .tensor_columns = 0,
      .clock_khz = 2407000,
      .memory_clock_khz = 14001000,
      .bus_bits = 512,
      .l2_bytes = 100663296 },
    { .name = "sm_121a",
      .title = "cudasim sm_121a",
      .sm = 121,
      .major = 12,
      .minor = 1,
      .shared_per_sm = 102400,
      .shared_per_block = 49152,
      .shared_per_block_optin = 101376,
      .shared_reserved = 1024,
      .registers_per_sm = 65536,
      .registers_per_block = 65536,
      .threads_per_sm = 1536,
      .threads_per_block = 1024,
      .blocks_per_sm = 24,
      .cluster_portable = 8,
      .cluster_max = 8,
      .tensor_columns = 0,
      .clock_khz = 2418000,
      .memory_clock_khz = 4266000,
      .bus_bits = 256,
      .l2_bytes = 25165824 },
};
enum { DEVICES = sizeof devices / sizeof devices[0] };

const struct device_limits *device_named(const char *name)
{
    for (int i = 0; i < DEVICES; i++)
        if (strcmp(devices[i].name, name) == 0) return &devices[i];
    return NULL;
}

const struct device_limits *device_at(int index) { return index >= 0 && index < DEVICES ? &devices[index] : NULL; }

bool device_runs(const struct device_limits *device, uint32_t sm, char suffix)
{
    if (suffix == 'a') return device->sm == sm;
    if (suffix == 'f') return device->sm >= sm && device->sm / 10 == sm / 10;
    return device->sm >= sm;
}
