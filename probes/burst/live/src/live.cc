#include "greynic/live/live.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <ctime>

#ifdef GREYNIC_LIVE_WITH_BPF
#include "burst_record.h"
#include "discipline.h"
#include "greynic/bpf/object.h"
#endif

namespace greynic::live {

#ifdef GREYNIC_LIVE_WITH_BPF

std::span<const EmbeddedFile> embedded_programs();

namespace {

std::uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

/// The number of the calling thread's network namespace.
std::uint32_t own_namespace() {
  struct stat found {};
  return ::stat("/proc/thread-self/ns/net", &found) == 0 ? static_cast<std::uint32_t>(found.st_ino)
                                                         : 0;
}

class Probe final : public LiveProbe {
 public:
  Probe(LiveOptions options, bpf::Object object)
      : options_(std::move(options)),
        object_(std::move(object)),
        analyser_(BURST_MOST_QUEUES, [this](const burst::Burst& found) { keep(found); }) {}

  Result<void> attach(const Discipline& discipline) {
    const bool dequeue_only = options_.mode == burst::Mode::kDequeueOnly;
    for (auto set :
         {object_.set("watched_interface", static_cast<std::uint32_t>(discipline.interface_number)),
          object_.set("watched_namespace", own_namespace()),
          object_.set("classful", discipline.has_classes),
          object_.set(
              "waiting_each",
              BURST_MOST_WAITING / (discipline.has_one_queue ? 4U : unsigned{BURST_MOST_QUEUES})),
          object_.set("dequeue_only", dequeue_only),
          object_.set("every_packet", options_.every_packet)}) {
      if (!set) return set;
    }
    // Each record has 8 bytes of the ring's own before it.
    const std::size_t ring_bytes = options_.ring_records * (sizeof(burst_record) + 8);
    if (auto sized = object_.resize(
            "records", static_cast<std::uint32_t>(
                           std::bit_ceil(std::clamp<std::size_t>(ring_bytes, 1 << 16, 1U << 31))));
        !sized) {
      return sized;
    }
    if (auto loaded = object_.load(); !loaded) return loaded;
    if (auto allowed = allow(options_.allowance.share_e8); !allowed) return allowed;
    auto ring = object_.ring("records", [this](std::span<const std::byte> bytes) { take(bytes); });
    if (!ring) return pass_on(ring);
    ring_.emplace(std::move(*ring));
    // Whoever leaves first finds its arrival missing; whoever joins first finds nobody before it.
    for (const char* program : {"on_enqueue", "on_dequeue"}) {
      auto link = object_.attach(program);
      if (!link) return pass_on(link);
      links_.push_back(std::move(*link));
    }
    start_ns_ = clock_ns(CLOCK_MONOTONIC);
    start_unix_ns_ = static_cast<std::int64_t>(clock_ns(CLOCK_REALTIME));
    return {};
  }

  Result<void> poll(std::chrono::milliseconds patience) override {
    const auto taken = ring_->poll(static_cast<int>(patience.count()));
    if (!taken) return pass_on(taken);
    // The kernel knows where a burst ends only by the next packet.
    const std::uint64_t now = clock_ns(CLOCK_MONOTONIC) - start_ns_;
    if (now > kQuietNs) analyser_.finish(now - kQuietNs);
    return {};
  }

  Result<void> allow(std::uint64_t share_e8) override {
    options_.allowance.share_e8 = share_e8;
    auto settings = object_.map<std::uint32_t, std::uint64_t>("settings");
    if (!settings) return pass_on(settings);
    return settings->put(0, options_.allowance.threshold_bytes());
  }

