#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arena.h"

/* Statics in the section .zero_init. That is no C identifier, so the linker makes no symbols for
 * its ends: it is found by the section headers of the program and of each shared object. strip
 * keeps those; where they are gone all the same, each page of the writable segments is looked at. */

struct known_static {
  char* at;
  size_t bytes; /* of its pages */
  void* block;
  const zero_arena* arena;
  uint32_t row;
  bool seen;
};

static pthread_mutex_t scanning = PTHREAD_MUTEX_INITIALIZER;
static struct known_static* statics;
static size_t static_count;

static size_t pages_of(size_t bytes) { return (bytes + ZERO_PAGE - 1) / ZERO_PAGE * ZERO_PAGE; }

int zero_claim_static(zero_arena* arena, struct zero_static* found) {
  struct known_static* const more = realloc(statics, (static_count + 1) * sizeof *statics);
  if (!more) return zero_refuse(ENOMEM, "no memory for a static");
  statics = more;
  const size_t bytes = pages_of(sizeof *found + found->size);
  pthread_mutex_lock(&arena->mutex);
  struct zero_row row = {.size = (uint32_t)found->size,
                         .segment = ZERO_IN_ARENA,
                         .schema = zero_schema_offset(arena, found->schema)};
  void* const block = row.schema == 0 ? NULL : zero_take_block(arena, bytes);
  int done = block ? 0 : -ENOMEM;
  if (block) {
    memcpy(block, found, sizeof *found + found->size);
    struct zero_static* const copy = block;
    copy->claimed = 1;
    copy->schema = NULL; /* addresses are nobody's business */
    copy->labels = NULL;
    row.offset = (uint64_t)((char*)block - zero_base(arena)) + sizeof *found;
    const char* const labels = found->labels;
    /* An old size of 0 maps the same pages once more. */
    if (mremap(block, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, found) == MAP_FAILED) {
      done = zero_refuse(errno, "a static cannot be mapped: %s", strerror(errno));
    } else {
      done = zero_add_row(arena, &row, labels);
    }
  }
  pthread_mutex_unlock(&arena->mutex);
  if (done < 0) return done;
  statics[static_count++] =
      (struct known_static){(char*)found, bytes, block, arena, (uint32_t)done, true};
  return 1;
}

void zero_map_statics_again(const zero_arena* arena) {
  for (size_t i = 0; i < static_count; ++i) {
    if (statics[i].arena != arena) continue;
    mmap(statics[i].at, statics[i].bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
         arena->file, (char*)statics[i].block - zero_base(arena));
  }
}

/* A range of an object that is loaded, and whether one of its writable segments holds it. */
static bool is_writable(const struct dl_phdr_info* object, uintptr_t begin, size_t bytes) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* const segment = object->dlpi_phdr + i;
    const uintptr_t base = object->dlpi_addr + segment->p_vaddr;
    if (segment->p_type == PT_LOAD && (segment->p_flags & PF_W) && begin >= base &&
        begin - base <= segment->p_memsz && bytes <= segment->p_memsz - (begin - base)) {
      return true;
    }
  }
  return false;
}

/* A page may begin between the variables of others, where an address sanitizer lets nobody read. */
__attribute__((no_sanitize("address"))) static int scan_pages(
    const struct dl_phdr_info* object, uintptr_t begin, size_t bytes) {
  int found = 0;
  const uintptr_t first = (begin + ZERO_PAGE - 1) / ZERO_PAGE * ZERO_PAGE;
  for (uintptr_t at = first; at + sizeof(struct zero_static) <= begin + bytes; at += ZERO_PAGE) {
    struct zero_static* const head = (struct zero_static*)at;
    if (head->magic_a != ZERO_STATIC_MAGIC_A || head->magic_b != ZERO_STATIC_MAGIC_B) continue;
    if (head->claimed) {
      for (size_t i = 0; i < static_count; ++i) statics[i].seen |= statics[i].at == (char*)head;
      continue;
    }
    if (!is_writable(object, at, pages_of(sizeof *head + head->size)) || !head->schema ||
        head->schema->size != head->size || head->schema->layout != ZERO_PLAIN) {
      continue;
    }
    zero_arena* const arena = zero_of_class(ZERO_PERSISTENT, true);
    if (arena && zero_claim_static(arena, head) == 1) ++found;
  }
  return found;
}

