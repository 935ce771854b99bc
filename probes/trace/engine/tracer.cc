#include "greynic/trace/tracer.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <thread>

#include "engine/collect.h"
#include "engine/cost.h"
#include "engine/records.h"
#include "engine/tables.h"
#include "greynic/bpf/hooks.h"
#include "greynic/core/embedded.h"
#include "greynic/trace/monotonic.h"
#include "in_band/in_band.h"

namespace greynic::trace {

std::span<const EmbeddedFile> programs();

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLookAgain{5};        // at the latest
constexpr std::chrono::milliseconds kReadEvery{10};  // records: room for more in a second than come
constexpr std::chrono::milliseconds kNotSooner{100};  // one look costs some ms on a large host

/// Cells take 2 KiB on each CPU: fewer of them on large machines.
std::uint32_t cells_for(std::size_t cpus) { return cpus <= 8 ? 8192 : cpus <= 32 ? 4096 : 2048; }

}  // namespace

struct Tracer::State {
  Rules rules;
  OnEvent on_event;
  std::vector<std::string> places;
  Topology topology;
  Plan plan;
  DeviceNumbers numbers;
  std::vector<std::string> slots;  ///< names of rules; their numbers last as long as the trace
  std::optional<bpf::Object> object;
  std::optional<Tables> tables;
  std::optional<Collector> collector;
  std::optional<Records> records;
  std::vector<std::pair<std::string, bpf::Link>> links;  ///< by program
  std::unique_ptr<InBand> in_band;                       ///< while the rules ask for it
  Cost cost;
  PlaceWatch watch;
  UsageMeter usage;
  Clock::time_point looked = Clock::now();
  std::uint64_t unplaced = 0;
  Clock::time_point in_force = Clock::now();  ///< these rules, since then

  Result<std::vector<std::uint32_t>> slots_of(const Rules& wanted);
  Result<void> load();
  Result<void> attach();
  Result<void> enforce(const Rules& wanted, bool new_rules);
  Result<void> enforce_in_band(const Rules& wanted);
  Result<void> heed_window();
  Result<void> follow_topology();
};

/// A rule keeps its number by its name, so that counts of before keep their meaning.
Result<std::vector<std::uint32_t>> Tracer::State::slots_of(const Rules& wanted) {
  std::vector<std::uint32_t> numbers_of_rules;
  std::vector<std::string> with_new = slots;
  for (const Rule& rule : wanted.rules) {
    const auto found = std::find(with_new.begin(), with_new.end(), rule.name);
    numbers_of_rules.push_back(static_cast<std::uint32_t>(found - with_new.begin()));
    if (found == with_new.end()) with_new.push_back(rule.name);
  }
  if (with_new.size() > GREYNIC_FILE_RULES) {
    return fail(
        ErrorCode::kTooBig,
        fmt::format("more than {} names of rules in one trace; start it anew", GREYNIC_FILE_RULES));
  }
  slots = std::move(with_new);
  return numbers_of_rules;
}

/// The programs with direct loads, where the kernel takes them; else those that copy.
Result<bpf::Object> loaded_programs(std::uint32_t cells) {
  Result<bpf::Object> made = fail(ErrorCode::kInternal, "no programs were loaded");
  for (const bool direct : {true, false}) {
    made = bpf::Object::open(programs()[0]);
    if (!made) return made;
    if (auto done = made->set("direct_loads", direct); !done) return pass_on(done);
    for (const char* map : {"stats", "pairs"}) {
      if (auto done = made->resize(map, cells); !done) return pass_on(done);
    }
    if (auto done = Records::make_room(*made); !done) return pass_on(done);
    const auto done = made->load();
    if (done) return made;
    if (!direct) return pass_on(done);
  }
  return made;
}

Result<void> Tracer::State::load() {
  const std::uint32_t cells = cells_for(bpf::possible_cpus());
  auto loaded = loaded_programs(cells);
  if (!loaded) return pass_on(loaded);
  object.emplace(std::move(*loaded));
  auto opened_tables = Tables::open(*object);
  if (!opened_tables) return pass_on(opened_tables);
  tables.emplace(std::move(*opened_tables));
  tables->config().cells = cells;
  tables->config().flows = kMostFlows;
  auto opened_collector = Collector::open(*object);
  if (!opened_collector) return pass_on(opened_collector);
  collector.emplace(std::move(*opened_collector));
  auto opened_records = Records::open(*object, [this](const greynic_record& record) {
    if (!on_event || collector->used_up(record.place, record.reason)) return;
    on_event(collector->event(record, numbers, slots));
  });
  if (!opened_records) return pass_on(opened_records);
  records.emplace(std::move(*opened_records));
  return {};
}

Result<void> Tracer::State::attach() {
  // Ends first, so that no journey begins whose end would not be seen.
  for (const char* program : {"on_consume", "on_free", "on_receive", "on_queue"}) {
    auto link = object->attach(program);
    if (!link) {
      links.clear();  // all or nothing
      return pass_on(link);
    }
    links.emplace_back(program, std::move(*link));
  }
  return {};
}

Result<void> Tracer::State::enforce_in_band(const Rules& wanted) {
  auto made = InBand::load(wanted, topology, on_event);
  if (!made) return pass_on(made);
  if (wanted.window.after.count() == 0) {
    if (auto done = (*made)->attach(topology); !done) return done;
  }
  links.clear();
  in_band = std::move(*made);
  rules = wanted;
  in_force = Clock::now();
  return {};
}

