#include "data/setting.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace greynic::model {
namespace {

// Ethernet 14 + IPv4 20 + UDP 8 + BTH 12 + ICRC 4 + FCS 4, then the VXLAN envelope (Ethernet 14 +
// IPv4 20 + UDP 8 + VXLAN 8), then preamble 8 and inter-packet gap 12.
constexpr double kHeaderBytes = 62.0 + 50.0 + 20.0;

constexpr double kPageBytes = 4096.0;

Result<double> read_number(const Configuration& configuration, const Configuration& assumed,
                           std::string_view name) {
  const FactorInfo* info = find_factor(name);
  const FactorValue* value = configuration.find(name);
  if (value == nullptr) value = assumed.find(name);
  if (value == nullptr) value = &info->standard;
  const double* number = std::get_if<double>(value);
  if (number == nullptr || !std::isfinite(*number)) {
    return fail(ErrorCode::kBadInput,
                fmt::format("{} must be a number, not '{}'", name, to_string(*value)));
  }
  if (*number < info->minimum || *number > info->maximum) {
    return fail(ErrorCode::kBadInput, fmt::format("{}={} lies outside {} to {}", name, *number,
                                                  info->minimum, info->maximum));
  }
  return *number;
}

std::string read_text(const Configuration& configuration, const Configuration& assumed,
                      std::string_view name) {
  if (const FactorValue* value = configuration.find(name)) return to_string(*value);
  return assumed.text(name);
}

}  // namespace

double Setting::packets() const { return std::max(1.0, std::ceil(bytes / mtu)); }

double Setting::wire_bytes() const {
  const double padded = std::ceil(bytes / 4.0) * 4.0;
  // RETH of a WRITE's first packet; AETH of a READ answer's first and last; AtomicETH.
  double extra = 0.0;
  if (operation == Operation::kWrite) extra = 16.0;
  if (operation == Operation::kRead) extra = packets() > 1.0 ? 8.0 : 4.0;
  if (operation == Operation::kAtomic) extra = 28.0;
  return padded + packets() * kHeaderBytes + extra;
}

const std::vector<std::string>& setting_factors() {
  static const std::vector<std::string> names = {
      "client_decap_masks", "client_encap_masks", "doorbell_sharing",   "flow_setup_rate",
      "inline_bytes",       "message_bytes",      "mr_bytes",           "mr_count",
      "mtu_bytes",          "operation",          "post_batch",         "qp_count",
      "send_queue_depth",   "server_decap_masks", "server_encap_masks", "thread_count",
      "transport",          "vxlan_contexts"};
  return names;
}

Result<Setting> read_setting(const Configuration& configuration, const Configuration& assumed) {
  Setting setting;
  double mr_count = 1;
  double mr_bytes = 1;
  const std::pair<std::string_view, double*> numbers[] = {
      {"message_bytes", &setting.bytes},
      {"mtu_bytes", &setting.mtu},
      {"qp_count", &setting.qps},
      {"send_queue_depth", &setting.depth},
      {"thread_count", &setting.threads},
      {"post_batch", &setting.batch},
      {"inline_bytes", &setting.inline_bytes},
      {"client_encap_masks", &setting.masks[static_cast<int>(Hop::kClientEncap)]},
      {"server_decap_masks", &setting.masks[static_cast<int>(Hop::kServerDecap)]},
      {"server_encap_masks", &setting.masks[static_cast<int>(Hop::kServerEncap)]},
      {"client_decap_masks", &setting.masks[static_cast<int>(Hop::kClientDecap)]},
      {"mr_count", &mr_count},
      {"mr_bytes", &mr_bytes},
      {"vxlan_contexts", &setting.vxlan_contexts},
      {"flow_setup_rate", &setting.flow_setup_rate},
  };
  for (const auto& [name, place] : numbers) {
    auto value = read_number(configuration, assumed, name);
    if (!value) return pass_on(value);
    *place = *value;
  }
  setting.mr_pages = mr_count * std::max(1.0, std::ceil(mr_bytes / kPageBytes));
  const std::string operation = read_text(configuration, assumed, "operation");
  const auto known = operation_named(operation);
  if (!known) {
    return fail(ErrorCode::kBadInput,
                fmt::format("operation '{}' is not SEND, WRITE, READ or ATOMIC", operation));
  }
  setting.operation = *known;
  const std::string transport = read_text(configuration, assumed, "transport");
  setting.dedicated_doorbells =
      read_text(configuration, assumed, "doorbell_sharing") == "dedicated";
  setting.reliable = transport == "RC" || transport == "XRC";
  return setting;
}

}  // namespace greynic::model
