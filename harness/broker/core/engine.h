#pragma once

/// The core, one class over several files: engine.cc (applications and peers), send.cc (what goes
/// out), lent.cc (and from where), receive.cc (what comes in), messages.cc (what goes over UC and UD), rebuild.cc (lanes that
/// fail), ending.cc (how connections end).

#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/connection.h"
#include "core/registration_cache.h"
#include "core/virtual_qpns.h"
#include "greynic/broker/core.h"

namespace greynic::broker {

class Engine final : public Core {
 public:
  Engine(Device& device, Owner& owner, const CoreOptions& options)
      : device_(device),
        owner_(owner),
        options_(options),
        registrations_(device, options.registrations, options.registered_bytes) {}
  ~Engine() override;

  Result<void> add_peer(PeerId peer) override;
  void remove_peer(PeerId peer) override;
  void on_peer_call(PeerId peer, std::span<const std::byte> bytes) override;
  void set_load(const Load& load) override { load_ = load; }
  Result<AppId> attach(std::span<std::byte> segment) override;
  void detach(AppId app) override;
  int listen(AppId app, std::uint16_t port) override;
  int unlisten(AppId app, std::uint16_t port) override;
  int connect(AppId app, PeerId peer, std::uint16_t port, const Rings& rings,
              VirtualQpn& connection) override;
  int accept(AppId app, VirtualQpn connection, const Rings& rings) override;
  int send(AppId app, VirtualQpn connection, std::uint64_t total) override;
  int lend(AppId app, std::uint32_t region, std::span<std::byte> memory) override;
  int take_back(AppId app, std::uint32_t region) override;
  int send_from(AppId app, VirtualQpn connection, std::uint32_t region, const Extent& part,
                bool& made) override;
  int consume(AppId app, VirtualQpn connection, std::uint64_t total) override;
  int transfer(AppId app, VirtualQpn connection, Verb verb, std::uint64_t own_offset,
               std::uint64_t far_offset, std::uint64_t bytes, std::uint64_t cookie) override;
  int finish(AppId app, VirtualQpn connection) override;
  int close(AppId app, VirtualQpn connection) override;
  const StreamState* find(AppId app, VirtualQpn connection) const override;
  PeerId peer_of(VirtualQpn connection) const override;
  Transport transport_of(VirtualQpn connection) const override;
  void on_completions(std::span<const Completion> list) override;
  void on_qp_error(QpNumber qp) override;
  void on_drained(QpNumber qp) override;
  void flush() override;
  Awaits awaits() const override;
  const Counters& counters() const override { return counters_; }
  std::vector<Decision> decisions() const override { return decisions_.list(); }
  std::pair<std::size_t, std::uint64_t> registrations() const override {
    return {registrations_.entry_count(), registrations_.bytes()};
  }
  std::size_t connection_count() const override { return connections_.size(); }
  std::size_t qp_count() const override { return by_qp_.size(); }
  std::size_t own_bytes() const override;

 private:
  struct Place {
    Link* link = nullptr;
    Lane* lane = nullptr;
  };
  /// Memory of the core itself: receives, or the slots of a link's lanes.
  struct Block {
    std::vector<std::byte> bytes;
    Memory memory;
  };

  // engine.cc
  [[nodiscard]] Connection* own(AppId app, VirtualQpn number) const;
  [[nodiscard]] int check(const App& app, const Rings& rings) const;
  void describe(Control& control, const Connection& connection) const;
  Result<std::unique_ptr<Block>> make_block(std::size_t bytes);
  Result<void> add_receives(std::size_t count);
  /// All that were used, if there are at least so many.
  void post_receives(std::size_t least);
  [[nodiscard]] Link* link_of(PeerId peer) const;

  // send.cc
  void touch(Connection& connection);
  void mark(Lane& lane);
  [[nodiscard]] bool has_work(const Connection& connection) const;
  [[nodiscard]] std::uint16_t choose_lane(const Link& link, const Connection& connection) const;
  [[nodiscard]] bool has_room(const Lane& lane, std::size_t reserve) const;
  [[nodiscard]] bool may_pay(const Link& link, std::uint64_t reserve) const;
  void pump(Link& link, Lane& lane);
  void send_controls(Link& link, Lane& lane);
  void send_credit(Link& link, Lane& lane);
  std::uint64_t send_next(Link& link, Lane& lane, Connection& connection);
  std::uint64_t send_record(Link& link, Lane& lane, Connection& connection);
  std::uint64_t send_pull(Lane& lane, Connection& connection);
  std::uint64_t send_transfer(Lane& lane, Connection& connection);
  std::uint64_t send_stream(Link& link, Lane& lane, Connection& connection);
  [[nodiscard]] VerbRule rule_of(const Link& link, const Connection& connection) const;
  [[nodiscard]] std::uint64_t sendable(const Connection& connection) const;
  Sent message(Lane& lane, const Link& link, std::uint32_t to, std::uint32_t written,
               std::span<const Control> records);
  void pay(Link& link, Lane& lane, Sent& sent);
  void stage(Lane& lane, Sent sent);
  void post_staged(Lane& lane);
  void done(Lane& lane, const Sent& sent);
  void give_back(Lane& lane, const Sent& sent);
  void complete(Lane& lane, std::uint32_t id);

