/* Reading PTX: what is refused, and exactly what is said about it. */
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include "tests/support/harness.h"

#define HEAD ".version 9.0\n.target sm_90a\n.address_size 64\n"
#define ENTRY \
    HEAD ".visible .entry k(.param .u64 p)\n{\n\t.reg .b32 %r<4>;\n\t.reg .b64 %rd<4>;\n\t.reg .pred %p<2>;\n\t.reg " \
         ".f32 %f<4>;\n"

static void refuses(struct test *t, const char *text, const char *want)
{
    struct ptx_error error;
    struct module *m = ptx_read("k.ptx", text, strlen(text), NULL, &error);
    if (m != NULL) FAIL(t, "accepted: %s", text);
    else if (strcmp(error.text, want) != 0) FAIL(t, "says\n%s\nnot\n%s", error.text, want);
    ptx_release(m);
}

static void accepts(struct test *t, const char *text)
{
    struct ptx_error error;
    struct module *m = ptx_read("k.ptx", text, strlen(text), NULL, &error);
    if (m == NULL) FAIL(t, "%s", error.text);
    ptx_release(m);
}

static void unknown_instructions(struct test *t)
{
    refuses(t, ENTRY "\tfrobnicate.u32 %r1, %r2;\n}\n",
            "k.ptx:10:2: error: the instruction 'frobnicate' is not known here\n\tfrobnicate.u32 %r1, %r2;\n\t^");
    refuses(t, ENTRY "@%p1 add %r1, %r2, 4;\n}\n",
            "k.ptx:10:6: error: a modifier is missing; the nearest form is add.$1\n@%p1 add %r1, %r2, 4;\n     ^");
}

static void unknown_modifiers(struct test *t)
{
    refuses(t, ENTRY "add.rn.s32 %r1, %r2, %r3;\n}\n",
            "k.ptx:10:7: error: '.s32' is unknown or misplaced here; the nearest form is "
            "add{.rn|.rz|.rm|.rp}{.ftz}{.sat}.$1\n"
            "add.rn.s32 %r1, %r2, %r3;\n      ^");
    refuses(t, ENTRY "ld.global.nc.volatile.u32 %r1, [%rd1];\n}\n",
            "k.ptx:10:13: error: '.volatile' is unknown or misplaced here; the nearest form is "
            "ld.global{.ca|.cg|.cs}.nc{.L2::cache_hint}"
            "{.L2::64B|.L2::128B|.L2::256B}{.v2|.v4|.v8}.$1\nld.global.nc.volatile.u32 %r1, [%rd1];\n            ^");
}

static void wrong_operands(struct test *t)
{
    refuses(
        t, ENTRY "add.s32 %r1, %f2, 4;\n}\n",
        "k.ptx:10:14: error: this register has type .f32, a .s32 operand should stand here\nadd.s32 %r1, %f2, 4;\n"
        "             ^");
    refuses(t, ENTRY "add.s32 %r1, %r2;\n}\n",
            "k.ptx:10:17: error: operand 3 is missing\nadd.s32 %r1, %r2;\n                ^");
    refuses(t, ENTRY "add.s32 %r1, %r2, %r3, %r1;\n}\n",
            "k.ptx:10:24: error: the instruction has no operand here: one too many\nadd.s32 %r1, %r2, %r3, %r1;\n"
            "                       ^");
    refuses(t, ENTRY "add.s32 4, %r2, %r3;\n}\n",
            "k.ptx:10:9: error: the destination should be a register\nadd.s32 4, %r2, %r3;\n        ^");
    refuses(t, ENTRY "add.f32 %f1, %f2, 4;\n}\n",
            "k.ptx:10:19: error: a float constant (0f... or 0d...) should stand here, not an integer\n"
            "add.f32 %f1, %f2, 4;\n                  ^");
    refuses(t, ENTRY "mov.u32 %r9, 1;\n}\n",
            "k.ptx:10:9: error: the register '%r9' is not declared\nmov.u32 %r9, 1;\n        ^");
    refuses(t, ENTRY "ld.global.v4.u32 {%r0, %r1, %r2}, [%rd1];\n}\n",
            "k.ptx:10:18: error: a vector of 4 elements should stand here, not of 3\n"
            "ld.global.v4.u32 {%r0, %r1, %r2}, [%rd1];\n                 ^");
    refuses(t, ENTRY "@%r1 ret;\n}\n",
            "k.ptx:10:2: error: a declared predicate register should stand behind '@'\n@%r1 ret;\n ^");
}

