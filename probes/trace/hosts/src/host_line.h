#pragma once

/// The line to the agent of one host: its rules, its clock, its counts and journeys.

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "greynic/agent/lab.h"
#include "greynic/trace/clock.h"
#include "greynic/trace_hosts/collector.h"
#include "trace_hosts.grpc.pb.h"

namespace greynic::trace_hosts {

class HostLine {
 public:
  [[nodiscard]] static Result<HostLine> open(const HostSpec& host, const std::string& certificates);

  /// All calls from now on end within so long together: an agent that answers each of them late holds
  /// those who wait for other hosts no longer than one that does not answer.
  void give(std::chrono::milliseconds patience);
  /// Which rules the host has no use for, and why, by their index.
  [[nodiscard]] Result<std::map<std::uint32_t, std::string>> set_rules(const std::string& text,
                                                                       const std::string& source);
  /// So many round trips, none of them if the host has our clock.
  [[nodiscard]] Result<void> compare_clocks(int trips);
  struct News {
    std::vector<trace::JourneyEvent> events;
    std::uint64_t forgotten = 0;  ///< by the agent, before we asked
    bool anew = false;            ///< the agent was started since: it has no rules
  };
  [[nodiscard]] Result<News> read();

  [[nodiscard]] const HostSpec& host() const { return host_; }
  [[nodiscard]] const trace::Report& report() const { return report_; }
  /// How their clock is known: "ours: the same kernel".
  [[nodiscard]] std::string clock() const;
  /// A time of theirs in our clock, and how far it may be off.
  [[nodiscard]] std::pair<std::int64_t, double> ours(std::int64_t theirs_ns) const;

 private:
  HostLine() = default;
  template <typename Request, typename Reply>
  [[nodiscard]] Result<void> call(
      grpc::Status (wire::TraceAgent::Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
      const Request& request, Reply& reply);

  HostSpec host_;
  std::optional<agent::LabClient> client_;
  std::unique_ptr<wire::TraceAgent::Stub> stub_;
  trace::ClockFit clock_;
  trace::SharedCounter counter_;
  bool same_clock_ = false;
  std::uint64_t session_ = 0;
  std::uint64_t behind_ = 0;  ///< the last event that we have
  trace::Report report_;
  std::chrono::system_clock::time_point deadline_;
};

}  // namespace greynic::trace_hosts
