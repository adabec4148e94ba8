/* Fuzz target: bytes become a program of statements from the table, which is read and run with a limit of steps.
 * Whatever it does, it ends with a report or without one, and does the host no harm. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/core/machine.h"
#include "tests/support/spell.h"
#include "machine/core/global_memory.h"
#include "machine/run/launch.h"
#include "machine/run/schedules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STATEMENTS = 32, FORMS_OF_A_ROW = 256, BUFFER = 4096, STEPS = 4000, NOT_TRIED = -1, REFUSED = -2 };

static const char *const targets[] = { "sm_90a", "sm_100a", "sm_120a", "sm_103a" };
enum { TARGETS = sizeof targets / sizeof targets[0] };

/* variant[target]: the first that the reader takes. */
struct choice { struct form form; int variant[TARGETS]; };
struct row_forms { const struct row *row; struct choice *list; uint32_t count; };

static struct row_forms *all;
static uint32_t rows;

/* Forms are made when their row is first wanted: all of them take long. */
static void take_forms(struct row_forms *r)
{
    uint32_t count;
    struct form *forms = forms_some(r->row, FORMS_OF_A_ROW, &count);
    r->list = calloc(count + 1, sizeof *r->list);
    if (r->list == NULL) abort();
    for (uint32_t i = 0; i < count; i++) {
        if (spell_variants(&forms[i]) == 0) continue;
        r->list[r->count] = (struct choice){ .form = forms[i] };
        for (int t = 0; t < TARGETS; t++) r->list[r->count].variant[t] = NOT_TRIED;
        r->count++;
    }
    free(forms);
}

static void take_rows(void)
{
    for (const struct family *const *f = instruction_families; *f != NULL; f++) {
        all = realloc(all, (rows + (uint32_t)(*f)->count) * sizeof *all);
        if (all == NULL) abort();
        for (int r = 0; r < (*f)->count; r++) all[rows++] = (struct row_forms){ .row = &(*f)->rows[r] };
    }
}

/* ---- the program's text ---- */

struct bytes { const uint8_t *at; size_t left; };

static uint32_t next(struct bytes *b)
{
    if (b->left == 0) return 0;
    b->left--;
    return *b->at++;
}
static uint32_t next_two(struct bytes *b) { return next(b) << 8 | next(b); }

static void write_head(FILE *f, int target)
{
    fprintf(f, ".version 9.0\n.target %s\n.address_size 64\n.const .b64 constants[4];\n"
               ".shared .align 1024 .b8 tile[2048];\n",
            targets[target]);
    fprintf(f, ".visible .entry k(.param .b64 p0) { .param .align 16 .b8 passed[64]; %s\n", SPELL_REGISTERS);
}

/* Registers begin as addresses in global and shared memory, aligned and not, and as numbers. */
static void write_start(FILE *f, struct bytes *b)
{
    fprintf(f, "ld.param.u64 %%l0, [p0]; mov.u64 %%l1, tile; cvta.shared.u64 %%l2, %%l1; mov.u32 %%w0, %%tid.x;\n");
    for (int i = 3; i < 32; i++) fprintf(f, "add.u64 %%l%d, %%l%d, %u;\n", i, i % 3, next(b) & 0xf0);
    fprintf(f, "mov.u64 %%l30, %u; mov.u32 %%w9, tile;\n", next_two(b));
    for (int i = 1; i < 160; i++)
        if (i != 9)
            fprintf(f, "mad.lo.u32 %%w%d, %%w0, %u, %u;\n", i, i % 3, i < 24 ? next_two(b) : 0x3f800000u + (uint32_t)i);
    for (int i = 0; i < 32; i++) fprintf(f, "cvt.u16.u32 %%h%d, %%w%d;\n", i, i);
    for (int i = 0; i < 16; i++)
        fprintf(f, "setp.lt.u32 %%p%d, %%w0, %d; mov.b16 {%%b%d, %%b%d}, %%h%d;\n", i, i * 4, i, i ^ 1, i);
    for (int i = 0; i < 8; i++) fprintf(f, "mov.b128 %%q%d, {%%l%d, %%l%d};\n", i, i, i + 1);
}