/// Attaches when the window opens, detaches when it is over.
Result<void> Tracer::State::heed_window() {
  const auto since = Clock::now() - in_force;
  if (in_band) {
    if (rules.window.over(since)) in_band->stop();
    return rules.window.open(since) ? in_band->attach(topology) : Result<void>();
  }
  if (rules.rules.empty() || !rules.window.open(since)) {
    links.clear();
  } else if (links.empty()) {
    return attach();
  }
  return {};
}

Result<void> Tracer::State::enforce(const Rules& wanted, bool new_rules) {
  if (wanted.engine == Engine::kInBand) return new_rules ? enforce_in_band(wanted) : Result<void>();
  if (!object) {
    if (auto done = load(); !done) return done;
  }
  auto made = make_plan(wanted, topology);
  if (!made) return pass_on(made);
  const auto slots_now = slots_of(wanted);
  if (!slots_now) return pass_on(slots_now);
  if (auto done = numbers.take(topology); !done) return done;
  if (auto done = tables->put(topology, numbers, wanted, *made, *slots_now, new_rules); !done) {
    return done;
  }
  plan = std::move(*made);
  rules = wanted;
  in_band.reset();
  if (new_rules) in_force = Clock::now();
  return heed_window();
}

Result<void> Tracer::State::follow_topology() {
  const std::uint64_t unknown = collector->counters().unplaced;
  // Of other places' packets, where those are left out on purpose, there are always some.
  const bool due = watch.changed() || (places.empty() && unknown != unplaced) ||
                   Clock::now() - looked > kLookAgain;
  if (!due || Clock::now() - looked < kNotSooner) return {};
  unplaced = unknown;
  looked = Clock::now();
  auto found = discover();
  if (!found) return pass_on(found);
  topology = found->only(places);
  const auto done = enforce(rules, false);
  // A device or container of a rule that went is no error now; the rule waits for it.
  if (!done && done.error().code != ErrorCode::kBadInput) return done;
  return {};
}

Tracer::Tracer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tracer::~Tracer() = default;

Result<std::unique_ptr<Tracer>> Tracer::start(const Rules& rules, OnEvent on_event,
                                              const std::vector<std::string>& places) {
  auto state = std::make_unique<State>();
  state->on_event = std::move(on_event);
  auto found = discover();
  if (!found) return pass_on(found);
  state->places = places;
  state->topology = found->only(places);
  // What is wrong in the rules is told before the kernel is asked for anything.
  if (const auto fits = make_plan(rules, state->topology); !fits) return pass_on(fits);
  if (auto done = state->enforce(rules, true); !done) return pass_on(done);
  (void)state->usage.read(state->topology);  // times count from here
  return std::unique_ptr<Tracer>(new Tracer(std::move(state)));
}

Result<void> Tracer::change_rules(const Rules& rules) { return state_->enforce(rules, true); }

Result<void> Tracer::tend(std::chrono::milliseconds patience) {
  if (state_->in_band) {
    if (auto done = state_->in_band->tend(patience); !done) return done;
    return state_->heed_window();
  }
  const auto end = Clock::now() + patience;
  do {
    std::this_thread::sleep_for(kReadEvery);
    state_->records->hand_over(monotonic_ns());
    if (auto done = state_->heed_window(); !done) return done;
  } while (Clock::now() < end);
  if (auto done = state_->follow_topology(); !done) return done;
  state_->cost.tend(*state_->object, state_->links);
  if (const auto one_in = state_->cost.wanted_one_in(state_->rules.cpu_budget)) {
    return state_->tables->follow_one_in(*one_in);
  }
  return {};
}

bool Tracer::window_over() const {
  return state_->rules.window.over(Clock::now() - state_->in_force);
}

void Tracer::stop() {
  if (state_->in_band) return state_->in_band->stop();
  state_->cost.tend(*state_->object, state_->links);
  state_->links.clear();
  std::this_thread::sleep_for(kReadEvery);
  state_->records->hand_over(monotonic_ns());
}

const Topology& Tracer::topology() const { return state_->topology; }

Result<Report> Tracer::report() const {
  Report made = state_->in_band ? state_->in_band->report() : Report();
  made.containers = state_->usage.read(state_->topology);
  if (state_->in_band) return made;
  Counted seen = state_->collector->hops(state_->numbers, state_->slots);
  made.hops = std::move(seen.hops);
  made.begins = std::move(seen.begins);
  Summary& summary = made.summary;
  const greynic_counters counted = state_->collector->counters();
  summary.events = seen.events;
  summary.journeys = counted.journeys;
  summary.inferred = counted.inferred;
  summary.folded = counted.folded;
  const auto lost = [&](const char* why, std::uint64_t count) {
    summary.events_lost += count;
    if (count > 0) summary.lost_why[why] = count;
  };
  for (const char* program : {"on_queue", "on_receive", "on_free"}) {
    const auto statistics = state_->object->statistics(program);
    if (!statistics) return pass_on(statistics);
    lost("the program was running on that CPU", statistics->missed);
  }
  lost("journeys cut short for want of room", counted.evicted);
  lost("no room for the pair of points", seen.without_room);
  lost("no room for the loss", counted.losses_unstored);
  lost("the ring of journeys was full", counted.no_ring);
  summary.one_in = state_->tables->config().one_in;
  summary.cpu_share = state_->cost.share();
  summary.event_ns = state_->cost.event_ns();
  for (const char* hook : {"net_dev_queue", "netif_receive_skb", "consume_skb", "kfree_skb"}) {
    if (!state_->rules.rules.empty()) summary.hooks.push_back(std::string("tp_btf/") + hook);
  }
  return made;
}

}  // namespace greynic::trace
