#include <fmt/core.h>

#include <algorithm>

#include "sections/content.h"

namespace greynic::report {
namespace {

/// What stands behind a target: the first thing that a reader must know of a number.
struct Device {
  std::string badge;
  std::string_view tone;
  std::string_view meaning;
};

Device device_of(const std::string& target) {
  if (target.starts_with("twin:")) {
    return {"Virtual device", "virtual", "a model of an RDMA NIC in virtual time, no hardware"};
  }
  if (target.starts_with("import:")) {
    return {"Imported logs", "other", "measured elsewhere; greynic read the logs"};
  }
  if (target.starts_with("exec:")) {
    return {"Your own command", "other", "greynic cannot tell what device it measured"};
  }
  return {"Real device", "real", "measured on an interface of a machine"};
}

void add_badges(const Content& content, const Device& device, Page& page) {
  page.badge(device.badge, device.tone);
  if (!content.documents.contains("layout")) return;
  const auto* optimization = content.document("optimization");
  if (optimization == nullptr) {
    page.badge("Layout: this run does not say whether it is proven", "unproven");
    return;
  }
  const nlohmann::json proof = optimization->value("proof", nlohmann::json::object());
  const bool verified = proof.value("verified", false);
  page.badge(verified ? "Layout proven equivalent" : "Layout not proven",
             verified ? "proven" : "unproven");
}

void add_facts(const Content& content, const Device& device, Page& page) {
  const auto kept = [](const std::string& text) { return text.empty() ? "not kept" : text; };
  page.fact("Device", fmt::format("{}: {}", content.header.target, device.meaning));
  page.fact("Seed", std::to_string(content.header.seed));
  page.fact("Made", content.header.made.empty() ? "not kept" : content.header.made + " UTC");
  page.fact("greynic", kept(content.header.version));
}

void add_observations(const Content& content, Page& page) {
  const auto broken =
      std::count_if(content.observations.begin(), content.observations.end(),
                    [](const Observation& one) { return one.outcome != Outcome::kMeasured; });
  page.card("Observations", std::to_string(content.observations.size()),
            fmt::format("{} configurations{}", content.groups.size(),
                        broken == 0 ? ", all measured" : fmt::format(", {} not measured", broken)),
            broken == 0 ? "" : "warn");
}

void add_reference(const Content& content, Page& page) {
  if (content.metric.empty()) return;
  if (!content.baseline) {
    page.card("Best", "not known",
              fmt::format("{}: is more better, or less? greynic does not know", content.metric),
              "warn");
    return;
  }
  for (const results::Group& group : content.groups) {
    if (!content.is_baseline(*group.configuration)) continue;
    const statistics::Mean mean = statistics::mean_of(results::values_of(group, content.metric));
    if (mean.count == 0) continue;
    page.card(content.campaign ? "Baseline" : "Best",
              fmt::format("{} {}", number(mean.value), unit_of(content.metric)), content.metric);
  }
}

void add_findings(const Content& content, Page& page) {
  if (const auto* explanation = content.document("explanation")) {
    const std::size_t walls = explanation->value("walls", nlohmann::json::array()).size();
    const std::size_t causes = explanation->value("causes", nlohmann::json::array()).size();
    page.card("Walls", std::to_string(walls),
              fmt::format("{} cause{} found", causes, causes == 1 ? "" : "s"),
              walls == 0 ? "good" : "bad");
  }
  if (const auto* optimization = content.document("optimization")) {
    const auto tried = [&](const char* side) {
      return fmt::format("{:.2f}", optimization->at(side).at("matchers_tried_mean").get<double>());
    };
    page.card("Matchers a packet tries", tried("before") + " → " + tried("after"),
              "before and after the new layout", "good");
  }
  if (const auto* gain = content.document("gain")) {
    const double before = gain->value("before", 0.0);
    const double after = gain->value("after", 0.0);
    const std::string metric = gain->value("metric", content.metric);
    if (before > 0.0 && after > 0.0) {
      const auto better = content.better(metric);
      const bool improved = better == Better::kLess ? after <= before : after >= before;
      page.card("Gain", fmt::format("{:.2f} ×", after / before),
                fmt::format("{} → {} {}", number(before), number(after), unit_of(metric)),
                !better || *better == Better::kNeither ? ""
                : improved                             ? "good"
                                                       : "bad");
    }
  }
}

}  // namespace

void add_head(const Content& content, Page& page) {
  const Device device = device_of(content.header.target);
  add_badges(content, device, page);
  const Command command = command_of(content);
  page.command(command.as_typed ? "Command, as typed"
                                : "This run does not hold its command; this one measures the same",
               command.text);
  add_facts(content, device, page);
  add_observations(content, page);
  add_reference(content, page);
  add_findings(content, page);
}

}  // namespace greynic::report
