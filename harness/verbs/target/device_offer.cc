#include "target/device_offer.h"

#include <fmt/core.h>

#include "greynic/verbs/faults.h"
#include "greynic/verbs/verbs_target.h"

namespace greynic::verbs {

target::Info what_it_offers(const Device& device) {
  target::Info info;
  info.factors = honoured_factors();
  const DeviceLimits& limits = device.limits();
  info.limits = {{"qp_count", limits.qp_count},
                 {"send_queue_depth", limits.queue_depth},
                 {"receive_queue_depth", limits.queue_depth},
                 {"sge_count", limits.sge_count},
                 {"mr_count", limits.mr_count},
                 {"mr_bytes", static_cast<double>(limits.mr_bytes)},
                 {"message_bytes", static_cast<double>(limits.message_bytes)}};
  if (const auto port = device.port_state()) info.limits["mtu_bytes"] = port->active_mtu_bytes;
  info.categories["transport"] = {"RC", "UC", "UD"};
  if (limits.xrc) info.categories["transport"].emplace_back("XRC");
  info.categories["doorbell_sharing"] = {"default"};
  if (limits.thread_domains) {
    info.categories["doorbell_sharing"].emplace_back("dedicated");
  } else {
    info.facts.push_back({"doorbell_sharing", "default only", "", "probed",
                          "the provider has no thread domains (ibv_alloc_td)"});
  }
  info.categories["completion_mode"] = {"polling", "events", "hybrid"};
  auto& operations = info.categories["operation"];
  operations = {"SEND", "SEND_WITH_IMM", "WRITE", "WRITE_WITH_IMM", "READ"};
  if (limits.memory_windows_2b) operations.emplace_back("SEND_WITH_INV");
  if (limits.atomics) operations.insert(operations.end(), {"ATOMIC", "CAS", "FADD"});
  for (const Trait& trait : known_traits()) {
    if (device.driver().starts_with(trait.driver)) {
      info.facts.push_back({std::string(trait.subject), std::string(trait.fact), "", "known",
                            std::string(trait.source)});
    }
  }
  for (const StatusDeparture& known : known_departures()) {
    if (device.driver().starts_with(known.driver)) {
      info.facts.push_back({fmt::format("status of {} on {}", known.fault, known.operation),
                            std::string(known.status), "", "known", std::string(known.source)});
    }
  }
  return info;
}

}  // namespace greynic::verbs
