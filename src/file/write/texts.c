/* Lists that grow and texts, see texts.h. */
#include "texts.h"

void *bsmi_with_room(const bsm_context *context, void *items, int64_t *room, int64_t count, size_t size)
{
    if (count < *room) return items;
    const int64_t larger = *room == 0 ? 16 : 2 * *room;
    void *moved = bsmi_allocate(context, (size_t)larger * size);
    if (moved == NULL) return NULL;
    if (count > 0) memcpy(moved, items, (size_t)count * size);
    bsmi_release(context, items, (size_t)*room * size);
    *room = larger;
    return moved;
}

char *bsmi_join_text(const bsm_context *context, const char *text, size_t length, const char *ending)
{
    char *joined = bsmi_allocate(context, length + strlen(ending) + 1);
    if (joined == NULL) return NULL;
    memcpy(joined, text, length);
    memcpy(joined + length, ending, strlen(ending) + 1);
    return joined;
}

char *bsmi_join_path(const bsm_context *context, const char *folder, const char *name)
{
    const size_t length = strlen(folder), end = strlen(name) + 1;
    char *path = bsmi_allocate(context, length + 1 + end);
    if (path == NULL) return NULL;
    memcpy(path, folder, length);
    path[length] = '/';
    memcpy(path + length + 1, name, end);
    return path;
}

void bsmi_release_text(const bsm_context *context, char *text)
{
    if (text != NULL) bsmi_release(context, text, strlen(text) + 1);
}

bsm_status bsmi_texts_add(const bsm_context *context, struct bsmi_texts *texts, const char *text)
{
    char **items = bsmi_with_room(context, texts->items, &texts->room, texts->count, sizeof *items);
    if (items != NULL) texts->items = items;
    char *copy = items == NULL ? NULL : bsmi_join_text(context, text, strlen(text), "");
    if (copy == NULL) return bsmi_fail(BSM_ENOMEM, "no memory for a text");
    texts->items[texts->count++] = copy;
    return BSM_OK;
}

void bsmi_texts_free(const bsm_context *context, struct bsmi_texts *texts)
{
    for (int64_t i = 0; i < texts->count; i++) bsmi_release_text(context, texts->items[i]);
    bsmi_release(context, texts->items, (size_t)texts->room * sizeof *texts->items);
    *texts = (struct bsmi_texts){ .count = 0 };
}

const char *bsmi_texts_get(const struct bsmi_texts *texts, int64_t index)
{
    return index >= 0 && index < texts->count ? texts->items[index] : NULL;
}
