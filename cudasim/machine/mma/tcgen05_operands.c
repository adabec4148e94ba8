/* The operands of tcgen05.mma, from the memories to the workspace and back: see tcgen05_product.h. */
#include "tcgen05_operands.h"
#include "tcgen05_place.h"
#include "machine/core/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 3, 4)))
static trap report(const struct tensor_operation *o, enum report_code code, const char *format, ...)
{
    char sentence[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    return warp_fault(o->operation.warp, o->operation.in, o->operation.lane, code, "%s", sentence);
}

static uint32_t cell_at(const struct tcgen05_product *p, uint32_t cta, uint32_t lane, uint32_t column)
{
    return *tensor_value(p->cta[cta], lane, column);
}

/* ---- matrices in shared memory ---- */

/* The fields of a chunk, in order, `step` apart. */
static void unpack(const uint8_t *chunk, struct element_storage storage, uint32_t *to, uint32_t step)
{
    const uint32_t mask = (uint32_t)((UINT64_C(1) << storage.bits) - 1);
    if (storage.bits == 8) {
        for (uint32_t i = 0; i < storage.per_chunk; i++) to[i * step] = chunk[i];
        return;
    }
    uint8_t bytes[CHUNK_BYTES + 4] = { 0 };
    memcpy(bytes, chunk, storage.bytes);
    for (uint32_t i = 0; i < storage.per_chunk; i++) {
        uint32_t word;
        memcpy(&word, bytes + i * storage.bits / 8, sizeof word);
        to[i * step] = word >> i * storage.bits % 8 & mask;
    }
}

/* code[row * k + i]; rows are columns of B. */
static void read_matrix(const struct cta *cta, const struct matrix_layout *m, struct element_storage storage,
                        uint32_t rows, uint32_t k, uint32_t *code)
{
    const uint32_t lines = m->mn_major ? k : rows, length = m->mn_major ? rows : k;
    const uint32_t step = m->mn_major ? k : 1, line_step = m->mn_major ? 1 : k;
    for (uint32_t line = 0; line < lines; line++)
        for (uint32_t chunk = 0; chunk < length / storage.per_chunk; chunk++)
            unpack(cta->shared + matrix_chunk(m, chunk, line), storage,
                   code + line * line_step + chunk * storage.per_chunk * step, step);
}

/* Each CTA of a pair holds a part of B's columns. */
static void fetch_b(const struct tcgen05_product *p, struct tcgen05_workspace *w)
{
    const struct mma_shape *s = &p->shape;
    const uint32_t each = s->n / p->form->ctas;
    for (uint32_t c = 0; c < p->form->ctas; c++)
        read_matrix(p->cta[c], &p->b, storage_of(p->form->kind, s->b_format), each, s->k, w->b + c * each * s->k);
    for (uint32_t j = 0; p->form->weight_stationary && j < s->n; j++)
        if ((p->zero[j / 32] >> j % 32 & 1) != 0) memset(w->b + j * s->k, 0, s->k * sizeof *w->b);
}

/* ---- A in tensor memory ---- */

/* The code in a container: fp6 in the low bits of a byte, e2m1 two bits up. */
static bool contained(uint32_t container, uint32_t container_bits, uint32_t bits, uint32_t *code)
{
    const uint32_t shift = container_bits == 8 && bits == 4 ? 2 : 0, mask = (uint32_t)((UINT64_C(1) << bits) - 1)
                                                                            << shift;
    *code = (container & mask) >> shift;
    return (container & ~mask) == 0;
}

static trap unpack_cells(const struct tcgen05_product *p, uint32_t cta, const struct tensor_operation *operation,
                         uint32_t lane, uint32_t *code)
{
    const uint32_t container = tcgen05_container_bits(p->form->kind), per_cell = 32 / container;
    const uint32_t bits = storage_of(p->form->kind, p->shape.a_format).bits,
                   mask = (uint32_t)((UINT64_C(1) << container) - 1);
    for (uint32_t e = 0; e < p->shape.a_k; e++) {
        const uint32_t column = p->a_cells.column + e / per_cell, cell = cell_at(p, cta, lane, column);
        if (!contained(cell >> e % per_cell * container & mask, container, bits, &code[e]))
            return report(
                operation, REPORT_ILLEGAL,
                "reads element %u of A from lane %u, column %u of tensor memory, where the byte 0x%02x has bits "
                "outside of its %u-bit element (bits %s)",
                e, lane, column, cell >> e % per_cell * container & mask, bits, bits == 4 ? "5..2" : "5..0");
    }
    return TRAP_NONE;
}

/* Every part of D has a copy of A in its own lanes. */
static trap fetch_cells_of_a(const struct tcgen05_product *p, uint32_t cta, const struct tensor_operation *operation,
                             struct tcgen05_workspace *w)
{
    const uint32_t a_k = p->shape.a_k;
    for (uint32_t row = 0; row < product_rows(p); row++)
        for (uint32_t part = 0; part < product_parts(p); part++) {
            uint32_t copy[MMA_A_K];
            const uint32_t lane = product_lane(p, row, part, p->a_cells.lane);
            const trap t = unpack_cells(p, cta, operation, lane, part == 0 ? w->a + row * a_k : copy);
            if (t != TRAP_NONE) return t;
            if (part != 0 && memcmp(w->a + row * a_k, copy, a_k * sizeof *copy) != 0)
                return report(
                    operation, REPORT_ILLEGAL,
                    "reads row %u of A from lane %u of tensor memory and its copy from lane %u, which differ; "
                    "every %u lanes need the same",
                    row, product_lane(p, row, 0, p->a_cells.lane), lane, product_rows(p));
        }
    return TRAP_NONE;
}

/* ---- scales ---- */

struct scales {
    const char *name;
    char line;
    struct tensor_place at;
    uint32_t rows;
    uint8_t id;
    uint8_t (*to)[MMA_SCALES];
};

static trap fetch_scales(const struct tcgen05_product *p, uint32_t cta, const struct tensor_operation *operation,
                         const struct scales *s)
{
    const uint32_t count = tcgen05_scales(p->form), shift = s->id * 8u;
    const uint32_t mask = (count == MMA_SCALES ? UINT32_MAX : (1u << 8 * count) - 1) << shift;
    const bool watched = p->cta[cta]->cluster->grid->machine->options.check_uninitialised;
    const uint32_t halves = (mask & 0xffff) != 0 ? (mask >> 16 != 0 ? HALF_BOTH : HALF_LOW) : HALF_HIGH;
    for (uint32_t row = 0; row < s->rows; row++) {
        const uint32_t column = s->at.column + row / LANES;
        const uint32_t first = cell_at(p, cta, row % LANES, column);
        for (uint32_t q = 0; q < TENSOR_QUARTERS; q++) {
            const uint32_t lane = row % LANES + q * LANES;
            const uint32_t cell = cell_at(p, cta, lane, column);
            if (watched && (*tensor_valid(p->cta[cta], lane, column) & halves) != halves)
                return report(
                    operation, REPORT_UNINITIALISED,
                    "reads the scales of %s %u of %s from lane %u, column %u of tensor memory, which has not been "
                    "written; all four groups of 32 lanes need them",
                    s->line == 'A' ? "row" : "column", row, s->name, lane, column);
            if (((cell ^ first) & mask) != 0)
                return report(
                    operation, REPORT_ILLEGAL,
                    "reads the scales of %s %u of %s from column %u of tensor memory, where lane %u holds 0x%x and "
                    "lane %u 0x%x; all four groups of 32 lanes need the same",
                    s->line == 'A' ? "row" : "column", row, s->name, column, row % LANES, (first & mask) >> shift, lane,
                    (cell & mask) >> shift);
        }
        for (uint32_t j = 0; j < count; j++) s->to[row][j] = (uint8_t)(first >> (shift + 8 * j));
    }
    return TRAP_NONE;
}

/* ---- metadata ---- */

/* A compressor that finds no element in a chunk leaves 0 in its metadata, and zeros in A. */
static int first_of_chunk(enum tcgen05_kind kind, uint32_t e)
{
    if (kind == TCGEN05_TF32) return (int)(2 * e);
    return tcgen05_container_bits(kind) == 4 ? (int)(e / 4 * 8 + e % 2) : (int)(e / 2 * 4);
}

static trap fetch_metadata(const struct tcgen05_product *p, uint32_t cta, const struct tensor_operation *operation,
                           struct tcgen05_workspace *w)
{
    const uint32_t rows = product_rows(p), a_k = p->shape.a_k;
    for (uint32_t row = 0; row < rows; row++)
        for (uint32_t e = 0; e < a_k; e++) {
            uint32_t lane, column, shift;
            metadata_place(p, row, e, &lane, &column, &shift);
            const uint32_t bits = cell_at(p, cta, lane, p->metadata.column + column) >> shift & 15;
            for (uint32_t copy = rows; copy < TENSOR_LANES; copy += rows)
                if ((cell_at(p, cta, lane + copy, p->metadata.column + column) >> shift & 15) != bits)
                    return report(
                        operation, REPORT_ILLEGAL,
                        "reads the metadata of row %u from lanes %u and %u of tensor memory, which differ; "
                        "every %u lanes need the same",
                        row, lane, lane + copy, rows);
            const bool nothing = bits == 0 && w->a[row * a_k + e] == 0; /* zeros, wherever they stand */
            const int index = nothing ? first_of_chunk(p->form->kind, e) : metadata_index(p->form->kind, e, bits);
            if (index < 0)
                return report(
                    operation, REPORT_ILLEGAL,
                    "reads metadata that no row may have: 0x%x for element %u of row %u of A (lane %u, column %u, bit "
                    "%u)", bits, e,
                    row, lane, p->metadata.column + column, shift);
            w->index[row * a_k + e] = (uint8_t)index;
        }
    return TRAP_NONE;
}

/* ---- D ---- */

/* The cells of a row that one lane holds lie side by side. */
static void fetch_d(const struct tcgen05_product *p, uint32_t cta, struct tcgen05_workspace *w)
{
    const uint32_t n = p->shape.n, rows = product_rows(p), parts = product_parts(p), each = n / parts;
    if (!p->accumulates) {
        memset(w->d, 0, rows * n * sizeof *w->d);
        return;
    }
    for (uint32_t row = 0; row < rows; row++)
        for (uint32_t part = 0; part < parts; part++) {
            const uint32_t lane = product_lane(p, row, part, p->d.lane);
            memcpy(w->d + row * n + part * each, tensor_value(p->cta[cta], lane, p->d.column), each * sizeof *w->d);
        }
    for (uint32_t i = 0; p->shape.f16_output && i < rows * n; i++) w->d[i] &= 0xffff;
}

/* Nothing says what becomes of the upper half behind an f16. */
void product_store(const struct tcgen05_product *p, uint32_t cta, const struct tcgen05_workspace *w)
{
    const uint32_t n = p->shape.n, parts = product_parts(p), each = n / parts;
    for (uint32_t row = 0; row < product_rows(p); row++)
        for (uint32_t part = 0; part < parts; part++) {
            const uint32_t lane = product_lane(p, row, part, p->d.lane);
            if (product_lane_disabled(p, cta, lane)) continue;
            memcpy(tensor_value(p->cta[cta], lane, p->d.column), w->d + row * n + part * each, each * sizeof *w->d);
            memset(tensor_valid(p->cta[cta], lane, p->d.column), p->shape.f16_output ? HALF_LOW : HALF_BOTH, each);
        }
}

/* What must have been written; of scales only some bytes. */
static trap check_written(const struct tcgen05_product *p, uint32_t cta, const struct tensor_operation *operation)
{
    struct product_area used[PRODUCT_AREAS];
    const uint32_t count = product_areas(p, used);
    trap t = TRAP_NONE;
    for (uint32_t i = 0; i < count && t == TRAP_NONE; i++) {
        const enum product_operand operand = used[i].operand;
        if (operand == PRODUCT_SFA || operand == PRODUCT_SFB || (operand == PRODUCT_D && !p->accumulates)) continue;
        for (uint32_t q = 0; operand == PRODUCT_D && q < TENSOR_QUARTERS; q++)
            used[i].area.lanes[q] &= ~p->disabled[cta][q];
        const uint32_t halves = operand == PRODUCT_D && p->shape.f16_output ? HALF_LOW : HALF_BOTH;
        t = tensor_check_written(operation, p->cta[cta], &used[i].area, halves, product_operand_name(operand));
    }
    return t;
}

trap product_fetch(const struct tcgen05_product *p, uint32_t cta, const struct tensor_operation *operation,
                   struct tcgen05_workspace *w)
{
    const struct mma_shape *s = &p->shape;
    trap t = check_written(p, cta, operation);
    if (t != TRAP_NONE) return t;
    if (p->form->a_in_tensor_memory) t = fetch_cells_of_a(p, cta, operation, w);
    else read_matrix(p->cta[cta], &p->a, storage_of(p->form->kind, s->a_format), product_rows(p), s->a_k, w->a);
    fetch_b(p, w);
    if (p->form->block != 0) {
        const struct scales a = { "A", 'A', p->sfa, product_rows(p), s->sfa_id, w->sfa };
        const struct scales b = { "B", 'B', p->sfb, s->n, s->sfb_id, w->sfb };
        if (t == TRAP_NONE) t = fetch_scales(p, cta, operation, &a);
        if (t == TRAP_NONE) t = fetch_scales(p, cta, operation, &b);
    }
    if (t == TRAP_NONE && p->form->sparse) t = fetch_metadata(p, cta, operation, w);
    if (t == TRAP_NONE) fetch_d(p, cta, w);
    return t;
}
