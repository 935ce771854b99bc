#include <fmt/core.h>

#include <filesystem>

#include "common/rules_target.h"
#include "greynic/flows/kinds.h"
#include "greynic/os/program.h"
#include "ovs/ovs_target.h"

namespace greynic::flows {
namespace {

constexpr const char* kStandardFolder = "/run/openvswitch";

/// Answers for a bridge of a running switch, with the remedy in the message.
Result<Ovsdb> database_in(const std::string& folder) {
  auto database = Ovsdb::connect(folder + "/db.sock");
  if (!database) {
    return fail(ErrorCode::kMissing,
                fmt::format("{}; start Open vSwitch, or name its folder with ?rundir=FOLDER",
                            database.error().message));
  }
  return database;
}

std::vector<target::Candidate> probe_ovs() {
  std::vector<target::Candidate> found;
  target::Candidate own{.spec = "ovs:br0",
                        .what = "Open vSwitch started by greynic, userspace datapath, measured"};
  const PrivateSwitch::Obstacle obstacle = PrivateSwitch::obstacle();
  own.available = obstacle.why_not.empty();
  own.why_not = obstacle.why_not;
  own.remedy = obstacle.remedy;
  found.push_back(std::move(own));
  target::Candidate running{.spec = fmt::format("ovs:BRIDGE?rundir={}", kStandardFolder),
                            .what = "rules of an Open vSwitch that runs already"};
  if (auto database = database_in(kStandardFolder)) {
    running.available = true;
  } else {
    running.why_not = fmt::format("no Open vSwitch runs in {}", kStandardFolder);
    running.remedy = "start openvswitch-switch, or name its folder with ?rundir=FOLDER";
  }
  found.push_back(std::move(running));
  return found;
}

Result<std::unique_ptr<target::Target>> open_running(const target::Spec& spec) {
  const std::string folder = spec.options.at("rundir");
  if (spec.place.empty() || spec.options.size() > 1) {
    return fail(ErrorCode::kBadInput,
                fmt::format("target '{}': write ovs:BRIDGE?rundir=FOLDER", spec.text));
  }
  const std::string bridge = spec.place;
  auto database = database_in(folder);
  if (!database) return pass_on(database);
  if (auto ports = database->ports(bridge); !ports) return pass_on(ports);
  auto driver = std::make_unique<OvsDriver>(
      folder + "/" + bridge + ".mgmt",
      [folder, bridge]() -> Result<PortNumbers> {
        auto again = database_in(folder);
        if (!again) return pass_on(again);
        return again->ports(bridge);
      },
      Journal::on_disk(fmt::format("ovs:{}/{}", folder, bridge)));
  if (auto recovered = driver->recover(); !recovered) return pass_on(recovered);
  target::Info info;
  info.name = spec.text;
  info.description = "rules of an Open vSwitch that runs already";
  info.keeps_layout = true;
  return std::unique_ptr<target::Target>(
      std::make_unique<RulesTarget>(std::move(info), std::move(driver), ovs_limits()));
}

Result<std::unique_ptr<target::Target>> open_ovs(const target::Spec& spec) {
  return spec.options.contains("rundir") ? open_running(spec) : PrivateOvsTarget::open(spec);
}

}  // namespace

target::Kind ovs_kind() { return {"ovs", open_ovs, probe_ovs}; }

}  // namespace greynic::flows
