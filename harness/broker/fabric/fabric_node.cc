#include "greynic/broker/fabric_node.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace greynic::broker {

/// A host's RNIC as the core wants it: one CQ and one shared receive queue.
class FabricNode::FabricDevice final : public Device {
 public:
  FabricDevice(twin::Fabric& fabric, twin::HostId host, const FabricNodeOptions& options)
      : fabric_(fabric), host_(host), options_(options) {}

  Result<void> open(std::function<void()> on_event) {
    auto domain = fabric_.create_domain(host_);
    if (!domain) return pass_on(domain);
    domain_ = *domain;
    auto made = fabric_.create_cq(
        host_, {.depth = 1 << 20, .thread = options_.thread, .on_event = std::move(on_event)});
    if (!made) return pass_on(made);
    cq = *made;
    auto srq = fabric_.create_srq(domain_, 1 << 18);
    if (!srq) return pass_on(srq);
    srq_ = *srq;
    fabric_.arm(cq);
    return {};
  }

  bool has_immediate() const override { return options_.immediate; }
  Result<Memory> register_memory(std::span<std::byte> memory, Access access) override {
    const auto rights = access == Access::kRead ? twin::access::kRemoteRead : twin::access::kAll;
    auto region = fabric_.register_memory(domain_, memory, rights, 2 << 20);
    if (!region) return pass_on(region);
    const std::uint32_t key = fabric_.key(*region);
    regions_[key] = *region;
    return Memory{fabric_.region_address(*region), key, key};
  }
  void deregister(const Memory& memory) override {
    const auto found = regions_.find(memory.local_key);
    if (found == regions_.end()) return;
    (void)fabric_.destroy(found->second);
    regions_.erase(found);
  }
  std::uint32_t mtu_bytes() const override { return options_.attributes.mtu_bytes; }
  Result<QpNumber> create_qp(Transport transport, std::uint32_t send_depth,
                             std::uint32_t receive_depth) override {
    auto qp = fabric_.create_qp({.transport = transport,
                                 .domain = domain_,
                                 .send_cq = cq,
                                 .receive_cq = cq,
                                 .srq = transport == Transport::kRC ? srq_ : twin::SrqId{},
                                 .send_depth = send_depth,
                                 .receive_depth = receive_depth,
                                 .own_doorbell = true});
    if (!qp) return pass_on(qp);
    qps.push_back(qp->id);
    if (transport == Transport::kUD) ways_[qp->id] = {};
    return qp->id;
  }
  QpAddress address_of(QpNumber qp) const override {
    QpAddress address{};
    std::memcpy(address.data(), &host_, sizeof host_);
    std::memcpy(address.data() + 4, &qp, sizeof qp);
    return address;
  }
  Result<void> connect(QpNumber qp, const QpAddress& peer) override {
    twin::QpAttributes attributes = options_.attributes;
    std::memcpy(&attributes.peer_host, peer.data(), sizeof attributes.peer_host);
    std::memcpy(&attributes.peer_qp, peer.data() + 4, sizeof attributes.peer_qp);
    if (const auto way = ways_.find(qp); way != ways_.end()) {
      auto handle = fabric_.create_address_handle(domain_, attributes.peer_host);
      if (!handle) return pass_on(handle);
      way->second = {*handle, attributes.peer_qp};
    }
    for (const auto state :
         {twin::QpState::kInit, twin::QpState::kReadyToReceive, twin::QpState::kReadyToSend}) {
      if (auto done = fabric_.modify({qp}, state, attributes); !done) return done;
    }
    return {};
  }
  void to_error(QpNumber qp) override {
    (void)fabric_.modify({qp}, twin::QpState::kError);
    on_draining(qp);
  }
  void destroy(QpNumber qp) override {
    (void)fabric_.destroy(twin::QpId{qp});
    std::erase(qps, qp);
    if (const auto way = ways_.find(qp); way != ways_.end()) {
      (void)fabric_.destroy(way->second.to);
      ways_.erase(way);
    }
  }
  std::size_t post(QpNumber qp, std::span<const Work> list) override {
    std::vector<twin::SendRequest> requests(list.size());
    std::vector<std::array<twin::Sge, 2>> elements(list.size());
    const auto way = ways_.find(qp);
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Work& work = list[i];
      twin::SendRequest& request = requests[i];
      for (std::size_t p = 0; p < work.piece_count; ++p) {
        elements[i][p] = {work.pieces[p].address, work.pieces[p].bytes, work.pieces[p].local_key};
      }
      request.id = work.id;
      request.kind = work.verb == Verb::kSend    ? twin::WorkKind::kSend
                     : work.verb == Verb::kWrite ? twin::WorkKind::kWrite
                                                 : twin::WorkKind::kRead;
      request.elements = std::span(elements[i]).first(work.piece_count);
      request.remote_address = work.remote_address;
      request.rkey = work.remote_key;
      request.signaled = work.signaled;
      request.has_immediate = work.has_immediate;
      request.immediate = work.immediate;
      if (way == ways_.end()) continue;
      request.to = way->second.to;
      request.to_qp = way->second.qp;
    }
    return fabric_.post_send({qp}, requests).count;
  }
  std::size_t post_receives(std::span<const std::uint64_t> ids, std::span<const Piece> buffers,
                            QpNumber qp) override {
    std::vector<twin::Sge> elements(ids.size());
    std::vector<twin::ReceiveRequest> requests(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      elements[i] = {buffers[i].address, buffers[i].bytes, buffers[i].local_key};
      requests[i] = {ids[i], std::span(&elements[i], 1)};
    }
    return (qp == 0 ? fabric_.post_receive(srq_, requests)
                    : fabric_.post_receive(twin::QpId{qp}, requests))
        .count;
  }
  std::vector<Completion> poll() {
    std::vector<Completion> all;
    std::array<twin::Completion, 64> seen;
    for (int count = 0; (count = fabric_.poll(cq, seen)) > 0;) {
      for (int i = 0; i < count; ++i) all.push_back(convert(seen[static_cast<std::size_t>(i)]));
    }
    return all;
  }

  twin::CqId cq;
  std::vector<QpNumber> qps;
  std::function<void(QpNumber)> on_draining;

 private:
  static Completion convert(const twin::Completion& from) {
    Completion to{.id = from.id, .qp = from.qp};
    to.is_receive =
        from.kind == twin::WorkKind::kReceive || from.kind == twin::WorkKind::kReceiveWriteImm;
    to.written = from.kind == twin::WorkKind::kReceiveWriteImm;
    to.has_immediate = from.has_immediate;
    to.immediate = from.immediate;
    to.bytes = static_cast<std::uint32_t>(from.bytes);
    switch (from.status) {
      case twin::WcStatus::kSuccess:
        to.status = Status::kDone;
        break;
      case twin::WcStatus::kFlushed:
        to.status = Status::kFlushed;
        break;
      case twin::WcStatus::kRetriesExceeded:
      case twin::WcStatus::kRnrRetriesExceeded:
        to.status = Status::kUnreachable;
        break;
      default:
        to.status = Status::kGuilty;
    }
    return to;
  }

  twin::Fabric& fabric_;
  twin::HostId host_;
  const FabricNodeOptions& options_;
  twin::DomainId domain_;
  twin::SrqId srq_;
  std::unordered_map<std::uint32_t, twin::RegionId> regions_;
  /// Where QPs over UD send to.
  struct Way {
    twin::AddressHandleId to;
    std::uint32_t qp = 0;
  };
  std::unordered_map<QpNumber, Way> ways_;
};

