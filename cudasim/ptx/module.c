/* What stands at module level, and the whole of reading. */
#include "ptx/reader.h"

#include <stdlib.h>
#include <string.h>

const struct ptx_limits ptx_default_limits = {
    .bytes = 256u << 20, .arena_bytes = (size_t)4 << 30, .registers = 4u << 20, .instructions = 16u << 20, .depth = 64,
};

enum { OLDEST_VERSION = 60, NEWEST_VERSION = 93 };

static void read_version(struct reader *r)
{
    token_next(r);
    const char *text = r->token.text;
    if (r->token.kind != TOKEN_DECIMAL || r->token.length != 3 || text[1] != '.') {
        reader_fail(r, "the version should stand here, as 9.0");
        return;
    }
    const uint32_t version = (uint32_t)((text[0] - '0') * 10 + (text[2] - '0'));
    if (version < OLDEST_VERSION || version > NEWEST_VERSION)
        reader_fail(r, "PTX %.3s is not known here; versions %d.%d to %d.%d are", text, OLDEST_VERSION / 10,
                    OLDEST_VERSION % 10, NEWEST_VERSION / 10, NEWEST_VERSION % 10);
    r->module->version = version;
    token_next(r);
}

static void read_one_target(struct reader *r)
{
    const struct token t = r->token;
    if (t.kind != TOKEN_NAME) {
        reader_fail(r, "a target should stand here, as sm_90a");
        return;
    }
    token_next(r);
    if (t.length >= 5 && memcmp(t.text, "sm_", 3) == 0) {
        uint32_t number = 0, i = 3;
        for (; i < t.length && t.text[i] >= '0' && t.text[i] <= '9' && i < 7; i++)
            number = number * 10 + (uint32_t)(t.text[i] - '0');
        const char suffix = i + 1 == t.length ? t.text[i] : '\0';
        if (i == 3 || (i != t.length && suffix != 'a' && suffix != 'f'))
            reader_fail_at(r, t.line, t.column, "'%.*s' is no target", (int)(t.length > 32 ? 32 : t.length), t.text);
        r->module->sm = number;
        r->module->suffix = suffix;
        return;
    }
    static const char *const options[] = { "debug", "texmode_unified", "texmode_independent" };
    for (size_t i = 0; i < 3; i++)
        if (strlen(options[i]) == t.length && memcmp(options[i], t.text, t.length) == 0) return;
    reader_fail_at(r, t.line, t.column, "the target option '%.*s' is not known here",
                   (int)(t.length > 32 ? 32 : t.length), t.text);
}

static void read_target(struct reader *r)
{
    token_next(r);
    read_one_target(r);
    while (token_take(r, ',')) read_one_target(r);
}

static void read_address_size(struct reader *r)
{
    token_next(r);
    r->module->address_size = (uint32_t)read_integer(r, "the address size", 32, 64);
    if (r->module->address_size != 64) reader_fail(r, "only .address_size 64 runs here");
}

void read_pragma(struct reader *r)
{
    token_next(r);
    do {
        if (r->token.kind != TOKEN_STRING) reader_fail(r, "a string should stand behind .pragma");
        token_next(r);
    } while (token_take(r, ','));
    token_expect(r, ';');
}

static void read_linked(struct reader *r)
{
    bool external = false, visible = false, weak = false;
    for (;; token_next(r)) {
        if (token_is_word(r, ".extern")) external = true;
        else if (token_is_word(r, ".visible")) visible = true;
        else if (token_is_word(r, ".weak") || token_is_word(r, ".common")) weak = visible = true;
        else break;
    }
    if (token_is_word(r, ".entry") || token_is_word(r, ".func")) {
        const bool entry = token_is_word(r, ".entry");
        token_next(r);
        read_function(r, entry, external, visible, weak);
    } else if (space_named(&r->token) != SPACE_COUNT) {
        read_variable(r, external, visible);
    } else {
        reader_fail(r, "a function, an entry or a variable should stand here");
    }
}

static void read_statement(struct reader *r)
{
    if (r->token.kind != TOKEN_WORD) {
        if (token_take(r, ';')) return;
        reader_fail(r, "a directive should stand here, as .entry or .global");
    } else if (token_is_word(r, ".version") || token_is_word(r, ".target")) {
        reader_fail(r, "%.*s stands once, at the beginning", (int)r->token.length, r->token.text);
    } else if (token_is_word(r, ".address_size")) {
        read_address_size(r);
    } else if (token_is_word(r, ".pragma")) {
        read_pragma(r);
    } else if (!read_debug(r)) {
        read_linked(r);
    }
}

static void read_module(struct reader *r)
{
    token_next(r);
    if (!token_is_word(r, ".version")) {
        reader_fail(r, "a module begins with .version");
        return;
    }
    read_version(r);
    if (!token_is_word(r, ".target")) {
        reader_fail(r, ".target should stand behind .version");
        return;
    }
    read_target(r);
    r->module->address_size = 64;
    scope_open(r);
    while (!r->failed && r->token.kind != TOKEN_END) read_statement(r);
    if (!r->failed) link_module(r);
}

static void no_memory(struct reader *r)
{
    if (r->error != NULL)
        *r->error = (struct ptx_error){ 1, 1, "no memory for this module", "error: no memory for this module" };
    r->failed = true;
}

struct module *ptx_read(const char *name, const char *text, size_t length, const struct ptx_limits *limits,
                        struct ptx_error *error)
{
    struct module *module = calloc(1, sizeof *module);
    struct reader *r = calloc(1, sizeof *r);
    if (limits == NULL) limits = &ptx_default_limits;
    if (module == NULL || r == NULL) {
        free(module), free(r);
        if (error != NULL)
            *error = (struct ptx_error){ 1, 1, "no memory for this module", "error: no memory for this module" };
        return NULL;
    }
    if (length > 0 && text[length - 1] == '\0') length--;
    arena_open(&module->arena, limits->arena_bytes);
    *r = (struct reader){ .module = module, .limits = limits, .name = name, .error = error, .line = 1 };
    module->text = length > limits->bytes ? NULL : arena_string(&module->arena, text, length);
    module->length = module->text == NULL ? 0 : length;
    if (module->text == NULL) {
        no_memory(r);
    } else {
        r->at = r->line_start = module->text;
        r->end = module->text + length;
        read_module(r);
    }
    const bool failed = r->failed;
    free(r);
    if (!failed) return module;
    ptx_release(module);
    return NULL;
}

void ptx_release(struct module *module)
{
    if (module == NULL) return;
    free(module->code), free(module->functions), free(module->variables), free(module->locations), free(module->files);
    arena_close(&module->arena);
    free(module);
}

const struct function *ptx_function(const struct module *module, const char *name)
{
    for (uint32_t i = 0; i < module->function_count; i++)
        if (strcmp(module->functions[i]->name, name) == 0) return module->functions[i];
    return NULL;
}

const struct variable *ptx_variable(const struct module *module, const char *name)
{
    for (uint32_t i = 0; i < module->variable_count; i++)
        if (!module->variables[i]->inside_function && strcmp(module->variables[i]->name, name) == 0)
            return module->variables[i];
    return NULL;
}

const struct function *ptx_function_at(const struct module *module, uint32_t pc)
{
    for (uint32_t i = 0; i < module->function_count; i++) {
        const struct function *f = module->functions[i];
        if (f->defined && pc >= f->code_begin && pc < f->code_end) return f;
    }
    return NULL;
}
