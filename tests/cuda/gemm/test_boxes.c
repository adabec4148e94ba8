/* What tcgen05 is given of an operand: where TMA puts each number of a step into shared memory, and where products look
 * for it, by the formulas of the manual: the swizzle of TMA's boxes, and the canonical layouts of matrix descriptors
 * (PTX ISA 9.7.16.4.1), written down here once more. */
#include "cuda/gemm/lowering.h"
#include "test.h"

enum { K_OF_PRODUCT_BYTES = 32, TILE_AT = 0x8c00 };

struct shape { bsm_format format; bsm_element element; bsm_scale scale; int block, bits; };
static const struct shape codes[] = { { BSM_MXFP8_E4M3, BSM_E4M3, BSM_E8M0, 32, 8 },
                                      { BSM_FORMAT_E5M2, BSM_E5M2, BSM_UNSCALED, 0, 8 } },
                          rows[] = { { BSM_FORMAT_BF16, BSM_BF16, BSM_UNSCALED, 0, 16 },
                                     { BSM_FORMAT_FP16, BSM_FP16, BSM_UNSCALED, 0, 16 } };

/* The bits of an address that a swizzle over so many bytes exchanges by others. */
static uint32_t swizzled(uint32_t address, int span)
{
    const uint32_t of_row = address >> 7, bits = span == 128 ? 7 : span == 64 ? 3 : span == 32 ? 1 : 0;
    return address ^ (of_row & bits) << 4;
}

/* TMA: boxes one behind the other, rows of a box of as many bytes as it exchanges. */
static uint32_t written_at(const struct bsmi_operand_boxes *boxes, int span, int bytes, int row, int k)
{
    const int box = boxes->mn_major ? row / boxes->rows : 0, line = boxes->mn_major ? k : row,
              number = boxes->mn_major ? row % boxes->rows : k;
    return swizzled((uint32_t)(TILE_AT + box * boxes->bytes + line * span + number * bytes), span);
}

/* tcgen05: number k of a product's row. */
static uint32_t read_at(uint64_t descriptor, bool mn_major, int bytes, int row, int k)
{
    const uint32_t start = (uint32_t)(descriptor & 0x3fff) << 4, leading = (uint32_t)(descriptor >> 16 & 0x3fff) << 4,
                   stride = (uint32_t)(descriptor >> 32 & 0x3fff) << 4, mode = (uint32_t)(descriptor >> 61);
    const uint32_t span = mode == 2 ? 128 : mode == 4 ? 64 : mode == 6 ? 32 : 16;
    const uint32_t at = (uint32_t)(mn_major ? row : k) * (uint32_t)bytes, line = (uint32_t)(mn_major ? k : row);
    uint32_t offset = line % 8 * span + at % span;
    if (!mn_major) offset += line / 8 * stride + (mode == 0 ? at / span * leading : at / span * span);
    else offset += mode == 0 ? at / span * stride + line / 8 * leading : at / span * leading + line / 8 * stride;
    return swizzled(start + offset, (int)(mode == 0 ? 16 : span));
}

static struct bsmi_matrix matrix_of(const struct shape *s, bool mn_major, int64_t columns)
{
    return (struct bsmi_matrix){ .format = s->format, .element = s->element, .scale = s->scale, .block = s->block,
                                 .bits = s->bits, .major = mn_major ? BSM_MAJOR_MN : BSM_MAJOR_K, .rows = 512,
                                 .columns = columns, .batch = 1 };
}

static void check_operand(struct test *t, const struct bsmi_gemm_instance *g, const struct bsmi_matrix *m,
                          const struct bsmi_operand_boxes *boxes, int tile_rows)
{
    const int bytes = m->bits / 8, of_product = K_OF_PRODUCT_BYTES / bytes;
    const int64_t k_bytes = bsmi_ceil_div(m->columns * bytes, K_OF_PRODUCT_BYTES) * K_OF_PRODUCT_BYTES;
    const int step = m->bits == 8 ? bsmi_cuda_box_bytes(g, m) : 128, products = (int)BSMI_MIN(step, k_bytes) / 32;
    const int span = boxes->mn_major ? boxes->rows * bytes : step;
    const bool fits = !boxes->mn_major || (boxes->count * boxes->rows == tile_rows
                                           && boxes->bytes == step / bytes * span && span <= 128);
    if (!fits) FAIL(t, "%s: %d boxes of %d rows, %d bytes", g->name, boxes->count, boxes->rows, boxes->bytes);
    CHECK(t, (boxes->descriptor >> 46 & 7) == 1 && (boxes->descriptor & 0x3fff) == 0);
    for (int product = 0; product < products; product++) {
        const uint64_t descriptor = boxes->descriptor + (uint64_t)((TILE_AT + product * boxes->product_bytes) >> 4);
        for (int row = 0; row < tile_rows; row++)
            for (int k = 0; k < of_product; k++) {
                const uint32_t written = written_at(boxes, span, bytes, row, product * of_product + k),
                               read = read_at(descriptor, boxes->mn_major, bytes, row, k);
                if (read == written) continue;
                FAIL(t, "%s, %d bits, K=%d, MN-major %d, product %d: row %d, k %d is at 0x%x, and is read at 0x%x",
                     g->name, m->bits, (int)m->columns, (int)boxes->mn_major, product, row, k, written, read);
                return;
            }
    }
}

/* All tiles, both majors of both operands, K below one and two products, of one step, and of many. */
static void products_find_what_tma_wrote(struct test *t)
{
    static const int64_t columns[] = { 16, 31, 40, 64, 100, 700 };
    int checked = 0;
    for (int i = 0; i < bsmi_gemm_instance_count; i++) {
        const struct bsmi_gemm_instance *g = &bsmi_gemm_instances[i];
        const bool of_rows = g->operands == BSMI_OPERANDS_BF16, swapped = bsmi_gemm_is_swapped(g);
        if (!bsmi_gemm_has_tensor_memory(g) || g->sparse
            || (!of_rows && g->operands != BSMI_OPERANDS_MXF8F6F4)) continue;
        for (int j = 0; j < 6 * 2 * 4; j++) {
            const struct shape *s = of_rows ? &rows[j / 6 % 2] : &codes[j / 6 % 2];
            const bool a_turned = j / 12 % 2 == 1 && (of_rows || g->a_box_rows >= 16), b_turned = j / 24 == 1;
            const struct bsmi_matrix a = matrix_of(s, a_turned, columns[j % 6]),
                                     b = matrix_of(s, b_turned, columns[j % 6]);
            struct bsmi_blackwell_parameters p = { .a_row_bytes = 0 };
            bsmi_codes_fill(g, &a, &b, &p);
            check_operand(t, g, &a, &p.a_boxes, g->a_box_rows);
            check_operand(t, g, &b, &p.b_boxes, g->b_box_rows);
            CHECK(t, (p.instruction >> 15 & 1) == (swapped ? b_turned : a_turned));
            CHECK(t, (p.instruction >> 16 & 1) == (swapped ? a_turned : b_turned));
            if (!of_rows) CHECK(t, p.a_row_bytes == (columns[j % 6] <= 32 ? 32 : columns[j % 6] <= 64 ? 64 : 128));
            checked++;
        }
    }
    CHECK(t, checked == 48 * (8 + 9));
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(products_find_what_tma_wrote) };
    return TEST_MAIN(argc, argv, cases);
}