/// Receives show up so much later than they were acknowledged at most: some trips over PCIe.
constexpr twin::Time kDrainNs = 20000;

FabricNode::FabricNode(twin::Fabric& fabric, twin::HostId host, const FabricNodeOptions& options)
    : fabric_(fabric), host_(host), options_(options) {
  device_ = std::make_unique<FabricDevice>(fabric, host, options_);
  device_->on_draining = [this](QpNumber qp) {
    const auto drained = [this, qp](Core& core) {
      core.on_completions(device_->poll());
      core.on_drained(qp);
    };
    act(drained, fabric_.now() + kDrainNs);
  };
}

FabricNode::~FabricNode() { *alive_ = false; }

Result<std::unique_ptr<FabricNode>> FabricNode::create(twin::Fabric& fabric, twin::HostId host,
                                                       const FabricNodeOptions& options) {
  std::unique_ptr<FabricNode> node(new FabricNode(fabric, host, options));
  FabricNode* self = node.get();
  auto opened = node->device_->open([self, alive = node->alive_] {
    if (*alive) self->poll();
  });
  if (!opened) return pass_on(opened);
  auto core = Core::create(*node->device_, *node, options.core);
  if (!core) return pass_on(core);
  node->core_ = std::move(*core);
  fabric.on_async_event(host, [self, alive = node->alive_](const twin::AsyncEvent& event) {
    const bool of_qp = event.kind == twin::AsyncKind::kQpFatal ||
                       event.kind == twin::AsyncKind::kQpRequestError ||
                       event.kind == twin::AsyncKind::kQpAccessError;
    if (of_qp && *alive) self->act([qp = event.object](Core& at) { at.on_qp_error(qp); });
  });
  return node;
}

