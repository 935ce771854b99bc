#include <fmt/core.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>

#include "greynic/daemon/log.h"
#include "greynic/remote/remote.h"
#include "protocol.h"
#include "sessions.h"

namespace greynic::remote {
namespace {

class ZeroService final : public wire::Zero::Service {
 public:
  ZeroService(Sessions& sessions, agent::LabServer& lab) : sessions_(sessions), lab_(lab) {}

  grpc::Status Attach(grpc::ServerContext* context, const wire::AttachRequest* request,
                      wire::AttachReply* reply) override {
    const agent::Caller caller = agent::caller_of(*context);
    if (auto status = lab_.admit(caller); !status.ok()) return status;
    reply->set_protocol(kProtocol);
    if (request->protocol() != kProtocol) return grpc::Status::OK;
    const auto lease =
        std::min(request->lease_seconds(), static_cast<std::uint64_t>(kLongestLease.count()));
    const auto opened = sessions_.open(caller, request->classes(),
                                       std::chrono::seconds(std::max<std::uint64_t>(lease, 1)),
                                       [this](const auto& one) { return lab_.is_open(one); });
    if (!opened) {
      write(opened.error(), *reply->mutable_fault());
    } else {
      reply->set_session(opened->session);
      reply->set_classes(opened->classes);
    }
    return grpc::Status::OK;
  }

  grpc::Status Read(grpc::ServerContext* context, const wire::ReadRequest* request,
                    wire::ReadReply* reply) override {
    const agent::Caller caller = agent::caller_of(*context);
    if (auto status = lab_.admit(caller); !status.ok()) return status;
    const Sessions::Asked asked{
        request->arena(),
        {request->offsets().data(), static_cast<std::size_t>(request->offsets_size())},
        {request->sizes().data(), static_cast<std::size_t>(request->sizes_size())}};
    const auto seen = sessions_.read(caller, request->session(), asked, *reply->mutable_values());
    if (!seen) write(seen.error(), *reply->mutable_fault());
    if (!seen || !*seen) reply->clear_values();
    reply->set_hidden(seen && !*seen);
    return grpc::Status::OK;
  }

  grpc::Status Connect(grpc::ServerContext* context, const wire::ConnectRequest* request,
                       wire::ConnectReply* reply) override {
    const agent::Caller caller = agent::caller_of(*context);
    if (auto status = lab_.admit(caller); !status.ok()) return status;
    const auto remote = remote::read(request->end());
    const auto joined = remote ? sessions_.connect(caller, request->session(), *remote)
                               : Result<Sessions::Joined>(pass_on(remote));
    if (!joined) {
      write(joined.error(), *reply->mutable_fault());
      return grpc::Status::OK;
    }
    write(joined->end, *reply->mutable_end());
    reply->set_keys_address(joined->keys.address);
    reply->set_keys_key(joined->keys.key);
    reply->set_keys_bytes(joined->keys.bytes);
    return grpc::Status::OK;
  }

  grpc::Status Keep(grpc::ServerContext* context, const wire::KeepRequest* request,
                    wire::KeepReply* reply) override {
    const agent::Caller caller = agent::caller_of(*context);
    if (auto status = lab_.admit(caller); !status.ok()) return status;
    const auto kept = sessions_.keep(caller, request->session(), request->arena());
    if (!kept) write(kept.error(), *reply->mutable_fault());
    reply->set_gone(kept && !*kept);
    return grpc::Status::OK;
  }

 private:
  Sessions& sessions_;
  agent::LabServer& lab_;
};

}  // namespace

Result<void> allow(std::string_view text, std::map<std::string, std::uint32_t>& allowed) {
  const std::size_t equals = text.find('=');
  const auto bad = [&] {
    return fail(ErrorCode::kBadInput,
                fmt::format("--allow {}: write NAME=CLASS,... with classes system, persistent and "
                            "tidal; the name is that of the client's certificate",
                            text));
  };
  if (equals == std::string_view::npos || equals == 0) return bad();
  std::uint32_t classes = 0;
  std::string_view rest = text.substr(equals + 1);
  while (true) {
    const std::string_view name = rest.substr(0, rest.find(','));
    if (name != "system" && name != "persistent" && name != "tidal") return bad();
    classes |= name == "system" ? 1U : name == "persistent" ? 2U : 4U;
    if (name.size() == rest.size()) break;
    rest.remove_prefix(name.size() + 1);
  }
  allowed[std::string(text.substr(0, equals))] |= classes;
  return {};
}

struct Door::State {
  State(const DoorOptions& asked, std::shared_ptr<const verbs::Device> device)
      : options(asked), sessions(options, std::move(device)) {}
  DoorOptions options;
  Sessions sessions;
  std::atomic<agent::LabServer*> serving = nullptr;  ///< once it has begun
  std::unique_ptr<agent::LabServer> server;

  void look() {
    agent::LabServer* const lab = serving;
    if (lab == nullptr) return;
    sessions.look([lab](const std::string& owner) { return lab->is_revoked(owner); });
  }
};

Door::Door(std::unique_ptr<State> state) : state_(std::move(state)) {}
Door::~Door() { state_->server.reset(); }
const std::string& Door::address() const { return state_->server->address(); }

Result<std::unique_ptr<Door>> Door::open(const DoorOptions& options) {
  std::shared_ptr<const verbs::Device> device;
  if (!options.device.empty()) {
    auto found = shared_device(options.device);
    if (!found) return pass_on(found);
    device = std::move(*found);
  }
  auto state = std::make_unique<State>(options, std::move(device));
  agent::LabServer::Options lab;
  lab.program = "greynic zero agent";
  lab.listen = options.listen;
  lab.certificates = options.certificates;
  lab.longest_silence = kLongestLease;
  lab.make_service = [raw = state.get()](agent::LabServer& server) {
    return std::make_unique<ZeroService>(raw->sessions, server);
  };
  lab.each_turn = [raw = state.get()] { raw->look(); };
  lab.tell = options.tell;
  auto server = agent::LabServer::start(std::move(lab));
  if (!server) return pass_on(server);
  state->server = std::move(*server);
  state->serving = state->server.get();
  return std::unique_ptr<Door>(new Door(std::move(state)));
}

}  // namespace greynic::remote
