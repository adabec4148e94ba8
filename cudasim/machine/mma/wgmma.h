/* Warpgroups and their asynchronous matrix products (PTX ISA 9.7.15).
 *
 * The four warps of a warpgroup execute the same sequence of wgmma instructions, each at its own time: the sequence remembers
 * what some have executed and others have not.  A product starts when all four have issued it, and is an operation of an agent
 * in the order of its warpgroup: it reads registers and shared memory, and writes the accumulators, when it completes.  Until
 * wgmma.wait_group has waited for its group, its registers belong to it, whether it has completed or not. */
#ifndef CUDASIM_MACHINE_MMA_WGMMA_H
#define CUDASIM_MACHINE_MMA_WGMMA_H

#include "machine/async/agent.h"
#include "machine/check/checks.h"
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

/* ---- registers of a warp ---- */

/* What wgmma and others have done with a row of registers.  fence: the warp's count of wgmma.fence at that time. */
struct row_use {
    uint32_t touched_fence, touched_line; /* by another instruction */
    uint32_t product_fence, product_line, shape;   /* by a product: its accumulator, or (shape 0) its A */
    uint32_t pending, pending_line;       /* products that have not been waited for */
    uint32_t loading_line;                /* of a tcgen05.ld that has not been waited for; 0: none */
};

/* ---- products under way ---- */

/* What the four warps' shares of a product read.  Whoever has waited for the product knows that all of it has been read. */
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

struct wgmma_workspace;                   /* wgmma_multiply.c */

struct warpgroup {
    struct cta *cta;
    uint32_t first_warp;
    struct wgmma_warp warp[GROUP_WARPS];
    struct wgmma_entry *entry;            /* of the sequence, from `first` on */
    uint64_t first;
    uint32_t entries, capacity;
    struct wgmma_workspace *workspace;
};

/* ---- wgmma.c: for the handlers ---- */

/* The next place in the warpgroup's sequence, where all four warps must execute this instruction; NULL: *t says why not. */
struct wgmma_entry *wgmma_take_place(struct warp *w, const struct insn *in, uint32_t lanes, trap *t);
/* The warpgroup of a warp that has executed a wgmma instruction, else NULL. */
struct warpgroup *warpgroup_of(const struct warp *w);
trap wgmma_issue(struct warp *w, const struct insn *in, const struct wgmma_form *form, struct wgmma_entry *entry);
void wgmma_commit(struct warp *w);
/* Whether all groups but the latest `allowed` are complete; then their registers are the warp's again. */
bool wgmma_wait(struct warp *w, uint64_t allowed);

/* The PTX line of the first product that some warp has not come to, and that warp; 0: all have been issued. */
uint32_t wgmma_missing(const struct warp *w, uint32_t *warp);

/* ---- wgmma.c: for the machine ---- */

/* Reports what is left of the warp's products when its last thread ends. */
trap wgmma_warp_ends(struct warp *w, const struct insn *in);
void wgmma_close(struct warp *w);

/* ---- row_use.c: which instruction used which register ---- */

/* For a warp that has executed a wgmma instruction: an instruction of another kind uses its operands. */
trap rows_touch(struct warp *w, const struct insn *in);
/* A product is going to use its operands: reports registers that were used since the last wgmma.fence, then marks them. */
trap rows_claim(struct warp *w, const struct insn *in, const struct wgmma_form *form);
void rows_release(struct warp *w, const struct wgmma_part *part);
/* tcgen05.ld writes the registers of a vector until tcgen05.wait::ld; nobody else may use them. */
trap rows_load(struct warp *w, const struct insn *in, const struct operand *vector);
void rows_loaded(struct warp *w);
/* Makes room for all the rows that the warp has; false: no host memory. */
bool rows_watch(struct warp *w);

/* ---- wgmma_multiply.c ---- */

struct wgmma_workspace *wgmma_workspace(void);
/* D = A * B (+ D), from the warps' registers and the CTA's shared memory into the warps' registers. */
void wgmma_multiply(const struct wgmma_product *product, struct wgmma_workspace *workspace);
/* Where a sparse row's element stands: its index in k, or -1 where the metadata are illegal. */
int wgmma_sparse_index(const struct wgmma_form *form, const uint32_t metadata[LANES], uint32_t row, uint32_t element);

#endif
