/* tcgen05.mma (PTX ISA 9.7.16.10): products of matrices in shared and tensor memory, accumulated in tensor memory. */
#include "instructions/table/families.h"
#include "machine/mma/tcgen05_mma.h"

/* tcgen05.mma [d], a, b, idesc, ..., p   d = a * b + d, or a * b where p is false; later.  Each thread issues its
 * own */
static trap op_mma(struct warp *w, const struct insn *in, uint32_t lanes)
{
    FOR_LANES(l, lanes)
    {
        const trap t = tcgen05_issue(w, in, l, in->data);
        if (t != TRAP_NONE) return t;
    }
    return TRAP_NONE;
}

/* ---- what a form says ---- */

static enum tcgen05_kind kind_of(const struct insn *in)
{
    static const char *const words[TCGEN05_KIND_COUNT] = {
        [TCGEN05_TF32] = ".kind::tf32",     [TCGEN05_F16] = ".kind::f16",           [TCGEN05_I8] = ".kind::i8",
        [TCGEN05_F8F6F4] = ".kind::f8f6f4", [TCGEN05_MXF8F6F4] = ".kind::mxf8f6f4", [TCGEN05_MXF4] = ".kind::mxf4",
        [TCGEN05_MXF4NVF4] = ".kind::mxf4nvf4",
    };
    uint32_t kind = 0;
    while (kind + 1 < TCGEN05_KIND_COUNT && !insn_has(in, words[kind])) kind++;
    return (enum tcgen05_kind)kind;
}

static bool is_tensor_address(const struct operand *o)
{
    return o == NULL || (o->kind == OPERAND_ADDRESS && o->based && type_bits((enum ptx_type)o->type) == 32);
}

/* [d], a, b, {[metadata],} idesc, {{mask},} {[sfa], [sfb],} p {, scale-input-d or zero-column mask} */
static void take_operands(const struct insn *in, struct tcgen05_instruction *x, bool masked)
{
    const struct operand *o = in->operand;
    x->d = o++;
    x->a = o++;
    x->b = o++;
    if (x->form.sparse) x->metadata = o++;
    x->descriptor = o++;
    if (masked) x->disabled = o++;
    if (x->form.block != 0) x->sfa = o++, x->sfb = o++;
    x->accumulate = o++;
    if (o == in->operand + in->operands || o->kind == OPERAND_NONE) return;
    if (x->form.weight_stationary) x->zero_mask = o;
    else x->scale_down = (uint8_t)o->value;
}

static const char *check(const struct insn *in, const struct tcgen05_instruction *x)
{
    if (!is_tensor_address(x->d) || !is_tensor_address(x->metadata) || !is_tensor_address(x->sfa)
        || !is_tensor_address(x->sfb) || (x->form.a_in_tensor_memory && !is_tensor_address(x->a)))
        return "an address of tensor memory is a register of 32 bits";
    const struct operand *last = &in->operand[in->operands - 1];
    if (!x->form.weight_stationary && last->kind == OPERAND_CONSTANT && last != x->accumulate &&
        (last->value < 0 || last->value > 15))
        return "scale-input-d is 0 to 15";
    if (x->form.a_shifted) return "of .ashift no source says what the first and the last row of A become";
    return NULL;
}

static const char *prepare_form(struct module *module, struct insn *in, bool masked, uint8_t block)
{
    struct tcgen05_instruction *x = arena_allocate(&module->arena, sizeof *x);
    if (x == NULL) return "no memory";
    *x = (struct tcgen05_instruction){ .form = {
        .kind = kind_of(in),
        .ctas = insn_has(in, ".cta_group::2") ? 2 : 1,
        .block = block,
        .sparse = insn_has(in, ".sp"),
        .weight_stationary = insn_has(in, ".ws"),
        .a_in_tensor_memory = in->operand[1].kind == OPERAND_ADDRESS,
        .a_shifted = insn_has(in, ".ashift"),
    } };
    take_operands(in, x, masked);
    in->data = x;
    return check(in, x);
}

