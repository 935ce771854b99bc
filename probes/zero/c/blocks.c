#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <time.h>

#include "arena.h"

/* Memory is given out in blocks of 64 bytes times a power of two. A block lies at a multiple of its
 * size, or of a page, in the data of the arena. */

static unsigned order_of_size(size_t size) {
  unsigned order = ZERO_LEAST_ORDER;
  while (order < ZERO_ORDERS && ((size_t)1 << order) < size) ++order;
  return order;
}

static void put_back(zero_arena* arena, uint32_t unit) {
  const unsigned order = arena->order_of[unit];
  arena->order_of[unit] = 0;
  arena->row_of[unit] = 0;
  arena->next_block[unit] = arena->free_block[order];
  arena->free_block[order] = unit + 1;
}

static void clear_words(void* memory, size_t bytes) {
  /* A monitor that is late may be reading: its copy is worth nothing, but no race. */
  for (uint64_t* word = memory; bytes >= sizeof *word; bytes -= sizeof *word) zero_store(word++, 0);
}

void zero_reclaim(zero_arena* arena) {
  if (arena->retired_begin == arena->retired_end) return;
  const uint64_t capacity = arena->header->row_capacity;
  const uint64_t now = zero_clock_ns(CLOCK_BOOTTIME);
  bool changed = false;
  while (arena->retired_begin != arena->retired_end) {
    const struct zero_retired* const oldest = &arena->retired[arena->retired_begin % capacity];
    if (now - oldest->when_ns < arena->linger_ns) break;
    if (!changed) zero_begin_change(arena);
    changed = true;
    struct zero_row* const row = zero_rows(arena) + oldest->row;
    const uint64_t generation = row->generation;
    uint64_t* const words = (uint64_t*)row;
    for (int line = 0; line < 4; ++line) zero_store(words + 8 * line, generation + 1);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    for (int word = 0; word < 32; ++word) {
      if (word % 8 != 0) zero_store(words + word, 0);
    }
    __atomic_thread_fence(__ATOMIC_RELEASE);
    for (int line = 0; line < 4; ++line) zero_store(words + 8 * line, generation + 2);
    arena->next_row[oldest->row] = arena->free_row;
    arena->free_row = oldest->row + 1;
    if (oldest->unit != 0) put_back(arena, oldest->unit - 1);
    ++arena->retired_begin;
  }
  if (changed) zero_end_change(arena);
}

void* zero_take_block(zero_arena* arena, size_t size) {
  if (size == 0 || size > ZERO_MOST_STRUCT_BYTES * 2) return NULL;
  zero_reclaim(arena);
  const unsigned order = order_of_size(size);
  const size_t bytes = (size_t)1 << order;
  char* const data = zero_base(arena) + arena->header->data_offset;
  if (arena->free_block[order] != 0) {
    const uint32_t unit = arena->free_block[order] - 1;
    arena->free_block[order] = arena->next_block[unit];
    arena->order_of[unit] = (uint8_t)order;
    clear_words(data + (size_t)unit * ZERO_LINE, bytes);
    return data + (size_t)unit * ZERO_LINE;
  }
  const uint64_t step = bytes < ZERO_PAGE ? bytes : ZERO_PAGE;
  const uint64_t begin = (arena->data_used + step - 1) / step * step;
  if (begin + bytes > arena->header->bytes - arena->header->data_offset) return NULL;
  arena->data_used = begin + bytes;
  arena->order_of[begin / ZERO_LINE] = (uint8_t)order;
  return data + begin;
}

int64_t zero_unit_of(const zero_arena* arena, const void* memory) {
  const char* const data = zero_base(arena) + arena->header->data_offset;
  const char* const end = zero_base(arena) + arena->header->bytes;
  const char* const at = memory;
  if (at < data || at >= end || (size_t)(at - data) % ZERO_LINE != 0) return -1;
  const int64_t unit = (at - data) / ZERO_LINE;
  return arena->order_of[unit] == 0 ? -1 : unit;
}

size_t zero_whole_size(size_t struct_size) { return (struct_size + 55) / 56 * ZERO_LINE; }

