/* Matrices between shared memory and the registers of a warp (PTX ISA 9.7.14.5.15-17): ldmatrix, stmatrix, movmatrix.
 *
 * A matrix has 8 rows of 16 bytes; lane 8 n + i gives the address of row i of matrix n and counts as the one that
 * accesses it.  In registers lane l holds elements (l / 4, 2 (l % 4)) and (l / 4, 2 (l % 4) + 1) of each matrix, or of
 * its transpose.
 *
 * Matrices of bytes have rows of 16 elements in 16 bytes of memory, of which elements of 4 and 6 bits fill the first 8
 * and 12; in registers each has a byte.  How lanes hold them follows CuTe's layouts and, for m16n16, a published
 * measurement on sm_120a:
 *     m8n16         lane l: elements 4 (l % 4) + 0..3 of row l / 4; a register a matrix
 *     m16n16.trans  lane l: rows 4 (l % 4) + 0..3 of column l / 4, in the second register of column l / 4 + 8
 *     m16n8.trans   memory has the columns, of 16; byte b of lane l: column 2 (l % 4) + b % 2, row l / 4 + b / 2 * 8 */
#include "instructions/table/families.h"
#include "fragment.h"
#include "instructions/memory/memory.h"
#include "machine/check/checks.h"
#include "machine/core/report.h"
#include "machine/memory/access.h"

enum { SIDE = 8, ROW_BYTES = 16 }; /* elements; bytes */

typedef uint16_t matrix[SIDE][SIDE];

/* The element that half h of lane l's register holds. */
static uint16_t *element_of(matrix m, bool transposed, uint32_t l, uint32_t h)
{
    const uint32_t i = l / 4, j = l % 4 * 2 + h;
    return transposed ? &m[j][i] : &m[i][j];
}
static uint32_t register_of(matrix m, bool transposed, uint32_t l)
{
    return *element_of(m, transposed, l, 0) | (uint32_t)*element_of(m, transposed, l, 1) << 16;
}

/* Finds the rows of `count` matrices of 8 rows; locates: the caller checks the access. */
static trap find_rows(struct warp *w, const struct insn *in, uint32_t count, const struct operand *address, bool writes,
                      bool locates, struct access *a)
{
    const uint32_t lanes = (uint32_t)bits_mask(SIDE * count);
    a->space = (enum space)in->space;
    a->bytes = ROW_BYTES;
    a->writes = writes;
    a->reads = !writes;
    a->strong = a->mbarrier = false;
    a->locates = locates;
    a->stored = NULL;
    address_lanes(w, address, lanes, a->address);
    if (a->space == SPACE_GENERIC) FOR_LANES(l, lanes)
    if (a->address[l] - SHARED_WINDOW - w->cta->shared_base >= (UINT64_C(1) << SHARED_RANK_SHIFT))
        return warp_fault(w, in, l, REPORT_OUT_OF_BOUNDS,
                          "%s a row at the generic address 0x%llx, which is not in the shared memory of its CTA",
                          writes ? "writes" : "reads", (unsigned long long)a->address[l]);
    return memory_access(w, in, lanes, a);
}

enum { TRANSPOSED = 1 }; /* in->detail */

/* ldmatrix{.trans} d, [a]   d[n] = what this lane holds of matrix n */
static trap op_ldmatrix(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)lanes;
    const uint32_t count = in->operand[0].count;
    struct access a;
    trap t = find_rows(w, in, count, &in->operand[1], false, false, &a);
    if (t != TRAP_NONE) return t;
    for (uint32_t n = 0; n < count; n++) {
        matrix m;
        for (uint32_t i = 0; i < SIDE; i++)
            for (uint32_t j = 0; j < SIDE; j++) m[i][j] = (uint16_t)load_bytes(a.host[n * SIDE + i] + 2 * j, 2);
        uint64_t *d = register_row(w, in->operand[0].element[n].slot);
        for (uint32_t l = 0; l < LANES; l++) d[l] = register_of(m, in->detail == TRANSPOSED, l);
    }
    return TRAP_NONE;
}

