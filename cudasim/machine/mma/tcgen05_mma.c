/* tcgen05.mma from its issue to its end: what it says is checked, its memories are told, and it is done when its turn
 * comes.  See tcgen05_mma.h. */
#include "tcgen05_mma.h"
#include "tcgen05_multiply.h"
#include "tcgen05_operands.h"
#include "tcgen05_place.h"
#include "machine/core/report.h"
#include "machine/memory/access.h"

#include <stdlib.h>
#include <string.h>

struct mma {
    struct tensor_operation pipe;
    struct tcgen05_product product;
};

/* ---- reading the operands ---- */

struct issue {
    struct warp *w;
    const struct insn *in;
    uint32_t lane;
    const struct tcgen05_instruction *x;
};

static uint64_t value_of(const struct issue *i, const struct operand *o) { return source_row(i->w, o)[i->lane]; }

static struct tensor_place place_of(const struct issue *i, const struct operand *o)
{
    uint64_t address[LANES];
    address_lanes(i->w, o, 1u << i->lane, address);
    return tensor_place_of((uint32_t)address[i->lane]);
}

static trap illegal(const struct issue *i, const char *what, uint64_t value, const char *why)
{
    return warp_fault(i->w, i->in, i->lane, REPORT_ILLEGAL, "takes the %s 0x%llx, which %s", what,
                      (unsigned long long)value, why);
}

static trap read_descriptors(const struct issue *i, struct tcgen05_product *p)
{
    char why[256];
    const struct tcgen05_form *f = p->form;
    const uint32_t sm = i->w->cta->cluster->grid->machine->device->sm, bits = tcgen05_container_bits(f->kind);
    const uint32_t descriptor = (uint32_t)value_of(i, i->x->descriptor);
    if (!instruction_descriptor_of(descriptor, f, sm, &p->shape, why, sizeof why))
        return illegal(i, "instruction descriptor", descriptor, why);
    const uint64_t b = value_of(i, i->x->b);
    if (!matrix_of_tcgen05(b, p->shape.b_mn_major, bits, sm, &p->b, why, sizeof why))
        return illegal(i, "descriptor of B", b, why);
    if (f->a_in_tensor_memory) return TRAP_NONE;
    const uint64_t a = value_of(i, i->x->a);
    if (!matrix_of_tcgen05(a, p->shape.a_mn_major, bits, sm, &p->a, why, sizeof why))
        return illegal(i, "descriptor of A", a, why);
    return TRAP_NONE;
}

static trap read_places(const struct issue *i, struct tcgen05_product *p)
{
    const struct tcgen05_instruction *x = i->x;
    const bool half = product_is_half(p);
    p->d = place_of(i, x->d);
    if (p->d.lane != 0 && !(half && p->d.lane == 16))
        return warp_fault(i->w, i->in, i->lane, REPORT_ILLEGAL,
                          "has lane %u in the address of D; D of this shape begins at lane %s", p->d.lane,
                          half ? "0 or 16" : "0");
    if (p->form->a_in_tensor_memory) p->a_cells = place_of(i, x->a);
    if (p->form->a_in_tensor_memory && p->a_cells.lane != p->d.lane)
        return warp_fault(i->w, i->in, i->lane, REPORT_ILLEGAL,
                          "has lane %u in the address of A, and lane %u in that of D", p->a_cells.lane, p->d.lane);
    if (p->form->block != 0) {
        p->sfa = place_of(i, x->sfa);
        p->sfb = place_of(i, x->sfb);
        if (p->sfa.lane != 0 || p->sfb.lane != 0)
            return warp_fault(i->w, i->in, i->lane, REPORT_ILLEGAL,
                              "has lane %u in the address of the scales of %c; scales begin at "
                              "lane 0",
                              p->sfa.lane != 0 ? p->sfa.lane : p->sfb.lane, p->sfa.lane != 0 ? 'A' : 'B');
    }
    if (!p->form->sparse) return TRAP_NONE;
    p->metadata = place_of(i, x->metadata);
    const bool pairs = tcgen05_container_bits(p->form->kind) > 8; /* of columns, of which the selector takes one */
    if (p->metadata.lane != 0 || (pairs && p->metadata.column % 2 != 0))
        return warp_fault(i->w, i->in, i->lane, REPORT_ILLEGAL,
                          "has lane %u, column %u in the address of the metadata; they begin at "
                          "lane 0%s",
                          p->metadata.lane, p->metadata.column, pairs ? " of an even column" : "");
    return TRAP_NONE;
}

