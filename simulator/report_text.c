/* Reports: names of their kinds, text that stops at the end of its buffer. */
#include "report_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const code_names[REPORT_CODE_COUNT] = {
    [REPORT_NONE] = "nothing",
    [REPORT_OUT_OF_BOUNDS] = "out-of-bounds access",
    [REPORT_MISALIGNED] = "misaligned access",
    [REPORT_UNINITIALISED] = "uninitialised read",
    [REPORT_DIVERGENCE] = "divergence at a collective instruction",
    [REPORT_DEADLOCK] = "deadlock",
    [REPORT_TRAP] = "trap",
    [REPORT_ASSERT] = "assertion",
    [REPORT_ILLEGAL] = "illegal instruction",
    [REPORT_BARRIER] = "misused barrier",
    [REPORT_RACE] = "race",
    [REPORT_PROXY] = "missing proxy fence",
    [REPORT_ASYNC] = "asynchronous operation not waited for",
    [REPORT_RESOURCES] = "out of resources",
    [REPORT_SCHEDULES] = "schedules disagree",
    [REPORT_STEPS] = "too many steps",
    [REPORT_PENDING] = "register not waited for",
    [REPORT_HAZARD] = "missing wait states",
};

const char *report_code_name(enum report_code code) { return code < REPORT_CODE_COUNT ? code_names[code] : "unknown"; }

const char *report_name(const char *kernel, char text[REPORT_NAME_BYTES])
{
    enum { BEGINNING = 180, END = 60 };
    const size_t length = strlen(kernel);
    if (length < REPORT_NAME_BYTES) return kernel;
    snprintf(text, REPORT_NAME_BYTES, "%.*s[...]%s", BEGINNING, kernel, kernel + length - END);
    return text;
}

void report_add(struct report_text *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(t->at, t->left, format, arguments);
    va_end(arguments);
    const size_t used = length < 0 ? 0 : (size_t)length < t->left ? (size_t)length : t->left - 1;
    t->at += used;
    t->left -= used;
}
