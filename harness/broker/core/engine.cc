#include "core/engine.h"

#include <algorithm>
#include <cerrno>

namespace greynic::broker {
namespace {

/// Messages of credit are not paid for. At most this many are under way: each tells of a quarter of
/// the receives, and the peer can use no more than all of them before it has read one.
constexpr std::size_t kUnpaidReceives = 6;

bool inside(const Extent& extent, std::size_t bytes) {
  return extent.offset <= bytes && extent.bytes <= bytes - extent.offset;
}

}  // namespace

Result<std::unique_ptr<Core>> Core::create(Device& device, Owner& owner,
                                           const CoreOptions& options) {
  const auto refuse = [](const char* what) {
    return fail(ErrorCode::kBadInput, std::string("broker: ") + what);
  };
  if (options.latency_lanes == 0) return refuse("latency_lanes is 0; a peer needs one lane");
  if (options.receive_bytes < kSlotBytes) return refuse("receive_bytes is below 1024");
  if (options.segment_bytes < options.receive_bytes) {
    return refuse("segment_bytes is below receive_bytes");
  }
  if (options.receive_credits < 32) return refuse("receive_credits is below 32");
  if (options.send_depth < 16) return refuse("send_depth is below 16");
  return std::make_unique<Engine>(device, owner, options);
}

Engine::~Engine() {
  for (const auto& [qp, place] : by_qp_) device_.destroy(qp);
  for (const auto& block : receive_blocks_) device_.deregister(block->memory);
  for (const auto& [lane, block] : slots_) device_.deregister(block->memory);
  for (const auto& [lane, block] : message_blocks_) device_.deregister(block->memory);
  for (const auto& [id, app] : apps_) device_.deregister(app.memory);
}

std::size_t Engine::own_bytes() const {
  std::size_t sum = 0;
  for (const auto& block : receive_blocks_) sum += block->bytes.size();
  for (const auto& [lane, block] : slots_) sum += block->bytes.size();
  for (const auto& [lane, block] : message_blocks_) sum += block->bytes.size();
  return sum;
}

Result<std::unique_ptr<Engine::Block>> Engine::make_block(std::size_t bytes) {
  auto block = std::make_unique<Block>();
  block->bytes.resize(bytes);
  auto memory = device_.register_memory(block->bytes, Access::kAll);
  if (!memory) return pass_on(memory);
  block->memory = *memory;
  return block;
}

Result<void> Engine::add_receives(std::size_t count) {
  auto block = make_block(count * options_.receive_bytes);
  if (!block) return pass_on(block);
  for (std::size_t i = 0; i < count; ++i) {
    used_receives_.push_back(receives_.size());
    receive_data_.push_back((*block)->bytes.data() + i * options_.receive_bytes);
    receives_.push_back({(*block)->memory.address + i * options_.receive_bytes,
                         options_.receive_bytes, (*block)->memory.local_key});
  }
  receive_blocks_.push_back(std::move(*block));
  post_receives(1);
  return {};
}

void Engine::post_receives(std::size_t least) {
  if (used_receives_.size() < least) return;
  std::vector<Piece> pieces;
  for (const std::uint64_t id : used_receives_) pieces.push_back(receives_[id]);
  const std::size_t taken = device_.post_receives(used_receives_, pieces);
  used_receives_.erase(used_receives_.begin(),
                       used_receives_.begin() + static_cast<std::ptrdiff_t>(taken));
}

Link* Engine::link_of(PeerId peer) const {
  const auto found = links_.find(peer);
  return found == links_.end() ? nullptr : found->second.get();
}

Result<void> Engine::add_peer(PeerId peer) {
  if (links_.contains(peer))
    return fail(ErrorCode::kBadInput, "broker: this peer is there already");
  // Receives of a peer that left stay posted and serve the next one.
  const std::size_t each = options_.receive_credits + kUnpaidReceives + kRefill;
  if (receives_.size() < (links_.size() + 1) * each) {
    if (auto added = add_receives(each); !added) return added;
  }
  auto link = std::make_unique<Link>();
  link->peer = peer;
  const std::size_t lanes = options_.latency_lanes + options_.bulk_lanes;
  for (std::size_t i = 0; i < lanes; ++i) {
    link->lanes.push_back(std::make_unique<Lane>(options_.segment_bytes));
    Lane& lane = *link->lanes.back();
    lane.index = static_cast<std::uint16_t>(i);
    lane.phase = Lane::Phase::kUnused;
    for (std::uint32_t slot = options_.send_depth; slot-- > 0;) {
      lane.free_slots.push_back(static_cast<std::int32_t>(slot));
    }
  }
  add_message_lanes(*link);
  Link& made = *link;
  links_[peer] = std::move(link);
  // The first of each class; the others come with the connections that use them.
  auto opened = open_lane(made, *made.lanes.front());
  if (opened && options_.bulk_lanes > 0) {
    opened = open_lane(made, *made.lanes[options_.latency_lanes]);
  }
  if (!opened) remove_peer(peer);
  return opened;
}

void Engine::remove_peer(PeerId peer) {
  Link* link = link_of(peer);
  if (link == nullptr) return;
  for (const auto& lane : link->lanes) {
    if (lane->qp == 0) continue;
    device_.to_error(lane->qp);
    device_.destroy(lane->qp);
    by_qp_.erase(lane->qp);
  }
  std::erase_if(dirty_, [&](const Place& place) { return place.link == link; });
  std::vector<Connection*> gone;
  connections_.each([&](Connection& connection) {
    if (connection.peer == peer) gone.push_back(&connection);
  });
  links_.erase(peer);
  for (Blocks* blocks : {&slots_, &message_blocks_}) {
    std::erase_if(*blocks, [&](const auto& entry) {
      if (entry.first.first == peer) device_.deregister(entry.second->memory);
      return entry.first.first == peer;
    });
  }
  for (Connection* connection : gone) close_now(*connection, ECONNRESET);
}

Result<AppId> Engine::attach(std::span<std::byte> segment) {
  auto memory = device_.register_memory(segment, Access::kAll);
  if (!memory) return pass_on(memory);
  const AppId id = next_app_++;
  apps_[id] = {.segment = segment, .memory = *memory};
  return id;
}

void Engine::detach(AppId app) {
  const auto found = apps_.find(app);
  if (found == apps_.end() || found->second.leaving) return;
  found->second.leaving = true;
  std::erase_if(listeners_, [&](const auto& entry) { return entry.second.app == app; });
  const std::set<VirtualQpn> all = found->second.connections;
  for (const VirtualQpn number : all) {
    if (Connection* connection = connections_.find(number)) abort(*connection, ECONNRESET);
  }
  free_if_left(app);
}

int Engine::listen(AppId app, std::uint16_t port) {
  const auto found = apps_.find(app);
  if (found == apps_.end() || found->second.leaving) return EINVAL;
  return listeners_.try_emplace(port, Listener{app, 0}).second ? 0 : EADDRINUSE;
}

int Engine::unlisten(AppId app, std::uint16_t port) {
  const auto found = listeners_.find(port);
  if (found == listeners_.end() || found->second.app != app) return EINVAL;
  listeners_.erase(found);
  std::vector<Connection*> waiting;
  connections_.each([&](Connection& one) {
    const bool open = one.phase == Connection::Phase::kIncoming;
    if (open && one.app == app && one.port == port) waiting.push_back(&one);
  });
  for (Connection* one : waiting) abort(*one, ECONNREFUSED);
  return 0;
}

int Engine::check(const App& app, const Rings& rings) const {
  const std::size_t bytes = app.segment.size();
  const bool fits =
      inside(rings.send, bytes) && inside(rings.receive, bytes) && inside(rings.exposed, bytes);
  if (!fits || rings.send.bytes == 0 || rings.receive.bytes == 0) return EINVAL;
  return rings.rule <= VerbRule::kRead && rings.transport <= Transport::kUD ? 0 : EINVAL;
}

void Engine::describe(Control& control, const Connection& connection) const {
  const App& app = apps_.at(connection.app);
  const auto range = [&](const Extent& extent) {
    return Control::Range{app.memory.address + extent.offset, extent.bytes, app.memory.remote_key};
  };
  control.from = connection.self;
  control.ring = range(connection.rings.receive);
  control.exposed = range(connection.rings.exposed);
}

int Engine::connect(AppId app, PeerId peer, std::uint16_t port, const Rings& rings,
                    VirtualQpn& number) {
  const auto found = apps_.find(app);
  if (found == apps_.end() || found->second.leaving) return EINVAL;
  if (const int wrong = check(found->second, rings)) return wrong;
  Link* link = link_of(peer);
  if (link == nullptr) return EHOSTUNREACH;
  if (found->second.connections.size() >= options_.connections_per_app) return EMFILE;
  if (rings.transport != Transport::kRC) {
    if (!can_carry(rings.transport)) return EOPNOTSUPP;
    Lane& lane = lane_over(*link, rings.transport);
    if (lane.phase == Lane::Phase::kUnused && !open_lane(*link, lane)) return ENOMEM;
  }
  auto made = std::make_unique<Connection>();
  Connection& connection = *made;
  connection.self = number = connections_.add(std::move(made));
  if (number == 0) return ENFILE;
  connection.peer = peer;
  connection.app = app;
  connection.port = port;
  connection.transport = rings.transport;
  connection.rings = rings;
  found->second.connections.insert(number);
  Control control{.kind = Control::Kind::kOpen, .transport = rings.transport, .port = port};
  describe(control, connection);
  link->controls.push_back(control);
  mark(*link->lanes[0]);
  return 0;
}

int Engine::accept(AppId app, VirtualQpn number, const Rings& rings) {
  Connection* connection = own(app, number);
  if (connection == nullptr) return EBADF;
  if (connection->phase != Connection::Phase::kIncoming) return EINVAL;
  if (const int wrong = check(apps_.at(app), rings)) return wrong;
  if (const auto found = listeners_.find(connection->port); found != listeners_.end()) {
    --found->second.waiting;
  }
  incoming_.erase({connection->peer, connection->other});
  connection->rings = rings;
  connection->phase = Connection::Phase::kOpen;
  Control control{.kind = Control::Kind::kAccept, .to = connection->other};
  describe(control, *connection);
  if (!connection->is_stream()) {  // what its own lane carries may be lost
    Link& link = *link_of(connection->peer);
    link.controls.push_back(control);
    mark(*link.lanes[0]);
    return 0;
  }
  connection->controls.push_back(control);
  touch(*connection);
  return 0;
}

Connection* Engine::own(AppId app, VirtualQpn number) const {
  Connection* connection = connections_.find(number);
  return connection != nullptr && connection->app == app && !connection->released ? connection
                                                                                  : nullptr;
}

const StreamState* Engine::find(AppId app, VirtualQpn number) const {
  const Connection* connection = own(app, number);
  return connection == nullptr ? nullptr : &connection->stream;
}

PeerId Engine::peer_of(VirtualQpn number) const {
  const Connection* connection = connections_.find(number);
  return connection == nullptr ? 0 : connection->peer;
}

Transport Engine::transport_of(VirtualQpn number) const {
  const Connection* connection = connections_.find(number);
  return connection == nullptr ? Transport::kRC : connection->transport;
}

int Engine::send(AppId app, VirtualQpn number, std::uint64_t total) {
  Connection* connection = own(app, number);
  if (connection == nullptr) return EBADF;
  if (connection->phase == Connection::Phase::kIncoming) return ENOTCONN;
  if (connection->wants_finish) return EPIPE;
  StreamState& stream = connection->stream;
  // A ring holds no more than it is long: more is a broken application, or a hostile one.
  if (total < stream.written || in_ring(*connection, total) > connection->rings.send.bytes) {
    return EINVAL;
  }
  stream.written = total;
  touch(*connection);
  return 0;
}

int Engine::consume(AppId app, VirtualQpn number, std::uint64_t total) {
  Connection* connection = own(app, number);
  if (connection == nullptr) return EBADF;
  StreamState& stream = connection->stream;
  if (total < stream.consumed || total > stream.received) return EINVAL;
  stream.consumed = total;
  // A quarter of the ring at a time: the other end learns of room before it runs out of it.
  Link* link = link_of(connection->peer);
  const bool open = connection->phase == Connection::Phase::kOpen;
  if (link == nullptr || !open || !connection->is_stream()) return 0;
  if (total - connection->told_consumed >= connection->rings.receive.bytes / 4) {
    connection->told_consumed = total;
    link->controls.push_back(
        {.kind = Control::Kind::kConsumed, .to = connection->other, .value = total});
    mark(*link->lanes[0]);
  }
  return 0;
}

int Engine::transfer(AppId app, VirtualQpn number, Verb verb, std::uint64_t own_offset,
                     std::uint64_t far_offset, std::uint64_t bytes, std::uint64_t cookie) {
  Connection* connection = own(app, number);
  if (connection == nullptr) return EBADF;
  if (connection->phase != Connection::Phase::kOpen) return ENOTCONN;
  if (connection->wants_finish) return EPIPE;
  if (!connection->is_stream()) return EOPNOTSUPP;
  const bool near = inside({own_offset, bytes}, apps_.at(app).segment.size());
  const bool far = inside({far_offset, bytes}, connection->far_exposed.bytes);
  if (verb == Verb::kSend || bytes == 0 || !near || !far) return EINVAL;
  if (connection->transfers_open >= options_.transfers_queued) return EAGAIN;
  ++connection->transfers_open;
  connection->transfers.push_back({verb, own_offset, far_offset, bytes, cookie});
  touch(*connection);
  return 0;
}

}  // namespace greynic::broker
