#include "dpdk/rte_path.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "dpdk/rte_queue.h"
#include "dpdk/rte_templates.h"

namespace greynic::flows {
namespace {

class OneByOne final : public RtePath {
 public:
  OneByOne(const RteCalls& calls, std::uint16_t port, std::string why)
      : calls_(calls), port_(port), why_(std::move(why)) {}

  ~OneByOne() override { (void)remove_all(); }

  Result<void> check(std::span<const RteRule> rules) override {
    for (std::size_t i = 0; i < rules.size(); ++i) {
      const RteRule& rule = rules[i];
      rte_flow_error error{};
      if (calls_.validate(port_, &rule.attributes, rule.pattern.data(), rule.actions.data(),
                          &error) != 0) {
        return fail(ErrorCode::kUnsupported, fmt::format("the port refuses rule {} ({}): {}", i,
                                                         rule.name, words_of(error)));
      }
    }
    return {};
  }

  bool takes(const RteRule& rule) override {
    if (!check({&rule, 1})) return false;
    rte_flow_error error{};
    rte_flow* const handle = create(rule, error);
    return handle != nullptr && calls_.destroy(port_, handle, &error) == 0;
  }

  Result<std::vector<rte_flow*>> replace(std::span<const RteRule> rules) override {
    if (auto gone = remove_all(); !gone) return pass_on(gone);
    std::vector<rte_flow*> handles;
    for (std::size_t i = 0; i < rules.size(); ++i) {
      rte_flow_error error{};
      handles.push_back(create(rules[i], error));
      if (handles.back() != nullptr) continue;
      std::string message =
          fmt::format("the port refuses rule {} ({}): {}", i, rules[i].name, words_of(error));
      if (auto gone = remove_all(); !gone) message += "; and " + gone.error().message;
      return fail(ErrorCode::kRefused, message);
    }
    return handles;
  }

  std::string about() const override {
    return fmt::format("Rules go in one by one (rte_flow_create): {}.", why_);
  }

 private:
  [[nodiscard]] rte_flow* create(const RteRule& rule, rte_flow_error& error) const {
    return calls_.create(port_, &rule.attributes, rule.pattern.data(), rule.actions.data(), &error);
  }
  [[nodiscard]] Result<void> remove_all() const {
    rte_flow_error error{};
    if (calls_.flush(port_, &error) == 0) return {};
    return fail(ErrorCode::kRefused, "the port does not let its rules go: " + words_of(error));
  }

  const RteCalls& calls_;
  std::uint16_t port_;
  std::string why_;
};

class ByTemplates final : public RtePath {
 public:
  ByTemplates(const RteCalls& calls, std::uint16_t port, std::uint32_t queue_size,
              std::chrono::nanoseconds patience)
      : calls_(calls), port_(port), queue_(calls, port, queue_size, patience) {}

  ~ByTemplates() override { (void)queue_.destroy(rules_); }

  Result<void> check(std::span<const RteRule> rules) override {
    auto templates = RteTemplates::create(calls_, port_, rules);
    if (!templates) return pass_on(templates);
    return {};
  }

  bool takes(const RteRule& rule) override {
    const auto templates = RteTemplates::create(calls_, port_, {&rule, 1});
    if (!templates) return false;
    const auto handles = queue_.create({&rule, 1}, **templates);
    return handles && queue_.destroy(*handles).has_value();
  }

  /// Tables first: if the port refuses one, its rules are those of before, untouched.
  Result<std::vector<rte_flow*>> replace(std::span<const RteRule> rules) override {
    auto templates = RteTemplates::create(calls_, port_, rules);
    if (!templates) return pass_on(templates);
    if (auto gone = queue_.destroy(std::exchange(rules_, {})); !gone) return pass_on(gone);
    templates_ = std::move(*templates);
    auto handles = queue_.create(rules, *templates_);
    if (handles) rules_ = *handles;
    return handles;
  }

  std::string about() const override {
    return fmt::format(
        "Rules go in by template tables and an asynchronous queue of {} operations: one pattern "
        "template a mask, one table a mask, group and priority.",
        queue_.size());
  }

 private:
  const RteCalls& calls_;
  std::uint16_t port_;
  RteQueue queue_;
  std::unique_ptr<RteTemplates> templates_;  ///< of the rules that are in
  std::vector<rte_flow*> rules_;
};

}  // namespace

std::unique_ptr<RtePath> choose_path(const RteCalls& calls, std::uint16_t port,
                                     std::chrono::nanoseconds patience) {
  const auto one_by_one = [&](std::string why) {
    return std::make_unique<OneByOne>(calls, port, std::move(why));
  };
  rte_flow_port_info about_port{};
  rte_flow_queue_info about_queue{};
  rte_flow_error error{};
  if (calls.info_get(port, &about_port, &about_queue, &error) != 0 ||
      about_port.max_nb_queues == 0 || about_queue.max_size == 0) {
    return one_by_one("the port offers no templates with asynchronous queues");
  }
  // More would not make a device faster, and some set the memory aside for what they are asked.
  constexpr std::uint32_t kOperations = 1024;
  constexpr std::uint32_t kCounters = 65'536;
  const rte_flow_port_attr port_attributes = {.nb_counters =
                                                  std::min(about_port.max_nb_counters, kCounters)};
  const rte_flow_queue_attr queue_attributes = {.size =
                                                    std::min(about_queue.max_size, kOperations)};
  const rte_flow_queue_attr* queues[] = {&queue_attributes};
  if (calls.configure(port, &port_attributes, 1, queues, &error) != 0) {
    return one_by_one("the port offers templates and refuses to be configured for them: " +
                      words_of(error));
  }
  return std::make_unique<ByTemplates>(calls, port, queue_attributes.size, patience);
}

}  // namespace greynic::flows
