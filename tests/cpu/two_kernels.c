#include "two_kernels.h"

#include "core/core.h"
#include "resolved.h"

#include <stdlib.h>

enum { SUMS_COLUMNS = 256 };

/* Of the emulation (units/emulated_tiles.h); elsewhere nothing tells. */
__attribute__((weak)) long emulated_int8_products(void);
__attribute__((weak)) long emulated_bf16_products(void);

const struct bsmi_kernel *kernel_named(const char *name)
{
    const uint32_t here = bsmi_cpu_detect(BSM_CPU_ALL);
    for (int i = 0; i < bsmi_kernel_count; i++)
        if (strcmp(bsmi_kernels[i].name, name) == 0 && (bsmi_kernels[i].needs & ~here) == 0) return &bsmi_kernels[i];
    return NULL;
}

int64_t blocks_of(const struct operand *o) { return bsm_matrix_scale_columns(&o->m); }

void set_scale(struct test *t, struct operand *o, int64_t row, int64_t s, int code)
{
    CHECK(t, bsm_matrix_set_scale(&o->m, 0, row, s, (uint8_t)code) == BSM_OK);
}

void set_code(struct test *t, struct operand *o, int64_t row, int64_t k, uint32_t code)
{
    CHECK(t, bsm_matrix_set_code(&o->m, 0, row, k, code) == BSM_OK);
}

void fill_block(struct test *t, struct operand *o, int64_t row, int64_t s, uint32_t code)
{
    const int64_t block = bsm_format_get((int)o->m.format)->block;
    for (int64_t k = s * block; k < BSMI_MIN((s + 1) * block, o->m.columns); k++) set_code(t, o, row, k, code);
}

struct taken { float *out; int64_t columns, pitch, apart; };

static void take_rows(void *argument, int64_t row, int64_t rows, const float *sums)
{
    const struct taken *taken = argument;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < taken->columns; j++)
            taken->out[(row + i) * taken->columns + j] =
                sums[j / SUMS_COLUMNS * taken->apart + i * taken->pitch + j % SUMS_COLUMNS];
}

/* Sums and scratch are as large as they must be, and guarded. */
static void run_kernel(const struct bsmi_kernel *kernel, struct bsmi_tile tile, bool in_parts, float *out)
{
    const int64_t rows = bsmi_round_up(tile.rows, 16), columns = bsmi_round_up(tile.columns, 32),
                  width = in_parts ? BSMI_MIN(columns, SUMS_COLUMNS) : columns;
    const struct taken taken = { out, tile.columns, width + 16, rows * (width + 16) };
    float *sums = guarded_at_end((size_t)(bsmi_ceil_div(columns, width) * taken.apart) * sizeof(float), 64, 0xff);
    void *scratch = guarded_at_end(bsmi_kernel_scratch_bytes(kernel, tile.rows, tile.columns), 64, 0xff);
    tile.sums = sums, tile.sums_pitch = taken.pitch;
    if (in_parts) {
        tile.sums_columns = SUMS_COLUMNS, tile.sums_apart = taken.apart;
        tile.finish = take_rows, tile.finish_argument = (void *)(uintptr_t)&taken;
    }
    bsmi_kernel_sum(kernel, &tile, scratch);
    for (int64_t i = 0; i < tile.rows && !in_parts; i++)
        memcpy(out + i * tile.columns, sums + i * tile.sums_pitch, (size_t)tile.columns * sizeof(float));
    guarded_free(sums), guarded_free(scratch);
}

void compare_sums(struct test *t, const struct operand *a, const struct operand *b, int64_t columns, int64_t count,
                  const float *want, const float *got)
{
    for (int64_t i = 0; i < count; i++) {
        if (memcmp(&want[i], &got[i], sizeof *got) == 0 || (want[i] != want[i] && got[i] != got[i])) continue;
        FAIL(t, "%s x %s, K=%lld: S[%lld, %lld] = %a, wanted %a", bsm_format_get((int)a->m.format)->name,
             bsm_format_get((int)b->m.format)->name, (long long)a->m.columns, (long long)(i / columns),
             (long long)(i % columns), (double)got[i], (double)want[i]);
        return;
    }
}

/* B as the kernel's panels, behind which nothing may be read. */
static unsigned char *prepack(const struct bsmi_kernel *kernel, const struct bsmi_tile *tile, int64_t columns)
{
    const struct bsmi_b_panels *const panels = kernel->panels;
    const int64_t strips = bsmi_ceil_div(columns, panels->columns), of_strip = bsmi_ceil_div(tile->k, panels->chunk);
    unsigned char *const all = guarded_at_end((size_t)(strips * of_strip) * panels->bytes, 64, 0xff), *to = all;
    for (int64_t first = 0; first < columns; first += panels->columns)
        for (int64_t k = 0; k < tile->k; k += panels->chunk, to += panels->bytes) {
            const struct bsmi_part part = { tile->b, 0, first, BSMI_MIN(panels->columns, columns - first), tile->split,
                                            k, BSMI_MIN(panels->chunk, tile->k - k), NULL };
            panels->pack(&part, 0, to);
        }
    return all;
}

static enum way compare(struct test *t, const char *first, const char *second, const struct operand *a,
                        const struct operand *b, struct where at, bool prepacked)
{
    struct bsmi_matrix ma, mb;
    struct tables ta, tb;
    const int64_t all_columns = at.split == 0 ? b->m.rows : 2 * at.split, columns = all_columns - at.first_column;
    struct bsmi_tile tile = { .a = resolve(t, a, &ma, &ta), .b = resolve(t, b, &mb, &tb), .row = at.first_row,
                                    .rows = a->m.rows - at.first_row, .column = at.first_column, .columns = columns,
                                    .split = at.split, .k = a->m.columns };
    const size_t bytes = (size_t)(tile.rows * columns) * sizeof(float);
    float *want = malloc(bytes), *got = malloc(bytes);
    run_kernel(kernel_named(first), tile, at.in_parts, want);
    const bool tells = emulated_int8_products != NULL;
    const long int8_before = tells ? emulated_int8_products() : 0, bf16_before = tells ? emulated_bf16_products() : 0;
    unsigned char *const panels = prepacked ? prepack(kernel_named(second), &tile, all_columns) : NULL;
    tile.prepacked_b = panels;
    run_kernel(kernel_named(second), tile, at.in_parts, got);
    if (prepacked) guarded_free(panels);
    const enum way way = !tells                                   ? UNKNOWN
                         : emulated_int8_products() > int8_before ? AS_INT8
                         : emulated_bf16_products() > bf16_before ? AS_BF16
                                                                  : WITHOUT_TILES;
    compare_sums(t, a, b, columns, tile.rows * columns, want, got);
    free(want), free(got);
    return way;
}

enum way compare_kernels(struct test *t, const char *first, const char *second, const struct operand *a,
                         const struct operand *b, struct where at)
{
    return compare(t, first, second, a, b, at, false);
}

enum way compare_prepacked(struct test *t, const char *first, const char *second, const struct operand *a,
                           const struct operand *b, struct where at)
{
    return compare(t, first, second, a, b, at, true);
}
