/// A layout that is brought from the rules it was made from to others, as `greynic optimize --update`
/// does: neither is known to belong to the other before it is proven.

#include "fuzz.h"
#include "greynic/files/core_json.h"
#include "greynic/files/json_file.h"
#include "greynic/optimizer/optimize.h"
#include "greynic/optimizer/update.h"
#include "greynic/rules/read_rules.h"
#include "greynic/rules/traffic.h"
#include "greynic/verify/verify.h"

namespace greynic::fuzz {
namespace {

constexpr std::string_view kCut = "\n####\n";
/// What a proof needs grows with the product of the two; a reader is held to a moment.
constexpr std::size_t kMostRules = 48;

std::optional<RuleSet> few_rules(std::string_view text) {
  auto set = rules::parse_rules(text, "input", rules::Format::kClassbench);
  claim_sound(set);
  if (!set || set->rules.empty() || set->rules.size() > kMostRules) return std::nullopt;
  return std::move(*set);
}

void update_layout(std::string_view was_text, std::string_view now_text,
                   std::string_view layout_text) {
  auto was = few_rules(was_text), now = few_rules(now_text);
  const auto document = files::parse_json(layout_text, "input");
  if (!was || !now || !document) return;
  const auto layout = files::layout_from_json(*document, "input");
  claim_sound(layout);
  if (!layout) return;
  const Traffic traffic = rules::uniform_traffic(*was, 1);
  const optimizer::LayoutCost before = optimizer::cost_of(*layout, traffic);
  claim(before.matchers_tried >= 0.0, "a cost is a number");
  if (layout_text.size() % 2 == 1) optimizer::weigh_rules(*now, rules::uniform_traffic(*now, 1));
  const optimizer::LiveOptions options{.full_layouts = optimizer::FullLayouts::kNever};
  auto live = optimizer::LiveLayout::create(*was, *layout, options);
  claim_sound(live);
  if (!live) return;
  const auto sum = optimizer::update(*live, *was, *now);
  claim_sound(sum);
  if (!sum) return;
  const auto verdict = verify::verify(*now, live->layout());
  claim_sound(verdict);
  claim(!verdict || verdict->equivalent, "an updated layout does what the new rules do");
}

std::string seed_of(const std::string& was, const std::string& now, bool in_rule_order) {
  const auto set = rules::parse_rules(was, "seed", rules::Format::kClassbench);
  claim(set.has_value(), "a seed is taken");
  const auto made = optimizer::optimize(*set, rules::uniform_traffic(*set, 1), {});
  claim(made.has_value(), "a seed is laid out");
  const Layout layout = in_rule_order ? optimizer::layout_in_rule_order(*set) : made->layout;
  return was + std::string(kCut) + now + std::string(kCut) +
         files::json_text(files::to_json(layout));
}

}  // namespace

std::vector<Target> layout_targets() {
  const std::string was =
      "@10.0.0.0/8\t0.0.0.0/0\t0 : 65535\t80 : 80\t0x06/0xFF\t0x1000/0x1000\t\n"
      "@1.2.3.4/32\t5.6.0.0/16\t53 : 53\t1024 : 2047\t0x11/0xFF\n"
      "@1.2.0.0/16\t5.0.0.0/8\t0 : 65535\t0 : 65535\t0x11/0xFF\n"
      "@0.0.0.0/0\t5.6.7.8/32\t0 : 65535\t443 : 443\t0x06/0xFF\n"
      "@10.1.0.0/16\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x00/0x00\n";
  const std::string now =
      "@1.2.3.4/32\t5.6.0.0/16\t53 : 53\t1024 : 2047\t0x11/0xFF\n"
      "@10.0.0.0/8\t0.0.0.0/0\t0 : 65535\t80 : 80\t0x06/0xFF\t0x1000/0x1000\t\n"
      "@10.1.2.0/24\t9.0.0.0/8\t0 : 65535\t22 : 22\t0x06/0xFF\n"
      "@0.0.0.0/0\t5.6.7.8/32\t0 : 65535\t443 : 443\t0x06/0xFF\n"
      "@0.0.0.0/0\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x00/0x00\n";
  return {{"layout_update",
           {seed_of(was, now, true), seed_of(was, now, false), seed_of(now, was, false)},
           [](std::string_view text) {
             const std::size_t first = text.find(kCut);
             if (first == std::string_view::npos) return;
             const std::size_t second = text.find(kCut, first + kCut.size());
             if (second == std::string_view::npos) return;
             update_layout(text.substr(0, first),
                           text.substr(first + kCut.size(), second - first - kCut.size()),
                           text.substr(second + kCut.size()));
           }}};
}

}  // namespace greynic::fuzz