void* zero_arena_malloc(zero_arena* arena, size_t size) {
  pthread_mutex_lock(&arena->mutex);
  void* const memory = zero_take_block(arena, size);
  if (!memory) zero_store(&arena->header->refused, arena->header->refused + 1);
  pthread_mutex_unlock(&arena->mutex);
  if (!memory) {
    zero_refuse(ENOMEM, "the arena of %llu bytes has no room for %zu more",
                (unsigned long long)arena->header->bytes, size);
  }
  return memory;
}

int zero_arena_publish(zero_arena* arena, void* memory, const zero_schema* schema,
                       const char* labels) {
  pthread_mutex_lock(&arena->mutex);
  int done = 0;
  const int64_t unit = zero_unit_of(arena, memory);
  const size_t size = schema->layout == ZERO_WHOLE ? zero_whole_size(schema->size) : schema->size;
  if (unit < 0) {
    done = zero_refuse(EINVAL, "this memory is not from the arena; zero_adopt() takes others");
  } else if (arena->row_of[unit] != 0) {
    done = zero_refuse(EEXIST, "this memory is published already");
  } else if (size > (size_t)1 << arena->order_of[unit]) {
    done = zero_refuse(EINVAL, "the structure of %zu bytes is larger than its memory", size);
  } else {
    struct zero_row row = {.offset = (uint64_t)((char*)memory - zero_base(arena)),
                           .size = (uint32_t)size,
                           .segment = ZERO_IN_ARENA,
                           .schema = zero_schema_offset(arena, schema)};
    done = row.schema == 0 ? -EINVAL : zero_add_row(arena, &row, labels);
    if (done >= 0) arena->row_of[unit] = (uint32_t)done + 1;
  }
  pthread_mutex_unlock(&arena->mutex);
  return done < 0 ? done : 0;
}

int zero_arena_free(zero_arena* arena, void* memory) {
  pthread_mutex_lock(&arena->mutex);
  const int64_t unit = zero_unit_of(arena, memory);
  /* Row and memory go together: what is retired holds both. */
  if (unit >= 0 && arena->row_of[unit] == UINT32_MAX) {
    pthread_mutex_unlock(&arena->mutex);
    return zero_refuse(EINVAL, "this memory was freed already");
  }
  if (unit >= 0 && arena->row_of[unit] != 0) {
    zero_end_row(arena, arena->row_of[unit] - 1, (uint32_t)unit + 1);
    arena->row_of[unit] = UINT32_MAX;
  } else if (unit >= 0) {
    put_back(arena, (uint32_t)unit);
  }
  pthread_mutex_unlock(&arena->mutex);
  return unit >= 0 ? 0 : zero_refuse(EINVAL, "this memory is not from the arena");
}

int zero_arena_adopt(zero_arena* arena, const void* memory, const zero_schema* schema,
                     const char* labels) {
  pthread_mutex_lock(&arena->mutex);
  struct zero_row row = {.offset = (uint64_t)(uintptr_t)memory,
                         .size = schema->size,
                         .segment = ZERO_IN_OWNER,
                         .schema = zero_schema_offset(arena, schema)};
  int done = 0;
  if (schema->layout != ZERO_PLAIN || row.offset % 8 != 0) {
    done = zero_refuse(EINVAL, "memory of others is plain and begins at a multiple of 8");
  } else {
    done = row.schema == 0 ? -EINVAL : zero_add_row(arena, &row, labels);
  }
  pthread_mutex_unlock(&arena->mutex);
  return done < 0 ? done : 0;
}

int zero_arena_disown(zero_arena* arena, const void* memory) {
  pthread_mutex_lock(&arena->mutex);
  int ended = 0;
  for (uint64_t i = 0; i < arena->header->row_count; ++i) {
    const struct zero_row* const row = zero_rows(arena) + i;
    if (row->state != ZERO_ROW_LIVE || row->segment != ZERO_IN_OWNER ||
        row->offset != (uint64_t)(uintptr_t)memory) {
      continue;
    }
    /* Its memory may go at once, so there is no last value to keep. */
    zero_end_row(arena, (uint32_t)i, 0);
    ++ended;
  }
  pthread_mutex_unlock(&arena->mutex);
  return ended > 0 ? 0 : zero_refuse(EINVAL, "this memory was not adopted");
}
