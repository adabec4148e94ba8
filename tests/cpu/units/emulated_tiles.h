/* AMX in plain C: eight tiles a thread, and the instructions on them, named as Intel's manual names them (volume 1,
 * chapter 18; volume 2).  What hardware would refuse with #GP or #UD ends the program with a sentence. */
#ifndef EMULATED_TILES_H
#define EMULATED_TILES_H

#include <stdbool.h>
#include <stddef.h>

void emulated_ldtilecfg(const void *configuration);       /* 64 bytes */
void emulated_tilerelease(void);
void emulated_tilezero(int tile);
void emulated_tileloadd(int tile, const void *memory, ptrdiff_t stride);
void emulated_tilestored(int tile, void *memory, ptrdiff_t stride);
void emulated_tdpbf16ps(int sums, int a, int b);
void emulated_tdpbssd(int sums, int a, int b);

/* The thread has no configuration: its tiles need not be kept when threads are switched. */
bool emulated_tiles_are_released(void);

/* How many products of int8, and of bf16, the thread has made. */
long emulated_int8_products(void);
long emulated_bf16_products(void);

#endif
