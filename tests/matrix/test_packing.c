/* Every packing against an independent statement of where each bit lies. */
#include "test.h"

#include "blockscale.h"
#include "matrix/matrix.h"
#include "matrix/rows.h"

#include <stdlib.h>

struct layout_case { bsm_format format; bsm_packing packing; int64_t unit_elements, unit_bytes; };

static const struct layout_case cases[] = {
    { BSM_MXFP4, BSM_PACKING_DEFAULT, 2, 1 },         { BSM_MXFP4, BSM_PACKING_LOW_FIRST, 2, 1 },
    { BSM_NVFP4, BSM_PACKING_HIGH_FIRST, 2, 1 },      { BSM_MXFP4, BSM_PACKING_BYTES, 1, 1 },
    { BSM_MXFP4, BSM_PACKING_GGUF, 32, 17 },          { BSM_NVFP4, BSM_PACKING_GGUF, 64, 36 },
    { BSM_MXFP6_E2M3, BSM_PACKING_DEFAULT, 4, 3 },    { BSM_MXFP6_E3M2, BSM_PACKING_BIT_STREAM, 4, 3 },
    { BSM_MXFP6_E3M2, BSM_PACKING_BYTES, 1, 1 },      { BSM_MXFP8_E4M3, BSM_PACKING_DEFAULT, 1, 1 },
    { BSM_MXINT8, BSM_PACKING_BYTES, 1, 1 },          { BSM_FORMAT_E5M2, BSM_PACKING_DEFAULT, 1, 1 },
};
enum { CASES = sizeof cases / sizeof cases[0] };

static int element_bits(bsm_format format) { return bsm_element_get((int)bsm_format_get((int)format)->element)->bits; }

/* First bit of element k from the start of its row: counted by walking, not by the library's formulas. */
static int64_t expected_bit(const struct layout_case *c, int64_t k)
{
    const int bits = element_bits(c->format);
    if (c->packing == BSM_PACKING_BYTES || bits == 8) return 8 * k;
    if (c->packing == BSM_PACKING_HIGH_FIRST) return k % 2 == 0 ? 4 * k + 4 : 4 * k - 4;
    if (c->packing != BSM_PACKING_GGUF) return bits * k;
    int64_t byte = 0, element = 0;
    if (c->format == BSM_MXFP4) {
        for (; element + 32 <= k; element += 32) byte += 17;
        for (int j = 0; j < 16; j++) {
            if (element + j == k) return 8 * (byte + 1 + j);
            if (element + 16 + j == k) return 8 * (byte + 1 + j) + 4;
        }
    }
    for (; element + 64 <= k; element += 64) byte += 36;
    for (int sub_block = 0; sub_block < 4; sub_block++)
        for (int j = 0; j < 8; j++) {
            if (element + 16 * sub_block + j == k) return 8 * (byte + 4 + 8 * sub_block + j);
            if (element + 16 * sub_block + 8 + j == k) return 8 * (byte + 4 + 8 * sub_block + j) + 4;
        }
    return -1;
}

static int bit_of(const unsigned char *row, int64_t bit) { return row[bit / 8] >> (bit % 8) & 1; }

static bsm_matrix describe(const struct layout_case *c, int64_t rows, int64_t columns, int64_t extra_units)
{
    bsm_matrix m = { .struct_size = sizeof m, .format = c->format, .packing = c->packing, .rows = rows,
                     .columns = columns };
    m.pitch = ((columns + c->unit_elements - 1) / c->unit_elements + extra_units) * c->unit_elements;
    if (c->packing == BSM_PACKING_GGUF)
        m.scale_layout.kind = c->format == BSM_MXFP4 ? BSM_LAYOUT_GGUF_MXFP4 : BSM_LAYOUT_GGUF_NVFP4;
    return m;
}

/* Fills the matrix's memory at the end of a guarded page; scales of block formats are separate and also guarded. */
static bool attach(struct test *t, bsm_matrix *m, int fill)
{
    int64_t bytes, scale_bytes;
    if (bsm_matrix_data_bytes(m, &bytes) != BSM_OK || bsm_matrix_scale_bytes(m, &scale_bytes) != BSM_OK) {
        FAIL(t, "%s", bsm_last_error());
        return false;
    }
    m->data = guarded_at_end((size_t)bytes, 1, fill);
    const bool inside = m->packing == BSM_PACKING_GGUF || bsm_matrix_scale_columns(m) == 0;
    m->scales = inside ? NULL : guarded_at_end((size_t)scale_bytes, 1, fill);
    return true;
}

static void detach(bsm_matrix *m)
{
    guarded_free(m->data);
    guarded_free(m->scales);
}

