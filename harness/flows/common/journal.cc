#include "common/journal.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "greynic/files/json_file.h"
#include "greynic/files/output_file.h"

namespace greynic::flows {
namespace {

std::string standard_folder() {
  if (const char* named = std::getenv("GREYNIC_STATE_DIR"); named != nullptr) return named;
  if (geteuid() == 0) return "/var/lib/greynic";
  const char* home = std::getenv("HOME");
  return std::string(home != nullptr ? home : "/tmp") + "/.local/state/greynic";
}

/// "ovs:br0" as a file name: anything but letters, digits, '.' and '-' becomes '_'.
std::string file_name(const std::string& device) {
  std::string name = device;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '-') c = '_';
  }
  return name + ".journal.json";
}

}  // namespace

Journal Journal::on_disk(const std::string& device, std::string folder) {
  Journal journal;
  if (folder.empty()) folder = standard_folder();
  journal.path_ = folder + "/" + file_name(device);
  return journal;
}

Journal Journal::in_memory() { return {}; }

Result<std::optional<JournalEntry>> Journal::read() const {
  if (path_.empty()) return kept_;
  std::error_code error;
  if (!std::filesystem::exists(path_, error)) return std::optional<JournalEntry>();
  auto text = files::read_text(path_);
  if (!text) return pass_on(text);
  auto document = files::parse_json(*text, path_);
  if (!document) return pass_on(document);
  JournalEntry entry;
  try {
    if (document->at("version") != 1) {
      return files::bad_value(path_, "/version", "must be 1: another greynic wrote this journal");
    }
    entry.finished = document->at("finished").get<bool>();
    entry.original = document->at("original").get<std::string>();
    entry.before = document->at("before").get<std::string>();
  } catch (const nlohmann::json::exception& wrong) {
    return files::bad_value(path_, "", fmt::format("is no journal of greynic: {}", wrong.what()));
  }
  return std::optional<JournalEntry>(std::move(entry));
}

Result<void> Journal::write(const JournalEntry& entry) {
  if (path_.empty()) {
    kept_ = entry;
    return {};
  }
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), error);
  if (error) {
    return fail(ErrorCode::kIo,
                fmt::format("cannot make the folder of {}: {}; name another one with "
                            "GREYNIC_STATE_DIR",
                            path_, error.message()));
  }
  const nlohmann::json document = {{"version", 1},
                                   {"finished", entry.finished},
                                   {"original", entry.original},
                                   {"before", entry.before}};
  return files::write_text(path_, files::json_text(document, 1) + "\n");
}

Result<void> Journal::clear() {
  kept_.reset();
  if (path_.empty()) return {};
  std::error_code error;
  std::filesystem::remove(path_, error);
  if (error)
    return fail(ErrorCode::kIo, fmt::format("cannot remove {}: {}", path_, error.message()));
  return {};
}

}  // namespace greynic::flows
