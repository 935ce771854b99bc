#pragma once

/// The fabric behind its interface: the loop that takes what happens next, and what happens to
/// requests, packets and answers. Each .cc of this folder is one part of it:
///
///   create.cc    a fabric from its description      control.cc   objects and the state machine
///   threads.cc   programs: posting, polling, time   requester.cc requests, until they are sent
///   egress.cc    the way out of an RNIC             ingress.cc   the way in, to requester and responder
///   responder.cc checks, memory, answers            recovery.cc  what gets lost, fails, is flushed
///   lookahead.cc what the next events need, into the CPU's caches
///
/// Timing is that of the parts of the engine (parts/, stages/), in the same order; where the engine
/// computes all stages behind a processing unit at once, an event stands at the switch and another
/// at the receiver.

#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "fabric/network.h"
#include "fabric/objects.h"
#include "fabric/shared.h"
#include "parameters/host_load.h"
#include "parameters/parameters.h"
#include "parts/host.h"
#include "parts/nic.h"
#include "parts/path.h"
#include "stages/pcie.h"

namespace greynic::twin::fabric {

/// An RNIC model as hosts use it.
struct RnicType {
  Parameters p;
  PcieLink pcie;
  bool overlay = false;
  Time packet_ns = 0;  ///< that a processing unit takes for a packet
  Time one_way_ns = 0;
  Time write_request_ns = 0, read_request_ns = 0;  ///< of the request engine
  Time write_completion_ns = 0;                    ///< to memory
  std::size_t loop_window = 0;                     ///< packets in the closed loop; 0: not bounded
  Time loop_ns = 0;                                ///< of a packet behind its receiver, and back
  std::array<PacketForm, kOperationCount> words, notifications;  ///< acknowledgements; of DCQCN
  DcqcnRule dcqcn;
};

/// Messages that are alike.
struct Shape {
  MessageForm form;
  const RnicType* type;
  MessageShape message;
  PacketForm first, middle, last;
  PacketForm request;  ///< of a READ or an atomic

  [[nodiscard]] const PacketForm& form_of(std::uint32_t index) const {
    return index + 1 == message.packets ? last : index == 0 ? first : middle;
  }
};

struct ThreadWork {
  std::uint32_t cq = 0;    ///< whose on_event is to be called, or
  std::uint32_t call = 0;  ///< a call
};

struct HostThread {
  Time free = 0;
  double slowdown = 1;
  Time far_ns = 0;
  bool scheduled = false;
  Fifo<ThreadWork> work;
};

/// As in Qp: a line of a CPU's cache for each group.
struct alignas(64) HostPart {
  const RnicType* type = nullptr;
  std::unique_ptr<Nic> nic;  ///< once it has something to do
  double stretch = 1;        ///< a packet takes so many times longer on its link
  Time unit_ns = 0;
  PortObserver* observer = nullptr;
  std::size_t in_loop = 0;      ///< packets in the closed loop, or that left it unnoticed
  Time place_awaited = kNever;  ///< kPlaceFree is under way
  bool stale = true;            ///< its caches do not know of all objects
  bool paused = false;
  std::uint32_t qp_count = 0;

  Fifo<Time> places;            ///< when packets leave the closed loop, in order
  Fifo<std::uint32_t> waiting;  ///< packets that may not leave yet

  std::array<Crossing, kOperationCount> encap, decap;
  std::vector<HostThread> threads;
  HostSpec spec;
  std::uint64_t wqe_count = 0, page_count = 0;
  std::vector<ContendedLock> registers;
  Fifo<std::uint32_t> blocked;  ///< units that wait for room in front of the closed loop
  Time paused_since = 0;
  std::deque<PacketRecord> unreported;
  std::function<void(const AsyncEvent&)> on_async;
};

class Simulation final : public Fabric {
 public:
  explicit Simulation(const FabricSpec& spec);
  /// Loads models, lays hosts and network out.
  [[nodiscard]] Result<void> lay_out();

  [[nodiscard]] Time now() const override { return s_.now; }
  bool step() override;
  void run_until(Time until) override;
  void run() override;
  void at(Time time, std::function<void()> call) override;
  void on_thread(HostId host, std::uint32_t thread, std::function<void()> call,
                 Time earliest) override;
  void spend(HostId host, Time ns) override;
  [[nodiscard]] Time thread_time(HostId host, std::uint32_t thread) const override;

