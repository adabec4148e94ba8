/* Which layouts fit tcgen05.cp, TMA and ldmatrix, by instructions that cudasim executes: where the answer is yes, the
 * copy it tells of brings every scale to where the tensor core reads it; where it is no, cudasim refuses the copy, or
 * none that can be written brings them there. */
#include "fit_cases.h"

#include "machine/async/tensor_map.h"
#include "tests/support/harness.h"

/* 128 threads; the buffer of p2 to shared memory s at %r6, visible to the async proxy. */
#define FILL \
    ".shared .align 1024 .b8 s[40960]; .shared .align 4 .b32 t; .shared .align 8 .b64 bar; mov.u32 %r1, %tid.x; " \
    "shr.u32 %r2, %r1, 5; mov.u32 %r6, s; mov.u32 %r7, bar; setp.ne.u32 %p2, %r1, 0; setp.eq.u32 %p1, %r2, 0;\n" \
    "mul.wide.u32 %rd6, %r1, 4; add.u64 %rd5, %rd62, %rd6; shl.b32 %r10, %r1, 2; add.u32 %r10, %r10, %r6; " \
    "add.u32 %r11, %r6, 40960;\n" \
    "FS: ld.global.u32 %r12, [%rd5]; st.shared.u32 [%r10], %r12; add.u64 %rd5, %rd5, 512; add.u32 %r10, %r10, 512; " \
    "setp.lt.u32 %p3, %r10, %r11; @%p3 bra FS; fence.proxy.async;\n" \
    "@%p2 bra I; mbarrier.init.shared.b64 [%r7], 1; fence.mbarrier_init.release.cluster; I: bar.sync 0;\n"
#define WAIT "W: mbarrier.try_wait.parity.shared.b64 %p4, [%r7], 0; @!%p4 bra W;\n"

/* Everything that a launch needs. */
struct kernel { struct sim sim; uint64_t out, buffer; };

static bool kernel_open(struct test *t, struct kernel *k, const char *device, const char *text, const void *buffer)
{
    if (!sim_open(t, &k->sim, device, text)) return false;
    k->out = sim_buffer(&k->sim, NULL, FIT_BUFFER);
    k->buffer = sim_buffer(&k->sim, buffer, FIT_BUFFER);
    return true;
}

static bool launch(struct kernel *k, uint64_t p0, uint64_t p3)
{
    const uint64_t p[4] = { p0, k->out, k->buffer, p3 };
    return sim_run(&k->sim, "k", 1, 128, 0, p, 4);
}

/* tcgen05.cp ------------------------------------------------------------------------------------------------------- */

/* p0: the matrix descriptor but for its address; p3: where in s the tile begins.  Four columns of each lane to p1. */
static const char cp_text[] =
    FILL "@!%p1 bra A; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [t], 32; "
    "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; A: bar.sync 0; ld.shared.u32 %r3, [t]; "
    "shl.b32 %r5, %r2, 21; add.u32 %r5, %r5, %r3;\n"
    "tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;\n"
    "@%p2 bra ISSUED; cvt.u32.u64 %r13, %rd63; add.u32 %r13, %r13, %r6; shr.u32 %r13, %r13, 4; "
    "cvt.u64.u32 %rd1, %r13; or.b64 %rd1, %rd1, %rd60; tcgen05.cp.cta_group::1.32x128b.warpx4 [%r3], %rd1; "
    "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r7]; ISSUED:\n" WAIT
    "tcgen05.fence::after_thread_sync;\n"
    "tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r20, %r21, %r22, %r23}, [%r5]; tcgen05.wait::ld.sync.aligned;\n"
    "mul.wide.u32 %rd7, %r1, 16; add.u64 %rd7, %rd7, %rd61; st.global.v4.b32 [%rd7], {%r20, %r21, %r22, %r23};\n"
    "tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;\n"
    "@%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32;\n";

