#include "greynic/monitor/hosts_file.h"

#include <fmt/core.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "greynic/core/units.h"
#include "greynic/daemon/door.h"
#include "greynic/files/json_file.h"

namespace greynic::monitor {
namespace {

constexpr std::chrono::nanoseconds kShortest = std::chrono::milliseconds(1);
constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(1);

Result<std::chrono::nanoseconds> interval_of(const nlohmann::json& text, const std::string& source,
                                             const std::string& place) {
  const auto interval = parse_duration(text.get<std::string>());
  if (!interval) return files::bad_value(source, place, interval.error().message);
  if (*interval < kShortest || *interval > kLongest) {
    return files::bad_value(source, place, "an interval is 1ms to 1h");
  }
  return *interval;
}

Result<HostSpec> host_of(const nlohmann::json& from, HostSpec host, const std::string& source,
                         const std::string& place) {
  host.name = from.at("name").get<std::string>();
  host.agent = from.value("agent", "");
  host.remote = from.value("remote", "");
  host.region = from.value("region", "");
  host.pid = from.value("pid", 0);
  host.certificates = from.value("certificates", host.certificates);
  host.device = from.value("device", host.remote.empty() ? "" : host.device);
  const int ways = (host.agent.empty() ? 0 : 1) + (host.remote.empty() ? 0 : 1) +
                   (host.region.empty() ? 0 : 1) + (host.pid != 0);
  if (ways != 1) {
    return files::bad_value(
        source, place,
        fmt::format("has {} of agent, remote, region and pid; give one of them", ways));
  }
  if (!host.remote.empty() && !daemon::is_listen_address(host.remote)) {
    return files::bad_value(source, place + "/remote",
                            host.remote + " is not HOST:PORT, such as lab7.example:18601");
  }
  if (host.remote.empty() && !host.device.empty()) {
    return files::bad_value(source, place + "/device", "a device READs a host with \"remote\"");
  }
  if (from.contains("interval")) {
    const auto interval = interval_of(from.at("interval"), source, place + "/interval");
    if (!interval) return pass_on(interval);
    host.interval = *interval;
  }
  const std::string priority = from.value("priority", "normal");
  host.priority = priority == "high"  ? Priority::kHigh
                  : priority == "low" ? Priority::kLow
                                      : Priority::kNormal;
  if (from.contains("classes")) {
    host.classes = 0;
    for (const auto& one : from.at("classes")) {
      const auto name = one.get<std::string>();
      host.classes |= name == "system" ? 1U : name == "persistent" ? 2U : 4U;
    }
  }
  return host;
}

/// A directory whose name was mistyped would else be a host that is tried again for ever.
Result<void> check_certificates(const std::vector<HostSpec>& hosts, const nlohmann::json& document,
                                const std::string& source) {
  std::set<std::string> known;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const std::string& directory = hosts[i].certificates;
    if (hosts[i].remote.empty() || directory.empty() || !known.insert(directory).second) continue;
    std::error_code error;
    if (std::filesystem::is_directory(directory, error)) continue;
    const bool own = document.at("hosts")[i].contains("certificates");
    return files::bad_value(source,
                            own ? fmt::format("/hosts/{}/certificates", i) : "/certificates",
                            fmt::format("{} is no directory here; copy that of a client from where "
                                        "`greynic agent init` made the lab",
                                        directory));
  }
  return {};
}

}  // namespace

Result<std::vector<HostSpec>> read_hosts(const std::string& path) {
  const auto document = files::read_json(path, "zero_hosts");
  if (!document) return pass_on(document);
  HostSpec defaults;
  if (document->contains("interval")) {
    const auto interval = interval_of(document->at("interval"), path, "/interval");
    if (!interval) return pass_on(interval);
    defaults.interval = *interval;
  }
  defaults.certificates = document->value("certificates", "");
  defaults.device = document->value("device", "");
  std::vector<HostSpec> hosts;
  std::set<std::string> names;
  for (const auto& one : document->at("hosts")) {
    const std::string place = fmt::format("/hosts/{}", hosts.size());
    auto host = host_of(one, defaults, path, place);
    if (!host) return pass_on(host);
    if (!names.insert(host->name).second) {
      return files::bad_value(
          path, place + "/name",
          fmt::format("{} stands twice; give each host a name of its own", host->name));
    }
    hosts.push_back(std::move(*host));
  }
  if (auto good = check_certificates(hosts, *document, path); !good) return pass_on(good);
  return hosts;
}

}  // namespace greynic::monitor
