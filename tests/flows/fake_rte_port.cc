#include "fake_rte_port.h"

#include <fmt/core.h>
#include <rte_errno.h>

#include <algorithm>
#include <span>

namespace greynic::flows {
namespace {

FakeRtePort* the_port = nullptr;

std::size_t bytes_of(rte_flow_item_type type) {
  switch (type) {
    case RTE_FLOW_ITEM_TYPE_ETH:
      return sizeof(rte_flow_item_eth);
    case RTE_FLOW_ITEM_TYPE_VLAN:
      return sizeof(rte_flow_item_vlan);
    case RTE_FLOW_ITEM_TYPE_IPV4:
      return sizeof(rte_flow_item_ipv4);
    case RTE_FLOW_ITEM_TYPE_IPV6:
      return sizeof(rte_flow_item_ipv6);
    case RTE_FLOW_ITEM_TYPE_TCP:
      return sizeof(rte_flow_item_tcp);
    case RTE_FLOW_ITEM_TYPE_UDP:
      return sizeof(rte_flow_item_udp);
    case RTE_FLOW_ITEM_TYPE_SCTP:
      return sizeof(rte_flow_item_sctp);
    default:
      return 0;  // compared by its kind only
  }
}

std::size_t bytes_of(rte_flow_action_type type) {
  switch (type) {
    case RTE_FLOW_ACTION_TYPE_QUEUE:
      return sizeof(rte_flow_action_queue);
    case RTE_FLOW_ACTION_TYPE_MARK:
      return sizeof(rte_flow_action_mark);
    case RTE_FLOW_ACTION_TYPE_JUMP:
      return sizeof(rte_flow_action_jump);
    case RTE_FLOW_ACTION_TYPE_COUNT:
      return sizeof(rte_flow_action_count);
    default:
      return 0;
  }
}

std::string bytes(const void* memory, std::size_t count) {
  return memory == nullptr ? std::string(count, '\0')
                           : std::string(static_cast<const char*>(memory), count);
}

std::string hex(const std::string& text) {
  std::string made;
  for (const char byte : text) made += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return made;
}

std::span<const rte_flow_item> items_of(const rte_flow_item* first) {
  std::size_t count = 0;
  while (first[count].type != RTE_FLOW_ITEM_TYPE_END) ++count;
  return {first, count};
}

std::span<const rte_flow_action> actions_of(const rte_flow_action* first) {
  std::size_t count = 0;
  while (first[count].type != RTE_FLOW_ACTION_TYPE_END) ++count;
  return {first, count};
}

constexpr char kPart = '|';

/// "group.priority|type:mask ...|masked values ...|type:settings ...".
std::string text_of(const std::string& place, std::span<const rte_flow_item> items,
                    std::span<const std::string> masks, std::span<const rte_flow_action> actions) {
  std::string mask_part;
  std::string value_part;
  for (std::size_t i = 0; i < items.size(); ++i) {
    std::string value = bytes(items[i].spec, masks[i].size());
    for (std::size_t at = 0; at < value.size(); ++at) {
      value[at] = static_cast<char>(value[at] & masks[i][at]);
    }
    mask_part += fmt::format("{}:{} ", static_cast<int>(items[i].type), hex(masks[i]));
    value_part += hex(value) + " ";
  }
  std::string action_part;
  for (const rte_flow_action& action : actions) {
    action_part += fmt::format("{}:{} ", static_cast<int>(action.type),
                               hex(bytes(action.conf, bytes_of(action.type))));
  }
  return fmt::format("{}{}{}{}{}{}{}", place, kPart, mask_part, kPart, value_part, kPart,
                     action_part);
}

std::string part_of(const std::string& text, int index) {
  std::size_t begin = 0;
  for (int i = 0; i < index; ++i) begin = text.find(kPart, begin) + 1;
  return text.substr(begin, text.find(kPart, begin) - begin);
}

std::string place_text(const rte_flow_attr& attributes) {
  return fmt::format("{}.{}", attributes.group, attributes.priority);
}

std::vector<std::string> masks_of(std::span<const rte_flow_item> items) {
  std::vector<std::string> masks;
  for (const rte_flow_item& item : items) masks.push_back(bytes(item.mask, bytes_of(item.type)));
  return masks;
}

template <typename Handle, typename Kind>
Handle* handed_out(std::map<void*, std::unique_ptr<Kind>>& all, std::unique_ptr<Kind> made) {
  void* const handle = made.get();
  all.emplace(handle, std::move(made));
  return static_cast<Handle*>(handle);
}

int refuse(rte_flow_error* error, int number, const char* why) {
  error->message = why;
  rte_errno = number;
  return -number;
}

}  // namespace

/// The functions behind the table; they work on the one port there is.
struct FakeCalls {
  using Port = FakeRtePort;

