/* The table as a whole: finding rows, words with a common meaning, where a row exists. */
#include "ptx/table.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum field { FIELD_FLAG, FIELD_ROUNDING, FIELD_SPACE, FIELD_ORDER, FIELD_SCOPE, FIELD_COMPARE, FIELD_VECTOR,
             FIELD_NONE };

static const struct { const char *word; enum field field; uint16_t value;
} common_words[] = {
    { ".ftz", FIELD_FLAG, FLAG_FTZ },
    { ".sat", FIELD_FLAG, FLAG_SAT },
    { ".satfinite", FIELD_FLAG, FLAG_SATFINITE },
    { ".relu", FIELD_FLAG, FLAG_RELU },
    { ".NaN", FIELD_FLAG, FLAG_NAN },
    { ".abs", FIELD_FLAG, FLAG_ABS },
    { ".xorsign", FIELD_FLAG, FLAG_XORSIGN },
    { ".approx", FIELD_FLAG, FLAG_APPROX },
    { ".uni", FIELD_FLAG, FLAG_UNI },
    { ".cc", FIELD_FLAG, FLAG_CC },
    { ".full", FIELD_FLAG, FLAG_FULL },
    { ".rn", FIELD_ROUNDING, ROUND_RN },
    { ".rz", FIELD_ROUNDING, ROUND_RZ },
    { ".rm", FIELD_ROUNDING, ROUND_RM },
    { ".rp", FIELD_ROUNDING, ROUND_RP },
    { ".rna", FIELD_ROUNDING, ROUND_RNA },
    { ".rs", FIELD_ROUNDING, ROUND_RS },
    { ".rni", FIELD_ROUNDING, ROUND_RNI },
    { ".rzi", FIELD_ROUNDING, ROUND_RZI },
    { ".rmi", FIELD_ROUNDING, ROUND_RMI },
    { ".rpi", FIELD_ROUNDING, ROUND_RPI },
    { ".global", FIELD_SPACE, SPACE_GLOBAL },
    { ".shared", FIELD_SPACE, SPACE_SHARED },
    { ".shared::cta", FIELD_SPACE, SPACE_SHARED },
    { ".shared::cluster", FIELD_SPACE, SPACE_SHARED_CLUSTER },
    { ".local", FIELD_SPACE, SPACE_LOCAL },
    { ".const", FIELD_SPACE, SPACE_CONST },
    { ".param", FIELD_SPACE, SPACE_PARAM },
    { ".param::entry", FIELD_SPACE, SPACE_PARAM },
    { ".param::func", FIELD_SPACE, SPACE_PARAM },
    { ".weak", FIELD_ORDER, ORDER_WEAK },
    { ".volatile", FIELD_ORDER, ORDER_VOLATILE },
    { ".relaxed", FIELD_ORDER, ORDER_RELAXED },
    { ".acquire", FIELD_ORDER, ORDER_ACQUIRE },
    { ".release", FIELD_ORDER, ORDER_RELEASE },
    { ".acq_rel", FIELD_ORDER, ORDER_ACQ_REL },
    { ".sc", FIELD_ORDER, ORDER_SC },
    { ".mmio", FIELD_ORDER, ORDER_MMIO },
    { ".cta", FIELD_SCOPE, SCOPE_CTA },
    { ".cluster", FIELD_SCOPE, SCOPE_CLUSTER },
    { ".gpu", FIELD_SCOPE, SCOPE_GPU },
    { ".sys", FIELD_SCOPE, SCOPE_SYS },
    { ".eq", FIELD_COMPARE, COMPARE_EQ },
    { ".ne", FIELD_COMPARE, COMPARE_NE },
    { ".lt", FIELD_COMPARE, COMPARE_LT },
    { ".le", FIELD_COMPARE, COMPARE_LE },
    { ".gt", FIELD_COMPARE, COMPARE_GT },
    { ".ge", FIELD_COMPARE, COMPARE_GE },
    { ".lo", FIELD_COMPARE, COMPARE_LO },
    { ".ls", FIELD_COMPARE, COMPARE_LS },
    { ".hi", FIELD_COMPARE, COMPARE_HI },
    { ".hs", FIELD_COMPARE, COMPARE_HS },
    { ".equ", FIELD_COMPARE, COMPARE_EQU },
    { ".neu", FIELD_COMPARE, COMPARE_NEU },
    { ".ltu", FIELD_COMPARE, COMPARE_LTU },
    { ".leu", FIELD_COMPARE, COMPARE_LEU },
    { ".gtu", FIELD_COMPARE, COMPARE_GTU },
    { ".geu", FIELD_COMPARE, COMPARE_GEU },
    { ".num", FIELD_COMPARE, COMPARE_NUM },
    { ".nan", FIELD_COMPARE, COMPARE_NAN },
    { ".v2", FIELD_VECTOR, 2 },
    { ".v4", FIELD_VECTOR, 4 },
    { ".v8", FIELD_VECTOR, 8 },
    /* of matrix instructions: their place alone is free */
    { ".kind::f8f6f4", FIELD_NONE, 0 },
    { ".kind::mxf8f6f4", FIELD_NONE, 0 },
    { ".kind::mxf4", FIELD_NONE, 0 },
    { ".kind::mxf4nvf4", FIELD_NONE, 0 },
    { ".block_scale", FIELD_NONE, 0 },
    { ".scale_vec::1X", FIELD_NONE, 0 },
    { ".scale_vec::2X", FIELD_NONE, 0 },
    { ".scale_vec::4X", FIELD_NONE, 0 },
    { ".trans", FIELD_NONE, 0 },
    { ".m8n16", FIELD_NONE, 0 },
    { ".m16n8", FIELD_NONE, 0 },
    { ".m16n16", FIELD_NONE, 0 },
};

