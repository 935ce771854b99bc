#include "unreachable_reason.h"

#include <fmt/core.h>
#include <grpc/support/log.h>

#include <cstdlib>

#include "greynic/agent/lab.h"

namespace greynic::agent {

bool is_final(std::string_view grpc_words) {
  return grpc_words.find("andshake") != std::string_view::npos ||
         grpc_words.find("peer certificate") != std::string_view::npos;
}

std::string why_unreached(std::string_view grpc_words, std::string_view program) {
  struct Cause {
    std::string_view words;
    std::string_view why;
  };
  constexpr Cause kCauses[] = {
      {"is not in peer certificate",
       "its certificate does not have that name; `greynic agent init DIR --name HOST` makes one "
       "with the names of all hosts"},
      {"ertificate verify failed",
       "its certificate is not of this lab, or is out of date; copy one directory of `greynic "
       "agent init` to every host"},
      {"EVP lib",
       "its certificate is of another lab; copy one directory of `greynic agent init` to every "
       "host"},
      {"wrong version number",
       "one side has certificates and the other has none; give both the lab's directory"},
      {"andshake failed",
       "the encrypted connection failed; both sides need the directory that one `greynic agent "
       "init` made"},
      {"ocket closed",
       "the other side closed the connection; both sides need certificates of the same lab, or "
       "none"},
      {"DNS resolution", "the name is not known here; check it, or give the address"},
      {"oute to host", "there is no route to it"},
      {"unreachable", "there is no route to it"},
  };
  if (grpc_words.find("onnection refused") != std::string_view::npos) {
    return fmt::format("nobody listens there; start `{}` on that host", program);
  }
  for (const Cause& cause : kCauses) {
    if (grpc_words.find(cause.words) != std::string_view::npos) return std::string(cause.why);
  }
  return fmt::format(
      "is `{}` running there, with certificates of the same lab, and no firewall in between?",
      program);
}

void silence_grpc() {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) {
    gpr_set_log_function([](gpr_log_func_args*) {});
  }
}

}  // namespace greynic::agent
