/* ld and st in the forms of the table.  A thread has 32 bytes of each space.  Integers are loaded into registers of 64
 * bits and stored from them, so that their extension shows. */
#include <string.h>

#include "families.h"
#include "calibrate/forms/forms.h"
#include "calibrate/forms/text.h"

enum { BLOCK = 32, CHUNK = 32, FULL_ROWS = 64 };

static bool has_space(const struct form *f, const char *word) { return insn_has(&f->in, word); }

/* Where the thread's 32 bytes are, in %u2; the input's first 32. */
static const char *space_address(const struct form *f)
{
    if (has_space(f, ".shared") || has_space(f, ".shared::cta") || has_space(f, ".shared::cluster"))
        return ".shared .align 32 .b8 s$[1024]; mov.u64 %u2, s$; mad.wide.u32 %u2, %t3, 32, %u2;\n"
               "st.shared.v4.b32 [%u2], {%v0, %v1, %v2, %v3}; st.shared.v4.b32 [%u2+16], {%v4, %v5, %v6, %v7};\n";
    if (has_space(f, ".local"))
        return ".local .align 32 .b8 l$[32]; mov.u64 %u2, l$;\n"
               "st.local.v4.b32 [%u2], {%v0, %v1, %v2, %v3}; st.local.v4.b32 [%u2+16], {%v4, %v5, %v6, %v7};\n";
    if (has_space(f, ".const")) return "mov.u64 %u2, k$; mad.wide.u32 %u2, %t3, 32, %u2;\n";
    return NULL;
}

static void begin(struct text *t)
{
    fputs(".reg .b32 %t<4>; .reg .b64 %u<6>; .reg .b32 %v<8>; .reg .b64 %p;\nmov.u32 %t3, %tid.x; "
          "mov.b64 %p, 0x12f0000000000000;\n"
          "ld.param.u64 %u0, [in]; ld.param.u64 %u1, [out]; mad.wide.u32 %u0, %t3, 128, %u0;\n"
          "ld.global.v4.b32 {%v0, %v1, %v2, %v3}, [%u0]; ld.global.v4.b32 {%v4, %v5, %v6, %v7}, [%u0+16];\n", t->out);
}

/* Registers of 64 bits where the type may be extended. */
static uint32_t element_bits(const struct form *f)
{
    const enum ptx_type type = (enum ptx_type)f->in.type[0];
    return type_bits(type) < 64 && strchr("usb", type_kind(type)) != NULL ? 64 : type_bits(type);
}

static void put_elements(struct text *t, uint32_t count)
{
    fputs(count > 1 ? "{" : "", t->out);
    for (uint32_t i = 0; i < count; i++) fprintf(t->out, "%s%%x%u", i == 0 ? "" : ", ", i);
    fputs(count > 1 ? "}" : "", t->out);
}

static bool other_family(const struct form *f)
{
    const uint32_t count = f->in.vector == 0 ? 1 : f->in.vector;
    return has_space(f, ".param") || has_space(f, ".param::entry") || has_space(f, ".param::func")
           || has_space(f, ".mmio") || type_bytes((enum ptx_type)f->in.type[0]) * count > CHUNK;
}

