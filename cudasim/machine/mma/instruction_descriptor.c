/* Instruction descriptors: see instruction_descriptor.h. */
#include "instruction_descriptor.h"

#include <stdio.h>

static const struct { const char *name; uint8_t container_bits; bool scaled; } kinds[TCGEN05_KIND_COUNT] = {
    [TCGEN05_TF32]     = { "kind::tf32",     32, false },
    [TCGEN05_F16]      = { "kind::f16",      16, false },
    [TCGEN05_I8]       = { "kind::i8",       8,  false },
    [TCGEN05_F8F6F4]   = { "kind::f8f6f4",   8,  false },
    [TCGEN05_MXF8F6F4] = { "kind::mxf8f6f4", 8,  true },
    [TCGEN05_MXF4]     = { "kind::mxf4",     4,  true },
    [TCGEN05_MXF4NVF4] = { "kind::mxf4nvf4", 4,  true },
};

const char *tcgen05_kind_name(enum tcgen05_kind kind) { return kinds[kind].name; }
uint32_t tcgen05_container_bits(enum tcgen05_kind kind) { return kinds[kind].container_bits; }

enum { ROW_BYTES = 32 };                  /* of A, in every kind */

uint32_t tcgen05_scales(const struct tcgen05_form *form)
{
    return form->block == 0 ? 0 : ROW_BYTES * 8u / kinds[form->kind].container_bits / (uint32_t)form->block;
}

/* ---- fields ---- */

/* legal: bit v is set where the field may hold v. */
struct field { uint8_t at, width; uint32_t legal; const char *name, *rule; };
enum { ZERO = 1, BIT = 3, ANY_OF_4 = 15 };
#define VALUE(v) (1u << (v))
static const uint32_t f8f6f4_types = VALUE(0) | VALUE(1) | VALUE(3) | VALUE(4) | VALUE(5);
static const char f8f6f4_rule[] = "0 (e4m3), 1 (e5m2), 3 (e2m3), 4 (e3m2) or 5 (e2m1)";

struct reading {
    uint32_t descriptor;
    const struct tcgen05_form *form;
    char *sentence;
    size_t size;
};

static bool take(const struct reading *r, struct field f)
{
    const uint32_t value = r->descriptor >> f.at & ((1u << f.width) - 1);
    if ((f.legal >> value & 1) != 0) return true;
    char bits[24];
    if (f.width == 1) snprintf(bits, sizeof bits, "bit %u", f.at);
    else snprintf(bits, sizeof bits, "bits %u..%u", f.at + f.width - 1, f.at);
    snprintf(r->sentence, r->size, "has %u in %s (%s); %s%s%s takes %s", value, bits, f.name, kinds[r->form->kind].name,
             r->form->sparse ? " with .sp" : "", r->form->weight_stationary ? " with .ws" : "", f.rule);
    return false;
}

static bool take_all(const struct reading *r, const struct field *fields, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!take(r, fields[i])) return false;
    return true;
}
#define TAKE(r, ...) \
    take_all(r, (const struct field[]){ __VA_ARGS__ }, \
             (uint32_t)(sizeof((const struct field[]){ __VA_ARGS__ }) / sizeof(struct field)))

static uint32_t bits_of(uint32_t descriptor, uint32_t at, uint32_t width)
{
    return descriptor >> at & ((1u << width) - 1);
}

static bool refuse(const struct reading *r, const char *what)
{
    snprintf(r->sentence, r->size, "%s", what);
    return false;
}

static struct field reserved(uint8_t at, uint8_t width)
{
    return (struct field){ at, width, ZERO, "reserved", "0" };
}

static struct field sparsity(const struct tcgen05_form *form)
{
    return (struct field){ 2, 1, VALUE(form->sparse ? 1 : 0), "sparsity", form->sparse ? "1" : "0 without .sp" };
}

/* ---- kinds without scales ---- */

