/* A module of PTX after reading: functions, variables, and code whose operands are decoded.
 *
 * One array holds the instructions of all functions (a program counter is an index into it).  Registers are rows of a
 * frame: row 0 is where a sink (_) writes; .b128 takes two rows.  Constants are rows too, 32 equal values, so that a
 * handler reads any source operand the same way.  Everything lives in the module's arena and is not written after
 * reading. */
#ifndef CUDASIM_PTX_PTX_H
#define CUDASIM_PTX_PTX_H

#include "ptx/arena.h"
#include "ptx/type.h"

enum { LANES = 32 };

enum space { SPACE_GENERIC, SPACE_GLOBAL, SPACE_SHARED, SPACE_SHARED_CLUSTER, SPACE_LOCAL, SPACE_CONST, SPACE_PARAM,
             SPACE_REG,
             SPACE_COUNT };

/* What common modifiers mean; see instructions/table.c for the words.  RN is 0: a form without the modifier has no
 * rounding to do. */
enum rounding { ROUND_NONE, ROUND_RN, ROUND_RZ, ROUND_RM, ROUND_RP, ROUND_RNA, ROUND_RS,
                ROUND_RNI, ROUND_RZI, ROUND_RMI, ROUND_RPI };
enum semantics { ORDER_NONE, ORDER_WEAK, ORDER_VOLATILE, ORDER_RELAXED, ORDER_ACQUIRE, ORDER_RELEASE, ORDER_ACQ_REL,
                 ORDER_SC,
                 ORDER_MMIO };
enum scope { SCOPE_NONE, SCOPE_CTA, SCOPE_CLUSTER, SCOPE_GPU, SCOPE_SYS };
enum compare {
    COMPARE_NONE,
    COMPARE_EQ,
    COMPARE_NE,
    COMPARE_LT,
    COMPARE_LE,
    COMPARE_GT,
    COMPARE_GE,
    COMPARE_LO,
    COMPARE_LS,
    COMPARE_HI,
    COMPARE_HS,
    COMPARE_EQU,
    COMPARE_NEU,
    COMPARE_LTU,
    COMPARE_LEU,
    COMPARE_GTU,
    COMPARE_GEU,
    COMPARE_NUM,
    COMPARE_NAN
};
enum { FLAG_FTZ = 1, FLAG_SAT = 2, FLAG_SATFINITE = 4, FLAG_RELU = 8, FLAG_NAN = 16, FLAG_ABS = 32, FLAG_XORSIGN = 64,
       FLAG_APPROX = 128, FLAG_UNI = 256, FLAG_CC = 512, FLAG_FULL = 1024 };

enum operand_kind {
    OPERAND_NONE,
    OPERAND_REGISTER,                     /* slot */
    OPERAND_CONSTANT,                     /* row, value */
    OPERAND_SPECIAL,                      /* value: enum special; only where it changes while a thread runs
                                             (%clock64) */
    OPERAND_SYMBOL,                       /* a variable as an argument of call; elsewhere it has become a register: see
                                             preset */
    OPERAND_FUNCTION,                     /* the function that is called; elsewhere it has become a register */
    OPERAND_ADDRESS,                      /* [base + value]: base is a register (slot), a variable, or nothing */
    OPERAND_VECTOR,                       /* element[count] */
    OPERAND_LABEL,                        /* value: program counter */
    OPERAND_TABLE,                        /* targets */
    OPERAND_PROTOTYPE,                    /* function, without code */
    OPERAND_SINK                          /* slot 0 */
};

struct operand {
    uint8_t kind;                         /* enum operand_kind */
    uint8_t type;                         /* as declared */
    bool negated;                         /* !p */
    bool based;                           /* OPERAND_ADDRESS: slot is the base */
    uint32_t slot;
    uint32_t count;                       /* of a vector or a table */
    const uint64_t *row;                  /* LANES equal values; NULL unless a constant */
    int64_t value;
    union {
        const struct variable *variable;
        const struct function *function;
        const struct operand *element;
        const uint32_t *targets;
    };
};

struct warp;
struct insn;
struct row;
typedef int trap;                         /* machine/core/machine.h: enum trap_code */
typedef trap insn_handler(struct warp *w, const struct insn *in, uint32_t lanes);

enum { MODIFIER_GROUPS = 16, INSN_TYPES = 4 };

struct insn {
    insn_handler *run;
    const struct row *row;
    const struct operand *operand;
    uint8_t operands;
    uint8_t guard;                        /* 0 always, 1 @p, 2 @!p */
    uint8_t type[INSN_TYPES];             /* $1, $2, ...: enum ptx_type */
    uint8_t rounding, space, semantics, scope, compare, vector;   /* vector: 1, 2, 4, 8 */
    uint16_t flags;
    uint32_t guard_slot;
    uint32_t line;                        /* of the PTX text */
    uint32_t location;                    /* into module.locations; 0: none */
    uint8_t choice[MODIFIER_GROUPS];      /* which alternative of each group of the row's pattern; 0: left out */
    uint16_t number[2];                   /* what # stood for in the pattern */
    uint64_t mask;                        /* of type $1 */
    uint64_t detail;                      /* the family's own: what its prepare function worked out */
    const void *data;
};

