/* The banks of shared memory: 32 of 4 bytes each.  One wavefront serves each bank once; lanes that read the same word
 * share it. Accesses of 8 bytes are served by halves of the warp, of 16 bytes by quarters. */
#ifndef CUDASIM_MACHINE_MEMORY_BANKS_H
#define CUDASIM_MACHINE_MEMORY_BANKS_H

#include <stdint.h>

/* How many wavefronts the lanes' accesses of 1 to 16 bytes need. */
uint32_t bank_wavefronts(const uint64_t *address, uint32_t lanes, uint32_t bytes);
/* How many they need at least, without conflicts and without shared words. */
uint32_t bank_ideal(uint32_t lanes, uint32_t bytes);

#endif
