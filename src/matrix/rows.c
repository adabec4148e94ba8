/* Where the code of an element lies in the bytes of its row: one reader and one writer per packing. */
#include "rows.h"

#include "core/core.h"

/* 4 bits, two per byte --------------------------------------------------------------------------------------------- */

/* 8 codes of 4 bytes in 8 bytes, in order. */
static uint64_t spread_nibbles(uint32_t bytes, int first_shift)
{
    uint64_t x = bytes;
    x = (x | x << 16) & 0x0000ffff0000ffff;
    x = (x | x << 8) & 0x00ff00ff00ff00ff;
    const uint64_t low = x & 0x000f000f000f000f, high = (x >> 4) & 0x000f000f000f000f;
    return first_shift == 0 ? low | high << 8 : high | low << 8;
}

/* first_shift: where the even element lies, 0 or 4. */
static void read_nibbles(const unsigned char *row, int first_shift, int64_t k, int64_t count, uint8_t *codes)
{
    const int second_shift = 4 - first_shift;
    int64_t i = 0;
    if (k % 2 != 0 && count > 0) codes[i++] = (row[k / 2] >> second_shift) & 15;
    const unsigned char *byte = row + (k + i) / 2;
    for (; i + 8 <= count; i += 8, byte += 4) {
        uint32_t bytes;
        memcpy(&bytes, byte, sizeof bytes);
        const uint64_t spread = spread_nibbles(bytes, first_shift);
        memcpy(codes + i, &spread, sizeof spread);
    }
    for (; i + 1 < count; i += 2, byte++) {
        codes[i] = (*byte >> first_shift) & 15;
        codes[i + 1] = (*byte >> second_shift) & 15;
    }
    if (i < count) codes[i] = (*byte >> first_shift) & 15;
}

static void write_nibbles(unsigned char *row, int first_shift, int64_t k, int64_t count, const uint8_t *codes)
{
    for (int64_t i = 0; i < count; i += 2) {
        const int second = i + 1 < count ? codes[i + 1] & 15 : 0;
        row[(k + i) / 2] = (unsigned char)((codes[i] & 15) << first_shift | second << (4 - first_shift));
    }
}

/* 6 bits as a little-endian stream, four in three bytes ------------------------------------------------------------ */

static uint8_t read_stream_code(const unsigned char *row, int64_t k)
{
    const unsigned char *group = row + k / 4 * 3;
    switch (k % 4) {
    case 0: return group[0] & 63;
    case 1: return (uint8_t)((group[0] >> 6 | group[1] << 2) & 63);
    case 2: return (uint8_t)((group[1] >> 4 | group[2] << 4) & 63);
    default: return group[2] >> 2;
    }
}

/* 8 codes of 6 bytes in 8 bytes, in order. */
static uint64_t spread_stream(uint64_t bytes)
{
    uint64_t x = (bytes & 0xffffff) | (bytes & 0xffffff000000) << 8;
    x = (x & 0x00000fff00000fff) | (x & 0x00fff00000fff000) << 4;
    return (x & 0x003f003f003f003f) | (x & 0x0fc00fc00fc00fc0) << 2;
}

static void read_stream(const unsigned char *row, int64_t k, int64_t count, uint8_t *codes)
{
    int64_t i = 0;
    for (; i < count && (k + i) % 4 != 0; i++) codes[i] = read_stream_code(row, k + i);
    for (; i + 11 <= count; i += 8) {     /* 8 bytes at once are 10 codes and a part of one */
        uint64_t bytes;
        memcpy(&bytes, row + (k + i) / 4 * 3, sizeof bytes);
        const uint64_t spread = spread_stream(bytes);
        memcpy(codes + i, &spread, sizeof spread);
    }
    for (; i + 8 <= count; i += 8) {
        uint64_t bytes = 0;
        memcpy(&bytes, row + (k + i) / 4 * 3, 6);
        const uint64_t spread = spread_stream(bytes);
        memcpy(codes + i, &spread, sizeof spread);
    }
    for (; i + 4 <= count; i += 4) {
        const unsigned char *group = row + (k + i) / 4 * 3;
        const uint32_t bits = group[0] | (uint32_t)group[1] << 8 | (uint32_t)group[2] << 16;
        for (int j = 0; j < 4; j++) codes[i + j] = (bits >> 6 * j) & 63;
    }
    for (; i < count; i++) codes[i] = read_stream_code(row, k + i);
}

/* The last group of a row writes only the bytes that its codes reach. */
static void write_stream(unsigned char *row, int64_t k, int64_t count, const uint8_t *codes)
{
    for (int64_t i = 0; i < count; i += 4) {
        const int64_t in_group = BSMI_MIN(count - i, 4);
        uint32_t bits = 0;
        for (int64_t j = 0; j < in_group; j++) bits |= (uint32_t)(codes[i + j] & 63) << 6 * j;
        unsigned char *group = row + (k + i) / 4 * 3;
        for (int64_t byte = 0; byte < (in_group * 6 + 7) / 8; byte++) group[byte] = (unsigned char)(bits >> 8 * byte);
    }
}

/* One per byte ----------------------------------------------------------------------------------------------------- */

