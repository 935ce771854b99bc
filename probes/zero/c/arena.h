#ifndef GREYNIC_ZERO_ARENA_H
#define GREYNIC_ZERO_ARENA_H

/* An arena from the inside. What the monitor sees is in the mapped memory; how it is given out is
 * kept here, in memory of the process, so that no reader can be misled by it. */

#include <pthread.h>
#include <stdbool.h>

#include "greynic_zero.h"
#include "greynic_zero_format.h"

enum { ZERO_ORDERS = 32, ZERO_LEAST_ORDER = 6, ZERO_SCHEMA_PLACES = 256 };

/* What has ended and waits until no monitor needs it. */
struct zero_retired {
  uint64_t when_ns;
  uint32_t row;
  uint32_t unit; /* of its block + 1; 0: memory of others */
};

struct zero_known_schema {
  const zero_schema* schema;
  uint64_t offset;
};

struct zero_arena {
  pthread_mutex_t mutex;
  struct zero_header* header; /* the arena's first byte */
  int file;                   /* -1: memory of others */
  uint64_t linger_ns;
  uint64_t data_used;
  uint64_t last_instance;
  uint32_t free_block[ZERO_ORDERS]; /* unit + 1 */
  uint32_t* next_block;             /* by unit; unit + 1 */
  uint32_t* row_of;                 /* by unit: row + 1 */
  uint8_t* order_of;                /* by unit; 0: no block begins here */
  uint32_t free_row;                /* row + 1 */
  uint32_t* next_row;
  struct zero_retired* retired; /* a ring of row_capacity */
  uint64_t retired_begin, retired_end;
  struct zero_known_schema known[ZERO_SCHEMA_PLACES]; /* by address; a miss costs a search */
};

static inline char* zero_base(const zero_arena* arena) { return (char*)arena->header; }
static inline struct zero_row* zero_rows(const zero_arena* arena) {
  return (struct zero_row*)(zero_base(arena) + arena->header->rows_offset);
}
static inline void zero_store(uint64_t* word, uint64_t value) {
  __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

/* Notes why, for zero_error(), and gives -error. */
int zero_refuse(int error, const char* format, ...) __attribute__((format(printf, 2, 3)));
uint64_t zero_clock_ns(int clock);
void zero_fill_identity(struct zero_header* header);
/* "key=\"value\",..." */
bool zero_good_labels(const char* labels);
bool zero_good_name(const char* name);

/* With the mutex held: the offset of a schema, written when it is new; 0: refused. */
uint64_t zero_schema_offset(zero_arena* arena, const zero_schema* schema);
/* With the mutex held: the table changes between the two. */
void zero_begin_change(zero_arena* arena);
void zero_end_change(zero_arena* arena);
int zero_add_row(zero_arena* arena, const struct zero_row* row, const char* labels);
void zero_end_row(zero_arena* arena, uint32_t row, uint32_t unit);
/* With the mutex held: gives back what has ended for long enough. */
void zero_reclaim(zero_arena* arena);
/* With the mutex held: a block that begins at a multiple of its size, or of a page. */
void* zero_take_block(zero_arena* arena, size_t size);
/* Index of the block's first unit; -1: the arena gave out no such memory. */
int64_t zero_unit_of(const zero_arena* arena, const void* memory);

/* A memfd of so many bytes; -1 and errno. */
int zero_make_memory(const char* name, uint64_t bytes);
int zero_seal(int file);
/* So that nobody maps it to write any more; again does no harm. */
int zero_seal_writes(int file);

/* Of the process: its arena of a class, or NULL while there is none. */
zero_arena* zero_of_class(enum zero_class metric_class, bool make);
/* Puts what a static holds into the arena, and the arena's memory under it. */
int zero_claim_static(zero_arena* arena, struct zero_static* found);
/* After fork(), in the child: the same statics over the child's own memory. */
void zero_map_statics_again(const zero_arena* arena);
/* The link to the agent, told of new arenas; and after fork(). */
void zero_link_look(void);
void zero_link_after_fork(void);

#endif
