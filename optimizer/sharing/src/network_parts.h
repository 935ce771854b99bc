#pragma once

/// What a network of stations is made of (network.h): messages, ends of QPs, hosts, the switch's ports in front
/// of them, and the network itself.

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "greynic/statistics/random.h"
#include "network.h"
#include "store.h"

namespace greynic::sharing {

struct Message {
  std::uint32_t demand = 0, end = 0;  ///< the end of the QP that asks
  std::uint32_t turns_left = 0;
  double fetched_at = 0;  ///< when its request is on the chip
  bool posted = false;    ///< by a broker
  bool answered = false;  ///< but what was posted before it may not be
  bool told = true;       ///< when it completes; else with the next that is
};

/// What an end sends in order: what it asks, or what it answers.
struct Lane {
  std::deque<std::uint32_t> messages;
  double context_at = 0;
  bool in_ring = false;
};

/// One end of a QP.
struct End {
  std::uint32_t host = 0, far = 0, thread = 0, place = 0;  ///< `place`: among those of its host
  Lane asks, answers;
  std::uint32_t reads_open = 0;
  std::deque<std::uint32_t> order;  ///< messages in the order in which they complete
  std::size_t unrung = 0;           ///< the last of them, whose doorbell is still to be rung
  // Shared QPs only: what waits for a place in the queue, by demand, and whose turn it is.
  std::uint64_t in_flight = 0;
  std::uint32_t posted = 0;
  struct Waiting {
    std::deque<std::uint32_t> messages;
    double credit = 0;
  };
  std::map<std::uint32_t, Waiting> waiting;
  std::deque<std::uint32_t> turns;
};

/// Hands packets of one QP after the other to the wire.
struct Unit {
  std::deque<std::uint32_t> ring;  ///< lanes: end x 2, + 1 for answers
  bool busy = false;
  std::uint32_t packets_left = 0;  ///< of this turn
  double free = 0;                 ///< when a packet more may be ready for the wire
};

enum class Kind : std::uint8_t {
  kRung,        ///< an end: the doorbell of so many requests
  kFetched,     ///< the request that an end sends next
  kServed,      ///< a host: its broker has worked off what was done
  kPacketDone,  ///< host x units + unit
  kAsked,       ///< a READ's request has come to the port
  kArrived,     ///< a turn of payload
  kWord,        ///< word of a WRITE
  kLeft,        ///< a host: the first that waited at its port has come through
  kTaken        ///< a turn of payload is in memory
};
struct Event {
  double time;
  Kind kind;
  std::uint32_t what, turns_left;  ///< of the message, after this turn; requests of a doorbell
  bool operator>(const Event& other) const { return time > other.time; }
};

/// On its way to the wire.
struct Packet {
  std::uint32_t message = 0, turns_left = 0;
  bool request = false, last = false;  ///< `last` of its turn
};

struct Host {
  std::vector<double> thread_free;
  std::vector<std::uint32_t> inbox;  ///< of a broker: messages that are done
  bool broker_busy = false;
  std::vector<Unit> units;  ///< QPs are dealt out to them
  double fetcher_free = 0, wire_until = 0, taken_until = 0;
  std::deque<double> ready;  ///< when packets that are ready will have left
  std::uint32_t held = 0;    ///< packets that have come and are not taken yet
  // The switch's port in front of it.
  std::deque<Event> port;
  double port_until = 0;
  bool port_busy = false, port_paused = false;
  // What the switch holds of it.
  double in_switch = 0, least_in_switch = 0;
  bool stopped = false;
  std::deque<Packet> waiting;         ///< payload, until it may go on
  std::deque<std::uint32_t> blocked;  ///< units whose packet finds no place there
  std::uint32_t ends = 0;
  std::optional<Store> contexts;
};

/// Plays a matrix through. Who asks is in network_asking.cc, the way from QP to QP in network_wire.cc.
class Network {
 public:
  Network(const Matrix& matrix, const Way& way, const Rnic& rnic);
  [[nodiscard]] std::uint32_t ends_of(const std::string& host) const {
    return hosts_[numbers_.at(host)].ends;
  }
  /// Of each demand, Gbit/s; `posting_ns` is by demand. kTooBig when too much happens in a nanosecond.
  Result<std::vector<double>> goodput(const std::vector<Times>& times,
                                      const std::vector<double>& posting_ns);

 private:
  std::uint32_t add_qp(std::uint32_t from, std::uint32_t to, std::uint32_t thread);
  void connect();
  void share();
  void at(double time, Kind kind, std::uint32_t what, std::uint32_t turns_left = 0) {
    events_.push({time, kind, what, turns_left});
  }
  bool fills_until(double end);
  void run_until(double end);
  void handle(const Event& event);
  [[nodiscard]] bool is_read(const Message& message) const {
    return matrix_.demands[message.demand].operation == Operation::kRead;
  }
  [[nodiscard]] double bytes_of(const Message& message) const {
    return static_cast<double>(matrix_.demands[message.demand].message_bytes);
  }
  Host& asker_of(const Message& message) { return hosts_[ends_[message.end].host]; }
  Host& asked(const Message& message) { return hosts_[ends_[ends_[message.end].far].host]; }
  Lane& lane_of(std::uint32_t id) {
    return (id & 1) != 0 ? ends_[id >> 1].answers : ends_[id >> 1].asks;
  }

  void want(std::uint32_t m);
  void serve(Host& host);
  void served(Host& host);
  double fill(std::uint32_t e, double time);
  double spread(double ns);
  [[nodiscard]] double ring_ns() const;
  void ring(std::uint32_t e, double time, std::uint32_t count);
  void rung(std::uint32_t e, std::uint32_t count);
  void done(std::uint32_t m);

  void join(std::uint32_t e, bool answers);
  double fetched(Host& host, double from, double share);
  void begin_turn(std::uint32_t which);
  [[nodiscard]] std::uint32_t packets_of_turn(std::uint32_t id);
  [[nodiscard]] double packet_ns(std::uint32_t id);
  double room_at(Host& host);
  double send(Host& host, double ns);
  bool asks(std::uint32_t id);
  void packet_done(std::uint32_t which);
  void transmit(Host& host, const Packet& packet);

  [[nodiscard]] bool goes_back(const Event& event) const;
  Host& receiver(const Event& event);
  Host& sender(const Event& event);
  [[nodiscard]] double wire_ns(const Event& event) const;
  [[nodiscard]] double payload(const Event& event) const;
  void at_port(const Event& event);
  void leave_port(Host& host);
  void left_port(Host& host);
  void go_on(Host& host);
  void heard(std::uint32_t m);
  void arrived(Host& host, std::uint32_t m, std::uint32_t turns_left);
  void taken(std::uint32_t m, std::uint32_t turns_left);

  const Matrix& matrix_;
  const Way& way_;
  Rnic rnic_;
  std::map<std::string, std::uint32_t> numbers_;
  std::vector<Host> hosts_;
  std::vector<End> ends_;
  std::vector<Message> messages_;
  std::vector<Times> times_;
  std::vector<double> posting_ns_, bytes_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  double now_ = 0;
  std::uint64_t handled_ = 0;  ///< events
  bool too_many_ = false;      ///< for the time that they took
  statistics::Random random_{1};
};

}  // namespace greynic::sharing