static trap read_masks(const struct issue *i, struct tcgen05_product *p)
{
    char why[256];
    const struct tcgen05_instruction *x = i->x;
    for (uint32_t n = 0; x->disabled != NULL && n < x->disabled->count; n++)
        p->disabled[n / 4][n % 4] = (uint32_t)value_of(i, &x->disabled->element[n]);
    if (x->zero_mask == NULL) return TRAP_NONE;
    const uint64_t mask = value_of(i, x->zero_mask);
    if (zero_columns_of(mask, p->shape.m, p->shape.n, p->zero, why, sizeof why)) return TRAP_NONE;
    return illegal(i, "zero-column mask", mask, why);
}

/* ---- memories ---- */

static bool overlap(const struct tensor_area *a, const struct tensor_area *b)
{
    uint32_t lanes = 0;
    for (uint32_t q = 0; q < TENSOR_QUARTERS; q++) lanes |= a->lanes[q] & b->lanes[q];
    return lanes != 0 && a->column < b->column + b->columns && b->column < a->column + a->columns;
}

/* D is written while the others are read; scales and A are read in different ways. */
static trap check_areas(const struct issue *i, const struct product_area *used, uint32_t count)
{
    for (uint32_t n = 0; n < count; n++) {
        const struct tensor_area *a = &used[n].area;
        if (a->column + a->columns > TENSOR_COLUMNS)
            return warp_fault(i->w, i->in, i->lane, REPORT_OUT_OF_BOUNDS,
                              "has %s in columns %u to %u of tensor memory, which has 512",
                              product_operand_name(used[n].operand), a->column, a->column + a->columns - 1);
        for (uint32_t m = 0; m < n; m++) {
            const struct tensor_area *b = &used[m].area;
            const bool conflict = used[m].operand != used[n].operand && used[m].operand <= PRODUCT_A;
            if (conflict && overlap(a, b))
                return warp_fault(i->w, i->in, i->lane, REPORT_ILLEGAL,
                                  "has %s in columns %u to %u of tensor memory, and %s in columns %u to %u",
                                  product_operand_name(used[m].operand), b->column, b->column + b->columns - 1,
                                  product_operand_name(used[n].operand), a->column, a->column + a->columns - 1);
        }
    }
    return TRAP_NONE;
}

static trap use_cells(const struct issue *i, struct mma *mma)
{
    struct product_area used[PRODUCT_AREAS];
    const struct tcgen05_product *p = &mma->product;
    const uint32_t count = product_areas(p, used);
    trap t = check_areas(i, used, count);
    for (uint32_t c = 0; c < p->form->ctas; c++)
        for (uint32_t n = 0; n < count && t == TRAP_NONE; n++)
            t = tensor_uses(&mma->pipe, p->cta[c], used[n].area,
                            used[n].operand == PRODUCT_D ? TENSOR_WRITES : TENSOR_READS);
    return t;
}

struct matrix_reading {
    char name;
    const struct matrix_layout *layout;
    struct element_storage storage;
    uint32_t rows, k;
};

static trap read_chunks(const struct issue *i, struct async_token *token, struct cta *cta,
                        const struct matrix_reading *m)
{
    const uint32_t lowest = cta->cluster->grid->machine->device->shared_reserved, bytes = m->storage.bytes;
    const bool mn = m->layout->mn_major;
    const uint32_t lines = mn ? m->k : m->rows, chunks = (mn ? m->rows : m->k) / m->storage.per_chunk;
    uint32_t run = 0, run_bytes = 0;
    trap t = TRAP_NONE;
    for (uint32_t l = 0; l < lines; l++)
        for (uint32_t c = 0; c < chunks; c++) {
            const uint32_t at = matrix_chunk(m->layout, c, l);
            if (at < lowest || at + bytes > cta->shared_bytes)
                return warp_fault(i->w, i->in, i->lane, REPORT_OUT_OF_BOUNDS,
                                  "reads %u bytes of %c at shared address 0x%x; the CTA's shared memory lies from 0x%x "
                                  "to 0x%x",
                                  bytes, m->name, at, lowest, cta->shared_bytes);
            if (run_bytes != 0 && at == run + run_bytes) {
                run_bytes += bytes;
                continue;
            }
            if (run_bytes != 0) t = async_reads(token, cta, run, run_bytes);
            if (t != TRAP_NONE) return t;
            run = at;
            run_bytes = bytes;
        }
    return run_bytes == 0 ? TRAP_NONE : async_reads(token, cta, run, run_bytes);
}

