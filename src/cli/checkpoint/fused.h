/* Weights that serving programs join into one matrix, found by their names: q, k and v of an attention, gate and up of
 * an MLP.
 *
 * vLLM keeps one tensor scale of such a matrix, the largest, and rescales nothing: members with scales of their own
 * become other numbers there.  ModelOpt and llm-compressor give all members the largest magnitude of the group for that
 * reason. */
#ifndef CLI_FUSED_H
#define CLI_FUSED_H

#include "cli/cli.h"

/* Rules: members with '+' between them, rules with commas.  A member is the end of a name, whole between dots; the
 * members of a group have the same name in front of it, and equal columns. */
extern const char fused_usual[];

/* The rules behind an option: NULL and "default" are the usual ones, "none" is none.  Returns CLI_DONE, or prints and
 * returns CLI_WRONG_USAGE. */
int fused_rules(const struct cli *cli, const char *option, const char *given, const char **rules);

struct fused_weight {
    const char *name; /* `length` characters; 0 of them: no weight */
    int64_t length, columns;
    int64_t group; /* found: its number, -1 where it is in none */
};

struct fused_group {
    const char *rule; /* rule_length characters of the rules */
    int rule_length;
};

struct fused {
    struct fused_group *groups; /* rule by rule */
    int64_t count;
};

/* Groups of two members and more. */
void fused_find(const struct cli *cli, const char *rules, struct fused_weight *weights, int64_t count,
                struct fused *fused);
void fused_free(struct fused *fused);

/* "2 of q_proj+k_proj+v_proj, 2 of gate_proj+up_proj"; and a JSON list of the same under `key`. */
void fused_print(const struct fused *fused, FILE *file);
struct cli_json;
void fused_print_json(struct cli_json *json, const char *key, const struct fused *fused);

#endif
