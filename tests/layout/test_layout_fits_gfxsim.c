/* Which layouts fit a load of 32 bits a lane for the scaled products of gfx950, by the instructions themselves on
 * gfxsim: each lane's register gets the 32 bits around the scale that the lane gives, and a product tells every scale
 * that the instruction took. */
#include "fit_cases.h"

#include "support/operate.h"

#include <math.h>

enum { SCALE_A = 4, SCALE_B = 5, CODES_A = 16, CODES_B = 24, SUMS = 32, C = 64, E2M1 = 4, ONE_BYTE = 127 };

/* All of A is 1, column n of B is 1 in block n % blocks alone, and B's scales are 1: D(m, n) is 32 times the scale of
 * (m, n % blocks). */
static bool open_product(struct operated *o, struct test *t, uint32_t dim)
{
    const uint32_t blocks = 64 / dim;
    if (!operate_open(o, t)) return false;
    for (uint32_t l = 0; l < 64; l++) {
        o->wave->vgpr[SCALE_B][l] = ONE_BYTE * 0x01010101u;
        for (uint32_t i = 0; i < 4; i++) {
            o->wave->vgpr[CODES_A + i][l] = 0x22222222;
            o->wave->vgpr[CODES_B + i][l] = l / dim == l % dim % blocks ? 0x22222222 : 0;
        }
    }
    return true;
}

static uint32_t row_of(uint32_t dim, uint32_t lane, uint32_t r)
{
    return dim == 16 ? 4 * (lane / dim) + r : 8 * (r / 4) + 4 * (lane / dim) + r % 4;
}

/* Whether the product takes the scales of rows `row` on and columns `column` on, from byte `byte` of the registers. */
static bool takes(struct operated *o, struct test *t, const struct fit_case *c, uint32_t dim, int64_t row,
                  int64_t column, uint32_t byte)
{
    const uint32_t blocks = 64 / dim, opcode = dim == 16 ? 0x2d : 0x2e;
    for (uint32_t l = 0; l < 64; l++) {
        const int64_t r = row + l % dim, s = column + l / dim;
        const bool there = r < c->padded_rows && s < c->padded_columns;
        memcpy(&o->wave->vgpr[SCALE_A][l], c->buffer + (there ? fit_offset(c, r, s) / 4 * 4 : 0), 4);
        o->wave->vgpr[C][l] = 0;
    }
    for (uint32_t i = 0; i < 16; i++) memset(o->wave->vgpr[C + i], 0, sizeof o->wave->vgpr[0]);
    const uint32_t word[4] = { 0xd3ac0000 | (byte & 1) << 11, (V + SCALE_A) | (V + SCALE_B) << 9 | byte >> 1 << 27,
                               0xd3800000 | opcode << 16 | SUMS | E2M1 << 8 | 1u << 11,
                               (V + CODES_A) | (V + CODES_B) << 9 | (V + C) << 18 | (uint32_t)E2M1 << 29 };
    if (!operate(o, t, word, 4)) return false;
    for (uint32_t l = 0; l < 64; l++)
        for (uint32_t i = 0; i < dim * dim / 64; i++) {
            const int64_t r = row + row_of(dim, l, i), s = column + l % dim % blocks;
            float sum;
            memcpy(&sum, &o->wave->vgpr[SUMS + i][l], 4);
            if (r >= c->padded_rows || s >= c->padded_columns) continue;
            if (sum != ldexpf(32, (int)c->code[r][s] - 127)) return false;
        }
    return true;
}

static bool check_mfma(struct test *t, const struct fit_case *c, uint32_t dim, bsm_scale_copy copy)
{
    const bsm_scale_fit fit = fit_of(t, c, copy);
    struct operated o;
    bool all = true;
    if (!open_product(&o, t, dim)) return fit.fits;
    for (int64_t r = 0; r < c->padded_rows && all; r += r < 64 ? dim : 64)
        for (int64_t s = 0; s < c->padded_columns && s < 32 && all; s += 64 / dim) {
            int works = -1;
            for (uint32_t byte = 0; byte < 4 && works < 0; byte++)
                if (takes(&o, t, c, dim, r, s, byte)) works = (int)byte;
            all &= works >= 0;
            if (fit.fits && (works < 0 || (r == 0 && s == 0 && works != fit.byte)))
                FAIL(t, "%s: rows %d on, columns %d on by byte %d, and \"%s\"", c->name, (int)r, (int)s, works,
                     fit.text);
        }
    if (all != fit.fits) FAIL(t, "%s: the product %s, and \"%s\"", c->name, all ? "takes it" : "does not", fit.text);
    operate_close(&o);
    return fit.fits;
}

static bool check_16(struct test *t, const struct fit_case *c) { return check_mfma(t, c, 16, BSM_SCALE_COPY_MFMA_16); }
static bool check_32(struct test *t, const struct fit_case *c) { return check_mfma(t, c, 32, BSM_SCALE_COPY_MFMA_32); }

static void mfma_of_16_rows(struct test *t)
{
    int fits = 0, does_not = 0;
    fit_each(t, 107, 147, &fits, &does_not, check_16);
    CHECK(t, fits >= 6 && does_not > 20);                                /* cdna4_16 and aiter */
}

static void mfma_of_32_rows(struct test *t)
{
    int fits = 0, does_not = 0;
    fit_each(t, 107, 147, &fits, &does_not, check_32);
    CHECK(t, fits >= 3 && does_not > 20);                                /* cdna4_32 */
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(mfma_of_16_rows), TEST(mfma_of_32_rows) };
    return TEST_MAIN(argc, argv, cases);
}
