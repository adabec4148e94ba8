/* The banks of shared memory. */
#include "banks.h"

#include <stdbool.h>

enum { BANKS = 32, WORD = 4 };

static uint32_t lanes_together(uint32_t bytes) { return bytes <= 4 ? 32 : bytes == 8 ? 16 : 8; }

static uint32_t part_mask(uint32_t first, uint32_t count) { return (uint32_t)(((UINT64_C(1) << count) - 1) << first); }

/* The largest number of different words that one bank must give to the lanes. */
static uint32_t served_together(const uint64_t *address, uint32_t lanes, uint32_t words)
{
    uint64_t seen[BANKS];
    uint32_t count = 0, in_bank[BANKS] = { 0 }, most = 0;
    for (; lanes != 0; lanes &= lanes - 1)
        for (uint32_t i = 0; i < words; i++) {
            const uint64_t word = address[__builtin_ctz(lanes)] / WORD + i;
            bool known = false;
            for (uint32_t j = 0; j < count && !known; j++) known = seen[j] == word;
            if (known) continue;
            seen[count++] = word;
            if (++in_bank[word % BANKS] > most) most = in_bank[word % BANKS];
        }
    return most;
}

uint32_t bank_wavefronts(const uint64_t *address, uint32_t lanes, uint32_t bytes)
{
    const uint32_t together = lanes_together(bytes), words = bytes <= WORD ? 1 : bytes / WORD;
    uint32_t wavefronts = 0;
    for (uint32_t first = 0; first < 32; first += together)
        wavefronts += served_together(address, lanes & part_mask(first, together), words);
    return wavefronts;
}

uint32_t bank_ideal(uint32_t lanes, uint32_t bytes)
{
    const uint32_t together = lanes_together(bytes);
    uint32_t parts = 0;
    for (uint32_t first = 0; first < 32; first += together) parts += (lanes & part_mask(first, together)) != 0;
    return parts;
}
