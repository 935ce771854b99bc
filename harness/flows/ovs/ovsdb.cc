#include "ovs/ovsdb.h"

#include <fmt/format.h>

#include <thread>

namespace greynic::flows {
namespace {

using nlohmann::json;

constexpr const char* kDatabase = "Open_vSwitch";

json map_of(const std::map<std::string, std::string>& entries) {
  json pairs = json::array();
  for (const auto& [name, value] : entries) pairs.push_back({name, value});
  return {"map", pairs};
}

json named_row(const char* name) { return json::array({"named-uuid", name}); }

json where_name(const std::string& name) {
  return json::array({json::array({"name", "==", name})});
}

const json kEveryRow = json::array();

json select(const char* table, const json& where, const std::vector<std::string>& columns) {
  return {{"op", "select"}, {"table", table}, {"where", where}, {"columns", columns}};
}

json insert(const char* table, const char* handle, const json& row) {
  return {{"op", "insert"}, {"table", table}, {"uuid-name", handle}, {"row", row}};
}

json mutate(const char* table, const json& where, const std::vector<json>& mutations) {
  return {{"op", "mutate"}, {"table", table}, {"where", where}, {"mutations", mutations}};
}

json mutation(const char* column, const char* how, const json& value) {
  return json::array({column, how, value});
}

/// OVSDB writes a set of one as the bare element and every other set as ["set", [...]].
std::vector<json> elements(const json& column) {
  if (column.is_array() && column.size() == 2 && column[0] == "set") {
    return column[1].get<std::vector<json>>();
  }
  return {column};
}

tl::unexpected<Error> strange(const char* what) {
  return fail(ErrorCode::kIo,
              fmt::format("the answer of the switch's database breaks RFC 7047: {}", what));
}

/// Reads an answer; one without the rows and columns that were asked for is an error and no crash.
template <typename Read>
auto reading(Read&& read) -> decltype(read()) {
  try {
    return read();
  } catch (const json::exception& problem) {
    return strange(problem.what());
  } catch (const std::out_of_range&) {
    return strange("a row is named that is not there");
  }
}

const json& rows_in(const json& answers, std::size_t operation) {
  return answers.at(operation).at("rows");
}

}  // namespace

Result<Ovsdb> Ovsdb::connect(const std::string& socket_path) {
  auto rpc = JsonRpc::connect(socket_path);
  if (!rpc) return pass_on(rpc);
  return Ovsdb(std::move(*rpc));
}

Result<json> Ovsdb::transact(const std::vector<json>& operations) {
  json parameters = json::array({kDatabase});
  for (const json& operation : operations) parameters.push_back(operation);
  auto results = rpc_.call("transact", std::move(parameters));
  if (!results) return results;
  return reading([&]() -> Result<json> {
    for (const json& result : *results) {
      if (result.is_object() && result.contains("error") && !result["error"].is_null()) {
        return fail(ErrorCode::kRefused, fmt::format("the switch's database: {} ({})",
                                                     result["error"].get<std::string>(),
                                                     result.value("details", "no details")));
      }
    }
    return std::move(results);
  });
}

Result<void> Ovsdb::configure(std::vector<json> operations) {
  const json progress = select(kDatabase, kEveryRow, {"next_cfg", "cur_cfg"});
  operations.push_back(mutate(kDatabase, kEveryRow, {mutation("next_cfg", "+=", 1)}));
  operations.push_back(progress);
  auto done = transact(operations);
  if (!done) return pass_on(done);
  const auto number = [](const json& answers, std::size_t operation, const char* column) {
    return reading([&]() -> Result<std::int64_t> {
      return rows_in(answers, operation).at(0).at(column).get<std::int64_t>();
    });
  };
  const auto wanted = number(*done, operations.size() - 1, "next_cfg");
  if (!wanted) return pass_on(wanted);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (std::chrono::steady_clock::now() < deadline) {
    auto state = transact({progress});
    if (!state) return pass_on(state);
    const auto reached = number(*state, 0, "cur_cfg");
    if (!reached) return pass_on(reached);
    if (*reached >= *wanted) return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return fail(ErrorCode::kIo, "ovs-vswitchd did not act on its configuration within 30 s");
}

Result<void> Ovsdb::initialise(const std::map<std::string, std::string>& settings) {
  auto done = transact({insert(kDatabase, "all", {{"other_config", map_of(settings)}})});
  if (!done) return pass_on(done);
  return {};
}

Result<void> Ovsdb::set(const std::map<std::string, std::string>& settings) {
  json names = json::array();
  for (const auto& [name, value] : settings) names.push_back(name);
  // An insert into a map keeps a key that is there, so it is deleted first.
  return configure({mutate(kDatabase, kEveryRow,
                           {mutation("other_config", "delete", json::array({"set", names})),
                            mutation("other_config", "insert", map_of(settings))})});
}

Result<void> Ovsdb::add_bridge(const std::string& name,
                               const std::map<std::string, std::string>& settings) {
  const json interface = {{"name", name}, {"type", "internal"}};
  const json port = {{"name", name}, {"interfaces", named_row("interface")}};
  const json bridge = {{"name", name},
                       {"datapath_type", "netdev"},
                       {"fail_mode", "secure"},
                       {"other_config", map_of(settings)},
                       {"ports", named_row("port")}};
  return configure(
      {insert("Interface", "interface", interface), insert("Port", "port", port),
       insert("Bridge", "bridge", bridge),
       mutate(kDatabase, kEveryRow, {mutation("bridges", "insert", named_row("bridge"))})});
}

Result<void> Ovsdb::add_port(const std::string& bridge, const PortSettings& settings) {
  return add_ports({{bridge, settings}});
}

Result<void> Ovsdb::add_ports(const std::vector<std::pair<std::string, PortSettings>>& ports) {
  std::vector<json> operations;
  std::vector<json> questions;
  std::vector<std::string> names;
  for (const auto& [bridge, settings] : ports) {
    json interface = {
        {"name", settings.name}, {"type", settings.type}, {"options", map_of(settings.options)}};
    if (settings.openflow_number) interface["ofport_request"] = *settings.openflow_number;
    const std::string link = fmt::format("interface{}", names.size());
    const std::string port = fmt::format("port{}", names.size());
    operations.push_back(insert("Interface", link.c_str(), interface));
    operations.push_back(insert(
        "Port", port.c_str(), {{"name", settings.name}, {"interfaces", named_row(link.c_str())}}));
    operations.push_back(mutate("Bridge", where_name(bridge),
                                {mutation("ports", "insert", named_row(port.c_str()))}));
    questions.push_back(select("Interface", where_name(settings.name), {"error", "ofport"}));
    names.push_back(settings.name);
  }
  const std::string what = fmt::format("adding port {}", fmt::join(names, " and "));
  auto done = configure(std::move(operations));
  if (!done) return done.error().while_doing(what);
  auto state = transact(questions);
  if (!state) return pass_on(state);
  return reading([&]() -> Result<void> {
    for (std::size_t i = 0; i < questions.size(); ++i) {
      const json& error = rows_in(*state, i).at(0).at("error");
      if (!error.is_string()) continue;
      for (const auto& [bridge, settings] : ports) (void)remove_port(bridge, settings.name);
      return fail(ErrorCode::kRefused, what + ": " + error.get<std::string>());
    }
    return {};
  });
}

Result<void> Ovsdb::remove_port(const std::string& bridge, const std::string& port) {
  auto found = transact({select("Port", where_name(port), {"_uuid"})});
  if (!found) return pass_on(found);
  return reading([&]() -> Result<void> {
    const json& rows = rows_in(*found, 0);
    if (rows.empty()) return {};
    auto done = configure({mutate("Bridge", where_name(bridge),
                                  {mutation("ports", "delete", rows.at(0).at("_uuid"))})});
    if (!done) return done.error().while_doing("removing port " + port);
    return {};
  });
}

Result<std::map<std::string, std::uint32_t>> Ovsdb::ports(const std::string& bridge) {
  auto rows = transact({select("Bridge", where_name(bridge), {"ports"}),
                        select("Port", kEveryRow, {"_uuid", "interfaces"}),
                        select("Interface", kEveryRow, {"_uuid", "name", "ofport"})});
  if (!rows) return pass_on(rows);
  return reading([&]() -> Result<std::map<std::string, std::uint32_t>> {
    if (rows_in(*rows, 0).empty()) {
      return fail(ErrorCode::kMissing, fmt::format("the switch has no bridge {}", bridge));
    }
    std::map<json, json> interface_of;
    for (const json& row : rows_in(*rows, 2)) interface_of[row.at("_uuid")] = row;
    std::map<json, json> port_of;
    for (const json& row : rows_in(*rows, 1)) port_of[row.at("_uuid")] = row;
    std::map<std::string, std::uint32_t> numbers;
    for (const json& port : elements(rows_in(*rows, 0).at(0).at("ports"))) {
      for (const json& id : elements(port_of.at(port).at("interfaces"))) {
        const json& interface = interface_of.at(id);
        const json& number = interface.at("ofport");
        if (number.is_number_integer() && number.get<std::int64_t>() > 0) {
          numbers[interface.at("name").get<std::string>()] = number.get<std::uint32_t>();
        }
      }
    }
    return numbers;
  });
}

}  // namespace greynic::flows
