/* Weights that serving programs join, see fused.h.
 *
 * Sources of the usual names: the stacked parameters of vLLM's models, FUSED_LAYER_NAMES of llm-compressor 0.14, and
 * the linear layers that share an input in ModelOpt 0.47. */
#include "fused.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char fused_usual[] = "q_proj+k_proj+v_proj,gate_proj+up_proj,w1+w3,query+key+value,q+k+v,wq+wk+wv,"
                           "q_a_proj+kv_a_proj_with_mqa,wq_a+wkv_a_with_mqa,in_proj_qkv+in_proj_z,in_proj_b+in_proj_a";

/* Rules ------------------------------------------------------------------------------------------------------------ */

/* Characters of a text that is not ended by a zero. */
struct span {
    const char *text;
    size_t length;
};

/* What stands before the next `separator`; *rest is what stands behind it, NULL at the end. */
static struct span split(struct span whole, char separator, struct span *rest)
{
    const char *end = memchr(whole.text, separator, whole.length);
    const struct span part = { whole.text, end == NULL ? whole.length : (size_t)(end - whole.text) };
    rest->text = end == NULL ? NULL : end + 1;
    rest->length = end == NULL ? 0 : whole.length - part.length - 1;
    return part;
}

/* Members of a rule; 0 where one of them is empty. */
static int count_members(struct span rule)
{
    int count = 0;
    for (struct span rest = rule; rest.text != NULL; count++)
        if (split(rest, '+', &rest).length == 0) return 0;
    return count;
}

int fused_rules(const struct cli *cli, const char *option, const char *given, const char **rules)
{
    *rules = given == NULL || strcmp(given, "default") == 0 ? fused_usual : strcmp(given, "none") == 0 ? "" : given;
    for (struct span rest = { *rules, strlen(*rules) }; rest.length > 0;) {
        const struct span rule = split(rest, ',', &rest);
        if (count_members(rule) < 2)
            return cli_wrong_usage(cli,
                                   "%s %s: \"%.*s\" is no group: none, default, or names with + between them are "
                                   "wanted, as q_proj+k_proj+v_proj, and commas between groups",
                                   option, given, (int)rule.length, rule.text);
    }
    return CLI_DONE;
}

/* Whether a name ends with a member, at a dot; *front: the characters before it. */
static bool ends_with_member(const struct fused_weight *weight, struct span member, int64_t *front)
{
    *front = weight->length - (int64_t)member.length;
    return *front >= 0 && memcmp(weight->name + *front, member.text, member.length) == 0 &&
           (*front == 0 || weight->name[*front - 1] == '.');
}

/* Groups ----------------------------------------------------------------------------------------------------------- */

/* A weight that a rule knows. */
struct candidate {
    struct fused_weight *weight;
    struct span rule;
    int64_t front;
};

/* The first rule with a member that the name ends with; an empty one if there is none. */
static bool find_rule(const char *rules, struct fused_weight *weight, struct candidate *candidate)
{
    for (struct span rest = { rules, strlen(rules) }; rest.length > 0;) {
        const struct span rule = split(rest, ',', &rest);
        *candidate = (struct candidate){ .weight = weight, .rule = rule };
        for (struct span members = rule; members.text != NULL;)
            if (ends_with_member(weight, split(members, '+', &members), &candidate->front)) return true;
    }
    return false;
}

/* By rule, name in front, columns; 0 for two of one group. */
static int by_group(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->rule.text != y->rule.text) return x->rule.text < y->rule.text ? -1 : 1;
    if (x->front != y->front) return x->front < y->front ? -1 : 1;
    const int names = memcmp(x->weight->name, y->weight->name, (size_t)x->front);
    if (names != 0) return names;
    return (x->weight->columns > y->weight->columns) - (x->weight->columns < y->weight->columns);
}

void fused_find(const struct cli *cli, const char *rules, struct fused_weight *weights, int64_t count,
                struct fused *fused)
{
    struct candidate *candidates = cli_memory(cli, count + 1, sizeof *candidates);
    int64_t found = 0, end;
    *fused = (struct fused){ .groups = cli_memory(cli, count + 1, sizeof *fused->groups) };
    for (int64_t i = 0; i < count; i++) {
        weights[i].group = -1;
        if (find_rule(rules, &weights[i], &candidates[found])) found++;
    }
    qsort(candidates, (size_t)found, sizeof *candidates, by_group);
    for (int64_t i = 0; i < found; i = end) {
        for (end = i + 1; end < found && by_group(&candidates[i], &candidates[end]) == 0;) end++;
        if (end - i < 2) continue;
        fused->groups[fused->count] = (struct fused_group){ candidates[i].rule.text, (int)candidates[i].rule.length };
        for (int64_t j = i; j < end; j++) candidates[j].weight->group = fused->count;
        fused->count++;
    }
    free(candidates);
}

void fused_free(struct fused *fused)
{
    free(fused->groups);
    *fused = (struct fused){ .groups = NULL };
}

/* Reports ---------------------------------------------------------------------------------------------------------- */

/* Groups of the same rule, from number `first` on. */
static int64_t same_rule(const struct fused *fused, int64_t first)
{
    int64_t end = first;
    while (end < fused->count && fused->groups[end].rule == fused->groups[first].rule) end++;
    return end - first;
}

void fused_print(const struct fused *fused, FILE *file)
{
    for (int64_t i = 0; i < fused->count; i += same_rule(fused, i))
        fprintf(file, "%s%" PRId64 " of %.*s", i > 0 ? ", " : "", same_rule(fused, i), fused->groups[i].rule_length,
                fused->groups[i].rule);
}

void fused_print_json(struct cli_json *json, const char *key, const struct fused *fused)
{
    cli_json_array(json, key);
    for (int64_t i = 0; i < fused->count; i += same_rule(fused, i)) {
        char members[256];
        snprintf(members, sizeof members, "%.*s", fused->groups[i].rule_length, fused->groups[i].rule);
        cli_json_object(json, NULL);
        cli_json_text(json, "members", members);
        cli_json_integer(json, "groups", same_rule(fused, i));
        cli_json_end(json);
    }
    cli_json_end(json);
}
