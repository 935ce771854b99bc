#include <fmt/core.h>
#include <lzma.h>
#include <sys/stat.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "greynic/core/text.h"
#include "greynic/files/json_file.h"
#include "places.h"

namespace greynic::files {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 31;  ///< of a regular file
/// Of what does not say beforehand how much it is: packed files and streams, which may be endless.
constexpr std::size_t kMostUnannounced = std::size_t{96} << 20;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

tl::unexpected<Error> too_long(const std::string& name, std::size_t most) {
  return fail(ErrorCode::kTooBig,
              fmt::format("{}: holds more than {} MiB{}; split it", name, most >> 20,
                          most == kMostUnannounced ? " when it is unpacked or streamed" : ""));
}

Result<std::string> read_plain(const std::string& name) {
  const File file(std::fopen(name.c_str(), "rbe"));
  struct stat status {};
  if (!file || ::fstat(::fileno(file.get()), &status) != 0) {
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: cannot be opened: {}", name, std::strerror(errno)));
  }
  const bool regular = S_ISREG(status.st_mode);
  const std::size_t most = regular ? kMostBytes : kMostUnannounced;
  const auto announced = regular ? static_cast<std::size_t>(status.st_size) : 0;
  if (announced > most) return too_long(name, most);
  std::string text;
  text.reserve(announced);
  std::array<char, 65536> block{};
  while (const std::size_t got = std::fread(block.data(), 1, block.size(), file.get())) {
    text.append(block.data(), got);
    if (text.size() > most) return too_long(name, most);
  }
  if (std::ferror(file.get()) != 0) {
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: cannot be read: {}", name, std::strerror(errno)));
  }
  return text;
}

Result<std::string> unpack_xz(const std::string& packed, const std::string& name) {
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&stream, UINT64_MAX, LZMA_CONCATENATED) != LZMA_OK) {
    return fail(ErrorCode::kInternal, "the xz decoder cannot start");
  }
  const std::unique_ptr<lzma_stream, decltype(&lzma_end)> guard(&stream, &lzma_end);
  std::string text;
  std::array<char, 65536> block{};
  stream.next_in = reinterpret_cast<const std::uint8_t*>(packed.data());
  stream.avail_in = packed.size();
  lzma_ret state = LZMA_OK;
  while (state == LZMA_OK) {
    stream.next_out = reinterpret_cast<std::uint8_t*>(block.data());
    stream.avail_out = block.size();
    state = lzma_code(&stream, LZMA_FINISH);
    text.append(block.data(), block.size() - stream.avail_out);
    if (text.size() > kMostUnannounced) return too_long(name, kMostUnannounced);
  }
  if (state != LZMA_STREAM_END) {
    return fail(ErrorCode::kBadInput, fmt::format("{}: is no whole xz file; pack it again", name));
  }
  return text;
}

Result<std::string> read_gz(const std::string& name) {
  const std::unique_ptr<gzFile_s, decltype(&gzclose)> file(gzopen(name.c_str(), "rb"), &gzclose);
  if (!file) {
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: cannot be opened: {}", name, std::strerror(errno)));
  }
  std::string text;
  std::array<char, 65536> block{};
  int got = 0;
  while ((got = gzread(file.get(), block.data(), block.size())) > 0) {
    text.append(block.data(), static_cast<std::size_t>(got));
    if (text.size() > kMostUnannounced) return too_long(name, kMostUnannounced);
  }
  if (got < 0 || gzeof(file.get()) == 0) {
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: is no whole gzip file; pack it again", name));
  }
  return text;
}

Result<std::string> read_bytes(const std::filesystem::path& path) {
  const std::string name = path.string();
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return fail(ErrorCode::kBadInput, fmt::format("{}: is a folder; name a file in it", name));
  }
  if (path.extension() == ".gz") return read_gz(name);
  auto text = read_plain(name);
  if (!text || path.extension() != ".xz") return text;
  return unpack_xz(*text, name);
}

}  // namespace

Result<std::string> read_text(const std::filesystem::path& path) {
  auto text = read_bytes(path);
  if (!text) return text;
  if (const auto bad = bad_utf8(*text)) {
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: {}: is no UTF-8 text; save it as UTF-8, or name another file",
                            path.string(), place_of(*text, *bad)));
  }
  return text;
}

}  // namespace greynic::files
