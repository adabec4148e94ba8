/* cudasim-instructions [--expect FILE] KEPT.txt... KERNEL.ptx...: the table of instructions, docs/instructions.md, to
 * stdout; or exit status 1 if FILE is not what would be printed.
 *
 * Of each row of the table it says what its results were checked against: hardware (the kept results of
 * cudasim-calibrate), kernels of compilers that the tests run (the PTX files named), or the manual alone; and of each
 * of those kernels how many of its forms no hardware was asked about. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/run/compare.h"
#include "calibrate/forms/forms.h"

enum { MOST_ROWS = 4096 };

struct line {
    const struct row *row;
    uint32_t equal, within, different, refused;   /* cases on hardware */
    char **forms;                                 /* in compilers' kernels */
    uint32_t form_count;
};

/* An entry of a PTX file: its forms, each once. */
struct kernel {
    char *file, *entry;
    char **forms;
    const struct line **lines;
    uint32_t count;
};

struct table {
    struct line lines[MOST_ROWS];
    uint32_t count;
    struct kernel *kernels;
    uint32_t kernel_count;
};

static struct line *line_of(struct table *t, const struct row *row)
{
    for (uint32_t i = 0; i < t->count; i++)
        if (t->lines[i].row == row) return &t->lines[i];
    fprintf(stderr, "a row that is not in the table\n");
    exit(2);
}

static void gather_rows(struct table *t)
{
    for (const struct family *const *family = instruction_families; *family != NULL; family++)
        for (int i = 0; i < (*family)->count && t->count < MOST_ROWS; i++)
            t->lines[t->count++].row = &(*family)->rows[i];
}

/* ---- hardware ---- */

static struct module *read_text(const char *name, const char *text)
{
    struct ptx_error error;
    struct module *m = ptx_read(name, text, strlen(text), NULL, &error);
    if (m == NULL) fprintf(stderr, "%s\n", error.text);
    return m;
}

static bool lists(const char *forms, const char *text)
{
    const size_t length = strlen(text);
    for (const char *at = forms; (at = strstr(at, text)) != NULL; at++)
        if ((at == forms || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) return true;
    return false;
}

static void count_case(struct line *line, const struct kept_line *kept)
{
    if (kept->state == KEPT_EQUAL) line->equal++;
    else if (kept->state == KEPT_WITHIN) line->within++;
    else if (kept->state == KEPT_DIFFERENT) line->different++;
    else line->refused++;
}

/* The rows of the instructions that the case names. */
static void credit(struct table *t, const struct calibration_case *c, const struct kept_line *kept)
{
    char *entry = calibration_entry(c, 0), *text = NULL, form[512];
    if (asprintf(&text, ".version %u.%u\n.target %s\n.address_size 64\n%s", c->version / 10, c->version % 10, c->target,
                 entry)
        < 0)
        abort();
    struct module *m = read_text(c->name, text);
    const struct row *seen[64];
    uint32_t seen_count = 0;
    for (uint32_t i = 0; m != NULL && i < m->code_count; i++) {
        const struct row *row = m->code[i].row;
        bool old = seen_count == 64;
        for (uint32_t k = 0; k < seen_count; k++) old = old || seen[k] == row;
        if (old) continue;
        form_of_insn(&m->code[i], form, sizeof form);
        if (!lists(c->form, form)) continue;
        seen[seen_count++] = row;
        count_case(line_of(t, row), kept);
    }
    ptx_release(m);
    free(entry), free(text);
}

static void gather_hardware(struct table *t, const struct kept *kept)
{
    struct calibration c = { .count = 0 };
    if (kept->count == 0) return; /* making the cases takes seconds */
    calibration_collect(&c, NULL);
    for (uint32_t i = 0; i < c.count; i++) {
        const struct kept_line *line = kept_find(kept, c.cases[i].name);
        if (line != NULL && line->identity == calibration_identity(&c.cases[i])) credit(t, &c.cases[i], line);
    }
    calibration_release(&c);
}

/* ---- compilers ---- */

static void *grown(void *array, size_t bytes)
{
    array = realloc(array, bytes);
    if (array == NULL) abort();
    return array;
}

static char *copy_of(const char *text)
{
    char *copy = strdup(text);
    if (copy == NULL) abort();
    return copy;
}

/* False: it was there. */
static bool add_text(char ***list, uint32_t *count, const char *text)
{
    for (uint32_t i = 0; i < *count; i++)
        if (strcmp((*list)[i], text) == 0) return false;
    *list = grown(*list, (*count + 1) * sizeof **list);
    (*list)[(*count)++] = copy_of(text);
    return true;
}

static struct kernel *kernel_of(struct table *t, const char *file, const char *entry)
{
    const char *slash = strrchr(file, '/');
    file = slash == NULL ? file : slash + 1;
    for (uint32_t i = 0; i < t->kernel_count; i++)
        if (strcmp(t->kernels[i].file, file) == 0 && strcmp(t->kernels[i].entry, entry) == 0) return &t->kernels[i];
    t->kernels = grown(t->kernels, (t->kernel_count + 1) * sizeof *t->kernels);
    t->kernels[t->kernel_count] = (struct kernel){ .file = copy_of(file), .entry = copy_of(entry) };
    return &t->kernels[t->kernel_count++];
}

static void add_to_kernel(struct kernel *k, const char *form, const struct line *line)
{
    if (!add_text(&k->forms, &k->count, form)) return;
    k->lines = grown(k->lines, k->count * sizeof *k->lines);
    k->lines[k->count - 1] = line;
}

static char *slurp(const char *name)
{
    FILE *file = fopen(name, "rb");
    char *text = NULL;
    size_t size = 0;
    if (file == NULL) return NULL;
    FILE *out = open_memstream(&text, &size);
    for (int c; out != NULL && (c = fgetc(file)) != EOF;) fputc(c, out);
    if (out != NULL) fclose(out);
    fclose(file);
    return text;
}

static bool gather_kernel(struct table *t, const char *name)
{
    char *text = slurp(name), form[512];
    struct module *m = text == NULL ? NULL : read_text(name, text);
    for (uint32_t i = 0; m != NULL && i < m->code_count; i++) {
        struct line *line = line_of(t, m->code[i].row);
        const struct function *f = ptx_function_at(m, i);
        form_of_insn(&m->code[i], form, sizeof form);
        add_text(&line->forms, &line->form_count, form);
        if (f != NULL && f->entry) add_to_kernel(kernel_of(t, name, f->name), form, line);
    }
    const bool good = m != NULL;
    ptx_release(m);
    free(text);
    return good;
}

/* ---- the page ---- */

static int set_size(const char *sets, int n)
{
    for (; n > 0 && sets != NULL; n--) sets = strchr(sets, ';') == NULL ? NULL : strchr(sets, ';') + 1;
    int size = 0;
    while (sets != NULL && *(sets += strspn(sets, " ")) != '\0' && *sets != ';') size++, sets += strcspn(sets, " ;");
    return size;
}

/* How many forms the pattern stands for; some of them the reader refuses. */
static uint64_t forms_count(const struct row *row)
{
    uint64_t count = 1;
    for (const char *p = row->pattern; *p != '\0'; p++) {
        if (*p == '$') count *= (uint64_t)set_size(row->types, p[1] - '1');
        if (*p != '{' && *p != '(') continue;
        uint64_t alternatives = *p == '{' ? 2 : 1;
        for (const char *q = p + 1; *q != '}' && *q != ')'; q++) alternatives += *q == '|';
        count *= alternatives;
    }
    return count;
}

/* '|' would end the cell. */
static void put_cell(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '|') fputs("\\|", out);
        else fputc(*text, out);
    }
}

