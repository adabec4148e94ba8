/* Few rows of A times codes of at most 8 bits: what the kernels of each instruction set read. */
#ifndef BSMI_FEW_TERMS_H
#define BSMI_FEW_TERMS_H

#include "code_rows.h"

enum { BSMI_FEW_ROWS = 4, BSMI_FEW_CHUNK = 512, BSMI_FEW_BLOCKS = BSMI_FEW_CHUNK / BSMI_SHORTEST_RUN };

/* Elements times their scales; rows that are missing are not written. */
struct bsmi_few_a { _Alignas(64) float values[BSMI_FEW_ROWS][BSMI_FEW_CHUNK]; };

struct bsmi_few_b {
    _Alignas(64) float factors[BSMI_FEW_BLOCKS][32];
    struct bsmi_byte_rows bytes;          /* pointers to the matrix's own bytes, if its codes are bytes */
    bsm_element element;
    int block_bits;                       /* a factor serves 2^block_bits of K */
};

void bsmi_few_terms_pack_a(const struct bsmi_part *part, const struct bsmi_operand *b, int run, void *panel);
void bsmi_few_terms_pack_b(const struct bsmi_part *part, int run, void *panel);

#endif
