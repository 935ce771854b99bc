#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <time.h>

#include "arena.h"

void zero_begin_change(zero_arena* arena) {
  zero_store(&arena->header->epoch, arena->header->epoch + 1);
  /* No change may be seen by who still sees the old epoch. */
  __atomic_thread_fence(__ATOMIC_RELEASE);
}

void zero_end_change(zero_arena* arena) {
  __atomic_store_n(&arena->header->epoch, arena->header->epoch + 1, __ATOMIC_RELEASE);
}

/* Copies a row over another, line by line behind its generation. */
static void switch_in(struct zero_row* to, const struct zero_row* from) {
  const uint64_t generation = to->generation;
  uint64_t* const words = (uint64_t*)to;
  const uint64_t* const source = (const uint64_t*)from;
  for (int line = 0; line < 4; ++line) zero_store(words + 8 * line, generation + 1);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  for (int word = 0; word < 32; ++word) {
    if (word % 8 != 0) zero_store(words + word, source[word]);
  }
  for (int line = 0; line < 4; ++line) {
    __atomic_store_n(words + 8 * line, generation + 2, __ATOMIC_RELEASE);
  }
}

int zero_add_row(zero_arena* arena, const struct zero_row* asked, const char* labels) {
  if (!labels) labels = "";
  const size_t length = strlen(labels);
  if (length > ZERO_MOST_LABEL_BYTES || !zero_good_labels(labels)) {
    return zero_refuse(EINVAL, "labels '%.80s' are not key=\"value\",... of at most %d bytes",
                       labels, ZERO_MOST_LABEL_BYTES);
  }
  zero_reclaim(arena);
  struct zero_header* const header = arena->header;
  uint32_t index = 0;
  if (arena->free_row != 0) {
    index = arena->free_row - 1;
    arena->free_row = arena->next_row[index];
  } else if (header->row_count < header->row_capacity) {
    index = (uint32_t)header->row_count;
  } else {
    zero_store(&header->refused, header->refused + 1);
    return zero_refuse(ENOSPC, "the table of %llu rows is full",
                       (unsigned long long)header->row_capacity);
  }
  struct zero_row row = *asked;
  row.state = ZERO_ROW_LIVE;
  row.instance = ++arena->last_instance;
  row.begun_ns = zero_clock_ns(CLOCK_REALTIME);
  for (size_t at = 0, line = 0; at < length; at += ZERO_LABEL_LINE_BYTES, ++line) {
    const size_t left = length - at;
    memcpy(row.label[line].text, labels + at,
           left < ZERO_LABEL_LINE_BYTES ? left : ZERO_LABEL_LINE_BYTES);
  }
  zero_begin_change(arena);
  switch_in(zero_rows(arena) + index, &row);
  if (index >= header->row_count) zero_store(&header->row_count, index + 1);
  zero_end_change(arena);
  return (int)index;
}

void zero_end_row(zero_arena* arena, uint32_t index, uint32_t unit) {
  struct zero_row row = zero_rows(arena)[index];
  row.state = ZERO_ROW_ENDED;
  row.ended_ns = zero_clock_ns(CLOCK_REALTIME);
  const uint64_t now = zero_clock_ns(CLOCK_BOOTTIME);
  zero_begin_change(arena);
  switch_in(zero_rows(arena) + index, &row);
  zero_store(&arena->header->ended, arena->header->ended + 1);
  zero_store(&arena->header->heartbeat_ns, now);
  zero_end_change(arena);
  arena->retired[arena->retired_end % arena->header->row_capacity] =
      (struct zero_retired){now, index, unit};
  ++arena->retired_end;
}

void zero_write(void* memory, const void* value, size_t size) {
  struct zero_line* const lines = memory;
  const size_t count = (size + 55) / 56;
  const uint64_t odd = lines[0].version + 1;
  for (size_t i = 0; i < count; ++i) zero_store(&lines[i].version, odd);
  /* No value may be seen before the versions are odd. */
  __atomic_thread_fence(__ATOMIC_RELEASE);
  const char* from = value;
  for (size_t at = 0; at < size; at += 8) {
    uint64_t word = 0;
    memcpy(&word, from + at, size - at < 8 ? size - at : 8);
    zero_store(&lines[at / 56].values[at % 56 / 8], word);
  }
  for (size_t i = 0; i < count; ++i) {
    __atomic_store_n(&lines[i].version, odd + 1, __ATOMIC_RELEASE);
  }
}
