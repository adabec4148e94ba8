/* Functions of the device's own (CUDA C++ Programming Guide, "Formatted Output", "Assertion"). */
#include "builtin.h"
#include "instructions/memory/memory.h"
#include "machine/core/report.h"
#include "machine/memory/access.h"

#include <stdio.h>
#include <string.h>

enum { LINE_BYTES = 1024, TEXT_BYTES = 512 };

/* Argument i of the call, from the caller's .param space or a register. */
static uint64_t argument(const struct warp *w, const struct insn *in, uint32_t lane, uint32_t i)
{
    const struct operand *o = &in->operand[2].element[i];
    if (o->kind != OPERAND_SYMBOL) return source_row(w, o)[lane];
    uint64_t value = 0;
    const uint64_t bytes = o->variable->bytes;
    memcpy(&value, w->local + (size_t)lane * w->local_bytes + w->group->local + o->variable->offset,
           bytes > 8 ? 8 : bytes);
    return value;
}

/* One access of a lane at a generic address; false: a report is written. */
static bool fetch(struct warp *w, const struct insn *in, uint32_t lane, uint64_t address, uint32_t bytes,
                  uint64_t *value)
{
    struct access a = { .space = SPACE_GENERIC, .bytes = bytes, .reads = true };
    a.address[lane] = address;
    if (memory_access(w, in, 1u << lane, &a) != TRAP_NONE) return false;
    *value = load_bytes(a.host[lane], bytes);
    return true;
}

static bool fetch_text(struct warp *w, const struct insn *in, uint32_t lane, uint64_t address, char *text)
{
    for (uint32_t i = 0; i < TEXT_BYTES; i++) {
        uint64_t c;
        if (!fetch(w, in, lane, address + i, 1, &c)) return false;
        text[i] = (char)c;
        if (c == 0) return true;
    }
    text[TEXT_BYTES - 1] = '\0';
    return true;
}

struct printing {
    struct warp *w;
    const struct insn *in;
    uint32_t lane;
    uint64_t list;
    char line[LINE_BYTES];
    size_t used;
};

static void append(struct printing *p, const char *text, size_t length)
{
    if (length > LINE_BYTES - p->used) length = LINE_BYTES - p->used;
    memcpy(p->line + p->used, text, length);
    p->used += length;
}

/* The next argument of `bytes`, aligned to them. */
static bool next(struct printing *p, uint32_t bytes, uint64_t *value)
{
    p->list = (p->list + bytes - 1) / bytes * bytes;
    const bool ok = fetch(p->w, p->in, p->lane, p->list, bytes, value);
    p->list += bytes;
    return ok;
}

/* The format comes from the kernel: print_one has made sure that it is one conversion of this kind. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

/* One conversion; `format` is its text, "%5.2f", without length modifiers. */
static void print_number(struct printing *p, const char *format, char kind, uint64_t value)
{
    char text[TEXT_BYTES];
    char spelled[48];
    const size_t length = strlen(format) - 1;
    int used;
    if (strchr("diuoxX", kind) != NULL) {
        snprintf(spelled, sizeof spelled, "%.*sll%c", (int)length, format, kind);
        used = snprintf(text, sizeof text, spelled, (long long)value);
    } else if (kind == 'c') {
        used = snprintf(text, sizeof text, format, (int)value);
    } else if (kind == 'p') {
        used = snprintf(text, sizeof text, format, (void *)(uintptr_t)value);
    } else {
        double real;
        memcpy(&real, &value, sizeof real);
        used = snprintf(text, sizeof text, format, real);
    }
    if (used > 0) append(p, text, (size_t)used < sizeof text ? (size_t)used : sizeof text - 1);
}

#pragma GCC diagnostic pop

