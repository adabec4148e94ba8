/* The table against NVIDIA's assembler: what our reader takes, ptxas must take, and a form that exists for a target, or
 * in a version, must not be called missing there.  Needs a ptxas (CUDA 13.0) when the tests are configured.
 *
 *     test_cudasim_ptxas --only NAME; CUDASIM_PTXAS_LIST=1 prints every form that ptxas takes and the table's handlers
 *     refuse. */
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/spell.h"
#include "test.h"

#ifndef CUDASIM_PTXAS
static void forms_exist(struct test *t) { test_skip(t, "no ptxas"); }
static void rows_begin_with_their_version(struct test *t) { test_skip(t, "no ptxas"); }
#else

enum { FORMS_OF_A_ROW = 60, FORMS_OF_A_VERSION = 12, LINE = 256 };

/* A statement and what the two say of it. */
struct question {
    const struct row *row;
    char *statement;
    bool read, exists, taken;             /* by our reader; by the columns since and targets; by ptxas */
    char ours[LINE], theirs[LINE];        /* why not */
};
struct questions { struct question *list; uint32_t count, capacity; };

static struct question *add(struct questions *q, const struct row *row, const char *statement)
{
    if (q->count == q->capacity) {
        q->capacity = q->capacity * 2 + 1024;
        q->list = realloc(q->list, q->capacity * sizeof *q->list);
        if (q->list == NULL) abort();
    }
    struct question *one = &q->list[q->count++];
    *one = (struct question){ .row = row, .statement = strdup(statement) };
    if (one->statement == NULL) abort();
    return one;
}

static void release(struct questions *q)
{
    for (uint32_t i = 0; i < q->count; i++) free(q->list[i].statement);
    free(q->list);
}

/* Lines of the head, for both readers. */
enum { HEAD_LINES = 5 };
static void write_head(FILE *f, uint32_t version, const char *target)
{
    fprintf(f, ".version %u.%u\n.target %s\n.address_size 64\n.const .b64 constants[4];\n", version / 10, version % 10,
            target);
    fprintf(f, ".entry k(.param .b64 p0) { .param .align 16 .b8 passed[64]; %s\n", SPELL_REGISTERS);
}

static bool reads(uint32_t version, const char *target, const char *statement, char why[LINE])
{
    char *text = NULL;
    size_t length = 0;
    FILE *f = open_memstream(&text, &length);
    if (f == NULL) abort();
    write_head(f, version, target);
    fprintf(f, "%s\nret; }\n", statement);
    fclose(f);
    struct ptx_error error;
    struct module *m = ptx_read("statement", text, length, NULL, &error);
    if (m == NULL) snprintf(why, LINE, "%.*s", LINE - 1, error.sentence);
    ptx_release(m);
    free(text);
    return m != NULL;
}

/* The first variant that the reader takes; else the first. */
static void ask(struct questions *q, const struct form *f, uint32_t version, const char *target, bool exists)
{
    char text[STATEMENT], why[LINE];
    const uint32_t variants = spell_variants(f);
    uint32_t good = 0;
    if (variants == 0) return;
    for (; good < variants; good++) {
        spell(f, good, 1, text);
        if (reads(version, target, text, why)) break;
        if (!exists) break;
    }
    const bool read = good < variants && exists;
    if (!read) spell(f, 0, 1, text);
    struct question *one = add(q, f->row, text);
    one->exists = exists, one->read = read;
    if (!read) reads(version, target, text, one->ours);
}

static void note_error(struct questions *q, uint32_t line, const char *sentence)
{
    if (line <= HEAD_LINES || line > HEAD_LINES + q->count) return;
    struct question *one = &q->list[line - HEAD_LINES - 1];
    one->taken = false;
    if (one->theirs[0] == '\0') snprintf(one->theirs, LINE, "%.*s", (int)strcspn(sentence, "\n"), sentence);
}

/* ptxas stops behind a step in which anything was wrong.  The last line has a mistake of the step that is asked, and
 * keeps it from going on to the next: it reads; it checks what it has read; it generates code. */
static const char wrong_to_read[] = "add.s32 %nothing, 1, 1;";
static const char wrong_to_check[] = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%w1, %w2}, [%l1];";

/* One run of ptxas over all statements.  Returns the line at which it stopped, 0: it came to the last. */
static uint32_t run_ptxas(struct questions *q, uint32_t version, const char *target, const char *last)
{
    char path[] = "/tmp/cudasim-ptxas-XXXXXX", command[512], line[4096];
    const int file = mkstemp(path);
    FILE *f = file < 0 ? NULL : fdopen(file, "w");
    if (f == NULL) abort();
    write_head(f, version, target);
    for (uint32_t i = 0; i < q->count; i++) fprintf(f, "%s\n", q->list[i].theirs[0] == '!' ? "" : q->list[i].statement);
    fprintf(f, "%s\nret; }\n", last);
    fclose(f);
    snprintf(command, sizeof command, "%s -arch %s %s -o /dev/null 2>&1", CUDASIM_PTXAS, target, path);
    FILE *p = popen(command, "r");
    if (p == NULL) abort();
    uint32_t stopped = 1;
    while (fgets(line, sizeof line, p) != NULL) {
        const char *at = strstr(line, ", line ");
        if (at == NULL) continue;
        char *rest;
        const uint32_t number = (uint32_t)strtoul(at + 7, &rest, 10);
        if (strstr(rest, "error ") == NULL && strstr(rest, "fatal ") == NULL) continue;       /* advice */
        if (number == HEAD_LINES + q->count + 1) stopped = 0;
        else note_error(q, number, rest + strspn(rest, "; "));
        if (strstr(line, "fatal") != NULL) stopped = number;
    }
    pclose(p);
    unlink(path);
    return stopped;
}

