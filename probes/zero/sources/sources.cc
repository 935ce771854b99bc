#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "greynic/zero/source.h"
#include "greynic_zero_format.h"
#include "region/mapped_file.h"

namespace greynic::zero {
namespace {

/// Word by word, so that no word is torn and no piece overtakes another.
Result<void> copy_from(std::span<const std::byte> memory, const Piece& piece) {
  if (piece.in_owner || piece.offset > memory.size() ||
      piece.into.size() > memory.size() - piece.offset || piece.offset % 8 != 0 ||
      piece.into.size() % 8 != 0) {
    return fail(ErrorCode::kBadInput, "the arena is shorter than its table says");
  }
  const auto* from = reinterpret_cast<const std::uint64_t*>(memory.data() + piece.offset);
  std::byte* to = piece.into.data();
  for (std::size_t left = piece.into.size(); left > 0; left -= 8, ++from, to += 8) {
    const std::uint64_t word = __atomic_load_n(from, __ATOMIC_ACQUIRE);
    std::memcpy(to, &word, sizeof word);
  }
  return {};
}

tl::unexpected<Error> may_not_be_read(pid_t process) {
  return fail(
      ErrorCode::kMissing,
      fmt::format("process {} may not be read: run as its user, or with CAP_SYS_PTRACE", process));
}

/// process_vm_readv of many pieces; `base` is where offset 0 of the arena lies in the owner.
Result<void> read_process(pid_t process, std::uint64_t base, std::span<const Piece> pieces) {
  constexpr std::size_t kMost = 512;    // half of the kernel's limit
  std::array<iovec, kMost> into, from;  // not cleared: a READ of two pieces costs two
  for (std::size_t begin = 0; begin < pieces.size(); begin += kMost) {
    std::size_t count = 0, bytes = 0;
    for (const Piece& piece : pieces.subspan(begin, std::min(kMost, pieces.size() - begin))) {
      into[count] = {piece.into.data(), piece.into.size()};
      from[count++] = {reinterpret_cast<void*>((piece.in_owner ? 0 : base) + piece.offset),
                       piece.into.size()};
      bytes += piece.into.size();
    }
    const ssize_t got = ::process_vm_readv(process, into.data(), count, from.data(), count, 0);
    if (got == static_cast<ssize_t>(bytes)) continue;
    if (got < 0 && errno == EPERM) {
      return may_not_be_read(process);
    }
    return fail(ErrorCode::kIo,
                fmt::format("process {} cannot be read: {}", process,
                            got < 0 ? std::strerror(errno) : "a part of its memory is not there"));
  }
  return {};
}

class FileSource final : public Source {
 public:
  explicit FileSource(MappedFile mapping) : mapping_(std::move(mapping)) {}
  Result<void> read(std::span<const Piece> pieces) override {
    for (const Piece& piece : pieces) {
      if (auto got = copy_from(mapping_.bytes(), piece); !got) return got;
    }
    if (mapping_.lost()) {
      return fail(ErrorCode::kIo,
                  "the arena's file was cut while it was read; start its writer anew");
    }
    return {};
  }

 private:
  MappedFile mapping_;
};

/// A memfd that cannot shrink: its pages are there for good.
class MemorySource final : public Source {
 public:
  MemorySource(std::span<const std::byte> memory, bool mapped, pid_t owner)
      : memory_(memory), mapped_(mapped), owner_(owner) {}
  ~MemorySource() override {
    if (mapped_) ::munmap(const_cast<std::byte*>(memory_.data()), memory_.size());
  }
  Result<void> read(std::span<const Piece> pieces) override {
    for (const Piece& piece : pieces) {
      auto got = piece.in_owner ? read_process(owner_, 0, std::span(&piece, 1))
                                : copy_from(memory_, piece);
      if (!got) return got;
    }
    return {};
  }
  std::span<const std::byte> memory() const override { return memory_; }
  bool reads_owner() const override { return owner_ != 0; }