/* A swizzled row of K lies in its span: nothing says what would follow. */
static trap read_matrix(const struct issue *i, struct async_token *token, struct cta *cta,
                        const struct matrix_reading *m)
{
    const uint32_t span = matrix_span(m->layout), bytes = m->k / m->storage.per_chunk * CHUNK_BYTES;
    if (!m->layout->mn_major && m->layout->swizzle != MATRIX_PLAIN && m->layout->start % span + bytes > span)
        return warp_fault(i->w, i->in, i->lane, REPORT_ILLEGAL,
                          "reads %u bytes of K from byte %u of a row of %c, which a %u-byte swizzle does not hold",
                          bytes, m->layout->start % span, m->name, span);
    return read_chunks(i, token, cta, m);
}

static trap read_matrices(const struct issue *i, const struct tcgen05_product *p, struct async_token *token)
{
    const struct mma_shape *s = &p->shape;
    const struct matrix_reading a = { 'A', &p->a, storage_of(p->form->kind, s->a_format), product_rows(p), s->a_k };
    const struct matrix_reading b = { 'B', &p->b, storage_of(p->form->kind, s->b_format), s->n / p->form->ctas, s->k };
    trap t = TRAP_NONE;
    for (uint32_t c = 0; c < p->form->ctas && t == TRAP_NONE; c++) {
        if (!p->form->a_in_tensor_memory) t = read_matrix(i, token, p->cta[c], &a);
        if (t == TRAP_NONE) t = read_matrix(i, token, p->cta[c], &b);
    }
    return t;
}

/* ---- the operation ---- */

static trap step(struct agent_operation *operation, bool *done)
{
    struct mma *mma = (struct mma *)operation;
    const struct tcgen05_product *p = &mma->product;
    const struct machine *machine = operation->cluster->grid->machine;
    struct tcgen05_workspace *workspace = malloc(sizeof *workspace);
    if (workspace == NULL)
        return warp_fault(operation->warp, operation->in, operation->lane, REPORT_RESOURCES, "finds no host memory");
    trap t = TRAP_NONE;
    for (uint32_t c = 0; c < p->form->ctas; c++) {
        t = product_fetch(p, c, &mma->pipe, workspace);
        if (t != TRAP_NONE) break;
        tcgen05_multiply(p, machine->options.tensor_core, machine->device->sm, workspace);
        product_store(p, c, workspace);
    }
    free(workspace);
    *done = true;
    return t;
}

static const struct agent_kind kind = { .name = "tcgen05.mma", .engine = ENGINE_TENSOR,
                                        .may_complete = tensor_may_complete,
                                        .step = step, .complete = tensor_complete, .drop = tensor_drop };

/* The even CTA of a pair stands first. */
static trap find_ctas(const struct issue *i, struct tcgen05_product *p)
{
    struct cta *own = i->w->cta, *peer = NULL;
    if (p->form->ctas == 2 && (peer = tensor_peer(i->w, i->in)) == NULL) return TRAP_FAULT;
    p->cta[0] = own->rank % 2 == 0 || peer == NULL ? own : peer;
    p->cta[1] = p->cta[0] == own ? peer : own;
    return TRAP_NONE;
}

trap tcgen05_issue(struct warp *w, const struct insn *in, uint32_t lane, const struct tcgen05_instruction *x)
{
    const struct issue i = { w, in, lane, x };
    struct mma *mma = tensor_begin(w, in, lane, sizeof *mma, &kind, TENSOR_MMA, x->form.ctas);
    if (mma == NULL) return TRAP_FAULT;
    struct tcgen05_product *p = &mma->product;
    p->form = &x->form;
    p->scale_down = x->scale_down;
    p->accumulates = predicate_lanes(w, x->accumulate, 1u << lane) != 0;
    trap t = find_ctas(&i, p);
    if (t == TRAP_NONE) t = read_descriptors(&i, p);
    if (t == TRAP_NONE) t = read_places(&i, p);
    if (t == TRAP_NONE) t = read_masks(&i, p);
    mma->pipe.shape = p->shape.m << 16 | p->shape.n;
    if (t == TRAP_NONE) t = use_cells(&i, mma);
    if (t == TRAP_NONE) t = read_matrices(&i, p, tensor_token(&mma->pipe));
    if (t == TRAP_NONE) tensor_start(&mma->pipe);
    else tensor_abandon(&mma->pipe);
    return t;
}