static bool on_hopper(const struct row *row)
{
    const struct module hopper = { .version = 999, .sm = 90, .suffix = 'a' };
    char why[200];
    return row_available(row, &hopper, why, sizeof why);
}

static void put_state(FILE *out, const struct line *l)
{
    const uint32_t cases = l->equal + l->within + l->different;
    if (cases != 0) {
        fprintf(out, "hardware: %u case%s", cases, cases == 1 ? "" : "s");
        if (l->within != 0) fprintf(out, ", %u within the manual's error", l->within);
        if (l->different != 0) fprintf(out, ", **%u different**", l->different);
    }
    if (l->form_count != 0)
        fprintf(out, "%scompilers: %u form%s", cases != 0 ? "; " : "", l->form_count, l->form_count == 1 ? "" : "s");
    if (cases == 0 && l->form_count == 0)
        fprintf(out, "manual alone%s", on_hopper(l->row) ? "" : " (not a Hopper instruction)");
}

static void put_line(FILE *out, const struct line *l)
{
    fprintf(out, "| `");
    put_cell(out, l->row->pattern);
    fprintf(out, "` | ");
    put_cell(out, l->row->types == NULL ? "" : l->row->types);
    fprintf(out, " | %s | %d.%d%s%s | %llu | ", l->row->section, l->row->since / 10, l->row->since % 10,
            l->row->targets[0] == '\0' ? "" : ", ", l->row->targets, (unsigned long long)forms_count(l->row));
    put_state(out, l);
    fprintf(out, " |\n");
}

static bool was_measured(const struct line *l) { return l->equal + l->within + l->different != 0; }

/* Each form once for the kernels of a file. */
static void put_unmeasured(FILE *out, const struct table *t, const char *file)
{
    char **forms = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < t->kernel_count; i++)
        for (uint32_t k = 0; strcmp(t->kernels[i].file, file) == 0 && k < t->kernels[i].count; k++)
            if (!was_measured(t->kernels[i].lines[k]) && add_text(&forms, &count, t->kernels[i].forms[k]))
                fprintf(out, "%s`%s`", count == 1 ? "" : ", ", forms[count - 1]);
    fprintf(out, "%s.\n", count == 0 ? "none" : "");
    for (uint32_t i = 0; i < count; i++) free(forms[i]);
    free(forms);
}

