#include "run/program.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

namespace greynic::lab {
namespace {

#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
#else
constexpr Elf64_Half kMachine = EM_NONE;
#endif

std::string search(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : "";
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path ? path : "/usr/local/bin:/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    struct stat status {};
    if (stat(candidate.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
        access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
  }
  return "";
}

Error refusal(const std::string& path, const std::string& why) {
  return {ErrorCode::kMissing,
          fmt::format("{}: {}, so the library that stands for libibverbs cannot be loaded into it; "
                      "run a program that is linked dynamically, under your own rights",
                      path, why)};
}

Result<void> check_rights(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    return fail(ErrorCode::kMissing, fmt::format("{}: {}", path, std::strerror(errno)));
  }
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid()) {
    return tl::unexpected(refusal(path, "it is set-uid"));
  }
  if ((status.st_mode & S_ISGID) != 0 && status.st_gid != getegid()) {
    return tl::unexpected(refusal(path, "it is set-gid"));
  }
  if (geteuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) {
    return tl::unexpected(refusal(path, "it has capabilities of its own"));
  }
  return {};
}

Result<void> check_elf(const std::string& path, std::ifstream& file) {
  Elf64_Ehdr header{};
  file.seekg(0);
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header) ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachine) {
    return tl::unexpected(refusal(path, "it is a program for another architecture"));
  }
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part{};
    file.seekg(static_cast<std::streamoff>(header.e_phoff + i * header.e_phentsize));
    if (!file.read(reinterpret_cast<char*>(&part), sizeof part)) break;
    if (part.p_type == PT_INTERP) return {};
  }
  return tl::unexpected(refusal(path, "it is linked statically"));
}

/// A script runs by the program of its first line.
Result<void> check(const std::string& path, int depth) {
  if (auto rights = check_rights(path); !rights) return rights;
  std::ifstream file(path, std::ios::binary);
  char magic[4] = {};
  // What may run, but not be read, is left to the kernel.
  if (!file.read(magic, sizeof magic)) return {};
  if (std::memcmp(magic, ELFMAG, SELFMAG) == 0) return check_elf(path, file);
  if (magic[0] != '#' || magic[1] != '!' || depth == 0) return {};
  file.seekg(2);
  std::string line;
  std::getline(file, line);
  std::istringstream words(line);
  std::string interpreter, word;
  words >> interpreter >> word;
  if (interpreter.ends_with("/env") && !word.empty() && word[0] != '-') interpreter = search(word);
  return interpreter.empty() ? Result<void>() : check(interpreter, depth - 1);
}

}  // namespace

Result<std::string> find_runnable(const std::string& name) {
  const std::string path = search(name);
  if (path.empty()) {
    return fail(ErrorCode::kMissing, fmt::format("{}: no such program; name one in PATH, or give "
                                                 "its path", name));
  }
  if (auto fits = check(path, 4); !fits) return pass_on(fits);
  return path;
}

}  // namespace greynic::lab
