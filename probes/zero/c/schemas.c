#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':';
}

bool zero_good_name(const char* name) {
  if (!name || !is_letter(*name)) return false;
  const char* at = name;
  while (is_letter(*at) || *at == '.' || (*at >= '0' && *at <= '9')) ++at;
  return *at == 0 && at - name <= ZERO_MOST_NAME_BYTES;
}

bool zero_good_labels(const char* at) {
  while (*at) {
    if (!is_letter(*at) || *at == ':') return false;
    while ((is_letter(*at) && *at != ':') || (*at >= '0' && *at <= '9')) ++at;
    if (at[0] != '=' || at[1] != '"') return false;
    for (at += 2; *at != '"'; ++at) {
      if (*at == '\\' && (at[1] == '\\' || at[1] == '"' || at[1] == 'n')) ++at;
      else if (*at == '\\' || (unsigned char)*at < 0x20 || *at == 0x7f) return false;
    }
    ++at;
    if (*at == ',' && at[1] != 0) ++at;
    else if (*at != 0) return false;
  }
  return true;
}

static uint32_t bytes_of_type(uint32_t type) {
  switch (type) {
    case ZERO_U64:
    case ZERO_I64:
    case ZERO_F64:
      return 8;
    case ZERO_U32:
    case ZERO_I32:
    case ZERO_F32:
      return 4;
    case ZERO_U16:
      return 2;
    case ZERO_U8:
      return 1;
    default:
      return 0;
  }
}

static const char* text_of(const char* text) { return text ? text : ""; }

static bool good_field(const zero_schema* schema, const zero_field* field) {
  const uint32_t bytes = bytes_of_type(field->type);
  if (bytes == 0 || field->count == 0 || field->offset % bytes != 0 ||
      field->offset > schema->size || (schema->size - field->offset) / bytes < field->count) {
    return false;
  }
  if (field->kind == ZERO_HISTOGRAM) {
    return field->type == ZERO_U64 && field->parameter <= 8 &&
           field->count == ZERO_HISTOGRAM_WORDS(field->parameter);
  }
  return (field->kind == ZERO_COUNTER || field->kind == ZERO_GAUGE) && field->parameter == 0;
}

static bool good_schema(const zero_schema* schema) {
  if (!schema || !zero_good_name(schema->name) || schema->field_count == 0 ||
      schema->field_count > ZERO_MOST_FIELDS || schema->size == 0 ||
      schema->size > ZERO_MOST_STRUCT_BYTES || schema->layout > ZERO_WHOLE) {
    zero_refuse(EINVAL, "the schema '%.63s' needs a name, a size of at most %llu bytes and fields",
                schema ? text_of(schema->name) : "",
                (unsigned long long)ZERO_MOST_STRUCT_BYTES);
    return false;
  }
  for (uint32_t i = 0; i < schema->field_count; ++i) {
    const zero_field* const field = schema->fields + i;
    if (zero_good_name(field->name) && zero_good_labels(text_of(field->labels)) &&
        good_field(schema, field)) {
      continue;
    }
    zero_refuse(EINVAL, "%s: field %u ('%.63s') has no good name, labels, type, or place in %u bytes",
                schema->name, i, text_of(field->name), schema->size);
    return false;
  }
  return true;
}

/* Appends a text to those of a schema that is being encoded. */
struct encoding {
  char* bytes;
  size_t used, room;
};

static uint32_t put_text(struct encoding* into, const char* text) {
  const size_t length = strlen(text_of(text)) + 1;
  const size_t at = into->used;
  if (into->used + length <= into->room) memcpy(into->bytes + at, text_of(text), length);
  into->used += length;
  return (uint32_t)at;
}

static uint64_t check_of(const char* bytes, size_t count) {
  uint64_t check = 0xcbf29ce484222325ull;
  for (size_t i = 0; i < count; ++i) check = (check ^ (unsigned char)bytes[i]) * 0x100000001b3ull;
  return check;
}

/* Encodes into the free room of the arena's schemas; gives the bytes, 0 when there is no room. */
static uint32_t encode(const zero_schema* schema, char* bytes, size_t room) {
  struct encoding into = {bytes, 0, room};
  into.used =
      sizeof(struct zero_schema_head) + schema->field_count * sizeof(struct zero_schema_field);
  if (into.used > room) return 0;
  struct zero_schema_head head = {.struct_bytes = schema->size,
                                  .field_count = schema->field_count,
                                  .layout = schema->layout};
  head.name_at = put_text(&into, schema->name);
  head.help_at = put_text(&into, schema->help);
  for (uint32_t i = 0; i < schema->field_count; ++i) {
    const zero_field* const field = schema->fields + i;
    const struct zero_schema_field encoded = {.type = field->type,
                                              .kind = field->kind,
                                              .offset = field->offset,
                                              .count = field->count,
                                              .parameter = field->parameter,
                                              .name_at = put_text(&into, field->name),
                                              .unit_at = put_text(&into, field->unit),
                                              .help_at = put_text(&into, field->help),
                                              .labels_at = put_text(&into, field->labels)};
    memcpy(bytes + sizeof head + i * sizeof encoded, &encoded, sizeof encoded);
  }
  const size_t whole = (into.used + 7) / 8 * 8;
  if (whole > room) return 0;
  memset(bytes + into.used, 0, whole - into.used);
  head.bytes = (uint32_t)whole;
  memcpy(bytes, &head, sizeof head);
  head.check = check_of(bytes + 8, whole - 8);
  memcpy(bytes, &head.check, sizeof head.check);
  return head.bytes;
}

/* One that was written before with the same bytes; 0: none. */
static uint64_t same_schema(const zero_arena* arena, const char* bytes, uint32_t length) {
  const struct zero_header* const header = arena->header;
  for (uint64_t at = 0; at < header->schemas_used;) {
    const char* const other = zero_base(arena) + header->schemas_offset + at;
    struct zero_schema_head head;
    memcpy(&head, other, sizeof head);
    if (head.bytes == length && memcmp(other, bytes, length) == 0) return header->schemas_offset + at;
    at += head.bytes;
  }
  return 0;
}

uint64_t zero_schema_offset(zero_arena* arena, const zero_schema* schema) {
  struct zero_known_schema* const place =
      &arena->known[((uintptr_t)schema >> 4) % ZERO_SCHEMA_PLACES];
  if (place->schema == schema && schema != NULL) return place->offset;
  if (!good_schema(schema)) return 0;
  struct zero_header* const header = arena->header;
  char* const bytes = zero_base(arena) + header->schemas_offset + header->schemas_used;
  const uint32_t length = encode(schema, bytes, header->schemas_bytes - header->schemas_used);
  if (length == 0) {
    zero_store(&header->refused, header->refused + 1);
    zero_refuse(ENOSPC, "%s: the arena has no room for this schema", schema->name);
    return 0;
  }
  uint64_t offset = same_schema(arena, bytes, length);
  if (offset == 0) {
    offset = header->schemas_offset + header->schemas_used;
    __atomic_store_n(&header->schemas_used, header->schemas_used + length, __ATOMIC_RELEASE);
  }
  place->schema = schema;
  place->offset = offset;
  return offset;
}
