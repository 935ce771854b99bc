#include "greynic/trace_hosts/agent.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <fstream>
#include <mutex>
#include <thread>

#include "greynic/agent/lab.h"
#include "greynic/daemon/leases.h"
#include "greynic/trace/clock.h"
#include "greynic/trace/tracer.h"
#include "trace_hosts.grpc.pb.h"
#include "wire.h"

namespace greynic::trace_hosts {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTend{20};
constexpr std::chrono::milliseconds kTurn{1};
constexpr std::chrono::minutes kKept{10};
constexpr std::size_t kMostKept = 200'000;
constexpr int kMostSent = 20'000;  // in one answer
constexpr std::chrono::seconds kTryAgain{2};
constexpr std::chrono::minutes kLongestSilence{60};

/// The tracer, its last journeys, and what a collector asks of them.
class Desk {
 public:
  Result<void> open(const std::vector<std::string>& places) {
    places_ = places;
    if (auto done = start({}); !done) return done;
    std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), machine_);
    thread_ = std::thread([this] { follow(); });
    return {};
  }
  ~Desk() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }

  /// Rules that name what is not here are left out, and tried again every few seconds.
  void set_rules(const wire::SetRulesRequest& request, wire::SetRulesReply& reply) {
    auto rules = trace::parse_rules(request.text(), request.source());
    if (!rules) return write(rules.error(), *reply.mutable_fault());
    const std::lock_guard lock(mutex_);
    const bool others = text_ != request.text();
    text_ = request.text();
    wanted_ = std::move(*rules);
    since_ = Clock::now();
    std::map<std::uint32_t, std::string> left_out;
    if (const auto done = enforce(left_out, others && is_full()); !done) {
      return write(done.error(), *reply.mutable_fault());
    }
    for (const auto& [rule, why] : left_out) {
      reply.add_left_out(rule);
      reply.add_left_out_why(why);
    }
  }

  void read(std::uint64_t behind, wire::ReadReply& reply) {
    const std::lock_guard lock(mutex_);
    reply.set_session(session_);
    reply.set_machine(machine_);
    const auto report = tracer_->report();
    if (!report) return write(report.error(), *reply.mutable_fault());
    write(*report, reply);
    const std::uint64_t first = std::max(behind + 1, first_number_);
    reply.set_first_number(first);
    for (std::uint64_t at = first - first_number_; at < events_.size(); ++at) {
      if (reply.events_size() >= kMostSent) break;
      write(events_[at].event, *reply.add_events());
    }
  }

  [[nodiscard]] std::string failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  struct Kept {
    Clock::time_point since;
    trace::JourneyEvent event;
  };

  void keep(const trace::JourneyEvent& event) {
    events_.push_back({Clock::now(), event});
    while (events_.size() > kMostKept || events_.front().since + kKept < Clock::now()) {
      events_.pop_front();
      ++first_number_;
    }
  }

  Result<void> start(const trace::Rules& rules) {
    auto made = trace::Tracer::start(
        rules, [this](const trace::JourneyEvent& event) { keep(event); }, places_);
    if (!made) return pass_on(made);
    tracer_ = std::move(*made);
    events_.clear();
    first_number_ = 1;
    session_ = daemon::unguessable_id();
    return {};
  }

  /// No room for another flow: those of earlier rules have it all.
  [[nodiscard]] bool is_full() const {
    const auto report = tracer_->report();
    return report && report->summary.folded > 0;
  }

  /// A trace that has no room left is begun anew: who asks for other rules finds it as empty as the
  /// first one did.
  Result<void> enforce(std::map<std::uint32_t, std::string>& left_out, bool anew = false) {
    trace::Rules fitting = wanted_;
    fitting.rules.clear();
    fitting.window = wanted_.window.later(Clock::now() - since_);
    for (std::uint32_t i = 0; i < wanted_.rules.size(); ++i) {
      trace::Rules one = wanted_;
      one.rules = {wanted_.rules[i]};
      const auto plan = trace::make_plan(one, tracer_->topology());
      if (plan) fitting.rules.push_back(wanted_.rules[i]);
      if (!plan) left_out[i] = plan.error().message;
    }
    missing_ = left_out.size();
    tried_ = Clock::now();
    if (anew) return start(fitting);
    auto done = tracer_->change_rules(fitting);
    // It knows more names of rules than it can number.
    if (!done && done.error().code == ErrorCode::kTooBig) return start(fitting);
    return done;
  }

  void follow() {
    while (!over_) {
      {
        const std::lock_guard lock(mutex_);
        if (const auto done = tracer_->tend(kTend); !done) failure_ = done.error().message;
        if (missing_ > 0 && Clock::now() - tried_ > kTryAgain) try_again();
      }
      std::this_thread::sleep_for(kTurn);  // a mutex is not fair: callers get theirs now
    }
  }

  /// What a rule names may have come meanwhile; journeys are forgotten only if something did.
  void try_again() {
    tried_ = Clock::now();
    std::size_t missing = 0;
    for (const trace::Rule& rule : wanted_.rules) {
      trace::Rules one = wanted_;
      one.rules = {rule};
      if (!trace::make_plan(one, tracer_->topology())) ++missing;
    }
    std::map<std::uint32_t, std::string> left_out;
    if (missing != missing_) (void)enforce(left_out);
  }

  mutable std::mutex mutex_;
  std::vector<std::string> places_;
  std::unique_ptr<trace::Tracer> tracer_;
  std::string text_;  ///< of the rules
  trace::Rules wanted_;
  Clock::time_point since_;  ///< these rules
  std::size_t missing_ = 0;
  Clock::time_point tried_;
  std::deque<Kept> events_;
  std::uint64_t first_number_ = 1;  ///< of the first of them
  std::uint64_t session_ = 0;
  std::string machine_;
  std::string failure_;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

