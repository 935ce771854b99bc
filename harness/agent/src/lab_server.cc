#include <fmt/core.h>
#include <grpcpp/grpcpp.h>
#include <malloc.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "call_watch.h"
#include "credentials.h"
#include "greynic/agent/lab.h"
#include "greynic/agent/lab_files.h"
#include "greynic/daemon/door.h"
#include "greynic/daemon/log.h"
#include "unreachable_reason.h"

namespace greynic::agent {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostBufferedBytes = 256 << 20;
constexpr int kMostThreads = 16;
constexpr std::chrono::milliseconds kTurn{100};
constexpr std::size_t kMostServers = 4;  // of certificates that were renewed since
constexpr int kTurnsPerRead = 10;        // of the lab's directory
// Callers are told that all threads are taken while calls of an attack end. So it gets little of the time.
constexpr std::chrono::seconds kBarred{10};

/// A server without a port of its own: connections come from the door. A new one is made when the
/// certificates change; the older ones go on for who is connected.
struct Server {
  std::unique_ptr<grpc::Service> service;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
  std::unique_ptr<grpc::Server> server;
  ~Server() {
    if (server) server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  }
};

void limit(grpc::ServerBuilder& builder, const std::string& program,
           std::chrono::seconds longest_silence) {
  const auto milliseconds = [](std::chrono::milliseconds value) {
    return static_cast<int>(value.count());
  };
  grpc::ResourceQuota quota(program);
  quota.Resize(kMostBufferedBytes);
  quota.SetMaxThreads(kMostThreads);
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(kMostMessageBytes);
  // A message is measured before it is unpacked, and unpacks to a thousand times its size.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  for (const auto algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    builder.SetCompressionAlgorithmSupportStatus(algorithm, false);
  }
  // Of those that their caller still wants; held_calls() finds who opens and takes back more.
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 8);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 1);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 16384);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             milliseconds(daemon::DoorLimits{}.prove_within));
  // A host that is gone answers no ping.
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, milliseconds(longest_silence));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, milliseconds(std::chrono::minutes(1)));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, milliseconds(std::chrono::seconds(20)));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // Pings too many are not counted: while an answer cannot be sent, gRPC keeps an error for each of these,
  // without a bound. That answers wait does have one.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
}

/// gRPC measures messages, but keeps headers that do not end at up to twelve times their size. Each
/// call is a proof, and its message is the most that comes before the next one.
constexpr daemon::DoorLimits kDoor{.bytes_a_proof = kMostMessageBytes + (1 << 20),
                                   .bytes_a_proof_of_all = kMostMessageBytes + (16 << 20)};

/// Of "10.0.0.7:41234".
std::string address_of(const std::string& connection) {
  return connection.substr(0, connection.rfind(':'));
}

}  // namespace

struct LabServer::State {
  explicit State(Options asked) : options(std::move(asked)) {}

  Options options;
  LabServer* owner = nullptr;
  mutable std::mutex mutex;  ///< of what follows
  std::set<std::string> revoked;
  std::vector<std::unique_ptr<Server>> servers;  ///< the last one takes new connections
  std::vector<std::string> to_cut;  ///< connections of the revoked, once they were told why
  std::set<std::string> barred;     ///< addresses from which nobody is taken
  Clock::time_point barred_until;   ///< and for longer while gRPC still holds their calls
  std::string identity_stamp;
  std::string list_stamp;
  std::unique_ptr<daemon::Door> door;
  std::atomic<bool> over = false;
  std::thread caretaker;
  std::uint64_t cut_then = 0;  ///< of the caretaker: what follows too
  int turns_to_give_back = 0;

  /// Reads the lab and takes the owner's turns, so that no caller has to come for it.
  void take_care() {
    for (int turns = 1; !over; ++turns) {
      std::vector<std::string> told;
      {
        const std::lock_guard lock(mutex);
        told.swap(to_cut);
      }
      std::this_thread::sleep_for(kTurn);
      for (const std::string& connection : told) door->cut(connection);
      cut_overfull();
      if (options.each_turn) options.each_turn();
      if (turns % kTurnsPerRead != 0) continue;
      give_back();
      look_at_lab();
    }
  }

  /// Who takes back calls faster than they end is cut, and nobody comes from there until gRPC has let
  /// go of them, which takes longer than to open them. The memory then goes back to the system.
  void cut_overfull() {
    const HeldCalls held = held_calls();
    if (!held.too_many) {
      const std::lock_guard lock(mutex);
      if (barred.empty() || Clock::now() < barred_until) return;
      barred.clear();
      malloc_trim(0);
    }
    for (const std::string& connection : held.overfull) {
      if (!door->is_open(connection)) continue;
      {
        const std::lock_guard lock(mutex);
        barred.insert(address_of(connection));
        barred_until = Clock::now() + kBarred;
      }
      door->cut(connection);
      tell(fmt::format("cut {}: it opens calls and takes them back, faster than they end",
                       daemon::plain(connection)));
    }
  }

  /// What gRPC kept for connections that were cut goes back to the system, once it has let go of it.
  void give_back() {
    const std::uint64_t cut = door->counts().cut;
    if (cut != std::exchange(cut_then, cut)) turns_to_give_back = 3;
    if (turns_to_give_back == 0) return;
    --turns_to_give_back;
    malloc_trim(0);
  }

