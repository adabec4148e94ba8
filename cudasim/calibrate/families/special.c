/* Register forms that need more than one instruction or a constant: lop3 with all tables, carries that change their
 * kind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "families.h"
#include "calibrate/forms/operands.h"

static const char thread_index[] =
    ".reg .b32 %t<4>; .reg .b64 %u<4>; .reg .b32 %r<10>; .reg .b64 %l<10>; .reg .pred %p<4>; .reg .b16 %h<2>;\n"
    "mov.u32 %t0, %ctaid.x; mov.u32 %t1, %ntid.x; mov.u32 %t2, %tid.x; mad.lo.u32 %t3, %t0, %t1, %t2;\n"
    "ld.param.u64 %u0, [in]; ld.param.u64 %u1, [out];\n";

/* Thread t has the operands at 12 t; table i gives 128 results. */
static void lop3(struct calibration *c, const char *boolean)
{
    char *body = NULL, form[32], name[64];
    size_t size;
    FILE *out = open_memstream(&body, &size);
    if (out == NULL) abort();
    fputs(thread_index, out);
    fputs("mad.wide.u32 %u0, %t3, 12, %u0; ld.global.b32 %r1, [%u0]; ld.global.b32 %r2, [%u0+4]; "
          "ld.global.b32 %r3, [%u0+8];\n"
          "mad.wide.u32 %u2, %t3, 4, %u1; add.u64 %u3, %u1, 131072; mad.wide.u32 %u3, %t3, 1, %u3;\n"
          "and.b32 %r5, %t3, 1; setp.ne.u32 %p1, %r5, 0;\n", out);
    for (int i = 0; i < 256; i++) {
        if (boolean[0] == '\0')
            fprintf(out, "lop3.b32 %%r4, %%r1, %%r2, %%r3, %d; st.global.b32 [%%u2+%d], %%r4;\n", i, i * 512);
        else fprintf(out, "lop3%s.b32 %%r4|%%p2, %%r1, %%r2, %%r3, %d, %%p1; st.global.b32 [%%u2+%d], %%r4;\n"
                          "selp.u16 %%h1, 1, 0, %%p2; st.global.u8 [%%u3+%d], %%h1;\n", boolean, i, i * 512, i * 128);
    }
    if (fclose(out) != 0) abort();
    snprintf(form, sizeof form, "lop3%s.b32", boolean);
    snprintf(name, sizeof name, "%s, all tables", form);
    calibration_add(c, &(struct calibration_case){ .name = name, .form = form, .body = body, .block = { 128 },
                                                   .input_bytes = 1536,
                                                   .output_bytes = boolean[0] == '\0' ? 131072 : 163840 });
    free(body);
}

/* lop3's predicate is of the whole result: operands that give all zeros as often as not. */
static void sparse(const struct calibration_case *c, uint8_t *input)
{
    uint64_t state = 7;
    for (size_t i = 0; i + 4 <= c->input_bytes; i += 4) {
        const uint64_t r = calibration_random(&state);
        const uint32_t value = (r & 3) == 0   ? 0
                               : (r & 3) == 1 ? UINT32_MAX
                               : (r & 3) == 2 ? 1u << (r >> 32 & 31)
                                              : (uint32_t)(r >> 32);
        memcpy(input + i, &value, 4);
    }
}

/* Two instructions of which the second takes the first one's carry; a, b, c and d in registers 1 to 4. */
static void chain(struct calibration *c, const char *first, const char *second, bool wide)
{
    char *body = NULL, form[64], name[96];
    size_t size;
    const char kind = wide ? 'l' : 'r';
    const int bits = wide ? 64 : 32;
    const bool mad1 = first[0] == 'm', mad2 = second[0] == 'm';
    struct layout l;
    const char *describe = wide ? "u64 u64 u64 u64 > u64 u64 u32" : "u32 u32 u32 u32 > u32 u32 u32";
    const uint32_t tuples = layout_tuples(describe);
    layout_read(&l, describe, tuples);
    FILE *out = open_memstream(&body, &size);
    if (out == NULL) abort();
    fputs(thread_index, out);
    fputs("mad.wide.u32 %u0, %t3, 32, %u0;\n", out);
    for (int i = 0; i < 4; i++) fprintf(out, "ld.global.b%d %%%c%d, [%%u0+%d];\n", bits, kind, i + 1, i * 8);
    fprintf(out, "%s.u%d %%%c5, %%%c1, %%%c2%s;\n", first, bits, kind, kind, kind,
            !mad1  ? ""
            : wide ? ", %l3"
                   : ", %r3");
    fprintf(out, "%s.u%d %%%c6, %%%c3, %%%c4%s;\n", second, bits, kind, kind, kind,
            !mad2  ? ""
            : wide ? ", %l1"
                   : ", %r1");
    fputs("addc.u32 %r9, 0, 0;\n", out);
    for (int i = 0; i < 3; i++)
        fprintf(out, "mad.wide.u32 %%u2, %%t3, %d, %%u1; st.global.b%d [%%u2+%zu], %%%c%d;\n", i == 2 ? 4 : bits / 8,
                i == 2 ? 32 : bits, l.place[i], i == 2 ? 'r' : kind, i == 2 ? 9 : i + 5);
    if (fclose(out) != 0) abort();
    snprintf(form, sizeof form, "%s.u%d", second, bits);
    snprintf(name, sizeof name, "%s.u%d then %s.u%d", first, bits, second, bits);
    calibration_add(c, &(struct calibration_case){ .name = name, .form = form, .body = body, .grid = { tuples / 128 },
                                                   .block = { 128 },
                                                   .input_bytes = l.input_bytes, .output_bytes = l.output_bytes,
                                                   .fill = operands_fill, .describe = describe });
    free(body);
}

void calibration_family_special(struct calibration *c)
{
    static const char *const firsts[] = { "add.cc", "sub.cc", "mad.lo.cc", "mad.hi.cc" };
    static const char *const seconds[] = { "addc.cc", "subc.cc", "madc.lo.cc", "madc.hi.cc" };
    lop3(c, "");
    lop3(c, ".or");
    lop3(c, ".and");
    for (uint32_t i = c->count - 3; i < c->count; i++) c->cases[i].fill = sparse;
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < 4; j++)
            for (int wide = 0; wide < 2; wide++) chain(c, firsts[i], seconds[j], wide != 0);
}
