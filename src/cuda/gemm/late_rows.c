/* Late rows: those that the kernel in front leaves to the GEMM kernel, which decodes them beside its first tiles. */
#include "lowering.h"

enum { JOB_ROWS = 4 };

static int64_t panels(int64_t rows) { return bsmi_ceil_div(rows, BSMI_LATE_PANEL_ROWS); }

static bool is_decoded(const struct bsmi_matrix *m) { return m->format != BSM_FORMAT_BF16; }

/* Whether all of its rows are whole jobs, of whole chunks, that the warps can decode: the plainest of matrices. */
static bool has_jobs(const struct bsmi_matrix *m)
{
    const bool bytes = m->element == BSM_E4M3 || m->element == BSM_E5M2,
               elements = bytes || (m->element == BSM_E2M1 && m->packing == BSM_PACKING_LOW_FIRST),
               blocks = m->scale == BSM_E8M0 ? m->block == 32
                                             : m->scale == BSM_UE4M3 && m->block == 16 && m->element == BSM_E2M1,
               plain = m->major == BSM_MAJOR_K && m->sparsity == BSM_SPARSITY_NONE
                       && m->row_bytes * 8 == m->columns * m->bits && m->map.layout.kind == BSM_LAYOUT_LINEAR
                       && m->map.layout.pitch * m->block == m->columns;
    return elements && blocks && plain && m->rows <= 64 * BSMI_MOST_PLAIN_FLAGS && m->rows % JOB_ROWS == 0
           && JOB_ROWS * m->columns % BSMI_LATE_CHUNK_COLUMNS == 0;
}

/* Tiles come in bands, and walk along B: those of the first round want a band of A, and of B as many columns of tiles
 * as there is a place for. */
bool bsmi_cuda_late_rows(const struct bsmi_gemm_instance *g, int clusters, const struct bsmi_product *p,
                         int64_t first[2])
{
    const int64_t tile_rows = g->tile_rows * g->cluster_rows, tile_columns = g->tile_columns * g->cluster_columns,
                  row_tiles = bsmi_ceil_div(p->m, tile_rows),
                  band = BSMI_MIN(bsmi_gemm_band(g, clusters, row_tiles), row_tiles);
    const struct bsmi_matrix *of[] = { &p->a, &p->b };
    const int64_t wanted[] = { band * tile_rows, bsmi_ceil_div(clusters, band) * tile_columns };
    bool late = false;
    if (!g->late_rows || p->groups > 0 || p->column_groups > 0 || p->batch != 1 || p->b.batch != 1) return false;
    for (int i = 0; i < 2; i++) {
        if (is_decoded(of[i]) && !has_jobs(of[i])) return false;
        first[i] = is_decoded(of[i]) ? BSMI_MIN(of[i]->rows, wanted[i]) : of[i]->rows;
        late |= first[i] < of[i]->rows;
    }
    return late;
}

void bsmi_cuda_describe_late_rows(const struct bsmi_cuda_gpu *gpu, const struct bsmi_product *p,
                                  struct bsmi_cuda_multiply *c)
{
    int64_t first[2];
    if (c->gemm < 0 || !bsmi_cuda_late_rows(&bsmi_gemm_instances[c->gemm], gpu->gemm_clusters[c->gemm], p, first))
        return;
    c->late_rows[0] = p->a.rows - first[0], c->late_rows[1] = p->b.rows - first[1];
}

bool bsmi_cuda_place_late_rows(const struct bsmi_product *p, struct bsmi_cuda_multiply *c, int64_t *end)
{
    if (c->late_rows[0] + c->late_rows[1] == 0) return false;
    const int64_t counts = 1 + panels(p->a.rows) + panels(p->b.rows),
                  jobs = bsmi_ceil_div(p->a.rows, JOB_ROWS) + bsmi_ceil_div(p->b.rows, JOB_ROWS);
    return bsmi_cuda_place(counts + jobs, (int64_t)sizeof(uint32_t), &c->late_at, end);
}

static struct bsmi_late_rows jobs_of(const struct bsmi_plain_rows *j, int64_t first)
{
    const int64_t columns = 8 * (int64_t)j->row_octets, code_bits = j->element == BSM_E2M1 ? 4 : 8,
                  block = j->scale == BSM_UE4M3 ? 16 : 32;
    _Static_assert(BSMI_LATE_PANEL_ROWS == 32 * JOB_ROWS, "panel_shift");
    return (struct bsmi_late_rows){
        .codes = j->codes + first * columns * code_bits / 8, .scales = j->scales + first * columns / block,
        .decoded = j->decoded + first * columns, .first = (int32_t)first,
        .jobs = (int32_t)((j->rows - first) / JOB_ROWS),
        .job_rows = JOB_ROWS, .chunks = (int32_t)(JOB_ROWS * columns / BSMI_LATE_CHUNK_COLUMNS), .panel_shift = 5,
        .element = j->element, .scale = j->scale,
    };
}

bsm_status bsmi_cuda_decode_early(struct bsmi_cuda_run *run, const struct bsmi_decode_plain_parameters *plain,
                                  const int64_t ctas[2])
{
    const struct bsmi_product *p = run->product;
    const int64_t *late = run->multiply->late_rows;
    int64_t late_ctas[2] = { 0, 0 };
    struct bsmi_decode_early_parameters given = { .plain = *plain, .counts = bsmi_cuda_at(run, run->multiply->late_at),
                                                  .count = (int32_t)(1 + panels(p->a.rows) + panels(p->b.rows)) };
    uint32_t *ready = given.counts + 1, *early = given.counts + given.count;
    if ((uintptr_t)p->a.scales % 4 != 0 || (uintptr_t)p->b.scales % 4 != 0)       /* they are read as words */
        return bsmi_cuda_launch(&run->queue, BSMI_KERNEL_DECODE_PLAIN, ctas[0] + ctas[1], plain);
    for (int i = 0; i < 2; i++) {
        struct bsmi_plain_rows *j = &given.plain.rows[i];
        struct bsmi_late_rows *l = &run->late[i];
        if (ctas[i] == 0) continue;
        *l = jobs_of(j, j->rows - late[i]);
        l->ready = ready, ready += bsmi_ceil_div(l->jobs, 1 << l->panel_shift);
        if (j->exponents != NULL) {
            l->early = early, early += l->jobs;
            late_ctas[i] = bsmi_ceil_div(l->jobs, BSMI_DECODE_PLAIN_THREADS / 32);
        }
        j->rows -= late[i];
        given.early_ctas[i] = (int32_t)bsmi_ceil_div(j->rows, j->rows_of_cta);
        given.late[i] = *l;
    }
    given.late_ctas = (int32_t)late_ctas[0];
    run->a_flags = (int32_t)(given.early_ctas[0] + late_ctas[0]);
    run->b_flags = (int32_t)(given.early_ctas[1] + late_ctas[1]);
    return bsmi_cuda_launch(&run->queue, BSMI_KERNEL_DECODE_EARLY, run->a_flags + run->b_flags, &given);
}

void bsmi_cuda_fill_late_rows(const struct bsmi_cuda_run *run, struct bsmi_late_rows_parameters *to)
{
    to->late[0] = run->late[0], to->late[1] = run->late[1];
    to->taken = bsmi_cuda_at(run, run->multiply->late_at);
}
