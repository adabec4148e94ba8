/* The command's one copy of yyjson (third_party): its files include <yyjson/yyjson.h>. */
#define YYJSON_DISABLE_UTILS        1
#define YYJSON_DISABLE_INCR_READER  1
#define YYJSON_DISABLE_NON_STANDARD 1
#include <yyjson/yyjson.c>