static void put_kernels(FILE *out, const struct table *t)
{
    const char *file = "";
    fprintf(out, "\n# Kernels of the tests\n\n"
                 "How many forms each kernel has, and how many of them are of rows that were not compared with "
                 "hardware: what the\n"
                 "kernel's results owe to the manual alone. Then these forms, for each file.\n\n"
                 "| file | kernel | forms | from the manual alone |\n|---|---|---|---|\n");
    for (uint32_t i = 0; i < t->kernel_count; i++) {
        const struct kernel *k = &t->kernels[i];
        uint32_t manual = 0;
        for (uint32_t f = 0; f < k->count; f++) manual += !was_measured(k->lines[f]);
        fprintf(out, "| %s | `%s` | %u | %u |\n", k->file, k->entry, k->count, manual);
    }
    for (uint32_t i = 0; i < t->kernel_count; i++) {
        if (strcmp(file, t->kernels[i].file) == 0) continue;
        file = t->kernels[i].file;
        fprintf(out, "\n%s: ", file);
        put_unmeasured(out, t, file);
    }
}

static void put_page(FILE *out, const struct table *t, const struct kept *kept, int kernels)
{
    uint32_t hardware = 0, compilers = 0, manual = 0, different = 0, cases = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        const struct line *l = &t->lines[i];
        const uint32_t measured = l->equal + l->within + l->different;
        if (measured != 0) hardware++;
        else if (l->form_count != 0) compilers++;
        else manual++;
        different += l->different, cases += measured;
    }
    fprintf(
        out,
        "# Table of instructions\n\nMade by `cudasim-instructions`; `make test` says when it is not what the "
        "program prints.\n\n"
        "A row of the table stands for all forms of its pattern: `{.a|.b}` may be left out, `(.a|.b)` may not, `$1` "
        "is a type.\n"
        "The count of forms is of all choices; the reader refuses those that the manual does not have. What a row "
        "was checked\n"
        "against: *hardware*, all output bytes of cases run on\n%s\nand simulated; "
        "*compilers*, forms in the %d\n"
        "files of kernels of nvcc, clang and Triton that the tests run; or the *manual alone*.\n\n"
        "%u rows: %u checked on hardware (%u cases, %u different), %u in compilers' kernels only, %u from the "
        "manual alone.\n",
        kept->devices, kernels, t->count, hardware, cases,
        different, compilers, manual);
    uint32_t at = 0;
    for (const struct family *const *family = instruction_families; *family != NULL; family++) {
        fprintf(out, "\n## %c%s\n\n| form | types | PTX ISA | since | forms | checked |\n|---|---|---|---|---|---|\n",
                (*family)->name[0] >= 'a' && (*family)->name[0] <= 'z' ? (*family)->name[0] - 'a' + 'A'
                                                                       : (*family)->name[0],
                (*family)->name + 1);
        for (int i = 0; i < (*family)->count; i++) put_line(out, &t->lines[at++]);
    }
    put_kernels(out, t);
}

static int expect(const char *file, const char *page)
{
    char *text = slurp(file);
    const bool same = text != NULL && strcmp(text, page) == 0;
    if (!same) fprintf(stderr, "%s is not what cudasim-instructions prints: make instructions\n", file);
    free(text);
    printf("cudasim_instructions: %d passed, %d failed, 0 skipped\n", same, !same);
    return same ? 0 : 1;
}

static bool is_kept(const char *name)
{
    const size_t length = strlen(name);
    return length > 4 && strcmp(name + length - 4, ".txt") == 0;
}

int main(int argc, char **argv)
{
    static struct table table;
    const char *expected = NULL;
    if (argc > 2 && strcmp(argv[1], "--expect") == 0) expected = argv[2], argc -= 2, argv += 2;
    struct kept kept = { .count = 0 };
    int first = 1;
    while (first < argc && is_kept(argv[first]) && kept_read(&kept, argv[first])) first++;
    if (first == 1 || (first < argc && is_kept(argv[first]))) {
        fprintf(stderr, "cudasim-instructions [--expect FILE] KEPT.txt... KERNEL.ptx...\n");
        return 2;
    }
    gather_rows(&table);
    gather_hardware(&table, &kept);
    for (int i = first; i < argc; i++)
        if (!gather_kernel(&table, argv[i])) return 2;
    char *page = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&page, &size);
    if (out == NULL) abort();
    put_page(out, &table, &kept, argc - first);
    if (fclose(out) != 0) abort();
    int status = 0;
    if (expected != NULL) status = expect(expected, page);
    else fputs(page, stdout);
    kept_release(&kept);
    free(page);
    return status;
}