  burst::Findings findings() override {
    burst::Findings out;
    out.allowance = options_.allowance;
    out.mode = options_.mode;
    out.origin_unix_ns = start_unix_ns_;
    out.duration_ns = clock_ns(CLOCK_MONOTONIC) - start_ns_;
    const auto queues = object_.map<std::uint32_t, burst_queue>("queues");
    for (std::uint32_t i = 0; queues && i < BURST_MOST_QUEUES; ++i) {
      const auto queue = queues->look_up(i);
      if (!queue || queue->address == 0) break;
      out.queues.push_back({name_of(*queue, i), options_.allowance.bits_per_second,
                            options_.allowance.threshold_bytes()});
      out.packets_seen += queue->seen;
      out.packets_marked += queue->marked;
      out.records_lost += queue->ring_lost;
      out.left_unseen += queue->unseen;
    }
    if (out.queues.empty()) {
      out.queues.push_back({options_.interface, options_.allowance.bits_per_second,
                            options_.allowance.threshold_bytes()});
    }
    out.tally = tally_;
    return out;
  }

 private:
  static constexpr std::uint64_t kQuietNs = 20'000'000;

  [[nodiscard]] std::string name_of(const burst_queue& queue, std::uint32_t place) const {
    if (queue.class_id != 0) {
      return fmt::format("{} class {:x}:{:x}", options_.interface, queue.class_id >> 16,
                         queue.class_id & 0xffff);
    }
    return place == 0 ? options_.interface : fmt::format("{} queue {}", options_.interface, place);
  }

  void take(std::span<const std::byte> bytes) {
    burst_record record;
    if (bytes.size() < sizeof record) return;
    std::memcpy(&record, bytes.data(), sizeof record);
    if (record.queue >= BURST_MOST_QUEUES) return;
    const auto since = [this](std::uint64_t time) {
      return time > start_ns_ ? time - start_ns_ : 0;
    };
    const burst::FlowKey flow = burst::parse_frame(
        burst::kLinkEthernet,
        {record.header, std::min<std::size_t>(record.header_bytes, BURST_HEADER_BYTES)});
    const burst::CourierRecord courier = burst::courier_record(
        record.queue, record.run, flow, record.bytes, since(record.enqueued_ns),
        since(record.dequeued_ns), record.depth_at_enqueue, record.depth_at_dequeue);
    if (options_.record) options_.record(courier);
    if (!options_.every_packet) analyser_.add(courier);
  }

  void keep(const burst::Burst& found) {
    tally_.add(found);
    if (options_.found) options_.found(found);
  }

  LiveOptions options_;
  bpf::Object object_;
  std::uint64_t start_ns_ = 0;  ///< when the programs were there
  std::int64_t start_unix_ns_ = 0;
  burst::Analyser analyser_;
  burst::Tally tally_;
  std::optional<bpf::RingBuffer> ring_;
  std::vector<bpf::Link> links_;
};

}  // namespace

bool can_watch_devices() { return true; }

Result<std::unique_ptr<LiveProbe>> LiveProbe::open(const LiveOptions& options) {
  const auto discipline = discipline_of(options.interface);
  if (!discipline) return pass_on(discipline);
  LiveOptions known = options;
  if (known.allowance.bits_per_second == 0) {
    known.allowance.bits_per_second = discipline->bits_per_second;
  }
  if (known.allowance.bits_per_second == 0) {
    return fail(ErrorCode::kBadInput, "say how fast the queue of " + options.interface +
                                          " drains (--rate 10gbps): only a tbf knows");
  }
  auto object = bpf::Object::open(embedded_programs().front());
  if (!object) return pass_on(object);
  auto probe = std::make_unique<Probe>(std::move(known), std::move(*object));
  if (auto attached = probe->attach(*discipline); !attached) {
    return attached.error().while_doing("watching the queue of " + options.interface);
  }
  return probe;
}

#else

bool can_watch_devices() { return false; }

Result<std::unique_ptr<LiveProbe>> LiveProbe::open(const LiveOptions&) {
  return fail(ErrorCode::kMissing,
              "devices are watched by a program in the kernel, which this greynic was built "
              "without; install clang-14 and libbpf-dev (scripts/setup.sh does) and build again");
}

#endif

}  // namespace greynic::live
