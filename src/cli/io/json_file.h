/* JSON files that stand beside a model or a matrix, as strangers wrote them. */
#ifndef CLI_JSON_FILE_H
#define CLI_JSON_FILE_H

#include "yyjson_memory.h"

/* How many lists and objects may lie in one another: configurations have 5 or so, and each level indents what is
 * written. */
enum { JSON_FILE_DEPTH = 32 };

/* Reads a regular file of at most `most` bytes (a pipe would be waited for, a device has no end) and notes it as an
 * input; what: what the file is, for the sentence ("note").  *document is the caller's to free.  Returns CLI_DONE, or
 * prints and returns CLI_BAD_INPUT. */
int json_file_read(struct cli *cli, const char *path, const char *what, int64_t most, yyjson_doc **document);

/* Lists and objects in one another; brackets inside texts do not count. */
int json_file_depth(const char *text, size_t bytes);

#endif
