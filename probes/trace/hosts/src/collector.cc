#include "greynic/trace_hosts/collector.h"

#include <fmt/core.h>

#include <chrono>
#include <set>

#include "greynic/trace/monotonic.h"
#include "host_line.h"
#include "join.h"

namespace greynic::trace_hosts {
namespace {

constexpr int kTripsAtStart = 64;
constexpr int kTripsATurn = 8;
constexpr std::chrono::seconds kPatienceAtStart{20};  // 64 round trips, over a slow line too
constexpr std::chrono::seconds kPatience{5};
constexpr std::chrono::seconds kPatienceWithAway{1};  // its agent keeps what it sees
constexpr std::int64_t kSettledNs = 2'500'000'000;    // a turn, and what a host may be late

void add(const trace::Summary& from, trace::Summary& to) {
  to.events += from.events;
  to.events_lost += from.events_lost;
  for (const auto& [why, count] : from.lost_why) to.lost_why[why] += count;
  to.journeys += from.journeys;
  to.inferred += from.inferred;
  to.folded += from.folded;
  to.cpu_share = std::max(to.cpu_share, from.cpu_share);
  if (from.event_ns) to.event_ns = std::max(to.event_ns.value_or(0), *from.event_ns);
  to.one_in = std::max(to.one_in, from.one_in);
  if (to.hooks.empty()) to.hooks = from.hooks;
  to.engine = from.engine;
  for (const auto& [why, count] : from.left_out) to.left_out[why] += count;
}

}  // namespace

struct Collector::State {
  std::vector<HostLine> lines;
  std::string rules, source;
  std::function<void(std::string_view)> tell;
  OnEvent on_event;
  Matcher matcher;
  std::set<std::string> away;
  std::uint64_t forgotten = 0;
  std::size_t most_hosts = 0;

  void take(std::size_t host, HostLine::News& news) {
    forgotten += news.forgotten;
    for (trace::JourneyEvent& event : news.events) {
      const auto [ns, error_ns] = lines[host].ours(event.time_ns);
      matcher.add(host, event, ns, error_ns);
      event.time_ns = ns;
      event.journey = event.journey * most_hosts + host;  // no two the same on all hosts
      if (on_event) on_event(event);
    }
  }

  Result<void> ask(std::size_t host) {
    HostLine& line = lines[host];
    if (auto done = line.compare_clocks(kTripsATurn); !done) return done;
    auto news = line.read();
    if (!news) return pass_on(news);
    if (news->anew) {
      const auto done = line.set_rules(rules, source);
      return done ? Result<void>() : pass_on(done);
    }
    take(host, *news);
    return {};
  }
};

Collector::Collector(std::unique_ptr<State> state) : state_(std::move(state)) {}
Collector::~Collector() = default;

Result<std::unique_ptr<Collector>> Collector::start(const Hosts& hosts, const std::string& rules,
                                                    const std::string& source,
                                                    std::function<void(std::string_view)> tell,
                                                    OnEvent on_event) {
  const auto parsed = trace::parse_rules(rules, source);
  if (!parsed) return pass_on(parsed);
  auto state = std::make_unique<State>();
  state->rules = rules;
  state->source = source;
  state->tell = std::move(tell);
  state->on_event = std::move(on_event);
  state->most_hosts = hosts.hosts.size();
  std::map<std::uint32_t, std::pair<std::size_t, std::string>> nowhere;
  for (const HostSpec& host : hosts.hosts) {
    auto line = HostLine::open(host, hosts.certificates);
    if (!line) return pass_on(line);
    line->give(kPatience);
    // What an agent has kept since the last collector has gone is ours.
    auto news = line->read();
    if (!news) return pass_on(news);
    line->give(kPatienceAtStart);
    if (auto done = line->compare_clocks(kTripsAtStart); !done) return pass_on(done);
    const auto left_out = line->set_rules(rules, source);
    if (!left_out) return pass_on(left_out);
    for (const auto& [rule, why] : *left_out) {
      auto& [count, last] = nowhere[rule];
      ++count;
      last = why;
    }
    state->lines.push_back(std::move(*line));
    state->take(state->lines.size() - 1, *news);
  }
  for (const auto& [rule, refusals] : nowhere) {
    if (refusals.first == hosts.hosts.size()) {
      return fail(ErrorCode::kBadInput, refusals.second + " (on no host)");
    }
  }
  return std::unique_ptr<Collector>(new Collector(std::move(state)));
}

void Collector::turn() {
  for (std::size_t host = 0; host < state_->lines.size(); ++host) {
    const std::string& name = state_->lines[host].host().name;
    state_->lines[host].give(state_->away.contains(name) ? kPatienceWithAway : kPatience);
    if (const auto done = state_->ask(host); !done) {
      if (state_->away.insert(name).second && state_->tell) state_->tell(done.error().message);
    } else if (state_->away.erase(name) > 0 && state_->tell) {
      state_->tell("host " + name + " is back");
    }
  }
  state_->matcher.settle(trace::monotonic_ns() - kSettledNs);
}

trace::Report Collector::report() const {
  trace::Report made;
  std::vector<trace::Report> reports;
  for (const HostLine& line : state_->lines) {
    reports.push_back(line.report());
    made.hops.insert(made.hops.end(), line.report().hops.begin(), line.report().hops.end());
    made.containers.insert(made.containers.end(), line.report().containers.begin(),
                           line.report().containers.end());
    add(line.report().summary, made.summary);
    made.summary.clocks[line.host().name] = line.clock();
  }
  std::map<Matcher::Key, trace::Hop> between;
  for (trace::Hop& hop : counted_between(reports)) {
    const Matcher::Key key{flow_key(hop.flow.text), hop.from, hop.to};
    between[key] = std::move(hop);
  }
  for (const auto& [key, found] : state_->matcher.found()) {
    trace::Hop& hop = between[key];
    hop.flow = found.flow;
    hop.from = key.from;
    hop.to = key.to;
    hop.packets = std::max(hop.packets, found.packets);
    hop.segments = hop.packets;
    hop.timed = found.packets;
    hop.sum_ns = found.sum_ns;
    hop.max_ns = static_cast<std::uint64_t>(found.max_ns);
    hop.delays = found.delays;
    hop.clock_error_ns = found.error_ns;
  }
  for (auto& [key, hop] : between) made.hops.push_back(std::move(hop));
  if (state_->forgotten > 0) {
    made.summary.events_lost += state_->forgotten;
    made.summary.lost_why["journeys that an agent forgot before it was asked"] = state_->forgotten;
  }
  return made;
}

}  // namespace greynic::trace_hosts
