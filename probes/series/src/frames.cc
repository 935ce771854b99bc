#include "frames.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace greynic::series {
namespace {

constexpr char kMagic[] = "GNSERIES";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeadBytes = 32;
constexpr std::size_t kFrameHeadBytes = 12;
constexpr std::size_t kMostFrameBytes = 512 << 20;

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
template <typename T>
T get(std::string_view in, std::size_t at) {
  T value;
  std::memcpy(&value, in.data() + at, sizeof value);
  return value;
}

std::uint32_t check_of(std::uint32_t kind, std::string_view payload) {
  uLong check = ::crc32(0, reinterpret_cast<const Bytef*>(&kind), sizeof kind);
  return static_cast<std::uint32_t>(::crc32(check, reinterpret_cast<const Bytef*>(payload.data()),
                                            static_cast<uInt>(payload.size())));
}

/// A file that is read from the front.
class Input {
 public:
  explicit Input(const std::string& path) : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Input() {
    if (file_ >= 0) ::close(file_);
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;
  [[nodiscard]] bool is_open() const { return file_ >= 0; }
  [[nodiscard]] bool is_regular() const {
    struct stat status {};
    return ::fstat(file_, &status) == 0 && S_ISREG(status.st_mode);
  }
  [[nodiscard]] std::uint64_t size() const {
    struct stat status {};
    return ::fstat(file_, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
  }
  /// False at the end of the file.
  bool read(std::string& into, std::size_t bytes) {
    into.resize(bytes);
    for (std::size_t done = 0; done < bytes;) {
      const ssize_t got = ::read(file_, into.data() + done, bytes - done);
      if (got <= 0) return false;
      done += static_cast<std::size_t>(got);
    }
    return true;
  }

 private:
  int file_;
};

}  // namespace

std::string file_head(FileKind kind, std::uint64_t number, std::int64_t step_ns) {
  std::string out(kMagic, 8);
  put(out, kVersion);
  put(out, static_cast<std::uint32_t>(kind));
  put(out, number);
  put(out, step_ns);
  return out;
}

void put_frame(std::string& out, FrameKind kind, std::string_view payload) {
  const auto number = static_cast<std::uint32_t>(kind);
  put(out, static_cast<std::uint32_t>(payload.size()));
  put(out, check_of(number, payload));
  put(out, number);
  out += payload;
}

Result<void> read_frames(const std::string& path, FileKind kind, const TakeFrame& take) {
  Input input(path);
  if (!input.is_open()) {
    return fail(ErrorCode::kIo,
                fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  }
  const auto damaged = [&](std::uint64_t at, std::string_view what) {
    return fail(
        ErrorCode::kBadInput,
        fmt::format("{}: at byte {}: {}; take the file away to read the others", path, at, what));
  };
  if (!input.is_regular()) {
    return fail(ErrorCode::kBadInput, path + ": is no file; take it away to read the others");
  }
  std::string bytes;
  const std::uint64_t size = input.size();
  if (!input.read(bytes, kHeadBytes)) {
    // A log that its writer had only begun holds nothing that was acknowledged.
    return kind == FileKind::kLog ? Result<void>() : damaged(0, "shorter than its head");
  }
  if (std::memcmp(bytes.data(), kMagic, 8) != 0) return damaged(0, "no file of a store of series");
  if (get<std::uint32_t>(bytes, 8) != kVersion) return damaged(8, "a version that is not known");
  if (get<std::uint32_t>(bytes, 12) != static_cast<std::uint32_t>(kind)) {
    return damaged(12, "another kind of file than its name says");
  }
  std::uint64_t at = kHeadBytes;
  for (;;) {
    const bool is_log = kind == FileKind::kLog;
    if (!input.read(bytes, kFrameHeadBytes)) {
      return is_log ? Result<void>() : damaged(at, "the end is missing");
    }
    const auto length = get<std::uint32_t>(bytes, 0);
    const auto check = get<std::uint32_t>(bytes, 4);
    const auto number = get<std::uint32_t>(bytes, 8);
    if (length > kMostFrameBytes || length > size - at) {
      return is_log ? Result<void>() : damaged(at, "a frame reaches beyond the end");
    }
    if (!input.read(bytes, length) || check_of(number, bytes) != check) {
      return is_log ? Result<void>() : damaged(at, "a frame has a wrong checksum");
    }
    const auto frame_kind = static_cast<FrameKind>(number);
    if (frame_kind == FrameKind::kEnd) return {};
    if (auto done = take(frame_kind, bytes); !done) return damaged(at, done.error().message);
    at += kFrameHeadBytes + length;
  }
}

}  // namespace greynic::series
