/* The devices that can be simulated, and their limits. */
#ifndef CUDASIM_MACHINE_CORE_DEVICE_H
#define CUDASIM_MACHINE_CORE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

struct device_limits {
    const char *name;                     /* "sm_90a": CUDASIM_DEVICE */
    const char *title;                    /* cuDeviceGetName */
    uint32_t sm;                          /* 90 */
    uint32_t major, minor;
    uint32_t shared_per_sm, shared_per_block, shared_per_block_optin, shared_reserved;   /* bytes */
    uint32_t registers_per_sm, registers_per_block;
    uint32_t threads_per_sm, threads_per_block, blocks_per_sm;
    uint32_t cluster_portable, cluster_max;
    uint32_t tensor_columns;              /* of 128 lanes x 32 bits; 0: no tensor memory */
    uint32_t clock_khz, memory_clock_khz, bus_bits, l2_bytes;
};

/* NULL: no such device. */
const struct device_limits *device_named(const char *name);
const struct device_limits *device_at(int index);         /* NULL behind the last */

/* Whether a module made for sm_<number><suffix> runs: plain targets run on later devices of any kind, 'a' only on their
 * own, 'f' on later devices of the same family. */
bool device_runs(const struct device_limits *device, uint32_t sm, char suffix);

#endif
