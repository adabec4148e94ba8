/* atom and red in the forms of the table, by one thread on memory of its own: what was there, the operands, what is
 * there then. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "families.h"
#include "calibrate/forms/forms.h"
#include "calibrate/forms/operands.h"

enum { FULL_ROWS = 64, BLOCK = 128 };

struct shape { uint32_t bits, count, operands; bool is_atom, is_shared; char describe[512]; };

static struct shape shape_of(const struct form *f)
{
    struct shape s = { .bits = type_bits((enum ptx_type)f->in.type[0]), .count = f->in.vector == 0 ? 1 : f->in.vector,
                       .operands = insn_has(&f->in, ".cas") ? 3 : 2, .is_atom = f->text[0] == 'a' };
    s.is_shared =
        insn_has(&f->in, ".shared") || insn_has(&f->in, ".shared::cta") || insn_has(&f->in, ".shared::cluster");
    const char *name = type_name((enum ptx_type)f->in.type[0]);
    size_t used = 0;
    for (uint32_t i = 0; i < s.operands * s.count; i++)
        used += (size_t)snprintf(s.describe + used, sizeof s.describe - used, "%s ", name);
    used += (size_t)snprintf(s.describe + used, sizeof s.describe - used, ">");
    for (uint32_t i = 0; i < s.count * (s.is_atom ? 2 : 1); i++)
        used += (size_t)snprintf(s.describe + used, sizeof s.describe - used, " %s", name);
    return s;
}

static void put_list(FILE *out, char letter, uint32_t count)
{
    fputs(count > 1 ? "{" : "", out);
    for (uint32_t i = 0; i < count; i++) fprintf(out, "%s%%%c%u", i == 0 ? "" : ", ", letter, i);
    fputs(count > 1 ? "}" : "", out);
}

/* Registers m what was there, b and c the operands, d the result; the memory is at %u2 while the instruction works. */
static void put_body(FILE *out, const struct form *f, const struct shape *s, const struct layout *l)
{
    const uint32_t bytes = s->bits / 8;
    fprintf(out, ".reg .b32 %%t<4>; .reg .b64 %%u<6>; .reg .b64 %%p; .reg .b%u %%m<8>, %%b<8>, %%c<8>, %%d<8>;\n",
            s->bits);
    fprintf(out, "mov.b64 %%p, 0x12f0000000000000;\n"
                 "mov.u32 %%t0, %%ctaid.x; mov.u32 %%t1, %%ntid.x; mov.u32 %%t2, %%tid.x; "
                 "mad.lo.u32 %%t3, %%t0, %%t1, %%t2;\n"
                 "ld.param.u64 %%u0, [in]; ld.param.u64 %%u1, [out]; mad.wide.u32 %%u0, %%t3, %zu, %%u0;\n", l->stride);
    static const char letters[] = "mbc";
    for (uint32_t i = 0; i < s->count; i++)
        for (uint32_t k = 0; k < s->operands; k++)
            fprintf(out, "ld.global.b%u %%%c%u, [%%u0+%zu];\n", s->bits, letters[k], i, l->slot[i * s->operands + k]);
    if (s->is_shared)
        fprintf(out, ".shared .align 16 .b8 s$[%u]; mov.u64 %%u2, s$; mad.wide.u32 %%u2, %%t2, %u, %%u2;\n",
                BLOCK * bytes * s->count, bytes * s->count);
    else fprintf(out, "mad.wide.u32 %%u2, %%t3, %u, %%u1;\n", bytes * s->count);
    const char *space = s->is_shared ? "shared" : "global";
    for (uint32_t i = 0; i < s->count; i++) fprintf(out, "st.%s.b%u [%%u2+%u], %%m%u;\n", space, s->bits, i * bytes, i);
    fprintf(out, "%s ", f->text);
    if (s->is_atom) put_list(out, 'd', s->count), fputs(", ", out);
    fputs("[%u2], ", out);
    put_list(out, 'b', s->count);
    if (s->operands == 3) fputs(", ", out), put_list(out, 'c', s->count);
    fprintf(out, "%s;\n", insn_has(&f->in, ".L2::cache_hint") ? ", %p" : "");
    for (uint32_t i = 0; i < s->count; i++) fprintf(out, "ld.%s.b%u %%m%u, [%%u2+%u];\n", space, s->bits, i, i * bytes);
    if (!s->is_shared) return;
    fprintf(out, "mad.wide.u32 %%u3, %%t3, %u, %%u1;\n", bytes * s->count);
    for (uint32_t i = 0; i < s->count; i++) fprintf(out, "st.global.b%u [%%u3+%u], %%m%u;\n", s->bits, i * bytes, i);
}

/* The memory of a thread is one vector; the description has an array for each element, which is the same for one
 * element. */
static void add_form(struct calibration *c, const struct form *f)
{
    const struct shape s = shape_of(f);
    struct layout l;
    const uint32_t tuples = layout_tuples(s.describe), bytes = s.bits / 8;
    layout_read(&l, s.describe, tuples);
    char *body = NULL;
    size_t size;
    FILE *out = open_memstream(&body, &size);
    if (out == NULL) abort();
    put_body(out, f, &s, &l);
    if (s.is_atom) {
        fprintf(out, "add.u64 %%u4, %%u1, %u; mad.wide.u32 %%u4, %%t3, %u, %%u4;\n", tuples * bytes * s.count,
                bytes * s.count);
        for (uint32_t i = 0; i < s.count; i++) fprintf(out, "st.global.b%u [%%u4+%u], %%d%u;\n", s.bits, i * bytes, i);
    }
    if (fclose(out) != 0) abort();
    const bool tuples_show = s.count == 1;
    calibration_add(c, &(struct calibration_case){ .name = f->text, .form = f->text, .body = body,
                                                   .grid = { tuples / BLOCK },
                                                   .block = { BLOCK }, .input_bytes = l.input_bytes,
                                                   .output_bytes = l.output_bytes,
                                                   .fill = operands_fill, .describe = s.describe,
                                                   .scattered = !tuples_show });
    free(body);
}

void calibration_family_atomic(struct calibration *c)
{
    for (const struct family *const *family = instruction_families; *family != NULL; family++)
        for (int i = 0; i < (*family)->count; i++) {
            const struct row *row = &(*family)->rows[i];
            const size_t length = strcspn(row->pattern, ".{(");
            const bool named = (length == 4 && memcmp(row->pattern, "atom", 4) == 0)
                               || (length == 3 && memcmp(row->pattern, "red", 3) == 0);
            const struct module hopper = { .version = 90, .sm = 90, .suffix = 'a' };
            char why[200];
            if (!named || strncmp(row->pattern, "red.async", 9) == 0) continue;
            if (row_available(row, &hopper, why, sizeof why)) calibration_row(c, row, FULL_ROWS, add_form);
        }
}
