#include <fmt/core.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "greynic/agent/lab.h"
#include "greynic/remote/remote.h"
#include "greynic/zero/source.h"
#include "keys.h"
#include "protocol.h"
#include "queue_pairs.h"

namespace greynic::remote {
namespace {

constexpr std::chrono::nanoseconds kMostPatience = std::chrono::seconds(1);
constexpr std::chrono::seconds kLeastLease{60};

struct Patience {
  std::chrono::nanoseconds look;  ///< for an answer to a look
  std::chrono::nanoseconds call;  ///< to all else
};

/// One session with an agent, for the link and its sources.
class Session {
 public:
  Session(agent::LabClient client, const Patience& patience)
      : client_(std::move(client)),
        patience_(patience),
        stub_(wire::Zero::NewStub(client_.channel())) {}

  Result<void> attach(std::uint32_t classes, std::chrono::seconds lease) {
    wire::AttachRequest request;
    request.set_protocol(kProtocol);
    request.set_classes(classes);
    request.set_lease_seconds(static_cast<std::uint64_t>(lease.count()));
    wire::AttachReply reply;
    grpc::ClientContext context;
    limit(context, patience_.call);
    const grpc::Status status = stub_->Attach(&context, request, &reply);
    if (auto good = judge(status, context, reply.has_fault() ? &reply.fault() : nullptr); !good) {
      return good;
    }
    if (reply.protocol() != kProtocol) {
      return fail(ErrorCode::kIo,
                  fmt::format("{} speaks protocol {}, this program {}; install the same version "
                              "on both",
                              client_.address(), reply.protocol(), kProtocol));
    }
    id_ = reply.session();
    classes_ = reply.classes();
    return {};
  }

  /// False: may not be seen, or is gone.
  Result<bool> read(std::uint64_t arena, std::span<const zero::Piece> pieces) {
    wire::ReadRequest request;
    request.set_session(id_);
    request.set_arena(arena);
    std::size_t bytes = 0;
    for (const zero::Piece& piece : pieces) {
      request.add_offsets(piece.offset);
      request.add_sizes(static_cast<std::uint32_t>(piece.into.size()));
      bytes += piece.into.size();
    }
    wire::ReadReply reply;
    grpc::ClientContext context;
    limit(context, patience_.look);
    const grpc::Status status = stub_->Read(&context, request, &reply);
    if (auto good = judge(status, context, reply.has_fault() ? &reply.fault() : nullptr); !good) {
      return pass_on(good);
    }
    if (reply.hidden()) return false;
    if (reply.values().size() != bytes) {
      return fail(ErrorCode::kIo,
                  fmt::format("{} gave {} bytes where {} were asked for; it is no greynic",
                              client_.address(), reply.values().size(), bytes));
    }
    const auto* from = reinterpret_cast<const std::byte*>(reply.values().data());
    for (const zero::Piece& piece : pieces) {
      std::copy_n(from, piece.into.size(), piece.into.data());
      from += piece.into.size();
    }
    return true;
  }

  /// Joins a queue pair of ours with the agent's, and says where its table of keys is.
  Result<Place> connect(RdmaQueue& queue) {
    wire::ConnectRequest request;
    request.set_session(id_);
    write(queue.end(), *request.mutable_end());
    wire::ConnectReply reply;
    grpc::ClientContext context;
    limit(context, patience_.call);
    const grpc::Status status = stub_->Connect(&context, request, &reply);
    if (auto good = judge(status, context, reply.has_fault() ? &reply.fault() : nullptr); !good) {
      return pass_on(good);
    }
    const auto end = remote::read(reply.end());
    if (!end) return end.error().while_doing(client_.address());
    if (auto connected = queue.connect(*end); !connected) return pass_on(connected);
    return Place{reply.keys_address(), reply.keys_key(), reply.keys_bytes()};
  }

  /// Another lease for an arena; false: it is gone.
  Result<bool> keep(std::uint64_t arena) {
    wire::KeepRequest request;
    request.set_session(id_);
    request.set_arena(arena);
    wire::KeepReply reply;
    grpc::ClientContext context;
    limit(context, patience_.call);
    const grpc::Status status = stub_->Keep(&context, request, &reply);
    if (auto good = judge(status, context, reply.has_fault() ? &reply.fault() : nullptr); !good) {
      return pass_on(good);
    }
    return !reply.gone();
  }

  [[nodiscard]] std::uint32_t classes() const { return classes_; }
  [[nodiscard]] const std::string& address() const { return client_.address(); }

 private:
  static void limit(grpc::ClientContext& context, std::chrono::nanoseconds patience) {
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::duration_cast<std::chrono::microseconds>(patience));
  }