static const char *prepare_plain(struct module *m, struct insn *in) { return prepare_form(m, in, false, 0); }
static const char *prepare_masked(struct module *m, struct insn *in) { return prepare_form(m, in, true, 0); }
/* Sixteen elements a scale: .block16 and .scale_vec::4X. */
static const char *prepare_scaled(struct module *m, struct insn *in)
{
    return prepare_form(m, in, false, insn_has(in, ".block16") || insn_has(in, ".scale_vec::4X") ? 16 : 32);
}

/* ---- forms ---- */

#define COLLECTOR "{.collector::a::fill|.collector::a::use|.collector::a::lastuse|.collector::a::discard}"
#define COLLECTOR_SHIFT "{.collector::a::lastuse|.collector::a::discard}"
#define BUFFER(b) ".collector::" b "::fill|.collector::" b "::use|.collector::" b "::lastuse|.collector::" b "::discard"
#define COLLECTOR_B "{" BUFFER("b0") "|" BUFFER("b1") "|" BUFFER("b2") "|" BUFFER("b3") "}"
#define SECTION "9.7.16.10.9.1 tcgen05.mma"
#define SECTION_SP "9.7.16.10.9.2 tcgen05.mma.sp"
#define SECTION_SHIFT SECTION ", refused: no source says what becomes of the first and the last row of A"
#define SECTION_WS "9.7.16.10.9.3 tcgen05.mma.ws"
#define SECTION_WS_SP "9.7.16.10.9.4 tcgen05.mma.ws.sp"

#define ROW(pattern, operands, since, targets, prepare, section) \
    { pattern, NULL, operands, since, targets, 0, op_mma, prepare, section }
/* A by a descriptor, and in tensor memory. */
#define BOTH(pattern, rest, since, targets, prepare, section) \
    ROW(pattern, "a s:b64 s:b64 " rest, since, targets, prepare, section), \
    ROW(pattern, "a a s:b64 " rest, since, targets, prepare, section)
/* Without and with the lanes of D that keep what they hold. */
#define LANES_OF_D(group, count, words, kinds, metadata, last, targets, section) \
    BOTH(words group kinds COLLECTOR, metadata "s:b32 p" last, 86, targets, prepare_plain, section), \
    BOTH(words group kinds COLLECTOR, metadata "s:b32 s:b32{" count "} p" last, 86, targets, prepare_masked, section)
#define PLAIN(words, kinds, metadata, last, targets, section) \
    LANES_OF_D(".cta_group::1", "4", words, kinds, metadata, last, targets, section), \
    LANES_OF_D(".cta_group::2", "8", words, kinds, metadata, last, targets, section)
#define SHIFTED(words, kinds, metadata, last, targets, section) \
    ROW(words ".cta_group::1" kinds ".ashift" COLLECTOR_SHIFT, "a a s:b64 " metadata "s:b32 ?s:b32{4} p" last, 86, \
        targets, prepare_plain, section), \
        ROW(words ".cta_group::2" kinds ".ashift" COLLECTOR_SHIFT, "a a s:b64 " metadata "s:b32 ?s:b32{8} p" last, 86, \
            targets, prepare_plain, section)
/* The size of a block, and the collector's word before it or behind it. */
#define SCALED(words, metadata, kind, size, since, targets, section) \
    BOTH(words "(.cta_group::1|.cta_group::2)" kind ".block_scale" size COLLECTOR, metadata "s:b32 a a p", since, \
         targets, prepare_scaled, section)
#define STATIONARY(words, kinds, metadata, targets, section) \
    BOTH(words ".cta_group::1" kinds COLLECTOR_B, metadata "s:b32 p ?s:b64", 86, targets, prepare_plain, section)

