#include "greynic/broker_sockets/run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>

#include "relay/relay.h"

namespace greynic::broker {
namespace {

using sockets::Relay;

/// Each connection has two rings: large ones while that many fit into a segment of 256 MiB.
constexpr std::size_t kRingBytes = 128 << 10, kSmallRingBytes = 32 << 10;
constexpr int kManyConnections = 1000;
/// Of the relay, beside one for each connection.
constexpr int kOtherDescriptors = 64;
/// After the command has ended, for what it has sent and is still on its way.
constexpr std::chrono::seconds kPatience{5};

/// Beside the program where it was built, in the library folder where it was installed.
Result<std::string> sockets_library() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const std::filesystem::path& path :
       {self / "libgreynic_sockets.so", self.parent_path() / GREYNIC_SOCKETS_LIBRARY}) {
    if (std::filesystem::exists(path, error)) return path.string();
  }
  return fail(ErrorCode::kMissing,
              fmt::format("libgreynic_sockets.so is neither in {} nor at {}: install greynic whole",
                          self.string(), (self.parent_path() / GREYNIC_SOCKETS_LIBRARY).string()));
}

/// A socket of packets in the abstract namespace.
int open_wishes(std::string& name) {
  name = fmt::format("greynic-relay/{}", getpid());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), bytes) == 0 &&
      listen(fd, 128) == 0) {
    return fd;
  }
  if (fd >= 0) close(fd);
  return -1;
}

/// The relay holds a descriptor for each connection; the command keeps the limit that it was given.
Result<rlimit> raise_descriptors(int connections) {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const auto needed = static_cast<rlim_t>(connections + kOtherDescriptors);
  if (before.rlim_cur >= needed) return before;
  const rlimit wanted{needed, std::max(needed, before.rlim_max)};
  if (setrlimit(RLIMIT_NOFILE, &wanted) != 0) {
    return fail(ErrorCode::kBadInput,
                fmt::format("--connections {}: this process may have {} descriptors; raise the "
                            "limit (`ulimit -Hn`), or ask for fewer",
                            connections, before.rlim_max));
  }
  return before;
}

/// The command, or -1. When it cannot be started it exits with 127 and says why.
pid_t start(const RunOptions& options, const std::string& library, const std::string& relay,
            const rlimit& descriptors) {
  std::vector<char*> argv;
  for (const std::string& word : options.words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const char* before = std::getenv("LD_PRELOAD");
  const std::string preload =
      before == nullptr || *before == '\0' ? library : library + ":" + before;
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  for (const int ignored : {SIGPIPE, SIGXFSZ}) signal(ignored, SIG_DFL);
  setrlimit(RLIMIT_NOFILE, &descriptors);
  setenv("LD_PRELOAD", preload.c_str(), 1);
  setenv(sockets::kRelayVariable, relay.c_str(), 1);
  execvp(argv[0], argv.data());
  fmt::print(stderr, "greynic broker run: {}: {}\n", argv[0], std::strerror(errno));
  _exit(127);
}

}  // namespace

Result<int> run_over_broker(const RunOptions& options) {
  const auto library = sockets_library();
  if (!library) return pass_on(library);
  const auto descriptors = raise_descriptors(options.connections);
  if (!descriptors) return pass_on(descriptors);
  const std::size_t ring = options.connections > kManyConnections ? kSmallRingBytes : kRingBytes;
  const greynic_broker_options wish{
      .segment_bytes = (static_cast<std::size_t>(options.connections) + 1) * 2 * ring + (1 << 20),
      .ring_bytes = ring};
  const std::unique_ptr<greynic_broker, decltype(&greynic_broker_close)> broker(
      greynic_broker_open(options.socket.c_str(), &wish), greynic_broker_close);
  if (broker == nullptr) {
    const std::string why = std::strerror(errno);
    const std::string reason = greynic_broker_reason();
    return fail(ErrorCode::kMissing,
                fmt::format("{}: {}; start `greynic broker`, or name its --socket", options.socket,
                            reason.empty() ? why : reason));
  }
  std::string name;
  const int wishes = open_wishes(name);
  if (wishes < 0) return fail(ErrorCode::kIo, fmt::format("a socket: {}", std::strerror(errno)));
  signal(SIGPIPE, SIG_IGN);
  const pid_t child = start(options, *library, name, *descriptors);
  if (child < 0) return fail(ErrorCode::kIo, fmt::format("fork: {}", std::strerror(errno)));
  Relay relay(broker.get(), options.via, wishes);
  int status = 0;
  bool ended = false, broken = false;
  std::chrono::steady_clock::time_point until;
  while (!ended || (relay.pair_count() > 0 && std::chrono::steady_clock::now() < until)) {
    if (!relay.turn(20)) {
      broken = true;
      break;
    }
    if (!ended && waitpid(child, &status, WNOHANG) == child) {
      ended = true;
      until = std::chrono::steady_clock::now() + kPatience;
    }
  }
  close(wishes);
  if (broken && !ended) {
    // Its connections are cut as the relay's sockets close; what it does then is its own matter.
    fmt::print(stderr, "greynic broker run: the broker at {} has ended\n", options.socket);
    kill(child, SIGTERM);
    (void)waitpid(child, &status, 0);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace greynic::broker
