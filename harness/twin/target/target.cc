#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "greynic/core/units.h"
#include "greynic/target/resettable.h"
#include "greynic/twin/twin.h"
#include "switch/layout_walk.h"
#include "target/measurement.h"
#include "target/target_options.h"

namespace greynic::twin {
namespace {

using target::Info;
using target::MeasureRequest;

Result<unsigned> read_threads(const std::string& text) {
  unsigned threads = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
  if (error != std::errc{} || end != text.data() + text.size() || threads < 1 || threads > 1024) {
    return fail(ErrorCode::kBadInput,
                fmt::format("option threads={}: write a whole number from 1 to 1024", text));
  }
  return threads;
}

/// How many hosts or RNICs a fleet has.
Result<double> read_count(const std::string& option, const std::string& text, double most) {
  std::uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc{} || end != text.data() + text.size() || count < 2 ||
      static_cast<double>(count) > most) {
    return fail(ErrorCode::kBadInput,
                fmt::format("option {}={}: write a whole number from 2 to {}", option, text, most));
  }
  return static_cast<double>(count);
}

/// The options that make a fleet of the two hosts.
struct FleetOptions {
  std::optional<std::string> file;
  std::optional<std::string> models;
  double hosts = 0, rnics = 0;
};

/// Loads the fleet when any of its options is there; hosts without rnics keep as many each.
Result<std::optional<FleetModel>> read_fleet(const FleetOptions& options) {
  const auto& [file, models, hosts, rnics] = options;
  if (!file && hosts == 0 && rnics == 0) return std::optional<FleetModel>();
  auto fleet = load_fleet(file.value_or("cloud"));
  if (!fleet) return pass_on(fleet);
  FleetParameters& f = fleet->parameters;
  const double own = f.rnic_count / f.host_count;
  const double containers = f.container_count / f.host_count;
  const double starts = f.flow_starts_per_day / f.rnic_count;
  f.host_count = hosts > 0   ? hosts
                 : rnics > 0 ? std::max(2.0, std::round(rnics / own))
                             : f.host_count;
  f.rnic_count = rnics > 0 ? rnics : std::round(own * f.host_count);
  f.container_count = std::round(containers * f.host_count);
  f.flow_starts_per_day = starts * f.rnic_count;
  if (f.rnic_count < f.host_count) {
    return fail(ErrorCode::kBadInput, fmt::format("{} RNICs on {} hosts: a host has at least one",
                                                  f.rnic_count, f.host_count));
  }
  for (ParameterFact& fact : fleet->set.facts) {
    if (fact.name == "host_count") fact.value = f.host_count;
    if (fact.name == "rnic_count") fact.value = f.rnic_count;
    if (fact.name == "container_count") fact.value = f.container_count;
  }
  return std::optional(std::move(*fleet));
}

/// "cx4,cx5,cx6": the models of a fleet, of which the first is the target's own.
Result<std::vector<RnicModel>> read_models(const std::string& text, const std::string& own) {
  std::vector<RnicModel> models;
  std::vector<std::string> seen = {own};
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string name = text.substr(begin, end - begin);
    begin = end + 1;
    if (name == own) continue;
    if (std::ranges::find(seen, name) != seen.end()) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("option models={}: '{}' stands there twice", text, name));
    }
    seen.push_back(name);
    auto model = load_model(name, "");
    if (!model) return model.error().while_doing("option models=" + text);
    if (!model->parameters.has_switch()) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("option models={}: {} has no switch that containers' flows could be "
                              "offloaded to; leave it out",
                              text, model->name));
    }
    models.push_back(std::move(*model));
  }
  return models;
}

/// `own`: the target's own model, as it was named.
Result<void> add_fleet(const FleetOptions& options, const std::string& own, Settings& settings) {
  auto fleet = read_fleet(options);
  if (!fleet) return pass_on(fleet);
  settings.fleet = std::move(*fleet);
  if (settings.fleet && !settings.model.parameters.has_switch()) {
    return fail(ErrorCode::kBadInput,
                settings.model.name +
                    " has no switch that containers' flows could be offloaded to; take another "
                    "model for a fleet");
  }
  if (!options.models) return {};
  if (!settings.fleet) {
    return fail(ErrorCode::kBadInput,
                "option models: two hosts have RNICs of one model; add hosts, rnics or fleet");
  }
  auto others = read_models(*options.models, own);
  if (!others) return pass_on(others);
  settings.other_models = std::move(*others);
  return {};
}