/* stmatrix{.trans} [a], b   the inverse */
static trap op_stmatrix(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)lanes;
    const uint32_t count = in->operand[1].count;
    struct access a;
    trap t = find_rows(w, in, count, &in->operand[0], true, false, &a);
    if (t != TRAP_NONE) return t;
    for (uint32_t n = 0; n < count; n++) {
        matrix m;
        const uint64_t *b = source_row(w, &in->operand[1].element[n]);
        for (uint32_t l = 0; l < LANES; l++)
            for (uint32_t h = 0; h < 2; h++)
                *element_of(m, in->detail == TRANSPOSED, l, h) = (uint16_t)(b[l] >> 16 * h);
        for (uint32_t i = 0; i < SIDE; i++)
            for (uint32_t j = 0; j < SIDE; j++) store_bytes(a.host[n * SIDE + i] + 2 * j, 2, m[i][j]);
    }
    return TRAP_NONE;
}

/* ---- matrices of bytes ---- */

enum { BYTE_COLUMNS = 16, BITS_MASK = 15, TALL = 16 }; /* in->detail: bits of an element; m16n16 */

/* Rows of 16 elements, a byte each.  The padding behind elements of 4 and 6 bits is not looked at. */
static trap load_rows(struct warp *w, const struct insn *in, uint32_t matrices, uint8_t element[LANES][BYTE_COLUMNS])
{
    const uint32_t bits = in->detail & BITS_MASK;
    struct access a;
    trap t = find_rows(w, in, matrices, &in->operand[1], false, true, &a);
    a.bytes = BYTE_COLUMNS * bits / 8;
    if (t == TRAP_NONE) t = checks_shared(w, in, (uint32_t)bits_mask(SIDE * matrices), &a);
    for (uint32_t i = 0; i < SIDE * matrices && t == TRAP_NONE; i++)
        for (uint32_t e = 0; e < BYTE_COLUMNS; e++) {
            const uint32_t at = e * bits / 8, last = (e * bits + bits - 1) / 8;
            const uint64_t low = load_bytes(a.host[i] + at, 1), high = last != at ? load_bytes(a.host[i] + last, 1) : 0;
            element[i][e] = (uint8_t)((low | high << 8) >> e * bits % 8 & bits_mask(bits));
        }
    return t;
}

/* ldmatrix.m8n16, ldmatrix.m16n16.trans   d[n] = four elements of matrix n, zero-extended to bytes */
static trap op_ldmatrix_bytes(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)lanes;
    const uint32_t count = in->operand[0].count;
    uint8_t element[LANES][BYTE_COLUMNS];
    trap t = load_rows(w, in, count, element);
    if (t != TRAP_NONE) return t;
    for (uint32_t n = 0; n < count; n++) {
        uint64_t *d = register_row(w, in->operand[0].element[n].slot);
        for (uint32_t l = 0; l < LANES; l++) {
            d[l] = 0;
            for (uint32_t b = 0; b < 4; b++) {
                const uint32_t i = l / 4, j = l % 4 * 4 + b;
                const uint8_t e =
                    (in->detail & TALL) != 0 ? element[n / 2 * 16 + j][i + n % 2 * 8] : element[SIDE * n + i][j];
                d[l] |= (uint64_t)e << 8 * b;
            }
        }
    }
    return TRAP_NONE;
}

/* stmatrix.m16n8.trans.b8   the columns of matrix n, 16 bytes each */
static trap op_stmatrix_bytes(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)lanes;
    const uint32_t count = in->operand[1].count;
    struct access a;
    trap t = find_rows(w, in, count, &in->operand[0], true, false, &a);
    if (t != TRAP_NONE) return t;
    for (uint32_t n = 0; n < count; n++) {
        const uint64_t *value = source_row(w, &in->operand[1].element[n]);
        for (uint32_t l = 0; l < LANES; l++)
            for (uint32_t b = 0; b < 4; b++)
                store_bytes(a.host[SIDE * n + l % 4 * 2 + b % 2] + l / 4 + b / 2 * 8, 1, value[l] >> 8 * b & 255);
    }
    return TRAP_NONE;
}

