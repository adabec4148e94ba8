/* What a product takes on a GEMM instance of gfx950, modelled from published figures: none was at hand.  The sums are
 * the same whichever instance is chosen. */
#include "hip_select.h"

#include <math.h>

enum { LAUNCH_NANOSECONDS = 5000, MEMORY_BYTES_A_NANOSECOND = 4000 };

/* For 128 columns of K a compute unit's four SIMDs take 16 clocks for 16 x 16 of a tile each, twice that where an
 * operand has 8 bits, four times that by bf16; a tile's bytes come from L2 at 64 bytes a clock, prepacked
 * weights once for each of the waves that share columns.  A tile begins and ends in some 2000 clocks. */
double bsmi_hip_cost(const struct bsmi_hip_gpu *gpu, int gemm, const struct bsmi_product *p)
{
    enum { TILE_CLOCKS = 2000, L2_BYTES_A_CLOCK = 64 };
    const double gigahertz = 2.0;
    const struct bsmi_hip_instance *i = &bsmi_hip_instances[gemm];
    const int terms = i->scaled ? 1 : (p->a.element == BSM_FP16 ? 2 : 1) * (p->b.element == BSM_FP16 ? 2 : 1);
    const int b_times = i->prepacked && i->rows > 128 ? 2 : 1;
    const int a_bits = i->scaled ? p->a.bits : 16, b_bits = i->scaled ? p->b.bits : 16;
    const double passes = !i->scaled ? 64 : a_bits == 8 || b_bits == 8 ? 32 : 16;
    const double multiplied = passes * i->rows * i->columns / (16 * 16) / 4,
                 loaded = 128.0 / 8 * (i->rows * a_bits + i->columns * b_bits * b_times) / L2_BYTES_A_CLOCK;
    const double steps = ceil((double)p->k / 128) * terms,
                 waves = ceil((double)bsmi_hip_tiles(i, p) / BSMI_MAX(1, gpu->cu_count));
    return LAUNCH_NANOSECONDS + waves * (TILE_CLOCKS + steps * fmax(multiplied, loaded)) / gigahertz;
}

/* Each number is read and written once, scales are read. */
static double cost_of_operand(const struct bsmi_hip_operand *o, const struct bsmi_matrix *m)
{
    const bool made = o->form == BSMI_HIP_REPACKED || o->form == BSMI_HIP_DECODED;
    const double bytes = (made ? 2.0 * (double)m->batch * (double)o->batch_bytes : 0)
                         + (double)m->batch * (double)o->nan_words * (double)o->scale_map.padded_columns * 32;
    const int launches = made + (o->form != BSMI_HIP_PREPACKED && o->scales != BSMI_HIP_SCALES_AS_THEY_ARE)
                         + (o->nan_words > 0);
    return launches * LAUNCH_NANOSECONDS + bytes / MEMORY_BYTES_A_NANOSECOND;
}

double bsmi_hip_cost_around(const struct bsmi_hip_multiply *c, const struct bsmi_product *p)
{
    const double sums = (double)p->m * (double)p->n * (double)p->batch * (double)sizeof(float);
    return cost_of_operand(&c->a, &p->a) + cost_of_operand(&c->b, &p->b)
           + (c->direct ? 0 : LAUNCH_NANOSECONDS + 3 * sums / MEMORY_BYTES_A_NANOSECOND);
}
