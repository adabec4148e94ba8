#include "tcgen05_case.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/reference/block_scaled_reference.h"
#include "tests/reference/tensor_reference.h"

static bool is_fp4(const struct mma_case *c)
{
    return c->form.kind == TCGEN05_MXF4 || c->form.kind == TCGEN05_MXF4NVF4;
}
static uint32_t container(const struct mma_case *c)
{
    switch (c->form.kind) {
    case TCGEN05_TF32: return 32;
    case TCGEN05_F16: return 16;
    case TCGEN05_MXF4:
    case TCGEN05_MXF4NVF4: return 4;
    default: return 8;
    }
}
static uint32_t width_of(const struct mma_case *c, enum tensor_format f)
{
    return c->form.kind == TCGEN05_I8 ? 8 : tensor_format_bits(f);
}
static uint32_t rows_of(const struct mma_case *c) { return c->m / c->form.ctas; }
static uint32_t below(struct test *t, int64_t n) { return (uint32_t)rnd_below(t, n); }

/* ---- drawing ---- */

static enum tensor_format draw_format(struct test *t, const struct mma_case *c)
{
    static const enum tensor_format narrow[] = { TENSOR_E4M3, TENSOR_E5M2, TENSOR_E2M3, TENSOR_E3M2, TENSOR_E2M1 };
    switch (c->form.kind) {
    case TCGEN05_TF32: return TENSOR_TF32;
    case TCGEN05_F16: return !c->half && rnd(t) % 2 == 0 ? TENSOR_BF16 : TENSOR_F16;
    case TCGEN05_F8F6F4:
    case TCGEN05_MXF8F6F4: return narrow[below(t, 5)];
    default: return TENSOR_E2M1;
    }
}

/* 0, 1, 2, -1, -2. */
static uint32_t whole_code(struct test *t, const struct mma_case *c, enum tensor_format f)
{
    static const uint32_t one[TENSOR_FORMAT_COUNT] = {
        [TENSOR_F16] = 0x3c00, [TENSOR_BF16] = 0x3f80, [TENSOR_TF32] = 0x3f800000, [TENSOR_E5M2] = 0x3c,
        [TENSOR_E4M3] = 0x38, [TENSOR_E3M2] = 0x0c, [TENSOR_E2M3] = 0x08, [TENSOR_E2M1] = 2,
    }, two[TENSOR_FORMAT_COUNT] = {
        [TENSOR_F16] = 0x4000, [TENSOR_BF16] = 0x4000, [TENSOR_TF32] = 0x40000000, [TENSOR_E5M2] = 0x40,
        [TENSOR_E4M3] = 0x40, [TENSOR_E3M2] = 0x10, [TENSOR_E2M3] = 0x10, [TENSOR_E2M1] = 4,
    };
    if (c->form.kind == TCGEN05_I8) return rnd(t) & 255;
    const uint32_t sign = (uint32_t)(rnd(t) & 1) << (width_of(c, f) - 1);
    switch (rnd(t) % 4) {
    case 0: return sign;
    case 1: return two[f] | sign;
    default: return one[f] | sign;
    }
}

/* Any code; of wide formats mostly those near 1. */
static uint32_t any_code(struct test *t, const struct mma_case *c, enum tensor_format f)
{
    const uint32_t width = width_of(c, f), code = (uint32_t)(rnd(t) & ((UINT64_C(1) << width) - 1));
    if (width <= 8) {
        const bool special = c->form.kind != TCGEN05_I8 && !isfinite(reference_value(f, code));
        return special && rnd(t) % 64 != 0 ? code ^ 0x10 : code;
    }
    if (rnd(t) % 300 == 0) return code;
    const uint32_t fraction = f == TENSOR_BF16 ? 7 : f == TENSOR_F16 ? 10 : 23, middle = f == TENSOR_F16 ? 15 : 127;
    return (code & (1u << (width - 1) | ((1u << fraction) - 1))) | (middle - 6 + below(t, 12)) << fraction;
}