/* Random bytes are read as the expected bits say, at every start and length. */
static void reads_the_documented_bits(struct test *t)
{
    static const int64_t widths[] = { 1, 2, 3, 5, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 161 };
    for (int c = 0; c < CASES; c++)
        for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++) {
            bsm_matrix m = describe(&cases[c], 3, widths[w], (int64_t)(w % 2));
            struct bsmi_matrix r;
            if (!attach(t, &m, 0)) return;
            int64_t bytes;
            bsm_matrix_data_bytes(&m, &bytes);
            for (int64_t i = 0; i < bytes; i++) ((unsigned char *)m.data)[i] = (unsigned char)rnd(t);
            CHECK_OR_RETURN(t, bsmi_matrix_resolve("m", &m, &r) == BSM_OK);
            const int bits = element_bits(m.format);
            const int64_t row_bytes = m.pitch / cases[c].unit_elements * cases[c].unit_bytes;
            for (int64_t row = 0; row < 3; row++) {
                const int64_t k = rnd_below(t, m.columns), count = rnd_between(t, 0, m.columns - k);
                uint8_t codes[256];
                memset(codes, 0xee, sizeof codes);
                bsmi_row_codes(&r, 0, row, k, count, codes);
                for (int64_t i = 0; i < count; i++) {
                    int want = 0;
                    for (int b = 0; b < bits; b++)
                        want |= bit_of((unsigned char *)m.data + row * row_bytes, expected_bit(&cases[c], k + i) + b)
                                << b;
                    uint32_t single;
                    CHECK(t, codes[i] == want);
                    CHECK(t, bsm_matrix_get_code(&m, 0, row, k + i, &single) == BSM_OK && (int)single == want);
                }
                CHECK(t, codes[count] == 0xee);
            }
            detach(&m);
        }
}

/* Writing whole rows in pieces: codes come back, padding bits of the last byte are zero, bytes behind rows are
 * untouched. */
static void writes_rows_and_nothing_else(struct test *t)
{
    for (int c = 0; c < CASES; c++)
        for (int64_t columns = 1; columns <= 130; columns += 1 + columns / 20) {
            bsm_matrix m = describe(&cases[c], 3, columns, 2);
            struct bsmi_matrix r;
            if (!attach(t, &m, 0xa5)) return;
            CHECK_OR_RETURN(t, bsmi_matrix_resolve("m", &m, &r) == BSM_OK);
            const int bits = element_bits(m.format);
            uint8_t codes[3][256], back[256];
            for (int64_t row = 0; row < 3; row++) {
                for (int64_t k = 0; k < columns; k++) codes[row][k] = (uint8_t)(rnd(t) & ((1u << bits) - 1));
                const int64_t split = columns > 16 ? rnd_between(t, 0, columns / 16) * 16 : 0;
                if (split > 0) bsmi_row_store_codes(&r, 0, row, 0, split, codes[row]);
                if (split < columns) bsmi_row_store_codes(&r, 0, row, split, columns - split, codes[row] + split);
            }
            int64_t data_bytes;
            bsm_matrix_data_bytes(&m, &data_bytes);
            const int64_t row_bytes = m.pitch / cases[c].unit_elements * cases[c].unit_bytes;
            unsigned char *expected = malloc((size_t)data_bytes);
            memset(expected, 0xa5, (size_t)data_bytes);
            for (int64_t row = 0; row < 3; row++) {
                unsigned char *bytes = expected + row * row_bytes;
                const int64_t end =
                    m.packing == BSM_PACKING_GGUF
                        ? (columns + cases[c].unit_elements - 1) / cases[c].unit_elements * cases[c].unit_elements
                        : columns;
                /* Every byte that holds a code of the row is owned by it: clear, then set the bits. */
                for (int64_t k = 0; k < end; k++)
                    for (int b = 0; b < bits; b++) bytes[(expected_bit(&cases[c], k) + b) / 8] = 0;
                for (int64_t k = 0; k < columns; k++)
                    for (int b = 0; b < bits; b++) {
                        const int64_t bit = expected_bit(&cases[c], k) + b;
                        bytes[bit / 8] |= (unsigned char)((codes[row][k] >> b & 1) << bit % 8);
                    }
                bsmi_row_codes(&r, 0, row, 0, columns, back);
                CHECK(t, memcmp(back, codes[row], (size_t)columns) == 0);
            }
            if (memcmp(expected, m.data, (size_t)data_bytes) != 0)
                FAIL(t, "%s %s columns=%" PRId64 ": bytes differ", bsm_format_get((int)m.format)->name,
                     bsm_packing_name((int)m.packing), columns);
            free(expected);
            detach(&m);
        }
}