static void read_bytes(const unsigned char *row, int bits, int64_t k, int64_t count, uint8_t *codes)
{
    const unsigned char mask = (unsigned char)((1 << bits) - 1);
    for (int64_t i = 0; i < count; i++) codes[i] = row[k + i] & mask;
}

/* GGUF blocks: scales first, then nibbles in halves (ggml, src/ggml-common.h) -------------------------------------- */

struct nibble { int64_t byte; int shift; };

/* Type 39, MXFP4: 17 bytes for 32 elements; byte 1 + j holds elements j (low) and j + 16 (high). */
static struct nibble gguf_mxfp4_nibble(int64_t k)
{
    const int64_t j = k % 32;
    return (struct nibble){ k / 32 * 17 + 1 + j % 16, j < 16 ? 0 : 4 };
}

/* Type 40, NVFP4: 36 bytes for 64 elements in four sub-blocks of 16; byte 4 + 8 t + j holds 16 t + j (low) and 16 t + j
 * + 8. */
static struct nibble gguf_nvfp4_nibble(int64_t k)
{
    const int64_t sub_block = k % 64 / 16, j = k % 16;
    return (struct nibble){ k / 64 * 36 + 4 + sub_block * 8 + j % 8, j < 8 ? 0 : 4 };
}

static struct nibble gguf_nibble(const struct bsmi_matrix *m, int64_t k)
{
    return m->format == BSM_MXFP4 ? gguf_mxfp4_nibble(k) : gguf_nvfp4_nibble(k);
}

static void read_gguf(const struct bsmi_matrix *m, const unsigned char *row, int64_t k, int64_t count, uint8_t *codes)
{
    for (int64_t i = 0; i < count; i++) {
        const struct nibble at = gguf_nibble(m, k + i);
        codes[i] = (row[at.byte] >> at.shift) & 15;
    }
}

static void write_gguf(const struct bsmi_matrix *m, unsigned char *row, int64_t k, int64_t count, const uint8_t *codes)
{
    const int64_t block = m->format == BSM_MXFP4 ? 32 : 64;
    const int64_t end = k + count == m->columns ? bsmi_round_up(m->columns, block) : k + count;
    for (int64_t i = k; i < end; i++) {
        const struct nibble at = gguf_nibble(m, i);
        const int code = i < k + count ? codes[i - k] & 15 : 0;
        row[at.byte] = (unsigned char)((row[at.byte] & (0xf0 >> at.shift)) | code << at.shift);
    }
}

/* By packing ------------------------------------------------------------------------------------------------------- */

/* MN-major: the codes of a row are one each of `count` stored rows. */
static void gather_codes(const struct bsmi_matrix *m, int64_t batch, int64_t row, int64_t k, int64_t count,
                         uint8_t *codes)
{
    const struct bsmi_matrix stored = bsmi_matrix_stored(m);
    for (int64_t i = 0; i < count; i++) bsmi_row_codes(&stored, batch, k + i, row, 1, codes + i);
}

/* Of a sparse matrix: kept elements [k, k + count). */
static void read_kept(const struct bsmi_matrix *m, int64_t batch, int64_t row, int64_t k, int64_t count,
                      unsigned char *codes, size_t size)
{
    const struct bsmi_matrix stored = bsmi_matrix_stored(m);
    if (size == 1) bsmi_row_codes(&stored, batch, row, k, count, codes);
    else memcpy(codes, bsmi_row(&stored, batch, row) + (size_t)k * size, (size_t)count * size);
}

void bsmi_sparse_codes(const struct bsmi_matrix *m, int64_t batch, int64_t row, int64_t k, int64_t count, void *codes,
                       size_t size)
{
    enum { GROUPS = 64, MOST_KEPT = 4, LARGEST = 4 };
    const int unit = bsmi_sparse_unit(m), columns = bsmi_sparse_columns(m);
    const int64_t end = bsmi_ceil_div(k + count, columns);
    unsigned char kept[GROUPS * MOST_KEPT * LARGEST];
    memset(codes, 0, (size_t)count * size);
    for (int64_t first = k / columns; first < end; first += GROUPS) {
        const int64_t groups = BSMI_MIN(end - first, GROUPS);
        read_kept(m, batch, row, first * columns / 2, groups * columns / 2, kept, size);
        for (int64_t i = 0; i < groups * 2 * unit; i++) {
            const int64_t group = first + i / (2 * unit);
            const int place = bsmi_metadata(m, batch, row, group) >> 2 * (i / unit % 2) & 3;
            const int64_t at = group * columns + place * unit + i % unit - k;
            if (at >= 0 && at < count)
                memcpy((unsigned char *)codes + (size_t)at * size, kept + (size_t)i * size, size);
        }
    }
}

