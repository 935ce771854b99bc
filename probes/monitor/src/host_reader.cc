#include "greynic/monitor/host_reader.h"

#include <chrono>

#include "watched_host.h"

namespace greynic::monitor {

struct HostReader::State final : Taker {
  State(HostSpec spec, RemoteLinks links) : host(std::move(spec), *this, std::move(links)) {}

  void readings(const HostSpec&, std::uint64_t, const zero_header&,
                std::span<const zero::Reading> seen, std::int64_t) override {
    (*visit)(seen);
  }
  // Who asks is told by look().
  void ended(std::uint64_t) override {}
  void gap(const HostSpec&, std::int64_t, std::int64_t, const std::string&) override {}
  void tell(const std::string&) override {}

  const Visit* visit = nullptr;
  WatchedHost host;
};

HostReader::HostReader(HostSpec spec, RemoteLinks remote_links)
    : state_(std::make_unique<State>(std::move(spec), std::move(remote_links))) {}
HostReader::~HostReader() = default;

Result<void> HostReader::look(const Visit& visit) {
  using Clock = std::chrono::steady_clock;
  state_->visit = &visit;
  state_->host.look(std::chrono::nanoseconds(Clock::now().time_since_epoch()) /
                    std::chrono::nanoseconds(1));
  state_->visit = nullptr;
  if (state_->host.is_up()) return {};
  return fail(ErrorCode::kIo, state_->host.reason());
}

}  // namespace greynic::monitor
