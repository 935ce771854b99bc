#include "greynic/rnic/sampler.h"

#include <fmt/core.h>
#include <fnmatch.h>

#include <filesystem>
#include <fstream>
#include <list>

#include "ports.h"
#include "qps.h"

namespace greynic::rnic {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

struct Sampler::State {
  struct Place {
    std::string name;  ///< "mlx5_0/1"
    CounterGroup group;
  };
  SamplerOptions options;
  std::list<Place> places;
  std::list<QpRows> qps;

  void add_port(const std::string& device, const std::string& port) {
    const fs::path folder = fs::path(options.sysfs) / "class/infiniband" / device / "ports" / port;
    const std::string labels =
        fmt::format("device=\"{}\",port=\"{}\"", fit_label(device), fit_label(port));
    const auto add = [&](std::optional<CounterGroup> group) {
      if (group) places.push_back({fmt::format("{}/{}", device, port), std::move(*group)});
    };
    add(CounterGroup::of_folder(folder / "counters", "port", labels, options.selection));
    add(CounterGroup::of_folder(folder / "hw_counters", "hw", labels, options.selection));
    const std::string interface = first_line(folder / "gid_attrs/ndevs/0");
    if (interface.empty()) return;
    add(CounterGroup::of_interface(options.sysfs, interface,
                                   fmt::format("{},interface=\"{}\"", labels, fit_label(interface)),
                                   options.selection, options.ask_kernel));
  }
};

Sampler::Sampler(std::unique_ptr<State> state) : state_(std::move(state)) {}
Sampler::Sampler(Sampler&&) noexcept = default;
Sampler& Sampler::operator=(Sampler&&) noexcept = default;
Sampler::~Sampler() = default;

Result<Sampler> Sampler::open(const SamplerOptions& options) {
  auto state = std::make_unique<State>();
  state->options = options;
  const fs::path folder = fs::path(options.sysfs) / "class/infiniband";
  bool any = false;
  for (const std::string& device : sorted_names(folder)) {
    if (::fnmatch(options.device.c_str(), device.c_str(), 0) != 0) continue;
    any = true;
    for (const std::string& port : sorted_names(folder / device / "ports")) {
      state->add_port(device, port);
    }
    if (options.ask_kernel) state->qps.emplace_back(device, state->options.selection);
  }
  if (!any) {
    return fail(ErrorCode::kMissing,
                fmt::format("no RDMA device '{}' in {}; `greynic devices` lists those that are "
                            "there, and `modprobe rdma_rxe` with `rdma link add` makes one in "
                            "software",
                            options.device, folder.string()));
  }
  if (state->places.empty() && state->qps.empty()) {
    return fail(ErrorCode::kMissing, "none of the device's counters was selected");
  }
  for (QpRows& one : state->qps) one.sample();
  return Sampler(std::move(state));
}

void Sampler::sample_ports() {
  for (State::Place& one : state_->places) one.group.sample();
}

void Sampler::sample_qps() {
  for (QpRows& one : state_->qps) one.sample();
}

std::vector<std::string> Sampler::names() const {
  std::vector<std::string> names;
  for (const State::Place& place : state_->places) {
    for (const std::string& name : place.group.names()) {
      names.push_back(fmt::format("{} {}", place.name, name));
    }
  }
  for (const QpRows& one : state_->qps) {
    for (const std::string& name : one.names()) names.push_back(name);
  }
  return names;
}

}  // namespace greynic::rnic