  static int validate(std::uint16_t, const rte_flow_attr*, const rte_flow_item items[],
                      const rte_flow_action[], rte_flow_error* error) {
    for (const rte_flow_item& item : items_of(items)) {
      if (item.type == the_port->traits.no_item) return refuse(error, ENOTSUP, "no such item");
    }
    return 0;
  }
  static rte_flow* create(std::uint16_t port, const rte_flow_attr* attributes,
                          const rte_flow_item items[], const rte_flow_action actions[],
                          rte_flow_error* error) {
    const auto number = the_port->creations++;
    if (number == the_port->traits.refused_create || number == the_port->traits.failed_create) {
      return (void)refuse(error, ENOMEM, "no more room"), nullptr;
    }
    if (validate(port, attributes, items, actions, error) != 0) return nullptr;
    auto rule = std::make_unique<Port::Rule>();
    rule->text = text_of(place_text(*attributes), items_of(items), masks_of(items_of(items)),
                         actions_of(actions));
    rule->in = true;
    return handed_out<rte_flow>(the_port->rules_, std::move(rule));
  }
  static int destroy(std::uint16_t, rte_flow* rule, rte_flow_error*) {
    ++the_port->destructions;
    if (the_port->rules_.erase(rule) == 0) the_port->violated("destroyed what is not there");
    return 0;
  }
  static int flush(std::uint16_t, rte_flow_error*) {
    the_port->rules_.clear();
    return 0;
  }
  static int query(std::uint16_t, rte_flow*, const rte_flow_action*, void*, rte_flow_error* error) {
    return refuse(error, ENOTSUP, "no counters");
  }

  static int info_get(std::uint16_t, rte_flow_port_info* port, rte_flow_queue_info* queue,
                      rte_flow_error* error) {
    if (the_port->traits.queues == 0) return refuse(error, ENOSYS, "not supported");
    *port = {.max_nb_queues = the_port->traits.queues, .max_nb_counters = 100};
    *queue = {.max_size = the_port->traits.queue_size};
    return 0;
  }
  static int configure(std::uint16_t, const rte_flow_port_attr* attributes, std::uint16_t queues,
                       const rte_flow_queue_attr* sizes[], rte_flow_error* error) {
    if (!the_port->traits.configures) return refuse(error, EBUSY, "somebody else has it");
    if (queues > the_port->traits.queues || sizes[0]->size > the_port->traits.queue_size ||
        attributes->nb_counters > 100) {
      the_port->violated("configured for more than info_get gives");
    }
    the_port->configured_ = true;
    the_port->configured_size_ = sizes[0]->size;
    return 0;
  }

