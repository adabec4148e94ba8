/* Reductions of one element: integers, bits, floats. */
#include "reduction.h"
#include "memory.h"
#include "instructions/arithmetic/real.h"

enum reduction reduction_of(const struct insn *in)
{
    static const char *const words[] = {
        ".add", ".min", ".max", ".inc", ".dec", ".and", ".or", ".xor", ".exch", ".cas"
    };
    for (int i = 0; i < REDUCE_CAS; i++)
        if (insn_has(in, words[i])) return (enum reduction)i;
    return REDUCE_CAS;
}

/* NaN as hardware has it: in global memory the operand's before the old value's, as it is; in shared memory the old
 * value's before the operand's, quiet. */
static uint64_t nan_of_sum(bool shared, uint64_t old, uint64_t b)
{
    if (!shared) return is_nan64(b) ? b : old;
    return (is_nan64(old) ? old : b) | UINT64_C(1) << 51;
}

static uint64_t add_float(enum ptx_type type, bool ftz, bool shared, uint64_t a, uint64_t b)
{
    if (type == T_F64 && (is_nan64(a) || is_nan64(b))) return nan_of_sum(shared, a, b);
    const struct real_format *f = real_format_of(type);
    const struct real x = real_unpack(f, a, ftz), y = real_unpack(f, b, ftz);
    const struct real r = real_add(&x, &y, ROUND_RN);
    return real_pack(f, &r, ROUND_RN, ftz);
}

/* f16, bf16 minimum and maximum: the other operand where one is NaN. */
static uint64_t pick_half(enum ptx_type type, uint64_t a, uint64_t b, bool largest)
{
    const uint64_t infinity = type == T_F16 ? 0x7c00 : 0x7f80;
    const bool nan_a = (a & 0x7fff) > infinity, nan_b = (b & 0x7fff) > infinity;
    if (nan_a && nan_b) return 0x7fff;
    if (nan_a) return b;
    if (nan_b) return a;
    const int32_t x = (a & 0x8000) != 0 ? -1 - (int32_t)(a & 0x7fff) : (int32_t)a,
                  y = (b & 0x8000) != 0 ? -1 - (int32_t)(b & 0x7fff) : (int32_t)b;
    return (x < y) != largest ? a : b;
}

static uint64_t float_result(struct reducer r, uint64_t a, uint64_t b)
{
    if (r.type == T_F16X2 || r.type == T_BF16X2) {
        const struct reducer half = { r.operation, r.type == T_F16X2 ? T_F16 : T_BF16, r.ftz, r.shared };
        return float_result(half, a & 0xffff, b & 0xffff)
               | float_result(half, a >> 16 & 0xffff, b >> 16 & 0xffff) << 16;
    }
    if (r.operation == REDUCE_ADD) return add_float(r.type, r.ftz, r.shared, a, b);
    return pick_half(r.type, a, b, r.operation == REDUCE_MAX);
}

/* old, operand (and for cas the new value): what is stored. */
static uint64_t result_of(struct reducer r, uint64_t old, uint64_t b, uint64_t c)
{
    const uint32_t bits = type_bits(r.type);
    const bool is_signed = type_kind(r.type) == 's';
    if (type_kind(r.type) == 'f' && r.operation < REDUCE_EXCH) return float_result(r, old, b);
    switch (r.operation) {
    case REDUCE_ADD: return old + b;
    case REDUCE_MIN: return (is_signed ? sign_extend(old, bits) < sign_extend(b, bits) : old < b) ? old : b;
    case REDUCE_MAX: return (is_signed ? sign_extend(old, bits) > sign_extend(b, bits) : old > b) ? old : b;
    case REDUCE_INC: return old >= b ? 0 : old + 1;
    case REDUCE_DEC: return old == 0 || old > b ? b : old - 1;
    case REDUCE_AND: return old & b;
    case REDUCE_OR: return old | b;
    case REDUCE_XOR: return old ^ b;
    case REDUCE_EXCH: return b;
    default: return old == b ? c : old;
    }
}

uint64_t reduction_update(struct reducer r, uint8_t *host, uint64_t b, uint64_t c)
{
    const uint32_t bytes = type_bytes(r.type);
    uint64_t old = load_bytes(host, bytes);
    for (;;) {
        const uint64_t wanted = result_of(r, old, b, c) & bits_mask(8 * bytes);
        bool done;
        if (bytes == 2) {
            uint16_t seen = (uint16_t)old;
            done = __atomic_compare_exchange_n((uint16_t *)(void *)host, &seen, (uint16_t)wanted, false,
                                               __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
            if (!done) old = seen;
        } else if (bytes == 4) {
            uint32_t seen = (uint32_t)old;
            done = __atomic_compare_exchange_n((uint32_t *)(void *)host, &seen, (uint32_t)wanted, false,
                                               __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
            if (!done) old = seen;
        } else {
            done = __atomic_compare_exchange_n((uint64_t *)(void *)host, &old, wanted, false, __ATOMIC_SEQ_CST,
                                               __ATOMIC_SEQ_CST);
        }
        if (done) return old;
    }
}
