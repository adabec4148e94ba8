/* The tile unit of x86 (AMX): eight tiles of up to 16 rows of 64 bytes, and products of two of them.
 *
 * By assembler, since compilers differ in what they have, and because a tile's number is part of the instruction: the
 * compiler knows nothing of tiles, and keeps none alive.  What a thread's tiles hold lasts from BSMI_TILE_CONFIGURE to
 * BSMI_TILE_RELEASE, over calls of functions too, which do not touch them.  Functions that use these have BSMI_AMX.
 *
 * Under BSMI_EMULATED_UNITS, in a build for tests, the same steps go to an emulation. */
#ifndef BSMI_AMX_H
#define BSMI_AMX_H

#include <stddef.h>
#include <stdint.h>

#define BSMI_AMX __attribute__((target("amx-tile,amx-bf16,amx-int8")))

enum { BSMI_TILE_ROW_BYTES = 64, BSMI_TILE_BYTES = 1024 };

/* What ldtilecfg reads (Intel's manual, volume 1, section 18.4). */
struct bsmi_tile_configuration {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};
_Static_assert(sizeof(struct bsmi_tile_configuration) == 64, "of the instruction");

/* All eight tiles whole: 16 rows of 64 bytes. */
#define BSMI_WHOLE_TILES \
    { .palette = 1, .row_bytes = { 64, 64, 64, 64, 64, 64, 64, 64 }, .rows = { 16, 16, 16, 16, 16, 16, 16, 16 } }

#ifdef BSMI_EMULATED_UNITS
#include BSMI_EMULATED_UNITS
#define BSMI_TILE_CONFIGURE(configuration) emulated_ldtilecfg(configuration)
#define BSMI_TILE_RELEASE() emulated_tilerelease()
#define BSMI_TILE_ZERO(tile) emulated_tilezero(tile)
#define BSMI_TILE_LOAD(tile, from, pitch) emulated_tileloadd(tile, from, pitch)
#define BSMI_TILE_LOAD_ONCE(tile, from, pitch) emulated_tileloadd(tile, from, pitch)
#define BSMI_TILE_STORE(tile, to, pitch) emulated_tilestored(tile, to, pitch)
#define BSMI_TILE_DOT_BF16(sums, a, b) emulated_tdpbf16ps(sums, a, b)
#define BSMI_TILE_DOT_INT8(sums, a, b) emulated_tdpbssd(sums, a, b)
#else
/* pitch: bytes from a row to the next one.  Tiles are numbers, no expressions. */
#define BSMI_TILE_CONFIGURE(configuration) \
    __asm__ volatile("ldtilecfg %0" : : "m"(*(const struct bsmi_tile_configuration *)(configuration)))
#define BSMI_TILE_RELEASE() __asm__ volatile("tilerelease")
#define BSMI_TILE_ZERO(tile) __asm__ volatile("tilezero %%tmm" #tile : :)
#define BSMI_TILE_LOAD(tile, from, pitch) \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile \
                     : : "r"((const void *)(from)), "r"((ptrdiff_t)(pitch)) : "memory")
/* The same of what need not stay in the first-level cache. */
#define BSMI_TILE_LOAD_ONCE(tile, from, pitch) \
    __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm" #tile \
                     : : "r"((const void *)(from)), "r"((ptrdiff_t)(pitch)) : "memory")
#define BSMI_TILE_STORE(tile, to, pitch) \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" : : "r"((void *)(to)), "r"((ptrdiff_t)(pitch)) : "memory")
#define BSMI_TILE_DOT_BF16(sums, a, b) \
    __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #sums : :)
#define BSMI_TILE_DOT_INT8(sums, a, b) \
    __asm__ volatile("tdpbssd %%tmm" #b ", %%tmm" #a ", %%tmm" #sums : :)
#endif

#endif
