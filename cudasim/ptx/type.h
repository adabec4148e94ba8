/* Types of PTX.  One row each: the only place that knows a type's name, width and kind. */
#ifndef CUDASIM_PTX_TYPE_H
#define CUDASIM_PTX_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* kind: u unsigned, s signed, b bits, f float, p predicate, x packed or small numbers, held in a .b register of `bits`
 * bits */
/*        id       name       bits kind */
#define PTX_TYPES(X) \
        X(U8,      "u8",      8,   'u') \
        X(U16,     "u16",     16,  'u') \
        X(U32,     "u32",     32,  'u') \
        X(U64,     "u64",     64,  'u') \
        X(S8,      "s8",      8,   's') \
        X(S16,     "s16",     16,  's') \
        X(S32,     "s32",     32,  's') \
        X(S64,     "s64",     64,  's') \
        X(B8,      "b8",      8,   'b') \
        X(B16,     "b16",     16,  'b') \
        X(B32,     "b32",     32,  'b') \
        X(B64,     "b64",     64,  'b') \
        X(B128,    "b128",    128, 'b') \
        X(F16,     "f16",     16,  'f') \
        X(F16X2,   "f16x2",   32,  'f') \
        X(BF16,    "bf16",    16,  'f') \
        X(BF16X2,  "bf16x2",  32,  'f') \
        X(F32,     "f32",     32,  'f') \
        X(F32X2,   "f32x2",   64,  'x') \
        X(F64,     "f64",     64,  'f') \
        X(PRED,    "pred",    1,   'p') \
        X(TF32,    "tf32",    32,  'x') \
        X(U16X2,   "u16x2",   32,  'x') \
        X(S16X2,   "s16x2",   32,  'x') \
        X(E4M3,    "e4m3",    8,   'x') \
        X(E5M2,    "e5m2",    8,   'x') \
        X(E4M3X2,  "e4m3x2",  16,  'x') \
        X(E5M2X2,  "e5m2x2",  16,  'x') \
        X(E2M1X2,  "e2m1x2",  8,   'x') \
        X(E2M3X2,  "e2m3x2",  16,  'x') \
        X(E3M2X2,  "e3m2x2",  16,  'x') \
        X(E4M3X4,  "e4m3x4",  32,  'x') \
        X(E5M2X4,  "e5m2x4",  32,  'x') \
        X(E2M1X4,  "e2m1x4",  16,  'x') \
        X(E2M3X4,  "e2m3x4",  32,  'x') \
        X(E3M2X4,  "e3m2x4",  32,  'x') \
        X(UE8M0X2, "ue8m0x2", 16,  'x') \
        X(UE8M0,   "ue8m0",   8,   'x') \
        X(UE4M3,   "ue4m3",   8,   'x') \
        X(E2M1,    "e2m1",    8,   'x') \
        X(E2M3,    "e2m3",    8,   'x') \
        X(E3M2,    "e3m2",    8,   'x') \
        X(S4,      "s4",      8,   'x') \
        X(U4,      "u4",      8,   'x') \
        X(B1,      "b1",      1,   'x')

enum ptx_type {
    T_NONE,
#define X(id, name, bits, kind) T_##id,
    PTX_TYPES(X)
#undef X
    PTX_TYPE_COUNT
};

struct type_info { const char *name; uint16_t bits; char kind; };
extern const struct type_info type_table[PTX_TYPE_COUNT];

static inline uint32_t type_bits(enum ptx_type type) { return type_table[type].bits; }
static inline uint32_t type_bytes(enum ptx_type type) { return (uint32_t)(type_table[type].bits + 7) / 8; }
static inline char type_kind(enum ptx_type type) { return type_table[type].kind; }
static inline const char *type_name(enum ptx_type type) { return type_table[type].name; }
static inline uint64_t bits_mask(uint32_t bits) { return bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1; }

/* The type called so (without the dot), or T_NONE. */
enum ptx_type type_named(const char *name, size_t length);

/* Whether an operand declared as `declared` may stand where an instruction wants `wanted` ("Operand Type Checking");
 * wider: ld, st and cvt take registers wider than their type ("Operand Size Exceeding Instruction-Type Size"). */
bool type_accepts(enum ptx_type wanted, enum ptx_type declared, bool wider);

#endif