static void add_load(struct calibration *c, const struct form *f)
{
    if (other_family(f)) return;
    const uint32_t bits = element_bits(f), count = f->in.vector == 0 ? 1 : f->in.vector;
    const char *set_up = space_address(f);
    struct text t;
    text_open(&t);
    begin(&t);
    fprintf(t.out, "%s.reg .b%u %%x<%u>;\n%s ", set_up == NULL ? "mov.u64 %u2, %u0;\n" : set_up, bits, count, f->text);
    put_elements(&t, count);
    fprintf(t.out, ", [%%u2]%s;\nmad.wide.u32 %%u1, %%t3, %u, %%u1;\n",
            insn_has(&f->in, ".L2::cache_hint") ? ", %p" : "", bits / 8 * count);
    for (uint32_t i = 0; i < count; i++) fprintf(t.out, "st.global.b%u [%%u1+%u], %%x%u;\n", bits, i * bits / 8, i);
    struct text k = { .bytes = NULL };
    if (has_space(f, ".const")) {
        text_open(&k);
        fputs(".const .align 32 .b8 k$[1024] = { 129", k.out);
        for (int i = 1; i < 1024; i++) fprintf(k.out, ", %d", (i * 167 + i / 16 * 29 + 129) & 255);
        fputs(" };\n", k.out);
        text_close(&k);
    }
    calibration_add(c, &(struct calibration_case){ .name = f->text, .form = f->text, .body = text_close(&t),
                                                   .module = k.bytes,
                                                   .input_bytes = BLOCK * 128,
                                                   .output_bytes = (size_t)BLOCK * bits / 8 * count });
    free(t.bytes), free(k.bytes);
}

static void add_store(struct calibration *c, const struct form *f)
{
    if (other_family(f)) return;
    const uint32_t bits = element_bits(f), count = f->in.vector == 0 ? 1 : f->in.vector;
    const char *set_up = space_address(f), *space = has_space(f, ".local") ? "local" : "shared";
    struct text t;
    text_open(&t);
    begin(&t);
    fputs("mad.wide.u32 %u1, %t3, 32, %u1;\n", t.out);
    fprintf(t.out, "%s.reg .b%u %%x<%u>;\n", set_up == NULL ? "mov.u64 %u2, %u1;\n" : set_up, bits, count);
    for (uint32_t i = 0; i < count; i++)
        fprintf(t.out, "ld.global.b%u %%x%u, [%%u0+%u];\n", bits, i, 32 + i * 8 * (bits > 64 ? 2 : 1));
    fprintf(t.out, "%s [%%u2], ", f->text);
    put_elements(&t, count);
    fprintf(t.out, "%s;\n", insn_has(&f->in, ".L2::cache_hint") ? ", %p" : "");
    if (set_up != NULL)
        fprintf(t.out, "ld.%s.v4.b32 {%%v0, %%v1, %%v2, %%v3}, [%%u2]; ld.%s.v4.b32 {%%v4, %%v5, %%v6, %%v7}, "
                       "[%%u2+16];\n"
                       "st.global.v4.b32 [%%u1], {%%v0, %%v1, %%v2, %%v3}; st.global.v4.b32 [%%u1+16], {%%v4, %%v5, "
                       "%%v6, %%v7};\n",
                space, space);
    calibration_add(c, &(struct calibration_case){ .name = f->text, .form = f->text, .body = text_close(&t),
                                                   .input_bytes = BLOCK * 128, .output_bytes = BLOCK * CHUNK });
    free(t.bytes);
}

void calibration_family_memory(struct calibration *c)
{
    for (const struct family *const *family = instruction_families; *family != NULL; family++)
        for (int i = 0; i < (*family)->count; i++) {
            const struct row *row = &(*family)->rows[i];
            const struct module hopper = { .version = 90, .sm = 90, .suffix = 'a' };
            char why[200];
            if (!row_available(row, &hopper, why, sizeof why)) continue;
            const bool is_load = strncmp(row->pattern, "ld.", 3) == 0 || strncmp(row->pattern, "ld{", 3) == 0 ||
                                 strncmp(row->pattern, "ld(", 3) == 0 || strncmp(row->pattern, "ldu", 3) == 0;
            const bool is_store = strncmp(row->pattern, "st.", 3) == 0 || strncmp(row->pattern, "st{", 3) == 0 ||
                                  strncmp(row->pattern, "st(", 3) == 0;
            if (strncmp(row->pattern, "st.async", 8) == 0 || strncmp(row->pattern, "st.bulk", 7) == 0) continue;
            if (is_load) calibration_row(c, row, FULL_ROWS, add_load);
            else if (is_store) calibration_row(c, row, FULL_ROWS, add_store);
        }
}
