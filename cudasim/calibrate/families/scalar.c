/* Cases made from the table: every row that only reads and writes registers, in every form that the reader takes.  A
 * thread loads its tuple of operands, executes the instruction, and stores the results. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/forms/bounds.h"
#include "families.h"
#include "calibrate/forms/forms.h"
#include "calibrate/forms/operands.h"

enum { FORMS_IN_FULL = 400, ELEMENTS = 8, BODY = 4096 };

/* These read or change more than registers, or other lanes, or need special words around them: other families have
 * them. */
static bool elsewhere(const char *pattern)
{
    static const char *const names[] = { "bar",          "barrier",        "shfl",         "vote",    "match",
                                         "redux",        "activemask",     "elect",        "mapa",    "cvta",
                                         "getctarank",   "isspacep",       "nanosleep",    "pmevent", "setmaxnreg",
                                         "call",         "griddepcontrol", "mbarrier",     "mma",     "wgmma",
                                         "tcgen05",      "movmatrix",      "createpolicy", "alloca",  "stacksave",
                                         "stackrestore", "getsp",          "istypep" };
    const size_t length = strcspn(pattern, ".{(");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i]) == length && memcmp(names[i], pattern, length) == 0) return true;
    return false;
}

static bool registers_only(const struct row *row)
{
    if ((row->demands & ~(uint32_t)MOVES) != 0) return false;
    if (strchr(row->pattern, '#') != NULL || elsewhere(row->pattern)) return false;
    const struct insn in = { .row = row };
    struct form_operand o[FORM_OPERANDS];
    const int count = form_operands(&in, o);
    int results = 0, sources = 0;
    for (int i = 0; i < count; i++) {
        if (strchr("dsrpP", o[i].kind) == NULL || o[i].vector < 0 || o[i].vector > ELEMENTS) return false;
        if (o[i].kind == 'd' || o[i].kind == 'P') results++;
        else sources++;
    }
    return results > 0 && sources > 0;
}

/* ---- the entry ---- */

struct entry {
    char declare[BODY], load[BODY], operands[BODY], store[BODY], describe[256], results[128];
    int sources, targets;
    bool wide;
};

__attribute__((format(printf, 2, 3))) static void append(char *text, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text + used, BODY - used, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= BODY - used) abort();
}

static uint32_t register_bits(const struct entry *e, const struct form_operand *o)
{
    const uint32_t bits = type_bits((enum ptx_type)o->type);
    if (!o->wider) return bits;
    return e->wide ? 64 : bits < 16 ? 16 : bits;
}

static void one_source(struct entry *e, const struct form_operand *o)
{
    const int n = e->sources++;
    const char *name = o->kind == 'p' || o->type == T_PRED ? "pred" : type_name((enum ptx_type)o->type);
    snprintf(e->describe + strlen(e->describe), sizeof e->describe - strlen(e->describe), "%s ", name);
    if (o->kind == 'p' || o->type == T_PRED) {
        append(e->declare, ".reg .pred %%s%d; .reg .b16 %%m%d;\n", n, n);
        append(e->load, "ld.global.u8 %%m%d, [%%u0+@%d]; and.b16 %%m%d, %%m%d, 1; setp.ne.u16 %%s%d, %%m%d, 0;\n", n, n,
               n, n, n, n);
    } else {
        const uint32_t bits = register_bits(e, o);
        append(e->declare, ".reg .b%u %%s%d;\n", bits, n);
        append(e->load, "ld.global.b%u %%s%d, [%%u0+@%d];\n", bits, n, n);
    }
    append(e->operands, "%%s%d", n);
}

static void one_target(struct entry *e, const struct form_operand *o)
{
    const int n = e->targets++;
    const bool is_predicate = o->kind == 'P' || o->type == T_PRED;
    const uint32_t bits = is_predicate ? 1 : register_bits(e, o);
    char name[16];
    snprintf(name, sizeof name, "b%u", bits);
    if (is_predicate) snprintf(name, sizeof name, "pred");
    else if (bits == type_bits((enum ptx_type)o->type))
        snprintf(name, sizeof name, "%s", type_name((enum ptx_type)o->type));
    snprintf(e->results + strlen(e->results), sizeof e->results - strlen(e->results), " %s", name);
    if (is_predicate) {
        append(e->declare, ".reg .pred %%d%d; .reg .b16 %%n%d;\n", n, n);
        append(e->store, "selp.u16 %%n%d, 1, 0, %%d%d; st.global.u8 [%%u2+#%d], %%n%d;\n", n, n, n, n);
    } else {
        append(e->declare, ".reg .b%u %%d%d;\n", bits, n);
        append(e->store, "st.global.b%u [%%u2+#%d], %%d%d;\n", bits, n, n);
    }
    append(e->operands, "%%d%d", n);
}

static void one_operand(struct entry *e, const struct form_operand *o)
{
    const bool is_target = o->kind == 'd' || o->kind == 'P';
    append(e->operands, "%s", e->operands[0] == '\0' ? " " : o->pair ? "|" : ", ");
    if (o->vector > 0) append(e->operands, "{");
    for (int i = 0; i < (o->vector == 0 ? 1 : o->vector); i++) {
        if (i != 0) append(e->operands, ", ");
        if (is_target) one_target(e, o);
        else one_source(e, o);
    }
    if (o->vector > 0) append(e->operands, "}");
}

/* "@3" becomes the slot of operand 3; "[%u2+#1]" the place of result 1 of this thread. */
static void place(const char *from, const struct layout *l, char *to)
{
    while (*from != '\0') {
        const char what = *from++;
        char *end;
        if (what != '@' && what != '#') {
            append(to, "%c", what);
            continue;
        }
        const long number = strtol(from, &end, 10);
        append(to, "%zu", what == '@' ? l->slot[number] : l->place[number]);
        from = end;
    }
}

