/* What the files of the reader share.  Reading stops at the first error: from then on the lexer gives TOKEN_END only,
 * so that every loop ends; what was built is thrown away. */
#ifndef CUDASIM_PTX_READER_H
#define CUDASIM_PTX_READER_H

#include "ptx/ptx.h"
#include "ptx/table.h"

/* ---- lexer.c ---- */

enum token_kind { TOKEN_END, TOKEN_NAME, TOKEN_WORD, TOKEN_INTEGER, TOKEN_FLOAT32, TOKEN_FLOAT64, TOKEN_DECIMAL,
                  TOKEN_STRING,
                  TOKEN_PUNCTUATION };

struct token {
    enum token_kind kind;
    const char *text;
    uint32_t length;
    uint32_t line, column;
    uint64_t value;                       /* integers; the bits of a float */
    char punctuation; /* the character; of two: '<' <<, '>' >>, 'e' ==, 'n' !=, 'l' <=, 'g' >=, 'a' &&, 'o' || */
    bool is_unsigned;                     /* written with U */
};

/* ---- symbols.c ---- */

enum symbol_kind { SYMBOL_REGISTER, SYMBOL_VARIABLE, SYMBOL_FUNCTION, SYMBOL_LABEL, SYMBOL_TABLE, SYMBOL_PROTOTYPE };

struct symbol {
    struct symbol *next;                  /* in the bucket */
    uint32_t key;                         /* the hash of the name */
    const char *name;
    uint32_t length;
    enum symbol_kind kind;
    enum ptx_type type;                   /* registers */
    bool is_family;                       /* %r<count> */
    uint32_t slot, count;                 /* registers: first row, how many; labels: program counter */
    struct variable *variable;
    struct function *function;
    const uint32_t *targets;
};

enum { SCOPE_BUCKETS = 64 };              /* at first: as many as symbols, later */
struct scope_level {
    struct scope_level *outer;
    struct symbol **bucket, *first[SCOPE_BUCKETS];
    uint32_t buckets, symbols, depth;
    bool has_families;
};

/* A place that waits for a label. */
struct fixup {
    struct fixup *next;
    const char *name;
    uint32_t length, line, column;
    struct scope_level *scope;            /* where the name was written */
    int64_t *value;                       /* where the program counter goes, or */
    uint32_t *target;
    struct operand *operand;              /* brx.idx: the operand that takes a table's targets */
};

/* ---- */

struct form;
enum { FORM_CHAINS = 256 };

struct reader {
    struct module *module;
    const struct ptx_limits *limits;
    const char *name;                     /* of the file, for error texts */
    struct ptx_error *error;
    bool failed;
    const char *at, *end, *line_start;
    uint32_t line;
    struct token token;                   /* the one looked at */
    uint32_t code_capacity, function_capacity, variable_capacity, location_capacity;
    struct scope_level *scope;            /* innermost */
    struct function *function;            /* the one whose body is read, or NULL */
    struct fixup *fixups;
    uint32_t location;                    /* of the last .loc */
    uint32_t registers;                   /* declared so far, in all functions */
    uint64_t *constants[1024];            /* rows by hash of the value: row, then link */
    struct form *forms[FORM_CHAINS];      /* instruction.c: mnemonics that were met, by hash */
};

void token_next(struct reader *r);
bool token_is(const struct reader *r, char punctuation);
bool token_is_word(const struct reader *r, const char *word);
bool token_is_name(const struct reader *r, const char *name);
bool token_take(struct reader *r, char punctuation);          /* true and past it, or false */
void token_expect(struct reader *r, char punctuation);        /* past it, or an error */
const char *token_expect_name(struct reader *r, const char *what, uint32_t *length);   /* copied into the arena */

/* error.c.  The first error counts; the others are dropped. */
/* at the current token */
__attribute__((format(printf, 2, 3))) void reader_fail(struct reader *r, const char *format, ...);
__attribute__((format(printf, 4, 5))) void reader_fail_at(struct reader *r, uint32_t line, uint32_t column,
                                                          const char *format, ...);

void *reader_allocate(struct reader *r, size_t bytes);        /* zeroed; NULL, and failed, where there is no memory */
/* Makes room for one more element; false (and failed) where there is no memory or more than limit. */
bool reader_grow(struct reader *r, void **array, uint32_t count, uint32_t *capacity, size_t element, uint32_t limit,
                 const char *what);

void scope_open(struct reader *r);
void scope_close(struct reader *r);                           /* resolves the labels that were waited for */
struct symbol *scope_add(struct reader *r, const char *name, uint32_t length, enum symbol_kind kind);
struct symbol *scope_find(const struct reader *r, const char *name, uint32_t length);
struct symbol *scope_find_here(const struct reader *r, const char *name, uint32_t length);
/* A register by its name, families included; false if it is none.  */
bool scope_register(const struct reader *r, const char *name, uint32_t length, uint32_t *slot, enum ptx_type *type);
void fixup_add(struct reader *r, const struct token *name, int64_t *value, uint32_t *target, struct operand *operand);

/* expression.c: constant expressions. */
struct constant { bool is_float; bool is_unsigned; uint64_t bits; double real; enum token_kind kind; };
struct constant read_expression(struct reader *r);
bool constant_follows(const struct reader *r);
int64_t read_integer(struct reader *r, const char *what, int64_t low, int64_t high);
/* The bits of a constant as `type`.  NULL, or what is wrong: a float stands for an integer or the other way round. */
const char *constant_as(const struct constant *constant, enum ptx_type type, uint64_t *bits);
const uint64_t *constant_row(struct reader *r, uint64_t value);

/* variable.c */
enum space space_named(const struct token *token);            /* SPACE_COUNT: not a state space */
void read_variable(struct reader *r, bool external, bool visible);   /* from the state space to ';' */
void read_registers(struct reader *r);                        /* behind .reg */
struct variable *read_parameter(struct reader *r, uint64_t *offset);
void add_parameter(struct reader *r, struct variable *v);     /* into the scope of the function's body */

/* function.c */
void read_function(struct reader *r, bool entry, bool external, bool visible, bool weak);
void read_prototype(struct reader *r, const struct token *label);

/* instruction.c.  A body ends as if ret stood there. */
void read_end_of_body(struct reader *r);
void read_instruction(struct reader *r);
/* module.c */
void read_pragma(struct reader *r);
/* link.c: what each entry may name, static shared memory. */
void link_module(struct reader *r);
/* debug.c: .file, .loc, .section; true if the current word was one of them. */
bool read_debug(struct reader *r);

#endif
