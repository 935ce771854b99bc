#include "greynic/files/shipped.h"

#include <filesystem>
#include <system_error>
#include <vector>

namespace greynic::files {
namespace {

namespace fs = std::filesystem;

/// Where configs/ may be: relative to the program, so that an installed tree can be moved.
std::vector<fs::path> roots() {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  return {(program.parent_path() / GREYNIC_DATA_DIR).lexically_normal(), GREYNIC_SOURCE_DIR};
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

}  // namespace

std::string shipped_file(std::string_view folder, const std::string& name) {
  std::error_code ignored;
  if (name.empty() || fs::exists(name, ignored)) return name;
  for (const fs::path& root : roots()) {
    const fs::path there = root / "configs" / folder;
    for (const fs::path& path : {root / name, there / name}) {
      if (is_file(path)) return path.string();
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(there, ignored)) {
      if (entry.path().stem() == name && is_file(entry.path())) return entry.path().string();
    }
  }
  return name;
}

}  // namespace greynic::files