/* swizzle: 0 none, 2 of 128 bytes, 4 of 64, 6 of 32 (PTX ISA 9.7.16.4.1). */
static uint64_t cp_descriptor(uint64_t stride, uint64_t swizzle)
{
    return UINT64_C(1) << 16 | stride >> 4 << 32 | UINT64_C(1) << 46 | swizzle << 61;
}

/* Whether lane r % 32 of all four quarters has the scale of row r in column r / 32, column s in byte s. */
static bool has_tile(struct kernel *k, const struct fit_case *c, int64_t row, int64_t column)
{
    static unsigned char got[128][16];
    sim_read(&k->sim, k->out, got, sizeof got);
    for (int lane = 0; lane < 128; lane++)
        for (int byte = 0; byte < 16; byte++) {
            const int64_t r = row + byte / 4 * 32 + lane % 32, s = column + byte % 4;
            if (r >= c->padded_rows || s >= c->padded_columns || got[lane][byte] != c->code[r][s]) return false;
        }
    return true;
}

static bool check_cp(struct test *t, const struct fit_case *c)
{
    const bsm_scale_fit fit = fit_of(t, c, BSM_SCALE_COPY_TCGEN05_CP);
    struct kernel k;
    if (!kernel_open(t, &k, "sm_100a", cp_text, c->buffer)) return fit.fits;
    if (fit.fits) {
        for (int64_t r = 0; r < c->padded_rows; r += fit.rows)
            for (int64_t s = 0; s < c->padded_columns; s += fit.columns)
                if (!launch(&k, cp_descriptor((uint64_t)fit.stride, 0), (uint64_t)fit_offset(c, r, s)))
                    FAIL(t, "%s: %s", c->name, k.sim.report.text);
                else if (!has_tile(&k, c, r, s)) FAIL(t, "%s: not the tile at %d, %d", c->name, (int)r, (int)s);
    } else {
        for (uint64_t swizzle = 0; swizzle <= 6; swizzle += 2)
            for (uint64_t stride = 16; stride <= 512; stride *= 2)
                if (launch(&k, cp_descriptor(stride, swizzle), 0) && has_tile(&k, c, 0, 0))
                    FAIL(t, "%s fits by stride %d, swizzle %d: %s", c->name, (int)stride, (int)swizzle, fit.text);
    }
    sim_close(&k.sim);
    return fit.fits;
}

static void tcgen05_cp(struct test *t)
{
    int fits = 0, does_not = 0;
    fit_each(t, 0, 255, &fits, &does_not, check_cp);
    CHECK(t, fits == 3 && does_not == 3 * (FIT_LAYOUTS - 1));            /* 128x4 alone */
}

/* TMA -------------------------------------------------------------------------------------------------------------- */

static int encode(struct kernel *k, const bsm_scale_fit *fit, void *map, char *sentence, size_t size)
{
    uint64_t dimension[BSM_TENSOR_RANK], stride[BSM_TENSOR_RANK];
    uint32_t box[BSM_TENSOR_RANK], step[BSM_TENSOR_RANK];
    const int rank = fit->rank < BSM_TENSOR_RANK ? fit->rank : BSM_TENSOR_RANK;
    for (int i = 0; i < rank; i++) {
        dimension[i] = (uint64_t)fit->dimension[i], box[i] = (uint32_t)fit->box[i], step[i] = 1;
        if (i > 0) stride[i - 1] = (uint64_t)fit->tensor_stride[i];
    }
    return tensor_map_encode_tiled(k->sim.machine.device, map, 0, (unsigned)fit->rank, k->buffer, dimension, stride,
                                   box, step, 0, 0, 0, 0, sentence, size);
}

