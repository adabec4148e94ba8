/* Checkpoints written through bsm_writer: every spelling is read back bit for bit, and config.json says what it is. */
#include "written_folder.h"

static const struct spelling {
    bsm_convention convention, read_as;
    bsm_format format;
    bool tensor_scale;
    const char *words; /* of config.json; NULL: none is written */
} spellings[] = {
    { BSM_CONVENTION_MODELOPT, BSM_CONVENTION_MODELOPT, BSM_NVFP4, true, "\"quant_algo\": \"W4A16_NVFP4\"" },
    { BSM_CONVENTION_MODELOPT, BSM_CONVENTION_MODELOPT, BSM_MXFP4, false, "\"quant_algo\": \"mxfp4\"" },
    { BSM_CONVENTION_MODELOPT, BSM_CONVENTION_MODELOPT, BSM_MXFP8_E4M3, false, "\"quant_algo\": \"MXFP8\"" },
    { BSM_CONVENTION_MODELOPT, BSM_CONVENTION_MODELOPT, BSM_MXFP8_E5M2, false, NULL },
    { BSM_CONVENTION_MODELOPT, BSM_CONVENTION_MODELOPT, BSM_MXFP6_E2M3, false, NULL },
    { BSM_CONVENTION_MODELOPT, BSM_CONVENTION_MODELOPT, BSM_MXFP6_E3M2, false, NULL },
    { BSM_CONVENTION_MODELOPT, BSM_CONVENTION_MODELOPT, BSM_FORMAT_E4M3, true, "\"quant_algo\": \"FP8\"" },
    { BSM_CONVENTION_COMPRESSED_TENSORS, BSM_CONVENTION_COMPRESSED_TENSORS, BSM_NVFP4, true, "nvfp4-pack-quantized" },
    { BSM_CONVENTION_COMPRESSED_TENSORS, BSM_CONVENTION_COMPRESSED_TENSORS, BSM_MXFP4, false, "mxfp4-pack-quantized" },
    { BSM_CONVENTION_COMPRESSED_TENSORS, BSM_CONVENTION_COMPRESSED_TENSORS, BSM_MXFP6_E2M3, false,
      "mxfp6-pack-quantized" },
    { BSM_CONVENTION_COMPRESSED_TENSORS, BSM_CONVENTION_MODELOPT, BSM_MXFP8_E4M3, false, "mxfp8-quantized" },
    { BSM_CONVENTION_COMPRESSED_TENSORS, BSM_CONVENTION_MODELOPT, BSM_FORMAT_E4M3, true, "float-quantized" },
    { BSM_CONVENTION_GPT_OSS, BSM_CONVENTION_GPT_OSS, BSM_MXFP4, false, "\"quant_method\": \"mxfp4\"" },
    { BSM_CONVENTION_GGUF, BSM_CONVENTION_GGUF, BSM_MXFP4, false, NULL },
    { BSM_CONVENTION_GGUF, BSM_CONVENTION_GGUF, BSM_NVFP4, true, NULL },
};
enum { SPELLINGS = sizeof spellings / sizeof spellings[0] };

/* By its name: scales of inputs that are not quantized in this way are not looked for by the reader of weights. */
static void check_input_scale(struct test *t, const bsm_checkpoint *checkpoint, const struct spelling *s,
                              const struct made *made)
{
    const bool divides = s->convention == BSM_CONVENTION_COMPRESSED_TENSORS && s->format == BSM_NVFP4;
    bsm_tensor scale = { .struct_size = sizeof scale };
    char name[128];
    snprintf(name, sizeof name, "%s%s", made->weight.name, divides ? ".input_global_scale" : ".input_scale");
    const int64_t index = bsm_checkpoint_find(checkpoint, name);
    CHECK(t, (index >= 0) == made->weight.input_scale);
    if (index < 0) return;
    GOOD(t, bsm_checkpoint_tensor(checkpoint, index, &scale));
    CHECK(t, scale.type == BSM_TENSOR_F32 && scale.bytes == 4 && memcmp(scale.data, &made->input_scale, 4) == 0);
}

