/* The arithmetic of a warpgroup's product: fragments and matrices to panels, dot products, fragments. */
#include "wgmma_multiply.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_N = 256, MOST_K = 64 };

struct wgmma_workspace {
    uint32_t a[WGMMA_ROWS * MOST_K], b[MOST_N * MOST_K]; /* codes, as they lie in registers and memory: [row][a_k],
                                                            [n][k] */
    uint32_t d[WGMMA_ROWS * MOST_N];
    union {
        struct {
            TENSOR_STORAGE(a, WGMMA_ROWS, MOST_K);
            TENSOR_STORAGE(b, MOST_N, MOST_K);
            TENSOR_STORAGE(chosen, 1, MOST_K);
        } real;
        struct {
            int16_t a[WGMMA_ROWS * MOST_K], b[MOST_N * MOST_K];
        } integer;
    } panel;
};

struct wgmma_workspace *wgmma_workspace(void) { return malloc(sizeof(struct wgmma_workspace)); }

static const uint64_t *part_row(const struct wgmma_product *p, uint32_t warp, const struct operand *o)
{
    const struct warp *w = &p->group->cta->warp[p->group->first_warp + warp];
    return o->row != NULL ? o->row : w->registers + ((size_t)p->part[warp]->base + o->slot) * LANES;
}

/* ---- A and B ---- */

/* Register i of a lane: row lane/4 + 8*(i & 1); 32 bits' worth of elements at 4 bytes * (lane % 4), and 16 bytes
 * further for i >
 * 1. */
static void codes_of_fragments(const struct wgmma_product *p, uint32_t *code)
{
    const struct wgmma_form *f = p->form;
    const uint32_t per_register = 32 / f->bits, mask = (uint32_t)bits_mask(f->bits);
    for (uint32_t warp = 0; warp < GROUP_WARPS; warp++)
        for (uint32_t i = 0; i < A_REGISTERS; i++) {
            const uint64_t *row = part_row(p, warp, &f->a->element[i]);
            for (uint32_t l = 0; l < LANES; l++) {
                uint32_t *to =
                    code + (warp * WARP_ROWS + l / 4 + 8 * (i & 1)) * f->a_k + (l % 4 + 4 * (i >> 1)) * per_register;
                for (uint32_t e = 0; e < per_register; e++) to[e] = (uint32_t)(row[l] >> (e * f->bits)) & mask;
            }
        }
}

static uint32_t element(const uint8_t *chunk, uint32_t bits, uint32_t i)
{
    uint32_t code = 0;
    memcpy(&code, chunk + i * (bits / 8), bits / 8);
    return code;
}

static void codes_of_matrix(const struct wgmma_product *p, const struct matrix_layout *m, uint32_t rows, uint32_t k,
                            uint32_t *code)
{
    const uint32_t bits = p->form->bits, per_chunk = CHUNK_BYTES * 8 / bits;
    const uint32_t lines = m->mn_major ? k : rows, length = m->mn_major ? rows : k;
    const uint32_t step = m->mn_major ? k : 1, line_step = m->mn_major ? 1 : k;
    for (uint32_t line = 0; line < lines; line++)
        for (uint32_t chunk = 0; chunk < length / per_chunk; chunk++) {
            const uint8_t *bytes = p->group->cta->shared + matrix_chunk(m, chunk, line);
            uint32_t *to = code + line * line_step + chunk * per_chunk * step;
            for (uint32_t i = 0; i < per_chunk; i++) to[i * step] = element(bytes, bits, i);
        }
}

/* ---- sparse A ---- */

/* The half words of metadata describe 16 columns (tf32: 8) of a row each: 4 bits for every two elements of A (tf32: for
 * every one). 16 bits and more: thread 2*selector + i of a group of four has columns 16*i.. (8*i..), its low half row
 * lane/4, its high half 8 rows further.  8 bits: thread i has 32 columns from 32*(i / 2), of row lane/4 + 8*(i & 1).
 * (CuTe: SM90::GMMA::ELayout) */
