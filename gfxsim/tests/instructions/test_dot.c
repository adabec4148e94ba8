/* Sums of a few products, comparisons that write EXEC, and MODE, against second statements of them. */
#include "matrix/elements.h"
#include "support/operate.h"

#include <math.h>

static uint32_t draw(struct test *t)
{
    static const uint32_t edges[] = { 0, 0x7fffffff, 0x80000000, 0xffffffff, 0x80808080, 0x7f7f7f7f, 0x77777777 };
    return rnd_below(t, 3) == 0 ? edges[rnd_below(t, 7)] : (uint32_t)rnd(t);
}
static float real(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, 4);
    return f;
}
static uint32_t bits_of(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return bits;
}
static void fill(struct operated *o, struct test *t, uint32_t first, uint32_t count)
{
    for (uint32_t r = first; r < first + count; r++)
        for (int l = 0; l < LANES; l++) o->wave->vgpr[r][l] = draw(t);
}

/* VOP3P: op_sel_hi of all sources. */
static bool packed(struct operated *o, struct test *t, uint32_t opcode, bool clamp)
{
    const uint32_t word[2] = { 0x1a7u << 23 | opcode << 16 | 1u << 14 | (clamp ? 1u << 15 : 0) | 8,
                               3u << 27 | (V + 4) << 18 | (V + 3) << 9 | (V + 2) };
    return operate(o, t, word, 2);
}
static bool short_form(struct operated *o, struct test *t, uint32_t opcode)
{
    const uint32_t word = opcode << 25 | 8 << 17 | 3 << 9 | (V + 2);
    return operate(o, t, &word, 1);
}

/* Number i of a register, bit by bit. */
static int64_t part(uint32_t word, int bits, int i, bool is_signed)
{
    int64_t value = 0;
    for (int b = 0; b < bits; b++)
        if (word >> (bits * i + b) & 1) value += (is_signed && b == bits - 1 ? -1 : 1) * ((int64_t)1 << b);
    return value;
}
static uint32_t summed(uint32_t a, uint32_t b, uint32_t c, int bits, bool is_signed, bool clamp)
{
    int64_t sum = part(c, 32, 0, is_signed);
    for (int i = 0; i < 32 / bits; i++) sum += part(a, bits, i, is_signed) * part(b, bits, i, is_signed);
    const int64_t most = is_signed ? 0x7fffffff : 0xffffffff, least = is_signed ? -0x80000000ll : 0;
    if (clamp && sum > most) sum = most;
    if (clamp && sum < least) sum = least;
    return (uint32_t)(sum & 0xffffffff);
}

static void whole_numbers(struct test *t)
{
    static const struct { uint32_t opcode; int bits; bool is_signed, short_form; } dots[] = {
        { 38, 16, true, false }, { 39, 16, false, false }, { 40, 8, true, false }, { 41, 8, false, false },
        { 42, 4, true, false }, { 43, 4, false, false }, { 56, 16, true, true }, { 57, 8, true, true },
        { 58, 4, true, true } };
    struct operated o;
    if (!operate_open(&o, t)) return;
    for (int n = 0; n < 40 * 9; n++) {
        const int k = n / 40;
        const bool clamp = n % 2 == 1 && !dots[k].short_form;
        fill(&o, t, 2, 3);
        memcpy(o.wave->vgpr[8], o.wave->vgpr[4], sizeof o.wave->vgpr[8]);
        if (!(dots[k].short_form ? short_form(&o, t, dots[k].opcode) : packed(&o, t, dots[k].opcode, clamp))) break;
        for (int l = 0; l < LANES; l++) {
            const uint32_t a = o.wave->vgpr[2][l], b = o.wave->vgpr[3][l], c = o.wave->vgpr[4][l];
            const uint32_t want = summed(a, b, c, dots[k].bits, dots[k].is_signed, clamp);
            if (o.wave->vgpr[8][l] == want) continue;
            FAIL(t, "opcode %u of %08x %08x %08x: %08x, not %08x", dots[k].opcode, a, b, c, o.wave->vgpr[8][l], want);
            break;
        }
    }
    operate_close(&o);
}

