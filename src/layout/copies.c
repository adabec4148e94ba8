/* Which copies a layout fits: the rules of each, in the order in which a reader would check them by hand.
 *
 * A rule looks at two scales and says where they would have to lie.  Offsets are sums of a part of the row and one of
 * the column, so that rows are looked at in column 0 and columns in row 0. */
#include "modes.h"

#include "blockscale/scale_copy.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static const char *const names[BSM_SCALE_COPY_COUNT] = {
    [BSM_SCALE_COPY_TCGEN05_CP] = "tcgen05.cp", [BSM_SCALE_COPY_TMA] = "tma", [BSM_SCALE_COPY_LDMATRIX] = "ldmatrix",
    [BSM_SCALE_COPY_MFMA_16] = "mfma_16", [BSM_SCALE_COPY_MFMA_32] = "mfma_32",
};

const char *bsm_scale_copy_name(int copy)
{
    return copy >= 0 && copy < BSM_SCALE_COPY_COUNT ? names[copy] : NULL;
}

int bsm_scale_copy_from_name(const char *name)
{
    for (int i = 0; name != NULL && i < BSM_SCALE_COPY_COUNT; i++)
        if (strcmp(names[i], name) == 0) return i;
    return -1;
}

/* Returns `fits`. */
__attribute__((format(printf, 3, 4))) static bool tell(bsm_scale_fit *fit, bool fits, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fit->text, sizeof fit->text, format, arguments);
    va_end(arguments);
    return fits;
}
#define BREAKS(fit, ...) tell(fit, false, __VA_ARGS__)

/* Rows and columns that are looked at: the first ones, far more than any layout needs to repeat itself, and the last.
 * Returns the multiple of `step` that follows `at`. */
static int64_t next(int64_t at, int64_t step, int64_t count)
{
    enum { FIRST = 4096 };
    const int64_t last = (count - 1) / step * step;
    return at + step > FIRST && at + step < last ? last : at + step;
}

/* Four columns of a row in four bytes, at a multiple of four. */
static bool has_cells(const struct bsmi_scale_map *map, bsm_scale_fit *fit, const char *what)
{
    for (int64_t s = 0; s < map->padded_columns; s = next(s, 1, map->padded_columns)) {
        const int64_t first = s / 4 * 4, place = bsmi_scale_at(map, 0, s), begin = bsmi_scale_at(map, 0, first);
        if (begin % 4 != 0)
            return BREAKS(fit, "column %" PRId64 " of row 0 lies at byte %" PRId64 ", which is no multiple of 4: %s",
                          first, begin, what);
        if (place != begin + s - first)
            return BREAKS(fit, "columns %" PRId64 " and %" PRId64 " of row 0 lie at bytes %" PRId64 " and %" PRId64
                          ", not %" PRId64 " apart: %s",
                          first, s, begin, place, s - first, what);
    }
    return true;
}

/* tcgen05.cp ------------------------------------------------------------------------------------------------------- */

enum { CP_ROWS = 128, CP_COLUMNS = 4, CP_LINES = 32, CORE_LINES = 8, LINE_BYTES = 16 };

static bool whole_tiles(const struct bsmi_scale_map *map, bsm_scale_fit *fit)
{
    if (map->padded_rows % CP_ROWS == 0 && map->padded_columns % CP_COLUMNS == 0) return true;
    return BREAKS(fit, "the layout has %" PRId64 " rows x %" PRId64 " columns with its padding: a copy takes whole "
                  "tiles of 128 rows x 4 columns (PTX ISA 9.7.16.9.2)",
                  map->padded_rows, map->padded_columns);
}

