/* One matrix product of a warpgroup: what its instruction says, and what is under way. */
#ifndef CUDASIM_MACHINE_MMA_WGMMA_PRODUCT_H
#define CUDASIM_MACHINE_MMA_WGMMA_PRODUCT_H

#include "machine/check/checks.h"
#include "machine/core/operation.h"
#include "matrix_descriptor.h"
#include "tensor_core.h"

enum { GROUP_WARPS = 4, WARP_ROWS = 16, WGMMA_ROWS = GROUP_WARPS * WARP_ROWS, A_REGISTERS = 4 };
enum { SYNC_GROUP_WGMMA = 1 };            /* group_object's kind */

/* ---- what an instruction says: worked out when the module loads ---- */

enum wgmma_kind { WGMMA_FLOAT, WGMMA_INTEGER, WGMMA_BIT };

struct wgmma_form {
    enum wgmma_kind kind;
    enum tensor_format a_format, b_format;                      /* WGMMA_FLOAT */
    bool a_signed, b_signed, saturate;                          /* WGMMA_INTEGER */
    bool f16_output;
    bool sparse, a_in_registers;
    bool a_mn_major, b_mn_major, a_negated, b_negated;
    uint32_t n, k, bits;                  /* k: of the product; elements of `bits` bits, WGMMA_BIT: words of 32 */
    uint32_t a_k;                         /* elements of A in a row: k, or the half of it */
    uint32_t selector;                    /* sparse: which threads hold the metadata */
    const struct operand *d, *a, *b, *metadata, *scale_d;
};

/* ---- products under way ---- */

/* What the four warps' shares of a product read.  Whoever has waited for the product knows that all of it has been
 * read. */
struct wgmma_reads { struct async_token *token[GROUP_WARPS]; uint32_t parts; };

/* A warp's share of a product, until it has waited for it. */
struct wgmma_part {
    struct wgmma_part *next;
    const struct insn *in;
    struct wgmma_reads *reads;
    uint32_t base;                        /* the frame's first row */
    uint64_t group;                       /* UNCOMMITTED, or the number of the wgmma-group */
    bool complete;
};
#define UNCOMMITTED UINT64_MAX

struct wgmma_product {
    struct agent_operation operation;
    const struct wgmma_form *form;
    struct warpgroup *group;
    uint64_t a_descriptor, b_descriptor;
    struct matrix_layout a, b;
    bool accumulates;
    struct wgmma_reads *reads;
    struct wgmma_part *part[GROUP_WARPS];
    uint32_t metadata[GROUP_WARPS][LANES];
};

/* An instruction of the sequence that some warps have executed. */
struct wgmma_entry { uint32_t pc, warps; struct wgmma_product *product; };

struct wgmma_warp {
    uint64_t executed;                    /* how many wgmma instructions: its place in the sequence */
    uint64_t groups;                      /* committed */
    struct wgmma_part *part, **last;      /* not waited for, in the order of issue */
};

struct wgmma_workspace;                   /* wgmma_multiply.h */

struct warpgroup {
    struct cta *cta;
    uint32_t first_warp;
    struct wgmma_warp warp[GROUP_WARPS];
    struct wgmma_entry *entry;            /* of the sequence, from `first` on */
    uint64_t first;
    uint32_t entries, capacity;
    struct wgmma_workspace *workspace;
};

#endif
