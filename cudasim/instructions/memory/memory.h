/* Bytes of simulated memory as registers see them.  Widths up to 8 are one access, as another thread of the host sees
 * it. */
#ifndef CUDASIM_INSTRUCTIONS_MEMORY_MEMORY_H
#define CUDASIM_INSTRUCTIONS_MEMORY_MEMORY_H

#include "machine/core/machine.h"

static inline uint64_t load_bytes(const uint8_t *host, uint32_t bytes)
{
    switch (bytes) {
    case 1: return __atomic_load_n(host, __ATOMIC_RELAXED);
    case 2: return __atomic_load_n((const uint16_t *)(const void *)host, __ATOMIC_RELAXED);
    case 4: return __atomic_load_n((const uint32_t *)(const void *)host, __ATOMIC_RELAXED);
    default: return __atomic_load_n((const uint64_t *)(const void *)host, __ATOMIC_RELAXED);
    }
}

static inline void store_bytes(uint8_t *host, uint32_t bytes, uint64_t value)
{
    switch (bytes) {
    case 1: __atomic_store_n(host, (uint8_t)value, __ATOMIC_RELAXED); break;
    case 2: __atomic_store_n((uint16_t *)(void *)host, (uint16_t)value, __ATOMIC_RELAXED); break;
    case 4: __atomic_store_n((uint32_t *)(void *)host, (uint32_t)value, __ATOMIC_RELAXED); break;
    default: __atomic_store_n((uint64_t *)(void *)host, value, __ATOMIC_RELAXED); break;
    }
}

#endif
