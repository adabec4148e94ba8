/* Which forms of a row become cases. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "families.h"
#include "calibrate/forms/forms.h"

bool calibration_reads(const struct calibration_case *one)
{
    char *entry = calibration_entry(one, 0);
    char *text = NULL;
    struct ptx_error error;
    if (asprintf(&text, ".version %u.%u\n.target %s\n.address_size 64\n%s", one->version / 10, one->version % 10,
                 one->target, entry)
        < 0)
        abort();
    struct module *m = ptx_read("case", text, strlen(text), NULL, &error);
    const bool good = m != NULL;
    ptx_release(m);
    free(entry), free(text);
    return good;
}

/* Pairs (choice of one place, choice of another): how often they were tried; DONE: one was taken.  A pair that the
 * reader refuses in every company is given up after TRIES. */
struct pairs { uint8_t seen[FORM_CHOICES][FORM_CHOICES][32][32]; };
enum { TRIES = 4, DONE = 255 };

static bool has_new_pair(const struct pairs *p, const struct form *f)
{
    for (int i = 0; i < FORM_CHOICES; i++)
        for (int j = i + 1; j < FORM_CHOICES; j++)
            if (p->seen[i][j][f->choice[i] & 31][f->choice[j] & 31] < TRIES) return true;
    return false;
}

static void mark_pairs(struct pairs *p, const struct form *f, bool taken)
{
    for (int i = 0; i < FORM_CHOICES; i++)
        for (int j = i + 1; j < FORM_CHOICES; j++) {
            uint8_t *seen = &p->seen[i][j][f->choice[i] & 31][f->choice[j] & 31];
            if (taken) *seen = DONE;
            else if (*seen < TRIES) ++*seen;
        }
}

/* A step without a common factor with count, so that neighbours in the walk differ in many choices. */
static uint32_t spread(uint32_t count)
{
    for (uint32_t step = count * 5 / 8 | 1;; step += 2) {
        uint32_t a = count, b = step;
        while (b != 0) {
            const uint32_t rest = a % b;
            a = b, b = rest;
        }
        if (a == 1) return step;
    }
}

void calibration_row(struct calibration *c, const struct row *row, uint32_t most, calibration_form *add)
{
    uint32_t count;
    struct form *forms = forms_of(row, &count);
    struct pairs *pairs = calloc(1, sizeof *pairs);
    if (pairs == NULL) abort();
    const uint32_t step = count > most ? spread(count) : 1;
    for (uint32_t i = 0; i < count; i++) {
        const struct form *f = &forms[(uint64_t)i * step % count];
        const uint32_t first = c->count;
        if (count > most && !has_new_pair(pairs, f)) continue;
        add(c, f);
        const bool taken = c->count > first && calibration_reads(&c->cases[first]);
        mark_pairs(pairs, f, taken);
        if (!taken) calibration_drop(c, first);
    }
    free(pairs), free(forms);
}

void calibration_hopper_rows(struct calibration *c, void (*add)(struct calibration *c, const struct row *row))
{
    const struct module hopper = { .version = 90, .sm = 90, .suffix = 'a' };
    char why[200];
    for (const struct family *const *family = instruction_families; *family != NULL; family++)
        for (int i = 0; i < (*family)->count; i++)
            if (row_available(&(*family)->rows[i], &hopper, why, sizeof why)) add(c, &(*family)->rows[i]);
}
