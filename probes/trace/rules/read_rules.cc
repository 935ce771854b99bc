#include <arpa/inet.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "greynic/core/units.h"
#include "greynic/files/json_file.h"
#include "greynic/trace/rules.h"

namespace greynic::trace {
namespace {

using nlohmann::json;

constexpr std::string_view kSchema = "trace_rules";

struct Reader {
  std::string source;

  [[nodiscard]] tl::unexpected<Error> wrong(const std::string& place,
                                            const std::string& why) const {
    return files::bad_value(source, place, why);
  }

  [[nodiscard]] Result<std::optional<Prefix>> prefix(const json& match, const std::string& place,
                                                     const char* key) const {
    if (!match.contains(key)) return std::optional<Prefix>();
    const auto text = match.at(key).get<std::string>();
    const auto read = parse_prefix(text);
    if (read) return read;
    return wrong(place + "/" + key, fmt::format("'{}' is no address and no prefix such as "
                                                "10.1.0.0/16 or fd00::/8",
                                                text));
  }

  [[nodiscard]] Result<Ports> ports(const json& match, const std::string& place,
                                    const char* key) const {
    if (!match.contains(key)) return kAllPorts;
    const json& value = match.at(key);
    if (value.is_number()) {
      return Ports(value.get<std::uint16_t>(), value.get<std::uint16_t>());
    }
    const auto text = value.get<std::string>();
    const int low = std::stoi(text);
    const int high = std::stoi(text.substr(text.find('-') + 1));
    if (low <= high && high <= 65535) {
      return Ports(static_cast<std::uint16_t>(low), static_cast<std::uint16_t>(high));
    }
    return wrong(place + "/" + key, "give ports from low to high, at most 65535");
  }

  [[nodiscard]] Result<std::uint8_t> protocol(const json& match, const std::string& place) const {
    if (!match.contains("protocol")) return std::uint8_t{0};
    const json& value = match.at("protocol");
    if (value.is_number()) return value.get<std::uint8_t>();
    const auto name = value.get<std::string>();
    constexpr std::pair<const char*, std::uint8_t> kNames[] = {
        {"tcp", 6}, {"udp", 17}, {"icmp", 1}, {"icmpv6", 58}, {"sctp", 132}};
    for (const auto& [known, number] : kNames) {
      if (name == known) return number;
    }
    return wrong(place + "/protocol",
                 "'" + name + "' is none of tcp, udp, icmp, icmpv6, sctp; or give its number");
  }

  [[nodiscard]] Result<Match> match(const json& object, const std::string& place) const {
    Match made;
    const auto take = [&](auto value, auto& into) -> Result<void> {
      if (!value) return pass_on(value);
      into = *value;
      return {};
    };
    Result<void> done;
    if (done = take(prefix(object, place, "source"), made.source); !done) return pass_on(done);
    if (done = take(prefix(object, place, "destination"), made.destination); !done) {
      return pass_on(done);
    }
    if (done = take(prefix(object, place, "address"), made.address); !done) return pass_on(done);
    if (done = take(ports(object, place, "source_port"), made.source_port); !done) {
      return pass_on(done);
    }
    if (done = take(ports(object, place, "destination_port"), made.destination_port); !done) {
      return pass_on(done);
    }
    if (object.contains("port")) {
      if (done = take(ports(object, place, "port"), made.port); !done) return pass_on(done);
    }
    if (done = take(protocol(object, place), made.protocol); !done) return pass_on(done);
    made.container = object.value("container", "");
    if (object.contains("vni")) made.vni = object.at("vni").get<std::uint32_t>();
    if (object.contains("queue_pair"))
      made.queue_pair = object.at("queue_pair").get<std::uint32_t>();
    return made;
  }

  [[nodiscard]] Result<PointPattern> point(const json& object, const std::string& place) const {
    PointPattern made{.device = object.value("device", "*/*")};
    const std::string direction = object.value("direction", "both");
    made.receive = direction != "queue";
    made.queue = direction != "receive";
    if (!object.contains("hook")) {
      if (object.contains("device")) return made;
      return wrong(place, "give a device or a hook");
    }
    const auto hook = object.at("hook").get<std::string>();
    if (hook == "net_dev_queue") {
      made.receive = false;
    } else if (hook == "netif_receive_skb") {
      made.queue = false;
    } else {
      return wrong(place + "/hook", "'" + hook + "' is none of net_dev_queue, netif_receive_skb; " +
                                        "`greynic trace hooks` lists what this kernel offers");
    }
    if (made.receive || made.queue) return made;
    return wrong(place, "this hook and this direction exclude each other");
  }

