/* What the two ways of `cudasim mutate` share. */
#ifndef CUDASIM_TOOLS_MUTATE_H
#define CUDASIM_TOOLS_MUTATE_H

#include "tools/kernel.h"

struct mutate_settings {
    struct kernel_settings kernel;
    const char *program;
    uint64_t seconds;
    bool survivors;
};

/* What became of one mutant. */
enum fate { FATE_NOTICED, FATE_SURVIVED, FATE_NOT_EXECUTED, FATES };
struct fates {
    uint32_t count[FATES];
};

/* Prints the mutant's line; how: by what it was noticed. */
void mutant_print(const struct mutate_settings *settings, const struct module *module, uint32_t pc, enum fate fate,
                  const char *how);
/* Prints the sums; the verb's exit status. */
int mutants_end(const struct fates *fates);

/* mutate_program.c: a program on the library is run for each mutant. */
int mutate_program(const struct mutate_settings *settings);

#endif
