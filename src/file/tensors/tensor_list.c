/* Lists of tensors: their memory, and where their data lies. */
#include "sort.h"
#include "tensors.h"

#include <inttypes.h>

bsm_status bsmi_tensor_list_make(const bsm_context *context, int64_t count, int64_t metadata_count, size_t text_bytes,
                                 struct bsmi_tensor_list *list, char **text)
{
    /* The caller counted what lies in memory already: none of this overflows. */
    const size_t tensors = (size_t)count * sizeof *list->tensors,
                 metadata = (size_t)metadata_count * sizeof *list->metadata;
    *list = (struct bsmi_tensor_list){ .count = count,
                                       .metadata_count = metadata_count,
                                       .memory_bytes = tensors + metadata + text_bytes };
    if (list->memory_bytes == 0) list->memory_bytes = 1;
    list->memory = bsmi_allocate(context, list->memory_bytes);
    if (list->memory == NULL) return bsmi_fail(BSM_ENOMEM, "no memory for a list of %" PRId64 " tensors", count);
    memset(list->memory, 0, list->memory_bytes);
    list->tensors = list->memory;
    list->metadata = (bsm_metadata *)(void *)((unsigned char *)list->memory + tensors);
    *text = (char *)list->memory + tensors + metadata;
    return BSM_OK;
}

void bsmi_tensor_list_free(const bsm_context *context, struct bsmi_tensor_list *list)
{
    bsmi_release(context, list->memory, list->memory_bytes);
    *list = (struct bsmi_tensor_list){ .memory = NULL };
}

static int by_place(const void *one, const void *other)
{
    const struct bsmi_tensor *a = one, *b = other;
    if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? -1 : 1; /* an empty one before what starts there */
    return strcmp(a->name, b->name);
}

bsm_status bsmi_tensor_list_place(struct bsmi_tensor_list *list, const unsigned char *data, int64_t data_bytes,
                                  bool dense)
{
    int64_t end = 0;
    const char *before = NULL;
    bsmi_sort(list->tensors, (size_t)list->count, sizeof *list->tensors, by_place);
    for (int64_t i = 0; i < list->count; i++) {
        struct bsmi_tensor *t = &list->tensors[i];
        if (t->offset > data_bytes || t->bytes > data_bytes - t->offset)
            return bsmi_fail(BSM_EFILE,
                             "tensor %.200s: lies at bytes %" PRId64 " to %" PRIu64
                             " of the data, but the file has only %" PRId64 ": it is cut off, or the header lies",
                             t->name, t->offset, (uint64_t)t->offset + (uint64_t)t->bytes, data_bytes);
        if (t->offset < end && t->bytes > 0)
            return bsmi_fail(BSM_EFILE, "tensor %.200s: overlaps tensor %.200s at byte %" PRId64 " of the data",
                             t->name, before, t->offset);
        if (dense && t->offset > end)
            return bsmi_fail(BSM_EFILE, "tensor %.200s: %" PRId64 " bytes before it belong to no tensor", t->name,
                             t->offset - end);
        t->data = t->bytes > 0 ? data + t->offset : NULL;
        if (t->bytes > 0) end = t->offset + t->bytes, before = t->name;
    }
    if (dense && end < data_bytes)
        return bsmi_fail(BSM_EFILE, "%" PRId64 " bytes stand behind the last tensor", data_bytes - end);
    return BSM_OK;
}
