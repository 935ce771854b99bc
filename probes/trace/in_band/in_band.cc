#include "in_band/in_band.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <thread>

#include "engine/collect.h"
#include "engine/cost.h"
#include "engine/records.h"
#include "engine/tables.h"
#include "greynic/core/embedded.h"
#include "greynic/os/network_namespace.h"
#include "greynic/trace/monotonic.h"
#include "in_band/path.h"
#include "kernel/hops.h"
#include "kernel/in_band.h"

namespace greynic::trace {

std::span<const EmbeddedFile> programs();

namespace {

constexpr std::uint32_t kCells = 1024;  // of one rule: flows times points
constexpr std::chrono::milliseconds kHandOver{10};
constexpr std::chrono::milliseconds kOnTheWay{100};
constexpr const char* kNotThere = "NOT_AT_NEXT_POINT";
constexpr const char* kLeftOut[GREYNIC_LEFT_OUT] = {"larger than the path carries with stamps",
                                                    "a large packet of GSO",
                                                    "has options already",
                                                    "a fragment",
                                                    "the kernel had no room to grow it",
                                                    "of IPv6"};

std::uint16_t unlikely_id() { return static_cast<std::uint16_t>(std::random_device()()); }

std::string program_of(std::size_t point, std::size_t points) {
  return point == 0            ? std::string("first_point")
         : point + 1 == points ? std::string("last_point")
                               : fmt::format("point_{}", point);
}

}  // namespace

struct InBand::Path {
  InBandPath path;
  std::vector<std::uint32_t> kernel_points;
  std::vector<std::string> names;  ///< of rules, by their number in the kernel
  bool counts_losses = true;
  DeviceNumbers numbers;
  std::optional<bpf::Object> object;
  std::optional<Collector> collector;
  std::optional<Records> records;
  greynic_config config{};
  Cost::Links links;  ///< by program, in the order of the path
  std::vector<bpf::Link> guards;
  std::vector<std::string> hooks;
  Cost cost;
  /// What the last report said of a flow at a point: packets, and lost behind it.
  struct Told {
    std::uint64_t packets = 0, lost = 0;
  };
  std::map<std::pair<std::string, std::size_t>, Told> last_told;