  void tell(std::string_view line) const {
    if (options.tell) options.tell(line);
  }

  /// Reads who is turned away.
  Result<void> read_list() {
    if (options.certificates.empty()) return {};
    auto read = read_revoked(options.certificates);
    if (!read) return pass_on(read);
    const std::lock_guard lock(mutex);
    revoked = std::move(*read);
    return {};
  }

  /// Reads the certificates and takes connections by what stands there now.
  Result<void> read_identity() {
    const auto credentials = server_credentials(options.certificates);
    if (!credentials) return pass_on(credentials);
    auto made = std::make_unique<Server>();
    made->service = options.make_service(*owner);
    grpc::ServerBuilder builder;
    limit(builder, options.program, options.longest_silence);
    made->acceptor = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, *credentials);
    builder.RegisterService(made->service.get());
    made->server = builder.BuildAndStart();
    if (!made->server) return fail(ErrorCode::kIo, "gRPC does not start");
    std::unique_ptr<Server> oldest;  // goes after the lock, which its calls need to end
    const std::lock_guard lock(mutex);
    servers.push_back(std::move(made));
    if (servers.size() > kMostServers) {
      oldest = std::move(servers.front());
      servers.erase(servers.begin());
    }
    return {};
  }

  void take(int socket) {
    const std::lock_guard lock(mutex);
    if (!barred.empty() && barred.contains(address_of(daemon::peer_of(socket)))) {
      shutdown(socket, SHUT_RDWR);  // the door hears of it
      ::close(socket);
      return;
    }
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = socket;
    servers.back()->acceptor->HandleNewConnection(&connection);
  }

  /// New certificates are taken when they are whole; until then the old ones serve.
  void look_at_lab() {
    if (options.certificates.empty()) return;
    const auto renew = [this](std::string& seen, const std::string& now, const char* what,
                              Result<void> (State::*how)()) {
      if (now == seen) return;
      seen = now;
      const auto done = (this->*how)();
      tell(done ? fmt::format("{} were read anew", what)
                : fmt::format("{} have changed and are not taken: {}", what, done.error().message));
    };
    renew(list_stamp, stamp_of_revoked(options.certificates), "revoked certificates",
          &State::read_list);
    renew(identity_stamp, stamp_of_identity(options.certificates), "the lab's certificates",
          &State::read_identity);
  }
};

LabServer::LabServer(std::unique_ptr<State> state) : state_(std::move(state)) {
  state_->owner = this;
}

LabServer::~LabServer() {
  state_->over = true;
  if (state_->caretaker.joinable()) state_->caretaker.join();
  // Servers before the door: their calls ask it.
  if (state_->door) state_->door->close();
  state_->servers.clear();
}

Result<void> LabServer::check_address(const Options& options) {
  if (!daemon::is_listen_address(options.listen)) {
    return fail(ErrorCode::kBadInput,
                fmt::format("--listen {}: not ADDRESS:PORT, such as 0.0.0.0:18600 or [::]:18600",
                            options.listen));
  }
  if (options.certificates.empty() && !daemon::is_loopback(options.listen)) {
    return fail(ErrorCode::kBadInput,
                fmt::format("without certificates the agent listens on loopback only, not on {}; "
                            "make some with `greynic agent init DIR` and give --certificates DIR",
                            options.listen));
  }
  return {};
}

Result<std::unique_ptr<LabServer>> LabServer::start(Options options) {
  silence_grpc();
  if (auto good = check_address(options); !good) return pass_on(good);
  auto server =
      std::unique_ptr<LabServer>(new LabServer(std::make_unique<State>(std::move(options))));
  State& state = *server->state_;
  if (!state.options.certificates.empty()) {
    state.identity_stamp = stamp_of_identity(state.options.certificates);
    state.list_stamp = stamp_of_revoked(state.options.certificates);
  }
  if (auto done = state.read_list(); !done) return pass_on(done);
  if (auto done = state.read_identity(); !done) return pass_on(done);
  auto door = daemon::Door::open(
      state.options.listen, kDoor, [&state](int socket) { state.take(socket); },
      state.options.tell);
  if (!door) return pass_on(door);
  state.door = std::move(*door);
  state.caretaker = std::thread([&state] { state.take_care(); });
  return server;
}

const std::string& LabServer::address() const { return state_->door->address(); }

grpc::Status LabServer::admit(const Caller& caller) {
  if (is_revoked(caller.owner)) {
    state_->tell(fmt::format("turned away: the certificate of {} is revoked", caller.name));
    const std::lock_guard lock(state_->mutex);
    state_->to_cut.push_back(caller.connection);
    return {grpc::StatusCode::UNAUTHENTICATED, "the certificate was revoked"};
  }
  if (!state_->door->proven(caller.connection)) {
    state_->tell(fmt::format("turned away: too many connections, {} too", caller.name));
    return {grpc::StatusCode::RESOURCE_EXHAUSTED, "too many connections of this host"};
  }
  return grpc::Status::OK;
}

bool LabServer::is_open(const std::string& connection) const {
  return state_->door->is_open(connection);
}

bool LabServer::is_revoked(const std::string& owner) const {
  const std::lock_guard lock(state_->mutex);
  return state_->revoked.contains(owner);
}

}  // namespace greynic::agent