static uint32_t nibble(const struct wgmma_form *f, const uint32_t metadata[LANES], uint32_t row, uint32_t index)
{
    const uint32_t quad = row % 8 * 4, high = row / 8;
    if (f->bits == 8) return metadata[quad + high + index / 8 * 2] >> (index % 8 * 4) & 15;
    return metadata[quad + 2 * f->selector + index / 4] >> (16 * high + index % 4 * 4) & 15;
}

int wgmma_sparse_index(const struct wgmma_form *f, const uint32_t metadata[LANES], uint32_t row, uint32_t e)
{
    enum { FIRST_OF_TWO = 4, SECOND_OF_TWO = 14 };
    if (f->bits == 32) {
        const uint32_t code = nibble(f, metadata, row, e);
        return code == FIRST_OF_TWO ? (int)(2 * e) : code == SECOND_OF_TWO ? (int)(2 * e + 1) : -1;
    }
    const uint32_t pair = nibble(f, metadata, row, e / 2);
    return (pair & 3) == pair >> 2 ? -1 : (int)(e / 2 * 4 + (e % 2 == 0 ? pair & 3 : pair >> 2));
}

static uint32_t column(const struct wgmma_product *p, uint32_t row, uint32_t e)
{
    if (!p->form->sparse) return e;
    return (uint32_t)wgmma_sparse_index(p->form, p->metadata[row / WARP_ROWS], row % WARP_ROWS, e);
}

/* ---- D ---- */

/* Register i of a lane: row lane/4 + 8*(i/2 & 1), column 8*(i/4) + 2*(lane % 4) + i % 2; f16 holds i and i+1 in one
 * register. */
static uint32_t place_in_d(const struct wgmma_form *f, uint32_t warp, uint32_t lane, uint32_t i)
{
    return (warp * WARP_ROWS + lane / 4 + 8 * (i >> 1 & 1)) * f->n + 8 * (i >> 2) + 2 * (lane % 4) + (i & 1);
}

static void take_accumulators(const struct wgmma_product *p, uint32_t *d)
{
    const struct wgmma_form *f = p->form;
    for (uint32_t warp = 0; warp < GROUP_WARPS; warp++)
        for (uint32_t i = 0; i < f->d->count; i++) {
            const uint64_t *row = part_row(p, warp, &f->d->element[i]);
            for (uint32_t l = 0; l < LANES; l++) {
                if (!f->f16_output) {
                    d[place_in_d(f, warp, l, i)] = (uint32_t)row[l];
                    continue;
                }
                uint32_t *pair = d + place_in_d(f, warp, l, 2 * i);
                pair[0] = (uint32_t)row[l] & 0xffff;
                pair[1] = (uint32_t)row[l] >> 16;
            }
        }
}

static void give_accumulators(const struct wgmma_product *p, const uint32_t *d)
{
    const struct wgmma_form *f = p->form;
    for (uint32_t warp = 0; warp < GROUP_WARPS; warp++)
        for (uint32_t i = 0; i < f->d->count; i++) {
            uint64_t *row = (uint64_t *)(uintptr_t)part_row(p, warp, &f->d->element[i]);
            for (uint32_t l = 0; l < LANES; l++) {
                const uint32_t *from = d + place_in_d(f, warp, l, f->f16_output ? 2 * i : i);
                row[l] = f->f16_output ? from[0] | from[1] << 16 : from[0];
            }
        }
}

/* ---- products ---- */

/* A sparse row against a row of B with an infinity or a NaN in it: only the elements that A's indices choose count. */
static uint32_t chosen_dot(const struct wgmma_product *p, struct wgmma_workspace *s, const struct tensor_model *model,
                           const struct tensor_panel *a, uint32_t i, uint32_t j, uint32_t c)
{
    const struct wgmma_form *f = p->form;
    struct tensor_panel chosen = TENSOR_PANEL(s->panel.real.chosen);
    tensor_clear(&chosen, 1, f->k);
    const uint32_t flip = f->b_negated ? 1u << (f->bits - 1) : 0;
    for (uint32_t e = 0; e < f->a_k; e++) {
        const uint32_t k = column(p, i, e);
        tensor_set(&chosen, 0, k, f->b_format, s->b[j * f->k + k] ^ flip);
    }
    return tensor_dot(model, a, i, &chosen, 0, c);
}