/* A store's address depends on the size of its element: %u2 is made anew before each store whose size differs. */
static void place_stores(const struct entry *e, const struct layout *l, char *to)
{
    const char *line = e->store;
    for (int i = 0; i < l->results; i++) {
        char one[BODY] = "";
        const size_t length = strcspn(line, "\n");
        append(to, "mad.wide.u32 %%u2, %%t3, %zu, %%u1;\n", result_bytes((enum ptx_type)l->result[i]));
        append(one, "%.*s\n", (int)length, line);
        place(one, l, to);
        line += length + 1;
    }
}

/* add.cc and its kin: the carry comes from an operand of its own, and what it is afterwards is a result. */
static bool has_carry(const struct form *f)
{
    const size_t base = strcspn(f->text, ".");
    return (f->in.flags & FLAG_CC) != 0 || (base == 4 && strchr("asm", f->text[0]) != NULL && f->text[3] == 'c' &&
                                            (strncmp(f->text, "addc", 4) == 0 || strncmp(f->text, "subc", 4) == 0 ||
                                             strncmp(f->text, "madc", 4) == 0));
}

static void carry_around(struct entry *e, const struct form *f, char *before, char *after)
{
    const struct form_operand carry = { .kind = 'p', .type = T_PRED }, flag = { .kind = 'd', .type = T_U32 };
    const bool borrow = strncmp(f->text, "sub", 3) == 0;
    char kept[BODY];
    snprintf(kept, sizeof kept, "%s", e->operands);
    const int in = e->sources, out = e->targets;
    one_source(e, &carry);
    one_target(e, &flag);
    snprintf(e->operands, sizeof e->operands, "%s", kept);
    append(e->declare, ".reg .b32 %%c, %%e;\n");
    append(before, "selp.u32 %%c, 1, 0, %%s%d;\n", in);
    append(before, borrow ? "sub.cc.u32 %%e, 0, %%c;\n" : "add.cc.u32 %%e, %%c, 0xffffffff;\n");
    append(after, "%s.u32 %%d%d, 0, 0;\n", borrow ? "subc" : "addc", out);
}

static void entry_text(struct entry *e, const struct form *f, char *body, uint32_t *tuples)
{
    struct form_operand operands[FORM_OPERANDS];
    char before[BODY] = "", after[BODY] = "";
    const int count = form_operands(&f->in, operands);
    for (int i = 0; i < count; i++) one_operand(e, &operands[i]);
    if (has_carry(f)) carry_around(e, f, before, after);
    struct layout l;
    snprintf(e->describe + strlen(e->describe), sizeof e->describe - strlen(e->describe), ">%s", e->results);
    *tuples = layout_tuples(e->describe);
    layout_read(&l, e->describe, *tuples);
    append(body,
           ".reg .b32 %%t<4>; .reg .b64 %%u<4>;\n%s"
           "mov.u32 %%t0, %%ctaid.x; mov.u32 %%t1, %%ntid.x; mov.u32 %%t2, %%tid.x; "
           "mad.lo.u32 %%t3, %%t0, %%t1, %%t2;\n"
           "ld.param.u64 %%u0, [in]; ld.param.u64 %%u1, [out]; mad.wide.u32 %%u0, %%t3, %zu, %%u0;\n",
           e->declare, l.stride);
    place(e->load, &l, body);
    append(body, "%s%s%s;\n%s", before, f->text, e->operands, after);
    place_stores(e, &l, body);
}

static void add_form(struct calibration *c, const struct form *f, bool wide)
{
    struct entry *e = calloc(1, sizeof *e);
    char body[BODY] = "", name[FORM_TEXT + 160];
    char operands[128];
    uint32_t tuples;
    if (e == NULL) abort();
    e->wide = wide;
    entry_text(e, f, body, &tuples);
    snprintf(operands, sizeof operands, "%.100s", e->operands);
    snprintf(name, sizeof name, "%s%s%s", f->text, strchr(f->row->operands, '{') != NULL ? operands : "",
             wide ? " in 64-bit registers" : "");
    struct layout l;
    layout_read(&l, e->describe, tuples);
    struct calibration_case one = { .name = name, .form = f->text, .body = body, .grid = { tuples / 128 },
                                    .block = { 128 },
                                    .input_bytes = l.input_bytes, .output_bytes = l.output_bytes, .fill = operands_fill,
                                    .describe = e->describe };
    bounds_apply(&one);
    calibration_add(c, &one);
    free(e);
}

/* ---- which forms ---- */

static bool has_wider(const struct form *f)
{
    struct form_operand operands[FORM_OPERANDS];
    const int count = form_operands(&f->in, operands);
    for (int i = 0; i < count; i++)
        if (operands[i].wider && strchr("usb", type_kind((enum ptx_type)operands[i].type)) != NULL) return true;
    return false;
}

static void add_forms(struct calibration *c, const struct form *f)
{
    add_form(c, f, false);
    if (has_wider(f)) add_form(c, f, true);
}

void calibration_family_scalar(struct calibration *c)
{
    for (const struct family *const *family = instruction_families; *family != NULL; family++)
        for (int i = 0; i < (*family)->count; i++) {
            const struct row *row = &(*family)->rows[i];
            char why[200];
            const struct module hopper = { .version = 90, .sm = 90, .suffix = 'a' };
            if (registers_only(row) && row_available(row, &hopper, why, sizeof why))
                calibration_row(c, row, FORMS_IN_FULL, add_forms);
        }
}