  [[nodiscard]] Result<DomainId> create_domain(HostId host) override;
  [[nodiscard]] Result<RegionId> register_memory(DomainId domain, std::span<std::byte> memory,
                                                 std::uint8_t access,
                                                 std::uint64_t page_bytes) override;
  [[nodiscard]] Result<RegionId> register_counted(DomainId domain, std::uint64_t bytes,
                                                  std::uint8_t access,
                                                  std::uint64_t page_bytes) override;
  [[nodiscard]] std::uint64_t region_address(RegionId region) const override;
  [[nodiscard]] std::uint32_t key(RegionId region) const override;
  [[nodiscard]] Result<WindowId> create_window(DomainId domain) override;
  [[nodiscard]] std::uint32_t key(WindowId window) const override;
  [[nodiscard]] Result<CqId> create_cq(HostId host, CqSpec spec) override;
  [[nodiscard]] Result<SrqId> create_srq(DomainId domain, std::uint32_t depth,
                                         std::uint32_t limit) override;
  [[nodiscard]] Result<AddressHandleId> create_address_handle(DomainId domain, HostId to) override;
  [[nodiscard]] Result<QpId> create_qp(const QpSpec& spec) override;
  [[nodiscard]] Result<void> destroy(DomainId domain) override;
  [[nodiscard]] Result<void> destroy(RegionId region) override;
  [[nodiscard]] Result<void> destroy(WindowId window) override;
  [[nodiscard]] Result<void> destroy(CqId cq) override;
  [[nodiscard]] Result<void> destroy(SrqId srq) override;
  [[nodiscard]] Result<void> destroy(AddressHandleId handle) override;
  [[nodiscard]] Result<void> destroy(QpId qp) override;
  [[nodiscard]] Result<void> modify(QpId qp, QpState to, const QpAttributes& attributes) override;
  [[nodiscard]] Result<QpState> state(QpId qp) const override;

  [[nodiscard]] Posted post_send(QpId qp, std::span<const SendRequest> list) override;
  [[nodiscard]] Posted post_receive(QpId qp, std::span<const ReceiveRequest> list) override;
  [[nodiscard]] Posted post_receive(SrqId srq, std::span<const ReceiveRequest> list) override;
  [[nodiscard]] int poll(CqId cq, std::span<Completion> out) override;
  [[nodiscard]] std::size_t completion_count(CqId cq) const override;
  void arm(CqId cq) override;
  void on_async_event(HostId host, std::function<void(const AsyncEvent&)> call) override;
  [[nodiscard]] Result<void> watch(RegionId region, std::uint32_t thread,
                                   std::function<void(std::uint64_t)> call) override;

  [[nodiscard]] std::uint32_t host_count() const override { return spec_.host_count; }
  [[nodiscard]] Result<void> set_groups(HostId host, double encap, double decap) override;
  [[nodiscard]] Result<void> observe(PortId port, PortObserver* observer) override;
  [[nodiscard]] std::vector<PortId> ports() const override { return network_.ports(); }
  [[nodiscard]] double port_gbps(PortId port) const override { return network_.port_gbps(port); }
  [[nodiscard]] std::vector<std::pair<std::string, double>> counters(HostId host) const override;
  [[nodiscard]] std::uint64_t packet_count() const override { return packet_count_; }
  [[nodiscard]] std::size_t bytes_of_host(HostId host) const override;

 private:
  // create.cc
  [[nodiscard]] Result<const RnicType*> type_of(const HostSpec& spec);
  [[nodiscard]] Result<void> lay_out_host(HostId host);
  [[nodiscard]] HostLink link_of(const HostPart& host) const;
  [[nodiscard]] Nic& nic_of(HostId host) {
    HostPart& part = hosts_[host];
    if (part.stale) [[unlikely]]
      refresh(host);
    return *part.nic;
  }
  void refresh(HostId host);

  // lookahead.cc
  struct Ahead;
  void look_ahead();
  void prefetch_subject(Ahead& a);
  void prefetch_next(Ahead& a);
  void prefetch_nic(Ahead& a);
  void prefetch_work(Ahead& a);
  void prefetch_bytes(Ahead& a, bool deep);
  void prefetch_memory(const Work& work) const;

  void handle(const Event& event);
  void handle(const Event& event, Qp& qp);