static bool ask_ptxas(struct test *t, struct questions *q, uint32_t version, const char *target)
{
    for (uint32_t i = 0; i < q->count; i++) q->list[i].taken = true;
    for (int tries = 0; tries < 100; tries++) {
        const uint32_t line = run_ptxas(q, version, target, wrong_to_read);
        if (line == 0) return true;
        if (line <= HEAD_LINES || line > HEAD_LINES + q->count) break;
        struct question *one = &q->list[line - HEAD_LINES - 1];
        one->taken = false;
        snprintf(one->theirs, LINE, "!syntax");       /* left out the next time */
    }
    FAIL(t, "ptxas does not read the statements for %s", target);
    return false;
}

/* What both have read: whether ptxas finds something wrong with it afterwards, shapes and types that do not go
 * together. */
static void check_what_was_read(struct test *t, const struct questions *q, uint32_t version, const char *target)
{
    struct questions both = { .count = 0 };
    for (uint32_t i = 0; i < q->count; i++)
        if (q->list[i].read && q->list[i].taken) add(&both, q->list[i].row, q->list[i].statement)->taken = true;
    if (run_ptxas(&both, version, target, wrong_to_check) != 0)
        FAIL(t, "ptxas does not check the statements for %s", target);
    for (uint32_t i = 0; i < both.count; i++) {
        const struct question *one = &both.list[i];
        /* exists for an entry's parameters alone */
        if (strstr(one->statement, "prefetch.param.tensormap") != NULL) continue;
        if (!one->taken) FAIL(t, "%s: %s is read; ptxas: %s", target, one->statement, one->theirs);
    }
    release(&both);
}

static struct module module_of(uint32_t version, const char *target)
{
    char *end;
    struct module m = { .version = version };
    m.sm = (uint32_t)strtoul(target + 3, &end, 10);
    m.suffix = *end;
    return m;
}

static void questions_of_row(struct questions *q, const struct row *row, uint32_t most, uint32_t version,
                             const char *target)
{
    uint32_t count;
    char why[LINE];
    const struct module m = module_of(version, target);
    const bool exists = row_available(row, &m, why, sizeof why);
    struct form *forms = forms_some(row, most, &count);
    for (uint32_t i = 0; i < count; i++) ask(q, &forms[i], version, target, exists);
    free(forms);
}

/* Forms that are refused here though ptxas takes them are printed on demand; a wrong column or a form too many is a
 * failure. */
static void judge(struct test *t, const struct questions *q, const char *target)
{
    const bool list = getenv("CUDASIM_PTXAS_LIST") != NULL;
    uint32_t agreed = 0, refused = 0;
    for (uint32_t i = 0; i < q->count; i++) {
        const struct question *one = &q->list[i];
        if (one->read == one->taken) agreed++;
        else if (one->read) FAIL(t, "%s: %s is read; ptxas: %s", target, one->statement, one->theirs);
        else if (!one->exists) FAIL(t, "%s: %s is taken by ptxas; %s", target, one->statement, one->ours);
        else refused++;
        if (list && one->read != one->taken && (one->read || !one->exists))
            printf("wrong %s %s: %s; %s\n", target, one->statement, one->ours, one->theirs);
        if (list && !one->read && one->taken) printf("refused %s %s: %s\n", target, one->statement, one->ours);
    }
    printf("%s: %u statements, %u judged alike, %u refused that ptxas takes\n", target, q->count, agreed, refused);
}

static void forms_exist(struct test *t)
{
    static const char *const targets[] = { "sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a", "sm_100f", "sm_90" };
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        struct questions q = { .count = 0 };
        for (const struct family *const *f = instruction_families; *f != NULL; f++)
            for (int r = 0; r < (*f)->count; r++) questions_of_row(&q, &(*f)->rows[r], FORMS_OF_A_ROW, 90, targets[i]);
        if (ask_ptxas(t, &q, 90, targets[i])) {
            judge(t, &q, targets[i]);
            check_what_was_read(t, &q, 90, targets[i]);
        }
        release(&q);
    }
}

/* The statements that are read at 9.0, in a module of `version`. */
static void ask_version(struct test *t, struct questions *q, uint32_t version, const char *target)
{
    for (uint32_t i = 0; i < q->count; i++) q->list[i].theirs[0] = '\0';
    if (!ask_ptxas(t, q, version, target)) return;
    for (uint32_t i = 0; i < q->count; i++) {
        const struct question *one = &q->list[i];
        char why[LINE];
        if (one->read && one->taken != reads(version, target, one->statement, why))
            FAIL(t, "%s, .version %u.%u: ptxas %s %s: %s", target, version / 10, version % 10,
                 one->taken ? "takes" : "refuses", one->statement, one->taken ? why : one->theirs);
    }
}

static void rows_begin_with_their_version(struct test *t)
{
    static const struct { const char *target; uint32_t version[12]; } runs[] = {
        { "sm_90a", { 80, 81, 82, 83, 84, 85, 86, 87, 88, 90 } }, { "sm_100a", { 86, 87, 88, 90 } },
          { "sm_120a", { 87, 88, 90 } },
        { "sm_103a", { 88, 90 } },
    };
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        struct questions q = { .count = 0 };
        for (const struct family *const *f = instruction_families; *f != NULL; f++)
            for (int r = 0; r < (*f)->count; r++)
                questions_of_row(&q, &(*f)->rows[r], FORMS_OF_A_VERSION, 90, runs[i].target);
        for (int v = 0; runs[i].version[v] != 0; v++) ask_version(t, &q, runs[i].version[v], runs[i].target);
        release(&q);
    }
}
#endif

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(forms_exist), TEST(rows_begin_with_their_version) };
    return TEST_MAIN(argc, argv, cases);
}