/* Row r of a tile has to lie behind line r % 32, as the r / 32-th of its four cells. */
static bool lines_of_tile(const struct bsmi_scale_map *map, bsm_scale_fit *fit, int64_t tile)
{
    const int64_t begin = bsmi_scale_at(map, tile, 0);
    for (int64_t r = 0; r < CP_ROWS; r++) {
        const int64_t line = r % CP_LINES, place = bsmi_scale_at(map, tile + r, 0),
                      line_begin = bsmi_scale_at(map, tile + line, 0);
        if (place != line_begin + r / CP_LINES * 4)
            return BREAKS(fit, "rows %" PRId64 " and %" PRId64 " lie at bytes %" PRId64 " and %" PRId64 ", not %" PRId64
                          " apart: a line of 16 bytes goes to four columns of one lane, which hold rows r, r + 32, r + "
                          "64 and r + 96 (PTX ISA 9.7.16.9.2; where scales are read: 9.7.16.10)",
                          tile + line, tile + r, line_begin, place, r / CP_LINES * 4);
    }
    for (int64_t line = 0; line < CP_LINES; line++) {
        const int64_t group = line / CORE_LINES * CORE_LINES, place = bsmi_scale_at(map, tile + line, 0),
                      group_begin = bsmi_scale_at(map, tile + group, 0);
        if (place != group_begin + (line - group) * LINE_BYTES)
            return BREAKS(fit, "rows %" PRId64 " and %" PRId64 " lie at bytes %" PRId64 " and %" PRId64 ", not %" PRId64
                          " apart: without a swizzle eight lines of 16 bytes follow each other (PTX ISA 9.7.16.4.1)",
                          tile + group, tile + line, group_begin, place, (line - group) * LINE_BYTES);
        if (group_begin != begin + line / CORE_LINES * fit->stride)
            return BREAKS(fit, "row %" PRId64 " lies at byte %" PRId64 ", not at %" PRId64 ": groups of eight lines "
                          "follow each other at one distance (PTX ISA 9.7.16.4.1)",
                          tile + group, group_begin, begin + line / CORE_LINES * fit->stride);
    }
    return true;
}

static bool fits_tcgen05_cp(const struct bsmi_scale_map *map, bsm_scale_fit *fit)
{
    if (!has_cells(map, fit, "a cell of tensor memory has four columns of a row, from four bytes side by side (PTX ISA "
                             "9.7.16.9.2; where scales are read: 9.7.16.10)")
        || !whole_tiles(map, fit))
        return false;
    fit->stride = bsmi_scale_at(map, CORE_LINES, 0) - bsmi_scale_at(map, 0, 0);
    for (int64_t tile = 0; tile < map->padded_rows; tile = next(tile, CP_ROWS, map->padded_rows))
        if (!lines_of_tile(map, fit, tile)) return false;
    if (fit->stride < 0 || fit->stride >= 1 << 18 || fit->stride % 16 != 0)
        return BREAKS(fit, "rows 0 and 8 lie %" PRId64 " bytes apart: a descriptor has 14 bits for a multiple of 16 "
                      "(PTX ISA 9.7.16.4.1)",
                      fit->stride);
    fit->rows = CP_ROWS, fit->columns = CP_COLUMNS;
    return tell(fit, true, "tcgen05.cp.32x128b.warpx4 by a matrix descriptor without swizzle, stride dimension byte "
                "offset %" PRId64 ", for each tile of 128 rows x 4 columns",
                fit->stride);
}

/* TMA -------------------------------------------------------------------------------------------------------------- */

enum { BOX_MOST = 256, TMA_ALIGNMENT = 16, BOTH = 2 };

/* A digit of one of the axes; the slowest of an axis may be cut anywhere, the others go into a box whole. */
struct digit { struct bsmi_mode mode; enum bsmi_axis axis; bool slowest; };

/* The last digit, if nothing of its axis lies further apart. */
static bool is_slowest(const struct bsmi_modes *modes, int number)
{
    for (int i = 0; i < number; i++)
        if (modes->mode[i].stride > modes->mode[number].stride) return false;
    return number + 1 == modes->count;
}

static int digits_by_stride(const struct bsmi_scale_map *map, struct digit digits[BOTH * BSMI_MODES])
{
    int count = 0;
    for (int axis = BSMI_ROWS; axis <= BSMI_COLUMNS; axis++) {
        const struct bsmi_modes modes = bsmi_scale_modes(map, (enum bsmi_axis)axis);
        for (int i = 0; i < modes.count; i++) {
            const struct digit digit = { modes.mode[i], (enum bsmi_axis)axis, is_slowest(&modes, i) };
            int at = count++;
            for (; at > 0 && digits[at - 1].mode.stride > digit.mode.stride; at--) digits[at] = digits[at - 1];
            digits[at] = digit;
        }
    }
    return count;
}

