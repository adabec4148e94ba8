/* The picture of a layout. */
#ifndef CLI_LAYOUT_PICTURE_H
#define CLI_LAYOUT_PICTURE_H

#include "cli/matrices/layout_map.h"

/* Draws it as SVG. */
void layout_picture(const struct layout_map *map, FILE *file);

#endif