static uint32_t draw_scale(struct test *t, const struct mma_case *c, bool whole)
{
    if (whole) return c->ue4m3 ? 0x38 : 127;
    if (c->ue4m3) return rnd(t) % 200 == 0 ? 0x7f : below(t, 0x7f) | (uint32_t)(rnd(t) & 0x80);
    return rnd(t) % 200 == 0 ? rnd(t) & 255 : 120 + below(t, 14);
}

static void draw_index(struct test *t, const struct mma_case *c, uint32_t row)
{
    static const uint32_t pairs[] = { 4, 8, 12, 9, 13, 6, 14 };
    struct mma_case *x = (struct mma_case *)(uintptr_t)c;
    for (uint32_t e = 0; e < c->a_k; e++) {
        uint32_t *at = &x->index[row][e], *bits = &x->bits[row][e];
        if (!c->form.sparse) {
            *at = e;
        } else if (c->form.kind == TCGEN05_TF32) {                                 /* one of two */
            *bits = rnd(t) % 2 == 0 ? 4 : 14;
            *at = 2 * e + (*bits == 14);
        } else if (is_fp4(c)) {                                                  /* two pairs of four */
            *bits = e % 4 == 0 ? pairs[below(t, 7)] : bits[-1];
            *at = e / 4 * 8 + 2 * (e % 4 < 2 ? *bits % 4 : *bits / 4) + e % 2;
        } else {                                                                 /* two of four */
            *bits = e % 2 == 0 ? pairs[below(t, 7)] : bits[-1];
            *at = e / 2 * 4 + (e % 2 == 0 ? *bits % 4 : *bits / 4);
        }
    }
}

static uint32_t draw_old(struct test *t, const struct mma_case *c, bool whole)
{
    const uint32_t any = (uint32_t)rnd(t);
    if (c->form.kind == TCGEN05_I8) return whole ? any % 2000 : any;
    if (whole && c->half) return (any % 2 << 15) | 0x4000;                          /* 2, -2 */
    if (whole) return (any % 2 << 31) | (0x3f800000 + (any / 2 % 4 << 23));
    if (c->half) return (any & 0x83ff) | (12 + any / 0x10000 % 8) << 10;
    if (any % 100 == 0 && c->down == 0) return any;
    return (any & 0x807fffff) | (121 + (uint32_t)rnd_below(t, 14)) << 23;
}

/* A matrix of rows x k in the bytes from `from` on. */
static void draw_matrix(struct test *t, const struct mma_case *c, struct case_matrix *m, uint32_t from, uint32_t rows,
                        uint32_t k)
{
    static const uint32_t modes[] = { 0, 2, 4, 6 };
    const uint32_t bits = container(c), row_bytes = k * bits / 8;
    m->mode = m->mn_major && bits == 32 ? 1 : modes[below(t, 4)];
    if (!m->mn_major && m->mode == 6 && row_bytes > 32) m->mode = 2;
    const uint32_t span = m->mode == 0 ? 16 : m->mode == 6 ? 32 : m->mode == 4 ? 64 : 128, pad = 16 * below(t, 3);
    m->start = from;
    if (!m->mn_major) {
        m->stride = 8 * span + pad;
        m->leading = m->mode == 0 ? rows / 8 * m->stride : 16 * below(t, 100);
        if (m->mode != 0) m->start += 32 * below(t, (span - row_bytes) / 32 + 1);
        return;
    }
    const uint32_t bytes = rows * bits / 8, spans = (bytes + span - 1) / span, pattern = m->mode == 1 ? 4 : 8;
    const uint32_t along = pattern * span + pad, across = spans * along;
    if (m->mode == 0) m->stride = along, m->leading = across;
    else m->leading = along, m->stride = across;
}

