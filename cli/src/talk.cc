#include "talk.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "greynic/core/text.h"
#include "greynic/files/json_file.h"

namespace greynic::cli {
namespace {

void check_output(bool good) {
  if (good) return;
  throw LostOutput{{ErrorCode::kIo, fmt::format("standard output cannot be written: {}; what is "
                                                "missing there is lost",
                                                std::strerror(errno))}};
}

void write_output(std::string_view text) {
  check_output(std::fwrite(text.data(), 1, text.size(), stdout) == text.size());
}

/// Nobody is told when stderr is lost: there is nobody to tell.
void write_talk(std::string_view text) {
  const std::string line = printable(text) + "\n";
  (void)!std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

void put(std::string_view text) { write_output(printable(text)); }

void put_json(const nlohmann::json& document) { put(files::json_text(document, 1) + "\n"); }

void put_data(std::string_view text) {
  if (::isatty(STDOUT_FILENO) == 1) {
    put(text);
  } else {
    write_output(text);
  }
}

void flush_output() {
  check_output(std::fflush(stdout) == 0 && std::ferror(stdout) == 0);
  // Some file systems say only then that there is no room.
  const int copy = ::dup(STDOUT_FILENO);
  check_output(copy >= 0 && (::close(copy) == 0 || errno == EINTR));
}

void hold_standard_streams() {
  // A file that may not grow is like a full disk: who writes shall hear of it, and say so.
  std::signal(SIGXFSZ, SIG_IGN);
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    // Reading only: who writes to a stream that was closed shall hear of it.
    (void)!::open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY);
  }
}

int tell(const Error& error) {
  // Of what a file holds a message may quote names of any length, many times.
  constexpr std::size_t kMostBytes = 3500;
  write_talk("greynic: " + shortened(printable(error.message), kMostBytes));
  return exit_code(error.code);
}

void say(std::string_view line) { write_talk(line); }

void tell_infeasible(const std::vector<std::string>& lines, std::size_t left) {
  for (const std::string& line : lines) say("infeasible: " + line);
  if (left == 0) return;
  say(fmt::format(
      "{} infeasible tuples explained, {} not: the time was over; --deadline allows more",
      lines.size(), left));
}

}  // namespace greynic::cli
