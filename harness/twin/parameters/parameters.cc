#include "parameters/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "greynic/core/embedded.h"
#include "greynic/files/json_file.h"

namespace greynic::twin {

std::span<const EmbeddedFile> embedded_rnics();  // made by cmake from configs/rnics

namespace {

using nlohmann::json;

/// What an absent value (null) means for a parameter.
enum class Null : std::uint8_t { kRefused, kZero, kUnlimited };

struct Row {
  std::string_view name;
  double Parameters::*member = nullptr;
  PerOperation Parameters::*by_operation = nullptr;
  double minimum = 0;
  double maximum = 1e12;
  Null null = Null::kRefused;
};

Row row(std::string_view name, double Parameters::*member, double minimum, double maximum,
        Null null = Null::kRefused) {
  return {name, member, nullptr, minimum, maximum, null};
}
Row row(std::string_view name, PerOperation Parameters::*member, double minimum, double maximum) {
  return {name, nullptr, member, minimum, maximum, Null::kRefused};
}

/// Port, PCIe, engines, host software and caches.
std::vector<Row> rows_of_rnic() {
  using P = Parameters;
  return {
      row("link_rate_gbps", &P::link_rate_gbps, 0.1, 10000),
      row("pcie_generation", &P::pcie_generation, 3, 5),
      row("pcie_lanes", &P::pcie_lanes, 1, 16),
      row("pcie_max_payload_bytes", &P::pcie_max_payload_bytes, 128, 4096),
      row("pcie_max_read_request_bytes", &P::pcie_max_read_request_bytes, 128, 4096),
      row("pcie_read_latency_ns", &P::pcie_read_latency_ns, 1, 1e6),
      row("pcie_read_slot_count", &P::pcie_read_slot_count, 1, 65536),
      row("pcie_post_ns", &P::pcie_post_ns, 1, 1e6),
      row("datasheet_message_rate_mops", &P::datasheet_message_rate_mops, 0.001, 1e5),
      row("peak_read_mops", &P::peak_read_mops, 0.001, 1e5),
      row("peak_write_mops", &P::peak_write_mops, 0.001, 1e5),
      row("atomic_rate_mops", &P::atomic_rate_mops, 0.001, 1e5, Null::kZero),
      row("processing_unit_count", &P::processing_unit_count, 1, 64),
      row("qp_packet_rate_cap_mpps", &P::qp_packet_rate_cap_mpps, 0.001, 1e5),
      row("base_half_rtt_us", &P::base_half_rtt_us, 0.01, 1e5),
      row("one_way_ns", &P::one_way_ns, 0, 1e7),
      row("ack_ns", &P::ack_ns, 0, 1e6),
      row("send_gap_ns", &P::send_gap_ns, 0, 1e6),
      row("receive_buffer_packets", &P::receive_buffer_packets, 8, 1 << 20),
      row("receive_resume_packets", &P::receive_resume_packets, 1, 1 << 20),
      row("dcqcn_gain", &P::dcqcn_gain, 1e-6, 1, Null::kZero),
      row("dcqcn_alpha_us", &P::dcqcn_alpha_us, 0.1, 1e6),
      row("dcqcn_increase_us", &P::dcqcn_increase_us, 0.1, 1e6),
      row("dcqcn_increase_bytes", &P::dcqcn_increase_bytes, 1024, 1e12),
      row("dcqcn_recovery_steps", &P::dcqcn_recovery_steps, 0, 1000),
      row("dcqcn_additive_gbps", &P::dcqcn_additive_gbps, 0, 1e4),
      row("dcqcn_hyper_gbps", &P::dcqcn_hyper_gbps, 0, 1e4),
      row("dcqcn_minimum_gbps", &P::dcqcn_minimum_gbps, 1e-6, 1e4),
      row("dcqcn_cnp_us", &P::dcqcn_cnp_us, 0, 1e6),
      row("port_ecn_low_kbytes", &P::port_ecn_low_kbytes, 0, 1e9),
      row("port_ecn_high_kbytes", &P::port_ecn_high_kbytes, 0, 1e9),
      row("port_ecn_share", &P::port_ecn_share, 0, 1),
      row("port_pause_kbytes", &P::port_pause_kbytes, 1, 1e9),
      row("port_resume_kbytes", &P::port_resume_kbytes, 0, 1e9),
      row("port_buffer_kbytes", &P::port_buffer_kbytes, 1, 1e9),
      row("transmit_buffer_packets", &P::transmit_buffer_packets, 8, 1 << 20),
      row("stored_stage_count", &P::stored_stage_count, 0, 64),
      row("post_request_ns", &P::post_request_ns, 1, 1e7),
      row("completion_ns", &P::completion_ns, 0, 1e7),
      row("doorbell_register_count", &P::doorbell_register_count, 1, 65536),
      row("doorbell_dedicated_count", &P::doorbell_dedicated_count, 0, 65535),
      row("lock_transfer_ns", &P::lock_transfer_ns, 0, 1e7),
      row("doorbell_lock_ns", &P::doorbell_lock_ns, 0, 1e7),
      row("doorbell_contention_ns", &P::doorbell_contention_ns, 0, 1e7),
      row("qp_lock_ns", &P::qp_lock_ns, 0, 1e7),
      row("qp_contention_ns", &P::qp_contention_ns, 0, 1e7),
      row("contention_limit_threads", &P::contention_limit_threads, 1, 65536),
      row("cores_per_socket", &P::cores_per_socket, 1, 4096),
      row("far_socket_ns", &P::far_socket_ns, 0, 1e6),
      row("smt_slowdown", &P::smt_slowdown, 1, 10),
      row("context_entry_count", &P::context_entry_count, 1, 1 << 24),
      row("context_fetch_slot_count", &P::context_fetch_slot_count, 1, 65536),
      row("context_fetch_ns", &P::context_fetch_ns, 1, 1e6),
      row("mtt_entry_count", &P::mtt_entry_count, 1, 1 << 26),
      row("wqe_cache_entry_count", &P::wqe_cache_entry_count, 1, 1 << 24),
      row("max_inline_bytes", &P::max_inline_bytes, 0, 4096),
  };
}

/// The eSwitch, its rules, and the software behind it.
std::vector<Row> rows_of_switch() {
  using P = Parameters;
  return {
      row("chip_clock_mhz", &P::chip_clock_mhz, 1, 1e5),
      row("steering_pipe_count", &P::steering_pipe_count, 1, 64),
      row("base_hops_per_packet", &P::base_hops_per_packet, 0, 1000),
      row("encap_per_group_ns", &P::encap_per_group_ns, 0, 1e6),
      row("decap_per_group_ns", &P::decap_per_group_ns, 0, 1e6),
      row("hops_per_group", &P::hops_per_group, 0, 1000),
      row("encap_unit_cycles_per_group", &P::encap_unit_cycles_per_group, 0, 1000),
      row("walk_burst_packets", &P::walk_burst_packets, 0, 1 << 20),
      row("walk_window_packets", &P::walk_window_packets, 0, 1 << 20),
      row("loop_window_packets", &P::loop_window_packets, 0, 1 << 20),
      row("loop_base_us", &P::loop_base_us, 0, 1e5),
      row("steering_cache_entry_count", &P::steering_cache_entry_count, 1, 1 << 26),
      row("large_group_count", &P::large_group_count, 1, 1024, Null::kZero),
      row("recipe_word_count", &P::recipe_word_count, 1, 64, Null::kZero),
      row("recipe_chain_limit", &P::recipe_chain_limit, 1, 64, Null::kZero),
      row("mask_shape_limit", &P::mask_shape_limit, 0, 1e6, Null::kUnlimited),
      row("table_limit", &P::table_limit, 1, 1e9, Null::kUnlimited),
      row("table_rule_limit", &P::table_rule_limit, 2, 1e9, Null::kUnlimited),
      row("table_rejoin", &P::table_rejoin, 0, 1),
      row("range_field_count", &P::range_field_count, 0, 8),
      row("encap_context_limit", &P::encap_context_limit, 0, 1e9),
      row("rule_insert_us", &P::rule_insert_us, 0.001, 1e9),
      row("rule_delete_us", &P::rule_delete_us, 0.001, 1e9),
      row("rule_group_us", &P::rule_group_us, 0, 1e9),
      row("rule_delete_knee_count", &P::rule_delete_knee_count, 1, 1e9),
      row("driver_timeout_ms", &P::driver_timeout_ms, 1, 1e9),
      row("flow_limit_count", &P::flow_limit_count, 1, 1e9),
      row("upcall_us", &P::upcall_us, 0.1, 1e6),
      row("slow_path_mpps", &P::slow_path_mpps, 0.001, 1e4),
      row("counter_refresh_ms", &P::counter_refresh_ms, 0.1, 1e7),
  };
}

const std::vector<Row>& table() {
  static const std::vector<Row> rows = [] {
    std::vector<Row> all = rows_of_rnic();
    const std::vector<Row> more = rows_of_switch();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return rows;
}

const Row* find_row(std::string_view name) {
  for (const Row& candidate : table()) {
    if (candidate.name == name) return &candidate;
  }
  return nullptr;
}

/// READ and ATOMIC move data by RDMA as WRITE does: they take its value unless they have their own.
PerOperation spread(const ParameterFact& fact) {
  PerOperation result;
  const std::map<std::string, double> own(fact.by_operation.begin(), fact.by_operation.end());
  for (std::size_t i = 0; i < kOperationCount; ++i) {
    double value = fact.value.value_or(0.0);
    if (i > 0 && own.contains("WRITE")) value = own.at("WRITE");
    const auto mine = own.find(std::string(kOperationNames[i]));
    result.value[i] = mine != own.end() ? mine->second : value;
  }
  return result;
}

Result<void> store(const ParameterFact& fact, const Row& to, const std::string& source,
                   const std::string& path, Parameters& parameters) {
  const auto check = [&](double value) -> Result<void> {
    if (value >= to.minimum && value <= to.maximum) return {};
    return files::bad_value(source, path,
                            fmt::format("{} is {}, outside {} to {}; give a value in that range",
                                        fact.name, value, to.minimum, to.maximum));
  };
  if (!fact.value && to.null == Null::kRefused) {
    return files::bad_value(source, path + "/value",
                            fact.name + " is null, but the simulator needs it; give an estimate");
  }
  if (fact.value) {
    if (auto ok = check(*fact.value); !ok) return ok;
  }
  for (const auto& [operation, value] : fact.by_operation) {
    if (to.by_operation == nullptr) {
      return files::bad_value(source, path + "/by_operation",
                              fact.name + " does not differ between operations; remove it");
    }
    if (auto ok = check(value); !ok) return ok;
  }
  if (to.by_operation != nullptr) {
    parameters.*to.by_operation = spread(fact);
  } else {
    parameters.*to.member = fact.value.value_or(to.null == Null::kUnlimited ? -1.0 : 0.0);
  }
  return {};
}

Result<RnicModel> parse_model(const json& document, const std::string& source,
                              const std::string& profile) {
  RnicModel model;
  model.id = document.at("id").get<std::string>();
  model.name = document.at("name").get<std::string>();
  for (const auto& [name, overrides] : document.at("profiles").items()) {
    model.profiles.push_back(name);
  }
  model.profile = profile.empty() ? document.at("default_profile").get<std::string>() : profile;
  const auto chosen = document.at("profiles").find(model.profile);
  if (chosen == document.at("profiles").end()) {
    return files::bad_value(source, "/profiles",
                            fmt::format("there is no profile '{}'; there are {}", model.profile,
                                        fmt::join(model.profiles, ", ")));
  }
  for (const auto& [name, overriding] : chosen->items()) {
    if (find_row(name) == nullptr) {
      return files::bad_value(source, "/profiles/" + model.profile + "/" + name,
                              "no such parameter; docs/formats/rnic.md lists them");
    }
  }
  for (const auto& [name, unused] : document.at("parameters").items()) {
    const Row* to = find_row(name);
    if (to == nullptr) {
      return files::bad_value(source, "/parameters/" + name,
                              "no such parameter; docs/formats/rnic.md lists them");
    }
    const bool overridden = chosen->contains(name);
    const std::string place = overridden ? "/profiles/" + model.profile : "/parameters";
    auto fact =
        read_fact(document, overridden ? *chosen : document.at("parameters"), name, place, source);
    if (!fact) return pass_on(fact);
    const std::string path = place + "/" + name;
    if (auto ok = store(*fact, *to, source, path, model.parameters); !ok) return pass_on(ok);
    model.facts.push_back(std::move(*fact));
  }
  for (const Row& needed : table()) {
    const bool there = std::any_of(model.facts.begin(), model.facts.end(),
                                   [&](const ParameterFact& f) { return f.name == needed.name; });
    if (!there) {
      return files::bad_value(
          source, "/parameters",
          fmt::format("{} is missing; give it value, unit, grade and source", needed.name));
    }
  }
  const Parameters& p = model.parameters;
  if (p.receive_resume_packets >= p.receive_buffer_packets) {
    return files::bad_value(source, "/parameters/receive_resume_packets",
                            "a pause would never end; make it less than receive_buffer_packets");
  }
  if (p.port_resume_kbytes >= p.port_pause_kbytes || p.port_buffer_kbytes < p.port_pause_kbytes ||
      p.port_ecn_low_kbytes >= p.port_ecn_high_kbytes) {
    return files::bad_value(
        source, "/parameters",
        "make port_resume_kbytes less than port_pause_kbytes, "
        "port_buffer_kbytes no less, and port_ecn_low_kbytes less than port_ecn_high_kbytes");
  }
  if (model.parameters.doorbell_dedicated_count >= model.parameters.doorbell_register_count) {
    return files::bad_value(source, "/parameters/doorbell_dedicated_count",
                            "no register is left to be shared; make it less than "
                            "doorbell_register_count");
  }
  if (const auto published = document.find("published");
      published != document.end() && published->contains("scalacn_fit")) {
    const json& fit = published->at("scalacn_fit");
    for (const char* name : {"u", "v", "m", "n", "w", "a", "b", "c"}) {
      const json& value = fit.at(name).at("value");
      if (value.is_number() && (*name != 'v' || value.get<double>() != 0)) continue;
      return files::bad_value(source, fmt::format("/published/scalacn_fit/{}/value", name),
                              "a published surface needs numbers, and a width other than 0");
    }
    const auto at = [&](const char* name) { return fit.at(name).at("value").get<double>(); };
    model.surface =
        PublishedSurface{at("u"), at("v"), at("m"), at("n"), at("w"), at("a"), at("b"), at("c")};
  }
  return model;
}

}  // namespace

double PublishedSurface::bandwidth(double local, double remote) const {
  const double x = local - m;
  const double y = remote - n;
  return u * std::exp(-(x * x + y * y) / (2 * v * v)) + w;
}

double PublishedSurface::latency(double local, double remote) const {
  return a * local + b * remote + c;
}

std::size_t RnicModel::free_parameter_count() const {
  return static_cast<std::size_t>(
      std::count_if(facts.begin(), facts.end(), [](const ParameterFact& f) { return f.free; }));
}

std::vector<std::string> embedded_model_names() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_rnics()) {
    names.emplace_back(file.name.substr(0, file.name.rfind(".json")));
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<RnicModel> load_model(const std::string& name_or_path, const std::string& profile) {
  for (const EmbeddedFile& file : embedded_rnics()) {
    if (file.name != name_or_path + ".json") continue;
    const std::string source = "configs/rnics/" + std::string(file.name);
    auto document = files::parse_json(file.text, source);
    if (!document) return pass_on(document);
    if (auto ok = files::check_schema(*document, "rnic", source); !ok) return pass_on(ok);
    return parse_model(*document, source, profile);
  }
  if (name_or_path.find_first_of("./") == std::string::npos) {
    return fail(ErrorCode::kBadInput,
                fmt::format("no model '{}' is built in; there are {}, or give the path of a file",
                            name_or_path, fmt::join(embedded_model_names(), ", ")));
  }
  auto document = files::read_json(name_or_path, "rnic");
  if (!document) return pass_on(document);
  return parse_model(*document, name_or_path, profile);
}

}  // namespace greynic::twin