  // control.cc
  [[nodiscard]] bool is_host(HostId host) const { return host < hosts_.size(); }
  [[nodiscard]] Result<RegionId> add_region(DomainId domain, std::uint64_t begin,
                                            std::uint64_t bytes, std::uint8_t access,
                                            std::uint64_t page_bytes);
  [[nodiscard]] Result<void> check_qp_spec(const QpSpec& spec, HostId host) const;
  [[nodiscard]] Qp* qp_numbered(std::uint32_t number) const {  // null: none
    return number < numbers_.size() ? qps_.find(numbers_[number]) : nullptr;
  }
  Qp& reset(Qp& qp);
  void let_go(Qp& qp);

  // threads.cc
  [[nodiscard]] HostThread& thread_of(HostId host, std::uint32_t thread);
  [[nodiscard]] std::uint32_t thread_now(HostId host) const {
    return current_host_ == host ? current_thread_ : 0;
  }
  [[nodiscard]] std::uint32_t keep(std::function<void()> call);
  void run_call(std::uint32_t call);
  void give_thread(HostId host, std::uint32_t thread, ThreadWork work, Time t);
  void run_thread(HostId host, std::uint32_t thread);
  void complete(Cq& cq, const Completion& completion);
  [[nodiscard]] int refusal(const Qp& qp, const SendRequest& request) const;
  void take(Qp& qp, const SendRequest& request);
  [[nodiscard]] Time pass_locks(Qp& qp, std::uint32_t thread, Time t);
  [[nodiscard]] std::uint32_t shape_for(Qp& qp, Operation operation, std::uint64_t bytes,
                                        std::uint32_t elements, bool inlined);

  // requester.cc
  void doorbell(Qp& qp, std::uint32_t count);
  void wqes_arrive(Qp& qp, std::uint32_t count);
  void engine_goes_on(HostId host);
  void begin_request(Qp& qp);
  void payload_wanted(Qp& qp, std::uint32_t message);
  [[nodiscard]] WcStatus check_locally(const Qp& qp, const Work& work) const;
  [[nodiscard]] bool misses_translation(HostId host, std::uint32_t key, std::uint64_t address);
  [[nodiscard]] Time begin_read(Nic& nic, const Parameters& p, Time t);
  [[nodiscard]] Time begin_payload(Nic& nic, const Parameters& p, const MessageShape& shape,
                                   Time t);
  [[nodiscard]] Time payload_latency(const Parameters& p, const MessageShape& shape);
  [[nodiscard]] bool has_wqe(const Qp& qp, std::uint32_t number);
  void bring_wqe(const Qp& qp, std::uint32_t number);
  void run_local(Qp& qp, Work& work);
  void finish_requests(Qp& qp);

  // egress.cc
  [[nodiscard]] Lane& lane_of(std::uint32_t lane) {
    Qp& qp = *qps_.find(lane >> 1);
    return (lane & 1) != 0 ? qp.answers : qp.requests;
  }
  [[nodiscard]] bool has_work(Qp& qp, bool answers);
  void activate(Qp& qp, bool answers, Time t);
  void call_context(Qp& qp, Lane& lane, Time t);
  [[nodiscard]] Time begin_turn(HostId host, std::uint32_t unit, Time t);
  [[nodiscard]] Time service_time(const HostPart& host);
  void unit_done(HostId host, std::uint32_t unit);
  void unit_goes_on(HostId host, std::uint32_t unit);
  [[nodiscard]] bool send_request_packet(Qp& qp, bool turn_begins);
  [[nodiscard]] bool send_answer_packet(Qp& qp, bool turn_begins);
  [[nodiscard]] bool is_ahead(Qp& qp, Lane& lane);
  void wait_for_burst(const Qp& qp, Lane& lane, const MessageShape& shape);
  Time leave(HostId host, std::uint32_t packet);
  [[nodiscard]] bool loop_is_full(HostPart& host);
  void leave_loop(HostId host, Time t);
  void await_place(HostPart& host, HostId id);
  void place_free(HostId host);
  Time transmit(HostId host, std::uint32_t packet);
  void pause_host(HostId host, bool pause);
  void drain_waiting(HostId host);
  void note_egress(HostPart& host, HostId id, const Packet& packet, Time enqueued, Time dequeued);
  void report_egress(HostPart& host, Time until);