/* At the character behind '%'; returns behind the conversion, NULL after a report. */
static const char *print_one(struct printing *p, const char *at)
{
    char format[40] = "%";
    size_t length = 1;
    int wide = 0, digits = 0;
    for (; *at != '\0' && strchr("-+ #0123456789.*lhjzt", *at) != NULL && length < sizeof format - 14; at++) {
        uint64_t star;
        if (*at == 'l' || *at == 'j' || *at == 'z' || *at == 't') wide = 1;
        else if (*at == '*' && next(p, 4, &star))
            length += (size_t)snprintf(format + length, 12, "%d", (int)star % 1000);
        else if (*at != 'h' && *at != '*') format[length++] = *at;
        digits = *at >= '0' && *at <= '9' ? digits + 1 : 0;
        if (digits > 3) return at;        /* no width of thousands */
    }
    const char kind = *at;
    if (kind == '\0' || strchr("diuoxXcpsfFeEgGaA%", kind) == NULL) return at;
    format[length++] = kind;
    format[length] = '\0';
    uint64_t value = 0;
    char text[TEXT_BYTES];
    if (kind == '%') {
        append(p, "%", 1);
    } else if (kind == 's') {
        if (!next(p, 8, &value) || !fetch_text(p->w, p->in, p->lane, value, text)) return NULL;
        append(p, text, strlen(text));
    } else {
        const bool is_integer = strchr("diuoxX", kind) != NULL,
                   is_eight = (is_integer && wide) || strchr("fFeEgGaAp", kind) != NULL;
        if (!next(p, is_eight ? 8 : 4, &value)) return NULL;
        if (is_integer && !wide) value = kind == 'd' || kind == 'i' ? (uint64_t)sign_extend(value, 32) : value;
        print_number(p, format, kind, value);
    }
    return at + 1;
}

/* vprintf(format, list): each lane's text at once, in the order of the lanes */
static trap print_lane(struct warp *w, const struct insn *in, uint32_t lane)
{
    char format[TEXT_BYTES];
    struct printing p = { .w = w, .in = in, .lane = lane, .list = argument(w, in, lane, 1) };
    if (!fetch_text(w, in, lane, argument(w, in, lane, 0), format)) return TRAP_FAULT;
    for (const char *at = format; *at != '\0';) {
        const size_t plain = strcspn(at, "%");
        append(&p, at, plain);
        at += plain;
        if (*at != '%') break;
        at = print_one(&p, at + 1);
        if (at == NULL) return TRAP_FAULT;
    }
    const struct machine *machine = w->cta->cluster->grid->machine;
    if (machine->print != NULL) machine->print(machine->print_user, p.line, p.used);
    const struct operand *result = in->operand[0].count == 0 ? NULL : &in->operand[0].element[0];
    if (result == NULL || result->kind == OPERAND_SINK) return TRAP_NONE;
    const uint32_t length = (uint32_t)p.used;
    if (result->kind == OPERAND_REGISTER) register_row(w, result->slot)[lane] = length;
    else
        memcpy(w->local + (size_t)lane * w->local_bytes + w->group->local + result->variable->offset, &length,
               sizeof length);
    return TRAP_NONE;
}

static trap assertion(struct warp *w, const struct insn *in, uint32_t lane)
{
    char message[TEXT_BYTES], file[TEXT_BYTES], function[TEXT_BYTES];
    if (!fetch_text(w, in, lane, argument(w, in, lane, 0), message)
        || !fetch_text(w, in, lane, argument(w, in, lane, 1), file)
        || !fetch_text(w, in, lane, argument(w, in, lane, 3), function))
        return TRAP_FAULT;
    return warp_fault(w, in, lane, REPORT_ASSERT, "%.120s:%u: %.120s: the assertion `%.160s` failed", file,
                      (uint32_t)argument(w, in, lane, 2), function, message);
}

trap builtin_call(struct warp *w, const struct insn *in, uint32_t lanes, const struct function *f)
{
    const uint32_t first = (uint32_t)__builtin_ctz(lanes), arguments = in->operand[2].count;
    if (strcmp(f->name, "vprintf") == 0 && arguments == 2) {
        FOR_LANES(l, lanes)
            if (print_lane(w, in, l) == TRAP_FAULT) return TRAP_FAULT;
        return TRAP_NONE;
    }
    if (strcmp(f->name, "__assertfail") == 0 && arguments == 5) return assertion(w, in, first);
    return warp_fault(w, in, first, REPORT_ILLEGAL, "calls %s, which has no body in this module", f->name);
}
