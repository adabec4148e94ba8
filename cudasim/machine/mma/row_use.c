/* Registers that belong to products under way, and registers that a product takes without a wgmma.fence (PTX ISA
 * 9.7.15.7.1, 9.7.15.7.3). */
#include "row_use.h"
#include "machine/core/report.h"

#include <stdlib.h>
#include <string.h>

bool rows_watch(struct warp *w)
{
    if (w->row_uses >= w->rows) return true;
    struct row_use *larger = realloc(w->row_use, w->rows * sizeof *larger);
    if (larger == NULL) return false;
    memset(larger + w->row_uses, 0, (w->rows - w->row_uses) * sizeof *larger);
    w->row_use = larger;
    w->row_uses = w->rows;
    return true;
}

static struct row_use *use_of(const struct warp *w, uint32_t base, uint32_t slot)
{
    const uint64_t row = (uint64_t)base + slot;
    return slot == 0 || row >= w->row_uses ? NULL : &w->row_use[row];
}

/* ---- other instructions ---- */

static trap report_load(struct warp *w, const struct insn *in, struct row_use *u)
{
    const uint32_t line = u->loading_line;
    const bool moved = u->copied != 0;
    u->loading_line = u->copied = 0; /* where it goes on, it is told once */
    return warp_breaks(w, in, NO_LANE, RULE_TENSOR_LOAD_WAIT,
                       moved ? "uses a value that the tcgen05.ld at PTX line %u loads and that was moved before it was "
                               "there; no tcgen05.wait::ld has waited for it"
                             : "uses a register that the tcgen05.ld at PTX line %u writes; no tcgen05.wait::ld has "
                               "waited for it",
                       line);
}

static void forget_copy(struct row_use *u, uint32_t lanes)
{
    u->copied &= ~lanes;
    if (u->copied == 0) u->loading_line = 0;
}

/* A row that a load writes, or whose value was moved from one: it may be moved, and a copy overwritten. */
static trap touch_load(struct warp *w, const struct insn *in, struct row_use *u, uint32_t lanes, bool written)
{
    const bool moves = (in->row->demands & MOVES) != 0;
    if (u->copied == 0) return moves && !written ? TRAP_NONE : report_load(w, in, u);
    if ((u->copied & lanes) == 0 || (moves && !written)) return TRAP_NONE;
    if (!written) return report_load(w, in, u);
    if (!moves) forget_copy(u, lanes);
    return TRAP_NONE;
}

static trap touch(struct warp *w, const struct insn *in, uint32_t slot, uint32_t lanes, uint32_t place)
{
    struct row_use *u = use_of(w, w->group->base, slot);
    if (u == NULL) return TRAP_NONE;
    if (u->pending != 0)
        return warp_breaks(w, in, NO_LANE, RULE_WGMMA_REGISTERS,
                          "uses a register that %s the wgmma.mma_async at PTX line %u; no wgmma.wait_group has waited "
                          "for it",
                          u->shape != 0 ? "is an accumulator of" : "holds elements of A for", u->pending_line);
    u->touched_fence = w->wgmma_fences;
    u->touched_line = in->line;
    return u->loading_line == 0 ? TRAP_NONE : touch_load(w, in, u, lanes, row_writes(in->row, place));
}

static trap touch_operand(struct warp *w, const struct insn *in, const struct operand *o, uint32_t lanes,
                          uint32_t place)
{
    const bool is_row = o->kind == OPERAND_REGISTER || (o->kind == OPERAND_ADDRESS && o->based);
    if (is_row) return touch(w, in, o->slot, lanes, place);
    trap t = TRAP_NONE;
    if (o->kind == OPERAND_VECTOR)
        for (uint32_t i = 0; i < o->count && t == TRAP_NONE; i++)
            t = touch_operand(w, in, &o->element[i], lanes, place);
    return t;
}

/* ---- mov ---- */

/* The registers of an operand: its own, or those of a vector; NULL where the i-th is none. */
static struct row_use *row_of(const struct warp *w, const struct operand *o, uint32_t i)
{
    const struct operand *one = o->kind == OPERAND_VECTOR ? &o->element[i] : o;
    return one->kind == OPERAND_REGISTER ? use_of(w, w->group->base, one->slot) : NULL;
}
static uint32_t rows_in(const struct operand *o) { return o->kind == OPERAND_VECTOR ? o->count : 1; }

/* The marks of what is moved go on with the value. */
static void move_marks(const struct warp *w, const struct insn *in, uint32_t lanes)
{
    const struct operand *to = &in->operand[0], *from = &in->operand[1];
    uint32_t line = 0, copied = 0;
    for (uint32_t i = 0; i < rows_in(from); i++) {
        const struct row_use *u = row_of(w, from, i);
        if (u == NULL || u->loading_line == 0) continue;
        line = u->loading_line;
        copied |= u->copied == 0 ? lanes : u->copied & lanes;
    }
    for (uint32_t i = 0; i < rows_in(to); i++) {
        struct row_use *u = row_of(w, to, i);
        if (u == NULL) continue;
        if (u->loading_line != 0) forget_copy(u, lanes);
        if (copied == 0) continue;
        u->copied |= copied;
        u->loading_line = line;
    }
}