/* Multiplies what a box takes along an axis. */
static void take(bsm_scale_fit *fit, enum bsmi_axis axis, int64_t times)
{
    if (axis == BSMI_ROWS) fit->rows *= times;
    else fit->columns *= times;
}

static void add_dimension(bsm_scale_fit *fit, int64_t extent, int64_t stride, int64_t box)
{
    if (fit->rank < BSM_TENSOR_RANK) {
        fit->dimension[fit->rank] = extent;
        fit->tensor_stride[fit->rank] = stride;
        fit->box[fit->rank] = box;
    }
    fit->rank++;
}

/* A run of bytes that a box takes whole, in pieces of at most 256. */
static void add_run(bsm_scale_fit *fit, int64_t bytes)
{
    int64_t piece = bytes;
    if (bytes > BOX_MOST)                            /* those of tiles are multiples of 16, or break a rule */
        for (piece = BOX_MOST; piece > TMA_ALIGNMENT && bytes % piece != 0;) piece -= TMA_ALIGNMENT;
    add_dimension(fit, piece, 1, piece);
    for (int64_t rest = bytes / piece, stride = piece; rest > 1 && fit->rank <= BSM_TENSOR_RANK;) {
        int64_t part = BSMI_MIN(rest, BOX_MOST);
        while (rest % part != 0) part--;
        if (part == 1) part = rest;                  /* a prime: refused below */
        add_dimension(fit, part, stride, part);
        stride *= part, rest /= part;
    }
}

static int64_t least_common_multiple(int64_t a, int64_t b)
{
    int64_t x = a, y = b;
    while (y != 0) {
        const int64_t rest = x % y;
        x = y, y = rest;
    }
    return a / x * b;
}

/* Whether a digit goes into dimension 0, behind `run` bytes side by side.  The slowest of an axis is a dimension of its
 * own where it can be: its stride is then a multiple of 16. */
static bool goes_on(const struct digit *digit, int64_t run)
{
    if (digit->mode.stride != run) return false;
    return !digit->slowest || (run % TMA_ALIGNMENT != 0 && least_common_multiple(run, TMA_ALIGNMENT) <= BOX_MOST);
}

/* Dimension 0: bytes side by side.  A box takes them whole, or cuts the last digit if that is the slowest of its axis.
 * Returns the digits used. */
static int first_dimension(bsm_scale_fit *fit, const struct digit *digits, int count)
{
    int64_t run = 1, before = 1;
    int used = 0;
    for (; used < count && goes_on(&digits[used], run); used++) before = run, run *= digits[used].mode.extent;
    for (int i = 0; i + 1 < used; i++) take(fit, digits[i].axis, digits[i].mode.extent);
    if (used == 0) {
        add_dimension(fit, 1, 1, count == 0 ? TMA_ALIGNMENT : 1);
    } else if (digits[used - 1].slowest) {
        const int64_t box = least_common_multiple(before, TMA_ALIGNMENT);
        take(fit, digits[used - 1].axis, BSMI_MIN(box / before, digits[used - 1].mode.extent));
        add_dimension(fit, run, 1, box);
    } else {
        take(fit, digits[used - 1].axis, digits[used - 1].mode.extent);
        add_run(fit, run);
    }
    return used;
}

static bool check_tensor(bsm_scale_fit *fit)
{
    static const char rules[] = "(PTX ISA 5.5, CUDA driver API cuTensorMapEncodeTiled)";
    if (fit->rank > BSM_TENSOR_RANK)
        return BREAKS(fit, "a tile of the layout takes a tensor of %d dimensions: there are 5 %s", fit->rank, rules);
    for (int i = 0; i < fit->rank; i++) {
        if (fit->dimension[i] > INT64_C(1) << 32)
            return BREAKS(fit, "dimension %d has %" PRId64 " elements: there are 1 to 2^32 %s", i, fit->dimension[i],
                          rules);
        if (i > 0 && fit->tensor_stride[i] % TMA_ALIGNMENT != 0)
            return BREAKS(fit, "the stride of dimension %d is %" PRId64 " bytes: strides are multiples of 16 %s", i,
                          fit->tensor_stride[i], rules);
        if (i > 0 && fit->tensor_stride[i] >= INT64_C(1) << 40)
            return BREAKS(fit, "the stride of dimension %d is %" PRId64 " bytes: strides are below 2^40 %s", i,
                          fit->tensor_stride[i], rules);
        if (fit->box[i] > BOX_MOST)
            return BREAKS(fit, "the smallest box has %" PRId64 " elements in dimension %d: there are 1 to 256 %s",
                          fit->box[i], i, rules);
    }
    if (fit->box[0] % TMA_ALIGNMENT != 0)
        return BREAKS(fit, "bytes of scales lie side by side by %" PRId64 ": a box takes a multiple of 16 in dimension "
                      "0 %s",
                      fit->box[0], rules);
    return true;
}