/* Bytes, scales and description of a weight in the file are those that were put. */
static void check_weight(struct test *t, const bsm_checkpoint *checkpoint, const struct spelling *s,
                         const struct made *made)
{
    bsm_weight found = { .struct_size = sizeof found };
    if (bsm_checkpoint_find_weight(checkpoint, made->weight.name, &found) != BSM_OK) {
        FAIL(t, "%s: %s", made->weight.name, bsm_last_error());
        return;
    }
    const bsm_matrix *m = &found.matrix;
    CHECK(t, found.convention == s->read_as && m->format == s->format && m->packing == made->matrix.packing);
    CHECK(t, m->rows == made->weight.rows && m->columns == made->weight.columns);
    CHECK(t, (m->batch > 1 ? m->batch : 1) == (made->weight.batch > 1 ? made->weight.batch : 1));
    CHECK(t, memcmp(m->data, made->matrix.data, (size_t)made->data_bytes) == 0);
    if (made->scale_bytes > 0) CHECK(t, memcmp(m->scales, made->matrix.scales, (size_t)made->scale_bytes) == 0);
    CHECK(t, (m->tensor_scale != NULL) == made->weight.tensor_scale);
    if (m->tensor_scale != NULL)
        CHECK(t, memcmp(m->tensor_scale, &made->tensor_scale, 4) == 0 &&
                     m->tensor_scale_use == made->matrix.tensor_scale_use);
    check_input_scale(t, checkpoint, s, made);
}

/* Two weights and a tensor that is none, in one file. */
static void write_and_read(struct test *t, const struct spelling *s, const char *path, int64_t batch, bool input_scales)
{
    const float numbers[6] = { 1, 2, 3, 4, 5, 6 };
    struct made made[2] = { { .number = 0 } };
    bsm_writer *writer;
    bsm_checkpoint *checkpoint;
    bsm_tensor kept = { .struct_size = sizeof kept };
    int64_t other;
    GOOD(t, bsm_writer_create(context, path, NULL, &writer));
    for (int i = 0; i < 2; i++) {
        made[i].weight = (bsm_writer_weight){ .name = i == 0 ? "layers.0.down_proj" : "layers.1.x", .batch = batch,
                                              .convention = s->convention, .format = s->format, .rows = 3 + 5 * i,
                                              .columns = 128, .tensor_scale = s->tensor_scale,
                                              .input_scale = input_scales };
        announce(t, writer, &made[i]);
        CHECK(t, made[i].number == i);
    }
    GOOD(t, bsm_writer_add_tensor(writer, &passed_on, &other));
    GOOD(t, bsm_writer_begin(writer));
    put(t, writer, &made[1]);
    GOOD(t, bsm_writer_put(writer, other, numbers, 8));
    GOOD(t, bsm_writer_put(writer, other, numbers + 2, 16));
    put(t, writer, &made[0]);
    GOOD(t, bsm_writer_finish(writer));
    bsm_writer_destroy(writer);
    GOOD(t, bsm_checkpoint_open(context, path, &checkpoint));
    for (int i = 0; i < 2; i++) check_weight(t, checkpoint, s, &made[i]);
    GOOD(t, bsm_checkpoint_tensor(checkpoint, bsm_checkpoint_find(checkpoint, "kept.weight"), &kept));
    CHECK(t, kept.bytes == 24 && memcmp(kept.data, numbers, 24) == 0);
    bsm_checkpoint_close(checkpoint);
    for (int i = 0; i < 2; i++) forget(&made[i]);
}

static void every_spelling_is_read_back(struct test *t)
{
    for (int i = 0; i < SPELLINGS; i++) {
        const struct spelling *s = &spellings[i];
        const bool gguf = s->convention == BSM_CONVENTION_GGUF;
        const bool batches = s->convention == BSM_CONVENTION_GPT_OSS || s->format == BSM_MXFP4;
        enter();
        for (int inputs = 0; inputs < 2; inputs++)
            for (int64_t batch = 0; batch <= (batches ? 3 : 1); batch++) {
                const bool with_inputs = inputs > 0 && s->convention != BSM_CONVENTION_GPT_OSS;
                write_and_read(t, s, in_folder(gguf ? "x.gguf" : "x.safetensors"), batch, with_inputs);
                if (!gguf) write_and_read(t, s, in_folder("x"), batch, with_inputs);
            }
        leave();
    }
}

/* Configurations --------------------------------------------------------------------------------------------------- */

static void write_model(struct test *t, const struct spelling *s, const char *path, const bsm_writer_options *options,
                        const char *note)
{
    struct made made = { .weight = { .name = "lm_head", .convention = s->convention, .format = s->format, .rows = 2,
                                     .columns = 64, .tensor_scale = s->tensor_scale } };
    const float numbers[6] = { 0 };
    bsm_writer *writer;
    int64_t other;
    GOOD(t, bsm_writer_create(context, path, options, &writer));
    announce(t, writer, &made);
    GOOD(t, bsm_writer_add_tensor(writer, &passed_on, &other));
    GOOD(t, bsm_writer_begin(writer));
    put(t, writer, &made);
    GOOD(t, bsm_writer_put(writer, other, numbers, 24));
    GOOD(t, bsm_writer_finish(writer));
    const char *said = bsm_writer_note(writer, 0);
    if ((said != NULL) != (note != NULL) || (note != NULL && strstr(said, note) == NULL))
        FAIL(t, "note \"%s\", not \"%s\"", said != NULL ? said : "none", note != NULL ? note : "none");
    bsm_writer_destroy(writer);
    forget(&made);
}