/* Numbers whose sums are exact. */
static void floats(struct test *t)
{
    static const struct { uint32_t opcode; bool bfloat, short_form; } dots[] = {
        { 26, true, false }, { 35, false, false }, { 22, true, true }, { 55, false, true } };
    struct operated o;
    if (!operate_open(&o, t)) return;
    for (int n = 0; n < 40 * 4; n++) {
        const int k = n / 40;
        float want[LANES];
        for (int l = 0; l < LANES; l++) {
            float number[5];
            uint32_t code[4];
            for (int i = 0; i < 5; i++) number[i] = (float)rnd_between(t, -64, 64) / 8;
            for (int i = 0; i < 4; i++)
                code[i] = dots[k].bfloat ? bits_of(number[i]) >> 16 : element_encode(ELEMENT_F16, number[i], false);
            o.wave->vgpr[2][l] = code[0] | code[1] << 16, o.wave->vgpr[3][l] = code[2] | code[3] << 16;
            o.wave->vgpr[4][l] = o.wave->vgpr[8][l] = bits_of(number[4]);
            want[l] = number[0] * number[2] + number[1] * number[3] + number[4];
        }
        if (!(dots[k].short_form ? short_form(&o, t, dots[k].opcode) : packed(&o, t, dots[k].opcode, false))) break;
        for (int l = 0; l < LANES; l++) CHECK(t, real(o.wave->vgpr[8][l]) == want[l]);
    }
    operate_close(&o);
}

/* v_cmpx: VCC and EXEC, and lanes that were off stay off. */
static void comparisons_write_exec(struct test *t)
{
    struct operated o;
    if (!operate_open(&o, t)) return;
    for (uint32_t i = 0; i < 8 * 4; i++) {
        const uint32_t operation = i % 8;
        const uint64_t before = i < 8 ? UINT64_MAX : rnd(t);
        uint64_t want = 0;
        fill(&o, t, 2, 2);
        for (int l = 0; l < LANES; l++) {
            if (rnd_below(t, 3) == 0) o.wave->vgpr[3][l] = o.wave->vgpr[2][l];
            const int32_t a = (int32_t)o.wave->vgpr[2][l], b = (int32_t)o.wave->vgpr[3][l];
            const bool holds[8] = { false, a < b, a == b, a <= b, a > b, a != b, a >= b, true };
            want |= (uint64_t)holds[operation] << l;
        }
        want &= before;
        o.wave->sgpr[EXEC] = (uint32_t)before, o.wave->sgpr[EXEC + 1] = (uint32_t)(before >> 32);
        const uint32_t word = 0x3eu << 25 | (208 + operation) << 17 | 3 << 9 | (V + 2);
        if (!operate(&o, t, &word, 1)) break;
        CHECK(t, (o.wave->sgpr[EXEC] | (uint64_t)o.wave->sgpr[EXEC + 1] << 32) == want);
        CHECK(t, (o.wave->sgpr[VCC] | (uint64_t)o.wave->sgpr[VCC + 1] << 32) == want);
    }
    operate_close(&o);
}

/* s_setreg and s_getreg of MODE's field of denormals: sums of denormals are kept, or become zero. */
static void denormals_by_mode(struct test *t)
{
    static const uint32_t keep[2] = { 0xba000901, 3 }, flush[2] = { 0xba000901, 0 };      /* hwreg(MODE, 4, 2) */
    static const uint32_t get = 0xb8880901;                                               /* s8 */
    struct operated o;
    if (!operate_open(&o, t)) return;
    o.wave->mode = 0xf0;
    for (int n = 0; n < 4; n++) {
        const bool kept = n % 2 == 0;
        const uint32_t add = 1u << 25 | 8 << 17 | 3 << 9 | (V + 2);
        for (int l = 0; l < LANES; l++) o.wave->vgpr[2][l] = 5, o.wave->vgpr[3][l] = 7;
        if (!operate(&o, t, kept ? keep : flush, 2) || !operate(&o, t, &add, 1) || !operate(&o, t, &get, 1)) break;
        CHECK(t, o.wave->vgpr[8][0] == (kept ? 12 : 0));
        CHECK(t, o.wave->sgpr[8] == (kept ? 3 : 0));
    }
    operate_close(&o);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(whole_numbers), TEST(floats), TEST(comparisons_write_exec),
                                              TEST(denormals_by_mode) };
    return TEST_MAIN(argc, argv, cases);
}
