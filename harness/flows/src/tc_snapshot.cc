#include "tc_snapshot.h"

#include <fmt/format.h>
#include <linux/pkt_cls.h>
#include <linux/rtnetlink.h>

#include <charconv>
#include <cstring>
#include <sstream>

namespace greynic::flows {
namespace {

constexpr const char* kWith = "ingress";
constexpr const char* kWithout = "no ingress";

/// All tc actions keep their parameters in attribute 2, which begins with the action's own index.
constexpr std::uint16_t kParameters = 2;
constexpr std::uint16_t kTimes = 1;

/// An action as the kernel shows it, without what it numbers and counts by itself.
void put_action_again(NetlinkMessage& message, std::uint16_t number, Bytes action) {
  const std::size_t list = message.open(number);
  each_attribute(action, [&](std::uint16_t type, Bytes value) {
    if (type == TCA_ACT_KIND || type == TCA_ACT_COOKIE) message.put(type, value);
    if (type != TCA_ACT_OPTIONS) return;
    const std::size_t options = message.open(TCA_ACT_OPTIONS);
    each_attribute(value, [&](std::uint16_t option, Bytes content) {
      if (option == kTimes) return;
      std::vector<std::uint8_t> copy(content.begin(), content.end());
      if (option == kParameters && copy.size() >= sizeof(std::uint32_t)) {
        std::fill_n(copy.begin(), sizeof(std::uint32_t), std::uint8_t{0});
      }
      message.put(option, copy);
    });
    message.close(options);
  });
  message.close(list);
}

void put_options_again(NetlinkMessage& message, Bytes payload) {
  const std::size_t options = message.open(TCA_OPTIONS);
  each_attribute(payload, [&](std::uint16_t type, Bytes value) {
    if (type == TCA_FLOWER_IN_HW_COUNT) return;
    if (type == TCA_FLOWER_FLAGS) {
      const auto flags = static_cast<std::uint32_t>(native_number(value));
      message.put_value(type, flags & (TCA_CLS_FLAGS_SKIP_HW | TCA_CLS_FLAGS_SKIP_SW));
      return;
    }
    if (type != TCA_FLOWER_ACT) return message.put(type, value);
    const std::size_t list = message.open(type);
    each_attribute(value, [&](std::uint16_t number, Bytes action) {
      put_action_again(message, number, action);
    });
    message.close(list);
  });
  message.close(options);
}

std::string hex(Bytes bytes) {
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

bool is_filter(const NetlinkAnswer& answer) {
  if (answer.type != RTM_NEWTFILTER || answer.payload.size() < sizeof(tcmsg)) return false;
  tcmsg header{};
  std::memcpy(&header, answer.payload.data(), sizeof header);
  bool options = false;
  each_attribute(Bytes(answer.payload).subspan(sizeof header),
                 [&](std::uint16_t type, Bytes) { options = options || type == TCA_OPTIONS; });
  return options && header.tcm_handle != 0;
}

Result<std::string> snapshot_text(bool ingress, const std::vector<NetlinkAnswer>& filters) {
  std::string text = std::string(ingress ? kWith : kWithout) + "\n";
  for (const NetlinkAnswer& filter : filters) {
    std::string kind;
    each_attribute(Bytes(filter.payload).subspan(sizeof(tcmsg)),
                   [&](std::uint16_t type, Bytes value) {
                     if (type == TCA_KIND && !value.empty()) {
                       kind.assign(reinterpret_cast<const char*>(value.data()), value.size() - 1);
                     }
                   });
    if (kind != "flower") {
      return fail(ErrorCode::kUnsupported,
                  fmt::format("a filter of kind {} is there, which could not be put back; remove "
                              "it first (tc filter del)",
                              kind));
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
    tcmsg header{};
    std::memcpy(&header, payload->data(), sizeof header);
    header.tcm_ifindex = interface_number;  // an interface that came back may have another number
    NetlinkMessage message(RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL, header);
    each_attribute(Bytes(*payload).subspan(sizeof header), [&](std::uint16_t type, Bytes value) {
      if (type == TCA_KIND || type == TCA_CHAIN) message.put(type, value);
      if (type == TCA_OPTIONS) put_options_again(message, value);
    });
    snapshot.filters.push_back(std::move(message));
  }
  return snapshot;
}

}  // namespace greynic::flows
