#ifndef GREYNIC_ZERO_H
#define GREYNIC_ZERO_H

/* Metrics that cost the watched program nothing to read: they are plain memory in an arena, which
 * a monitor READs. Writing one is writing memory; no thread of yours runs for the monitor.
 *
 *   struct stats { uint64_t requests; double load; };
 *   static const zero_field kFields[] = {
 *     {"requests", ZERO_U64, ZERO_COUNTER, offsetof(struct stats, requests), 1, 0, "", "Taken", ""},
 *     {"load", ZERO_F64, ZERO_GAUGE, offsetof(struct stats, load), 1, 0, "", "Now", ""}};
 *   static const zero_schema kStats = {"server", "A server", kFields, 2, sizeof(struct stats),
 *                                      ZERO_PLAIN};
 *
 *   ZERO_INIT(struct stats, stats, kStats, "port=\"80\"");   // 1. a static, in section .zero_init
 *   struct stats* more = zero_malloc(sizeof *more);          // 2. memory from the arena
 *   zero_publish(more, &kStats, "port=\"81\"");
 *   void* call = zero_begin(&kStats, "id=\"7\"");             // 3. of a function of milliseconds
 *   zero_end(call);                                          //    its last values are kept
 *   zero_connect(NULL);                                      // hands the arenas to the agent
 *
 * An arena is a memfd that is sealed against cutting and against writers other than you. There is
 * one for each class. What has ended keeps its values for `linger`: a monitor that reads more often
 * loses none. Where there is no room the call fails and the arena counts it; nothing is overwritten.
 *
 * Errors: functions that return int give 0 or a negative error number, those that return a pointer
 * NULL; zero_error() says why in words. Thread-safe, but for one whole structure: one writer.
 * After fork() a child has arenas of its own, with the values of its parent.
 *
 * Not promised: fields of a plain structure are each whole, not all of the same moment.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum zero_class {
  ZERO_SYSTEM = 0,     /* of the machine */
  ZERO_PERSISTENT = 1, /* of a program, as long as it runs */
  ZERO_TIDAL = 2,      /* they come and go */
  ZERO_CLASSES = 3
};

enum zero_type {
  ZERO_U64 = 1,
  ZERO_I64 = 2,
  ZERO_F64 = 3,
  ZERO_U32 = 4,
  ZERO_I32 = 5,
  ZERO_F32 = 6,
  ZERO_U16 = 7,
  ZERO_U8 = 8
};

enum zero_kind { ZERO_COUNTER = 1, ZERO_GAUGE = 2, ZERO_HISTOGRAM = 3 };

enum zero_layout {
  ZERO_PLAIN = 0, /* a C structure as it is; each field is read whole */
  ZERO_WHOLE = 1  /* written by zero_write(); all fields are of one moment */
};

/* A field of a structure. Names are [a-zA-Z_:][a-zA-Z0-9_:.]*; labels are key="value",... */
typedef struct zero_field {
  const char* name;
  uint32_t type; /* enum zero_type */
  uint32_t kind; /* enum zero_kind */
  uint32_t offset;
  uint32_t count;     /* 1, or the length of an array; ZERO_HISTOGRAM_WORDS(bits) */
  uint32_t parameter; /* of a histogram: bits; else 0 */
  const char* unit;
  const char* help;
  const char* labels;
} zero_field;

typedef struct zero_schema {
  const char* name;
  const char* help;
  const zero_field* fields;
  uint32_t field_count;
  uint32_t size;   /* of the structure */
  uint32_t layout; /* enum zero_layout */
} zero_schema;

/* A log-linear histogram: words of 64 bits, the sum of all values and then the buckets. Values
 * below 2^bits have a bucket each; from there each doubling has 2^bits of them, so a value is known
 * to 1 part in 2^bits. */
#define ZERO_HISTOGRAM_BUCKETS(bits) ((size_t)(65 - (bits)) << (bits))
#define ZERO_HISTOGRAM_WORDS(bits) (1 + ZERO_HISTOGRAM_BUCKETS(bits))

static inline size_t zero_bucket(uint64_t value, unsigned bits) {
  if (value < (uint64_t)1 << bits) return (size_t)value;
  const unsigned top = 63 - (unsigned)__builtin_clzll(value);
  const unsigned shift = top - bits;
  return ((size_t)(shift + 1) << bits) + (size_t)((value >> shift) - ((uint64_t)1 << bits));
}
/* The smallest value of a bucket. */
static inline uint64_t zero_bucket_begin(size_t bucket, unsigned bits) {
  const size_t linear = (size_t)1 << bits;
  if (bucket < linear) return bucket;
  return (uint64_t)(linear + bucket % linear) << (bucket / linear - 1);
}

/* Changes of single words, safe from many threads. */
static inline void zero_add(uint64_t* word, uint64_t by) {
  __atomic_fetch_add(word, by, __ATOMIC_RELAXED);
}
static inline void zero_set(int64_t* word, int64_t to) {
  __atomic_store_n(word, to, __ATOMIC_RELAXED);
}
static inline void zero_set_f64(double* word, double to) {
  __atomic_store(word, &to, __ATOMIC_RELAXED);
}
static inline void zero_record(uint64_t* histogram, unsigned bits, uint64_t value) {
  zero_add(histogram, value);
  zero_add(histogram + 1 + zero_bucket(value, bits), 1);
}
/* Replaces all of a structure of layout ZERO_WHOLE; `value` is the plain structure of `size` bytes.
 * Wait-free. One writer at a time. */