static void labels(struct test *t)
{
    refuses(t, ENTRY "bra NOWHERE;\n}\n",
            "k.ptx:10:5: error: no label 'NOWHERE' in this function\nbra NOWHERE;\n    ^");
    refuses(t, ENTRY "L: L: ret;\n}\n", "k.ptx:10:4: error: 'L' is declared twice\nL: L: ret;\n   ^");
    refuses(t, ENTRY "{ IN: } bra IN;\n}\n",
            "k.ptx:10:13: error: no label 'IN' in this function\n{ IN: } bra IN;\n            ^");
    accepts(t, ENTRY "{ bra OUT; { @%p1 bra OUT; } } OUT: ret;\n}\n");
    accepts(t, ENTRY "T: .branchtargets A, B;\nbrx.idx %r1, T;\nA: ret;\nB: ret;\n}\n");
}

static void heads(struct test *t)
{
    refuses(t, "", "k.ptx:1:1: error: a module begins with .version\n\n^");
    refuses(t, ".version 12.0\n",
            "k.ptx:1:10: error: the version should stand here, as 9.0\n.version 12.0\n         ^");
    refuses(t, ".version 9.0\n.target tesla\n",
            "k.ptx:2:9: error: the target option 'tesla' is not known here\n.target tesla\n        ^");
    refuses(t, HEAD "/* no end", "k.ptx:4:1: error: this comment has no end\n/* no end\n^");
    refuses(t, HEAD ".global .u32 x = 1.5;",
            "k.ptx:4:21: error: an integer constant should stand here, not a float\n.global .u32 x = 1.5;\n"
            "                    ^");
    accepts(t, HEAD);
}

/* A form that is newer than the module's version or target. */
static void versions_and_targets(struct test *t)
{
    refuses(t, ".version 7.0\n.target sm_90\n.visible .entry k()\n{\n.reg .b32 %r<2>;\n.reg .pred %p;\n"
               "elect.sync %r1|%p, -1;\n}\n",
            "k.ptx:7:1: error: this form needs PTX 8.0; the module says .version 7.0\nelect.sync %r1|%p, -1;\n^");
    refuses(t, ".version 8.6\n.target sm_90a\n.visible .entry k()\n{\n.reg .b64 %r<2>;\nadd.rn.f32x2 %r0, %r0, %r1;\n"
               "}\n",
            "k.ptx:6:1: error: this form needs the target sm_100+; the module says sm_90a\n"
            "add.rn.f32x2 %r0, %r0, %r1;\n^");
}

static void every_row_is_well_formed(struct test *t)
{
    for (int f = 0; instruction_families[f] != NULL; f++)
        for (int i = 0; i < instruction_families[f]->count; i++) {
            const char *wrong = row_check(&instruction_families[f]->rows[i]);
            if (wrong != NULL) FAIL(t, "%s: %s", instruction_families[f]->rows[i].pattern, wrong);
        }
}

static bool found_by_name(const struct row *wanted)
{
    uint32_t state = 0;
    const struct row *row;
    do row = table_next(wanted->pattern, strcspn(wanted->pattern, ".{("), &state);
    while (row != NULL && row != wanted);
    return row != NULL;
}

static void every_row_is_found_by_its_name(struct test *t)
{
    for (int f = 0; instruction_families[f] != NULL; f++)
        for (int i = 0; i < instruction_families[f]->count; i++)
            if (!found_by_name(&instruction_families[f]->rows[i]))
                FAIL(t, "%s", instruction_families[f]->rows[i].pattern);
    CHECK(t, !table_knows("", 0) && !table_knows("ad", 2) && !table_knows("addd", 4));
}

