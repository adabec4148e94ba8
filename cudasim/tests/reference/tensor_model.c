#include "tensor_model.h"

#include <string.h>

/* CUtensorMapDataType: u8 u16 u32 s32 u64 s64 f16 f32 f64 bf16 f32.ftz tf32 tf32.ftz, then the three of less than a
 * byte. */
enum { TYPE_TF32 = 11, TYPE_TF32_FTZ = 12, TYPE_U4_PACKED = 13, TYPE_U4_PADDED = 14, TYPE_U6_PADDED = 15 };
static const uint8_t bits_of[16] = { 8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6 };

uint32_t model_bits(uint32_t type) { return bits_of[type]; }

/* Which 16-byte chunk of 128 bytes of data lies at each place of 128 bytes of shared memory, by row: tables of PTX ISA
 * 5.5.7. */
static const char *const pattern[7][8] = {
    { "01234567", "01234567", "01234567", "01234567", "01234567", "01234567", "01234567", "01234567" },
    { "01234567", "10325476", "01234567", "10325476", "01234567", "10325476", "01234567", "10325476" },
    { "01234567", "10325476", "23016745", "32107654", "01234567", "10325476", "23016745", "32107654" },
    { "01234567", "10325476", "23016745", "32107654", "45670123", "54761032", "67452301", "76543210" },
    { "01234567", "23016745", "45670123", "67452301", "01234567", "23016745", "45670123", "67452301" },
    { "01234567", "23016745", "45670123", "67452301", "01234567", "23016745", "45670123", "67452301" },
    { "01234567", "45670123", "01234567", "45670123", "01234567", "45670123", "01234567", "45670123" },
};
enum { SWIZZLE_FLIPPED = 5 };

static uint32_t place_of(uint32_t swizzle, uint32_t address)
{
    const char *row = pattern[swizzle][address / 128 % 8];
    const uint32_t place = (uint32_t)(strchr(row, (char)('0' + address / 16 % 8)) - row);
    const uint32_t low = swizzle == SWIZZLE_FLIPPED && address / 128 % 2 == 1 ? (address % 16 + 8) % 16 : address % 16;
    return address / 128 * 128 + place * 16 + low;
}

static uint32_t elements(const struct tensor_case *c, uint32_t i)
{
    if (i == 0) return c->box[0];
    if (c->gathers) return 4;
    return (c->box[i] + c->step[i] - 1) / c->step[i];
}

static uint32_t rows(const struct tensor_case *c)
{
    uint32_t count = 1;
    for (uint32_t i = 1; i < c->rank; i++) count *= elements(c, i);
    return count;
}

static uint32_t pitch(const struct tensor_case *c)
{
    static const uint32_t span[7] = { 0, 32, 64, 128, 128, 128, 128 };
    if (c->swizzle != 0) return span[c->swizzle];
    return c->type >= TYPE_U4_PADDED ? c->box[0] : c->box[0] * bits_of[c->type] / 8;
}

uint32_t model_transaction_bytes(const struct tensor_case *c) { return rows(c) * (c->box[0] * bits_of[c->type] / 8); }
uint32_t model_shared_bytes(const struct tensor_case *c) { return rows(c) * pitch(c); }
uint64_t model_global_bytes(const struct tensor_case *c)
{
    uint64_t bytes = (c->dim[0] * bits_of[c->type] + 7) / 8;
    for (uint32_t i = 1; i < c->rank; i++) bytes += (c->dim[i] - 1) * c->stride[i - 1];
    return bytes;
}

/* Bit `at` of shared memory, before swizzling, for element `e` of a row. */
static uint64_t shared_bit(const struct tensor_case *c, uint32_t row, uint32_t e, bool stores)
{
    const uint64_t start = (uint64_t)row * pitch(c) * 8;
    if (c->type == TYPE_U4_PADDED) return start + e / 16 * 128 + e % 16 * 4;
    if (c->type == TYPE_U6_PADDED) return start + e / 16 * 128 + e % 16 * (stores ? 8 : 6);
    return start + (uint64_t)e * bits_of[c->type];
}

