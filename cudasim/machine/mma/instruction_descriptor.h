/* The instruction descriptor of tcgen05.mma (PTX ISA 9.7.16.4.2): 32 bits that say the shape, the types and the
 * transposes.  Its fields depend on the kind; what they may hold depends on the cta_group, on .sp, on .ws and on the
 * device. */
#ifndef CUDASIM_MACHINE_MMA_INSTRUCTION_DESCRIPTOR_H
#define CUDASIM_MACHINE_MMA_INSTRUCTION_DESCRIPTOR_H

#include "tensor_core.h"

#include <stddef.h>

enum tcgen05_kind {
    TCGEN05_TF32, TCGEN05_F16, TCGEN05_I8, TCGEN05_F8F6F4, TCGEN05_MXF8F6F4, TCGEN05_MXF4, TCGEN05_MXF4NVF4,
    TCGEN05_KIND_COUNT
};
const char *tcgen05_kind_name(enum tcgen05_kind kind);

/* What the words and operands of a tcgen05.mma say. */
struct tcgen05_form {
    enum tcgen05_kind kind;
    uint8_t ctas;                         /* .cta_group: 1 or 2 */
    uint8_t block;                        /* stored elements of a row that share a scale: 16 or 32; 0: no scales */
    bool sparse, weight_stationary, a_in_tensor_memory, a_shifted;
};

/* The shape and the types of one instruction. */
struct mma_shape {
    uint32_t m, n, k;                     /* of the whole instruction; k: of B, twice that of A's row where A is
                                             sparse */
    uint32_t a_k;                         /* elements that a row of A stores */
    enum tensor_format a_format, b_format;                  /* all kinds but i8 */
    bool a_signed, b_signed, saturate;    /* i8 */
    bool f16_output;
    bool a_negated, b_negated, a_mn_major, b_mn_major;
    bool ue4m3;                           /* scales; else ue8m0 */
    uint8_t sfa_id, sfb_id;               /* the byte of a cell where the scales begin */
    uint8_t selector;                     /* sparse f16 and tf32: which half of a cell holds the metadata */
};

/* Scales of a row in one instruction: 1, 2 or 4; 0: none. */
uint32_t tcgen05_scales(const struct tcgen05_form *form);
/* How an element of an operand is stored in shared memory: bits of its container (4: packed). */
uint32_t tcgen05_container_bits(enum tcgen05_kind kind);

/* False: illegal, and why: "has 5 in bits 9..7 (type of A); kind::mxf4 takes 1". */
bool instruction_descriptor_of(uint32_t descriptor, const struct tcgen05_form *form, uint32_t sm,
                               struct mma_shape *shape, char *sentence, size_t size);

#endif
