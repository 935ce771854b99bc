#include <fmt/core.h>

#include <filesystem>
#include <set>

#include "greynic/daemon/door.h"
#include "greynic/files/json_file.h"
#include "greynic/trace_hosts/collector.h"

namespace greynic::trace_hosts {

Result<Hosts> read_hosts(const std::string& path) {
  const auto document = files::read_json(path, "trace_hosts");
  if (!document) return pass_on(document);
  Hosts made;
  const std::filesystem::path directory = document->value("certificates", "");
  if (!directory.empty()) {
    // As the campaign's topology: relative to the file.
    made.certificates = (std::filesystem::path(path).parent_path() / directory).string();
  }
  std::set<std::string> names;
  for (const auto& one : document->at("hosts")) {
    const std::string place = fmt::format("/hosts/{}", made.hosts.size());
    HostSpec host{.name = one.at("name").get<std::string>(),
                  .agent = one.at("agent").get<std::string>()};
    if (!names.insert(host.name).second) {
      return files::bad_value(
          path, place + "/name",
          fmt::format("{} stands twice; give each host a name of its own", host.name));
    }
    if (!daemon::is_listen_address(host.agent)) {
      return files::bad_value(path, place + "/agent", "is not HOST:PORT, such as 10.0.0.7:18700");
    }
    made.hosts.push_back(std::move(host));
  }
  return made;
}

}  // namespace greynic::trace_hosts