static void set_field(struct insn *in, enum field field, uint16_t value)
{
    switch (field) {
    case FIELD_FLAG: in->flags |= value; break;
    case FIELD_ROUNDING: in->rounding = (uint8_t)value; break;
    /* the first counts: the destination */
    case FIELD_SPACE: if (in->space == SPACE_GENERIC) in->space = (uint8_t)value; break;
    case FIELD_ORDER: in->semantics = (uint8_t)value; break;
    case FIELD_SCOPE: in->scope = (uint8_t)value; break;
    case FIELD_COMPARE: in->compare = (uint8_t)value; break;
    case FIELD_VECTOR: in->vector = (uint8_t)value; break;
    case FIELD_NONE: break;
    }
}

enum { COMMON_WORDS = sizeof common_words / sizeof common_words[0] };

/* Its place in the list, or COMMON_WORDS.  The letter behind the dot tells most words apart. */
static size_t find_common(const char *word, size_t length)
{
    size_t i = 0;
    while (i < COMMON_WORDS
           && (length < 2 || common_words[i].word[1] != word[1] || strlen(common_words[i].word) != length
               || memcmp(common_words[i].word, word, length) != 0))
        i++;
    return i;
}

int common_kind(const char *word, size_t length)
{
    const size_t i = find_common(word, length);
    if (i == COMMON_WORDS) return -1;
    const enum field field = common_words[i].field;
    return field == FIELD_FLAG || field == FIELD_NONE ? 100 + (int)i : (int)field;
}

bool common_word(struct insn *in, const char *word, size_t length)
{
    const size_t i = find_common(word, length);
    if (i == COMMON_WORDS) return false;
    set_field(in, common_words[i].field, common_words[i].value);
    return true;
}

/* All rows by mnemonic, made when the first module is read: a chain for each hash of the name, in the order of the
 * families. Numbers begin at 1; 0 ends a chain. */
enum { MOST_ROWS = 2047, CHAINS = 256 };
static struct {
    const struct row *row[MOST_ROWS + 1];
    size_t length[MOST_ROWS + 1];         /* of the mnemonic */
    uint16_t next[MOST_ROWS + 1], first[CHAINS];
} by_name;
static pthread_once_t by_name_made = PTHREAD_ONCE_INIT;

static uint32_t chain_of(const char *name, size_t length)
{
    uint32_t hash = (uint32_t)length;
    for (size_t i = 0; i < length; i++) hash = hash * 31 + (uint8_t)name[i];
    return hash % CHAINS;
}

static void make_by_name(void)
{
    uint16_t last[CHAINS] = { 0 }, number = 0;
    for (const struct family *const *family = instruction_families; *family != NULL; family++)
        for (int i = 0; i < (*family)->count && number < MOST_ROWS; i++) {
            const struct row *row = &(*family)->rows[i];
            const size_t length = strcspn(row->pattern, ".{(");
            const uint32_t chain = chain_of(row->pattern, length);
            by_name.row[++number] = row;
            by_name.length[number] = length;
            *(last[chain] == 0 ? &by_name.first[chain] : &by_name.next[last[chain]]) = number;
            last[chain] = number;
        }
}

/* *state: the number of the row that was given last. */
const struct row *table_next(const char *base, size_t length, uint32_t *state)
{
    pthread_once(&by_name_made, make_by_name);
    uint32_t number = *state == 0 ? by_name.first[chain_of(base, length)] : by_name.next[*state];
    while (number != 0 && (by_name.length[number] != length || memcmp(by_name.row[number]->pattern, base, length) != 0))
        number = by_name.next[number];
    if (number == 0) return NULL;
    *state = number;
    return by_name.row[number];
}

bool table_knows(const char *base, size_t length)
{
    uint32_t state = 0;
    return table_next(base, length, &state) != NULL;
}

/* "sm_90a", "sm_80+": whether a target list names it. */
static bool target_listed(const char *targets, uint32_t sm, char suffix)
{
    while (*targets != '\0') {
        targets += strspn(targets, " ");
        char *end;
        const uint32_t number = (uint32_t)strtoul(targets + 3, &end, 10);
        if (*end == '+' && sm >= number) return true;
        if (*end == suffix && sm == number) return true;
        /* sm_100f stands for the whole family: sm_100a, sm_100f, sm_103a, sm_103f */
        if (*end == 'f' && suffix != '\0' && sm >= number && sm / 10 == number / 10) return true;
        targets = end + (*end != '\0' && *end != ' ');
    }
    return false;
}

bool row_available(const struct row *row, const struct module *module, char *sentence, size_t size)
{
    if (module->version < row->since) {
        snprintf(sentence, size, "this form needs PTX %d.%d; the module says .version %u.%u", row->since / 10,
                 row->since % 10, module->version / 10, module->version % 10);
        return false;
    }
    if (row->targets[0] == '\0' || target_listed(row->targets, module->sm, module->suffix)) return true;
    snprintf(sentence, size, "this form needs the target %s; the module says sm_%u%.1s", row->targets, module->sm,
             &module->suffix);
    return false;
}