class TwinTarget final : public Twin, public target::RuleHolder, public target::Resettable {
 public:
  TwinTarget(target::Spec spec, Settings settings, unsigned threads)
      : spec_(std::move(spec)), settings_(std::move(settings)), threads_(threads) {}

  void set_counter_sink(CounterSink sink) override { settings_.sink = std::move(sink); }
  void set_counter_arenas(target::CounterArenas arenas) override {
    settings_.arenas = std::move(arenas);
  }

  Info info() const override { return describe(settings_, spec_.text); }
  target::RuleHolder& rules() override { return *this; }

  Result<void> measure(std::span<const MeasureRequest> requests,
                       const target::ObservationSink& sink) override {
    // Who watches the counters sees one device, which does one thing at a time; so does one on which
    // a measurement leaves something to the next.
    const bool one_device = settings_.sink || faults_of(settings_.defects).offload_stays_off;
    const std::size_t most = one_device ? 1 : threads_;
    const auto workers = static_cast<unsigned>(std::min(most, requests.size()));
    if (workers <= 1) {
      for (std::size_t i = 0; i < requests.size(); ++i) {
        if (!sink(i, observe(settings_, requests[i], device_))) return {};
      }
      return {};
    }
    return measure_on(workers, requests, sink);
  }

  Result<void> check(const target::FittedLayout& fitted, const target::Placement&) override {
    const Parameters& p = settings_.model.parameters;
    if (settings_.fleet) return check_fleet_layout(settings_, fitted);
    if (!p.has_switch()) {
      return fail(ErrorCode::kUnsupported,
                  settings_.model.name + " has no switch that rules could be offloaded to");
    }
    if (auto kept = keeps_to(fitted.layout(), limits()); !kept) {
      return fail(ErrorCode::kRefused, settings_.model.name + ": " + kept.error().message);
    }
    return {};
  }

  LayoutLimits limits() const override {
    return settings_.fleet ? fleet_limits(settings_) : layout_limits(settings_.model.parameters);
  }

  std::vector<ModelLimits> models() const override {
    return settings_.fleet ? fleet_models(settings_) : std::vector<ModelLimits>();
  }

  bool has_slow_path() const override { return settings_.fleet.has_value(); }

  Result<void> install(const target::FittedLayout& fitted, const Traffic* traffic,
                       const target::Placement& placement) override {
    if (auto ok = check(fitted, placement); !ok) return ok;
    if (settings_.fleet) {
      install_on_fleet(fitted, traffic, placement.hop, settings_);
    } else {
      settings_.installed[static_cast<std::size_t>(placement.hop)] =
          walk_of(fitted.layout(), traffic, settings_.options.grouping);
    }
    return {};
  }

  Result<void> reset() override {
    device_ = {};
    return {};
  }

  Result<void> roll_back() override {
    settings_.installed = {};
    settings_.fleet_rules = {};
    settings_.layout_taken.clear();
    return {};
  }

 private:
  /// Workers take requests as they come; answers leave in the order of the requests, so that what
  /// is stored does not depend on the number of workers.
  Result<void> measure_on(unsigned workers, std::span<const MeasureRequest> requests,
                          const target::ObservationSink& sink) {
    std::mutex mutex;
    std::condition_variable done;
    std::map<std::size_t, Observation> finished;
    std::atomic<std::size_t> next{0};
    std::atomic<bool> stop{false};
    const auto work = [&] {
      for (std::size_t i = next++; i < requests.size() && !stop; i = next++) {
        DeviceState device;
        Observation observation = observe(settings_, requests[i], device);
        const std::lock_guard lock(mutex);
        finished.emplace(i, std::move(observation));
        done.notify_one();
      }
    };
    std::vector<std::jthread> pool;
    pool.reserve(workers);
    for (unsigned i = 0; i < workers; ++i) pool.emplace_back(work);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      std::unique_lock lock(mutex);
      done.wait(lock, [&] { return finished.contains(i); });
      Observation observation = std::move(finished.extract(i).mapped());
      lock.unlock();
      if (!sink(i, std::move(observation))) {
        stop = true;
        break;
      }
    }
    return {};
  }

  target::Spec spec_;
  Settings settings_;
  unsigned threads_;
  DeviceState device_;
};

}  // namespace