static void draw_zero_columns(struct test *t, struct mma_case *c)
{
    const uint32_t masks = 128 / c->m, each = c->n / masks, zeros = 1 + below(t, 40), used = 1 + below(t, 40);
    memset(c->zero, 0, sizeof c->zero);
    c->zero_mask = rnd(t) % 4 == 0 ? 0 : UINT64_C(1) << 39;
    c->zero_mask |= (uint64_t)(zeros - 1) << 40 | (uint64_t)(used - 1) << 48;
    for (uint32_t i = 0; i < masks; i++) {
        const uint32_t dropped = below(t, 50), first = below(t, 2);
        c->zero_mask |= (uint64_t)dropped << 8 * i | (uint64_t)first << (32 + i);
        bool zero = first == 1;
        uint32_t run = 0;
        for (uint32_t n = 0; n < dropped + each; n++) {                          /* runs of zeroed and of used
                                                                                    columns */
            if (n >= dropped) c->zero[i * each + n - dropped] = zero && (c->zero_mask >> 39 & 1) != 0;
            if (++run == (zero ? zeros : used)) zero = !zero, run = 0;
        }
    }
}

void case_draw(struct test *t, struct mma_case *c, bool whole)
{
    const bool plain = c->form.block == 0, integer = c->form.kind == TCGEN05_I8;
    const uint32_t scales = c->form.block == 0 ? 0 : container(c) == 8 ? 1 : 64 / c->form.block;
    c->a_k = 256 / container(c);
    c->k = c->form.sparse ? 2 * c->a_k : c->a_k;
    c->half = (c->form.kind == TCGEN05_F16 || c->form.kind == TCGEN05_F8F6F4) && rnd(t) % 3 == 0;
    c->fa = draw_format(t, c);
    c->fb = c->form.kind == TCGEN05_F16 ? c->fa : draw_format(t, c);
    c->signed_a = rnd(t) % 2 == 0, c->signed_b = rnd(t) % 2 == 0;
    c->saturate = integer && rnd(t) % 2 == 0;
    c->negate_a = !integer && rnd(t) % 4 == 0, c->negate_b = !integer && rnd(t) % 4 == 0;
    c->ue4m3 = c->form.block == 16 && rnd(t) % 3 != 0;
    c->accumulate = rnd(t) % 4 != 0;
    c->selector = c->form.sparse && c->form.kind <= TCGEN05_F16 ? below(t, 2) : 0;
    c->down = plain && c->form.kind <= TCGEN05_F16 && !c->form.weight_stationary && rnd(t) % 3 == 0
                  ? below(t, whole ? 2 : 12)
                  : 0;
    c->sfa_id = scales == 1 ? below(t, 4) : scales == 2 ? 2 * below(t, 2) : 0;
    c->sfb_id = scales == 1 ? below(t, 4) : scales == 2 ? 2 * below(t, 2) : 0;
    const uint32_t half_lane = c->form.ctas == 1 && c->m == 64 && !c->form.weight_stationary ? 16 * below(t, 2) : 0;
    c->d = half_lane << 16 | below(t, 32);
    c->cells_a = half_lane << 16 | (300 + below(t, 8));
    c->sfa = 330 + below(t, 8), c->sfb = 350 + below(t, 8), c->metadata = 380 + 2 * below(t, 8);
    c->at_a.mn_major = !is_fp4(c) && !c->form.a_in_tensor_memory && rnd(t) % 2 == 0;
    c->at_b.mn_major = !is_fp4(c) && rnd(t) % 2 == 0 && (container(c) != 8 || c->n % (16u * c->form.ctas) == 0);
    draw_matrix(t, c, &c->at_a, 0, rows_of(c), c->a_k);
    draw_matrix(t, c, &c->at_b, 40960, c->n / c->form.ctas, c->k);
    c->masked = plain && !c->form.weight_stationary && rnd(t) % 3 == 0;
    for (int i = 0; i < 8; i++) c->disabled[i] = c->masked ? (uint32_t)(rnd(t) & rnd(t)) : 0;
    c->zero_mask = UINT64_MAX;
    memset(c->zero, 0, sizeof c->zero);
    if (c->form.weight_stationary && rnd(t) % 2 == 0) draw_zero_columns(t, c);
    for (uint32_t i = 0; i < c->m; i++) {
        for (uint32_t e = 0; e < c->a_k; e++) c->a[i][e] = whole ? whole_code(t, c, c->fa) : any_code(t, c, c->fa);
        for (uint32_t j = 0; j < c->n; j++) c->old[i][j] = draw_old(t, c, whole);
        for (uint32_t s = 0; s < scales; s++) c->scale_a[i][s] = draw_scale(t, c, whole);
        draw_index(t, c, i);
    }
    for (uint32_t j = 0; j < c->n; j++) {
        for (uint32_t k = 0; k < c->k; k++) c->b[j][k] = whole ? whole_code(t, c, c->fb) : any_code(t, c, c->fb);
        for (uint32_t s = 0; s < scales; s++) c->scale_b[j][s] = draw_scale(t, c, whole);
    }
}

