#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "directory.h"
#include "greynic/daemon/hang_up.h"
#include "greynic/monitor/host_link.h"
#include "link.h"

namespace greynic::monitor {
namespace {

/// So that an agent that floods leaves time for other hosts, and files for us.
constexpr int kMessagesPerLook = 256;
constexpr std::size_t kMostShown = 512;

/// What the agent shows comes as files through its socket.
class LocalLink final : public HostLink {
 public:
  explicit LocalLink(int socket) : socket_(socket) {}
  ~LocalLink() override {
    for (const auto& [incarnation, file] : shown_) ::close(file);
    if (directory_file_ >= 0) ::close(directory_file_);
    ::close(socket_);
  }
  LocalLink(const LocalLink&) = delete;
  LocalLink& operator=(const LocalLink&) = delete;

  Result<void> hear() override {
    bool gone = false;
    for (int i = 0; i < kMessagesPerLook; ++i) {
      const auto received = receive_message(socket_, gone);
      if (!received) break;
      // Only memory is closed here: whoever stands in the agent's place could hand over what lets wait.
      const bool is_memory = received->file >= 0 && ::fcntl(received->file, F_GET_SEALS) >= 0;
      if (received->message.kind != ZERO_LINK_SHOWN || !is_memory) {
        daemon::close_apart(received->file);
        return fail(ErrorCode::kIo, "the agent speaks another protocol");
      }
      const bool is_directory = received->message.row == UINT32_MAX;
      if (!is_directory && shown_.size() >= kMostShown) {
        ::close(received->file);
        return fail(ErrorCode::kIo, "the agent shows more arenas than it has");
      }
      int& file = is_directory
                      ? directory_file_
                      : shown_.try_emplace(received->message.incarnation, -1).first->second;
      if (file >= 0) ::close(file);
      file = received->file;
      if (!is_directory) continue;
      auto owners = DirectoryReader::open(::dup(file));
      if (!owners) return pass_on(owners);
      owners_.emplace(std::move(*owners));
    }
    if (gone) return fail(ErrorCode::kIo, "the agent has ended");
    return {};
  }

  Result<std::unique_ptr<zero::Source>> directory() override {
    if (directory_file_ < 0) return nullptr;
    return zero::map_memory(::dup(directory_file_));
  }

  /// A file is given once: who has it keeps it.
  Result<std::unique_ptr<zero::Source>> arena(std::uint64_t incarnation) override {
    const auto found = shown_.find(incarnation);
    if (found == shown_.end()) return nullptr;
    const int file = found->second;
    shown_.erase(found);
    pid_t owner = 0;
    const auto rows = owners_->look();
    if (!rows) {
      ::close(file);
      return pass_on(rows);
    }
    for (const DirectoryReader::Row& row : *rows) {
      if (row.row.incarnation == incarnation) owner = static_cast<pid_t>(row.row.pid);
    }
    return zero::map_memory(file, owner);
  }

  std::vector<std::uint64_t> shown() const override {
    std::vector<std::uint64_t> incarnations;
    for (const auto& [incarnation, file] : shown_) incarnations.push_back(incarnation);
    return incarnations;
  }

 private:
  int socket_;
  int directory_file_ = -1;
  std::optional<DirectoryReader> owners_;
  std::map<std::uint64_t, int> shown_;  ///< files of arenas that were not asked for yet
};

}  // namespace

Result<std::unique_ptr<HostLink>> local_link(const std::string& socket, std::uint32_t classes) {
  const int connected = connect_to(socket);
  if (connected < 0) {
    return fail(ErrorCode::kIo,
                fmt::format("no agent at {}: {}; start `greynic zero agent --socket {}`", socket,
                            std::strerror(errno), socket));
  }
  auto link = std::make_unique<LocalLink>(connected);
  zero_link_message message = make_message(ZERO_LINK_COLLECT);
  message.metric_class = classes;
  if (!send_message(connected, message)) return fail(ErrorCode::kIo, "the agent hung up");
  return link;
}

}  // namespace greynic::monitor
