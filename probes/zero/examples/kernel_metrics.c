/* Metrics of the kernel: a helper that copies what /proc says into shared memory.
 *
 *     cc kernel_metrics.c -lgreynic_zero -lpthread -o kernel_metrics
 *     ./kernel_metrics [milliseconds between two copies, 100] [seconds, for ever]
 *
 * Its files stay open. All values of a copy are of one moment (layout ZERO_WHOLE). */

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "greynic_zero.h"

struct kernel {
  uint64_t user_ticks, system_ticks, idle_ticks, wait_ticks, interrupts, switches, forks;
  uint64_t running, free_bytes, cached_bytes, faults, major_faults;
  uint64_t received_bytes, received_packets, sent_bytes, sent_packets;
};
#define FIELD(NAME, KIND, UNIT) \
  { #NAME, ZERO_U64, KIND, offsetof(struct kernel, NAME), 1, 0, UNIT, "", "" }
static const zero_field kFields[] = {
    FIELD(user_ticks, ZERO_COUNTER, ""),      FIELD(system_ticks, ZERO_COUNTER, ""),
    FIELD(idle_ticks, ZERO_COUNTER, ""),      FIELD(wait_ticks, ZERO_COUNTER, ""),
    FIELD(interrupts, ZERO_COUNTER, ""),      FIELD(switches, ZERO_COUNTER, ""),
    FIELD(forks, ZERO_COUNTER, ""),           FIELD(running, ZERO_GAUGE, ""),
    FIELD(free_bytes, ZERO_GAUGE, "B"),       FIELD(cached_bytes, ZERO_GAUGE, "B"),
    FIELD(faults, ZERO_COUNTER, ""),          FIELD(major_faults, ZERO_COUNTER, ""),
    FIELD(received_bytes, ZERO_COUNTER, "B"), FIELD(received_packets, ZERO_COUNTER, ""),
    FIELD(sent_bytes, ZERO_COUNTER, "B"),     FIELD(sent_packets, ZERO_COUNTER, "")};
static const zero_schema kKernel = {"kernel",
                                    "What /proc says of this host",
                                    kFields,
                                    sizeof kFields / sizeof *kFields,
                                    sizeof(struct kernel),
                                    ZERO_WHOLE};

static char text[1 << 18];

static const char* contents(int file) {
  const ssize_t got = pread(file, text, sizeof text - 1, 0);
  text[got > 0 ? got : 0] = 0;
  return text;
}

/* The number behind a word that begins a line; 0 without it. */
static uint64_t after(const char* word) {
  const size_t length = strlen(word);
  for (const char* line = text; line; line = strchr(line, '\n')) {
    line += *line == '\n';
    if (strncmp(line, word, length) == 0) return strtoull(line + length, NULL, 10);
    if (*line == 0) break;
  }
  return 0;
}

static void read_net(int file, struct kernel* into) {
  const char* line = contents(file);
  while ((line = strchr(line, ':')) != NULL) {
    unsigned long long in = 0, in_packets = 0, out = 0, out_packets = 0;
    if (sscanf(line + 1, "%llu %llu %*u %*u %*u %*u %*u %*u %llu %llu", &in, &in_packets, &out,
               &out_packets) == 4) {
      into->received_bytes += in;
      into->received_packets += in_packets;
      into->sent_bytes += out;
      into->sent_packets += out_packets;
    }
    ++line;
  }
}

int main(int argc, char** argv) {
  const long every_ms = argc > 1 ? atol(argv[1]) : 100;
  const long turns = argc > 2 ? atol(argv[2]) * 1000 / every_ms : -1;
  const int stat = open("/proc/stat", O_RDONLY), memory = open("/proc/meminfo", O_RDONLY);
  const int paging = open("/proc/vmstat", O_RDONLY), net = open("/proc/net/dev", O_RDONLY);
  void* const place = zero_malloc_in(ZERO_SYSTEM, zero_whole_size(sizeof(struct kernel)));
  if (stat < 0 || memory < 0 || paging < 0 || net < 0 || every_ms < 1) {
    fprintf(stderr, "kernel_metrics: /proc cannot be read, or the interval is no number\n");
    return 1;
  }
  if (!place || zero_publish(place, &kKernel, "") != 0 || zero_connect(NULL) != 0) {
    fprintf(stderr, "kernel_metrics: %s\n", zero_error());
    return 1;
  }
  puts("publishing");
  fflush(stdout);
  const struct timespec pause = {every_ms / 1000, every_ms % 1000 * 1000000};
  for (long turn = 0; turn != turns; ++turn) {
    struct kernel now;
    memset(&now, 0, sizeof now);
    unsigned long long user = 0, nice = 0, system = 0, idle = 0, wait = 0;
    sscanf(contents(stat), "cpu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &wait);
    now.user_ticks = user + nice;
    now.system_ticks = system;
    now.idle_ticks = idle;
    now.wait_ticks = wait;
    now.interrupts = after("intr ");
    now.switches = after("ctxt ");
    now.forks = after("processes ");
    now.running = after("procs_running ");
    contents(memory);
    now.free_bytes = after("MemFree:") * 1024;
    now.cached_bytes = after("Cached:") * 1024;
    contents(paging);
    now.faults = after("pgfault ");
    now.major_faults = after("pgmajfault ");
    read_net(net, &now);
    zero_write(place, &now, sizeof now);
    nanosleep(&pause, NULL);
  }
  return 0;
}