static struct module *read_text(FILE *f, char **text, const size_t *length)
{
    fprintf(f, "ret; }\n");
    fclose(f);
    struct ptx_error error;
    struct module *m = ptx_read("program", *text, *length, NULL, &error);
    free(*text);
    return m;
}

static bool taken(int target, const char *statement)
{
    char *text = NULL;
    size_t length = 0;
    FILE *f = open_memstream(&text, &length);
    if (f == NULL) abort();
    write_head(f, target);
    fprintf(f, "%s\n", statement);
    struct module *m = read_text(f, &text, &length);
    ptx_release(m);
    return m != NULL;
}

static bool exists(const struct row *row, int target)
{
    char *suffix, why[256];
    struct module m = { .version = 90 };
    m.sm = (uint32_t)strtoul(targets[target] + 3, &suffix, 10);
    m.suffix = *suffix;
    return row_available(row, &m, why, sizeof why);
}

static int variant_of(struct choice *c, int target)
{
    char text[STATEMENT];
    if (c->variant[target] != NOT_TRIED) return c->variant[target];
    const uint32_t variants = spell_variants(&c->form);
    c->variant[target] = REFUSED;
    for (uint32_t v = 0; v < variants && c->variant[target] == REFUSED; v++) {
        spell(&c->form, v, 1, text);
        if (taken(target, text)) c->variant[target] = (int)v;
    }
    return c->variant[target];
}

static void write_statement(FILE *f, struct bytes *b, int target)
{
    char text[STATEMENT];
    struct row_forms *row = &all[next_two(b) % rows];
    if (!exists(row->row, target)) return;
    if (row->list == NULL) take_forms(row);
    if (row->count == 0) return;
    struct choice *c = &row->list[next_two(b) % row->count];
    const int variant = variant_of(c, target);
    const uint32_t first = next(b), guard = next(b);
    if (variant == REFUSED) return;
    spell(&c->form, (uint32_t)variant, first, text);
    if (guard < 64 && strncmp(text, "{ L:", 4) != 0)
        fprintf(f, "{ @%s%%p%u %s\n", guard & 32 ? "!" : "", guard % 16, text + 2);
    else fprintf(f, "%s\n", text);
}

static struct module *make_program(struct bytes *b, int target)
{
    char *text = NULL;
    size_t length = 0;
    FILE *f = open_memstream(&text, &length);
    if (f == NULL) abort();
    write_head(f, target);
    write_start(f, b);
    for (int i = 0; i < STATEMENTS && b->left != 0; i++) write_statement(f, b, target);
    if (getenv("CUDASIM_FUZZ_PRINT") != NULL) fflush(f), fprintf(stderr, "%s", text);
    return read_text(f, &text, &length);
}

/* ---- the run ---- */

static void run(const struct module *m, int target, uint32_t shape)
{
    static const uint32_t blocks[] = { 32, 1, 33, 128, 256, 64, 128, 32 };
    struct machine_options options = machine_default_options();
    options.seed = shape;
    options.step_limit = STEPS;
    options.threads = 1, options.sms = 2;
    options.check_races = (shape & 8) != 0;
    options.check_uninitialised = (shape & 16) != 0;
    struct machine machine;
    struct image image;
    struct report report = { 0 };
    machine_open(&machine, device_named(targets[target]), &options);
    if (image_open(&image, &machine, m)) {
        uint64_t buffer = global_allocate(&machine.memory, BUFFER, 0, NULL);
        const uint32_t cluster = (shape & 32) != 0 ? 2 : 1;
        const struct launch launch = { .image = &image, .function = ptx_function(m, "k"), .grid = { 2, 1, 1 },
                                       .block = { blocks[shape & 7], 1, 1 }, .cluster = { cluster, 1, 1 },
                                       .explicit_cluster = cluster != 1, .parameters = (const uint8_t *)&buffer };
        if (buffer != 0) machine_run(&machine, &launch, &report);
    }
    image_close(&image, &machine);
    machine_close(&machine);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (all == NULL) take_rows();
    struct bytes b = { data, size };
    const uint32_t shape = next(&b);
    const int target = (int)(next(&b) % TARGETS);
    struct module *m = make_program(&b, target);
    if (m == NULL) return 0;
    run(m, target, shape);
    ptx_release(m);
    return 0;
}