/* movmatrix.trans d, a   the transpose, without memory */
static trap op_movmatrix(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)lanes;
    const uint64_t *a = source(w, in, 1);
    matrix m;
    for (uint32_t l = 0; l < LANES; l++)
        for (uint32_t h = 0; h < 2; h++) *element_of(m, false, l, h) = (uint16_t)(a[l] >> 16 * h);
    uint64_t *d = destination(w, in, 0);
    for (uint32_t l = 0; l < LANES; l++) d[l] = register_of(m, true, l);
    return TRAP_NONE;
}

static const char *prepare_transposed(struct module *module, struct insn *in)
{
    (void)module;
    in->detail = insn_has(in, ".trans") ? TRANSPOSED : 0;
    return NULL;
}

static const char *prepare_bytes(struct module *module, struct insn *in)
{
    (void)module;
    in->detail = (insn_has(in, ".b4x16_p64")   ? 4
                  : insn_has(in, ".b6x16_p32") ? 6
                                               : 8)
                 | (insn_has(in, ".m16n16") ? TALL : 0);
    return NULL;
}

/* In the manual's order of words and in CUTLASS's, which ptxas takes as well. */
#define LDMATRIX(words, count) \
    { "ldmatrix.sync.aligned" words "{.shared|.shared::cta}.b16", NULL, "d_:b32{" count "} a", 65, "sm_75+", \
      DEMANDS_WHOLE_WARP, op_ldmatrix, prepare_transposed, "9.7.14.5.15 ldmatrix" }
#define STMATRIX(words, count) \
    { "stmatrix.sync.aligned" words "{.shared|.shared::cta}.b16", NULL, "a s:b32{" count "}", 78, "sm_90+", \
      DEMANDS_WHOLE_WARP, op_stmatrix, prepare_transposed, "9.7.14.5.16 stmatrix" }
#define LDMATRIX_BYTES(words, formats, count) \
    { \
        "ldmatrix.sync.aligned" words "{.shared|.shared::cta}" formats, NULL, "d_:b32{" count "} a", 86, \
            "sm_100f sm_120f", DEMANDS_WHOLE_WARP, op_ldmatrix_bytes, prepare_bytes, "9.7.14.5.15 ldmatrix" \
    }
#define STMATRIX_BYTES(number, count) \
    { \
        "stmatrix.sync.aligned.m16n8" number ".trans{.shared|.shared::cta}.b8", NULL, "a s:b32{" count "}", 86, \
            "sm_100f sm_120f", DEMANDS_WHOLE_WARP, op_stmatrix_bytes, NULL, "9.7.14.5.16 stmatrix" \
    }
#define SMALL ".b8x16(.b4x16_p64|.b6x16_p32)"
#define BOTH_ORDERS(ROW, number, count) ROW(".m8n8" number "{.trans}", count), ROW(number "{.trans}.m8n8", count)

static const struct row rows[] = {
    BOTH_ORDERS(LDMATRIX, ".x1", "1"),
    BOTH_ORDERS(LDMATRIX, ".x2", "2"),
    BOTH_ORDERS(LDMATRIX, ".x4", "4"),
    BOTH_ORDERS(STMATRIX, ".x1", "1"),
    BOTH_ORDERS(STMATRIX, ".x2", "2"),
    BOTH_ORDERS(STMATRIX, ".x4", "4"),
    LDMATRIX_BYTES(".m8n16.x1", SMALL, "1"),
    LDMATRIX_BYTES(".m8n16.x2", SMALL, "2"),
    LDMATRIX_BYTES(".m8n16.x4", SMALL, "4"),
    LDMATRIX_BYTES(".m16n16.x1.trans", ".b8", "2"),
    LDMATRIX_BYTES(".m16n16.x2.trans", ".b8", "4"),
    LDMATRIX_BYTES(".m16n16.x1.trans", SMALL, "2"),
    LDMATRIX_BYTES(".m16n16.x2.trans", SMALL, "4"),
    STMATRIX_BYTES(".x1", "1"),
    STMATRIX_BYTES(".x2", "2"),
    STMATRIX_BYTES(".x4", "4"),
    { "movmatrix.sync.aligned.m8n8.trans.b16", NULL, "d:b32 s:b32", 78, "sm_75+", DEMANDS_WHOLE_WARP, op_movmatrix,
      NULL, "9.7.14.5.17 movmatrix" },
};

const struct family family_matrix_memory = FAMILY("matrices in shared memory", rows);
