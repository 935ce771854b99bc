#include "greynic/flows/few_masks.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "greynic/core/wire_numbers.h"
#include "ovs/ovs_text.h"

namespace greynic::flows {
namespace {

using F = MatchField;

constexpr unsigned kRegisterCount = 16;

struct Transport {
  std::uint64_t protocol;
  std::string_view name;  ///< in the names of its port fields
};
constexpr std::array kTransports = {Transport{6, "TCP"}, Transport{17, "UDP"},
                                    Transport{132, "SCTP"}};

MatchField reg(unsigned index) {
  return static_cast<MatchField>(static_cast<unsigned>(F::kReg0) + index);
}

/// What the rules look at and which registers they leave alone.
class Survey {
 public:
  explicit Survey(const Layout& layout) {
    for (const LayoutTable& table : layout.tables) {
      for (const Matcher& matcher : table.matchers) {
        for (const FieldMask& part : matcher.mask.fields()) seen_.add(part.field, part.bits);
        for (const FlowRule& rule : matcher.rules) {
          for (const Action& action : rule.actions) {
            if (action.kind == ActionKind::kSetField) seen_.add(action.field, 1);
            // Words of a foreign format may name any register.
            if (action.kind == ActionKind::kOther) foreign_ += action.text;
          }
        }
      }
    }
  }
  [[nodiscard]] bool looks_at(MatchField field) const { return seen_.bits(field) != 0; }
  /// The free registers, from the last: rules use the first ones most.
  [[nodiscard]] std::vector<unsigned> free_registers() const {
    std::vector<unsigned> found;
    for (unsigned index = kRegisterCount; index-- > 0;) {
      const bool named = foreign_.find(fmt::format("reg{}", index)) != std::string::npos ||
                         foreign_.find(fmt::format("REG{}", index)) != std::string::npos ||
                         foreign_.find("xreg") != std::string::npos;
      if (!looks_at(reg(index)) && !named) found.push_back(index);
    }
    return found;
  }

 private:
  Mask seen_;
  std::string foreign_;
};

/// "move:FIELD[]->NXM_NX_REGn[0..bits-1]" for each field, from one free register to the next.
class Reader {
 public:
  explicit Reader(const Survey& survey) : survey_(survey), free_(survey.free_registers()) {}

  void read(MatchField field, std::string_view nxm_name, unsigned bits) {
    if (!survey_.looks_at(field)) return;
    // 48 bits take two registers.
    for (unsigned from = 0; from < bits; from += 32) {
      const unsigned upto = std::min(bits, from + 32);
      if (used_ >= free_.size()) {
        short_of_registers_ = true;
        return;
      }
      moves_.push_back(Action::other(fmt::format("move:{}[{}..{}]->NXM_NX_REG{}[0..{}]", nxm_name,
                                                 from, upto - 1, free_[used_++], upto - from - 1)));
    }
  }
  [[nodiscard]] bool short_of_registers() const { return short_of_registers_; }
  [[nodiscard]] const std::vector<Action>& moves() const { return moves_; }

