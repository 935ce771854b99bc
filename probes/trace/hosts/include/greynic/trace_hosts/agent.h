#pragma once

/// `greynic trace agent`: traces one host for a collector on another, over gRPC with mutual TLS. Until a
/// collector has sent rules nothing is attached. Its counts go on, and it keeps the last ten minutes of
/// journeys, when the collector is gone; who comes next reads on from there. Other rules that find no
/// room beside what was counted begin a new trace. The kernel detaches the programs when the agent ends,
/// however it ends.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/result.h"

namespace greynic::trace_hosts {

struct AgentOptions {
  std::string listen = "127.0.0.1:18700";
  std::string certificates;         ///< directory of `greynic agent init`; empty: loopback only
  std::vector<std::string> places;  ///< patterns of places to look at; empty: all
  std::function<void(std::string_view)> tell;  ///< lines for a log
};

class Agent {
 public:
  /// Errors as agent::LabServer, and those of loading programs.
  [[nodiscard]] static Result<std::unique_ptr<Agent>> start(const AgentOptions& options);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  [[nodiscard]] const std::string& address() const;
  /// Empty while all is well; the tracer's last words otherwise.
  [[nodiscard]] std::string failure() const;

 private:
  struct State;
  explicit Agent(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace greynic::trace_hosts
