/* Redis as a watched program: a module that counts commands in shared memory while Redis serves.
 *
 *     cc -shared -fPIC redis_module.c -lgreynic_zero -lpthread -o greynic_redis.so
 *     redis-server --loadmodule ./greynic_redis.so
 *
 * It costs Redis one call and a few additions for each command. Nobody asks Redis for the numbers.
 * The few functions of Redis' API that it needs are declared here, so no header of Redis is needed. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "greynic_zero.h"

typedef struct RedisModuleCtx RedisModuleCtx;
typedef struct RedisModuleString RedisModuleString;
typedef struct RedisModuleCommandFilterCtx FilterCtx;
typedef void (*Filter)(FilterCtx*);
enum { API_VERSION = 1, MODULE_VERSION = 1 };

static int (*get_api)(const char*, void*);
static int (*set_attributes)(RedisModuleCtx*, const char*, int, int);
static void* (*register_filter)(RedisModuleCtx*, Filter, int);
static int (*args_count)(FilterCtx*);
static const RedisModuleString* (*arg_get)(FilterCtx*, int);
static const char* (*text_of)(const RedisModuleString*, size_t*);

enum { BITS = 3 };
struct commands {
  uint64_t commands, reads, writes, argument_bytes;
  uint64_t sizes[ZERO_HISTOGRAM_WORDS(BITS)];
};
static const zero_field kFields[] = {
    {"commands", ZERO_U64, ZERO_COUNTER, offsetof(struct commands, commands), 1, 0, "",
     "Commands that came", ""},
    {"reads", ZERO_U64, ZERO_COUNTER, offsetof(struct commands, reads), 1, 0, "",
     "GET and its like", ""},
    {"writes", ZERO_U64, ZERO_COUNTER, offsetof(struct commands, writes), 1, 0, "",
     "SET and its like", ""},
    {"argument_bytes", ZERO_U64, ZERO_COUNTER, offsetof(struct commands, argument_bytes), 1, 0, "B",
     "Bytes of all arguments", ""},
    {"command_bytes", ZERO_U64, ZERO_HISTOGRAM, offsetof(struct commands, sizes),
     ZERO_HISTOGRAM_WORDS(BITS), BITS, "B", "Bytes of a command", ""}};
static const zero_schema kCommands = {"redis", "Commands of a Redis",   kFields,
                                      5,       sizeof(struct commands), ZERO_PLAIN};
ZERO_INIT(struct commands, counts, kCommands, "");

static int contains(const char* name, size_t length, const char* part) {
  const size_t bytes = strlen(part);
  for (size_t at = 0; at + bytes <= length; ++at) {
    if (strncasecmp(name + at, part, bytes) == 0) return 1;
  }
  return 0;
}

static void count(FilterCtx* filter) {
  const int arguments = args_count(filter);
  uint64_t bytes = 0;
  for (int i = 0; i < arguments; ++i) {
    size_t length = 0;
    const char* const text = text_of(arg_get(filter, i), &length);
    if (i == 0 && contains(text, length, "get")) zero_add(&counts->reads, 1);
    if (i == 0 && contains(text, length, "set")) zero_add(&counts->writes, 1);
    bytes += length;
  }
  zero_add(&counts->commands, 1);
  zero_add(&counts->argument_bytes, bytes);
  zero_record(counts->sizes, BITS, bytes);
}

int RedisModule_OnLoad(RedisModuleCtx* context, RedisModuleString** arguments, int count_of);

int RedisModule_OnLoad(RedisModuleCtx* context, RedisModuleString** arguments, int count_of) {
  (void)arguments;
  (void)count_of;
  memcpy(&get_api, context, sizeof get_api); /* the context begins with it */
  if (get_api("RedisModule_SetModuleAttribs", (void*)&set_attributes) != 0 ||
      get_api("RedisModule_RegisterCommandFilter", (void*)&register_filter) != 0 ||
      get_api("RedisModule_CommandFilterArgsCount", (void*)&args_count) != 0 ||
      get_api("RedisModule_CommandFilterArgGet", (void*)&arg_get) != 0 ||
      get_api("RedisModule_StringPtrLen", (void*)&text_of) != 0) {
    return 1;
  }
  set_attributes(context, "greynic", MODULE_VERSION, API_VERSION);
  zero_scan(); /* a module comes by dlopen() */
  if (register_filter(context, count, 0) == NULL) return 1;
  return zero_connect(NULL) == 0 ? 0 : 1;
}
