#include "call_watch.h"

#include <grpc/grpc.h>
#include <grpc/support/alloc.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "caller.h"

namespace greynic::agent {
namespace {

using nlohmann::json;

/// What gRPC wrote; null where it has nothing to say.
json taken(char* text) {
  if (text == nullptr) return {};
  json parsed = json::parse(text, nullptr, false);
  gpr_free(text);
  return parsed.is_discarded() ? json() : parsed;
}

/// protobuf's JSON: numbers of 64 bits are texts, zeros are left out.
long number(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || !found->is_string()
             ? 0
             : std::strtol(found->get_ref<const std::string&>().c_str(), nullptr, 10);
}

const json& part(const json& object, const char* name) {
  static const json none = json::object();
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

void add_overfull(long server, std::vector<std::string>& found) {
  const json sockets = taken(grpc_channelz_get_server_sockets(server, 0, 0));
  for (const json& entry : part(sockets, "socketRef")) {
    const json answer = taken(grpc_channelz_get_socket(number(entry, "socketId")));
    const json& socket = part(answer, "socket");
    const json& data = part(socket, "data");
    const long held = number(data, "streamsStarted") - number(data, "streamsSucceeded") -
                      number(data, "streamsFailed");
    if (held <= kMostCallsHeld) continue;
    // "chttp2 ipv4:10.0.0.7:41234"
    const std::string name = part(socket, "ref").value("name", "");
    found.push_back(connection_of(name.substr(name.find(' ') + 1)));
  }
}

}  // namespace

HeldCalls held_calls() {
  HeldCalls found;
  const json servers = taken(grpc_channelz_get_servers(0));
  for (const json& server : part(servers, "server")) {
    const json& data = part(server, "data");
    const long held =
        number(data, "callsStarted") - number(data, "callsSucceeded") - number(data, "callsFailed");
    if (held <= kMostCallsHeld) continue;
    found.too_many = true;
    add_overfull(number(part(server, "ref"), "serverId"), found.overfull);
  }
  return found;
}

}  // namespace greynic::agent
