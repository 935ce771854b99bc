#include "greynic/agent/agent.h"

#include <atomic>
#include <thread>

#include "agent_service.h"
#include "greynic/agent/lab.h"
#include "greynic/verbs/resources.h"

namespace greynic::agent {
namespace {

constexpr std::chrono::milliseconds kLookAtStop{100};

}  // namespace

struct Agent::State {
  explicit State(const AgentOptions& asked)
      : desk(verbs::local_peer(asked.device, asked.port, asked.gid_rule), asked.longest_run,
             asked.tell) {}

  RunDesk desk;
  std::atomic<std::uint64_t> calls = 0;
  std::atomic<LabServer*> serving = nullptr;  ///< once it has begun
  std::unique_ptr<LabServer> server;

  std::unique_ptr<grpc::Service> service(LabServer& lab) {
    return std::make_unique<AgentService>(
        desk, [&lab](const Caller& caller) { return lab.admit(caller); }, calls);
  }
  /// Ends leases.
  void look_at_desk() {
    LabServer* const lab = serving;
    if (lab == nullptr) return;
    desk.look([lab](const std::string& connection) { return lab->is_open(connection); },
              [lab](const std::string& owner) { return lab->is_revoked(owner); });
  }
};

Agent::Agent(std::unique_ptr<State> state) : state_(std::move(state)) {}

Agent::~Agent() {
  state_->desk.interrupt();
  state_->server.reset();
}

const std::string& Agent::address() const { return state_->server->address(); }
std::uint64_t Agent::calls() const { return state_->calls; }

Result<std::unique_ptr<Agent>> Agent::start(const AgentOptions& options) {
  LabServer::Options lab;
  lab.program = "greynic agent";
  lab.listen = options.listen;
  lab.certificates = options.certificates;
  // A run is silent for as long as it lasts.
  lab.longest_silence = options.longest_run + std::chrono::minutes(10);
  lab.tell = options.tell;
  if (auto good = LabServer::check_address(lab); !good) return pass_on(good);
  // Opened once here, so that a missing device or GID is told now and not at the first run.
  const auto device = verbs::Device::open(options.device, options.port);
  if (!device) return pass_on(device);
  if (const auto port = device->port_state(); port && port->active && port->ethernet) {
    const auto entries = device->gids();
    if (!entries) return pass_on(entries);
    if (const auto gid = verbs::choose_gid(*entries, options.gid_rule); !gid) {
      return gid.error().while_doing("choosing a GID of " + options.device);
    }
  }
  auto state = std::make_unique<State>(options);
  lab.make_service = [raw = state.get()](LabServer& server) { return raw->service(server); };
  lab.each_turn = [raw = state.get()] { raw->look_at_desk(); };
  auto server = LabServer::start(std::move(lab));
  if (!server) return pass_on(server);
  state->server = std::move(*server);
  state->serving = state->server.get();
  return std::unique_ptr<Agent>(new Agent(std::move(state)));
}

void Agent::serve(const std::atomic<bool>& stop) {
  while (!stop) std::this_thread::sleep_for(kLookAtStop);
}

}  // namespace greynic::agent