  Result<void> load(const Rule& rule, const Plan& plan, const Rules& rules,
                    const Topology& topology, const Tracer::OnEvent& on_event);
  Result<bpf::Link> attach(const Topology& topology, std::size_t device, bool queued,
                           const std::string& program);
  Result<void> attach_all(const Topology& topology);
  void add_to(Report& report);
  void add_losses(Counted& counted);
};

Result<void> InBand::Path::load(const Rule& rule, const Plan& plan, const Rules& rules,
                                const Topology& topology, const Tracer::OnEvent& on_event) {
  names = {rule.name};
  counts_losses = rule.loss;
  if (auto done = numbers.take(topology); !done) return done;
  auto opened = bpf::Object::open(programs()[1]);
  if (!opened) return pass_on(opened);
  object.emplace(std::move(*opened));
  std::vector<std::string> chosen;
  greynic_path told{.id = unlikely_id(),
                    .points = static_cast<__u16>(path.points.size()),
                    .most_bytes = path.most_bytes,
                    .ethernet = 0,
                    .point = {}};
  for (std::size_t k = 0; k < path.points.size(); ++k) {
    chosen.push_back(program_of(k, path.points.size()));
    const auto& [device, queued] = path.points[k];
    kernel_points.push_back(numbers.of(topology, device) << 1 | (queued ? GREYNIC_TX : GREYNIC_RX));
    told.point[k] = kernel_points.back();
    if (topology.devices[device].ethernet) told.ethernet |= 1U << k;
  }
  if (!path.guards.empty()) chosen.emplace_back("guard");
  if (auto done = object->choose(chosen); !done) return done;
  if (auto done = object->set("path", told); !done) return done;
  for (const char* map : {"stats", "pairs"}) {
    if (auto done = object->resize(map, kCells); !done) return done;
  }
  if (auto done = Records::make_room(*object); !done) return done;
  if (auto done = object->load(); !done) return done;
  auto matches = object->map<std::uint32_t, greynic_rule>("rules");
  if (!matches) return pass_on(matches);
  for (const KernelMatch& match : plan.matches) {
    if (match.rule != path.rule) continue;
    if (auto done = matches->put(config.rules++, kernel_rule(match, rule, 0)); !done) return done;
  }
  config.cells = kCells;
  config.flows = kMostFlows;
  config.one_in = 1;
  config.slow_ns = rules.slow ? static_cast<std::uint64_t>(rules.slow->count()) : 0;
  put_tunnel_ports(topology, config);
  auto config_map = object->map<std::uint32_t, greynic_config>(".data.config");
  if (!config_map) return pass_on(config_map);
  if (auto done = config_map->put(0, config); !done) return done;
  auto opened_collector = Collector::open(*object);
  if (!opened_collector) return pass_on(opened_collector);
  collector.emplace(std::move(*opened_collector));
  auto opened_records = Records::open(*object, [this, on_event](const greynic_record& record) {
    if (on_event) on_event(collector->event(record, numbers, names));
  });
  if (!opened_records) return pass_on(opened_records);
  records.emplace(std::move(*opened_records));
  return {};
}

Result<bpf::Link> InBand::Path::attach(const Topology& topology, std::size_t device, bool queued,
                                       const std::string& program) {
  const Device& one = topology.devices[device];
  const auto place = os::NetworkNamespace::open(topology.places[one.place].path);
  if (!place) return pass_on(place);
  Result<bpf::Link> link = fail(ErrorCode::kInternal, "nobody has attached it");
  const auto entered = place->inside([&] {
    link = object->attach_tc(program, one.index,
                             queued ? bpf::Direction::kEgress : bpf::Direction::kIngress);
  });
  if (!entered) return pass_on(entered);
  if (!link) return link.error().while_doing("at " + topology.label(device));
  return link;
}

/// The last point first, so that no packet is given stamps that nobody takes out.
Result<void> InBand::Path::attach_all(const Topology& topology) {
  for (const std::size_t device : path.guards) {
    auto link = attach(topology, device, true, "guard");
    if (!link) return pass_on(link);
    guards.push_back(std::move(*link));
  }
  for (std::size_t k = path.points.size(); k-- > 0;) {
    const auto& [device, queued] = path.points[k];
    const std::string program = program_of(k, path.points.size());
    auto link = attach(topology, device, queued, program);
    if (!link) return pass_on(link);
    hooks.insert(hooks.begin(), fmt::format("{}/{}/{}", link->descriptor() >= 0 ? "tcx" : "clsact",
                                            topology.label(device), queued ? "egress" : "ingress"));
    links.emplace(links.begin(), program, std::move(*link));
  }
  return {};
}

/// What reached a point and not the next one. While packets are on their way, those that had reached it
/// when the last report was made: a loss that was told is never taken back.
void InBand::Path::add_losses(Counted& counted) {
  const bool over = links.empty();
  for (const Begin& begin : counted.begins) {
    std::uint64_t packets = begin.packets;
    for (std::size_t k = 1; k < kernel_points.size(); ++k) {
      const Point from = numbers.point(kernel_points[k - 1]), to = numbers.point(kernel_points[k]);
      auto hop = std::find_if(counted.hops.begin(), counted.hops.end(), [&](const Hop& one) {
        return one.flow.text == begin.flow.text && one.from == from && one.to == to;
      });
      const std::uint64_t arrived = hop == counted.hops.end() ? 0 : hop->packets;
      Told& before = last_told[{begin.flow.text, k - 1}];
      const std::uint64_t expected = over ? packets : before.packets;
      if (expected > arrived) before.lost = std::max(before.lost, expected - arrived);
      before.packets = packets;
      packets = arrived;
      if (before.lost == 0) continue;
      if (hop == counted.hops.end()) {
        Hop empty;
        empty.flow = begin.flow;
        empty.from = from;
        empty.to = to;
        hop = counted.hops.insert(hop, empty);
      }
      hop->lost = hop->lost_reasons[kNotThere] = before.lost;
    }
  }
}

void InBand::Path::add_to(Report& report) {
  Counted counted = collector->hops(numbers, names);
  if (counts_losses) add_losses(counted);
  Summary& summary = report.summary;
  summary.events += counted.events;
  summary.journeys += collector->counters().journeys;
  summary.folded += collector->counters().folded;
  const auto lost = [&](const char* why, std::uint64_t count) {
    summary.events_lost += count;
    if (count > 0) summary.lost_why[why] += count;
  };
  lost("no room for the pair of points", counted.without_room);
  lost("the ring of journeys was full", collector->counters().no_ring);
  if (const auto map = object->per_cpu_array<greynic_in_band_counts>("in_band")) {
    if (const auto cpus = map->look_up(0)) {
      for (const greynic_in_band_counts& one : *cpus) {
        for (std::size_t i = 0; i < GREYNIC_LEFT_OUT; ++i) {
          if (one.count[i] > 0) summary.left_out[kLeftOut[i]] += one.count[i];
        }
        if (one.count[GREYNIC_STRAYED] > 0) {
          summary.left_out["came another way than its path"] += one.count[GREYNIC_STRAYED];
        }
      }
    }
  }
  summary.one_in = std::max(summary.one_in, config.one_in);
  summary.cpu_share += cost.share();
  if (const auto ns = cost.event_ns()) {
    summary.event_ns = std::max(summary.event_ns.value_or(0), *ns);
  }
  summary.hooks.insert(summary.hooks.end(), hooks.begin(), hooks.end());
  std::move(counted.hops.begin(), counted.hops.end(), std::back_inserter(report.hops));
  std::move(counted.begins.begin(), counted.begins.end(), std::back_inserter(report.begins));
}

InBand::InBand() = default;
InBand::~InBand() { stop(); }

Result<std::unique_ptr<InBand>> InBand::load(const Rules& rules, const Topology& topology,
                                             const Tracer::OnEvent& on_event) {
  const auto plan = make_plan(rules, topology);
  if (!plan) return pass_on(plan);
  auto paths = make_in_band_paths(rules, topology);
  if (!paths) return pass_on(paths);
  auto made = std::unique_ptr<InBand>(new InBand());
  made->budget_ = rules.cpu_budget;
  for (InBandPath& path : *paths) {
    made->paths_.push_back(std::make_unique<Path>());
    Path& one = *made->paths_.back();
    one.path = std::move(path);
    const Rule& rule = rules.rules[one.path.rule];
    if (auto done = one.load(rule, *plan, rules, topology, on_event); !done) return pass_on(done);
  }
  return made;
}

Result<void> InBand::attach(const Topology& topology) {
  if (attached_) return {};
  for (const auto& path : paths_) {
    if (auto done = path->attach_all(topology); !done) return done;
  }
  attached_ = true;
  return {};
}

Result<void> InBand::tend(std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  do {
    std::this_thread::sleep_for(kHandOver);
    for (const auto& path : paths_) path->records->hand_over(monotonic_ns());
  } while (std::chrono::steady_clock::now() < end);
  for (const auto& path : paths_) {
    path->cost.tend(*path->object, path->links);
    std::optional<double> share = budget_;
    if (share) *share /= static_cast<double>(paths_.size());
    const auto one_in = path->cost.wanted_one_in(share);
    if (!one_in) continue;
    path->config.one_in = *one_in;
    auto config = path->object->map<std::uint32_t, greynic_config>(".data.config");
    if (!config) return pass_on(config);
    if (auto done = config->put(0, path->config); !done) return done;
  }
  return {};
}

void InBand::stop() {
  bool attached = false;
  for (const auto& path : paths_) {
    if (path->links.empty()) continue;
    attached = true;
    path->cost.tend(*path->object, path->links);
    path->links.erase(path->links.begin());  // the first point
  }
  if (!attached) return;
  std::this_thread::sleep_for(kOnTheWay);
  for (const auto& path : paths_) {
    path->links.clear();
    path->guards.clear();
    if (path->records) path->records->hand_over(monotonic_ns());
  }
}

Report InBand::report() const {
  Report made;
  made.summary.engine = "in_band";
  for (const auto& path : paths_) path->add_to(made);
  return made;
}

}  // namespace greynic::trace
