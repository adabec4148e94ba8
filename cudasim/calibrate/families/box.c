/* Random tensors and boxes in them, as the hardware allows. */
#include "box.h"

const struct box_type box_types[BOX_TYPES] = {
    { "u8", 1, false },     { "u16", 2, false }, { "u32", 4, false },     { "s32", 4, false }, { "u64", 8, false },
    { "s64", 8, false },    { "f16", 2, true },  { "f32", 4, true },      { "f64", 8, true },  { "bf16", 2, true },
    { "f32.ftz", 4, true }, { "tf32", 4, true }, { "tf32.ftz", 4, true },
};
const char *const box_swizzles[4] = { "none", "32B", "64B", "128B" };

static uint32_t below(struct box_draw *d, uint32_t bound)
{
    return (uint32_t)(calibration_random(&d->state) >> 32) % bound;
}
static int32_t between(struct box_draw *d, int32_t low, int32_t high)
{
    return low + (int32_t)below(d, (uint32_t)(high - low + 1));
}

static void draw_box(struct box_draw *d, struct box *b, uint32_t bytes)
{
    struct calibration_map *m = &b->map;
    const uint32_t span = m->swizzle == 0 ? 96 : 16u << m->swizzle, grain = 16 / bytes;
    do {
        m->box[0] = grain * (1 + below(d, span / 16));
        b->rows = 1;
        for (uint32_t i = 1; i < m->rank; i++) {
            m->box[i] = 1 + below(d, m->rank > 3 ? 4 : 9);
            m->element_stride[i] = below(d, 3) == 0 ? 1 + below(d, 8) : 1;
            b->rows *= (m->box[i] + m->element_stride[i] - 1) / m->element_stride[i];
        }
        m->element_stride[0] = 1;
        b->row_bytes = m->box[0] * bytes;
        b->pitch = m->swizzle == 0 ? b->row_bytes : span;
    } while (b->rows * b->pitch > BOX_SHARED_BYTES / 2);
}

static void draw_tensor(struct box_draw *d, struct box *b, uint32_t bytes, bool stores)
{
    struct calibration_map *m = &b->map;
    const uint32_t grain = 16 / bytes;
    m->size[0] = 1 + below(d, 2 * m->box[0]);
    uint64_t row = m->size[0] * bytes;
    for (uint32_t i = 1; i < m->rank; i++) {
        m->size[i] = 1 + below(d, m->rank > 3 ? 5 : 12);
        m->stride[i - 1] = (row + 15) / 16 * 16 + 16 * below(d, 2);
        row = m->stride[i - 1] * m->size[i];
    }
    b->tensor_bytes = row;
    const int32_t before = stores ? 0 : (int32_t)(m->box[0] / grain);
    b->start[0] = between(d, -before, (int32_t)(m->size[0] / grain) + 1) * (int32_t)grain;
    for (uint32_t i = 1; i < m->rank; i++)
        b->start[i] = between(d, stores ? 0 : -(int32_t)m->box[i], (int32_t)m->size[i] + 1);
}

struct box box_random(struct box_draw *d, uint32_t type, uint32_t swizzle, uint32_t rank, bool stores)
{
    struct box b = { .map = { .data_type = type, .rank = rank, .swizzle = swizzle, .in_output = stores } };
    do {
        draw_box(d, &b, box_types[type].bytes);
        draw_tensor(d, &b, box_types[type].bytes, stores);
    } while (b.tensor_bytes > BOX_TENSOR_BYTES);
    b.map.fill = !stores && box_types[type].is_float ? below(d, 2) : 0;
    return b;
}

void box_put_coordinates(FILE *out, const struct box *b)
{
    fputc('{', out);
    for (uint32_t i = 0; i < b->map.rank; i++) fprintf(out, "%s%d", i == 0 ? "" : ", ", b->start[i]);
    fputc('}', out);
}