static void tensor_text(bsm_scale_fit *fit)
{
    size_t used = (size_t)snprintf(fit->text, sizeof fit->text, "a tensor of bytes, dimensions (");
    for (int i = 0; i < fit->rank; i++)
        used += (size_t)snprintf(fit->text + used, sizeof fit->text - used, i > 0 ? ", %" PRId64 : "%" PRId64,
                                 fit->dimension[i]);
    used += (size_t)snprintf(fit->text + used, sizeof fit->text - used, ")");
    for (int i = 1; i < fit->rank; i++)
        used += (size_t)snprintf(fit->text + used, sizeof fit->text - used, i > 1 ? ", %" PRId64 : ", strides %" PRId64,
                                 fit->tensor_stride[i]);
    used += (size_t)snprintf(fit->text + used, sizeof fit->text - used, "; the smallest box (");
    for (int i = 0; i < fit->rank; i++)
        used += (size_t)snprintf(fit->text + used, sizeof fit->text - used, i > 0 ? ", %" PRId64 : "%" PRId64,
                                 fit->box[i]);
    snprintf(fit->text + used, sizeof fit->text - used, ") has %" PRId64 " row%s x %" PRId64 " column%s", fit->rows,
             fit->rows > 1 ? "s" : "", fit->columns, fit->columns > 1 ? "s" : "");
}

static bool fits_tma(const struct bsmi_scale_map *map, bsm_scale_fit *fit)
{
    struct digit digits[BOTH * BSMI_MODES];
    const int count = digits_by_stride(map, digits);
    fit->rows = fit->columns = 1;
    for (int i = first_dimension(fit, digits, count); i < count; i++) {
        const struct bsmi_mode mode = digits[i].mode;
        add_dimension(fit, mode.extent, mode.stride, digits[i].slowest ? 1 : mode.extent);
        if (!digits[i].slowest) take(fit, digits[i].axis, mode.extent);
    }
    if (!check_tensor(fit)) return false;
    tensor_text(fit);
    return true;
}

/* ldmatrix --------------------------------------------------------------------------------------------------------- */

/* Row n of a matrix is 16 bytes, of which lanes 4 n to 4 n + 3 get four each; mma.sync takes column n of B from lane
 * 4 n + selector.  So eight rows have their four columns in the same quarter of 16 bytes. */
static bool fits_ldmatrix(const struct bsmi_scale_map *map, bsm_scale_fit *fit)
{
    static const char cells[] = "a lane gives mma.sync four columns of a row, from four bytes side by side (PTX ISA "
                                "9.7.14.3)";
    if (!has_cells(map, fit, cells)) return false;
    for (int64_t r = 0; r < map->padded_rows; r = next(r, 1, map->padded_rows)) {
        const int64_t first = r / CORE_LINES * CORE_LINES, place = bsmi_scale_at(map, r, 0),
                      begin = bsmi_scale_at(map, first, 0);
        if (place % 4 != 0)
            return BREAKS(fit, "row %" PRId64 " begins at byte %" PRId64 ", which is no multiple of 4: %s", r, place,
                          cells);
        if (place % LINE_BYTES != begin % LINE_BYTES)
            return BREAKS(fit, "rows %" PRId64 " and %" PRId64 " lie at bytes %" PRId64 " and %" PRId64 ", in "
                          "different quarters of 16: a matrix has rows of 16 bytes at multiples of 16 (PTX ISA "
                          "9.7.14.5.15), and its lanes 4 n + t, one t for all n, give mma.sync the scales of row n "
                          "(9.7.14.3)",
                          first, r, begin, place);
    }
    fit->rows = CORE_LINES, fit->columns = 4;
    fit->lane = (int)(bsmi_scale_at(map, 0, 0) % LINE_BYTES / 4);
    return tell(fit, true, "ldmatrix.m8n8.x1.b16, lane n giving the address of the 16 bytes around row n's scales; of "
                "rows 0 to 7 lane 4 n + %d then has columns 0 to 3 of row n, which is thread selector %d of B",
                fit->lane, fit->lane);
}

