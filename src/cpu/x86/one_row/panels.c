/* Panels of B for one row of A: panels.h.  In plain C: they are made once. */
#if defined(__x86_64__)
#include "panels.h"

#include "core/core.h"
#include "cpu/kernels.h"
#include "cpu/row_exponents.h"
#include "cpu/table.h"
#include "matrix/rows.h"

enum { BLOCK = 32, NAN_SCALE = 255, SCALE_OF_ONE = 127, MOST_BLOCKS = BSMI_PANEL_COLUMNS / BSMI_SHORTEST_BLOCK };

/* Row `row` of the part: codes of all columns of a panel, zeros behind its last, and scales of its blocks. */
struct row { uint8_t codes[BSMI_PANEL_COLUMNS], scales[MOST_BLOCKS]; int64_t source; };

static struct row read_row(const struct bsmi_part *part, int64_t row)
{
    const struct bsmi_matrix *m = part->operand.matrix;
    struct row r = { .source = bsmi_source_column(part->first + row, part->split) };
    bsmi_row_codes(m, part->batch, r.source, part->k, part->length, r.codes);
    bsmi_row_scales(m, part->batch, r.source, part->k / m->block, bsmi_ceil_div(part->length, m->block), r.scales);
    return r;
}

static void pack_nibbles(const uint8_t *codes, int64_t row, uint8_t *panel)
{
    for (int k = 0; k < BSMI_PANEL_COLUMNS; k += 2)
        panel[k / 8 * 4 * BSMI_PANEL_ROWS + row * 4 + k / 2 % 4] = (uint8_t)(codes[k] | codes[k + 1] << 4);
}

static void pack_bytes(const uint8_t *codes, int64_t row, uint8_t *panel)
{
    for (int k = 0; k < BSMI_PANEL_COLUMNS; k++)
        panel[k / 4 * 4 * BSMI_PANEL_ROWS + row * 4 + 3 - k % 4] = codes[k];
}

/* An 8-bit float with an implicit bit, neither NaN nor infinite. */
static bool is_normal(bsm_element element, uint8_t code)
{
    const int magnitude = code & 0x7f;
    return element == BSM_E4M3 ? magnitude >= 0x08 && magnitude < 0x7f : magnitude >= 0x04 && magnitude < 0x7c;
}

static bool is_number(bsm_element element, uint8_t code)
{
    const int magnitude = code & 0x7f;
    return element == BSM_E4M3 ? magnitude < 0x7f : magnitude < 0x7c;
}

/* Of block s of a row. */
static uint8_t scale_of_block(const struct bsmi_part *part, const struct row *row, int s)
{
    const struct bsmi_matrix *m = part->operand.matrix;
    const struct bsmi_scale_bounds bounds = bsmi_scale_bounds(m->element);
    const bool floats = m->bits == 8;
    bool normal = true;
    uint8_t code = row->scales[s];
    if (s * BLOCK >= part->length) return (uint8_t)(floats ? SCALE_OF_ONE + BSMI_PANEL_SPECIAL : SCALE_OF_ONE);
    for (int i = 0; floats && i < BLOCK; i++) {
        if (!is_number(m->element, row->codes[s * BLOCK + i])) return BSMI_PANEL_SCALE_OUTSIDE;
        normal &= is_normal(m->element, row->codes[s * BLOCK + i]);
    }
    if (code == NAN_SCALE) return BSMI_PANEL_SCALE_OUTSIDE;
    if (bsmi_block_is_zero(m, part->batch, row->source, part->k / BLOCK + s, m->columns)) code = SCALE_OF_ONE;
    if (code < bounds.least || code > bounds.most) return BSMI_PANEL_SCALE_OUTSIDE;
    return (uint8_t)(normal ? code : code + BSMI_PANEL_SPECIAL);
}

static void pack_scales(const struct bsmi_part *part, const struct row *row, int64_t r,
                        uint8_t (*scales)[BSMI_PANEL_SLICES])
{
    for (int s = 0; s < BSMI_PANEL_SLICES; s++) scales[r][s] = scale_of_block(part, row, s);
}

static void pack_fp4(const struct bsmi_part *part, int exact_block, void *to)
{
    struct bsmi_fp4_panel *const panel = to;
    (void)exact_block;
    memset(panel->codes, 0, sizeof panel->codes);
    memset(panel->scales, SCALE_OF_ONE, sizeof panel->scales);
    for (int64_t r = 0; r < part->count; r++) {
        const struct row row = read_row(part, r);
        pack_nibbles(row.codes, r, panel->codes);
        pack_scales(part, &row, r, panel->scales);
    }
}

static void pack_fp8(const struct bsmi_part *part, int exact_block, void *to)
{
    struct bsmi_fp8_panel *const panel = to;
    (void)exact_block;
    memset(panel->codes, 0, sizeof panel->codes);
    memset(panel->scales, SCALE_OF_ONE + BSMI_PANEL_SPECIAL, sizeof panel->scales);
    for (int64_t r = 0; r < part->count; r++) {
        const struct row row = read_row(part, r);
        pack_bytes(row.codes, r, panel->codes);
        pack_scales(part, &row, r, panel->scales);
    }
}

static void pack_nvfp4(const struct bsmi_part *part, int exact_block, void *to)
{
    struct bsmi_nvfp4_panel *const panel = to;
    (void)exact_block;
    memset(panel, 0, sizeof *panel);
    for (int64_t r = 0; r < part->count; r++) {
        const struct row row = read_row(part, r);
        pack_nibbles(row.codes, r, panel->codes);
        for (int s = 0; s < MOST_BLOCKS; s++) panel->scales[s][r] = row.scales[s] & 0x7f;
    }
}

#define PANELS(name) \
    const struct bsmi_b_panels bsmi_##name##_panels = { BSMI_PANEL_ROWS, BSMI_PANEL_COLUMNS, \
                                                        sizeof(struct bsmi_##name##_panel), false, pack_##name };
PANELS(fp4)
PANELS(fp8)
PANELS(nvfp4)
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