  Result<void> judge(const grpc::Status& status, const grpc::ClientContext& context,
                     const wire::Fault* fault) const {
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
      return fail(ErrorCode::kIo, client_.address() + " does not answer in time");
    }
    if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
        status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) {
      return fail(ErrorCode::kIo, fmt::format("{} turns us away: {}", client_.address(),
                                              daemon::plain(status.error_message(), 300)));
    }
    if (!status.ok()) {
      return fail(ErrorCode::kIo, fmt::format("{} is not reached: {}", client_.address(),
                                              agent::why_unreached(status.error_message(),
                                                                   "greynic zero agent --listen")));
    }
    if (auto trusted = client_.trust(context); !trusted) return trusted;
    if (fault == nullptr || fault->message().empty()) return {};
    return remote::read(*fault).while_doing(client_.address());
  }

  agent::LabClient client_;
  Patience patience_;
  std::unique_ptr<wire::Zero::Stub> stub_;
  std::uint64_t id_ = 0;
  std::uint32_t classes_ = 0;
};

class WireSource final : public zero::Source {
 public:
  WireSource(std::shared_ptr<Session> session, std::uint64_t arena)
      : session_(std::move(session)), arena_(arena) {}
  Result<void> read(std::span<const zero::Piece> pieces) override {
    auto seen = session_->read(arena_, pieces);
    if (!seen) return pass_on(seen);
    if (!*seen) return fail(ErrorCode::kRefused, "the arena is gone");
    return {};
  }
  // An answer carries any number of pieces; one more costs some ten bytes of the question.
  std::uint64_t gap_bytes() const override { return 64; }

 private:
  std::shared_ptr<Session> session_;
  std::uint64_t arena_;
};

class RemoteLink final : public monitor::HostLink {
 public:
  explicit RemoteLink(std::shared_ptr<Session> session) : session_(std::move(session)) {}
  std::uint32_t classes() const override { return session_->classes(); }
  Result<std::unique_ptr<zero::Source>> directory() override {
    // The agent has it as soon as it has heard of this collector.
    const auto there = session_->read(0, {});
    if (!there) return pass_on(there);
    if (!*there) return nullptr;
    return std::make_unique<WireSource>(session_, 0);
  }
  Result<std::unique_ptr<zero::Source>> arena(std::uint64_t incarnation) override {
    const auto there = session_->read(incarnation, {});
    if (!there) return pass_on(there);
    if (!*there) return nullptr;
    return std::make_unique<WireSource>(session_, incarnation);
  }

 private:
  std::shared_ptr<Session> session_;
};

/// A link by RDMA, for itself and its sources: a queue pair is taken for a look, and given back.
class RdmaSession {
 public:
  RdmaSession(std::shared_ptr<Session> session, std::shared_ptr<QueuePairs> queue_pairs,
              std::chrono::nanoseconds patience, std::chrono::nanoseconds renewal)
      : session_(std::move(session)),
        queue_pairs_(std::move(queue_pairs)),
        patience_(patience),
        renewal_(renewal) {}
  ~RdmaSession() {
    taken_.reset();
    queue_pairs_->forget(number_);
  }
  RdmaSession(const RdmaSession&) = delete;
  RdmaSession& operator=(const RdmaSession&) = delete;

  Result<void> read(const Place& place, std::span<const zero::Piece> pieces) {
    if (auto ready = join(); !ready) return ready;
    if (auto got = taken_->reader().read(place, pieces); !got) {
      return got.error().while_doing(session_->address());
    }
    return {};
  }
  /// Where an arena is, as the table of keys says it.
  Result<std::optional<Place>> find(std::uint64_t arena) {
    if (auto ready = join(); !ready) return pass_on(ready);
    return keys_->find(arena, [this](const Place& place, std::span<const zero::Piece> pieces) {
      return read(place, pieces);
    });
  }
  void rest() { taken_.reset(); }
  [[nodiscard]] Session& calls() const { return *session_; }
  [[nodiscard]] std::chrono::nanoseconds renewal() const { return renewal_; }

 private:
  Result<void> join() {
    if (taken_) return {};
    auto taken = queue_pairs_->take(number_, patience_, [this](RdmaQueue& queue) -> Result<void> {
      const auto keys = session_->connect(queue);
      if (!keys) return pass_on(keys);
      if (!keys_) keys_.emplace(*keys);
      return {};
    });
    if (!taken) return pass_on(taken);
    taken_.emplace(std::move(*taken));
    return {};
  }
  static std::uint64_t new_number() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }

  std::shared_ptr<Session> session_;
  std::shared_ptr<QueuePairs> queue_pairs_;
  std::chrono::nanoseconds patience_;
  std::chrono::nanoseconds renewal_;  ///< another lease for an arena is asked for so often
  const std::uint64_t number_ = new_number();
  std::optional<QueuePairs::Taken> taken_;
  std::optional<KeysReader> keys_;
};