/* 1: the section was found; 0: the object has none; -1: it has no section headers to tell. */
static int section_of(const char* path, uint64_t* address, uint64_t* bytes) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  struct stat status;
  if (file < 0) return -1;
  const size_t size = fstat(file, &status) == 0 ? (size_t)status.st_size : 0;
  const char* const image = size < sizeof(ElfW(Ehdr))
                                ? MAP_FAILED
                                : mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (image == MAP_FAILED) return -1;
  const ElfW(Ehdr)* const head = (const ElfW(Ehdr)*)image;
  int answer = -1;
  if (memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 && head->e_shnum > 0 &&
      head->e_shentsize == sizeof(ElfW(Shdr)) && head->e_shoff <= size &&
      head->e_shnum * sizeof(ElfW(Shdr)) <= size - head->e_shoff &&
      head->e_shstrndx < head->e_shnum) {
    const ElfW(Shdr)* const sections = (const ElfW(Shdr)*)(image + head->e_shoff);
    const ElfW(Shdr)* const names = sections + head->e_shstrndx;
    static const char kName[] = ".zero_init";
    answer = 0;
    for (unsigned i = 0; i < head->e_shnum; ++i) {
      if (names->sh_offset > size || names->sh_size > size - names->sh_offset ||
          sections[i].sh_name > names->sh_size ||
          names->sh_size - sections[i].sh_name < sizeof kName ||
          memcmp(image + names->sh_offset + sections[i].sh_name, kName, sizeof kName) != 0) {
        continue;
      }
      *address = sections[i].sh_addr;
      *bytes = sections[i].sh_size;
      answer = 1;
    }
  }
  munmap((void*)image, size);
  return answer;
}

static int look_at_object(struct dl_phdr_info* object, size_t bytes_of_info, void* count) {
  (void)bytes_of_info;
  const char* const path = object->dlpi_name[0] ? object->dlpi_name : "/proc/self/exe";
  uint64_t address = 0, bytes = 0;
  const int answer = section_of(path, &address, &bytes);
  if (answer == 1 && is_writable(object, object->dlpi_addr + address, bytes)) {
    *(int*)count += scan_pages(object, object->dlpi_addr + address, bytes);
    return 0;
  }
  for (int i = 0; answer != 0 && i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* const segment = object->dlpi_phdr + i;
    if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_W)) continue;
    *(int*)count += scan_pages(object, object->dlpi_addr + segment->p_vaddr, segment->p_filesz);
  }
  return 0;
}

int zero_scan(void) {
  pthread_mutex_lock(&scanning);
  for (size_t i = 0; i < static_count; ++i) statics[i].seen = false;
  int found = 0;
  dl_iterate_phdr(look_at_object, &found);
  for (size_t i = 0; i < static_count;) {
    if (statics[i].seen) {
      ++i;
      continue;
    }
    /* Its object was unloaded: its last values stay for as long as those of others. */
    zero_arena* const arena = (zero_arena*)statics[i].arena;
    pthread_mutex_lock(&arena->mutex);
    zero_end_row(arena, statics[i].row, (uint32_t)zero_unit_of(arena, statics[i].block) + 1);
    pthread_mutex_unlock(&arena->mutex);
    statics[i] = statics[--static_count];
  }
  pthread_mutex_unlock(&scanning);
  return found;
}

/* Before main(), and before most constructors of C++. */
__attribute__((constructor(1000))) static void scan_at_start(void) { zero_scan(); }
