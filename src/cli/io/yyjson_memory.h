/* Memory for yyjson that is there, or ends the command: a document never lacks what there was no memory for. */
#ifndef CLI_YYJSON_MEMORY_H
#define CLI_YYJSON_MEMORY_H

#include "cli/cli.h"

#include <yyjson/yyjson.h>

yyjson_alc cli_yyjson_memory(const struct cli *cli);

#endif