static void words_of_every_convention(struct test *t)
{
    for (int i = 0; i < SPELLINGS; i++) {
        const struct spelling *s = &spellings[i];
        if (s->convention == BSM_CONVENTION_GGUF) continue;
        enter();
        write_model(t, s, in_folder("x"), NULL, s->words == NULL ? "no config.json is written" : NULL);
        const char *text = read_text("x/config.json");
        if (s->words == NULL) CHECK(t, !exists("x/config.json"));
        else if (strstr(text, s->words) == NULL || strstr(text, "\"kept\"\n") == NULL
                 || strstr(text, "lm_head") != NULL)
            FAIL(t, "%s: %s", s->words, text);
        const bool own = s->convention == BSM_CONVENTION_MODELOPT && s->words != NULL;
        CHECK(t, exists("x/hf_quant_config.json") == own);
        leave();
    }
}

/* The model's config.json is completed, its other files are copied. */
static void the_rest_of_a_model(struct test *t)
{
    enter();
    mkdir(in_folder("hf"), 0777);
    mkdir(in_folder("hf/pooling"), 0777);
    write_text("hf/config.json", "{\"a\": 1e-05, \"quantization_config\": {\"old\": 1}, \"b\": [\"\\u00e9\"]}");
    write_text("hf/tokenizer.json", "{ }");
    write_text("hf/pytorch_model.bin", "weights");
    char model[256];
    snprintf(model, sizeof model, "%s/hf", folder);
    const bsm_writer_options options = { .struct_size = sizeof options, .model = model };
    write_model(t, &spellings[0], in_folder("x"), &options, NULL);
    const char *text = read_text("x/config.json");
    CHECK(t, strstr(text, "{\n  \"a\": 0.00001,\n  \"b\": [\n    \"\xc3\xa9\"\n  ],\n  \"quantization_config\": {\n")
                 == text);
    CHECK(t, strstr(text, "old") == NULL && strcmp(read_text("x/tokenizer.json"), "{ }") == 0);
    CHECK(t, !exists("x/pytorch_model.bin") && !exists("x/pooling"));
    CHECK(t, entries(in_folder("x"), false) == 4);
    /* What is written again, without weights: numbers again. */
    bsm_writer *writer;
    GOOD(t, bsm_writer_create(context, in_folder("y"), &options, &writer));
    GOOD(t, bsm_writer_begin(writer));
    GOOD(t, bsm_writer_finish(writer));
    CHECK(t, strcmp(bsm_writer_copied(writer, 0), "tokenizer.json") == 0 && bsm_writer_copied(writer, 1) == NULL);
    CHECK(t, strcmp(bsm_writer_not_copied(writer, 0), "pooling") == 0 && bsm_writer_not_copied(writer, 1) == NULL);
    bsm_writer_destroy(writer);
    CHECK(t, strcmp(read_text("y/config.json"), "{\n  \"a\": 0.00001,\n  \"b\": [\n    \"\xc3\xa9\"\n  ]\n}\n") == 0);
    leave();
}

static void configurations_that_are_none(struct test *t)
{
    static const struct { const char *text, *words; } wrong[] = {
        { "[1]", "config.json: a JSON object is wanted" },
        { "", "config.json: byte 0 is no JSON" },
        { "{\"a\":}", "config.json: byte 5 is no JSON" },
        { "{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}", "deep in one another" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        bsm_writer *writer;
        enter();
        mkdir(in_folder("hf"), 0777);
        write_text("hf/config.json", wrong[i].text);
        char model[256];
        snprintf(model, sizeof model, "%s/hf", folder);
        const bsm_writer_options options = { .struct_size = sizeof options, .model = model };
        GOOD(t, bsm_writer_create(context, in_folder("x"), &options, &writer));
        GOOD(t, bsm_writer_begin(writer));
        CHECK(t, bsm_writer_finish(writer) == BSM_EFILE);
        if (strstr(bsm_last_error(), wrong[i].words) == NULL) FAIL(t, "%s", bsm_last_error());
        CHECK(t, bsm_writer_finish(writer) == BSM_EINVAL);
        bsm_writer_destroy(writer);
        CHECK(t, entries(folder, false) == 1);
        leave();
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(every_spelling_is_read_back), TEST(words_of_every_convention), TEST(the_rest_of_a_model),
        TEST(configurations_that_are_none),
    };
    if (bsm_context_create(NULL, &context) != BSM_OK) abort();
    const int status = TEST_MAIN(argc, argv, cases);
    bsm_context_destroy(context);
    return status;
}
