/* Matrices between shared memory and the registers of a warp (PTX ISA 9.7.14.5.15-17): ldmatrix, stmatrix, movmatrix.
 *
 * A matrix has 8 rows of 16 bytes; lane 8 n + i gives the address of row i of matrix n and counts as the one that accesses it.  In
 * registers lane l holds elements (l / 4, 2 (l % 4)) and (l / 4, 2 (l % 4) + 1) of each matrix, or of its transpose. */
#include "instructions/families.h"
#include "instructions/fragment.h"
#include "instructions/memory.h"

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

/* Finds the rows of `count` matrices. */
static trap find_rows(struct warp *w, const struct insn *in, uint32_t count, const struct operand *address, bool writes,
                      struct access *a)
{
    const uint32_t lanes = (uint32_t)bits_mask(SIDE * count);
    a->space = (enum space)in->space;
    a->bytes = ROW_BYTES;
    a->strong = a->mbarrier = false;
    a->writes = writes;
    a->reads = !writes;
    a->strong = a->mbarrier = a->locates = false;
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
    const uint32_t count = in->operand[0].count;
    struct access a;
    trap t = whole_warp(w, in, lanes);
    if (t == TRAP_NONE) t = find_rows(w, in, count, &in->operand[1], false, &a);
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
    const uint32_t count = in->operand[1].count;
    struct access a;
    trap t = whole_warp(w, in, lanes);
    if (t == TRAP_NONE) t = find_rows(w, in, count, &in->operand[0], true, &a);
    if (t != TRAP_NONE) return t;
    for (uint32_t n = 0; n < count; n++) {
        matrix m;
        const uint64_t *b = source_row(w, &in->operand[1].element[n]);
        for (uint32_t l = 0; l < LANES; l++)
            for (uint32_t h = 0; h < 2; h++) *element_of(m, in->detail == TRANSPOSED, l, h) = (uint16_t)(b[l] >> 16 * h);
        for (uint32_t i = 0; i < SIDE; i++)
            for (uint32_t j = 0; j < SIDE; j++) store_bytes(a.host[n * SIDE + i] + 2 * j, 2, m[i][j]);
    }
    return TRAP_NONE;
}

/* movmatrix.trans d, a   the transpose, without memory */
static trap op_movmatrix(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const trap t = whole_warp(w, in, lanes);
    if (t != TRAP_NONE) return t;
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

/* In the manual's order of words and in CUTLASS's, which ptxas takes as well. */
#define LDMATRIX(words, count) \
    { "ldmatrix.sync.aligned" words "{.shared|.shared::cta}.b16", NULL, "d_:b32{" count "} a", 65, "sm_75+", \
      DEMANDS_ALIGNED, op_ldmatrix, prepare_transposed, "9.7.14.5.15 ldmatrix" }
#define STMATRIX(words, count) \
    { "stmatrix.sync.aligned" words "{.shared|.shared::cta}.b16", NULL, "a s:b32{" count "}", 78, "sm_90+", \
      DEMANDS_ALIGNED, op_stmatrix, prepare_transposed, "9.7.14.5.16 stmatrix" }
#define BOTH_ORDERS(ROW, number, count) ROW(".m8n8" number "{.trans}", count), ROW(number "{.trans}.m8n8", count)

static const struct row rows[] = {
    BOTH_ORDERS(LDMATRIX, ".x1", "1"), BOTH_ORDERS(LDMATRIX, ".x2", "2"), BOTH_ORDERS(LDMATRIX, ".x4", "4"),
    BOTH_ORDERS(STMATRIX, ".x1", "1"), BOTH_ORDERS(STMATRIX, ".x2", "2"), BOTH_ORDERS(STMATRIX, ".x4", "4"),
    { "movmatrix.sync.aligned.m8n8.trans.b16", NULL, "d:b32 s:b32", 78, "sm_75+", DEMANDS_ALIGNED, op_movmatrix, NULL,
      "9.7.14.5.17 movmatrix" },
};

const struct family family_matrix_memory = FAMILY("matrices in shared memory", rows);
