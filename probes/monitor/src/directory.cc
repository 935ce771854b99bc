#include "directory.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <random>

#include "greynic/zero/table.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace greynic::monitor {
namespace {

constexpr std::uint64_t kBytes =
    sizeof(zero_header) + std::uint64_t{Directory::kRows} * sizeof(zero_directory_row);
constexpr int kTries = 64;

std::uint64_t boot_clock_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void store(std::uint64_t& word, std::uint64_t value) {
  std::atomic_ref(word).store(value, std::memory_order_release);
}

void fill_identity(zero_header& header) {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  std::getline(file, text);
  std::erase(text, '-');
  for (int i = 0; i < 2 && text.size() == 32; ++i) {
    header.boot_id[i] = std::stoull(text.substr(static_cast<std::size_t>(i) * 16, 16), nullptr, 16);
  }
  std::random_device random;
  while (header.incarnation == 0) {
    header.incarnation = std::uint64_t{random()} << 32 | random();
  }
  header.owner_pid = static_cast<std::uint64_t>(::getpid());
}

}  // namespace

Result<std::unique_ptr<Directory>> Directory::create() {
  const int file = ::memfd_create("greynic.zero.directory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  void* memory = MAP_FAILED;
  if (file >= 0 && ::ftruncate(file, static_cast<off_t>(kBytes)) == 0) {
    memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  if (memory == MAP_FAILED ||
      ::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE) != 0) {
    return fail(ErrorCode::kIo,
                fmt::format("no memory for the agent's directory: {}", std::strerror(errno)));
  }
  auto directory = std::unique_ptr<Directory>(new Directory(file, memory));
  zero_header& header = directory->header();
  header.version = ZERO_VERSION;
  header.kind = ZERO_KIND_DIRECTORY;
  header.bytes = kBytes;
  header.row_bytes = sizeof(zero_directory_row);
  header.rows_offset = sizeof header;
  header.row_capacity = kRows;
  header.schemas_offset = header.data_offset = kBytes;
  fill_identity(header);
  std::strcpy(header.name, "greynic zero agent");
  std::memcpy(header.magic, ZERO_MAGIC, sizeof header.magic);
  directory->beat();
  return directory;
}

Directory::~Directory() {
  ::munmap(memory_, kBytes);
  ::close(file_);
}

std::span<const std::byte> Directory::memory() const {
  return {static_cast<const std::byte*>(memory_), kBytes};
}

std::uint64_t Directory::incarnation() const { return header().incarnation; }

zero_directory_row& Directory::row(std::uint32_t index) const {
  return reinterpret_cast<zero_directory_row*>(static_cast<std::byte*>(memory_) +
                                               header().rows_offset)[index];
}

void Directory::change(std::uint32_t index, zero_directory_row to) {
  store(header().epoch, header().epoch + 1);
  zero_directory_row& at = row(index);
  const std::uint64_t generation = at.generation;
  store(at.generation, generation + 1);
  std::atomic_thread_fence(std::memory_order_release);
  std::array<std::uint64_t, sizeof to / 8> words{};
  std::memcpy(words.data(), &to, sizeof to);
  auto* const target = reinterpret_cast<std::uint64_t*>(&at);
  for (std::size_t i = 1; i < words.size(); ++i) store(target[i], words[i]);
  store(at.generation, generation + 2);
  store(header().epoch, header().epoch + 1);
}

std::optional<std::uint32_t> Directory::add(const zero_directory_row& added) {
  for (std::uint32_t i = 0; i < kRows; ++i) {
    if (row(i).state != 0) continue;
    change(i, added);
    if (i >= header().row_count) store(header().row_count, i + 1);
    return i;
  }
  store(header().refused, header().refused + 1);
  return std::nullopt;
}

void Directory::end(std::uint32_t index, std::uint64_t now_ns) {
  zero_directory_row ended = row(index);
  ended.state = ZERO_ARENA_ENDED;
  ended.ended_ns = now_ns;
  change(index, ended);
  store(header().ended, header().ended + 1);
}

void Directory::remove(std::uint32_t index) { change(index, {}); }

void Directory::beat() { store(header().heartbeat_ns, boot_clock_ns()); }

Result<DirectoryReader> DirectoryReader::open(int file) {
  auto source = zero::map_memory(file);
  if (!source) return pass_on(source);
  return open(std::move(*source));
}

Result<DirectoryReader> DirectoryReader::open(std::unique_ptr<zero::Source> source) {
  DirectoryReader reader;
  reader.source_ = std::move(source);
  if (auto got = reader.look(); !got) return pass_on(got);
  return reader;
}

Result<std::span<const DirectoryReader::Row>> DirectoryReader::look() {
  for (int attempt = 1;; ++attempt) {
    zero_header now{};
    const std::span<std::byte> bytes(reinterpret_cast<std::byte*>(&now), sizeof now);
    const zero::Piece first{false, 0, bytes};
    if (auto got = source_->read(std::span(&first, 1)); !got) return pass_on(got);
    const auto header = zero::parse_header(bytes, ZERO_KIND_DIRECTORY);
    if (!header) return pass_on(header);
    if (header_.incarnation != 0 && header->incarnation != header_.incarnation) {
      return fail(ErrorCode::kRefused, "the directory is of another agent now");
    }
    if (header_.incarnation != 0 && header->epoch == header_.epoch) {
      header_ = *header;  // the heartbeat moves
      return std::span<const Row>(rows_);
    }
    raw_.resize(header->row_count);
    const std::uint64_t epoch = header->epoch;
    const std::uint64_t rows_offset = header->rows_offset;
    const zero::Piece table[] = {{false, rows_offset, std::as_writable_bytes(std::span(raw_))},
                                 {false, 0, bytes}};
    if (auto got = source_->read(table); !got) return pass_on(got);
    if ((epoch % 2 != 0 || now.epoch != epoch) && attempt < kTries) continue;
    rows_.clear();
    for (std::uint32_t i = 0; i < raw_.size(); ++i) {
      const zero_directory_row& row = raw_[i];
      if (row.generation % 2 != 0 || row.state == 0) continue;
      if (row.state > ZERO_ARENA_ENDED || row.metric_class >= ZERO_CLASSES ||
          row.incarnation == 0) {
        return fail(ErrorCode::kBadInput, fmt::format("row {} of the directory is malformed", i));
      }
      rows_.push_back({i, row});
    }
    header_ = *header;
    return std::span<const Row>(rows_);
  }
}

}  // namespace greynic::monitor
