#include "device/verbs_errors.h"

#include <fmt/core.h>

#include <cerrno>
#include <fstream>
#include <system_error>

namespace greynic::verbs {

tl::unexpected<Error> refused(std::string_view call, int error_number) {
  std::string hint;
  if (error_number == ENOMEM) {
    hint = "; if `ulimit -l` is not unlimited, raise it, else the device is out of this resource";
  }
  return fail(ErrorCode::kRefused,
              fmt::format("{}: {} (errno {}){}", call,
                          std::error_code(error_number, std::generic_category()).message(),
                          error_number, hint));
}

void log_destruction(std::string_view call, int error_number) noexcept {
  if (error_number == EIO || error_number == ENODEV) return;
  std::fprintf(stderr, "greynic: %.*s failed with errno %d\n", static_cast<int>(call.size()),
               call.data(), error_number);
}

std::string read_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace greynic::verbs