Result<void> FabricNode::meet(FabricNode& a, FabricNode& b) {
  a.peers_[b.host_] = &b;
  b.peers_[a.host_] = &a;
  if (auto added = a.core_->add_peer(b.host_); !added) return added;
  return b.core_->add_peer(a.host_);
}

void FabricNode::kill() {
  *alive_ = false;
  for (const QpNumber qp : std::vector(device_->qps)) device_->destroy(qp);
  for (const auto& [id, peer] : peers_) {
    peer->peers_.erase(host_);
    peer->act([gone = host_](Core& core) { core.remove_peer(gone); },
              fabric_.now() + options_.call_ns);
  }
  peers_.clear();
}

const std::vector<QpNumber>& FabricNode::qps() const { return device_->qps; }

Result<AppId> FabricNode::attach(FabricClient& client, std::span<std::byte> segment) {
  auto app = core_->attach(segment);
  if (app) clients_[*app] = &client;
  return app;
}

void FabricNode::act(std::function<void(Core&)> call, twin::Time earliest) {
  fabric_.on_thread(
      host_, options_.thread,
      [this, alive = alive_, call = std::move(call)] {
        if (!*alive) return;
        fabric_.spend(host_, options_.ring_ns);
        call(*core_);
        settle();
      },
      earliest);
}

void FabricNode::poll() {
  const std::vector<Completion> list = device_->poll();
  core_->on_completions(list);
  settle();
  fabric_.arm(device_->cq);
}

void FabricNode::settle() {
  core_->flush();
  while (!told_.empty() || !lost_.empty()) {
    for (const PeerId peer : std::exchange(lost_, {})) core_->remove_peer(peer);
    for (const auto& call : std::exchange(told_, {})) {
      fabric_.spend(host_, options_.ring_ns);
      call();
    }
    core_->flush();
  }
}

void FabricNode::tell(AppId app, std::function<void(FabricClient&)> call) {
  const auto found = clients_.find(app);
  if (found == clients_.end()) return;
  told_.push_back([client = found->second, call = std::move(call)] { call(*client); });
}

void FabricNode::on_incoming(AppId app, std::uint16_t port, VirtualQpn connection) {
  tell(app, [=](FabricClient& client) { client.on_incoming(port, connection); });
}
void FabricNode::on_open(AppId app, VirtualQpn connection) {
  tell(app, [=](FabricClient& client) { client.on_open(connection); });
}
void FabricNode::on_received(AppId app, VirtualQpn connection, std::uint64_t total) {
  tell(app, [=](FabricClient& client) { client.on_received(connection, total); });
}
void FabricNode::on_sent(AppId app, VirtualQpn connection, std::uint64_t total) {
  tell(app, [=](FabricClient& client) { client.on_sent(connection, total); });
}
void FabricNode::on_transferred(AppId app, VirtualQpn connection, std::uint64_t cookie) {
  tell(app, [=](FabricClient& client) { client.on_transferred(connection, cookie); });
}
void FabricNode::on_finished(AppId app, VirtualQpn connection) {
  tell(app, [=](FabricClient& client) { client.on_finished(connection); });
}
void FabricNode::on_closed(AppId app, VirtualQpn connection, int error) {
  tell(app, [=](FabricClient& client) { client.on_closed(connection, error); });
}
void FabricNode::on_returned(AppId app, std::uint32_t region) {
  tell(app, [=](FabricClient& client) { client.on_returned(region); });
}
void FabricNode::on_detached(AppId app) {
  tell(app, [](FabricClient& client) { client.on_detached(); });
  clients_.erase(app);
}

void FabricNode::call_peer(PeerId peer, std::vector<std::byte> bytes) {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return;
  found->second->act(
      [from = host_, bytes = std::move(bytes)](Core& core) { core.on_peer_call(from, bytes); },
      fabric_.now() + options_.call_ns);
}

void FabricNode::on_peer_broken(PeerId peer, const char* reason) {
  broken_ = reason;
  lost_.push_back(peer);
}

}  // namespace greynic::broker
