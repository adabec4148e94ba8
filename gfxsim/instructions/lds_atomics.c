/* Atomic operations on LDS.  They are no races among each other. */
#include "families.h"
#include "lds_access.h"
#include "machine/events.h"
#include "machine/lds.h"
#include "machine/registers.h"
#include "vector_memory.h"

#include <string.h>

/* A byte is known afterwards where it was and those of the data are; an exchange needs only the data. */
static void combine(struct wave *w, const struct insn *in, uint32_t lane, uint32_t at, const struct operand *data)
{
    struct lds *l = &w->group->lds;
    const uint32_t bytes = in->row->detail & ACCESS_BYTES;
    const enum atomic how = (enum atomic)(in->row->detail >> 16);
    uint64_t old = 0;
    memcpy(&old, l->data + at, bytes);
    /* of a comparison the first data are compared, the second ones written */
    const uint64_t first = register_value(w, operand_row(&data[0]), lane, bytes),
                   value = how == ATOMIC_COMPARE ? register_value(w, operand_row(&data[1]), lane, bytes) : first,
                   now = atomic_combined(how, bytes, old, value, first);
    memcpy(l->data + at, &now, bytes);
    bool known = true;
    for (uint32_t b = 0; b < bytes; b++) {
        known &= how == ATOMIC_SWAP || l->defined[at + b];
        known &= w->defined[operand_row(&data[0]) + b / 4][b % 4] >> lane & 1;
        if (how == ATOMIC_COMPARE) known &= w->defined[operand_row(&data[1]) + b / 4][b % 4] >> lane & 1;
    }
    memset(l->defined + at, known, bytes);
}

static trap ds_atomic(struct wave *w, const struct insn *in)
{
    uint32_t address[LANES];
    const bool returns = in->operand[0].role == 'd';
    const struct operand *a = &in->operand[returns ? 1 : 0], *data = a + 1;
    const uint32_t bytes = in->row->detail & ACCESS_BYTES;
    if (!lds_addresses(w, in, a, address) || (returns && !vgpr_loadable(w, in, &in->operand[0], COUNTER_DS)))
        return TRAP_FAULT;
    for (const struct operand *o = data; o < in->operand + in->operands; o++)
        if (!vgpr_readable(w, in, o, READER_MEMORY)) return TRAP_FAULT;
    struct event *e = event_new(w, in, COUNTER_DS, returns ? EVENT_DS_READ : EVENT_DS_WRITE);
    if (e == NULL || (e->serial = lds_event(w, in, false)) == 0) return TRAP_FAULT;
    lds_is_atomic(w, e->serial);
    if (returns) e->first = (uint16_t)operand_row(&in->operand[0]), e->dwords = in->operand[0].dwords;
    if (!lds_touch(w, in, address, (uint32_t)in->offset, bytes, true, e->serial)) return TRAP_FAULT;
    FOR_LANES(lane, e->lanes) {
        const uint32_t at = address[lane] + (uint32_t)in->offset;
        if (returns) lds_take(&w->group->lds, e, (uint32_t)lane, at, bytes, 0);
        combine(w, in, (uint32_t)lane, at, data);
    }
    event_issued(w, e);
    return TRAP_NONE;
}

/* An operation with and without the value from before: of 32 bits, of 64 bits. */
#define RUN(bytes, how) 0, ATOMIC_DETAIL(bytes, how), ds_atomic, NULL
#define FOUR(name, type, opcode, how) \
    { "ds_" name "_" type, opcode, "a1 s1", RUN(4, how) }, \
    { "ds_" name "_rtn_" type, opcode + 32, "d1 a1 s1", RUN(4, how) }
#define EIGHT(name, type, opcode, how) \
    { "ds_" name "_" type, opcode, "a1 s2", RUN(8, how) }, \
    { "ds_" name "_rtn_" type, opcode + 32, "d2 a1 s2", RUN(8, how) }
#define BOTH(name, letter, opcode, how) \
    FOUR(name, letter "32", opcode, how), EIGHT(name, letter "64", opcode + 64, how)
static const struct row rows[] = {
    BOTH("add", "u", 0, ATOMIC_ADD), BOTH("sub", "u", 1, ATOMIC_SUB), BOTH("inc", "u", 3, ATOMIC_INC),
    BOTH("dec", "u", 4, ATOMIC_DEC), BOTH("min", "i", 5, ATOMIC_SMIN), BOTH("max", "i", 6, ATOMIC_SMAX),
    BOTH("min", "u", 7, ATOMIC_UMIN), BOTH("max", "u", 8, ATOMIC_UMAX), BOTH("and", "b", 9, ATOMIC_AND),
    BOTH("or", "b", 10, ATOMIC_OR), BOTH("xor", "b", 11, ATOMIC_XOR),
    { "ds_cmpst_b32", 16, "a1 s1 s1", RUN(4, ATOMIC_COMPARE) },
    { "ds_cmpst_rtn_b32", 48, "d1 a1 s1 s1", RUN(4, ATOMIC_COMPARE) },
    { "ds_cmpst_b64", 80, "a1 s2 s2", RUN(8, ATOMIC_COMPARE) },
    { "ds_cmpst_rtn_b64", 112, "d2 a1 s2 s2", RUN(8, ATOMIC_COMPARE) },
    { "ds_wrxchg_rtn_b32", 45, "d1 a1 s1", RUN(4, ATOMIC_SWAP) },
    { "ds_wrxchg_rtn_b64", 109, "d2 a1 s2", RUN(8, ATOMIC_SWAP) },
    FOUR("min", "f32", 18, ATOMIC_MIN_FLOAT), FOUR("max", "f32", 19, ATOMIC_MAX_FLOAT),
    FOUR("add", "f32", 21, ATOMIC_ADD_FLOAT), EIGHT("min", "f64", 82, ATOMIC_MIN_FLOAT),
    EIGHT("max", "f64", 83, ATOMIC_MAX_FLOAT), EIGHT("add", "f64", 92, ATOMIC_ADD_FLOAT),
    { "ds_pk_add_f16", 23, "a1 s1", RUN(4, ATOMIC_ADD_F16) },
    { "ds_pk_add_bf16", 24, "a1 s1", RUN(4, ATOMIC_ADD_BF16) },
    { "ds_pk_add_rtn_f16", 183, "d1 a1 s1", RUN(4, ATOMIC_ADD_F16) },
    { "ds_pk_add_rtn_bf16", 184, "d1 a1 s1", RUN(4, ATOMIC_ADD_BF16) },
};
const struct family family_lds_atomics = FAMILY("Data Share Operations", FORMAT_DS, rows);