  static rte_flow_pattern_template* pattern_create(std::uint16_t,
                                                   const rte_flow_pattern_template_attr* attributes,
                                                   const rte_flow_item items[],
                                                   rte_flow_error* error) {
    if (!the_port->configured_) the_port->violated("a template before configure");
    if (attributes->ingress + attributes->egress + attributes->transfer == 0) {
      the_port->violated("a pattern template without a direction");
    }
    if (attributes->relaxed_matching != 0) the_port->violated("headers would go unmatched");
    auto made = std::make_unique<Port::Pattern>();
    for (const rte_flow_item& item : items_of(items)) {
      if (item.type == the_port->traits.no_item) {
        return (void)refuse(error, ENOTSUP, "no such item"), nullptr;
      }
      made->types.push_back(item.type);
    }
    made->masks = masks_of(items_of(items));
    return handed_out<rte_flow_pattern_template>(the_port->patterns_, std::move(made));
  }
  static int pattern_destroy(std::uint16_t, rte_flow_pattern_template* pattern, rte_flow_error*) {
    const auto found = the_port->patterns_.find(pattern);
    if (found == the_port->patterns_.end() || found->second->tables > 0) {
      the_port->violated("destroyed a pattern template that is gone or in use");
      return -EBUSY;
    }
    the_port->patterns_.erase(found);
    return 0;
  }
  static rte_flow_actions_template* actions_create(std::uint16_t,
                                                   const rte_flow_actions_template_attr* attributes,
                                                   const rte_flow_action actions[],
                                                   const rte_flow_action masks[], rte_flow_error*) {
    if (attributes->ingress + attributes->egress + attributes->transfer == 0) {
      the_port->violated("an actions template without a direction");
    }
    auto made = std::make_unique<Port::Actions>();
    for (const rte_flow_action& action : actions_of(actions)) made->types.push_back(action.type);
    const auto masked = actions_of(masks);
    for (std::size_t i = 0; i < std::max(masked.size(), made->types.size()); ++i) {
      if (i >= masked.size() || i >= made->types.size() || masked[i].type != made->types[i]) {
        the_port->violated("masks of actions unlike the actions");
        break;
      }
      if (masked[i].conf != nullptr) the_port->violated("a setting that rules could not choose");
    }
    return handed_out<rte_flow_actions_template>(the_port->actions_, std::move(made));
  }
  static int actions_destroy(std::uint16_t, rte_flow_actions_template* actions, rte_flow_error*) {
    const auto found = the_port->actions_.find(actions);
    if (found == the_port->actions_.end() || found->second->tables > 0) {
      the_port->violated("destroyed an actions template that is gone or in use");
      return -EBUSY;
    }
    the_port->actions_.erase(found);
    return 0;
  }
  static rte_flow_template_table* table_create(std::uint16_t,
                                               const rte_flow_template_table_attr* attributes,
                                               rte_flow_pattern_template* patterns[],
                                               std::uint8_t pattern_count,
                                               rte_flow_actions_template* actions[],
                                               std::uint8_t actions_count, rte_flow_error*) {
    auto made = std::make_unique<Port::Table>();
    made->place = place_text(attributes->flow_attr);
    made->room = attributes->nb_flows;
    for (auto* pattern : std::span(patterns, pattern_count)) {
      made->patterns.push_back(the_port->patterns_.at(pattern).get());
      ++made->patterns.back()->tables;
    }
    for (auto* one : std::span(actions, actions_count)) {
      made->actions.push_back(the_port->actions_.at(one).get());
      ++made->actions.back()->tables;
    }
    return handed_out<rte_flow_template_table>(the_port->tables_, std::move(made));
  }
  static int table_destroy(std::uint16_t, rte_flow_template_table* table, rte_flow_error*) {
    const auto found = the_port->tables_.find(table);
    if (found == the_port->tables_.end() || found->second->rules > 0) {
      the_port->violated("destroyed a table that is gone or has rules");
      return -EBUSY;
    }
    for (auto* pattern : found->second->patterns) --pattern->tables;
    for (auto* actions : found->second->actions) --actions->tables;
    the_port->tables_.erase(found);
    return 0;
  }