#define HALF_AND_TF32 "(.kind::f16|.kind::tf32)"
#define ALL_FLOAT "(.kind::f16|.kind::tf32|.kind::f8f6f4)"
#define ONE_DEVICE "sm_100a sm_103a"
static const struct row rows[] = {
    PLAIN("tcgen05.mma", HALF_AND_TF32, "", " ?i:u32", "sm_100f", SECTION),
    PLAIN("tcgen05.mma", ".kind::f8f6f4", "", "", "sm_100f", SECTION),
    PLAIN("tcgen05.mma", ".kind::i8", "", "", "sm_100a", SECTION),
    SCALED("tcgen05.mma", "", ".kind::mxf8f6f4", "", 88, "sm_100f", SECTION),
    SCALED("tcgen05.mma", "", ".kind::mxf8f6f4", ".scale_vec::1X", 86, ONE_DEVICE, SECTION),
    SCALED("tcgen05.mma", "", ".kind::mxf8f6f4", ".block32", 88, "sm_100f", SECTION),
    SCALED("tcgen05.mma", "", ".kind::mxf4", "", 88, "sm_100f", SECTION),
    SCALED("tcgen05.mma", "", ".kind::mxf4", ".scale_vec::2X", 86, ONE_DEVICE, SECTION),
    SCALED("tcgen05.mma", "", ".kind::mxf4", ".block32", 88, "sm_100f", SECTION),
    SCALED("tcgen05.mma", "", ".kind::mxf4nvf4", "(.scale_vec::2X|.scale_vec::4X)", 87, ONE_DEVICE, SECTION),
    SCALED("tcgen05.mma", "", ".kind::mxf4nvf4", "(.block16|.block32)", 88, "sm_100f", SECTION),
    PLAIN("tcgen05.mma.sp", HALF_AND_TF32, "a ", " ?i:u32", "sm_100f", SECTION_SP),
    PLAIN("tcgen05.mma.sp", ".kind::f8f6f4", "a ", "", "sm_100f", SECTION_SP),
    PLAIN("tcgen05.mma.sp", ".kind::i8", "a ", "", "sm_100a", SECTION_SP),
    SCALED("tcgen05.mma.sp", "a ", ".kind::mxf8f6f4", "", 88, "sm_100f", SECTION_SP),
    SCALED("tcgen05.mma.sp", "a ", ".kind::mxf8f6f4", ".scale_vec::1X", 86, ONE_DEVICE, SECTION_SP),
    SCALED("tcgen05.mma.sp", "a ", ".kind::mxf8f6f4", ".block32", 88, "sm_100f", SECTION_SP),
    SCALED("tcgen05.mma.sp", "a ", ".kind::mxf4", "", 88, ONE_DEVICE, SECTION_SP),
    SCALED("tcgen05.mma.sp", "a ", ".kind::mxf4", ".scale_vec::2X", 86, ONE_DEVICE, SECTION_SP),
    SCALED("tcgen05.mma.sp", "a ", ".kind::mxf4", ".block32", 88, ONE_DEVICE, SECTION_SP),
    SCALED("tcgen05.mma.sp", "a ", ".kind::mxf4nvf4", "(.scale_vec::2X|.scale_vec::4X)", 87, ONE_DEVICE, SECTION_SP),
    SCALED("tcgen05.mma.sp", "a ", ".kind::mxf4nvf4", "(.block16|.block32)", 88, ONE_DEVICE, SECTION_SP),
    STATIONARY("tcgen05.mma.ws", ALL_FLOAT, "", "sm_100f", SECTION_WS),
    STATIONARY("tcgen05.mma.ws", ".kind::i8", "", "sm_100a", SECTION_WS),
    STATIONARY("tcgen05.mma.ws.sp", ALL_FLOAT, "a ", "sm_100f", SECTION_WS_SP),
    STATIONARY("tcgen05.mma.ws.sp", ".kind::i8", "a ", "sm_100a", SECTION_WS_SP),
    SHIFTED("tcgen05.mma", ALL_FLOAT, "", "", "sm_100f", SECTION_SHIFT),
    SHIFTED("tcgen05.mma", ".kind::i8", "", "", "sm_100a", SECTION_SHIFT),
    SHIFTED("tcgen05.mma.sp", ALL_FLOAT, "a ", "", "sm_100f", SECTION_SHIFT),
    SHIFTED("tcgen05.mma.sp", ".kind::i8", "a ", "", "sm_100a", SECTION_SHIFT),
};

const struct family family_tcgen05_mma = FAMILY("products of tensor memory", rows);
