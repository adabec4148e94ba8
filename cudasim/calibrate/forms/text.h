/* A text that is written piece by piece. */
#ifndef CUDASIM_CALIBRATE_FORMS_TEXT_H
#define CUDASIM_CALIBRATE_FORMS_TEXT_H

#include <stdio.h>
#include <stdlib.h>

struct text { char *bytes; size_t size; FILE *out; };

static inline void text_open(struct text *t)
{
    t->out = open_memstream(&t->bytes, &t->size);
    if (t->out == NULL) abort();
}

/* The text; free t->bytes. */
static inline const char *text_close(struct text *t)
{
    if (fclose(t->out) != 0) abort();
    return t->bytes;
}

#endif
