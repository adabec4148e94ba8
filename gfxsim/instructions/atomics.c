/* Atomic operations: what they do, and those on memory (global, buffer, flat).  Those on LDS are in lds_atomics.c. */
#include "families.h"
#include "machine/events.h"
#include "machine/registers.h"
#include "matrix/elements.h"
#include "vector_memory.h"

#include <math.h>
#include <string.h>

/* ---- what they do ---- */

static uint32_t two_halves(uint32_t a, uint32_t b, bool brain)
{
    uint32_t result = 0;
    for (int i = 0; i < 32; i += 16) {
        const uint32_t x = a >> i & 0xffff, y = b >> i & 0xffff;
        if (brain) {
            const uint32_t fx = x << 16, fy = y << 16;
            float p, q;
            memcpy(&p, &fx, 4);
            memcpy(&q, &fy, 4);
            result |= (uint32_t)float_to_bfloat(p + q) << i;
        } else result |= (uint32_t)float_to_half(half_to_float((uint16_t)x) + half_to_float((uint16_t)y)) << i;
    }
    return result;
}

static double combined_float(enum atomic how, double old, double value)
{
    if (how == ATOMIC_ADD_FLOAT) return old + value;
    return how == ATOMIC_MIN_FLOAT ? fmin(old, value) : fmax(old, value);
}

static uint64_t combined_floats(enum atomic how, uint32_t bytes, uint64_t old, uint64_t value)
{
    if (bytes == 8) {
        double a, b;
        memcpy(&a, &old, 8);
        memcpy(&b, &value, 8);
        a = combined_float(how, a, b);
        memcpy(&old, &a, 8);
        return old;
    }
    const uint32_t old32 = (uint32_t)old, value32 = (uint32_t)value;
    float a, b;
    memcpy(&a, &old32, 4);
    memcpy(&b, &value32, 4);
    a = how == ATOMIC_ADD_FLOAT ? a + b : (float)combined_float(how, a, b);
    uint32_t bits;
    memcpy(&bits, &a, 4);
    return bits;
}

uint64_t atomic_combined(enum atomic how, uint32_t bytes, uint64_t old, uint64_t value, uint64_t compare)
{
    const int64_t so = bytes == 8 ? (int64_t)old : (int32_t)old, sv = bytes == 8 ? (int64_t)value : (int32_t)value;
    switch (how) {
    case ATOMIC_SWAP: return value;
    case ATOMIC_COMPARE: return old == compare ? value : old;
    case ATOMIC_ADD: return old + value;
    case ATOMIC_SUB: return old - value;
    case ATOMIC_SMIN: return so < sv ? old : value;
    case ATOMIC_UMIN: return old < value ? old : value;
    case ATOMIC_SMAX: return so > sv ? old : value;
    case ATOMIC_UMAX: return old > value ? old : value;
    case ATOMIC_AND: return old & value;
    case ATOMIC_OR: return old | value;
    case ATOMIC_XOR: return old ^ value;
    case ATOMIC_INC: return old >= value ? 0 : old + 1;
    case ATOMIC_DEC: return old == 0 || old > value ? value : old - 1;
    case ATOMIC_ADD_F16: case ATOMIC_ADD_BF16:
        return two_halves((uint32_t)old, (uint32_t)value, how == ATOMIC_ADD_BF16);
    default: return combined_floats(how, bytes, old, value);
    }
}

/* ---- on memory ---- */

static void combine(struct wave *w, const struct insn *in, const struct target *t, uint32_t row, struct event *e)
{
    const uint32_t bytes = in->row->detail & ACCESS_BYTES;
    const enum atomic how = (enum atomic)(in->row->detail >> 16);
    FOR_LANES(l, wave_exec(w)) {
        if (t->dwords[l] == 0) continue;
        uint8_t *at = (uint8_t *)(uintptr_t)t->address[l];
        uint64_t old = 0;
        memcpy(&old, at, bytes);
        e->data[0][l] = (uint32_t)old, e->data[1][l] = (uint32_t)(old >> 32);
        const uint64_t value = register_value(w, row, (uint32_t)l, bytes),
                       compare = how == ATOMIC_COMPARE ? register_value(w, row + bytes / 4, (uint32_t)l, bytes) : 0,
                       now = atomic_combined(how, bytes, old, value, compare);
        memcpy(at, &now, bytes);
    }
}

