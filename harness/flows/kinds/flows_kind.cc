/// The targets whose names begin with "flows:".

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "common/rules_target.h"
#include "greynic/flows/kinds.h"
#include "tc/tc_driver.h"
#include "tc/tc_target.h"
#ifdef GREYNIC_FLOWS_WITH_DPDK
#include "dpdk/rte_open.h"
#endif

namespace greynic::flows {
namespace {

constexpr std::string_view kTc = "tc";
constexpr std::string_view kInterface = "tc:";
constexpr std::string_view kDpdk = "dpdk:";

tl::unexpected<Error> bad_form(const target::Spec& spec) {
  return fail(ErrorCode::kBadInput,
              fmt::format("target '{}': write flows:tc (a veth pair of greynic's own, measured) or "
                          "flows:tc:INTERFACE, each with ?skip=sw or ?skip=hw if need be, or "
                          "flows:dpdk:DEVICE as DPDK names it (net_tap0, 0000:03:00.0)",
                          spec.text));
}

/// "skip=hw" as ip-link users know it: what tc is told to leave out.
Result<TcPlace> place_of(const target::Spec& spec) {
  TcPlace place = TcPlace::kBoth;
  for (const auto& [name, value] : spec.options) {
    if (name != "skip" || (value != "sw" && value != "hw")) return bad_form(spec);
    place = value == "sw" ? TcPlace::kHardwareOnly : TcPlace::kSoftwareOnly;
  }
  return place;
}

Result<std::unique_ptr<target::Target>> open_interface(const target::Spec& spec,
                                                       const std::string& interface,
                                                       TcPlace place) {
  auto driver = TcDriver::open(interface, place, Journal::on_disk("tc:" + interface));
  if (!driver) return pass_on(driver);
  if (auto recovered = (*driver)->recover(); !recovered) return pass_on(recovered);
  target::Info info;
  info.name = spec.text;
  info.description = "tc flower on the ingress of " + interface;
  info.keeps_layout = true;
  return std::unique_ptr<target::Target>(
      std::make_unique<RulesTarget>(std::move(info), std::move(*driver), tc_limits()));
}

#ifdef GREYNIC_FLOWS_WITH_DPDK
Result<std::unique_ptr<target::Target>> open_dpdk(const target::Spec& spec,
                                                  const std::string& device) {
  if (!spec.options.empty()) return bad_form(spec);
  auto driver = open_rte(device);
  if (!driver) return pass_on(driver);
  target::Info info;
  info.name = spec.text;
  info.description = "rte_flow on the DPDK device " + device + ", which this process owns";
  auto offer = (*driver)->probe();
  if (!offer) return pass_on(offer);
  if (offer->fields.empty() && offer->actions.empty()) {
    return fail(ErrorCode::kMissing,
                fmt::format("the DPDK device {} takes no rule at all; net_tap needs a kernel that "
                            "has cls_flower and sch_multiq, as Debian's does (tests/vm/run)",
                            device));
  }
  const bool jumps = std::find(offer->actions.begin(), offer->actions.end(), ActionKind::kJump) !=
                     offer->actions.end();
  LayoutLimits limits = {.last_table = offer->last_table, .cuts_pay = jumps};
  for (const OfferedField& row : offer->fields) {
    if (!row.any_mask) limits.whole_fields.insert(row.field);
  }
  return std::unique_ptr<target::Target>(
      std::make_unique<RulesTarget>(std::move(info), std::move(*driver), limits));
}

/// PCI devices that are bound to a driver through which DPDK reaches them.
std::vector<std::string> pci_devices_for_dpdk() {
  constexpr std::array kDrivers = {"vfio-pci", "uio_pci_generic", "igb_uio", "mlx4_core",
                                   "mlx5_core"};
  std::vector<std::string> found;
  for (const std::string driver : kDrivers) {
    std::error_code none;
    for (const auto& entry :
         std::filesystem::directory_iterator("/sys/bus/pci/drivers/" + driver, none)) {
      const std::string name = entry.path().filename();
      if (name.find(':') != std::string::npos) found.push_back(name);
    }
  }
  return found;
}

/// `flower`: what net_tap's rules end in.
std::vector<target::Candidate> dpdk_candidates(const TcObstacle& flower) {
  target::Candidate tap{.spec = "flows:dpdk:net_tap0",
                        .what = "rte_flow on DPDK's tap, which makes tc flower filters of rules"};
  std::vector<target::Candidate> found;
  for (const std::string& device : pci_devices_for_dpdk()) {
    found.push_back({.spec = "flows:dpdk:" + device,
                     .available = true,
                     .what = "rte_flow on a network card that DPDK drives"});
  }
  if (found.empty()) {
    found.push_back(
        {.spec = "flows:dpdk:0000:BB:DD.F",
         .what = "rte_flow on a network card that DPDK drives",
         .why_not = "no PCI device is bound to a driver that DPDK uses",
         .remedy = "bind one: dpdk-devbind.py --bind=vfio-pci 0000:BB:DD.F (mlx4 and mlx5 cards "
                   "stay with the kernel's driver)"});
  }
  const int tun = ::open("/dev/net/tun", O_RDWR | O_CLOEXEC);
  if (tun >= 0) {
    ::close(tun);
    tap.why_not = flower.why_not;
    tap.remedy = flower.remedy;
  } else {
    tap.why_not = fmt::format("/dev/net/tun cannot be opened: {}", std::strerror(errno));
    tap.remedy = "run as root with the tun module loaded (modprobe tun)";
  }
  tap.available = tap.why_not.empty();
  found.push_back(std::move(tap));
  return found;
}

#else

Result<std::unique_ptr<target::Target>> open_dpdk(const target::Spec& spec, const std::string&) {
  return fail(ErrorCode::kMissing,
              fmt::format("target '{}': this build has no DPDK; apt-get install libdpdk-dev and "
                          "configure again",
                          spec.text));
}

std::vector<target::Candidate> dpdk_candidates(const TcObstacle&) {
  return {{.spec = "flows:dpdk:DEVICE",
           .what = "rte_flow on a device that DPDK drives",
           .why_not = "this build has no DPDK",
           .remedy = "apt-get install libdpdk-dev, configure and build again"}};
}

#endif

Result<std::unique_ptr<target::Target>> open_flows(const target::Spec& spec) {
  const std::string_view place = spec.place;
  if (place.starts_with(kDpdk) && place != kDpdk) {
    return open_dpdk(spec, std::string(place.substr(kDpdk.size())));
  }
  const auto where = place_of(spec);
  if (!where) return pass_on(where);
  if (place == kTc) return TcTarget::open(spec, *where);
  if (place.starts_with(kInterface) && place != kInterface) {
    return open_interface(spec, std::string(place.substr(kInterface.size())), *where);
  }
  return bad_form(spec);
}

std::vector<target::Candidate> probe_flows() {
  target::Candidate own{.spec = "flows:tc",
                        .what = "tc flower on a veth pair of greynic's own, measured"};
  const TcObstacle obstacle = tc_obstacle();
  own.available = obstacle.why_not.empty();
  own.why_not = obstacle.why_not;
  own.remedy = obstacle.remedy;
  target::Candidate real = own;
  real.spec = "flows:tc:INTERFACE";
  real.what = "tc flower on the ingress of a network interface";
  std::vector<target::Candidate> found = {own, real};
  for (target::Candidate& device : dpdk_candidates(obstacle)) found.push_back(std::move(device));
  return found;
}

}  // namespace

target::Kind flows_kind() { return {"flows", open_flows, probe_flows}; }

}  // namespace greynic::flows
