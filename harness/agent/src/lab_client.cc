#include <fmt/core.h>
#include <grpcpp/grpcpp.h>

#include <set>

#include "caller.h"
#include "credentials.h"
#include "greynic/agent/lab.h"
#include "greynic/agent/lab_files.h"
#include "unreachable_reason.h"

namespace greynic::agent {

struct LabClient::State {
  std::string address;
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  std::set<std::string> revoked;  ///< fingerprints of servers that are not trusted any more
  std::shared_ptr<grpc::Channel> channel;
};

LabClient::LabClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
LabClient::LabClient(LabClient&&) noexcept = default;
LabClient& LabClient::operator=(LabClient&&) noexcept = default;
LabClient::~LabClient() = default;

Result<LabClient> LabClient::open(const std::string& address, const std::string& certificates) {
  silence_grpc();
  if (address.find(':') == std::string::npos) {
    return fail(ErrorCode::kBadInput, fmt::format("peer '{}' is not HOST:PORT", address));
  }
  auto state = std::make_unique<State>();
  state->address = address;
  auto credentials = client_credentials(certificates);
  if (!credentials) return pass_on(credentials);
  state->credentials = std::move(*credentials);
  if (!certificates.empty()) {
    auto read = read_revoked(certificates);
    if (!read) return pass_on(read);
    state->revoked = std::move(*read);
  }
  LabClient client(std::move(state));
  client.connect_afresh();
  return client;
}

const std::string& LabClient::address() const { return state_->address; }
const std::shared_ptr<grpc::Channel>& LabClient::channel() const { return state_->channel; }

void LabClient::connect_afresh() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMostMessageBytes);
  // Nothing is unpacked, as at the agent's side.
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  arguments.SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1);
  // A peer that was away a moment ago is tried again at once for the next run.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // Channels of one address share their connection, and how long it waits for the next try.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  state_->channel = grpc::CreateCustomChannel(state_->address, state_->credentials, arguments);
}

Result<void> LabClient::trust(const grpc::ClientContext& context) const {
  const auto shown = context.auth_context();
  if (shown == nullptr || !state_->revoked.contains(owner_of(*shown))) return {};
  return fail(ErrorCode::kIo,
              fmt::format("peer {} shows a certificate that was revoked; give it a new one",
                          state_->address));
}

}  // namespace greynic::agent
