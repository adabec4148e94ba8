/* Rules, of synchronisation but for one: what the manual demands of a kernel and hardware often does not punish.  Each
 * has a name and a level.  What breaks a rule is reported and ends the grid, or is reported and goes on as if nothing
 * were wrong, or goes on silently.  Everything else that is reported (bounds, barriers, illegal instructions) always
 * ends the grid. */
#ifndef CUDASIM_MACHINE_CORE_RULES_H
#define CUDASIM_MACHINE_CORE_RULES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum rule_level { RULE_STOP, RULE_REPORT, RULE_OFF };

/* id, name, report code, level unless asked for: RULE_REPORT where compilers and CUTLASS break it by custom */
#define RULES(X) \
    X(RACE, "race", REPORT_RACE, RULE_STOP) \
    X(CLUSTER_RACE, "cluster-race", REPORT_RACE, RULE_STOP) \
    X(DEPENDENT_GRID, "dependent-grid", REPORT_RACE, RULE_STOP) \
    X(OPERATION_WAIT, "operation-wait", REPORT_ASYNC, RULE_STOP) \
    X(WRITE_PROXY_FENCE, "write-proxy-fence", REPORT_PROXY, RULE_STOP) \
    X(READ_PROXY_FENCE, "read-proxy-fence", REPORT_PROXY, RULE_REPORT) \
    X(MBARRIER_INIT_FENCE, "mbarrier-init-fence", REPORT_PROXY, RULE_STOP) \
    X(TENSORMAP_FENCE, "tensormap-fence", REPORT_PROXY, RULE_STOP) \
    X(ENDED_CTA_READ, "ended-cta-read", REPORT_ASYNC, RULE_REPORT) \
    X(WGMMA_REGISTERS, "wgmma-registers", REPORT_ASYNC, RULE_STOP) \
    X(TENSOR_LANES, "tensor-lanes", REPORT_ILLEGAL, RULE_REPORT) \
    X(TENSOR_LOAD_WAIT, "tensor-load-wait", REPORT_ASYNC, RULE_REPORT) \
    X(TENSOR_ACCESS_WAIT, "tensor-access-wait", REPORT_ASYNC, RULE_STOP) \
    X(TENSOR_ACCESS_ORDER, "tensor-access-order", REPORT_RACE, RULE_STOP) \
    X(TENSOR_ISSUE_ORDER, "tensor-issue-order", REPORT_ASYNC, RULE_REPORT) \
    X(TENSOR_COMMIT_WAIT, "tensor-commit-wait", REPORT_ASYNC, RULE_STOP) \
    X(TENSOR_COMMIT_FENCE, "tensor-commit-fence", REPORT_RACE, RULE_STOP)

enum rule {
#define X(id, name, code, level) RULE_##id,
    RULES(X)
#undef X
    RULE_COUNT
};

const char *rule_name(enum rule rule);
/* The levels that hold unless something else is asked for; all at one level. */
void rules_default(uint8_t level[RULE_COUNT]);
void rules_all(uint8_t level[RULE_COUNT], enum rule_level to);
/* "NAME:LEVEL,NAME:LEVEL", LEVEL being stop, report or off.  False: *wrong and *length say which item is wrong. */
bool rules_read(uint8_t level[RULE_COUNT], const char *text, const char **wrong, int *length);

/* What was reported and went on, over all launches of a process: which of it was told, and how much there was.  A
 * kernel that breaks a rule at hundreds of its lines hides no other rule. */
enum { MOST_RULE_LINES = 16 };
struct rule_book {
    atomic_uint_fast64_t count[RULE_COUNT];
    atomic_uint_fast64_t told[RULE_COUNT][MOST_RULE_LINES]; /* kernel and line in one number; 0: free */
    atomic_bool more[RULE_COUNT];                           /* lines that were not told */
    void (*tell)(const char *text);
};

/* Counts it; true where it has to be told: the first of this rule at this line of this kernel, and the rule has not
 * been told of at so many lines. */
bool rule_book_enter(struct rule_book *book, enum rule rule, const char *kernel, uint32_t line);
/* "NAME N, NAME N" into text, with a word where lines were not told; false: nothing was counted. */
bool rule_book_line(struct rule_book *book, char *text, uint32_t size);

#endif
