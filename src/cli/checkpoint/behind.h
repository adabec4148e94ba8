/* Work that a thread of its own does behind its caller, a piece at a time and in order: writing, while the next piece
 * is computed. */
#ifndef CLI_BEHIND_H
#define CLI_BEHIND_H

#include "cli/cli.h"

struct behind;

/* Works on a piece, which it owns and frees; do_it is false after a piece that failed.  Returns CLI_DONE, or prints and
 * returns what to exit with. */
typedef int behind_work(void *piece, bool do_it);

/* One at a time.  Where there is no thread to be had, pieces are worked on at once.  Where cli_memory ends the command
 * before behind_end, the piece that was handed over is done first. */
struct behind *behind_start(struct cli *cli, behind_work *work);

/* Waits until the former piece is done, then hands this one over.  Returns what the former pieces came to. */
int behind_give(struct behind *behind, void *piece);

/* Waits for the last piece, and returns what all of them came to. */
int behind_end(struct behind *behind);

#endif