/* Every prefix of a module, and every module with one byte changed, gives an answer. */
static void cut_and_changed_text(struct test *t)
{
    static const char text[] = ENTRY
        "\t.shared .align 16 .b8 s[64];\n\tld.param.u64 %rd1, [p];\n\tmov.u32 %r1, s;\n\t@!%p1 bra L;\n"
        "\tst.shared.v2.u32 [%r1+8], {%r1, 0x10};\nL:\n\tfma.rn.f32 %f1, %f2, 0f3F800000, -1.5;\n\tret;\n}\n";
    char copy[sizeof text];
    struct ptx_error error;
    for (size_t n = 0; n < sizeof text; n++) ptx_release(ptx_read("k.ptx", text, n, NULL, &error));
    for (size_t i = 0; i < sizeof text - 1; i++) {
        memcpy(copy, text, sizeof text);
        copy[i] = (char)rnd(t);
        ptx_release(ptx_read("k.ptx", copy, sizeof text - 1, NULL, &error));
    }
    accepts(t, text);
}

/* Text that grows. */
struct text { char *at; size_t used, capacity; };
__attribute__((format(printf, 2, 3)))
static void put(struct text *t, const char *format, ...)
{
    va_list arguments;
    if (t->capacity - t->used < 256) {
        t->capacity = 2 * t->capacity + 4096;
        t->at = realloc(t->at, t->capacity);
        if (t->at == NULL) abort();
    }
    va_start(arguments, format);
    t->used += (size_t)vsnprintf(t->at + t->used, t->capacity - t->used, format, arguments);
    va_end(arguments);
}

static double processor_seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

/* NULL: it was not read.  Reading that is quadratic takes a hundred times as long. */
static struct module *read_quickly(struct test *t, struct text *text)
{
    enum { SECONDS = 10 };
    struct ptx_error error;
    const double begun = processor_seconds();
    struct module *m = ptx_read("k.ptx", text->at, text->used, NULL, &error);
    if (m == NULL) FAIL(t, "%s", error.text);
    CHECK(t, processor_seconds() - begun < SECONDS);
    free(text->at);
    return m;
}

static void many_labels_are_read(struct test *t)
{
    enum { LABELS = 200000 };
    struct text text = { NULL, 0, 0 };
    put(&text, "%s", ENTRY);
    for (uint32_t i = 0; i < LABELS; i++) put(&text, "L%u: @%%p1 bra L%u; { bra L0; }\n", i, LABELS - 1 - i);
    put(&text, "ret;\n}\n");
    struct module *m = read_quickly(t, &text);
    for (uint32_t i = 0; m != NULL && i < LABELS; i += 997) {
        const struct insn *in = &m->code[m->functions[0]->code_begin + 2 * i];
        CHECK(t, in->operand[0].kind == OPERAND_LABEL
                     && in->operand[0].value == m->functions[0]->code_begin + 2 * (LABELS - 1 - i));
    }
    ptx_release(m);
}

/* Each names a shared variable of its own, and calls one that names another. */
static void many_entries_are_read(struct test *t)
{
    enum { ENTRIES = 20000 };
    struct text text = { NULL, 0, 0 };
    put(&text, HEAD ".shared .align 16 .b8 common[48];\n.func last() { .reg .b32 %%r<2>; mov.u32 %%r1, common; ret; }\n"
                    ".func middle() { call last, (); ret; }\n");
    for (uint32_t i = 0; i < ENTRIES; i++)
        put(&text, ".visible .entry k%u() { .shared .align 4 .b8 s[%u]; .reg .b32 %%r<2>; mov.u32 %%r1, s; %s ret; }\n",
            i, 4 + i % 3 * 4, i % 2 == 0 ? "call middle, ();" : "");
    struct module *m = read_quickly(t, &text);
    uint32_t entries = 0;
    for (uint32_t i = 0; m != NULL && i < m->function_count; i++) {
        const struct function *f = m->functions[i];
        if (!f->entry) continue;
        const uint32_t own = 4 + entries % 3 * 4;
        CHECK(t, f->shared_count == (entries % 2 == 0 ? 2u : 1u));
        CHECK(t, f->static_shared_bytes == (entries % 2 == 0 ? 48 + own : own));
        entries++;
    }
    if (m != NULL) CHECK(t, entries == ENTRIES);
    ptx_release(m);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(unknown_instructions),
        TEST(unknown_modifiers),
        TEST(wrong_operands),
        TEST(labels),
        TEST(heads),
        TEST(versions_and_targets),
        TEST(every_row_is_well_formed),
        TEST(every_row_is_found_by_its_name),
        TEST(cut_and_changed_text), TEST(many_labels_are_read),
        TEST(many_entries_are_read),
    };
    return TEST_MAIN(argc, argv, cases);
}