trap rows_touch(struct warp *w, const struct insn *in, uint32_t lanes)
{
    trap t = TRAP_NONE;
    for (uint32_t i = in->operands; i-- != 0 && t == TRAP_NONE;) /* what is read before what is written */
        t = touch_operand(w, in, &in->operand[i], lanes, i);
    if (t == TRAP_NONE && (in->row->demands & MOVES) != 0) move_marks(w, in, lanes);
    return t;
}

/* ---- tcgen05.ld ---- */

trap rows_load(struct warp *w, const struct insn *in, const struct operand *vector)
{
    if (!rows_watch(w)) return warp_fault(w, in, NO_LANE, REPORT_RESOURCES, "finds no host memory");
    for (uint32_t i = 0; i < vector->count; i++) {
        struct row_use *u = use_of(w, w->group->base, vector->element[i].slot);
        if (u != NULL) u->loading_line = in->line, u->copied = 0;
    }
    return TRAP_NONE;
}

void rows_loaded(struct warp *w)
{
    for (uint32_t i = 0; i < w->row_uses; i++) w->row_use[i].loading_line = w->row_use[i].copied = 0;
}

/* ---- products ---- */

static trap unfenced(struct warp *w, const struct insn *in, const char *what, const char *how, uint32_t line)
{
    return warp_breaks(w, in, NO_LANE, RULE_WGMMA_REGISTERS,
                      "takes %s in a register that %s at PTX line %u; no wgmma.fence lies between", what, how, line);
}

/* Products of one shape may follow each other in the same accumulators, and may read the same A, with no fence
 * between. */
static trap claim(struct warp *w, const struct insn *in, const struct operand *o, uint32_t shape)
{
    struct row_use *u = use_of(w, w->group->base, o->slot);
    if (u == NULL) return TRAP_NONE;
    const char *what = shape != 0 ? "an accumulator" : "elements of A";
    if (u->pending != 0 && (u->shape == 0) != (shape == 0))
        return warp_breaks(
            w, in, NO_LANE, RULE_WGMMA_REGISTERS,
            "takes %s in a register that %s the wgmma.mma_async at PTX line %u; no wgmma.wait_group has waited for it",
            what, u->shape != 0 ? "is an accumulator of" : "holds elements of A for", u->pending_line);
    if (u->touched_fence == w->wgmma_fences) return unfenced(w, in, what, "was used", u->touched_line);
    if (u->product_fence == w->wgmma_fences && u->shape != shape)
        return unfenced(w, in, what,
                        u->shape == 0 ? "holds A of a product"
                        : shape == 0  ? "is an accumulator of a product"
                                      : "is an accumulator of a product of another shape",
                        u->product_line);
    return TRAP_NONE;
}

static void mark(struct warp *w, const struct insn *in, const struct operand *o, uint32_t shape)
{
    struct row_use *u = use_of(w, w->group->base, o->slot);
    if (u == NULL) return;
    u->product_fence = w->wgmma_fences;
    u->product_line = u->pending_line = in->line;
    u->shape = shape;
    u->pending++;
}

static uint32_t shape_of(const struct wgmma_form *form) { return form->n << 16 | form->k; }

trap rows_claim(struct warp *w, const struct insn *in, const struct wgmma_form *form)
{
    const uint32_t shape = shape_of(form), a_count = form->a_in_registers ? A_REGISTERS : 0;
    if (w->wgmma_fences == 0)
        return warp_breaks(w, in, NO_LANE, RULE_WGMMA_REGISTERS,
                           "is the warp's first, and no wgmma.fence lies before it");
    trap t = TRAP_NONE;
    for (uint32_t i = 0; i < a_count && t == TRAP_NONE; i++) t = claim(w, in, &form->a->element[i], 0);
    for (uint32_t i = 0; i < form->d->count && t == TRAP_NONE; i++) t = claim(w, in, &form->d->element[i], shape);
    if (t != TRAP_NONE) return t;
    for (uint32_t i = 0; i < a_count; i++) mark(w, in, &form->a->element[i], 0);
    for (uint32_t i = 0; i < form->d->count; i++) mark(w, in, &form->d->element[i], shape);
    return TRAP_NONE;
}

void rows_release(struct warp *w, const struct wgmma_part *part)
{
    const struct wgmma_form *form = part->in->data;
    for (uint32_t i = 0; form->a_in_registers && i < A_REGISTERS; i++) {
        struct row_use *u = use_of(w, part->base, form->a->element[i].slot);
        if (u != NULL && u->pending != 0) u->pending--;
    }
    for (uint32_t i = 0; i < form->d->count; i++) {
        struct row_use *u = use_of(w, part->base, form->d->element[i].slot);
        if (u != NULL && u->pending != 0) u->pending--;
    }
}