/* ---- descriptors and statement ---- */

static uint32_t type_code(const struct mma_case *c, enum tensor_format f, bool is_signed)
{
    if (c->form.kind == TCGEN05_I8) return is_signed;
    if (is_fp4(c)) return 1;
    switch (f) {
    case TENSOR_TF32: return 2;
    case TENSOR_BF16: return 1;
    case TENSOR_E5M2: return 1;
    case TENSOR_E2M3: return 3;
    case TENSOR_E3M2: return 4;
    case TENSOR_E2M1: return 5;
    default: return 0;
    }
}

uint32_t case_descriptor(const struct mma_case *c)
{
    const uint32_t types = type_code(c, c->fa, c->signed_a) << 7 | type_code(c, c->fb, c->signed_b) << 10;
    const uint32_t common = (uint32_t)c->form.sparse << 2 | types | (uint32_t)c->negate_a << 13
                            | (uint32_t)c->negate_b << 14 | (uint32_t)c->at_a.mn_major << 15
                            | (uint32_t)c->at_b.mn_major << 16 | c->n / 8 << 17;
    if (c->form.block != 0)
        return common | c->sfb_id << 4 | (uint32_t)!c->ue4m3 << 23 | c->m / 128 << 27 | c->sfa_id << 29;
    const uint32_t d = c->form.kind == TCGEN05_I8 ? 2 : c->half ? 0 : 1;
    return common | c->selector | (uint32_t)c->saturate << 3 | d << 4 | c->m / 16 << 24;
}

uint64_t case_matrix_descriptor(const struct case_matrix *m)
{
    return (uint64_t)m->start >> 4 | (uint64_t)(m->leading >> 4) << 16 | (uint64_t)(m->stride >> 4) << 32
           | UINT64_C(1) << 46 | (uint64_t)m->mode << 61;
}

void case_statement(const struct mma_case *c, char *text, size_t size)
{
    const struct tcgen05_form *f = &c->form;
    const char *const block = f->block == 0                                            ? ""
                              : f->kind == TCGEN05_MXF8F6F4 || f->kind == TCGEN05_MXF4 ? ".block_scale"
                              : f->block == 16                                         ? ".block_scale.block16"
                                                                                       : ".block_scale.block32";
    char tail[80] = "";
    if (c->zero_mask != UINT64_MAX) snprintf(tail, sizeof tail, ", %%rd22");
    else if (c->down != 0) snprintf(tail, sizeof tail, ", %u", c->down);
    snprintf(text, size, "tcgen05.mma%s%s.cta_group::%u.%s%s [%%r20], %s, %%rd21%s, %%r22%s%s, %%p5%s;",
             f->weight_stationary ? ".ws" : "", f->sparse ? ".sp" : "", f->ctas, tcgen05_kind_name(f->kind), block,
             f->a_in_tensor_memory ? "[%r21]" : "%rd20", f->sparse ? ", [%r24]" : "",
             !c->masked     ? ""
             : f->ctas == 1 ? ", {%r30, %r31, %r32, %r33}"
                            : ", {%r30, %r31, %r32, %r33, %r34, %r35, %r36, %r37}",
             f->block != 0 ? ", [%r23], [%r25]" : "", tail);
}

/* ---- images ---- */