  // ingress.cc
  void at_host(std::uint32_t packet);
  void take_data(Qp* qp, std::uint32_t packet, Time t);
  void take_word(Qp& qp, const Packet& packet, Time t);
  [[nodiscard]] bool in_order(Qp& qp, const Packet& packet);
  [[nodiscard]] bool request_arrives(Qp& qp, Packet& packet);
  [[nodiscard]] bool answer_arrives(Qp& qp, const Packet& packet);
  void answer_is_whole(Qp& qp, const Packet& packet, Time t);
  void recall_wqe(Qp& qp, std::uint32_t message);
  void see_answer(const Qp& qp, std::uint32_t message, Time t);
  void marked(Qp& qp, Time t);

  // responder.cc
  [[nodiscard]] bool begin_message(Qp& qp, Packet& packet);
  [[nodiscard]] bool take_receive(Qp& qp);
  void delivered(Qp& qp, std::uint32_t packet);
  void place(Qp& qp);
  void note_received(Qp& qp, const Packet& packet);
  void fail_receive(Qp& qp, std::uint64_t id, WcStatus status);
  void respond(Qp& qp, const Packet& packet, bool again, Time t);
  void answer_wanted(Qp& qp, std::uint32_t shape, Time t);
  [[nodiscard]] bool run_atomic(Qp& qp, const Packet& packet, bool again, std::uint64_t& result);
  void refuse(Qp& qp, const Packet& packet, WcStatus status);
  void answer(Qp& qp, PacketKind kind, std::uint32_t message, std::uint32_t index,
              WcStatus status = WcStatus::kSuccess);
  void send_word(Qp& qp, PacketKind kind, std::uint32_t message, std::uint32_t index,
                 WcStatus status);
  [[nodiscard]] const Memory* memory_by_key(std::uint32_t key) const;
  [[nodiscard]] const Memory* remote_memory(const Qp& qp, std::uint32_t key, std::uint64_t address,
                                            std::uint64_t bytes, std::uint8_t access) const;
  [[nodiscard]] const Memory* local_memory(std::uint32_t domain, const Sge& sge, bool write) const;
  [[nodiscard]] bool holds_all(std::uint32_t domain, const Elements& elements, bool write) const;
  /// Between `at` of a list of elements and a packet's bytes; false: not memory any more.
  [[nodiscard]] bool gather(std::uint32_t domain, const Elements& elements, std::uint64_t at,
                            Packet& packet) const;
  [[nodiscard]] bool scatter(std::uint32_t domain, const Elements& elements, std::uint64_t at,
                             const Packet& packet) const;
  void tell_watcher(const Memory& memory, std::uint64_t address, Time t);
  [[nodiscard]] bool real() const { return spec_.bytes == FabricSpec::Bytes::kReal; }

  // recovery.cc
  void arm_timer(Qp& qp);
  void timer(Qp& qp);
  void go_back(Qp& qp, std::uint32_t message, std::uint32_t index);
  void not_ready(Qp& qp, const Packet& packet, Time t);
  [[nodiscard]] bool may_try_again(Qp& qp, std::uint32_t message);
  void fail_request(Qp& qp, std::uint32_t message, WcStatus status);
  void to_error(Qp& qp);
  void report(AsyncKind kind, HostId host, std::uint32_t object);

  FabricSpec spec_;
  Shared s_;
  Network network_;
  std::map<std::pair<std::string, std::string>, RnicModel> models_;
  std::vector<std::unique_ptr<RnicType>> types_;
  std::map<std::tuple<std::string, std::string, bool>, const RnicType*> type_by_spec_;
  std::vector<HostPart> hosts_;
  Table<Domain> domains_;
  Table<Memory> memory_;
  Table<Cq> cqs_;
  Table<Srq> srqs_;
  Table<AddressHandle> handles_;
  Table<Qp> qps_;
  std::vector<std::uint32_t> numbers_ = {0};  ///< ids of QPs, by QPN; 0: none
  std::deque<Shape> shapes_;
  std::map<std::array<std::uint64_t, 4>, std::uint32_t> shape_ids_;
  std::vector<std::function<void()>> calls_;
  std::vector<std::uint32_t> free_calls_;
  HostId current_host_ = kNone;
  std::uint32_t current_thread_ = 0;
  std::uint64_t counted_address_ = 1ULL << 32;
  std::uint64_t packet_count_ = 0;
  std::size_t unplaced_ = 0;  ///< QPs with bytes that are not in memory yet
  std::uint32_t ahead_ = 0;   ///< events until look_ahead
};

}  // namespace greynic::twin::fabric
