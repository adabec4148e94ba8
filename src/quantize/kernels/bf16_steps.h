/* Where codes of bf16 numbers step up, in words: e2m1 under ue4m3 scales.
 *
 * A magnitude's bits are its word: words grow with magnitudes, and doubling adds a BINADE.  A number's code is at least
 * i from some least word on, which is found exactly, so nothing is rounded where words are compared.  All these words
 * are those of normal numbers for tensor scales of 2^-96 to 2^96.
 *
 * Codes are looked up in cells of some words that begin at a base.  A cell holds one step at most.  Its entry plus the
 * word less the base is (code << bits of a cell's words) + less than a cell: the code below the step, the words from
 * the step to the cell's end, and the cell's own place taken away again. */
#ifndef BSMI_BF16_STEPS_H
#define BSMI_BF16_STEPS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    BSMI_BF16_BINADE = 128,
    BSMI_CELL_BITS = 6,                   /* of elements: half a binade */
    BSMI_CELLS = 16,
    BSMI_SCALE_CELL_BITS = 3,             /* of scales: a sixteenth of a binade, in two binades */
    BSMI_SCALE_CELLS = 32
};

struct bsmi_bf16_steps {
    uint16_t cells[16][BSMI_CELLS];       /* for scale codes 0 to 15; above, those of 8 to 15 again */
    uint16_t bases[32];                   /* of those rows, 8 to 15 a binade low: above come as many as code / 8 */
    uint16_t scale_cells[BSMI_SCALE_CELLS];
    uint16_t scales[10];                  /* the least words of largest magnitudes with scale codes 1 to 9; [0]: 0 */
};

/* divides: the tensor scale, of 2^-96 to 2^96. */
void bsmi_bf16_steps_make(double tensor_scale, bool divides, struct bsmi_bf16_steps *steps);

#endif
