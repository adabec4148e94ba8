/* Scales of mma.sync: see block_scale.h.
 *
 * A row m of A is scaled by the word of lane 4 (m % 8) + 2 thread + m / 8, a column n of B by that of lane 4 n +
 * thread; of the word, one byte (1X), two from byte 0 or 2 on (2X), or all four (4X), for rising k. */
#include "block_scale.h"
#include "machine/core/report.h"

void codes_of_bytes(enum tensor_format format, uint32_t *code, uint32_t count)
{
    const uint32_t bits = tensor_format_bits(format), shift = format == TENSOR_E2M1 ? 2 : 0;
    for (uint32_t i = 0; i < count; i++) code[i] = code[i] >> shift & (uint32_t)bits_mask(bits);
}

struct scale_form scale_form_of(const struct insn *in, int operand_a, int operand_b)
{
    struct scale_form f = { .operand_a = operand_a, .operand_b = operand_b };
    if (!insn_has(in, ".block_scale")) return f;
    f.count = insn_has(in, ".kind::mxf8f6f4") ? 1 : insn_has(in, ".scale_vec::4X") ? 4 : 2;
    f.format = insn_has(in, ".ue4m3") ? TENSOR_UE4M3 : TENSOR_UE8M0;
    return f;
}

static bool byte_is_legal(uint32_t count, uint64_t byte) { return byte < MOST_SCALES && byte % count == 0; }
static bool thread_is_legal(bool is_b, uint64_t thread) { return thread < (is_b ? 4 : 2); }

static const char *refused(const struct operand *selector, uint32_t count, bool is_b)
{
    const struct operand *byte = &selector->element[0], *thread = &selector->element[1];
    if (byte->kind == OPERAND_CONSTANT && !byte_is_legal(count, byte->row[0]))
        return count == 1   ? "the byte selector is 0, 1, 2 or 3"
               : count == 2 ? "the byte selector is 0 or 2 with .scale_vec::2X"
                            : "the byte selector is 0 with .scale_vec::4X";
    if (thread->kind == OPERAND_CONSTANT && !thread_is_legal(is_b, thread->row[0]))
        return is_b ? "the thread selector of B is 0, 1, 2 or 3" : "the thread selector of A is 0 or 1";
    return NULL;
}

const char *scales_refused(const struct insn *in, const struct scale_form *f)
{
    if (f->count == 0) return NULL;
    const char *const why = refused(&in->operand[f->operand_a + 1], f->count, false);
    return why != NULL ? why : refused(&in->operand[f->operand_b + 1], f->count, true);
}

/* One selector of the whole warp: no source says what lanes with different ones would choose. */
static trap read_selector(struct warp *w, const struct insn *in, const struct operand *o, const char *what,
                          uint32_t *value)
{
    const uint64_t *row = source_row(w, o);
    *value = (uint32_t)row[0];
    for (uint32_t l = 1; l < LANES; l++)
        if (row[l] != row[0])
            return warp_fault(w, in, l, REPORT_ILLEGAL,
                              "has %s that is not the same in all lanes: %u here, %u in lane 0", what, (uint32_t)row[l],
                              *value);
    return TRAP_NONE;
}

trap scales_read(struct warp *w, const struct insn *in, const struct scale_form *f, uint32_t rows,
                 uint8_t code[][MOST_SCALES])
{
    const bool is_b = rows == FRAGMENT_COLUMNS;
    const struct operand *data = &in->operand[is_b ? f->operand_b : f->operand_a], *selector = data + 1;
    const char *const of = is_b ? "B" : "A";
    uint32_t byte, thread;
    trap t = read_selector(w, in, &selector->element[0], is_b ? "a byte selector of B" : "a byte selector of A", &byte);
    if (t == TRAP_NONE)
        t = read_selector(w, in, &selector->element[1], is_b ? "a thread selector of B" : "a thread selector of A",
                          &thread);
    if (t != TRAP_NONE) return t;
    if (!byte_is_legal(f->count, byte))
        return warp_fault(w, in, NO_LANE, REPORT_ILLEGAL,
                          "selects byte %u of the scales of %s; with .scale_vec::%uX it may be %s", byte, of, f->count,
                          f->count == 1   ? "0 to 3"
                          : f->count == 2 ? "0 or 2"
                                          : "0");
    if (!thread_is_legal(is_b, thread))
        return warp_fault(w, in, NO_LANE, REPORT_ILLEGAL, "selects thread %u for the scales of %s; it may be %s",
                          thread, of, is_b ? "0 to 3" : "0 or 1");
    const uint64_t *word = source_row(w, data);
    for (uint32_t i = 0; i < rows; i++) {
        const uint32_t lane = is_b ? 4 * i + thread : 4 * (i % 8) + 2 * thread + i / 8;
        for (uint32_t j = 0; j < f->count; j++) code[i][j] = (uint8_t)(word[lane] >> 8 * (byte + j));
    }
    return TRAP_NONE;
}

void scales_apply(struct tensor_panel *panel, uint8_t code[][MOST_SCALES], bool *nan)
{
    enum { BIAS = 127, NOT_A_NUMBER = 255 };
    for (uint32_t i = 0; i < panel->rows; i++) {
        nan[i] = code[i][0] == NOT_A_NUMBER;
        for (uint32_t k = 0; k < panel->length; k++) tensor_scale(panel, i, k, code[i][0] - BIAS);
    }
}