struct relocation {
    uint32_t offset, bytes;
    int64_t addend;
    bool generic;
    const struct variable *variable;
    const struct function *function;
};

struct variable {
    const char *name;
    enum space space;
    enum ptx_type type;
    bool external, visible, is_parameter, of_entry, pointer;
    bool managed;                         /* .attribute(.managed): the host reads and writes it too */
    uint32_t align;
    uint32_t vector;
    uint64_t count, bytes;                /* elements; bytes of all.  .extern .shared x[]: 0 */
    uint64_t offset;                      /* params and .local: in the frame or the parameter buffer */
    uint32_t slot;                        /* SPACE_REG: first row */
    uint32_t index;                       /* module.variables: global, const, shared */
    const uint8_t *initial;               /* bytes, or NULL */
    const struct relocation *relocations;
    uint32_t relocation_count;
    bool inside_function;                 /* where it was declared; its name is known there only */
    uint32_t line;
};

/* A row of a frame that the machine fills when the frame is made: special registers that do not change, addresses of
 * variables and functions.  Operands that name them are ordinary registers for the handlers. */
struct preset {
    struct preset *next;
    uint32_t slot;
    uint8_t kind;                         /* OPERAND_SPECIAL, OPERAND_SYMBOL, OPERAND_FUNCTION */
    int64_t value;
    const struct variable *variable;
    const struct function *function;
};

struct dimensions { uint32_t x, y, z; bool given; };

struct function {
    const char *name;
    bool entry, visible, external, weak, defined, noreturn;
    uint32_t index;                       /* module.functions */
    const struct variable **parameters, **results;
    uint32_t parameter_count, result_count;
    uint64_t parameter_bytes;             /* of an entry */
    uint32_t code_begin, code_end;
    uint32_t rows;                        /* registers of a frame */
    struct preset *presets;
    uint32_t preset_count;
    uint64_t local_bytes;                 /* .local variables and .param space of a frame */
    uint64_t local_align;
    struct dimensions maxntid, reqntid, reqnctapercluster;
    bool explicitcluster;
    uint32_t minnctapersm, maxnreg, maxclusterrank, maxnctapersm;
    const struct variable **shared;       /* what it and all it calls may name */
    uint32_t shared_count;
    uint64_t static_shared_bytes;
    uint32_t line;
};

struct location { uint32_t file, line, column; uint32_t inlined; };   /* inlined: index of the call site's location, 0:
                                                                         none */

struct module {
    struct arena arena;
    const char *text;                     /* NUL-terminated copy of what was read */
    size_t length;
    uint32_t version;                     /* 90 for 9.0 */
    uint32_t sm;                          /* 90 for sm_90a */
    char suffix;                          /* 'a', 'f' or 0 */
    uint32_t address_size;
    struct insn *code;
    uint32_t code_count;
    struct function **functions;
    uint32_t function_count;
    struct variable **variables;          /* global, const and shared ones, by index */
    uint32_t variable_count;
    struct location *locations;           /* [0] is unused */
    uint32_t location_count;
    const char **files;                   /* by .file number */
    uint32_t file_count;
    bool tensor_fences, proxy_fences;     /* some instruction is tcgen05.fence, fence.proxy.async */
    bool waits_for_grids, launches_dependents;            /* some instruction is griddepcontrol.wait,
                                                             .launch_dependents */
    bool cancels_clusters;                /* some instruction is clusterlaunchcontrol.try_cancel */
};

/* A reading error: where, and one sentence. */
struct ptx_error {
    uint32_t line, column;                /* 1-based; column in bytes */
    char sentence[256];
    char text[1024];                      /* "file:line:column: error: sentence", the source line, a caret */
};

struct ptx_limits { size_t bytes, arena_bytes; uint32_t registers, instructions, depth; };
extern const struct ptx_limits ptx_default_limits;

/* Reads any bytes.  Returns the module, or NULL with *error filled.  `name` stands in error texts. */
struct module *ptx_read(const char *name, const char *text, size_t length, const struct ptx_limits *limits,
                        struct ptx_error *error);
void ptx_release(struct module *module);

const struct function *ptx_function(const struct module *module, const char *name);
const struct variable *ptx_variable(const struct module *module, const char *name);
const struct function *ptx_function_at(const struct module *module, uint32_t pc);

/* Line `line` of the text, without its end. */
const char *ptx_source_line(const struct module *module, uint32_t line, size_t *length);

#endif