  [[nodiscard]] Result<Rule> rule(const json& object, std::size_t index) const {
    const std::string place = fmt::format("/rules/{}", index);
    Rule made{.name = object.value("name", fmt::format("rule{}", index))};
    auto read = match(object.value("match", json::object()), place + "/match");
    if (!read) return pass_on(read);
    made.match = std::move(*read);
    const json points = object.value("points", json::array());
    for (std::size_t i = 0; i < points.size(); ++i) {
      auto one = point(points[i], fmt::format("{}/points/{}", place, i));
      if (!one) return pass_on(one);
      made.points.push_back(std::move(*one));
    }
    const json actions = object.value("actions", json{"histogram", "loss"});
    const auto wants = [&](const char* action) {
      return std::find(actions.begin(), actions.end(), action) != actions.end();
    };
    made.timed = wants("histogram") || wants("stamp");
    made.loss = wants("loss");
    made.sample = object.value("sample", wants("stamp") ? 1U : 0U);
    const std::string flow = object.value("flow", "ports");
    made.flow = flow == "hosts"  ? FlowDetail::kHosts
                : flow == "rule" ? FlowDetail::kRule
                                 : FlowDetail::kPorts;
    if (object.contains("most_bytes"))
      made.most_bytes = object.at("most_bytes").get<std::uint32_t>();
    made.through_netfilter = object.value("through_netfilter", false);
    return made;
  }
};

Result<Window> window_of(const json& document, const Reader& reader) {
  Window made;
  const json window = document.value("window", json::object());
  for (const auto& [key, value] : window.items()) {
    const auto read = parse_duration(value.get<std::string>());
    if (!read) return reader.wrong("/window/" + key, read.error().message);
    if (*read > std::chrono::hours(24 * 366)) {
      return reader.wrong("/window/" + key, "this is more than a year");
    }
    if (key == "after") made.after = *read;
    if (key == "for") made.length = *read;
  }
  return made;
}

Result<Rules> rules_from(const json& document, const std::string& source) {
  const Reader reader{source};
  Rules made{.source = source};
  if (document.value("engine", "out_of_band") == "in_band") made.engine = Engine::kInBand;
  if (document.contains("cpu_budget_percent")) {
    made.cpu_budget = document.at("cpu_budget_percent").get<double>() / 100;
  }
  if (document.contains("slow")) {
    const auto slow = parse_duration(document.at("slow").get<std::string>());
    if (!slow) return reader.wrong("/slow", slow.error().message);
    made.slow = *slow;
  }
  const auto window = window_of(document, reader);
  if (!window) return pass_on(window);
  made.window = *window;
  const json& rules = document.at("rules");
  for (std::size_t i = 0; i < rules.size(); ++i) {
    auto rule = reader.rule(rules[i], i);
    if (!rule) return pass_on(rule);
    for (const char* field : {"most_bytes", "through_netfilter"}) {
      if (made.engine == Engine::kInBand || !rules[i].contains(field)) continue;
      return reader.wrong(fmt::format("/rules/{}/{}", i, field),
                          "only \"engine\": \"in_band\" changes packets, so only there it says "
                          "something; remove it, or name that engine");
    }
    for (const Rule& other : made.rules) {
      if (other.name == rule->name) {
        return reader.wrong(fmt::format("/rules/{}/name", i), "another rule has this name");
      }
    }
    made.rules.push_back(std::move(*rule));
  }
  return made;
}

}  // namespace

Window Window::later(std::chrono::nanoseconds by) const {
  Window made = *this;
  made.after = std::max(after - by, std::chrono::nanoseconds(0));
  if (length) made.length = after + *length - by - made.after;
  return made;
}

std::optional<Prefix> parse_prefix(const std::string& text) {
  const std::size_t slash = text.find('/');
  const std::string address = text.substr(0, slash);
  Prefix made;
  int most = 128;
  if (in_addr v4{}; inet_pton(AF_INET, address.c_str(), &v4) == 1) {
    made.address[10] = made.address[11] = 0xff;
    std::memcpy(&made.address[12], &v4, 4);
    most = 32;
  } else if (inet_pton(AF_INET6, address.c_str(), made.address.data()) != 1) {
    return std::nullopt;
  }
  int bits = most;
  if (slash != std::string::npos) {
    const std::string length = text.substr(slash + 1);
    if (length.empty() || length.size() > 3 ||
        !std::all_of(length.begin(), length.end(), [](char c) { return c >= '0' && c <= '9'; })) {
      return std::nullopt;
    }
    bits = std::stoi(length);
    if (bits > most) return std::nullopt;
  }
  made.bits = bits + 128 - most;
  return made;
}

std::string address_text(const Address& address) {
  char text[INET6_ADDRSTRLEN] = "";
  constexpr Address kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (std::equal(address.begin(), address.begin() + 12, kMapped.begin())) {
    inet_ntop(AF_INET, &address[12], text, sizeof text);
  } else {
    inet_ntop(AF_INET6, address.data(), text, sizeof text);
  }
  return text;
}

Result<Rules> read_rules(const std::string& path) {
  const auto document = files::read_json(path, kSchema);
  if (!document) return pass_on(document);
  return rules_from(*document, path);
}

Result<Rules> parse_rules(std::string_view text, const std::string& source) {
  const auto document = files::parse_json(text, source);
  if (!document) return pass_on(document);
  if (const auto fits = files::check_schema(*document, kSchema, source); !fits)
    return pass_on(fits);
  return rules_from(*document, source);
}

}  // namespace greynic::trace
