/* Rows that TMA cannot describe, and that most kernels by mma.sync copy themselves. */
#include "lowering.h"

static bool begins_at_multiples_of(const struct bsmi_matrix *m, int64_t bytes)
{
    return (uintptr_t)m->data % (uintptr_t)bytes == 0 && m->row_bytes % bytes == 0
           && (m->batch <= 1 || m->batch_bytes % bytes == 0);
}

int bsmi_cuda_copy_size(const struct bsmi_gemm_instance *gemm, const struct bsmi_matrix *m)
{
    if (!gemm->copies_rows) return 0;
    return begins_at_multiples_of(m, 8) ? 8 : begins_at_multiples_of(m, 4) ? 4 : 0;
}

bsm_status bsmi_cuda_fill_copied(const char *name, const struct bsmi_matrix *m, int size, struct bsmi_copied_rows *to)
{
    if (!begins_at_multiples_of(m, size))
        return bsmi_fail(BSM_EALIGN,
                         "%s->data=%p is not aligned to %d bytes, as that of the plan was: make a plan for it", name,
                         m->data, size);
    *to = (struct bsmi_copied_rows){ m->data, m->row_bytes, m->batch_bytes, (int32_t)m->rows,
                                     (int32_t)(m->columns * m->bits / 8), size };
    return BSM_OK;
}
