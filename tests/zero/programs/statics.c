/* Statics of a program and of shared objects, and a child of it. Says what it has done in lines on
 * stdout and waits for a line on stdin before it goes on. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "greynic_zero.h"

struct pair {
  uint64_t a;
  uint32_t b;
  uint8_t c;
};
static const zero_field kFields[] = {
    {"a", ZERO_U64, ZERO_COUNTER, offsetof(struct pair, a), 1, 0, "", "", ""},
    {"b", ZERO_U32, ZERO_GAUGE, offsetof(struct pair, b), 1, 0, "", "", ""},
    {"c", ZERO_U8, ZERO_GAUGE, offsetof(struct pair, c), 1, 0, "", "", ""}};
static const zero_schema kPair = {"pair", "", kFields, 3, sizeof(struct pair), ZERO_PLAIN};
ZERO_INIT(struct pair, first, kPair, "which=\"first\"");
ZERO_INIT(struct pair, second, kPair, "which=\"second\"");

void count_load(void);

static void pause_after(const char* what) {
  char line[16];
  printf("%s\n", what);
  fflush(stdout);
  if (!fgets(line, sizeof line, stdin)) _exit(0);
}

int main(int argc, char** argv) {
  first->a = 11;
  first->b = 12;
  second->c = 23;
  count_load();
  pause_after("started");
  void* const object = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
  if (object) printf("%d more\n", zero_scan());
  pause_after("loaded");
  if (object) {
    dlclose(object);
    zero_scan();
  }
  pause_after("unloaded");
  const pid_t child = fork();
  if (child == 0) {
    first->a += 1000;
    printf("%d\n", (int)getpid());
    fflush(stdout);
    pause();
  }
  pause_after("forked");
  kill(child, 9);
  waitpid(child, NULL, 0);
  return 0;
}
