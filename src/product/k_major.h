/* MN-major and sparse operands, for kernels that read K-major ones with all their elements: copies, in the workspace.
 * So are the codes and scales of a B that is given by its prepacked weights alone.
 * What is prepacked of such a B is its copy: panels of one size and meaning for every M, whichever kernel reads
 * them. */
#ifndef BSMI_K_MAJOR_H
#define BSMI_K_MAJOR_H

#include "product.h"

struct bsmi_k_major {
    bool a, b;                            /* whether it is copied */
    bool unpacks_b;                       /* whether B is made of its prepacked weights */
    size_t a_at, b_at;                    /* in the workspace */
    size_t workspace_bytes;               /* of the copies; the kernel's workspace lies behind them */
    size_t b_bytes;                       /* of B's copy */
};

/* Which of the operands are copied, and where. */
bsm_status bsmi_k_major_prepare(const struct bsmi_product *product, bool copies_a, bool copies_b,
                                struct bsmi_k_major *k);

/* What the kernel multiplies.  workspace: NULL for a plan, which looks at the alignment alone. */
struct bsmi_product bsmi_k_major_product(const struct bsmi_k_major *k, const struct bsmi_product *product,
                                         void *workspace);

/* The kernel's workspace, behind the copies. */
static inline void *bsmi_k_major_behind(const struct bsmi_k_major *k, void *workspace)
{
    return (void *)((uintptr_t)workspace + k->workspace_bytes);
}

/* Whether the copy of B is to be made: it is not where it was prepacked. */
static inline bool bsmi_k_major_copies_b(const struct bsmi_k_major *k, const struct bsmi_product *product)
{
    return k->b && product->b_panels == NULL;
}

/* B's copy at panels. */
struct bsmi_matrix bsmi_k_major_panels(const struct bsmi_matrix *b, const void *panels);

/* By the CPU, on so many threads. */
void bsmi_k_major_copy(const struct bsmi_matrix *from, const struct bsmi_matrix *to, int threads);

#endif