  // lent.cc
  struct Source {
    Memory memory;
    std::uint64_t bytes = 0;
    Decision::From kind = Decision::From::kRing;
  };
  [[nodiscard]] Source source_of(const Connection& connection, std::uint64_t place) const;
  [[nodiscard]] std::uint64_t in_ring(const Connection& connection, std::uint64_t written) const;
  void acknowledge(Connection& connection, std::uint64_t bytes);
  void let_go(Connection& connection);
  void return_if_free(AppId app, std::uint32_t region);
  void note(const Link& link, const Lane& lane, const Connection& connection, Verb verb,
            std::uint64_t bytes, std::uint64_t waiting, const Source& source);

  // receive.cc
  void on_receive(const Completion& completion);
  void on_message(Link& link, std::uint32_t to, std::span<const std::byte> payload,
                  std::uint32_t written);
  void on_data(Link& link, std::uint32_t to, std::span<const std::byte> payload,
               std::uint32_t written);
  void on_control(Link& link, const Control& control);
  void on_open_call(Link& link, const Control& control);
  void on_answer(Link& link, const Control& control);
  void on_stream_control(Connection& connection, const Control& control);
  void on_offer(Connection& connection, const Control& control);
  void on_credit(Link& link, const Control& control);

  // messages.cc
  void add_message_lanes(Link& link);
  [[nodiscard]] bool can_carry(Transport transport) const;
  [[nodiscard]] Lane& lane_over(const Link& link, Transport transport) const;
  Result<void> give_receives(const Link& link, Lane& lane);
  std::uint64_t send_message(Lane& lane, Connection& connection);
  void finish_messages(Connection& connection);
  void on_message_receive(const Completion& completion);
  void on_lost_or_whole(Link& link, Transport transport, std::uint32_t to,
                        std::span<const std::byte> payload);

  // rebuild.cc
  Result<void> open_lane(Link& link, Lane& lane);
  void break_lane(Lane& lane);
  void on_failure(Lane& lane, const Completion& completion);
  void say_down(Link& link, Lane& lane);
  void try_join(Link& link, Lane& lane);
  bool settle(Link& link, Lane& lane, std::uint64_t received);
  std::vector<VirtualQpn> drop_guilty(Link& link, Lane& lane);
  void become_ready(Lane& lane);

  // ending.cc
  void abort(Connection& connection, int error);
  void stop(Connection& connection, int error);
  void settle_ending(Connection& connection);
  void close_now(Connection& connection, int error);
  void finish_if_over(Connection& connection);
  void free_if_left(AppId app);

  Device& device_;
  Owner& owner_;
  CoreOptions options_;
  Counters counters_;
  Load load_;
  RegistrationCache registrations_;
  DecisionLog decisions_;
  VirtualQpns<Connection> connections_;
  std::unordered_map<AppId, App> apps_;
  AppId next_app_ = 1;
  std::unordered_map<std::uint16_t, Listener> listeners_;
  std::unordered_map<PeerId, std::unique_ptr<Link>> links_;
  std::unordered_map<QpNumber, Place> by_qp_;
  std::vector<Place> dirty_;
  std::vector<Place> pumped_;  ///< of flush(), and of post_staged(): their memory is used again
  std::vector<Work> posted_;
  std::vector<std::unique_ptr<Block>> receive_blocks_;
  std::vector<Piece> receives_;                 ///< by id
  std::vector<const std::byte*> receive_data_;  ///< the same as this program sees it
  std::vector<std::uint64_t> used_receives_;    ///< to be posted again
  /// By peer and lane.
  using Blocks = std::map<std::pair<PeerId, std::uint16_t>, std::unique_ptr<Block>>;
  Blocks slots_;           ///< where messages of lanes over RC are made
  Blocks message_blocks_;  ///< receives of lanes over UC and UD
  /// Connections that nobody has accepted yet, by the peer's number for them.
  std::map<std::pair<PeerId, VirtualQpn>, VirtualQpn> incoming_;
};

}  // namespace greynic::broker