static void multiply_reals(const struct wgmma_product *p, struct wgmma_workspace *s)
{
    const struct wgmma_form *f = p->form;
    const struct machine *machine = p->group->cta->cluster->grid->machine;
    const struct tensor_model model = tensor_model_of(machine->options.tensor_core, machine->device->sm, TENSOR_WGMMA,
                                                      f->a_format, f->b_format, f->f16_output, f->k);
    struct tensor_panel a = TENSOR_PANEL(s->panel.real.a), b = TENSOR_PANEL(s->panel.real.b);
    const uint32_t flip_a = f->a_negated ? 1u << (f->bits - 1) : 0, flip_b = f->b_negated ? 1u << (f->bits - 1) : 0;
    tensor_clear(&a, WGMMA_ROWS, f->k);
    tensor_clear(&b, f->n, f->k);
    for (uint32_t i = 0; i < WGMMA_ROWS; i++)
        for (uint32_t e = 0; e < f->a_k; e++)
            tensor_set(&a, i, column(p, i, e), f->a_format, s->a[i * f->a_k + e] ^ flip_a);
    for (uint32_t j = 0; j < f->n; j++)
        for (uint32_t k = 0; k < f->k; k++) tensor_set(&b, j, k, f->b_format, s->b[j * f->k + k] ^ flip_b);
    if (!f->sparse) {
        tensor_multiply(&model, &a, &b, s->d);
        return;
    }
    for (uint32_t i = 0; i < WGMMA_ROWS; i++)
        for (uint32_t j = 0; j < f->n; j++) {
            uint32_t *d = &s->d[i * f->n + j];
            *d = b.special[j] ? chosen_dot(p, s, &model, &a, i, j, *d) : tensor_dot(&model, &a, i, &b, j, *d);
        }
}

static int16_t integer_of(uint32_t code, bool is_signed) { return is_signed ? (int8_t)(uint8_t)code : (int16_t)code; }

static void multiply_integers(const struct wgmma_product *p, struct wgmma_workspace *s)
{
    const struct wgmma_form *f = p->form;
    int16_t *a = s->panel.integer.a, *b = s->panel.integer.b;
    memset(a, 0, sizeof s->panel.integer.a);
    for (uint32_t i = 0; i < WGMMA_ROWS; i++)
        for (uint32_t e = 0; e < f->a_k; e++)
            a[i * f->k + column(p, i, e)] = integer_of(s->a[i * f->a_k + e], f->a_signed);
    for (uint32_t i = 0; i < f->n * f->k; i++) b[i] = integer_of(s->b[i], f->b_signed);
    tensor_multiply_integers(a, WGMMA_ROWS, b, f->n, f->k, f->saturate, (int32_t *)s->d);
}

/* d += the number of bits that both words have. */
static void multiply_bits(const struct wgmma_product *p, struct wgmma_workspace *s)
{
    const struct wgmma_form *f = p->form;
    for (uint32_t i = 0; i < WGMMA_ROWS; i++)
        for (uint32_t j = 0; j < f->n; j++)
            for (uint32_t k = 0; k < f->k; k++)
                s->d[i * f->n + j] += (uint32_t)__builtin_popcount(s->a[i * f->k + k] & s->b[j * f->k + k]);
}

void wgmma_multiply(const struct wgmma_product *p, struct wgmma_workspace *s)
{
    const struct wgmma_form *f = p->form;
    if (f->a_in_registers) codes_of_fragments(p, s->a);
    else codes_of_matrix(p, &p->a, WGMMA_ROWS, f->a_k, s->a);
    codes_of_matrix(p, &p->b, f->n, f->k, s->b);
    if (p->accumulates) take_accumulators(p, s->d);
    else memset(s->d, 0, sizeof(uint32_t) * WGMMA_ROWS * f->n);
    switch (f->kind) {
    case WGMMA_FLOAT: multiply_reals(p, s); break;
    case WGMMA_INTEGER: multiply_integers(p, s); break;
    case WGMMA_BIT: multiply_bits(p, s); break;
    }
    give_accumulators(p, s->d);
}