static void put_bits(uint8_t *bytes, uint32_t bit, uint32_t width, uint32_t value)
{
    for (uint32_t i = 0; i < width; i++) {
        const uint32_t at = bit + i;
        bytes[at / 8] = (uint8_t)((bytes[at / 8] & ~(1u << at % 8)) | (value >> i & 1) << at % 8);
    }
}

/* Byte address of the 16-byte chunk that holds byte `major` of line `minor`. */
static uint32_t chunk_address(const struct case_matrix *m, uint32_t minor, uint32_t major)
{
    const uint32_t span = m->mode == 0   ? 16
                          : m->mode == 6 ? 32
                          : m->mode == 4 ? 64
                                         : 128,
                   pattern = m->mode == 1 ? 4 : 8;
    const uint32_t further = major / span, groups = minor / pattern,
                   inside = minor % pattern * span + major % span / 16 * 16;
    const bool swapped = m->mode == 0 && m->mn_major;
    uint32_t at =
        m->start + inside + further * (swapped ? m->stride : m->leading) + groups * (swapped ? m->leading : m->stride);
    if (m->mode == 6) at ^= (at >> 7 & 1) << 4;
    if (m->mode == 4) at ^= (at >> 7 & 3) << 4;
    if (m->mode == 2) at ^= (at >> 7 & 7) << 4;
    if (m->mode == 1) at ^= (at >> 7 & 3) << 5;
    return at;
}

/* Elements in containers; those narrower than a byte are packed into the first bytes of each 16. */
static void place_element(const struct mma_case *c, const struct case_matrix *m, uint32_t width, uint8_t *shared,
                          uint32_t row, uint32_t k, uint32_t code)
{
    const uint32_t bits = container(c), major = m->mn_major ? row : k, minor = m->mn_major ? k : row, per = 128 / bits;
    put_bits(shared + chunk_address(m, minor, major * bits / 8 / 16 * 16), major % per * width, width, code);
}

static void put_cell(uint32_t *cells, uint32_t lane, uint32_t column, uint32_t bit, uint32_t width, uint32_t value)
{
    const uint32_t mask = (uint32_t)((UINT64_C(1) << width) - 1) << bit;
    cells[lane * 512 + column] = (cells[lane * 512 + column] & ~mask) | value << bit;
}

/* Lanes that hold a row of A, one by one; 0xffffffff behind the last. */
static uint32_t lane_of_row(const struct mma_case *c, uint32_t row, uint32_t copy)
{
    const uint32_t rows = rows_of(c), first = c->cells_a >> 16;
    if (rows == 64 && c->form.ctas == 1 && !c->form.weight_stationary)
        return copy == 0 ? first + row / 16 * 32 + row % 16 : UINT32_MAX;
    return copy < 128 / rows ? row + copy * rows : UINT32_MAX;
}

static void place_cells_of_a(const struct mma_case *c, uint32_t cta, uint32_t *cells)
{
    const uint32_t bits = container(c), width = width_of(c, c->fa), up = bits == 8 && width == 4 ? 2 : 0;
    for (uint32_t row = 0; row < rows_of(c); row++)
        for (uint32_t copy = 0; lane_of_row(c, row, copy) != UINT32_MAX; copy++)
            for (uint32_t e = 0; e < c->a_k; e++)
                put_cell(cells, lane_of_row(c, row, copy), (c->cells_a & 0xffff) + e * bits / 32, e * bits % 32, bits,
                         c->a[cta * rows_of(c) + row][e] << up);
}

static void place_scales(const struct mma_case *c, uint32_t *cells, uint32_t at, uint32_t id, uint32_t rows,
                         uint32_t (*scale)[4])
{
    const uint32_t count = container(c) == 8 ? 1 : 64 / c->form.block;
    for (uint32_t row = 0; row < rows; row++)
        for (uint32_t q = 0; q < 4; q++)
            for (uint32_t s = 0; s < count; s++)
                put_cell(cells, row % 32 + 32 * q, at + row / 32, 8 * (id + s), 8, scale[row][s]);
}

