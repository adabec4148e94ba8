/* Checkpoints rewritten, see rewrite.h. */
#include "rewrite.h"
#include "weights.h"

#include <stdlib.h>

struct rewrite_name rewrite_name_of(const bsm_weight *weight)
{
    struct rewrite_name name;
    snprintf(name.text, sizeof name.text, "%.*s", (int)weight->name_length, weight->name);
    return name;
}

/* The tensors that belong to a weight beside its codes. */
static void mark_parts(const bsm_weight *weight, bool *taken)
{
    const int64_t parts[] = { weight->codes, weight->scales, weight->tensor_scale, weight->input_scale };
    for (int i = 0; i < 4; i++)
        if (parts[i] >= 0) taken[parts[i]] = true;
}

static int find_weights(struct cli *cli, struct rewrite *rewrite, bool (*takes)(const bsm_weight *weight), bool *taken)
{
    const int64_t count = bsm_checkpoint_tensor_count(rewrite->checkpoint);
    for (int64_t i = 0; i < count; i++) {
        struct rewrite_item *item = &rewrite->items[rewrite->count];
        if (weights_get(cli, rewrite->checkpoint, i, &item->weight) != CLI_DONE) return CLI_BAD_INPUT;
        const bsm_convention convention = item->weight.convention;
        if (convention == BSM_CONVENTION_NONE || convention == BSM_CONVENTION_PLAIN || !takes(&item->weight)) continue;
        item->tensor = i;
        item->is_weight = true;
        mark_parts(&item->weight, taken);
        rewrite->count++;
        rewrite->weights++;
    }
    for (int64_t i = 0; i < count; i++)
        if (!taken[i]) rewrite->items[rewrite->count++] = (struct rewrite_item){ .tensor = i };
    return CLI_DONE;
}

int rewrite_start(struct cli *cli, const char *input, const char *output, bool (*takes)(const bsm_weight *weight),
                  struct rewrite *rewrite)
{
    *rewrite = (struct rewrite){ .checkpoint = NULL };
    int result = writer_start(cli, &rewrite->writer, output, input);
    if (result == CLI_DONE) result = weights_open(cli, input, &rewrite->checkpoint);
    if (result != CLI_DONE) return result;
    const int64_t count = bsm_checkpoint_tensor_count(rewrite->checkpoint);
    bool *taken = cli_memory(cli, count, sizeof *taken);
    rewrite->items = cli_memory(cli, count + 1, sizeof *rewrite->items);
    result = find_weights(cli, rewrite, takes, taken);
    free(taken);
    return result;
}

int rewrite_wants_work(struct cli *cli, const char *input, const struct rewrite *rewrite, int64_t else_to_do)
{
    if (rewrite->weights + else_to_do > 0) return CLI_DONE;
    return cli_bad_input(cli, "%s: has no quantized weight to work on", input);
}

int rewrite_begin(struct rewrite *rewrite)
{
    int result = CLI_DONE;
    for (int64_t i = 0; result == CLI_DONE && i < rewrite->count; i++) {
        struct rewrite_item *item = &rewrite->items[i];
        const bsm_tensor tensor = weights_tensor(rewrite->checkpoint, item->tensor);
        if (!item->is_weight && !item->is_done) result = writer_add_tensor(&rewrite->writer, &tensor, &item->number);
    }
    return result == CLI_DONE ? writer_check(&rewrite->writer, bsm_writer_begin(rewrite->writer.writer)) : result;
}

int rewrite_finish(struct rewrite *rewrite)
{
    int result = CLI_DONE;
    for (int64_t i = 0; result == CLI_DONE && i < rewrite->count; i++) {
        const struct rewrite_item *item = &rewrite->items[i];
        const bsm_tensor tensor = weights_tensor(rewrite->checkpoint, item->tensor);
        if (!item->is_weight && !item->is_done) result = writer_put_tensor(&rewrite->writer, item->number, &tensor);
    }
    return result == CLI_DONE ? writer_finish(&rewrite->writer) : result;
}

void rewrite_end(struct rewrite *rewrite)
{
    free(rewrite->items);
    writer_end(&rewrite->writer);
    bsm_checkpoint_close(rewrite->checkpoint);
}
