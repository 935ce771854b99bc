#include "words.h"

#include <bpf/libbpf.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <vector>

namespace greynic::bpf {
namespace {

thread_local std::string* listening = nullptr;

int take_words(libbpf_print_level level, const char* format, va_list words) {
  if (level == LIBBPF_DEBUG || listening == nullptr) return 0;
  char line[8192];
  const int length = std::vsnprintf(line, sizeof line, format, words);
  if (length > 0) listening->append(line, std::min<std::size_t>(length, sizeof line - 1));
  return length;
}

/// The verifier's complaint is what stands before its statistics, behind thousands of lines of what
/// it accepted. The printed log begins by itself, so a line that does not fit is cut at the front.
std::string last_lines(const std::string& text, std::size_t count) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    for (const char* noise : {"libbpf: prog '", "libbpf: failed to load", "processed ",
                              "-- END PROG LOAD LOG", "libbpf: failed to guess"}) {
      if (line.find(noise) == 0) line.clear();
    }
    if (!line.empty()) lines.push_back(std::move(line));
  }
  std::string joined;
  for (std::size_t i = lines.size() - std::min(count, lines.size()); i < lines.size(); ++i) {
    joined += (joined.empty() ? "" : "; ") + lines[i];
  }
  return joined;
}

}  // namespace

std::string warnings_of(const std::function<void()>& call) {
  static std::once_flag once;
  std::call_once(once, [] { libbpf_set_print(take_words); });
  std::string words;
  listening = &words;
  call();
  listening = nullptr;
  return words;
}

tl::unexpected<Error> kernel_said_no(const std::string& what, int error,
                                     const std::string& warnings) {
  if (access("/sys/kernel/btf/vmlinux", R_OK) != 0 &&
      (error == ESRCH || error == ENOENT || error == EINVAL)) {
    return fail(ErrorCode::kMissing,
                what +
                    ": this kernel gives no type information (/sys/kernel/btf/vmlinux); it needs "
                    "CONFIG_DEBUG_INFO_BTF, as Debian's kernels have it");
  }
  if ((error == EPERM || error == EACCES) && geteuid() != 0) {
    return fail(ErrorCode::kMissing,
                fmt::format("{}: {}; run as root or with CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN",
                            what, std::strerror(error)));
  }
  const std::string words = last_lines(warnings, 3);
  return fail(ErrorCode::kRefused,
              fmt::format("{}: the kernel refused: {}{}", what, std::strerror(error),
                          words.empty() ? "" : " (" + words + ")"));
}

}  // namespace greynic::bpf
