/* A small server that counts: cc watched.c -lgreynic_zero -lpthread -o watched && ./watched 60
 * Where `greynic zero agent` runs, `greynic watch /run/greynic/zero.sock` shows what it counts. */
#include <greynic_zero.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct stats {
  uint64_t requests;
  double load;
  uint64_t delay[ZERO_HISTOGRAM_WORDS(3)];
};

static const zero_field kFields[] = {
    {"requests", ZERO_U64, ZERO_COUNTER, offsetof(struct stats, requests), 1, 0, "", "Requests", ""},
    {"load", ZERO_F64, ZERO_GAUGE, offsetof(struct stats, load), 1, 0, "ratio", "Busy share", ""},
    {"delay", ZERO_U64, ZERO_HISTOGRAM, offsetof(struct stats, delay), ZERO_HISTOGRAM_WORDS(3), 3,
     "ns", "Time a request took", ""}};
static const zero_schema kStats = {"server", "A small server", kFields, 3, sizeof(struct stats),
                                   ZERO_PLAIN};

struct usage {
  uint64_t bytes;
};
static const zero_field kUsageFields[] = {
    {"bytes", ZERO_U64, ZERO_COUNTER, offsetof(struct usage, bytes), 1, 0, "B", "Bytes handled", ""}};
static const zero_schema kUsage = {"call", "A function call", kUsageFields, 1, sizeof(struct usage),
                                   ZERO_PLAIN};

/* The first way: a static, found when the program starts. */
ZERO_INIT(struct stats, stats, kStats, "port=\"80\"");

int main(int argc, char** argv) {
  const int turns = argc > 1 ? atoi(argv[1]) * 1000 : 10000;
  /* The second: memory from the arena. */
  struct stats* more = zero_malloc(sizeof *more);
  if (!more || zero_publish(more, &kStats, "port=\"81\"") != 0 || zero_connect(NULL) != 0) {
    fprintf(stderr, "watched: %s\n", zero_error());
    return 1;
  }
  puts("counting");
  fflush(stdout);
  for (int turn = 0; turn < turns; ++turn) {
    zero_add(&stats->requests, 1);
    zero_add(&more->requests, 2);
    zero_set_f64(&stats->load, turn % 100 / 100.0);
    zero_record(stats->delay, 3, 1000 + (uint64_t)turn % 5000);
    if (turn % 100 == 0) {
      /* The third: a function of a millisecond, with a row of its own. */
      char labels[32];
      snprintf(labels, sizeof labels, "id=\"%d\"", turn);
      struct usage* call = zero_begin(&kUsage, labels);
      if (call) {
        zero_add(&call->bytes, 4096);
        zero_end(call);
      }
    }
    const struct timespec pause = {0, 1000000};
    nanosleep(&pause, NULL);
  }
  return 0;
}