/* The box at `box` times `number` in every dimension. */
static void box_text(const bsm_scale_fit *fit, int64_t number, char *text, size_t size)
{
    int64_t bytes = 1;
    int n = snprintf(text, size, "%s@%%p2 bra LOADED;\n", FILL);
    for (int i = 0; i < fit->rank; i++) bytes *= fit->box[i];
    n += snprintf(text + n, size - (size_t)n,
                  "mbarrier.arrive.expect_tx.shared.b64 _, [%%r7], %d; cp.async.bulk.tensor.%dd.shared::cluster.global."
                  "tile.mbarrier::complete_tx::bytes [%%r6], [%%rd60, {",
                  (int)bytes, fit->rank);
    for (int i = 0; i < fit->rank; i++)
        n += snprintf(text + n, size - (size_t)n, i > 0 ? ", %d" : "%d", (int)(number * fit->box[i]));
    snprintf(text + n, size - (size_t)n,
             "}], [%%r7]; LOADED:\n%smul.wide.u32 %%rd6, %%r1, 4; add.u64 %%rd5, %%rd61, "
             "%%rd6; shl.b32 %%r10, %%r1, 2; add.u32 %%r10, %%r10, %%r6;\n"
             "DR: ld.shared.u32 %%r12, [%%r10]; st.global.u32 [%%rd5], %%r12; add.u64 %%rd5, %%rd5, 512; "
             "add.u32 %%r10, %%r10, 512; setp.lt.u32 %%p3, %%r10, %%r11; @%%p3 bra DR;\n",
             WAIT);
}

/* A box is the scales of some rows x some columns, each once, as many as the answer says (fewer at an edge). */
static void check_box(struct test *t, const struct fit_case *c, const bsm_scale_fit *fit, const unsigned char *got,
                      int64_t number)
{
    int64_t bytes = 1, seen = 0, rows = 0, columns = 0;
    bool has_row[512] = { false }, has_column[512] = { false };
    for (int i = 0; i < fit->rank; i++) bytes *= fit->box[i];
    for (int64_t i = 0; i < bytes; i++) {
        int64_t at = 0, rest = i;
        bool inside = true;
        for (int d = 0; d < fit->rank; d++) {
            const int64_t x = number * fit->box[d] + rest % fit->box[d];
            rest /= fit->box[d];
            inside &= x < fit->dimension[d];
            at += x * (d > 0 ? fit->tensor_stride[d] : 1);
        }
        if (got[i] != (inside ? c->buffer[at] : 0)) FAIL(t, "%s: byte %d of the box", c->name, (int)i);
        for (int64_t r = 0; inside && r < c->padded_rows; r++)
            for (int64_t s = 0; s < c->padded_columns; s++)
                if (fit_offset(c, r, s) == at) seen++, has_row[r] = has_column[s] = true;
    }
    for (int i = 0; i < 512; i++) rows += has_row[i], columns += has_column[i];
    if (seen != rows * columns || rows > fit->rows || columns > fit->columns
        || (number == 0 && (rows != fit->rows || columns != fit->columns)))
        FAIL(t, "%s: a box has %d scales of %d rows and %d columns, not of %d and %d", c->name, (int)seen, (int)rows,
             (int)columns, (int)fit->rows, (int)fit->columns);
}

static bool check_tma(struct test *t, const struct fit_case *c)
{
    static unsigned char got[FIT_BUFFER];
    _Alignas(64) uint8_t map[TENSOR_MAP_BYTES];
    char sentence[256] = "", text[4096];
    const bsm_scale_fit fit = fit_of(t, c, BSM_SCALE_COPY_TMA);
    for (int64_t number = 0; number < (fit.fits ? 2 : 1); number++) {
        struct kernel k;
        if (fit.fits) box_text(&fit, number, text, sizeof text);
        if (!kernel_open(t, &k, "sm_90a", fit.fits ? text : FILL, c->buffer)) return fit.fits;
        if ((encode(&k, &fit, map, sentence, sizeof sentence) == 0) != fit.fits)
            FAIL(t, "%s: \"%s\", and cudasim %s", c->name, fit.text, fit.fits ? sentence : "encodes it");
        if (fit.fits && !launch(&k, sim_buffer(&k.sim, map, sizeof map), 0)) FAIL(t, "%s: %s", c->name,
                                                                                  k.sim.report.text);
        sim_read(&k.sim, k.out, got, sizeof got);
        if (fit.fits) check_box(t, c, &fit, got, number);
        sim_close(&k.sim);
    }
    return fit.fits;
}

