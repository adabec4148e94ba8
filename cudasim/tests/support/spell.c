/* Operands for the forms of a row, each of the kind and width that the operands column names. */
#include "spell.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int constants[] = { 0, 1, 2, 4, 8, 16, 24, 32, 64, 128, -1 };
static const int lengths[] = { 1, 2, 3, 4, 5, 8, 16, 32, 64, 128 };
static const int numbers[] = { 8, 16, 64, 256 };
#define COUNT(list) ((uint32_t)(sizeof(list) / sizeof((list)[0])))

/* What the operands leave open. */
struct freedom { bool constant, length, number, optional; };

static struct freedom freedom_of(const struct form *f, const struct form_operand *o, int count)
{
    struct freedom free = { .number = strchr(f->text, '#') != NULL };
    for (int i = 0; i < count; i++) {
        if (o[i].kind == 'i') free.constant = true;
        if (o[i].kind == 'A' || o[i].vector == -2) free.length = true;
        if (o[i].optional || (o[i].pair && !o[i].must_pair)) free.optional = true;
    }
    return free;
}

uint32_t spell_variants(const struct form *f)
{
    struct form_operand o[FORM_OPERANDS];
    const int count = form_operands(&f->in, o);
    const struct freedom free = freedom_of(f, o, count);
    for (int i = 0; i < count; i++)
        if (o[i].kind == 'C' || o[i].kind == 't') return 0;
    return (free.optional ? 2 : 1) * (free.constant ? COUNT(constants) : 1) * (free.length ? COUNT(lengths) : 1) *
           (free.number ? COUNT(numbers) : 1);
}

struct spelling { char *text; size_t used; int constant, length, number; bool optional; uint32_t next; };

__attribute__((format(printf, 2, 3))) static void append(struct spelling *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(s->text + s->used, STATEMENT - s->used, format, arguments);
    va_end(arguments);
    if (length < 0 || s->used + (size_t)length >= STATEMENT) abort();
    s->used += (size_t)length;
}

static void one_register(struct spelling *s, enum ptx_type type, char kind)
{
    const uint32_t n = s->next++;
    if (kind == 'p' || kind == 'P' || type == T_PRED) append(s, "%%p%u", n % 16);
    else if (type_bits(type) <= 8) append(s, "%%b%u", n % 16);
    else if (type_bits(type) == 16) append(s, "%%h%u", n % 32);
    else if (type_bits(type) == 32) append(s, "%%w%u", n % 160);
    else if (type_bits(type) == 64) append(s, "%%l%u", n % 32);
    else append(s, "%%q%u", n % 8);
}

static void registers(struct spelling *s, enum ptx_type type, char kind, int count)
{
    append(s, "{");
    for (int i = 0; i < count; i++) {
        if (i != 0) append(s, ", ");
        one_register(s, type, kind);
    }
    append(s, "}");
}

/* Addresses of tensor memory have 32 bits. */
static bool names_tensor_memory(const struct form *f)
{
    static const char *const bases[] = { "tcgen05.mma", "tcgen05.ld", "tcgen05.st", "tcgen05.cp", "tcgen05.shift" };
    for (size_t i = 0; i < sizeof bases / sizeof bases[0]; i++)
        if (strncmp(f->text, bases[i], strlen(bases[i])) == 0) return true;
    return false;
}

static void one_operand(struct spelling *s, const struct form *f, const struct form_operand *o)
{
    const enum ptx_type type = (enum ptx_type)o->type;
    const int count = o->vector == -1 ? f->in.vector : o->vector == -2 ? s->length : o->vector;
    switch (o->kind) {
    case 'a':
        if (f->in.space == SPACE_CONST) append(s, "[constants]");
        else if (f->in.space == SPACE_PARAM) append(s, strstr(f->text, "::entry") != NULL ? "[p0]" : "[passed]");
        else append(s, names_tensor_memory(f) ? "[%%w%u]" : "[%%l%u]", s->next++ % 32);
        break;
    case 'A':
        append(s, "[%%l%u, ", s->next++ % 32);
        registers(s, type, 's', s->length);
        append(s, "]");
        break;
    case 'i': append(s, "%d", s->constant); break;
    case 'q': append(s, type_bits(type) == 64 ? "%%clock64" : "%%clock"); break;
    case 'l': append(s, "L"); break;
    default:
        if (count > 1 || o->vector > 0) registers(s, type, o->kind, count);
        else one_register(s, type, o->kind);
    }
}

/* The form's words, with a number for '#'. */
static void words(struct spelling *s, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '#') append(s, "%d", s->number);
        else append(s, "%c", *text);
    }
}

static uint32_t digit(uint32_t *variant, bool open, uint32_t base)
{
    const uint32_t d = open ? *variant % base : 0;
    if (open) *variant /= base;
    return d;
}

void spell(const struct form *f, uint32_t variant, uint32_t first, char text[STATEMENT])
{
    struct form_operand o[FORM_OPERANDS];
    const int count = form_operands(&f->in, o);
    const struct freedom free = freedom_of(f, o, count);
    struct spelling s = { .text = text, .next = first };
    s.constant = constants[digit(&variant, free.constant, COUNT(constants))];
    s.length = lengths[digit(&variant, free.length, COUNT(lengths))];
    s.number = numbers[digit(&variant, free.number, COUNT(numbers))];
    s.optional = digit(&variant, free.optional, 2) != 0;
    bool has_label = false;
    for (int i = 0; i < count; i++) has_label |= o[i].kind == 'l';
    append(&s, "{ %s", has_label ? "L: " : "");
    words(&s, f->text);
    for (int i = 0, written = 0; i < count; i++) {
        if ((o[i].optional || (o[i].pair && !o[i].must_pair)) && !s.optional) continue;
        append(&s, "%s", written++ == 0 ? " " : o[i].pair ? "|" : ", ");
        one_operand(&s, f, &o[i]);
    }
    append(&s, "; }");
}
