#define _GNU_SOURCE
#include "arena.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

static _Thread_local char last_error[256] = "nothing has failed";

const char* zero_error(void) { return last_error; }

int zero_refuse(int error, const char* format, ...) {
  va_list values;
  va_start(values, format);
  vsnprintf(last_error, sizeof last_error, format, values);
  va_end(values);
  return -error;
}

uint64_t zero_clock_ns(int clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static uint64_t random_word(void) {
  uint64_t word = 0;
  while (word == 0) {
    if (getrandom(&word, sizeof word, 0) != (ssize_t)sizeof word) {
      word = zero_clock_ns(CLOCK_REALTIME) * 0x9e3779b97f4a7c15ull ^ (uint64_t)getpid();
    }
  }
  return word;
}

/* The text of a small file of /proc; empty when it cannot be read. */
static void read_small(const char* path, char* text, size_t bytes) {
  text[0] = 0;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  const ssize_t got = read(file, text, bytes - 1);
  text[got > 0 ? got : 0] = 0;
  close(file);
}

static void read_boot_id(uint64_t id[2]) {
  char text[64];
  read_small("/proc/sys/kernel/random/boot_id", text, sizeof text);
  id[0] = id[1] = 0;
  int digits = 0;
  for (const char* at = text; *at && digits < 32; ++at) {
    const char* const hex = "0123456789abcdef";
    const char* const found = strchr(hex, *at);
    if (!found) continue;
    id[digits / 16] = id[digits / 16] << 4 | (uint64_t)(found - hex);
    ++digits;
  }
}

static uint64_t own_start(void) {
  char text[1024];
  read_small("/proc/self/stat", text, sizeof text);
  const char* at = strrchr(text, ')');
  for (int field = 2; at && field < 22; ++field) at = strchr(at + 1, ' ');
  return at ? strtoull(at, NULL, 10) : 0;
}

void zero_fill_identity(struct zero_header* header) {
  read_boot_id(header->boot_id);
  header->incarnation = random_word();
  header->owner_pid = (uint64_t)getpid();
  header->owner_start = own_start();
  zero_store(&header->heartbeat_ns, zero_clock_ns(CLOCK_BOOTTIME));
}

int zero_make_memory(const char* name, uint64_t bytes) {
  const int file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return -1;
  if (ftruncate(file, (off_t)bytes) != 0) {
    close(file);
    return -1;
  }
  return file;
}

int zero_seal_writes(int file) { return fcntl(file, F_ADD_SEALS, F_SEAL_FUTURE_WRITE); }

/* Before Linux 6.2 an RDMA device reads only memory that its process may write: there an agent that
 * could write this process anyway gets a file without that seal (link.c). */
static bool seals_writes_at_once(void) {
  struct utsname kernel;
  int major = 0, minor = 0;
  return uname(&kernel) == 0 && sscanf(kernel.release, "%d.%d", &major, &minor) == 2 &&
         (major > 6 || (major == 6 && minor >= 2));
}

int zero_seal(int file) {
  if (fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) return -1;
  return seals_writes_at_once() ? zero_seal_writes(file) : 0;
}

static uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

/* What is asked for, with the defaults in place; false when it makes no arena. */
static bool complete(zero_arena_options* options) {
  if (options->bytes == 0) options->bytes = 2 << 20;
  options->bytes = round_up(options->bytes, ZERO_PAGE);
  if (options->rows == 0) options->rows = (uint32_t)(options->bytes / 512);
  if (options->linger_ns == 0) options->linger_ns = 3000000000ull;
  if (options->linger_ns == UINT64_MAX) options->linger_ns = 0;
  if (options->name == NULL) options->name = program_invocation_short_name;
  return options->metric_class < ZERO_CLASSES && options->rows <= ZERO_MOST_ROWS &&
         options->bytes <= ZERO_MOST_ARENA_BYTES &&
         options->bytes >= sizeof(struct zero_header) + options->rows * sizeof(struct zero_row) +
                               2 * ZERO_PAGE;
}

static void write_header(struct zero_header* header, const zero_arena_options* options) {
  memset(header, 0, sizeof *header);
  header->version = ZERO_VERSION;
  header->kind = ZERO_KIND_ARENA;
  header->bytes = options->bytes;
  header->metric_class = options->metric_class;
  header->row_bytes = sizeof(struct zero_row);
  header->rows_offset = sizeof *header;
  header->row_capacity = options->rows;
  header->schemas_offset = header->rows_offset + options->rows * sizeof(struct zero_row);
  const uint64_t left = options->bytes - header->schemas_offset;
  header->data_offset =
      round_up(header->schemas_offset + left / 4, left >= 8 * ZERO_PAGE ? ZERO_PAGE : ZERO_LINE);
  header->schemas_bytes = header->data_offset - header->schemas_offset;
  snprintf(header->name, sizeof header->name, "%s", options->name);
  zero_fill_identity(header);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  memcpy(header->magic, ZERO_MAGIC, sizeof header->magic);
}

static void forget(zero_arena* arena) {
  free(arena->next_block);
  free(arena->row_of);
  free(arena->order_of);
  free(arena->next_row);
  free(arena->retired);
  pthread_mutex_destroy(&arena->mutex);
  free(arena);
}

static zero_arena* start(void* memory, int file, const zero_arena_options* options) {
  zero_arena* const arena = calloc(1, sizeof *arena);
  if (!arena) return NULL;
  pthread_mutex_init(&arena->mutex, NULL);
  arena->header = memory;
  arena->file = file;
  arena->linger_ns = options->linger_ns;
  write_header(arena->header, options);
  const size_t units = (options->bytes - arena->header->data_offset) / ZERO_LINE;
  arena->next_block = calloc(units, sizeof *arena->next_block);
  arena->row_of = calloc(units, sizeof *arena->row_of);
  arena->order_of = calloc(units, 1);
  arena->next_row = calloc(options->rows, sizeof *arena->next_row);
  arena->retired = calloc(options->rows, sizeof *arena->retired);
  if (arena->next_block && arena->row_of && arena->order_of && arena->next_row && arena->retired) {
    return arena;
  }
  forget(arena);
  return NULL;
}

zero_arena* zero_arena_format(void* memory, const zero_arena_options* asked) {
  zero_arena_options options = *asked;
  if (!complete(&options) || (uintptr_t)memory % ZERO_LINE != 0) {
    zero_refuse(EINVAL, "no arena has these sizes: %llu bytes, %u rows",
                (unsigned long long)options.bytes, options.rows);
    return NULL;
  }
  zero_arena* const arena = start(memory, -1, &options);
  if (!arena) zero_refuse(ENOMEM, "no memory for an arena's books");
  return arena;
}

zero_arena* zero_arena_create(const zero_arena_options* asked) {
  zero_arena_options options = *asked;
  if (!complete(&options)) {
    zero_refuse(EINVAL, "no arena has these sizes: %llu bytes, %u rows",
                (unsigned long long)options.bytes, options.rows);
    return NULL;
  }
  const int file = zero_make_memory("greynic.zero", options.bytes);
  void* const memory = file < 0 ? MAP_FAILED
                                : mmap(NULL, options.bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                                       file, 0);
  zero_arena* const arena = memory == MAP_FAILED ? NULL : start(memory, file, &options);
  if (arena && zero_seal(file) == 0) return arena;
  zero_refuse(errno, "no memory of %llu bytes for an arena: %s",
              (unsigned long long)options.bytes, strerror(errno));
  if (arena) forget(arena);
  if (memory != MAP_FAILED) munmap(memory, options.bytes);
  if (file >= 0) close(file);
  return NULL;
}

void zero_arena_destroy(zero_arena* arena) {
  if (!arena) return;
  if (arena->file >= 0) {
    const int file = arena->file;
    munmap(arena->header, arena->header->bytes);
    close(file);
  }
  forget(arena);
}

int zero_arena_file(const zero_arena* arena) { return arena->file; }
const void* zero_arena_memory(const zero_arena* arena) { return arena->header; }
uint64_t zero_arena_bytes(const zero_arena* arena) { return arena->header->bytes; }