class RdmaSource final : public zero::Source {
 public:
  RdmaSource(std::shared_ptr<RdmaSession> shared, std::uint64_t arena, const Place& place)
      : shared_(std::move(shared)), arena_(arena), place_(place) {}
  Result<void> read(std::span<const zero::Piece> pieces) override {
    if (Clock::now() >= renew_) {
      const auto kept = shared_->calls().keep(arena_);
      if (!kept) return pass_on(kept);
      if (!*kept) return fail(ErrorCode::kRefused, "the arena is gone");
      renew_ = Clock::now() + shared_->renewal();
    }
    return shared_->read(place_, pieces);
  }
  // What a line of 100 Gbit/s carries while one READ more goes there and back.
  std::uint64_t gap_bytes() const override { return 4096; }

 private:
  using Clock = std::chrono::steady_clock;
  std::shared_ptr<RdmaSession> shared_;
  std::uint64_t arena_;
  Place place_;
  Clock::time_point renew_ = Clock::now() + shared_->renewal();
};

class RdmaLink final : public monitor::HostLink {
 public:
  explicit RdmaLink(std::shared_ptr<RdmaSession> shared) : shared_(std::move(shared)) {}
  std::uint32_t classes() const override { return shared_->calls().classes(); }
  Result<std::unique_ptr<zero::Source>> directory() override { return arena(0); }
  Result<std::unique_ptr<zero::Source>> arena(std::uint64_t incarnation) override {
    const auto place = shared_->find(incarnation);
    if (!place) return pass_on(place);
    if (!*place) return nullptr;
    return std::make_unique<RdmaSource>(shared_, incarnation, **place);
  }
  void rest() override { shared_->rest(); }

 private:
  std::shared_ptr<RdmaSession> shared_;
};

/// The queue pairs of each device, for all links that are made.
class Devices {
 public:
  explicit Devices(std::size_t most) : most_(most) {}
  Result<std::shared_ptr<QueuePairs>> of(const std::string& device) {
    auto opened = shared_device(device);
    if (!opened) return pass_on(opened);
    const std::lock_guard lock(mutex_);
    auto& [of, queue_pairs] = known_[device];
    // Anew when the device had gone meanwhile.
    if (of != *opened) {
      of = *opened;
      queue_pairs = std::make_shared<QueuePairs>(*opened, most_);
    }
    return queue_pairs;
  }

 private:
  struct Known {
    std::shared_ptr<const verbs::Device> device;
    std::shared_ptr<QueuePairs> queue_pairs;
  };
  const std::size_t most_;
  std::mutex mutex_;
  std::map<std::string, Known> known_;
};

Result<std::unique_ptr<monitor::HostLink>> link_to(const monitor::HostSpec& spec,
                                                   std::chrono::nanoseconds least,
                                                   Devices& devices) {
  auto client = agent::LabClient::open(spec.remote, spec.certificates);
  if (!client) return pass_on(client);
  const auto most = std::max(least, kMostPatience);
  const Patience patience{std::clamp(2 * spec.interval, least, most), most};
  auto session = std::make_shared<Session>(std::move(*client), patience);
  const auto lease =
      std::max(kLeastLease, std::chrono::duration_cast<std::chrono::seconds>(4 * spec.interval));
  if (auto attached = session->attach(spec.classes, lease); !attached) return pass_on(attached);
  if (spec.device.empty()) return std::make_unique<RemoteLink>(std::move(session));
  auto queue_pairs = devices.of(spec.device);
  if (!queue_pairs) return pass_on(queue_pairs);
  return std::make_unique<RdmaLink>(std::make_shared<RdmaSession>(
      std::move(session), std::move(*queue_pairs), patience.look, lease / 3));
}

}  // namespace

Result<monitor::RemoteLinks> links_to(std::span<const monitor::HostSpec> hosts,
                                      const LinkOptions& options) {
  auto devices = std::make_shared<Devices>(options.queue_pairs);
  std::set<std::string> of_clients;  // as directories of certificates
  for (const monitor::HostSpec& host : hosts) {
    if (!host.remote.empty() && of_clients.insert(host.certificates).second) {
      // What cannot be read now is no host that is away: it is told, and nothing is tried.
      if (auto client = agent::LabClient::open(host.remote, host.certificates); !client) {
        return client.error().while_doing(host.name);
      }
    }
    if (host.device.empty()) continue;
    if (auto there = devices->of(host.device); !there) {
      return there.error().while_doing(host.name + " is READ by device " + host.device);
    }
  }
  return monitor::RemoteLinks([devices, least = options.patience](const monitor::HostSpec& spec) {
    return link_to(spec, least, *devices);
  });
}

}  // namespace greynic::remote
