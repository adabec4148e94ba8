/* The PTX text of one instruction, for people: traces, profiles, lists. */
#ifndef CUDASIM_MACHINE_CORE_STATEMENT_H
#define CUDASIM_MACHINE_CORE_STATEMENT_H

#include "ptx/ptx.h"

enum { STATEMENT_BYTES = 160 };

/* The statement of the instruction at pc with single blanks and without its semicolon; cut where it is longer than the
 * buffer. */
void statement_text(const struct module *module, uint32_t pc, char *buffer, size_t size);
/* Which instruction of its line it is, from 1; *of: how many the line has. */
uint32_t statement_on_line(const struct module *module, uint32_t pc, uint32_t *of);
/* How the instruction is called: the statement's first word
 * ("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16"). */
void statement_name(const struct module *module, uint32_t pc, char *buffer, size_t size);

#endif
