/* A shared object with a static of its own; the program that loads it never names it. */
#include "greynic_zero.h"

struct object {
  uint64_t loads;
};
static const zero_field kFields[] = {
    {"loads", ZERO_U64, ZERO_COUNTER, offsetof(struct object, loads), 1, 0, "", "", ""}};
static const zero_schema kObject = {"object", "Of a shared object", kFields, 1,
                                    sizeof(struct object), ZERO_PLAIN};
ZERO_INIT(struct object, object, kObject, "");

void count_load(void);
void count_load(void) { zero_add(&object->loads, 7); }