  static rte_flow* async_create(std::uint16_t, std::uint32_t queue, const rte_flow_op_attr* how,
                                rte_flow_template_table* into, const rte_flow_item items[],
                                std::uint8_t pattern_index, const rte_flow_action actions[],
                                std::uint8_t actions_index, void* user_data,
                                rte_flow_error* error) {
    const auto number = the_port->creations++;
    if (!the_port->room_in_queue())
      return (void)refuse(error, EAGAIN, "the queue is full"), nullptr;
    if (number == the_port->traits.refused_create) {
      return (void)refuse(error, ENOMEM, "no more room"), nullptr;
    }
    Port::Table& table = *the_port->tables_.at(into);
    const auto given_items = items_of(items);
    const auto given_actions = actions_of(actions);
    const Port::Pattern& pattern = *table.patterns.at(pattern_index);
    const Port::Actions& kinds = *table.actions.at(actions_index);
    const auto alike = [](const auto& given, const auto& types) {
      return std::equal(given.begin(), given.end(), types.begin(), types.end(),
                        [](const auto& one, const auto& type) { return one.type == type; });
    };
    if (queue != 0) the_port->violated("another queue than the one configured");
    if (!alike(given_items, pattern.types)) the_port->violated("items unlike the template's");
    if (!alike(given_actions, kinds.types)) the_port->violated("actions unlike the template's");
    if (++table.rules > table.room) the_port->violated("more rules than the table was made for");
    auto rule = std::make_unique<Port::Rule>();
    rule->text = text_of(table.place, given_items, pattern.masks, given_actions);
    rule->table = &table;
    auto& where = how->postpone != 0 ? the_port->postponed_ : the_port->pushed_;
    where.push_back({rule.get(), true, number == the_port->traits.failed_create, user_data});
    return handed_out<rte_flow>(the_port->rules_, std::move(rule));
  }
  static int async_destroy(std::uint16_t, std::uint32_t, const rte_flow_op_attr* how,
                           rte_flow* rule, void* user_data, rte_flow_error* error) {
    ++the_port->destructions;
    if (!the_port->room_in_queue()) return refuse(error, EAGAIN, "the queue is full");
    const auto found = the_port->rules_.find(rule);
    if (found == the_port->rules_.end() || !found->second->in || found->second->dying) {
      the_port->violated("destroyed a rule that is not in");
      return refuse(error, EINVAL, "no such rule");
    }
    found->second->dying = true;
    auto& where = how->postpone != 0 ? the_port->postponed_ : the_port->pushed_;
    where.push_back({found->second.get(), false, false, user_data});
    return 0;
  }
  static int push(std::uint16_t, std::uint32_t, rte_flow_error*) {
    the_port->pushed_.insert(the_port->pushed_.end(), the_port->postponed_.begin(),
                             the_port->postponed_.end());
    the_port->postponed_.clear();
    return 0;
  }
  static int pull(std::uint16_t, std::uint32_t, rte_flow_op_result results[], std::uint16_t room,
                  rte_flow_error*) {
    if (the_port->traits.silent || the_port->idle_++ < the_port->traits.idle_pulls) return 0;
    the_port->idle_ = 0;
    int count = 0;
    while (count < std::min(room, the_port->traits.results_a_pull) && !the_port->pushed_.empty()) {
      const Port::Operation operation = the_port->pushed_.front();
      the_port->pushed_.pop_front();
      results[count++] = {operation.fails ? RTE_FLOW_OP_ERROR : RTE_FLOW_OP_SUCCESS,
                          operation.user_data};
      operation.rule->in = operation.create && !operation.fails;
      if (operation.rule->in) continue;
      --operation.rule->table->rules;
      the_port->rules_.erase(operation.rule);
    }
    return count;
  }
};

FakeRtePort::FakeRtePort(Traits chosen) : traits(chosen) { the_port = this; }

FakeRtePort::~FakeRtePort() { the_port = nullptr; }

bool FakeRtePort::room_in_queue() {
  const std::size_t under_way = postponed_.size() + pushed_.size() + 1;
  if (under_way > configured_size_) {
    violated("more operations under way than the queue holds");
    return false;
  }
  most_under_way = std::max(most_under_way, under_way);
  return true;
}

std::multiset<std::string> FakeRtePort::rules() const {
  std::multiset<std::string> texts;
  for (const auto& [handle, rule] : rules_) {
    if (rule->in) texts.insert(rule->text);
  }
  return texts;
}

std::string FakeRtePort::mask_of(const std::string& rule) { return part_of(rule, 1); }

std::string FakeRtePort::place_of(const std::string& rule) { return part_of(rule, 0); }

const RteCalls& FakeRtePort::calls() {
  static constexpr RteCalls calls = {
      .validate = FakeCalls::validate,
      .create = FakeCalls::create,
      .destroy = FakeCalls::destroy,
      .flush = FakeCalls::flush,
      .query = FakeCalls::query,
      .info_get = FakeCalls::info_get,
      .configure = FakeCalls::configure,
      .pattern_template_create = FakeCalls::pattern_create,
      .pattern_template_destroy = FakeCalls::pattern_destroy,
      .actions_template_create = FakeCalls::actions_create,
      .actions_template_destroy = FakeCalls::actions_destroy,
      .template_table_create = FakeCalls::table_create,
      .template_table_destroy = FakeCalls::table_destroy,
      .async_create = FakeCalls::async_create,
      .async_destroy = FakeCalls::async_destroy,
      .push = FakeCalls::push,
      .pull = FakeCalls::pull,
  };
  return calls;
}

}  // namespace greynic::flows
