/* The note beside a quantized matrix: what its files hold, and how to read them. */
#ifndef CLI_NOTE_H
#define CLI_NOTE_H

#include "cli/cli.h"

/* A note: one flat JSON object of texts, numbers, true, false and null. */
enum { CLI_NOTE_ENTRIES = 32 };
/* size: -1 where it is no int64_t >= 0. */
struct cli_note_entry { char key[32], text[256]; bool is_text; int64_t size; };
struct cli_note { const char *path; struct cli_note_entry entries[CLI_NOTE_ENTRIES]; int count; };
int cli_note_read(struct cli *cli, const char *path, struct cli_note *note);
/* NULL where the note has no such text; text: not a number. */
const char *cli_note_text(const struct cli_note *note, const char *key);
/* false where the note has no such number, or one that is no int64_t >= 0. */
bool cli_note_size(const struct cli_note *note, const char *key, int64_t *value);

#endif