static struct field type_field(enum tcgen05_kind kind, uint8_t at, const char *name)
{
    static const struct { uint32_t legal; const char *rule; } types[] = {
        [TCGEN05_TF32]   = { VALUE(2),             "2 (tf32)" },
        [TCGEN05_F16]    = { VALUE(0) | VALUE(1),  "0 (f16) or 1 (bf16)" },
        [TCGEN05_I8]     = { VALUE(0) | VALUE(1),  "0 (u8) or 1 (s8)" },
    };
    if (kind == TCGEN05_F8F6F4 || kind == TCGEN05_MXF8F6F4)
        return (struct field){ at, 3, f8f6f4_types, name, f8f6f4_rule };
    if (kind >= TCGEN05_MXF4) return (struct field){ at, 3, VALUE(1), name, "1 (e2m1)" };
    return (struct field){ at, 3, types[kind].legal, name, types[kind].rule };
}

static struct field output_field(enum tcgen05_kind kind)
{
    switch (kind) {
    case TCGEN05_TF32: return (struct field){ 4, 2, VALUE(1), "type of D", "1 (f32)" };
    case TCGEN05_I8: return (struct field){ 4, 2, VALUE(2), "type of D", "2 (s32)" };
    default: return (struct field){ 4, 2, VALUE(0) | VALUE(1), "type of D", "0 (f16) or 1 (f32)" };
    }
}

static struct field m_field(const struct tcgen05_form *form)
{
    if (form->weight_stationary)
        return (struct field){ 24, 5, VALUE(2) | VALUE(4) | VALUE(8), "M / 16", "2, 4 or 8: M is 32, 64 or 128" };
    if (form->a_shifted)
        return form->ctas == 1
                   ? (struct field){ 24, 5, VALUE(8), "M / 16", "8 with .ashift and .cta_group::1: M is 128" }
                   : (struct field){ 24, 5, VALUE(16), "M / 16", "16 with .ashift and .cta_group::2: M is 256" };
    return form->ctas == 1
               ? (struct field){ 24, 5, VALUE(4) | VALUE(8), "M / 16", "4 or 8 with .cta_group::1: M is 64 or 128" }
               : (struct field){ 24, 5, VALUE(8) | VALUE(16), "M / 16", "8 or 16 with .cta_group::2: M is 128 or 256" };
}

static bool read_plain(const struct reading *r)
{
    const struct tcgen05_form *f = r->form;
    const bool integer = f->kind == TCGEN05_I8, selects = f->sparse && f->kind <= TCGEN05_F16;
    const char *const only_f = "0";
    return TAKE(r, sparsity(f),
                { 0, 2, selects ? ANY_OF_4 : ZERO, "sparsity selector", "0" },
                { 3, 1, integer ? BIT : ZERO, "saturation", "0" },
                output_field(f->kind),
                reserved(6, 1),
                type_field(f->kind, 7, "type of A"),
                type_field(f->kind, 10, "type of B"),
                { 13, 1, integer ? ZERO : BIT, "negation of A", only_f },
                { 14, 1, integer ? ZERO : BIT, "negation of B", only_f },
                { 15, 1, f->a_in_tensor_memory ? ZERO : BIT, "transpose of A", "0 for A in tensor memory" },
                reserved(23, 1),
                m_field(f),
                reserved(29, 1),
                { 30, 2, f->weight_stationary ? ANY_OF_4 : ZERO, "maximum shift", "0 without .ws" });
}

/* ---- kinds with scales ---- */