trap atomic_run(struct wave *w, const struct insn *in)
{
    const bool buffer = in->encoding == FORMAT_BUFFER;
    const uint32_t bytes = in->row->detail & ACCESS_BYTES;
    const struct operand *s = operand_of(in, 's');
    struct operand back = *s;                                             /* a buffer's come where the data were */
    back.dwords = (uint8_t)(bytes / 4);
    const struct operand *d = buffer ? (in->sc0 ? &back : NULL) : operand_of(in, 'd');
    struct target t;
    if (!vgpr_readable(w, in, s, READER_MEMORY) || !find_target(w, in, bytes, true, &t)
        || !vgpr_defined(w, in, s, wave_exec(w), 4u * s->dwords, "what it combines")
        || (d != NULL && !vgpr_loadable(w, in, d, COUNTER_VM)))
        return TRAP_FAULT;
    struct event *e = event_new(w, in, COUNTER_VM, d != NULL ? EVENT_DS_READ : EVENT_STORE);
    if (e == NULL) return TRAP_FAULT;
    if (d != NULL) e->first = (uint16_t)operand_row(d), e->dwords = d->dwords;
    memset(e->defined, 0xff, 2 * sizeof e->defined[0]);
    memset(e->data, 0, 2 * sizeof e->data[0]);
    pthread_mutex_lock(&w->group->grid->atomics);
    combine(w, in, &t, operand_row(s), e);
    pthread_mutex_unlock(&w->group->grid->atomics);
    event_issued(w, e);
    return TRAP_NONE;
}

/* Opcodes of 32 and of 64 bits are 32 apart. */
#define FOUR(name, opcode, how) \
    { "global_atomic_" name, opcode, "d1 a1 s1 b2", ROW_RETURNS, ATOMIC_DETAIL(4, how), atomic_run, NULL }
#define EIGHT(name, opcode, how) \
    { "global_atomic_" name, opcode, "d2 a1 s2 b2", ROW_RETURNS, ATOMIC_DETAIL(8, how), atomic_run, NULL }
#define BOTH(name, opcode, how) FOUR(name, opcode, how), EIGHT(name "_x2", opcode + 32, how)
static const struct row rows_global[] = {
    BOTH("swap", 64, ATOMIC_SWAP),
    { "global_atomic_cmpswap", 65, "d1 a1 s2 b2", ROW_RETURNS, ATOMIC_DETAIL(4, ATOMIC_COMPARE), atomic_run, NULL },
    { "global_atomic_cmpswap_x2", 97, "d2 a1 s4 b2", ROW_RETURNS, ATOMIC_DETAIL(8, ATOMIC_COMPARE), atomic_run, NULL },
    BOTH("add", 66, ATOMIC_ADD), BOTH("sub", 67, ATOMIC_SUB), BOTH("smin", 68, ATOMIC_SMIN),
    BOTH("umin", 69, ATOMIC_UMIN), BOTH("smax", 70, ATOMIC_SMAX), BOTH("umax", 71, ATOMIC_UMAX),
    BOTH("and", 72, ATOMIC_AND), BOTH("or", 73, ATOMIC_OR), BOTH("xor", 74, ATOMIC_XOR), BOTH("inc", 75, ATOMIC_INC),
    BOTH("dec", 76, ATOMIC_DEC),
    FOUR("add_f32", 77, ATOMIC_ADD_FLOAT), FOUR("pk_add_f16", 78, ATOMIC_ADD_F16),
    EIGHT("add_f64", 79, ATOMIC_ADD_FLOAT), EIGHT("min_f64", 80, ATOMIC_MIN_FLOAT),
    EIGHT("max_f64", 81, ATOMIC_MAX_FLOAT), FOUR("pk_add_bf16", 82, ATOMIC_ADD_BF16),
};
const struct family family_global_atomics = FAMILY("Flat Memory Instructions", FORMAT_GLOBAL, rows_global);

#define BUFFER(name, opcode, how) \
    { "buffer_atomic_" name, opcode, "s1 a1 b4 o1", 0, ATOMIC_DETAIL(4, how), atomic_run, NULL }
static const struct row rows_buffer[] = {
    BUFFER("swap", 64, ATOMIC_SWAP), BUFFER("add", 66, ATOMIC_ADD), BUFFER("sub", 67, ATOMIC_SUB),
    BUFFER("smin", 68, ATOMIC_SMIN), BUFFER("umin", 69, ATOMIC_UMIN), BUFFER("smax", 70, ATOMIC_SMAX),
    BUFFER("umax", 71, ATOMIC_UMAX), BUFFER("and", 72, ATOMIC_AND), BUFFER("or", 73, ATOMIC_OR),
    BUFFER("xor", 74, ATOMIC_XOR), BUFFER("add_f32", 77, ATOMIC_ADD_FLOAT), BUFFER("pk_add_f16", 78, ATOMIC_ADD_F16),
    BUFFER("pk_add_bf16", 82, ATOMIC_ADD_BF16),
};
const struct family family_buffer_atomics = FAMILY("Vector Memory Operations", FORMAT_BUFFER, rows_buffer);
