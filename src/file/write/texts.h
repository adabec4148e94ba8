/* Memory of a writer: lists that grow, and texts of its own. */
#ifndef BSMI_TEXTS_H
#define BSMI_TEXTS_H

#include "core/core.h"

/* The list with room for one more item behind `count` of `size` bytes, moved if need be; *room: items that it has room
 * for.  NULL: no memory, and the list stays as it was. */
void *bsmi_with_room(const bsm_context *context, void *items, int64_t *room, int64_t count, size_t size);

/* The first `length` characters of `text`, and `ending` behind them, for bsmi_release_text.  NULL: no memory. */
char *bsmi_join_text(const bsm_context *context, const char *text, size_t length, const char *ending);
/* FOLDER/NAME. */
char *bsmi_join_path(const bsm_context *context, const char *folder, const char *name);
void bsmi_release_text(const bsm_context *context, char *text);

struct bsmi_texts { char **items; int64_t count, room; };

/* Errors: BSM_ENOMEM. */
bsm_status bsmi_texts_add(const bsm_context *context, struct bsmi_texts *texts, const char *text);
void bsmi_texts_free(const bsm_context *context, struct bsmi_texts *texts);
/* NULL behind the last. */
const char *bsmi_texts_get(const struct bsmi_texts *texts, int64_t index);

#endif
