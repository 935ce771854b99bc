#pragma once

/// The virtual RNIC of one process: all its objects, the rings to and from other processes, and the
/// thread that moves bytes when no program thread does. One lock guards it all.

#include <condition_variable>
#include <map>
#include <memory>
#include <unordered_map>

#include "preload/objects.h"
#include "protocol/messages.h"

namespace greynic::lab {

/// The rings between this process and another (or itself).
struct Peer {
  std::uint32_t slot = 0;
  Ring* out = nullptr;
  Ring* in = nullptr;
  int bell = -1;  ///< wakes the other side; -1: not known yet
  bool gone = false;
};

class Nic {
 public:
  /// The RNIC of this process; made at the first call. After a fork the child gets a new one.
  static Nic& instance();

  /// Joins the lab. Once; false when there is none, with the reason on standard error.
  bool join();
  void start_thread();

  std::mutex mutex;
  std::atomic<int> callers{0};  ///< program threads that want the lock

  DeviceCard card;
  std::uint32_t host = 0, network = 0, slot = 0;

  std::vector<MemoryEntry> memory{1};
  std::unordered_map<std::uint32_t, Qp*> qps;
  std::unordered_map<std::uint32_t, Srq*> srqs;  ///< XRC, by number
  std::set<Context*> contexts;

  // ---- completions and events (events.cc)
  void complete(Cq& cq, const ibv_wc& wc, bool solicited);
  static void fire(Cq& cq);  ///< its completion event, once it is armed
  void tell(ibv_event_type type, Context& context, void* object);
  void drop_completions(Cq& cq, std::uint32_t qp_number);

  // ---- memory (memory.cc)
  std::uint32_t new_key();  ///< an entry that is free, as key; 0 and errno: none
  void free_key(std::uint32_t key);
  MemoryEntry* entry_of(std::uint32_t key);
  MemoryEntry* entry_at(std::uint32_t key) { return &memory[key >> 8]; }
  /// Where `length` bytes at `address` lie, if the key allows this; null otherwise. `nothing` is set
  /// when there is no memory behind it on purpose.
  std::byte* reach(std::uint32_t key, std::uint64_t address, std::uint64_t length, unsigned access,
                   const Pd* pd, const Qp* remote_of, bool& nothing);
  bool scatter(const std::vector<ibv_sge>& elements, Pd* pd, std::uint64_t offset,
               const std::byte* from, std::uint64_t bytes);
  bool gather(const SendWork& work, Pd* pd, std::uint64_t offset, std::byte* to,
              std::uint64_t bytes);
  bool may_use(const std::vector<ibv_sge>& elements, Pd* pd, unsigned access);
  ibv_wc_status bind(Qp* qp, ibv_mw& window, std::uint32_t new_rkey, const ibv_mw_bind_info& info);
  bool invalidate(Qp& qp, std::uint32_t key);
  void unbind(MemoryEntry& window);

  // ---- QPs (queue_pair.cc)
  int post(Qp& qp, SendWork&& work);
  void fail(Qp& qp);   ///< to the error state: everything is flushed
  void clear(Qp& qp);  ///< to the reset state: everything is forgotten
  void activate(Qp& qp);
  std::uint32_t new_number();
  bool take_receive(Qp& qp, Srq* srq, ReceiveWork& into);
  void forget(Qp& qp);  ///< also its completions

  // ---- moving bytes (also peers.cc)
  bool progress();  ///< one round; false when nothing was to be done
  void begin();     ///< a round for a program thread that has posted; the rest is the RNIC's
  void help();      ///< the same, if nobody else is at it

  // ---- the lab (peers.cc)
  Peer& peer(std::uint32_t of_slot);
  /// Tells whoever reads that ring.
  static void wake(const Peer& to);
  bool tell_broker(const Message& message, int first = -1, int second = -1);
  [[nodiscard]] int bell() const { return bell_.fd(); }
  void nudge() const { bell_.ring(); }
  [[nodiscard]] static std::uint32_t port_mtu_bytes() { return 4096; }

 private:
  Nic() = default;

  // Sending requests (requester.cc).
  void requester(Qp& qp);
  ibv_wc_status check(Qp& qp, const SendWork& work, Pd* pd);
  static void halt(Qp& qp, SendWork& work, ibv_wc_status status);
  bool work_here(Qp& qp, SendWork& work);
  bool send_packet(Qp& qp, SendWork& work, Peer& to, Pd* pd);
  void finish(Qp& qp);                       ///< completes what is done, in order
  void lost(Qp& qp, std::uint32_t message);  ///< as if the timer had run out for it
  void go_back(Qp& qp, std::uint32_t message, Clock::duration wait);
  void on_answer(const Packet& packet);
  void on_not_ready(Qp& qp, SendWork& work, std::uint32_t timer, bool being_sent);
  void on_data(Qp& qp, SendWork& work, const Packet& packet);
  void run_timers();
  Clock::time_point next_timer();

  // Taking them (responder.cc).
  void on_request(const Packet& packet);
  void on_datagram(Qp& qp, const Packet& packet);
  void on_send(Qp& qp, const Packet& packet);
  void on_write(Qp& qp, const Packet& packet);
  void on_fetch(Qp& qp, const Packet& packet);
  std::byte* remote_memory(Qp& qp, const Packet& packet, std::uint64_t address,
                           std::uint64_t length, unsigned access, bool& nothing);
  bool find_receive(Qp& qp, const Packet& packet);
  void receive_done(Qp& qp, const Packet& packet, ibv_wc_status status);
  static void advance(Qp& qp, const Packet& packet);
  void owe(Qp& qp, const Answer& what);
  void refuse(Qp& qp, const Packet& packet, ibv_wc_status status);
  void drop(const Packet& packet);
  bool answer(Qp& qp);  ///< false when there is more to come
  bool send_answer(Qp& qp, Answer& answer, Peer& to);

  // Rings (peers.cc).
  Packet* reserve(Peer& to, std::uint32_t payload);
  void publish(Peer& to, const Packet& packet);
  bool receive(Peer& from, int most);
  void loop();
  void hear();
  void wait(int poll);
  void on_message(const Message& message, Descriptors& descriptors);
  void on_gone(std::uint32_t of_slot);

  bool moved_ = false, unfinished_ = false;  ///< in this round of progress
  std::deque<Packet> orphans_;               ///< notices of packets that nobody took
  std::vector<std::size_t> free_keys_;
  Bell bell_{false};
  int socket_ = -1;
  bool started_ = false;
  std::map<std::uint32_t, Peer> peers_;
  std::vector<Qp*> active_;
  std::set<Qp*> waiting_;
  std::uint32_t last_index_ = 15;  ///< small numbers are special in InfiniBand
};

/// A program thread's hold on the RNIC: it comes before the RNIC's own thread.
class Hold {
 public:
  explicit Hold(Nic& nic) : nic_(nic) {
    nic.callers.fetch_add(1, std::memory_order_relaxed);
    nic.mutex.lock();
    nic.callers.fetch_sub(1, std::memory_order_relaxed);
  }
  ~Hold() { nic_.mutex.unlock(); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  Nic& nic_;
};

/// Says on standard error which call is not offered, sets errno and gives EOPNOTSUPP.
int not_offered(const char* call);

/// The connection manager's part of messages (connection/).
void on_connection_message(const Message& message);
void forget_connections();  ///< in a child

std::uint64_t now_ns();

}  // namespace greynic::lab