static uint32_t get_bit(const uint8_t *bytes, uint64_t at) { return bytes[at / 8] >> at % 8 & 1; }
static void put_bit(uint8_t *bytes, uint64_t at, uint32_t bit)
{
    bytes[at / 8] = (uint8_t)((bytes[at / 8] & ~(1u << at % 8)) | bit << at % 8);
}
static uint64_t get_bits(const uint8_t *bytes, uint64_t at, uint32_t count)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < count; i++) value |= (uint64_t)get_bit(bytes, at + i) << i;
    return value;
}

static uint64_t swizzled(const struct tensor_case *c, uint32_t base, uint64_t bit)
{
    return (uint64_t)(place_of(c->swizzle, base + (uint32_t)(bit / 8)) - base) * 8 + bit % 8;
}

/* Where element e of a row lies in global memory, in bits; false: outside of the tensor. */
static bool global_bit(const struct tensor_case *c, uint32_t row, uint32_t e, uint64_t *bit, uint64_t *row_bit)
{
    uint64_t at = 0;
    bool inside = true;
    for (uint32_t i = 1, rest = row; i < c->rank; i++) {
        const uint32_t j = rest % elements(c, i);
        rest /= elements(c, i);
        const int64_t x = c->gathers ? c->start[1 + j] : (int64_t)c->start[i] + (int64_t)j * c->step[i];
        if (x < 0 || x >= (int64_t)c->dim[i]) inside = false;
        else at += (uint64_t)x * c->stride[i - 1] * 8;
    }
    const int64_t x = (int64_t)c->start[0] + e;
    *row_bit = at;
    if (!inside || x < 0) return false;
    *bit = at + (uint64_t)x * bits_of[c->type];
    return x < (int64_t)c->dim[0];
}

static uint32_t nearest_tf32(uint32_t bits)
{
    const uint32_t rest = bits & 0x1fff, kept = bits - rest;
    if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fffe000;
    if (rest > 0x1000 || (rest == 0x1000 && (kept & 0x2000) != 0)) return kept + 0x2000;
    return kept;
}

void model_load(const struct tensor_case *c, const uint8_t *global, uint8_t *shared, uint32_t base)
{
    const uint32_t width = bits_of[c->type];
    for (uint32_t row = 0; row < rows(c); row++)
        for (uint32_t e = 0; e < c->box[0]; e++) {
            uint64_t from, row_bit, value = c->nan_fill ? UINT64_C(0x7ff77ff77ff77ff7) : 0;
            if (global_bit(c, row, e, &from, &row_bit)) {
                value = get_bits(global, from, width);
                if (c->type == TYPE_TF32 || c->type == TYPE_TF32_FTZ) value = nearest_tf32((uint32_t)value);
            }
            for (uint32_t i = 0; i < width; i++)
                put_bit(shared, swizzled(c, base, shared_bit(c, row, e, false) + i), (uint32_t)(value >> i & 1));
        }
}

uint64_t model_copy(uint32_t operation, uint32_t type, uint64_t old, uint64_t value)
{
    (void)operation, (void)type, (void)old;
    return value;
}

/* Dimension 0 is clipped at the next multiple of 16 bytes behind the tensor's edge. */
void model_store(const struct tensor_case *c, uint8_t *global, const uint8_t *shared, uint32_t base,
                 model_combine *combine, uint32_t operation)
{
    const uint32_t width = bits_of[c->type];
    for (uint32_t row = 0; row < rows(c); row++)
        for (uint32_t e = 0; e < c->box[0]; e++) {
            uint64_t to = UINT64_MAX, row_bit;
            global_bit(c, row, e, &to, &row_bit);
            const uint64_t end = row_bit + (c->dim[0] * width + 127) / 128 * 128;
            if (to == UINT64_MAX || to >= end) continue;
            uint64_t value = 0;
            for (uint32_t i = 0; i < width; i++)
                value |= (uint64_t)get_bit(shared, swizzled(c, base, shared_bit(c, row, e, true) + i)) << i;
            value = combine(operation, c->type, get_bits(global, to, width), value);
            for (uint32_t i = 0; i < width; i++) put_bit(global, to + i, (uint32_t)(value >> i & 1));
        }
}