static void place_metadata(const struct mma_case *c, uint32_t cta, uint32_t *cells)
{
    const uint32_t rows = rows_of(c), per = c->form.kind == TCGEN05_TF32 ? 1
                                            : is_fp4(c)                  ? 4
                                                                         : 2; /* elements that 4 bits describe */
    for (uint32_t row = 0; row < rows; row++)
        for (uint32_t e = 0; e < c->a_k; e += per) {
            const uint32_t bits = c->bits[cta * rows + row][e], nibble = e / per;
            for (uint32_t copy = 0; copy < 128; copy += rows) {
                if (c->form.kind > TCGEN05_F16) {
                    put_cell(cells, row + copy, c->metadata + nibble / 8, nibble % 8 * 4, 4, bits);
                } else { /* 8 rows side by side, then the next 8 in the upper halves; 8 lanes further the rest of k */
                    const uint32_t lane = row % 8 + 8 * (nibble / 4) + row / 16 * 16 + copy;
                    put_cell(cells, lane, c->metadata + c->selector, 16 * (row / 8 % 2) + 4 * (nibble % 4), 4, bits);
                }
            }
        }
}

void case_place(const struct mma_case *c, uint32_t cta, uint8_t *shared, uint32_t *cells)
{
    const uint32_t rows = rows_of(c), columns = c->n / c->form.ctas;
    if (c->form.a_in_tensor_memory) place_cells_of_a(c, cta, cells);
    for (uint32_t row = 0; row < rows && !c->form.a_in_tensor_memory; row++)
        for (uint32_t e = 0; e < c->a_k; e++)
            place_element(c, &c->at_a, width_of(c, c->fa), shared, row, e, c->a[cta * rows + row][e]);
    for (uint32_t j = 0; j < columns; j++)
        for (uint32_t k = 0; k < c->k; k++)
            place_element(c, &c->at_b, width_of(c, c->fb), shared, j, k, c->b[cta * columns + j][k]);
    if (c->form.block != 0) {
        place_scales(c, cells, c->sfa, c->sfa_id, rows, (uint32_t(*)[4])(uintptr_t)(c->scale_a + cta * rows));
        place_scales(c, cells, c->sfb, c->sfb_id, c->n, (uint32_t(*)[4])(uintptr_t)c->scale_b);
    }
    if (c->form.sparse) place_metadata(c, cta, cells);
    for (uint32_t i = 0; i < c->m; i++)
        for (uint32_t j = 0; j < c->n; j++) {
            uint32_t owner, lane, column;
            case_d_place(c, i, j, &owner, &lane, &column);
            if (owner == cta) put_cell(cells, lane, column, 0, c->half ? 16 : 32, c->old[i][j]);
        }
}

/* The manual's data path layouts A, B, D, E, F, G. */
void case_d_place(const struct mma_case *c, uint32_t i, uint32_t j, uint32_t *cta, uint32_t *lane, uint32_t *column)
{
    const uint32_t first = c->d & 0xffff;
    *cta = 0, *lane = i, *column = first + j;                                      /* D */
    if (c->form.ctas == 2 && c->m == 256) *cta = i / 128, *lane = i % 128;          /* A */
    else if (c->form.ctas == 2)
        *cta = i / 64, *lane = i % 64 + (j >= c->n / 2 ? 64 : 0), *column = first + j % (c->n / 2); /* B */
    else if (c->m == 64 && c->form.weight_stationary)
        *lane = i + (j >= c->n / 2 ? 64 : 0), *column = first + j % (c->n / 2);     /* E */
    else if (c->m == 64) *lane = i / 16 * 32 + i % 16 + (c->d >> 16);               /* F */
    else if (c->m == 32) *lane = i + j / (c->n / 4) * 32, *column = first + j % (c->n / 4);   /* G */
}

/* ---- results ---- */

static bool is_disabled(const struct mma_case *c, uint32_t i, uint32_t j)
{
    uint32_t cta, lane, column;
    case_d_place(c, i, j, &cta, &lane, &column);
    return (c->disabled[4 * cta + lane / 32] >> lane % 32 & 1) != 0;
}

