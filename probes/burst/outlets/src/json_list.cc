#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "greynic/burst_outlets/burst_outlets.h"
#include "greynic/files/json_file.h"

namespace greynic::burst_outlets {
namespace {

constexpr std::size_t kPiece = 1 << 20;
constexpr std::string_view kEmptyList =
    "\"bursts\": []";  // in no text of JSON: quotes have a \ there

}  // namespace

Result<JsonList> JsonList::open() {
  std::error_code error;
  const auto folder = std::filesystem::temp_directory_path(error);
  if (error) {
    return fail(ErrorCode::kBadInput,
                "there is no folder for temporary files: " + error.message() +
                    "; set TMPDIR to a folder with room for the list of bursts");
  }
  // Nobody can put a file of theirs in the place of this one.
  std::random_device random;
  auto file = files::OutputFile::open(
      folder / fmt::format(".greynic.bursts.{:08x}{:08x}", random(), random()));
  if (!file) return pass_on(file);
  return JsonList(std::move(*file));
}

void JsonList::add(const burst::Findings& findings, const burst::Burst& burst) {
  waiting_ += any_ ? ",\n  " : "\n  ";
  any_ = true;
  for (const char letter : files::json_text(to_json(findings, burst), 1)) {
    waiting_ += letter;
    if (letter == '\n') waiting_ += "  ";
  }
  flush(kPiece);
}

void JsonList::flush(std::size_t at_least) {
  if (waiting_.size() < at_least) return;
  if (written_) written_ = file_.write(waiting_);
  waiting_.clear();
}

Result<void> JsonList::finish(const burst::Findings& findings,
                              const std::function<void(std::string_view)>& put) {
  flush(0);
  if (!written_) {
    return fail(ErrorCode::kIo, written_.error().message +
                                    "; set TMPDIR to a folder with room for the list of bursts");
  }
  const std::string around = files::json_text(to_json(findings), 1);
  const std::size_t list_end = around.find(kEmptyList) + kEmptyList.size() - 1;
  put(std::string_view(around).substr(0, list_end));
  std::vector<char> piece(kPiece);
  for (off_t at = 0;;) {
    const ssize_t read = ::pread(file_.descriptor(), piece.data(), piece.size(), at);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return fail(ErrorCode::kIo, "the list of bursts cannot be read again");
    if (read == 0) break;
    put({piece.data(), static_cast<std::size_t>(read)});
    at += read;
  }
  if (any_) put("\n ");
  put(std::string_view(around).substr(list_end));
  put("\n");
  return {};
}

}  // namespace greynic::burst_outlets
