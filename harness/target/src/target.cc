#include "greynic/target/target.h"

#include <fmt/format.h>

#include <algorithm>

namespace greynic::target {
namespace {

std::vector<Kind>& registry() {
  static std::vector<Kind> kinds;
  return kinds;
}

Result<Spec> parse_part(std::string_view text) {
  Spec spec;
  spec.text = text;
  const std::size_t colon = text.find(':');
  spec.kind = text.substr(0, colon);
  if (spec.kind.empty()) {
    return fail(ErrorCode::kBadInput,
                fmt::format("target '{}' names no kind; write kind:place, such as twin:cx6", text));
  }
  if (colon == std::string_view::npos) return spec;
  std::string_view rest = text.substr(colon + 1);
  // A command is everything that follows: it may hold question marks of its own.
  if (spec.kind == "exec") {
    spec.place = rest;
    return spec;
  }
  const std::size_t question = rest.find('?');
  spec.place = rest.substr(0, question);
  while (question != std::string_view::npos) {
    rest = rest.substr(rest.find_first_of("?&") + 1);
    const std::string_view item = rest.substr(0, rest.find('&'));
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("target '{}': option '{}' is not name=value", text, item));
    }
    if (!spec.options.emplace(item.substr(0, equals), item.substr(equals + 1)).second) {
      return fail(ErrorCode::kBadInput, fmt::format("target '{}': option {} is given twice", text,
                                                    item.substr(0, equals)));
    }
    if (rest.find('&') == std::string_view::npos) break;
  }
  return spec;
}

/// Traffic from one target through the rules of another.
class Joined final : public Target {
 public:
  Joined(std::unique_ptr<Target> traffic, std::unique_ptr<Target> rules)
      : traffic_(std::move(traffic)), rules_(std::move(rules)) {}

  Info info() const override {
    Info info = traffic_->info();
    const Info rules = rules_->info();
    info.name += "+" + rules.name;
    info.description += "; rules: " + rules.description;
    info.environment.insert(rules.environment.begin(), rules.environment.end());
    info.keeps_layout = rules.keeps_layout;
    return info;
  }
  Result<void> measure(std::span<const MeasureRequest> requests,
                       const ObservationSink& sink) override {
    return traffic_->measure(requests, sink);
  }
  RuleHolder& rules() override { return rules_->rules(); }

 private:
  std::unique_ptr<Target> traffic_;
  std::unique_ptr<Target> rules_;
};

Result<std::unique_ptr<Target>> open_part(const Spec& spec) {
  for (const Kind& kind : kinds()) {
    if (kind.name == spec.kind) return kind.open(spec);
  }
  std::vector<std::string> names;
  for (const Kind& kind : kinds()) names.push_back(kind.name);
  return fail(ErrorCode::kBadInput,
              fmt::format("target '{}': there is no kind '{}' in this build; there are {}. "
                          "`greynic devices` says what each needs",
                          spec.text, spec.kind, fmt::join(names, ", ")));
}

}  // namespace

Result<std::vector<Spec>> parse_specs(std::string_view text) {
  std::vector<Spec> specs;
  while (true) {
    // '+' joins targets, except inside an exec: command, which takes the rest.
    const std::size_t plus = text.starts_with("exec:") ? std::string_view::npos : text.find('+');
    auto spec = parse_part(text.substr(0, plus));
    if (!spec) return pass_on(spec);
    specs.push_back(std::move(*spec));
    if (plus == std::string_view::npos) return specs;
    text.remove_prefix(plus + 1);
  }
}

Result<Observation> measure_one(Target& target, const MeasureRequest& request) {
  Observation observation;
  const auto done = target.measure({&request, 1}, [&](std::size_t, Observation got) {
    observation = std::move(got);
    return true;
  });
  if (!done) return pass_on(done);
  return observation;
}

void register_kind(Kind kind) { registry().push_back(std::move(kind)); }

std::span<const Kind> kinds() { return registry(); }

Result<std::unique_ptr<Target>> open(std::string_view text) {
  auto specs = parse_specs(text);
  if (!specs) return pass_on(specs);
  if (specs->size() > 2) {
    return fail(ErrorCode::kBadInput,
                fmt::format("target '{}': join at most two, traffic first and rules second", text));
  }
  auto first = open_part(specs->front());
  if (!first || specs->size() == 1) return first;
  auto second = open_part(specs->back());
  if (!second) return second;
  return std::unique_ptr<Target>(std::make_unique<Joined>(std::move(*first), std::move(*second)));
}

}  // namespace greynic::target