Result<std::unique_ptr<Twin>> create(const target::Spec& spec) {
  Settings settings;
  unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  const auto wrong = [&](const Error& error) {
    return error.while_doing("target '" + spec.text + "'");
  };
  std::string profile;
  std::string virtual_switch = "ovs";
  FleetOptions fleet;
  for (const auto& [name, value] : spec.options) {
    if (name == "profile") {
      profile = value;
    } else if (name == "threads") {
      const auto read = read_threads(value);
      if (!read) return wrong(read.error());
      threads = *read;
    } else if (name == "stop") {
      const auto whole = read_choice(name, value, "steady", "duration");
      if (!whole) return wrong(whole.error());
      settings.whole_duration = *whole;
    } else if (name == "defects") {
      auto defects = read_defects(value);
      if (!defects) return wrong(defects.error());
      settings.defects = *defects;
    } else if (name == "bursts") {
      const auto delay = parse_duration(value);
      if (!delay) return wrong(delay.error());
      settings.burst_delay = *delay;
    } else if (name == "switch") {
      virtual_switch = value;
    } else if (name == "fleet") {
      fleet.file = value;
    } else if (name == "models") {
      fleet.models = value;
    } else if (name == "hosts" || name == "rnics") {
      const auto count = read_count(name, value, name == "hosts" ? 1e6 : 1e7);
      if (!count) return wrong(count.error());
      (name == "hosts" ? fleet.hosts : fleet.rnics) = *count;
    } else {
      const auto known = read_load_option(name, value, settings.options);
      if (!known) return wrong(known.error());
      if (*known) continue;
      return wrong({ErrorCode::kBadInput,
                    fmt::format("there is no option '{}'; a twin has profile, defects, switch, "
                                "bursts, fleet, hosts, rnics, models, threads, stop, {}",
                                name, load_options())});
    }
  }
  auto model = load_model(spec.place.empty() ? "cx6" : spec.place, profile);
  if (!model) return wrong(model.error());
  settings.model = std::move(*model);
  const Parameters& parameters = settings.model.parameters;
  if (settings.options.server_link_gbps > parameters.link_rate_gbps) {
    return wrong({ErrorCode::kBadInput,
                  fmt::format("option server_link_gbps={}: the client's link has {}; write less",
                              settings.options.server_link_gbps, parameters.link_rate_gbps)});
  }
  if (settings.options.dcqcn && parameters.dcqcn_gain <= 0) {
    return wrong({ErrorCode::kBadInput, settings.model.name + " has no DCQCN; leave dcqcn off"});
  }
  if (settings.options.grouping.large_groups && parameters.large_group_count <= 0) {
    return wrong({ErrorCode::kBadInput,
                  settings.model.name + "'s driver makes no groups by itself; leave large_groups "
                                        "out"});
  }
  auto vswitch = load_switch(virtual_switch);
  if (!vswitch) return wrong(vswitch.error());
  settings.virtual_switch = std::move(*vswitch);
  if (auto added = add_fleet(fleet, spec.place.empty() ? "cx6" : spec.place, settings); !added) {
    return wrong(added.error());
  }
  return std::unique_ptr<Twin>(std::make_unique<TwinTarget>(spec, std::move(settings), threads));
}

Result<std::unique_ptr<Twin>> create(std::string_view text) {
  auto specs = target::parse_specs(text);
  if (!specs) return pass_on(specs);
  if (specs->size() != 1 || specs->front().kind != "twin") {
    return fail(ErrorCode::kBadInput,
                fmt::format("'{}' is no twin; write twin:cx6 or twin:model.json", text));
  }
  return create(specs->front());
}

target::Kind kind() {
  return {
      .name = "twin",
      .open = [](const target::Spec& spec) -> Result<std::unique_ptr<target::Target>> {
        auto twin = create(spec);
        if (!twin) return pass_on(twin);
        return std::unique_ptr<target::Target>(std::move(*twin));
      },
      .probe =
          [] {
            std::vector<target::Candidate> found;
            for (const std::string& name : embedded_model_names()) {
              const auto model = load_model(name, "");
              if (!model) continue;
              found.push_back({.spec = "twin:" + name,
                               .available = true,
                               .what = fmt::format("virtual {}, {:g} Gbit/s, virtual time",
                                                   model->name, model->parameters.link_rate_gbps),
                               .why_not = "",
                               .remedy = ""});
            }
            return found;
          }};
}

}  // namespace greynic::twin
