/* cudasim-read FILE...: reads PTX and says what it found, or the first error.  Exit status 1 where a file has one. */
#include <stdio.h>
#include <stdlib.h>

#include "ptx/ptx.h"

static char *slurp(const char *name, size_t *length)
{
    FILE *file = fopen(name, "rb");
    if (file == NULL) return NULL;
    size_t capacity = 1 << 16;
    char *text = malloc(capacity);
    *length = 0;
    for (size_t got; text != NULL && (got = fread(text + *length, 1, capacity - *length, file)) != 0;) {
        *length += got;
        if (*length == capacity) text = realloc(text, capacity *= 2);
    }
    fclose(file);
    return text;
}

int main(int argc, char **argv)
{
    int status = 0;
    for (int i = 1; i < argc; i++) {
        size_t length;
        char *text = slurp(argv[i], &length);
        struct ptx_error error;
        struct module *m = text == NULL ? NULL : ptx_read(argv[i], text, length, NULL, &error);
        if (text == NULL) fprintf(stderr, "%s: cannot be read\n", argv[i]);
        else if (m == NULL) fprintf(stderr, "%s\n", error.text);
        else printf("%s: %u functions, %u instructions\n", argv[i], m->function_count, m->code_count);
        if (m == NULL) status = 1;
        ptx_release(m);
        free(text);
    }
    return status;
}