static bool read_scaled(const struct reading *r, uint32_t sm)
{
    const struct tcgen05_form *f = r->form;
    const uint32_t scales = tcgen05_scales(f);
    const bool fp4 = f->kind != TCGEN05_MXF8F6F4, nv = f->kind == TCGEN05_MXF4NVF4;
    const uint32_t ids = scales == 1 ? ANY_OF_4 : scales == 2 ? VALUE(0) | VALUE(2) : ZERO;
    const char *const id_rule = scales == 1   ? "0 to 3"
                                : scales == 2 ? "0 or 2 with two scales a row"
                                              : "0 with four scales a row";
    const struct field m = f->ctas == 1 ? (struct field){ 27, 2, VALUE(1), "M / 128", "1 with .cta_group::1: M is 128" }
                           : f->sparse
                               ? (struct field){ 27, 2, VALUE(2), "M / 128", "2 with .cta_group::2: M is 256" }
                               : (struct field){ 27, 2, VALUE(1) | VALUE(2), "M / 128", "1 or 2 with .cta_group::2" };
    const struct field type =
        !nv              ? (struct field){ 23, 1, VALUE(1), "type of the scales", "1 (ue8m0)" }
        : f->block == 32 ? (struct field){ 23, 1, VALUE(1), "type of the scales", "1 (ue8m0) with blocks of 32" }
                         : (struct field){ 23, 1, BIT, "type of the scales", "0 or 1" };
    if (fp4 && !f->sparse && sm == 103 && r->descriptor >> 31 != 0)
        return refuse(r, "has 1 in bit 31 (K is 96); no source says where the scales of that form lie");
    if (f->ctas == 2 && !f->sparse && bits_of(r->descriptor, 27, 2) == 1)
        return refuse(r,
                      "has 1 in bits 28..27 (M is 128) with .cta_group::2; no source settles where a pair's scales of "
                      "64 rows lie");
    return TAKE(r, sparsity(f), reserved(0, 2), reserved(3, 1),
                { 4, 2, ids, "SFB_ID", id_rule },
                reserved(6, 1),
                type_field(f->kind, 7, "type of A"),
                type_field(f->kind, 10, "type of B"),
                { 15, 1, fp4 || f->a_in_tensor_memory ? ZERO : BIT, "transpose of A",
                  fp4 ? "0" : "0 for A in tensor memory" },
                { 16, 1, fp4 ? ZERO : BIT, "transpose of B", "0" },
                type, reserved(24, 3), m,
                { 29, 2, ids, "SFA_ID", id_rule },
                reserved(31, 1));
}

/* ---- shapes ---- */

static bool refuse_n(const struct reading *r, uint32_t n, const char *rule)
{
    snprintf(r->sentence, r->size, "has %u in bits 22..17 (N / 8): N is %u; N of %s with .cta_group::%u%s%s is %s",
             n / 8, n, kinds[r->form->kind].name, r->form->ctas, r->form->sparse ? ", .sp" : "",
             r->form->weight_stationary ? ", .ws" : "", rule);
    return false;
}

static bool n_is_legal(const struct reading *r, uint32_t n, bool b_mn_major)
{
    const struct tcgen05_form *f = r->form;
    if (f->weight_stationary) {
        if (n == 64 || n == 128 || (n == 256 && !f->sparse)) return true;
        return refuse_n(r, n, f->sparse ? "64 or 128" : "64, 128 or 256");
    }
    const uint32_t step = 8u * f->ctas;
    if (f->kind == TCGEN05_I8) {
        const bool legal =
            f->ctas == 1 ? n >= 8 && n <= 256 && (n <= 32 || n % 16 == 0) : n >= 32 && n <= 256 && n % 32 == 0;
        if (!legal)
            return refuse_n(
                r, n, f->ctas == 1 ? "8, 16, 24, 32 or a multiple of 16 up to 256" : "a multiple of 32 from 32 to 256");
    } else if (n < step || n > 256 || n % step != 0) {
        return refuse_n(r, n, f->ctas == 1 ? "a multiple of 8 from 8 to 256" : "a multiple of 16 from 16 to 256");
    }
    if (b_mn_major && kinds[f->kind].container_bits == 8 && n % (2 * step) != 0)
        return refuse_n(r, n,
                        f->ctas == 1 ? "a multiple of 16 where B is MN-major" : "a multiple of 32 where B is MN-major");
    return true;
}