static void set_code_changes_one_code(struct test *t)
{
    for (int c = 0; c < CASES; c++) {
        const int64_t columns = 77;
        bsm_matrix m = describe(&cases[c], 2, columns, 0);
        if (!attach(t, &m, 0)) return;
        const int bits = element_bits(m.format);
        uint32_t want[77];
        for (int k = 0; k < 77; k++) {
            want[k] = (uint32_t)rnd(t) & ((1u << bits) - 1);
            CHECK(t, bsm_matrix_set_code(&m, 0, 1, k, want[k]) == BSM_OK);
        }
        const int64_t changed = rnd_below(t, columns);
        want[changed] ^= 1;
        CHECK(t, bsm_matrix_set_code(&m, 0, 1, changed, want[changed]) == BSM_OK);
        for (int k = 0; k < 77; k++) {
            uint32_t code = 999, above = 999;
            CHECK(t, bsm_matrix_get_code(&m, 0, 1, k, &code) == BSM_OK && code == want[k]);
            CHECK(t, bsm_matrix_get_code(&m, 0, 0, k, &above) == BSM_OK && above == 0);
        }
        CHECK(t, bsm_matrix_set_code(&m, 0, 0, 0, 1u << bits) == BSM_EINVAL);
        CHECK(t, bsm_matrix_set_code(&m, 0, 2, 0, 0) == BSM_EINVAL);
        CHECK(t, bsm_matrix_set_code(&m, 0, 0, columns, 0) == BSM_EINVAL);
        CHECK(t, bsm_matrix_set_code(&m, 1, 0, 0, 0) == BSM_EINVAL);
        detach(&m);
    }
}

/* Blocks as ggml writes them: element j in the low nibble of byte j, element j + half in the high one; scales first. */
static void gguf_golden_bytes(struct test *t)
{
    unsigned char mxfp4[17] = { 0x80 }, nvfp4[36] = { 0x38, 0x39, 0x3a, 0x3b };
    for (int j = 0; j < 16; j++) mxfp4[1 + j] = (unsigned char)((15 - j) << 4 | j);
    for (int j = 0; j < 32; j++) nvfp4[4 + j] = (unsigned char)((j & 7) << 4 | (8 + j / 8));
    bsm_matrix m = { .struct_size = sizeof m, .format = BSM_MXFP4, .packing = BSM_PACKING_GGUF, .rows = 1,
                     .columns = 32,
                     .data = mxfp4, .scale_layout = { .kind = BSM_LAYOUT_GGUF_MXFP4 } };
    for (int k = 0; k < 32; k++) {
        uint32_t code = 99;
        CHECK(t, bsm_matrix_get_code(&m, 0, 0, k, &code) == BSM_OK && (int)code == (k < 16 ? k : 31 - k));
    }
    uint8_t scale = 0;
    CHECK(t, bsm_matrix_get_scale(&m, 0, 0, 0, &scale) == BSM_OK && scale == 0x80);

    m = (bsm_matrix){ .struct_size = sizeof m, .format = BSM_NVFP4, .packing = BSM_PACKING_GGUF, .rows = 1,
                      .columns = 64,
                      .data = nvfp4, .scale_layout = { .kind = BSM_LAYOUT_GGUF_NVFP4 } };
    for (int k = 0; k < 64; k++) {
        uint32_t code = 99;
        CHECK(t, bsm_matrix_get_code(&m, 0, 0, k, &code) == BSM_OK && (int)code == (k % 16 < 8 ? 8 + k / 16 : k % 8));
    }
    for (int s = 0; s < 4; s++) CHECK(t, bsm_matrix_get_scale(&m, 0, 0, s, &scale) == BSM_OK && scale == 0x38 + s);
}

/* bf16, fp16 and fp32 rows, and every code of the small elements through the decoding reader. */
static void elements_are_decoded(struct test *t)
{
    for (int format = BSM_FORMAT_NONE + 1; format < BSM_FORMAT_COUNT; format++) {
        const bsm_element element = bsm_format_get(format)->element;
        const int bits = bsm_element_get((int)element)->bits;
        bsm_matrix m = { .struct_size = sizeof m, .format = (bsm_format)format, .rows = 2, .columns = 300 };
        struct bsmi_matrix r;
        int64_t bytes, scale_bytes;
        bsm_matrix_data_bytes(&m, &bytes);
        bsm_matrix_scale_bytes(&m, &scale_bytes);
        m.data = guarded_at_end((size_t)bytes, 4, 0x7f);
        if (scale_bytes > 0) m.scales = guarded_at_end((size_t)scale_bytes, 1, 0);
        uint32_t codes[300];
        float table[256], values[300];
        for (int k = 0; k < 300; k++) {
            codes[k] = (uint32_t)rnd(t) & (bits == 32 ? 0xffffffffu : (1u << bits) - 1);
            CHECK(t, bsm_matrix_set_code(&m, 0, 1, k, codes[k]) == BSM_OK);
        }
        CHECK_OR_RETURN(t, bsmi_matrix_resolve("m", &m, &r) == BSM_OK);
        if (bits <= 8) bsmi_element_table(element, table);
        bsmi_row_elements(&r, bits <= 8 ? table : NULL, 0, 1, 7, 290, values);
        for (int i = 0; i < 290; i++) {
            const float want = bsm_element_decode(element, codes[7 + i]);
            CHECK(t, isnan(want) ? isnan(values[i]) : memcmp(&want, &values[i], sizeof want) == 0);
        }
        guarded_free(m.data);
        guarded_free(m.scales);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case tests[] = {
        TEST(reads_the_documented_bits), TEST(writes_rows_and_nothing_else), TEST(set_code_changes_one_code),
        TEST(gguf_golden_bytes), TEST(elements_are_decoded),
    };
    return TEST_MAIN(argc, argv, tests);
}
