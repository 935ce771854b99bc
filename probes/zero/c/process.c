#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arena.h"

/* The arenas of this process, one for each class. A fork()ed child gets copies of its own under the
 * same addresses, so that no pointer changes and no two processes write into one arena. */

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static zero_arena* arenas[ZERO_CLASSES];
static zero_arena_options wanted[ZERO_CLASSES];

static void before_fork(void) {
  pthread_mutex_lock(&making);
  for (int i = 0; i < ZERO_CLASSES; ++i) {
    if (arenas[i]) pthread_mutex_lock(&arenas[i]->mutex);
  }
}

static void after_fork(void) {
  for (int i = ZERO_CLASSES; i-- > 0;) {
    if (arenas[i]) pthread_mutex_unlock(&arenas[i]->mutex);
  }
  pthread_mutex_unlock(&making);
}

static bool copy_part(int file, const zero_arena* arena, uint64_t begin, uint64_t bytes) {
  while (bytes > 0) {
    const ssize_t done = pwrite(file, zero_base(arena) + begin, bytes, (off_t)begin);
    if (done <= 0) return false;
    begin += (uint64_t)done;
    bytes -= (uint64_t)done;
  }
  return true;
}

static bool make_own(zero_arena* arena) {
  const struct zero_header* const header = arena->header;
  const uint64_t bytes = header->bytes;
  const int file = zero_make_memory("greynic.zero", bytes);
  if (file < 0) return false;
  const bool copied =
      copy_part(file, arena, 0, header->rows_offset + header->row_count * sizeof(struct zero_row)) &&
      copy_part(file, arena, header->schemas_offset, header->schemas_used) &&
      copy_part(file, arena, header->data_offset, arena->data_used);
  if (!copied || mmap(arena->header, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
                      0) == MAP_FAILED) {
    close(file);
    return false;
  }
  close(arena->file);
  arena->file = file;
  zero_fill_identity(arena->header);
  zero_map_statics_again(arena);
  return zero_seal(file) == 0;
}

static void after_fork_in_child(void) {
  for (int i = 0; i < ZERO_CLASSES; ++i) {
    /* Without memory the child writes on into its parent's arena: wrong numbers, but no crash. */
    if (arenas[i]) make_own(arenas[i]);
  }
  after_fork();
  zero_link_after_fork();
}

zero_arena* zero_of_class(enum zero_class metric_class, bool make) {
  if ((unsigned)metric_class >= ZERO_CLASSES) {
    zero_refuse(EINVAL, "there is no class %d of metrics", (int)metric_class);
    return NULL;
  }
  zero_arena* arena = __atomic_load_n(&arenas[metric_class], __ATOMIC_ACQUIRE);
  if (arena || !make) return arena;
  static bool told_fork = false;
  bool made = false;
  pthread_mutex_lock(&making);
  arena = arenas[metric_class];
  if (!arena) {
    wanted[metric_class].metric_class = metric_class;
    arena = zero_arena_create(&wanted[metric_class]);
    if (!told_fork) told_fork = pthread_atfork(before_fork, after_fork, after_fork_in_child) == 0;
    made = arena != NULL;
    __atomic_store_n(&arenas[metric_class], arena, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&making);
  if (made) zero_link_look();
  return arena;
}

int zero_configure(const zero_arena_options* options) {
  if ((unsigned)options->metric_class >= ZERO_CLASSES) {
    return zero_refuse(EINVAL, "there is no class %d of metrics", (int)options->metric_class);
  }
  pthread_mutex_lock(&making);
  const bool late = arenas[options->metric_class] != NULL;
  if (!late) wanted[options->metric_class] = *options;
  pthread_mutex_unlock(&making);
  return late ? zero_refuse(EBUSY, "the arena of this class is in use already") : 0;
}

/* The arena that memory is from. */
static zero_arena* arena_of(const void* memory) {
  for (int i = 0; i < ZERO_CLASSES; ++i) {
    zero_arena* const arena = zero_of_class((enum zero_class)i, false);
    if (arena && (const char*)memory >= zero_base(arena) &&
        (const char*)memory < zero_base(arena) + arena->header->bytes) {
      return arena;
    }
  }
  zero_refuse(EINVAL, "this memory is not from zero_malloc()");
  return NULL;
}

void* zero_malloc_in(enum zero_class metric_class, size_t size) {
  zero_arena* const arena = zero_of_class(metric_class, true);
  return arena ? zero_arena_malloc(arena, size) : NULL;
}

void* zero_malloc(size_t size) { return zero_malloc_in(ZERO_PERSISTENT, size); }

int zero_publish(void* memory, const zero_schema* schema, const char* labels) {
  zero_arena* const arena = arena_of(memory);
  return arena ? zero_arena_publish(arena, memory, schema, labels) : -EINVAL;
}

int zero_free(void* memory) {
  zero_arena* const arena = arena_of(memory);
  return arena ? zero_arena_free(arena, memory) : -EINVAL;
}

int zero_adopt(enum zero_class metric_class, const void* memory, const zero_schema* schema,
               const char* labels) {
  zero_arena* const arena = zero_of_class(metric_class, true);
  return arena ? zero_arena_adopt(arena, memory, schema, labels) : -EINVAL;
}

int zero_disown(const void* memory) {
  for (int i = 0; i < ZERO_CLASSES; ++i) {
    zero_arena* const arena = zero_of_class((enum zero_class)i, false);
    if (arena && zero_arena_disown(arena, memory) == 0) return 0;
  }
  return zero_refuse(EINVAL, "this memory was not adopted");
}

void* zero_begin(const zero_schema* schema, const char* labels) {
  zero_arena* const arena = zero_of_class(ZERO_TIDAL, true);
  if (!arena) return NULL;
  const size_t size = schema->layout == ZERO_WHOLE ? zero_whole_size(schema->size) : schema->size;
  void* const memory = zero_arena_malloc(arena, size);
  if (memory && zero_arena_publish(arena, memory, schema, labels) != 0) {
    zero_arena_free(arena, memory);
    return NULL;
  }
  return memory;
}

int zero_end(void* memory) { return zero_free(memory); }