static enum tensor_format format_of(enum tcgen05_kind kind, uint32_t code)
{
    static const enum tensor_format narrow[] = { TENSOR_E4M3, TENSOR_E5M2, TENSOR_E4M3,
                                                 TENSOR_E2M3, TENSOR_E3M2, TENSOR_E2M1 };
    switch (kind) {
    case TCGEN05_TF32: return TENSOR_TF32;
    case TCGEN05_F16: return code == 0 ? TENSOR_F16 : TENSOR_BF16;
    case TCGEN05_F8F6F4:
    case TCGEN05_MXF8F6F4: return narrow[code];
    default: return TENSOR_E2M1;
    }
}

static bool types_agree(const struct reading *r, const struct mma_shape *s)
{
    if (r->form->kind != TCGEN05_F16) return true;
    if (s->a_format != s->b_format)
        return refuse(r, s->a_format == TENSOR_F16
                             ? "has f16 in bits 9..7 (type of A) and bf16 in bits 12..10 (type of B)"
                             : "has bf16 in bits 9..7 (type of A) and f16 in bits 12..10 (type "
                               "of B)");
    if (s->f16_output && s->a_format != TENSOR_F16)
        return refuse(r, "has 0 (f16) in bits 5..4 (type of D); bf16 operands take 1 (f32)");
    return true;
}

/* The manual gives the metadata's places in figures; what CuTe's layouts show is taken. */
static bool metadata_is_known(const struct reading *r, const struct mma_shape *s)
{
    if (!r->form->weight_stationary && s->m / r->form->ctas == 64)
        return refuse(r, r->form->ctas == 1
                             ? "has 4 in bits 28..24 (M is 64) with .sp; no source says where the metadata of 64 rows "
                               "lie"
                             : "has 8 in bits 28..24 (M is 128) with .sp and .cta_group::2; no source says where the "
                               "metadata of 64 rows lie");
    if (s->selector > 1)
        return refuse(r, "has a sparsity selector above 1 in bits 1..0; no source says what it selects");
    return true;
}

bool instruction_descriptor_of(uint32_t d, const struct tcgen05_form *form, uint32_t sm, struct mma_shape *s,
                               char *sentence, size_t size)
{
    const struct reading r = { d, form, sentence, size };
    const bool scaled = kinds[form->kind].scaled;
    if (!(scaled ? read_scaled(&r, sm) : read_plain(&r))) return false;
    const uint32_t a_k = ROW_BYTES * 8 / kinds[form->kind].container_bits;
    *s = (struct mma_shape){
        .m = scaled ? bits_of(d, 27, 2) * 128 : bits_of(d, 24, 5) * 16,
        .n = bits_of(d, 17, 6) * 8,
        .k = form->sparse ? 2 * a_k : a_k,
        .a_k = a_k,
        .a_format = format_of(form->kind, bits_of(d, 7, 3)),
        .b_format = format_of(form->kind, bits_of(d, 10, 3)),
        .a_signed = bits_of(d, 7, 1) != 0,
        .b_signed = bits_of(d, 10, 1) != 0,
        .saturate = bits_of(d, 3, 1) != 0,
        .f16_output = !scaled && bits_of(d, 4, 2) == 0,
        .a_negated = bits_of(d, 13, 1) != 0,
        .b_negated = bits_of(d, 14, 1) != 0,
        .a_mn_major = bits_of(d, 15, 1) != 0,
        .b_mn_major = bits_of(d, 16, 1) != 0,
        .ue4m3 = scaled && bits_of(d, 23, 1) == 0,
        .sfa_id = scaled ? (uint8_t)bits_of(d, 29, 2) : 0,
        .sfb_id = scaled ? (uint8_t)bits_of(d, 4, 2) : 0,
        .selector = form->sparse && !scaled ? (uint8_t)bits_of(d, 0, 2) : 0,
    };
    return n_is_legal(&r, s->n, s->b_mn_major) && types_agree(&r, s) && (!form->sparse || metadata_is_known(&r, s));
}