void zero_write(void* memory, const void* value, size_t size);

/* ---- one arena; the functions further below use one for each class */

typedef struct zero_arena zero_arena;
typedef struct zero_arena_options {
  enum zero_class metric_class;
  uint64_t bytes;     /* 0: 2 MiB */
  uint32_t rows;      /* 0: one for each 512 bytes */
  uint64_t linger_ns; /* 0: 3 s; UINT64_MAX: 0 */
  const char* name;   /* NULL: the program's */
} zero_arena_options;

zero_arena* zero_arena_create(const zero_arena_options* options);
/* In memory of yours (zeros, aligned to 64 bytes), which outlives the arena. */
zero_arena* zero_arena_format(void* memory, const zero_arena_options* options);
/* Its memory goes with it; what has come from it must not be touched any more. */
void zero_arena_destroy(zero_arena* arena);
int zero_arena_file(const zero_arena* arena); /* the memfd; -1: memory of yours */
const void* zero_arena_memory(const zero_arena* arena);
uint64_t zero_arena_bytes(const zero_arena* arena);

/* Zeros, aligned to 64 bytes. A structure of layout ZERO_WHOLE needs zero_whole_size() bytes. */
void* zero_arena_malloc(zero_arena* arena, size_t size);
size_t zero_whole_size(size_t struct_size);
int zero_arena_publish(zero_arena* arena, void* memory, const zero_schema* schema,
                       const char* labels);
/* Ends the row, if it has one, and gives the memory back. */
int zero_arena_free(zero_arena* arena, void* memory);
/* Memory that is not of the arena: the monitor reads it in this process. It must stay where it is
 * until zero_arena_disown(). */
int zero_arena_adopt(zero_arena* arena, const void* memory, const zero_schema* schema,
                     const char* labels);
int zero_arena_disown(zero_arena* arena, const void* memory);

/* ---- the arenas of this process, made when they are first needed */

/* Sizes of the arena of a class; before its first use, else -EBUSY. */
int zero_configure(const zero_arena_options* options);

void* zero_malloc(size_t size); /* of class ZERO_PERSISTENT */
void* zero_malloc_in(enum zero_class metric_class, size_t size);
int zero_publish(void* memory, const zero_schema* schema, const char* labels);
int zero_free(void* memory);
int zero_adopt(enum zero_class metric_class, const void* memory, const zero_schema* schema,
               const char* labels);
int zero_disown(const void* memory);
/* zero_malloc_in(ZERO_TIDAL) and zero_publish in one; takes less than 2 us with zero_end(). */
void* zero_begin(const zero_schema* schema, const char* labels);
int zero_end(void* memory);

/* Hands the arenas to the agent, now and whenever it or an arena is new. NULL: the socket in
 * GREYNIC_ZERO_SOCKET, or /run/greynic/zero.sock. A thread of its own sleeps until the agent goes
 * or an arena comes. 0 also while no agent is there: it is asked for every second. */
int zero_connect(const char* socket_path);
void zero_disconnect(void);

/* Why the last call of this thread failed. */
const char* zero_error(void);

/* ---- statics */

#define ZERO_STATIC_MAGIC_A 0x5a45524f494e4954ull /* tells a static apart from other pages */
#define ZERO_STATIC_MAGIC_B 0x9d3c1f07b2e4a865ull
#define ZERO_PAGE 4096

struct zero_static {
  uint64_t magic_a, magic_b;
  const zero_schema* schema;
  const char* labels;
  uint64_t size;
  uint64_t claimed; /* set once a table has it */
  uint64_t reserved[2];
};

/* `VARIABLE` becomes a `TYPE*` to a static in pages of its own in the section .zero_init. They are
 * found when the program starts: in it and in its shared objects, stripped or not. */
#define ZERO_INIT(TYPE, VARIABLE, SCHEMA, LABELS)                                                \
  static union {                                                                                 \
    struct {                                                                                     \
      struct zero_static head;                                                                   \
      TYPE value;                                                                                \
    } in;                                                                                        \
    char pages[(sizeof(struct zero_static) + sizeof(TYPE) + ZERO_PAGE - 1) / ZERO_PAGE *         \
               ZERO_PAGE];                                                                       \
  } VARIABLE##_zero_pages                                                                        \
      __attribute__((section(".zero_init"), aligned(ZERO_PAGE), used)) = {                       \
          {{ZERO_STATIC_MAGIC_A, ZERO_STATIC_MAGIC_B, &(SCHEMA), (LABELS), sizeof(TYPE), 0,      \
            {0, 0}},                                                                             \
           {0}}};                                                                                \
  static TYPE* const VARIABLE __attribute__((unused)) = &VARIABLE##_zero_pages.in.value

/* Looks for statics again: after dlopen(). Gives how many are new, or a negative error number. */
int zero_scan(void);

#ifdef __cplusplus
}
#endif

#endif
