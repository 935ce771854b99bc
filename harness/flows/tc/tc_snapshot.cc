#include "tc/tc_snapshot.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <sstream>

#include "greynic/core/text.h"

namespace greynic::flows {
namespace {

constexpr const char* kWith = "ingress";
constexpr const char* kWithout = "no ingress";

/// Where an action keeps its parameters, which begin with the number that the kernel gave it, and
/// the times that it was used. Most have them at 2 and 1.
struct ActionShape {
  std::string_view kind;
  std::uint16_t parameters;
  std::uint16_t times;
};
constexpr ActionShape kUsual{"", 2, 1};
constexpr std::array kShapes = {ActionShape{"csum", 1, 2}, ActionShape{"ct", 1, 2},
                                ActionShape{"nat", 1, 2},  ActionShape{"connmark", 1, 2},
                                ActionShape{"ife", 1, 2},  ActionShape{"police", 1, 8},
                                ActionShape{"pedit", 4, 1}};

using os::text_of;

const ActionShape& shape_of(os::ByteView action) {
  std::string kind;
  os::each_attribute(action, [&](std::uint16_t type, os::ByteView value) {
    if (type == TCA_ACT_KIND) kind = text_of(value);
  });
  const auto row = std::find_if(kShapes.begin(), kShapes.end(),
                                [&](const ActionShape& shape) { return shape.kind == kind; });
  return row == kShapes.end() ? kUsual : *row;
}

/// An action as the kernel shows it, without what it numbers and counts by itself.
void put_action_again(os::NetlinkMessage& message, std::uint16_t number, os::ByteView action) {
  const ActionShape& shape = shape_of(action);
  const std::size_t list = message.open(number);
  os::each_attribute(action, [&](std::uint16_t type, os::ByteView value) {
    if (type == TCA_ACT_KIND || type == TCA_ACT_COOKIE) message.put(type, value);
    if (type != TCA_ACT_OPTIONS) return;
    const std::size_t options = message.open(TCA_ACT_OPTIONS);
    os::each_attribute(value, [&](std::uint16_t option, os::ByteView content) {
      if (option == shape.times) return;
      std::vector<std::uint8_t> copy(content.begin(), content.end());
      if (option == shape.parameters && copy.size() >= sizeof(std::uint32_t)) {
        std::fill_n(copy.begin(), sizeof(std::uint32_t), std::uint8_t{0});
      }
      message.put(option, copy);
    });
    message.close(options);
  });
  message.close(list);
}

/// Is the action one that other filters, or a list of actions, refer to by its number? A copy of it
/// would count and police by itself.
bool is_shared(os::ByteView action) {
  const ActionShape& shape = shape_of(action);
  bool shared = false;
  os::each_attribute(action, [&](std::uint16_t type, os::ByteView value) {
    if (type != TCA_ACT_OPTIONS) return;
    os::each_attribute(value, [&](std::uint16_t option, os::ByteView content) {
      struct {
        tc_gen;
      } common{};
      if (option != shape.parameters || content.size() < sizeof common) return;
      std::memcpy(&common, content.data(), sizeof common);
      shared = common.refcnt > 1 || common.bindcnt > 1;
    });
  });
  return shared;
}

bool is_tag(std::uint16_t ether_type) {
  return ether_type == ETH_P_8021Q || ether_type == ETH_P_8021AD;
}

/// `filed_under`: the Ethernet type in the filter's header. The kernel is told the type of the
/// outermost header and shows that of the innermost, so that of a tag has to come from the header.
void put_options_again(os::NetlinkMessage& message, os::ByteView payload, std::uint16_t filed_under,
                       bool trial) {
  const std::size_t options = message.open(TCA_OPTIONS);
  if (is_tag(filed_under)) message.put_value(TCA_FLOWER_KEY_ETH_TYPE, htons(filed_under));
  os::each_attribute(payload, [&](std::uint16_t type, os::ByteView value) {
    if (type == TCA_FLOWER_IN_HW_COUNT) return;
    if (type == TCA_FLOWER_KEY_ETH_TYPE && is_tag(filed_under)) return;
    if (type == TCA_FLOWER_FLAGS) {
      const auto flags = static_cast<std::uint32_t>(os::native_number(value));
      const std::uint32_t asked = flags & (TCA_CLS_FLAGS_SKIP_HW | TCA_CLS_FLAGS_SKIP_SW);
      message.put_value(type, trial ? std::uint32_t{TCA_CLS_FLAGS_SKIP_HW} : asked);
      return;
    }
    if (type != TCA_FLOWER_ACT) return message.put(type, value);
    const std::size_t list = message.open(type);
    os::each_attribute(value, [&](std::uint16_t number, os::ByteView action) {
      put_action_again(message, number, action);
    });
    message.close(list);
  });
  message.close(options);
}

/// Why a filter could not be put back, as far as it can be seen; empty when nothing is known
/// against it.
std::string objection(const os::NetlinkAnswer& filter, std::uint16_t filed_under) {
  std::string why;
  os::each_attribute(attributes_of(filter), [&](std::uint16_t type, os::ByteView value) {
    if (type == TCA_KIND && text_of(value) != "flower") why = "its kind is " + printable(text_of(value));
    if (type != TCA_OPTIONS || !why.empty()) return;
    os::each_attribute(value, [&](std::uint16_t option, os::ByteView content) {
      const bool tag = option == TCA_FLOWER_KEY_VLAN_ID || option == TCA_FLOWER_KEY_VLAN_PRIO ||
                       option == TCA_FLOWER_KEY_VLAN_ETH_TYPE;
      if (tag && !is_tag(filed_under)) why = "the kernel does not show the type of its VLAN tag";
      if (option != TCA_FLOWER_ACT) return;
      os::each_attribute(content, [&](std::uint16_t, os::ByteView action) {
        if (is_shared(action)) why = "it shares an action with others";
      });
    });
  });
  return why;
}

std::string hex(os::ByteView bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

Result<std::vector<std::uint8_t>> from_hex(std::string_view text) {
  std::vector<std::uint8_t> bytes(text.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char* begin = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(begin, begin + 2, bytes[i], 16);
    if (error != std::errc{} || end != begin + 2) {
      return fail(ErrorCode::kBadInput, "the snapshot of tc filters is damaged");
    }
  }
  return bytes;
}

}  // namespace

bool is_filter(const os::NetlinkAnswer& answer) {
  if (answer.type != RTM_NEWTFILTER || answer.payload.size() < sizeof(tcmsg)) return false;
  bool options = false;
  os::each_attribute(attributes_of(answer), [&](std::uint16_t type, os::ByteView) {
    options = options || type == TCA_OPTIONS;
  });
  return options && header_of(answer.payload).tcm_handle != 0;
}

os::ByteView attributes_of(const os::NetlinkAnswer& answer) {
  return os::ByteView(answer.payload).subspan(sizeof(tcmsg));
}

tcmsg header_of(os::ByteView payload) {
  tcmsg header{};
  std::memcpy(&header, payload.data(), sizeof header);
  return header;
}

std::uint32_t chain_of(const os::NetlinkAnswer& answer) {
  std::uint32_t chain = 0;
  os::each_attribute(attributes_of(answer), [&](std::uint16_t type, os::ByteView value) {
    if (type == TCA_CHAIN) chain = static_cast<std::uint32_t>(os::native_number(value));
  });
  return chain;
}

tl::unexpected<Error> cannot_return(const os::NetlinkAnswer& filter, std::string_view why) {
  return fail(ErrorCode::kUnsupported,
              fmt::format("the filter of chain {} and preference {} that is there could not be put "
                          "back ({}); remove it first (tc filter del)",
                          chain_of(filter), header_of(filter.payload).tcm_info >> 16, why));
}

os::NetlinkMessage filter_again(os::ByteView payload, int interface_number,
                                std::optional<std::uint32_t> trial_chain) {
  tcmsg header = header_of(payload);
  header.tcm_ifindex = interface_number;  // an interface that came back may have another number
  os::NetlinkMessage message(RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL, header);
  os::each_attribute(payload.subspan(sizeof header), [&](std::uint16_t type, os::ByteView value) {
    if (type == TCA_KIND || (type == TCA_CHAIN && !trial_chain)) message.put(type, value);
    if (type == TCA_OPTIONS) {
      put_options_again(message, value, ntohs(TC_H_MIN(header.tcm_info)), trial_chain.has_value());
    }
  });
  if (trial_chain) message.put_value(TCA_CHAIN, *trial_chain);
  return message;
}

Result<std::string> snapshot_text(bool ingress, const std::vector<os::NetlinkAnswer>& filters) {
  std::string text = std::string(ingress ? kWith : kWithout) + "\n";
  for (const os::NetlinkAnswer& filter : filters) {
    const std::uint16_t filed_under = ntohs(TC_H_MIN(header_of(filter.payload).tcm_info));
    if (const std::string why = objection(filter, filed_under); !why.empty()) {
      return cannot_return(filter, why);
    }
    text += hex(filter.payload) + "\n";
  }
  return text;
}

Result<TcSnapshot> read_snapshot(const std::string& text, int interface_number) {
  std::istringstream lines(text);
  std::string line;
  TcSnapshot snapshot;
  if (!std::getline(lines, line) || (line != kWith && line != kWithout)) {
    return fail(ErrorCode::kBadInput, "the snapshot of tc filters is damaged");
  }
  snapshot.ingress = line == kWith;
  while (std::getline(lines, line)) {
    const auto payload = from_hex(line);
    if (!payload) return pass_on(payload);
    if (payload->size() < sizeof(tcmsg)) {
      return fail(ErrorCode::kBadInput, "the snapshot of tc filters is damaged");
    }
    snapshot.filters.push_back(filter_again(*payload, interface_number));
  }
  return snapshot;
}

}  // namespace greynic::flows