class Service final : public wire::TraceAgent::Service {
 public:
  Service(Desk& desk, agent::LabServer& lab) : desk_(desk), lab_(lab) {}

  grpc::Status SetRules(grpc::ServerContext* context, const wire::SetRulesRequest* request,
                        wire::SetRulesReply* reply) override {
    if (auto status = admit(*context); !status.ok()) return status;
    reply->set_protocol(kProtocol);
    if (request->protocol() != kProtocol) {
      write(Error{ErrorCode::kIo, "the agent is of another version; install the same on both"},
            *reply->mutable_fault());
    } else {
      desk_.set_rules(*request, *reply);
    }
    return grpc::Status::OK;
  }

  grpc::Status Clock(grpc::ServerContext* context, const wire::ClockRequest*,
                     wire::ClockReply* reply) override {
    const trace::CountedTime now = trace::counted_now();
    if (auto status = admit(*context); !status.ok()) return status;
    reply->set_now_ns(now.ns);
    reply->set_count_before(now.first);
    reply->set_count_behind(now.last);
    return grpc::Status::OK;
  }

  grpc::Status Read(grpc::ServerContext* context, const wire::ReadRequest* request,
                    wire::ReadReply* reply) override {
    if (auto status = admit(*context); !status.ok()) return status;
    desk_.read(request->behind(), *reply);
    return grpc::Status::OK;
  }

 private:
  grpc::Status admit(const grpc::ServerContext& context) {
    return lab_.admit(agent::caller_of(context));
  }

  Desk& desk_;
  agent::LabServer& lab_;
};

}  // namespace

struct Agent::State {
  Desk desk;
  std::unique_ptr<agent::LabServer> server;
};

Agent::Agent(std::unique_ptr<State> state) : state_(std::move(state)) {}
Agent::~Agent() { state_->server.reset(); }
const std::string& Agent::address() const { return state_->server->address(); }
std::string Agent::failure() const { return state_->desk.failure(); }

Result<std::unique_ptr<Agent>> Agent::start(const AgentOptions& options) {
  auto state = std::make_unique<State>();
  agent::LabServer::Options lab;
  lab.program = "greynic trace agent";
  lab.listen = options.listen;
  lab.certificates = options.certificates;
  lab.longest_silence = kLongestSilence;
  lab.make_service = [raw = state.get()](agent::LabServer& server) {
    return std::make_unique<Service>(raw->desk, server);
  };
  lab.tell = options.tell;
  if (auto good = agent::LabServer::check_address(lab); !good) return pass_on(good);
  if (auto done = state->desk.open(options.places); !done) return pass_on(done);
  auto server = agent::LabServer::start(std::move(lab));
  if (!server) return pass_on(server);
  state->server = std::move(*server);
  return std::unique_ptr<Agent>(new Agent(std::move(state)));
}

}  // namespace greynic::trace_hosts
