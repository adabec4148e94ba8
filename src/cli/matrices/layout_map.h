/* What `blockscale layout` shows: which rows, columns and lines of memory, and which scale lies at which byte.
 *
 * A layout moves pieces of the matrix of scales as a whole: within a piece, one row further is always the same number
 * of bytes further, and one column further too.  Pieces are found from the offsets alone, so that every layout has
 * them; of each, the first two rows and the last are shown. */
#ifndef CLI_LAYOUT_MAP_H
#define CLI_LAYOUT_MAP_H

#include "cli/cli.h"

/* A row, a column or a line of memory that is shown; how many were omitted before it; whether another piece starts. */
struct layout_shown { int64_t index, omitted; bool other_piece; };

struct layout_list { struct layout_shown *shown; int count; };

/* Whose byte it is; row -1: no scale's and no padding's. */
struct layout_owner { int64_t row, column; };

struct layout_map {
    bsm_scale_layout layout;
    int64_t rows, columns, padded_rows, padded_columns, bytes;
    int64_t pitch;                        /* bytes from a row to the next in layouts that have a pitch */
    int64_t line_bytes, line_count;       /* memory is shown in lines of so many bytes; the last may be short */
    struct layout_list row_list, column_list, line_list;
    int64_t lines_omitted;                /* behind the last of line_list */
    int64_t known_rows, known_columns, known_bytes;
    int64_t *row_piece, *column_piece;    /* number of the piece of the first known_rows rows, and of the columns */
    struct layout_owner *owners;          /* of the first known_bytes bytes */
};

/* all: leave nothing out.  CLI_DONE, or prints what is wrong and returns its exit code. */
int layout_map_make(const struct cli *cli, const bsm_scale_layout *layout, int64_t rows, int64_t columns, bool all,
                    struct layout_map *map);
void layout_map_free(struct layout_map *map);

/* The byte of any row and column of the map, padding included. */
int64_t layout_map_offset(const struct layout_map *map, int64_t row, int64_t column);

static inline bool layout_is_padding(const struct layout_map *map, int64_t row, int64_t column)
{
    return row >= map->rows || column >= map->columns;
}

/* Consecutive bytes of one line that belong to no scale: how many from this one on, 0 if it has an owner. */
int64_t layout_foreign_bytes(const struct layout_map *map, int64_t byte, int64_t end);

/* The end of a line: the byte behind it. */
int64_t layout_line_end(const struct layout_map *map, int64_t line);

/* The layout as one would write it: "tiles:32x8". */
void layout_text(const bsm_scale_layout *layout, char *text, size_t bytes);

/* What bytes that hold no scale are. */
const char *layout_foreign_name(const struct layout_map *map);

/* The layout's formula with the numbers of one scale in it, and what it comes to. */
void layout_example(const struct layout_map *map, int64_t row, int64_t column, char *text, size_t bytes);

#endif