static void tma(struct test *t)
{
    int fits = 0, does_not = 0;
    fit_each(t, 0, 255, &fits, &does_not, check_tma);
    CHECK(t, fits > 20 && does_not > 10);
}

/* ldmatrix --------------------------------------------------------------------------------------------------------- */

/* p0: eight addresses in s, of 32 bits; each lane's register to p1. */
static const char ldmatrix_text[] =
    FILL "@!%p1 bra DONE; and.b32 %r14, %r1, 7; mul.wide.u32 %rd8, %r14, 4; add.u64 %rd8, %rd8, %rd60; "
    "ld.global.u32 %r15, [%rd8]; add.u32 %r15, %r15, %r6; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r16}, [%r15];\n"
    "mul.wide.u32 %rd9, %r1, 4; add.u64 %rd9, %rd9, %rd61; st.global.u32 [%rd9], %r16; DONE:\n";

/* Rows row .. row + 7 with their four columns in quarter `quarter` of the 16 bytes that each lane names: whether lanes
 * 4 n + quarter have them. */
static bool load_cells(struct kernel *k, const struct fit_case *c, int64_t row, int64_t column, int quarter)
{
    uint32_t address[8];
    unsigned char got[32][4];
    for (int n = 0; n < 8; n++) {
        const int64_t r = row + n < c->padded_rows ? row + n : row;
        address[n] = (uint32_t)(fit_offset(c, r, column) - 4 * quarter);
    }
    if (!launch(k, sim_buffer(&k->sim, address, sizeof address), 0)) return false;
    sim_read(&k->sim, k->out, got, sizeof got);
    for (int n = 0; n < 8; n++)
        for (int s = 0; s < 4 && row + n < c->padded_rows && column + s < c->padded_columns; s++)
            if (got[4 * n + quarter][s] != c->code[row + n][column + s]) return false;
    return true;
}

static bool check_ldmatrix(struct test *t, const struct fit_case *c)
{
    const bsm_scale_fit fit = fit_of(t, c, BSM_SCALE_COPY_LDMATRIX);
    struct kernel k;
    bool all = true;
    if (!kernel_open(t, &k, "sm_120a", ldmatrix_text, c->buffer)) return fit.fits;
    for (int64_t r = 0; r < c->padded_rows && all; r += r < 64 ? 8 : 64)
        for (int64_t s = 0; s < c->padded_columns && s < 32 && all; s += 4) {
            int works = -1;
            for (int quarter = 0; quarter < 4 && works < 0; quarter++)
                if (fit_offset(c, r, s) >= 4 * quarter && load_cells(&k, c, r, s, quarter)) works = quarter;
            all &= works >= 0;
            if (fit.fits && (works < 0 || (r == 0 && s == 0 && works != fit.lane)))
                FAIL(t, "%s: rows %d on, columns %d on come by quarter %d, \"%s\": %s", c->name, (int)r, (int)s, works,
                     fit.text, k.sim.report.text);
        }
    if (all != fit.fits)
        FAIL(t, "%s: ldmatrix %s, and \"%s\"", c->name, all ? "loads it" : "does not load it", fit.text);
    sim_close(&k.sim);
    return fit.fits;
}

static void ldmatrix(struct test *t)
{
    int fits = 0, does_not = 0;
    fit_each(t, 0, 255, &fits, &does_not, check_ldmatrix);
    CHECK(t, fits >= 12 && does_not > 20);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(tcgen05_cp), TEST(tma), TEST(ldmatrix) };
    return TEST_MAIN(argc, argv, cases);
}
