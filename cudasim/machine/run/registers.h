/* The memory of warps' registers. */
#ifndef CUDASIM_MACHINE_RUN_REGISTERS_H
#define CUDASIM_MACHINE_RUN_REGISTERS_H

#include <stdint.h>

/* `rows` rows of LANES registers: those of `old`, which is freed, and zeros.  NULL: no memory, and `old` is as it
 * was. */
uint64_t *registers_grow(uint64_t *old, uint64_t old_rows, uint64_t rows);
void registers_free(uint64_t *registers, uint64_t rows);

#endif