 private:
  std::span<const std::byte> memory_;
  bool mapped_;
  pid_t owner_;
};

class ProcessSource final : public Source {
 public:
  ProcessSource(pid_t process, FoundArena arena) : process_(process), arena_(arena) {}
  Result<void> read(std::span<const Piece> pieces) override {
    for (const Piece& piece : pieces) {
      if (!piece.in_owner &&
          (piece.offset > arena_.bytes || piece.into.size() > arena_.bytes - piece.offset)) {
        return fail(ErrorCode::kBadInput, "the arena is shorter than its table says");
      }
    }
    return read_process(process_, arena_.address, pieces);
  }
  bool reads_owner() const override { return true; }
  // A piece more costs some 100 ns, and a KiB 30 ns.
  std::uint64_t gap_bytes() const override { return 4096; }

 private:
  pid_t process_;
  FoundArena arena_;
};

}  // namespace

Result<std::unique_ptr<Source>> map_region(const std::string& path) {
  auto mapping = MappedFile::open(path);
  if (!mapping) return pass_on(mapping);
  return std::unique_ptr<Source>(std::make_unique<FileSource>(std::move(*mapping)));
}

Result<std::unique_ptr<Source>> map_memory(int file, pid_t owner) {
  struct stat status {};
  const int seals = ::fcntl(file, F_GET_SEALS);
  const bool sealed = seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
  void* memory = MAP_FAILED;
  // The owner of pages from a hugetlb pool could punch a hole that none can fill any more.
  struct statfs system {};
  const bool pooled = !sealed || ::fstatfs(file, &system) != 0 || system.f_type == HUGETLBFS_MAGIC;
  if (sealed && !pooled && ::fstat(file, &status) == 0 && status.st_size > 0 &&
      static_cast<std::uint64_t>(status.st_size) <= ZERO_MOST_ARENA_BYTES) {
    memory =
        ::mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_SHARED, file, 0);
  }
  ::close(file);
  if (memory == MAP_FAILED) {
    return fail(
        ErrorCode::kBadInput,
        "this is no arena: a memfd of at most 1 GiB, sealed with F_SEAL_SHRINK, of no hugetlb "
        "pool");
  }
  return std::unique_ptr<Source>(std::make_unique<MemorySource>(
      std::span(static_cast<const std::byte*>(memory), static_cast<std::size_t>(status.st_size)),
      true, owner));
}

std::unique_ptr<Source> memory_source(std::span<const std::byte> memory) {
  return std::make_unique<MemorySource>(memory, false, 0);
}

Result<std::vector<FoundArena>> find_arenas(pid_t process) {
  errno = 0;
  std::ifstream maps(fmt::format("/proc/{}/maps", process));
  if (!maps && (errno == EACCES || errno == EPERM)) return may_not_be_read(process);
  std::vector<FoundArena> found;
  std::string line;
  bool any = false;
  while (std::getline(maps, line)) {
    any = true;
    unsigned long begin = 0, end = 0, offset = 0;
    if (line.find("/memfd:greynic.zero") == std::string::npos ||
        std::sscanf(line.c_str(), "%lx-%lx %*4s %lx", &begin, &end, &offset) != 3 || offset != 0) {
      continue;
    }
    // Statics map single pages of an arena elsewhere; an arena begins with its header.
    zero_header header{};
    const Piece piece{true, begin, {reinterpret_cast<std::byte*>(&header), sizeof header}};
    if (auto got = read_process(process, 0, std::span(&piece, 1)); !got) return pass_on(got);
    if (std::memcmp(header.magic, ZERO_MAGIC, sizeof header.magic) == 0 &&
        header.bytes == end - begin) {
      found.push_back({begin, end - begin});
    }
  }
  if (!any) return fail(ErrorCode::kIo, fmt::format("process {} is not there", process));
  return found;
}

std::unique_ptr<Source> process_source(pid_t process, const FoundArena& arena) {
  return std::make_unique<ProcessSource>(process, arena);
}

}  // namespace greynic::zero