 private:
  const Survey& survey_;
  std::vector<unsigned> free_;
  std::size_t used_ = 0;
  std::vector<Action> moves_;
  bool short_of_registers_ = false;
};

void read_ethernet(Reader& reader) {
  reader.read(F::kEthernetSrc, "NXM_OF_ETH_SRC", 48);
  reader.read(F::kEthernetDst, "NXM_OF_ETH_DST", 48);
}

void read_ipv4(Reader& reader) {
  read_ethernet(reader);
  reader.read(F::kIpv4Src, "NXM_OF_IP_SRC", 32);
  reader.read(F::kIpv4Dst, "NXM_OF_IP_DST", 32);
}

void add(Matcher& matcher, Match match, const Reader& reader) {
  FlowRule rule;
  rule.match = std::move(match);
  rule.actions = reader.moves();
  matcher.mask = rule.match.mask();
  matcher.rules.push_back(std::move(rule));
}

}  // namespace

namespace {

/// The first number that neither a table nor a jump of the layout uses. A jump of foreign words
/// ("resubmit(,5)") may go anywhere that has rules, so only tables without rules are free.
std::optional<std::uint32_t> free_table(const Layout& layout) {
  std::set<std::uint64_t> used = {0};
  for (const LayoutTable& table : layout.tables) {
    used.insert(table.id);
    for (const Matcher& matcher : table.matchers) {
      for (const FlowRule& rule : matcher.rules) {
        for (const Action& action : rule.actions) {
          if (action.kind == ActionKind::kJump) used.insert(action.number);
        }
      }
    }
  }
  for (std::uint32_t id = 1; id <= kOvsLastTable; ++id) {
    if (!used.contains(id)) return id;
  }
  return std::nullopt;
}

}  // namespace

Result<Layout> few_masks(const Layout& layout) {
  const Survey survey(layout);
  LayoutTable front;
  front.matchers.resize(3);
  bool enough = true;
  Match ipv4;
  ipv4.set(F::kEtherType, ether_type::kIpv4);
  for (const Transport& transport : kTransports) {
    Reader reader(survey);
    read_ipv4(reader);
    const bool tcp = transport.name == "TCP";
    // SCTP's ports have no NXM name.
    const std::string prefix =
        (transport.name == "SCTP" ? "OXM_OF_" : "NXM_OF_") + std::string(transport.name);
    reader.read(F::kL4SrcPort, prefix + "_SRC", 16);
    reader.read(F::kL4DstPort, prefix + "_DST", 16);
    if (tcp) reader.read(F::kTcpFlags, "NXM_NX_TCP_FLAGS", 12);
    enough = enough && !reader.short_of_registers();
    Match match = ipv4;
    match.set(F::kIpProtocol, transport.protocol);
    add(front.matchers[0], std::move(match), reader);
  }
  Reader icmp(survey);
  read_ipv4(icmp);
  icmp.read(F::kIcmpType, "NXM_OF_ICMP_TYPE", 8);
  icmp.read(F::kIcmpCode, "NXM_OF_ICMP_CODE", 8);
  enough = enough && !icmp.short_of_registers();
  Match match_icmp = ipv4;
  match_icmp.set(F::kIpProtocol, ip_protocol::kIcmp);
  add(front.matchers[0], std::move(match_icmp), icmp);
  Reader any_ipv4(survey);
  read_ipv4(any_ipv4);
  add(front.matchers[1], ipv4, any_ipv4);
  Reader rest(survey);
  read_ethernet(rest);
  add(front.matchers[2], {}, rest);
  if (!enough) {
    return fail(ErrorCode::kUnsupported,
                "the rules leave too few registers free to read all the fields they look at");
  }
  const auto moved = free_table(layout);
  if (!moved) return fail(ErrorCode::kUnsupported, "there is no free table number left");
  for (Matcher& matcher : front.matchers) {
    for (FlowRule& rule : matcher.rules) rule.actions.push_back(Action::jump(*moved));
  }
  Layout made;
  made.tables.push_back(std::move(front));
  for (LayoutTable table : layout.tables) {
    if (table.id == 0) {
      table.id = *moved;
      for (Matcher& matcher : table.matchers) {
        for (FlowRule& rule : matcher.rules) rule.table = table.id;
      }
    }
    made.tables.push_back(std::move(table));
  }
  for (std::size_t i = 0; i < made.tables.front().matchers.size(); ++i) {
    made.tables.front().matchers[i].priority = static_cast<RulePriority>(i);
  }
  return made;
}

bool has_reading_table(const Layout& layout) {
  const auto front = std::ranges::find(layout.tables, 0U, &LayoutTable::id);
  if (front == layout.tables.end()) return false;
  bool reads = false;
  for (const Matcher& matcher : front->matchers) {
    for (const FlowRule& rule : matcher.rules) {
      if (rule.actions.empty() || rule.actions.back().kind != ActionKind::kJump) return false;
      for (std::size_t i = 0; i + 1 < rule.actions.size(); ++i) {
        if (!rule.actions[i].text.starts_with("move:")) return false;
        reads = true;
      }
    }
  }
  return reads;
}

}  // namespace greynic::flows
