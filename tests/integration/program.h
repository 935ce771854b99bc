#pragma once

/// Runs the program as its user would: a command line in, exit code and both outputs back.

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace greynic::integration {

/// The folder of the project.
inline const std::string kSource = GREYNIC_SOURCE_DIR;

struct Outcome {
  int exit_code = -1;
  std::string out;
  std::string err;
};

/// A folder that goes with the test.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/greynic_program_XXXXXX";
    if (mkdtemp(name) != nullptr) path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline Outcome greynic(const Folder& folder, const std::string& arguments) {
  const std::string command = std::string(GREYNIC_BINARY) + " " + arguments + " >" +
                              (folder / "out.txt") + " 2>" + (folder / "err.txt");
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of(folder / "out.txt"),
          text_of(folder / "err.txt")};
}

}  // namespace greynic::integration
