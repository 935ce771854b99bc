#pragma once

/// Virtual time for the programs of a lab. The twin's fabric runs in a thread of lab-run; each
/// process is a program of a host, and what it asks for (protocol/turns.h) is done on the fabric
/// while the process stands still. The process whose thread is free first has its turn, until it
/// waits: for a completion, for memory to change, for a time, or for something outside the lab. So
/// no process is ever ahead of what may still reach it, and each run takes the same turns.

#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "greynic/core/result.h"
#include "greynic/lab/lab_run.h"
#include "greynic/twin/fabric.h"
#include "protocol/turns.h"

namespace greynic::lab {

class Sequencer {
 public:
  /// Two hosts. What programs open is at path().
  static Result<std::unique_ptr<Sequencer>> start(const PairOptions::VirtualTime& time);
  ~Sequencer();
  Sequencer(const Sequencer&) = delete;
  Sequencer& operator=(const Sequencer&) = delete;
  [[nodiscard]] std::string path() const;

 private:
  /// What it takes a program that spins on memory to see the change.
  static constexpr twin::Time kSpinNs = 80;
  enum class State : std::uint8_t {
    kAway,     ///< no process, or one that waits outside the lab
    kReady,    ///< its turn comes as soon as its thread is free
    kTurn,     ///< it runs
    kPolling,   ///< until something completes
    kSpinning,  ///< until its memory changes
    kExpecting  ///< until its channel has an event
  };
  struct Queue {
    twin::CqId id;
    std::uint32_t channel = 0;  ///< 0: none
    bool filled = false;        ///< something lies in it
    bool armed = false;         ///< by the program
    bool unannounced = false;   ///< something came, or was polled, since the last event
  };
  struct Memory {
    twin::RegionId region;
    std::byte* mapped = nullptr;
    std::size_t mapped_bytes = 0;
    std::uint64_t begin = 0;  ///< the program's address of what lies at `first`
    std::uint64_t first = 0;
  };
  struct Process {
    TurnSeat* seat = nullptr;
    std::uint32_t pid = 0;  ///< 0: nobody has taken the seat
    twin::HostId host = 0;
    State state = State::kAway;
    std::uint64_t waits = 0;  ///< counts them, so that a late timer finds its wait is over
    bool looked = false;      ///< at other queues, since the last completion
    bool alarm = false;
    std::uint64_t alarms = 0;
    int file = -1;
    twin::DomainId domain;
    std::map<std::uint32_t, Queue> queues;  ///< by the program's names
    std::map<std::uint32_t, std::deque<std::uint32_t>> events;  ///< queues of them, by channel
    std::map<std::uint32_t, twin::SrqId> srqs;
    std::map<std::uint32_t, twin::AddressHandleId> handles;  ///< by host
    std::map<std::uint32_t, twin::QpId> qps;
    std::map<std::uint32_t, std::uint32_t> peers;  ///< number of the QP at the other end
    std::map<std::uint32_t, Memory> memory;
  };

  Sequencer() = default;
  void serve();
  void hear();  ///< who has come, and who is back
  void bury();  ///< who has died outside
  void let_go(Process& process);
  void make_ready(Process& process, twin::Time earliest);
  void take_turn(Process& process);
  enum class Heard : std::uint8_t { kAsked, kGone, kSilent };
  Heard listen(Process& process);
  void answer(Process& process, int error = 0);
  /// Does what was asked. False: the process waits now.
  bool grant(Process& process);
  bool grant_data(Process& process);
  bool poll(Process& process);
  bool arm(Process& process);
  bool wait_event(Process& process);
  void completed(Process& process, std::uint32_t queue);
  void announce(Process& process, std::uint32_t queue);
  bool wait_for(Process& process, State state, twin::Time most);
  void settle(Process& process, twin::Time earliest);

  int join(Process& process);
  int create_cq(Process& process);
  int destroy_cq(Process& process);
  int create_srq(Process& process);
  int destroy_srq(Process& process);
  int add_memory(Process& process);
  int drop_memory(Process& process, std::uint32_t key);
  int create_qp(Process& process);
  int modify_qp(Process& process);
  int destroy_qp(Process& process);
  int post_send(Process& process);
  int post_receive(Process& process);
  std::vector<twin::Sge> elements_of(const Process& process) const;
  void address(Process& process, twin::SendRequest& request);
  Process* owner_of(std::uint32_t qp);

  int file_ = -1;
  Turns* turns_ = nullptr;
  std::unique_ptr<twin::Fabric> fabric_;
  std::array<Process, kSeats> processes_;
  std::map<std::uint32_t, std::uint32_t> numbers_;  ///< the program's QP number by the fabric's
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace greynic::lab