void bsmi_row_codes(const struct bsmi_matrix *m, int64_t batch, int64_t row, int64_t k, int64_t count, uint8_t *codes)
{
    if (m->major == BSM_MAJOR_MN) {
        gather_codes(m, batch, row, k, count, codes);
        return;
    }
    if (m->sparsity != BSM_SPARSITY_NONE) {
        bsmi_sparse_codes(m, batch, row, k, count, codes, 1);
        return;
    }
    const unsigned char *bytes = bsmi_row(m, batch, row);
    switch (m->packing) {
    case BSM_PACKING_LOW_FIRST: read_nibbles(bytes, 0, k, count, codes); break;
    case BSM_PACKING_HIGH_FIRST: read_nibbles(bytes, 4, k, count, codes); break;
    case BSM_PACKING_BIT_STREAM: read_stream(bytes, k, count, codes); break;
    case BSM_PACKING_BYTES: read_bytes(bytes, m->bits, k, count, codes); break;
    case BSM_PACKING_GGUF: read_gguf(m, bytes, k, count, codes); break;
    default: memcpy(codes, bytes + k, (size_t)count); break;
    }
}

void bsmi_row_store_codes(const struct bsmi_matrix *m, int64_t batch, int64_t row, int64_t k, int64_t count,
                          const uint8_t *codes)
{
    unsigned char *bytes = bsmi_row(m, batch, row);
    switch (m->packing) {
    case BSM_PACKING_LOW_FIRST: write_nibbles(bytes, 0, k, count, codes); break;
    case BSM_PACKING_HIGH_FIRST: write_nibbles(bytes, 4, k, count, codes); break;
    case BSM_PACKING_BIT_STREAM: write_stream(bytes, k, count, codes); break;
    case BSM_PACKING_GGUF: write_gguf(m, bytes, k, count, codes); break;
    default: memcpy(bytes + k, codes, (size_t)count); break;
    }
}

static void read_small_elements(const struct bsmi_matrix *m, const float *table, int64_t batch, int64_t row, int64_t k,
                                int64_t count, float *values)
{
    uint8_t codes[256];
    for (int64_t done = 0; done < count; done += (int64_t)sizeof codes) {
        const int64_t n = BSMI_MIN(count - done, (int64_t)sizeof codes);
        bsmi_row_codes(m, batch, row, k + done, n, codes);
        for (int64_t i = 0; i < n; i++) values[done + i] = table[codes[i]];
    }
}

static void gather_elements(const struct bsmi_matrix *m, int64_t batch, int64_t row, int64_t k, int64_t count,
                            float *values)
{
    const struct bsmi_matrix stored = bsmi_matrix_stored(m);
    for (int64_t i = 0; i < count; i++) bsmi_row_elements(&stored, NULL, batch, k + i, row, 1, values + i);
}

/* Elements of 16 and 32 bits of a sparse matrix, by pieces without gaps. */
static void expand_elements(const struct bsmi_matrix *m, int64_t batch, int64_t row, int64_t k, int64_t count,
                            float *values)
{
    _Alignas(4) unsigned char codes[256 * 4];
    struct bsmi_matrix piece = { .element = m->element, .bits = m->bits, .rows = 1, .columns = 256, .data = codes };
    for (int64_t done = 0; done < count; done += 256) {
        const int64_t n = BSMI_MIN(count - done, 256);
        bsmi_sparse_codes(m, batch, row, k + done, n, codes, (size_t)m->bits / 8);
        bsmi_row_elements(&piece, NULL, 0, 0, 0, n, values + done);
    }
}

void bsmi_row_elements(const struct bsmi_matrix *m, const float *table, int64_t batch, int64_t row, int64_t k,
                       int64_t count, float *values)
{
    if (m->major == BSM_MAJOR_MN && m->bits > 8) {
        gather_elements(m, batch, row, k, count, values);
        return;
    }
    if (m->sparsity != BSM_SPARSITY_NONE && m->bits > 8) {
        expand_elements(m, batch, row, k, count, values);
        return;
    }
    const unsigned char *bytes = bsmi_row(m, batch, row);
    switch (m->element) {
    case BSM_FP32: memcpy(values, bytes + k * 4, (size_t)count * 4); break;
    case BSM_BF16:
        for (int64_t i = 0; i < count; i++)
            values[i] = bsmi_bf16_to_float(((const uint16_t *)(const void *)bytes)[k + i]);
        break;
    case BSM_FP16:
        for (int64_t i = 0; i < count; i++)
            values[i] = bsmi_fp16_to_float(((const uint16_t *)(const void *)bytes)[k + i]);
        break;
    default: read_small_elements(m, table, batch, row, k, count, values); break;
    }
}

void bsmi_row_scales(const struct bsmi_matrix *m, int64_t batch, int64_t row, int64_t s, int64_t count, uint8_t *codes)
{
    if (m->map.layout.kind == BSM_LAYOUT_LINEAR) {
        memcpy(codes, bsmi_scale_pointer(m, batch, row, s), (size_t)count);
        return;
    }
    for (int64_t i = 0; i < count; i++) codes[i] = *bsmi_scale_pointer(m, batch, row, s + i);
}

void bsmi_matrix_clear_scale_padding(const struct bsmi_matrix *m)
{
    if (m->scale == BSM_UNSCALED || m->rows == 0 || m->columns == 0) return;
    for (int64_t b = 0; b < m->batch; b++) bsmi_scale_clear_padding(&m->map, m->scales + b * m->scale_batch_bytes);
}
