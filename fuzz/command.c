/* The command line: any words, for every verb's own table of options.  Nothing is run.  What is accepted has every
 * number within the bounds that the table states. */
#include "input.h"

#include "cli/cli.h"
#include "cli/verbs.h"

enum { WORDS = 24 };

static int verb_count(void)
{
    int count = 0;
    while (cli_verbs[count] != NULL) count++;
    return count;
}

static void check_bounds(const struct cli_verb *verb, const void *settings)
{
    for (const struct cli_option *option = verb->options; option->name != NULL; option++) {
        int64_t number;
        if (option->parse != cli_integer || (option->low == 0 && option->high == 0)) continue;
        memcpy(&number, (const char *)settings + option->offset, sizeof number);
        int64_t was = 0;
        if (verb->defaults != NULL) memcpy(&was, (const char *)verb->defaults + option->offset, sizeof was);
        REQUIRE(number == was || (number >= option->low && number <= option->high));
    }
}

/* The first byte names the verb; lines are words, and '\1' stands for a name out of its table. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > 4096) return 0;
    const struct cli_verb *verb = cli_verbs[data[0] % verb_count()];
    int options = 0, count = 0;
    while (verb->options[options].name != NULL) options++;
    char *text = malloc(size), *words[WORDS + 1];
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    for (char *word = text; word != NULL && count < WORDS; count++) {
        words[count] = word;
        word = strchr(word, '\n');
        if (word != NULL) *word++ = '\0';
        if (words[count][0] == '\1' && words[count][1] != '\0')
            words[count] = (char *)verb->options[(unsigned char)words[count][1] % (options > 0 ? options : 1)].name;
        if (words[count] == NULL) words[count] = text + size - 1;
    }
    words[count] = NULL;
    void *settings = calloc(1, verb->settings_bytes + 1);
    if (verb->defaults != NULL) memcpy(settings, verb->defaults, verb->settings_bytes);
    struct cli_common common = { .seed = 1 };
    const int result = cli_parse(verb, count, words, settings, &common);
    REQUIRE(result == CLI_DONE || result == CLI_WRONG_USAGE);
    if (result == CLI_DONE && !common.help) check_bounds(verb, settings);
    free(settings), free(text);
    return 0;
}
