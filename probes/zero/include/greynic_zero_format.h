#ifndef GREYNIC_ZERO_FORMAT_H
#define GREYNIC_ZERO_FORMAT_H

/* The bytes of an arena: docs/formats/arena.md says the same in words. All numbers are little
 * endian. A writer of the arena keeps these rules, and a reader relies on nothing else:
 *
 *  - The epoch is odd while the table changes, and another even number after it.
 *  - Each 64-byte line of a row begins with the row's generation: odd while the row changes. A row
 *    whose lines all have the same even generation is whole.
 *  - Nothing changes where a row's values lie without the epoch moving before and after it. So
 *    values that were read before an epoch that is still the old one are those of the old table.
 *  - Schemas are never changed once a row names them.
 */

#include <stdint.h>

enum {
  ZERO_LINE = 64,
  ZERO_VERSION = 2,
  ZERO_KIND_ARENA = 1,
  ZERO_KIND_DIRECTORY = 2,
  ZERO_LABEL_LINES = 3,
  ZERO_LABEL_LINE_BYTES = 56,
  ZERO_MOST_LABEL_BYTES = 167, /* and a zero byte */
  ZERO_MOST_NAME_BYTES = 63,
  ZERO_MOST_FIELDS = 65536,
  ZERO_MOST_ROWS = 1 << 20,
};
#define ZERO_MAGIC "GNZERO02"
#define ZERO_MOST_ARENA_BYTES ((uint64_t)1 << 30)
#define ZERO_MOST_STRUCT_BYTES ((uint64_t)1 << 24)

struct zero_header {
  /* line 0: never changes */
  char magic[8];
  uint32_t version;
  uint32_t kind;
  uint64_t bytes;        /* of the whole arena */
  uint64_t boot_id[2];   /* of the kernel that runs the owner */
  uint64_t incarnation;  /* random, never 0; another one after each restart */
  uint32_t metric_class; /* enum zero_class */
  uint32_t row_bytes;    /* sizeof(struct zero_row) */
  uint64_t owner_pid;
  /* line 1: never changes */
  uint64_t rows_offset;
  uint64_t row_capacity;
  uint64_t schemas_offset;
  uint64_t schemas_bytes;
  uint64_t data_offset; /* to the end of the arena */
  uint64_t owner_start; /* field 22 of /proc/PID/stat: a pid may be used again */
  uint64_t reserved[2];
  /* line 2: moves */
  uint64_t epoch;
  uint64_t heartbeat_ns; /* CLOCK_BOOTTIME, whenever the owner or its agent touched the header */
  uint64_t row_count;    /* rows that were ever used; the others are zeros */
  uint64_t schemas_used;
  uint64_t refused; /* metrics that found no room */
  uint64_t ended;   /* rows that have ended so far */
  uint64_t moving[2];
  /* line 3 */
  char name[64]; /* of the program; ends with a zero byte */
};

enum zero_row_state { ZERO_ROW_FREE = 0, ZERO_ROW_LIVE = 1, ZERO_ROW_ENDED = 2 };
enum zero_segment { ZERO_IN_ARENA = 0, ZERO_IN_OWNER = 1 };

struct zero_row {
  uint64_t generation;
  uint64_t offset;   /* in the arena, or address in the owner's memory */
  uint32_t size;     /* bytes that hold the values */
  uint32_t segment;  /* enum zero_segment */
  uint64_t schema;   /* offset in the arena of its schema */
  uint64_t instance; /* never given twice in an arena */
  uint64_t begun_ns; /* CLOCK_REALTIME */
  uint64_t ended_ns; /* 0 while it lives */
  uint32_t state;    /* enum zero_row_state */
  uint32_t reserved;
  struct {
    uint64_t generation;
    char text[ZERO_LABEL_LINE_BYTES]; /* key="value",...: one text through all three lines */
  } label[ZERO_LABEL_LINES];
};

/* A schema: this head, then its fields, then their texts. Texts end with a zero byte and are named
 * by their offset in the schema. */
struct zero_schema_head {
  uint64_t check; /* FNV-1a, 64 bits, of all bytes after it */
  uint32_t bytes; /* of the schema, a multiple of 8 */
  uint32_t struct_bytes;
  uint32_t field_count;
  uint32_t layout; /* enum zero_layout */
  uint32_t name_at;
  uint32_t help_at;
};

struct zero_schema_field {
  uint32_t type; /* enum zero_type */
  uint32_t kind; /* enum zero_kind */
  uint32_t offset;
  uint32_t count;     /* words of a histogram; else 1, or the length of an array */
  uint32_t parameter; /* of a histogram: bits of its linear part */
  uint32_t name_at, unit_at, help_at, labels_at;
  uint32_t reserved;
};

/* A whole structure lies in lines: a version, odd while the owner writes, and 56 bytes of it. */
struct zero_line {
  uint64_t version;
  uint64_t values[7];
};

/* In a directory, rows are these; docs/formats/arena.md. */
enum zero_arena_state { ZERO_ARENA_LIVE = 1, ZERO_ARENA_ENDED = 2 };
struct zero_directory_row {
  uint64_t generation;
  uint64_t incarnation; /* of the arena */
  uint64_t bytes;
  uint64_t address; /* for READs; 0 where there is no device */
  uint32_t rkey;
  uint32_t metric_class;
  uint32_t pid;
  uint32_t uid;
  uint32_t state; /* enum zero_arena_state */
  uint32_t reserved;
  uint64_t ended_ns;
};

/* On the agent's socket (SOCK_SEQPACKET), one message each, with the arena's memfd beside it.
 * docs/formats/arena.md tells who says what. */
#define ZERO_LINK_MAGIC "GNZLINK1"
enum zero_link_kind {
  ZERO_LINK_ARENA = 1,   /* a program hands over an arena */
  ZERO_LINK_COLLECT = 2, /* a collector asks for all that it may read */
  ZERO_LINK_SHOWN = 3,   /* the agent shows an arena, or the directory, to a collector */
  ZERO_LINK_ANSWER = 4,  /* the agent has taken an arena, or says why not */
};
struct zero_link_message {
  char magic[8];
  uint32_t kind;
  uint32_t error;        /* of an answer: an error number; 0: taken */
  uint64_t incarnation;  /* of the arena, or of the directory */
  uint32_t metric_class; /* of the arena; COLLECT: a bit for each class that is asked for */
  uint32_t row;          /* SHOWN: in the directory; UINT32_MAX: it is the directory */
  char text[224];        /* a name or a reason; ends with a zero byte */
};

#ifdef __cplusplus
static_assert(sizeof(struct zero_header) == 4 * ZERO_LINE, "the header is four lines");
static_assert(sizeof(struct zero_row) == 4 * ZERO_LINE, "a row is four lines");
static_assert(sizeof(struct zero_directory_row) == ZERO_LINE, "an arena's row is one line");
#else
_Static_assert(sizeof(struct zero_header) == 4 * ZERO_LINE, "the header is four lines");
_Static_assert(sizeof(struct zero_row) == 4 * ZERO_LINE, "a row is four lines");
_Static_assert(sizeof(struct zero_directory_row) == ZERO_LINE, "an arena's row is one line");
#endif

#endif
