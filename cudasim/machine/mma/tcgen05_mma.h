/* One tcgen05.mma (PTX ISA 9.7.16.10): what it was issued with, where its operands lie, and the arithmetic.
 *
 * A pair of CTAs does an instruction in halves: each CTA holds its rows of A and D, half of B's columns, and all scales that its
 * rows and B's columns need.  What follows counts rows in one CTA. */
#ifndef CUDASIM_MACHINE_MMA_TCGEN05_MMA_H
#define CUDASIM_MACHINE_MMA_TCGEN05_MMA_H

#include "instruction_descriptor.h"
#include "machine/core/machine.h"
#include "matrix_descriptor.h"
#include "tensor_core_fp4.h"
#include "machine/tensor/tensor_pipe.h"

enum { MMA_ROWS = 128, MMA_COLUMNS = 256, MMA_K = 128, MMA_A_K = 64, MMA_SCALES = 4, MMA_ROW_CELLS = 8 };

/* An address of tensor memory.  Bits 31..23 belong to no lane: CuTe keeps a byte index in them. */
struct tensor_place { uint32_t lane, column; };
static inline struct tensor_place tensor_place_of(uint32_t address)
{
    return (struct tensor_place){ address >> 16 & 127, address & 0xffff };
}

/* The operands of an instruction; NULL: it has none. */
struct tcgen05_instruction {
    struct tcgen05_form form;
    const struct operand *d, *a, *b, *metadata, *descriptor, *disabled, *sfa, *sfb, *accumulate, *zero_mask;
    uint8_t scale_down;
};

struct tcgen05_product {
    const struct tcgen05_form *form;
    struct mma_shape shape;
    struct cta *cta[2];                   /* the even one first */
    struct matrix_layout a, b;
    struct tensor_place d, a_cells, sfa, sfb, metadata;
    bool accumulates;
    uint8_t scale_down;                   /* D counts as D * 2^-scale_down */
    uint32_t disabled[2][TENSOR_LANES / 32];                /* lanes of each CTA that keep what they hold */
    uint32_t zero[MMA_COLUMNS / 32];      /* columns of B that count as zero */
};

static inline uint32_t product_rows(const struct tcgen05_product *p) { return p->shape.m / p->form->ctas; }

/* ---- tcgen05_mma.c ---- */

/* What the lane's thread issues, checked, and under way. */
trap tcgen05_issue(struct warp *w, const struct insn *in, uint32_t lane, const struct tcgen05_instruction *instruction);

/* ---- tcgen05_place.c: where things lie ---- */

/* Sixteen lanes of each 32: M = 64 without .ws. */
bool product_is_half(const struct tcgen05_product *p);
/* Columns of D that one lane holds are N / parts; each part of D has lanes of its own, and a copy of A there. */
uint32_t product_parts(const struct tcgen05_product *p);
/* The lane of a row in part `part`. */
uint32_t product_lane(const struct tcgen05_product *p, uint32_t row, uint32_t part, uint32_t first_lane);
bool product_lane_disabled(const struct tcgen05_product *p, uint32_t cta, uint32_t lane);

/* How elements lie in a chunk of shared memory: `per_chunk` fields of `bits` bits in the first `bytes` bytes. */
struct element_storage { uint32_t bits, per_chunk, bytes; };
struct element_storage storage_of(enum tcgen05_kind kind, enum tensor_format format);

/* The 4 bits of a row's metadata for its stored element e: `shift` up in the cell at (lane, column), from the first column on. */
void metadata_place(const struct tcgen05_product *p, uint32_t row, uint32_t e, uint32_t *lane, uint32_t *column, uint32_t *shift);
/* The index in k that a stored element has by its 4 bits of metadata; -1: illegal. */
int metadata_index(enum tcgen05_kind kind, uint32_t e, uint32_t bits);

/* Areas of tensor memory that an instruction uses in one CTA; D whole, whichever lanes are disabled. */
enum product_operand { PRODUCT_D, PRODUCT_A, PRODUCT_SFA, PRODUCT_SFB, PRODUCT_METADATA };
struct product_area { enum product_operand operand; struct tensor_area area; };
enum { PRODUCT_AREAS = 6 };
uint32_t product_areas(const struct tcgen05_product *p, struct product_area area[PRODUCT_AREAS]);
const char *product_operand_name(enum product_operand operand);

/* The columns of B that a zero-column mask descriptor makes zero (9.7.16.10.4).  False: illegal, or not known, and why. */
bool zero_columns_of(uint64_t descriptor, uint32_t m, uint32_t n, uint32_t zero[MMA_COLUMNS / 32], char *sentence, size_t size);

/* ---- tcgen05_multiply.c: arithmetic of one CTA's rows ---- */

struct tcgen05_workspace {
    uint32_t a[MMA_ROWS * MMA_A_K];       /* codes, [row][a_k] */
    uint8_t index[MMA_ROWS * MMA_A_K];    /* where a sparse A's elements stand in k */
    uint32_t b[MMA_COLUMNS * MMA_K];      /* codes, [column][k] */
    uint8_t sfa[MMA_ROWS][MMA_SCALES], sfb[MMA_COLUMNS][MMA_SCALES];
    uint32_t d[MMA_ROWS * MMA_COLUMNS];   /* [row][n] */
    union {
        struct { TENSOR_STORAGE(a, MMA_ROWS, MMA_A_K); TENSOR_STORAGE(b, MMA_COLUMNS, MMA_A_K); } real;
        struct {
            TENSOR_FP4_STORAGE(a, MMA_ROWS, MMA_SCALES, TENSOR_FP4_SPARSE_GROUP);
            TENSOR_FP4_STORAGE(b, MMA_COLUMNS, MMA_SCALES, TENSOR_FP4_SPARSE_GROUP);
        } fp4;
        struct { int16_t a[MMA_ROWS * MMA_A_K], b[MMA_COLUMNS * MMA_A_K]; } integer;
    } panel;
};

/* ---- tcgen05_operands.c: between the memories and the workspace, when the operation is done ---- */

/* A, B, the scales, the metadata and (accumulates) D of one CTA's rows.  Reports scales that are not the same in the four groups of
 * lanes, and metadata that no row may have. */
trap product_fetch(const struct tcgen05_product *p, uint32_t cta, const struct tensor_operation *operation,
                   struct tcgen05_workspace *workspace);
void product_store(const struct tcgen05_product *p, uint32_t cta, const struct tcgen05_workspace *workspace);

/* workspace->d += A * B, of what the workspace holds. */
void tcgen05_multiply(const struct tcgen05_product *p, enum tensor_mode mode, uint32_t sm, struct tcgen05_workspace *workspace);

#endif