/* MFMA ------------------------------------------------------------------------------------------------------------- */

/* Lane l gives the scale of row l % dim and column l / dim, from the byte of its register that op_sel names for the
 * whole wave. */
static bool one_byte(const struct bsmi_scale_map *map, bsm_scale_fit *fit, enum bsmi_axis axis, int64_t group, int dim)
{
    const int64_t count = axis == BSMI_ROWS ? map->padded_rows : map->padded_columns;
    const char *name = axis == BSMI_ROWS ? "row" : "column";
    for (int64_t i = 0; i < count; i = next(i, 1, count)) {
        const int64_t first = i / group * group, place = bsmi_axis_offset(map, axis, i),
                      begin = bsmi_axis_offset(map, axis, first);
        if (place % 4 != begin % 4)
            return BREAKS(fit, "%ss %" PRId64 " and %" PRId64 " lie at bytes %" PRId64 " and %" PRId64 ", bytes %d and "
                          "%d of 32 bits: v_mfma_scale of %d rows x %" PRId64 " columns takes one byte of each lane's "
                          "32 bits, the same in all lanes (CDNA4 ISA, Matrix Arithmetic Instructions, op_sel)",
                          name, first, i, begin, place, (int)(begin % 4), (int)(place % 4), dim, (int64_t)(64 / dim));
    }
    return true;
}

static bool fits_mfma(const struct bsmi_scale_map *map, bsm_scale_fit *fit, int dim)
{
    if (!one_byte(map, fit, BSMI_ROWS, dim, dim) || !one_byte(map, fit, BSMI_COLUMNS, 64 / dim, dim)) return false;
    fit->rows = dim, fit->columns = 64 / dim;
    fit->byte = (int)(bsmi_scale_at(map, 0, 0) % 4);
    return tell(fit, true, "lane l loads the 32 bits with the scale of row l %% %d, column l / %d; for rows 0 to %d "
                "and columns 0 to %d it is byte %d of them (op_sel)",
                dim, dim, dim - 1, 64 / dim - 1, fit->byte);
}

/* ------------------------------------------------------------------------------------------------------------------ */

bsm_status bsm_scale_layout_fits(const bsm_scale_layout *layout, int64_t rows, int64_t columns, bsm_scale_copy copy,
                                 bsm_scale_fit *fit)
{
    struct bsmi_scale_map map;
    if (fit == NULL) return bsmi_fail(BSM_EINVAL, "fit is NULL");
    if (fit->struct_size < sizeof *fit || fit->struct_size > 65536)
        return bsmi_fail(BSM_EINVAL, "fit->struct_size is %zu: set it to sizeof(bsm_scale_fit), %zu", fit->struct_size,
                         sizeof *fit);
    if (bsm_scale_copy_name((int)copy) == NULL)
        return bsmi_fail(BSM_EINVAL, "copy=%d: no copy has this number, see bsm_scale_copy", (int)copy);
    const bsm_status status = bsmi_scale_map_of(layout, rows, columns, &map);
    if (status != BSM_OK) return status;
    *fit = (bsm_scale_fit){ .struct_size = fit->struct_size };
    switch (copy) {
    case BSM_SCALE_COPY_TCGEN05_CP: fit->fits = fits_tcgen05_cp(&map, fit); break;
    case BSM_SCALE_COPY_TMA: fit->fits = fits_tma(&map, fit); break;
    case BSM_SCALE_COPY_LDMATRIX: fit->fits = fits_ldmatrix(&map, fit); break;
    case BSM_SCALE_COPY_MFMA_16: fit->fits = fits_mfma(&map, fit, 16); break;
    default: fit->fits = fits_mfma(&map, fit, 32); break;
    }
    return BSM_OK;
}