static int64_t integer_of(uint32_t code, bool is_signed)
{
    return is_signed && code >= 128 ? (int64_t)code - 256 : (int64_t)code;
}

static uint32_t integer_result(const struct mma_case *c, uint32_t i, uint32_t j)
{
    int64_t sum = c->accumulate ? (int32_t)c->old[i][j] : 0;
    for (uint32_t e = 0; e < c->a_k; e++)
        sum += c->zero[j] ? 0 : integer_of(c->a[i][e], c->signed_a) * integer_of(c->b[j][c->index[i][e]], c->signed_b);
    if (c->saturate && sum > INT32_MAX) sum = INT32_MAX;
    if (c->saturate && sum < INT32_MIN) sum = INT32_MIN;
    return (uint32_t)(uint64_t)sum;
}

/* D * 2^-down, where it is a normal number before and after. */
static uint32_t lowered(const struct mma_case *c)
{
    return c->down << (c->half ? 10 : 23);
}

uint32_t case_result(const struct mma_case *c, uint32_t i, uint32_t j)
{
    if (is_disabled(c, i, j)) return c->old[i][j];
    if (c->form.kind == TCGEN05_I8) return integer_result(c, i, j);
    uint32_t a[CASE_A_K], b[CASE_A_K], d = c->accumulate ? c->old[i][j] : 0;
    const uint32_t sign_a = c->negate_a ? 1u << (width_of(c, c->fa) - 1) : 0,
                   sign_b = c->negate_b ? 1u << (width_of(c, c->fb) - 1) : 0;
    for (uint32_t e = 0; e < c->a_k; e++) {
        a[e] = c->a[i][e] ^ sign_a;
        b[e] = (c->zero[j] ? 0 : c->b[j][c->index[i][e]]) ^ sign_b;
    }
    const uint32_t exponent = c->half ? d >> 10 & 31 : d >> 23 & 255, highest = c->half ? 31 : 255;
    if (exponent > c->down && exponent < highest) d -= lowered(c);
    const struct reference_model model = { (int)c->a_k, 25, 0, c->half ? TENSOR_TO_F16 : TENSOR_TO_F32 };
    switch (c->form.kind) {
    case TCGEN05_F16:
    case TCGEN05_TF32: return reference_dot(&model, c->fa, a, c->fb, b, (int)c->a_k, d);
    case TCGEN05_F8F6F4: return block_model_bytes(c->fa, a, c->fb, b, 127, 127, (int)c->a_k, c->half, d);
    case TCGEN05_MXF8F6F4:
        return block_model_bytes(c->fa, a, c->fb, b, c->scale_a[i][0], c->scale_b[j][0], (int)c->a_k, false, d);
    default:
        return block_model_fp4(a, b, c->ue4m3 ? TENSOR_UE4M3 : TENSOR_UE8M0, c->scale_a[i], c->scale_b[j], (int)c->a_k,
                               c->form.block, d);
    }
}

uint32_t case_whole_result(const struct mma_case *c, uint32_t i, uint32_t j)
{
    if (is_disabled(c, i, j)) return c->old[i][j];
    if (c->form.kind == TCGEN05_I8) return integer_result(c, i, j);
    double sum = 0;
    for (uint32_t e = 0; e < c->a_k && !c->zero[j]; e++)
        sum += reference_value(c->fa, c->a[i][e]) * reference_value(c->fb, c->b[j][c->index[i][e]]);
    if (c->negate_a != c->negate_b) sum = -sum;
    if (c->accumulate) sum += ldexp(reference_value(c->half ? TENSOR_F16 : TENSOR_TF32, c->old[i][j]), -(int)c->down);
    if (!c->half) {
        const float value = sum == 0 ? 0 : (float)sum;
        uint32_t code;
        memcpy(&code, &value, 4);
        return code;
    }
    int exponent;
    const double half = frexp(fabs(sum), &exponent);
    if (sum == 0) return 0;
    return (uint32_t)(exponent + 14) << 10 | ((uint32_t)ldexp(half, 11) & 0x3ff) | (sum < 0 ? 0x8000 : 0);
}
