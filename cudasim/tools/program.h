/* cudasim run PROGRAM: a program with launches of its own, on the libraries that lie beside this command. */
#ifndef CUDASIM_TOOLS_PROGRAM_H
#define CUDASIM_TOOLS_PROGRAM_H

#include "tools/kernel.h"

/* Whether the argument of `cudasim run` names a program, no PTX: a file that begins as executables and scripts do, or,
 * without a slash, one that the shell would find. */
bool program_is(const char *name);

/* Becomes the program, with its arguments and these settings; those that equal the defaults leave the environment as it
 * is.  Returns, EXIT_BAD_INPUT, only where that fails. */
int program_run(const struct kernel_settings *settings, const struct kernel_settings *defaults);
void program_set(const char *variable, const char *text);

#endif
