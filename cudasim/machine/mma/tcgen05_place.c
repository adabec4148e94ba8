/* Where the operands of tcgen05.mma lie in tensor memory and in chunks of shared memory: see tcgen05_product.h.
 * Layouts of D have the letters of the manual's data paths (9.7.16.10.5). */
#include "tcgen05_place.h"

#include <stdio.h>
#include <string.h>

/* ---- D, and A in tensor memory ---- */

bool product_is_half(const struct tcgen05_product *p)
{
    return !p->form->weight_stationary && p->form->ctas == 1 && p->shape.m == 64;
}

/* A and D: 128 rows, one part.  B and E: 64 rows, two.  G: 32 rows, four.  F: half of the lanes, one part. */
uint32_t product_parts(const struct tcgen05_product *p)
{
    return product_is_half(p) ? 1 : TENSOR_LANES / product_rows(p);
}

uint32_t product_lane(const struct tcgen05_product *p, uint32_t row, uint32_t part, uint32_t first_lane)
{
    if (product_is_half(p)) return first_lane + row % 16 + row / 16 * 32;
    return first_lane + row + part * product_rows(p);
}

bool product_lane_disabled(const struct tcgen05_product *p, uint32_t cta, uint32_t lane)
{
    return (p->disabled[cta][lane / 32] >> lane % 32 & 1) != 0;
}

/* ---- chunks of shared memory ---- */

struct element_storage storage_of(enum tcgen05_kind kind, enum tensor_format format)
{
    const uint32_t bits = kind == TCGEN05_I8 ? 8 : tensor_format_bits(format), container = tcgen05_container_bits(kind);
    const uint32_t per_chunk = CHUNK_BYTES * 8 / container;
    return (struct element_storage){ bits, per_chunk, per_chunk * bits / 8 };
}

/* ---- metadata of a sparse A: as CuTe lays them out ---- */

void metadata_place(const struct tcgen05_product *p, uint32_t row, uint32_t e, uint32_t *lane, uint32_t *column,
                    uint32_t *shift)
{
    const uint32_t bits = tcgen05_container_bits(p->form->kind);
    if (bits <= 8) { /* 64 bits of a row in two columns: 4 for each 2 elements, or (fp4) for each 4 */
        const uint32_t nibble = e / (bits == 8 ? 2 : 4);
        *lane = row;
        *column = nibble / 8;
        *shift = nibble % 8 * 4;
        return;
    }
    const uint32_t nibble = bits == 16 ? e / 2 : e; /* 16 bits in one half of a cell: 4 nibbles; 8 lanes further the
                                                       other 4 */
    *lane = row % 8 + 8 * (nibble / 4) + 16 * (row / 16);
    *column = p->shape.selector;
    *shift = nibble % 4 * 4 + 16 * (row / 8 % 2);
}

int metadata_index(enum tcgen05_kind kind, uint32_t e, uint32_t bits)
{
    enum { FIRST_OF_TWO = 4, SECOND_OF_TWO = 14 };
    static const uint32_t legal = 1u << 4 | 1u << 8 | 1u << 12 | 1u << 9 | 1u << 13 | 1u << 6 | 1u << 14;
    if (kind == TCGEN05_TF32)
        return bits == FIRST_OF_TWO ? (int)(2 * e) : bits == SECOND_OF_TWO ? (int)(2 * e + 1) : -1;
    if ((legal >> bits & 1) == 0) return -1;
    if (tcgen05_container_bits(kind) == 4) return (int)(e / 4 * 8 + 2 * (bits >> e / 2 % 2 * 2 & 3) + e % 2);
    return (int)(e / 2 * 4 + (bits >> e % 2 * 2 & 3));
}

/* ---- areas ---- */

const char *product_operand_name(enum product_operand operand)
{
    static const char *const names[] = { "D", "A", "the scales of A", "the scales of B", "the metadata" };
    return names[operand];
}

static struct tensor_area rows_area(const struct tcgen05_product *p, struct tensor_place at, uint32_t columns)
{
    struct tensor_area area = tensor_lanes(0, TENSOR_LANES, at.column, columns);
    for (uint32_t q = 0; product_is_half(p) && q < TENSOR_QUARTERS; q++) area.lanes[q] = 0xffffu << at.lane;
    return area;
}

/* Row or column i of a matrix has its scales in lane i % 32 of all four groups, column i / 32. */
static uint32_t scale_areas(struct product_area *to, enum product_operand operand, struct tensor_place at,
                            uint32_t rows)
{
    const uint32_t whole = rows / LANES, rest = rows % LANES;
    uint32_t count = 0;
    if (whole != 0) to[count++] = (struct product_area){ operand, tensor_lanes(0, TENSOR_LANES, at.column, whole) };
    if (rest == 0) return count;
    struct tensor_area area = { .column = at.column + whole, .columns = 1 };
    for (uint32_t q = 0; q < TENSOR_QUARTERS; q++) area.lanes[q] = (1u << rest) - 1;
    to[count++] = (struct product_area){ operand, area };
    return count;
}

uint32_t product_areas(const struct tcgen05_product *p, struct product_area to[PRODUCT_AREAS])
{
    uint32_t count = 0;
    to[count++] = (struct product_area){ PRODUCT_D, rows_area(p, p->d, p->shape.n / product_parts(p)) };
    if (p->form->a_in_tensor_memory)
        to[count++] = (struct product_area){ PRODUCT_A, rows_area(p, p->a_cells, MMA_ROW_CELLS) };
    if (p->form->block != 0) {
        count += scale_areas(to + count, PRODUCT_SFA, p->sfa, product_rows(p));
        count += scale_areas(to + count, PRODUCT_SFB, p->sfb, p->shape.n);
    }
    if (p->form->sparse) {
        const uint32_t columns = tcgen05_container_bits(p->form->kind) <= 8 ? 2 : 1;
        to[count++] = (struct product_area){
            PRODUCT_METADATA, tensor_lanes(0, TENSOR_LANES, p->metadata.column + p->shape.selector, columns)
        };
    }
    return count;
}

/* ---- the zero-column mask ---- */

static bool refuse(char *sentence, size_t size, const char *why)
{
    snprintf(sentence, size, "%s", why);
    return false;
}

/* Runs of zeroed and of used columns follow each other; of each sub-mask's sequence the first columns are left out.
 * The manual's text has the two spans the other way round than its examples and CUTLASS, which agree. */
bool zero_columns_of(uint64_t d, uint32_t m, uint32_t n, uint32_t zero[MMA_COLUMNS / 32], char *sentence, size_t size)
{
    memset(zero, 0, MMA_COLUMNS / 8);
    if ((d >> 36 & 7) != 0 || d >> 62 != 0)
        return refuse(sentence, size, "has bits set that belong to no field (38..36, 63..62)");
    if ((d >> 56 & 63) != 0)
        return refuse(sentence, size,
                      "has a column shift in bits 61..56; no source says which columns it shifts where");
    if ((d >> 39 & 1) == 0) return true;
    const uint32_t zeros = (uint32_t)(d >> 40 & 255) + 1, used = (uint32_t)(d >> 48 & 255) + 1, masks = 128 / m,
                   each = n / masks;
    for (uint32_t i = 0; i < masks; i++) {
        const uint32_t skipped = (uint32_t)(d >> 8 * i & 255), first = (d >> (32 + i) & 1) != 0 ? 0 : zeros;
        for (uint32_t c = 0; c < each; c++)
            if ((first + skipped + c) % (zeros + used) < zeros) zero[(i * each + c) / 32] |= 1u << (i * each + c) % 32;
    }
    return true;
}
