// A client through greynic_broker.hpp: prints what comes back of its words. When its broker dies,
// it connects again and asks once more.

#include <array>
#include <cstdio>
#include <span>
#include <string>
#include <system_error>

#include "greynic_broker.hpp"

namespace {

namespace client = greynic::broker_client;

void ask(client::Connection& connection, const std::string& words) {
  connection.send(std::as_bytes(std::span(words)));
  std::string back;
  std::array<std::byte, 4096> bytes;
  while (back.size() < words.size()) {
    const auto got = connection.recv(bytes);
    if (!got || *got == 0) break;
    back.append(reinterpret_cast<const char*>(bytes.data()), *got);
  }
  std::printf("%s\n", back.c_str());
  std::fflush(stdout);
}

}  // namespace

int wrapped(const char* socket, const char* host, std::uint16_t port, const std::string& words,
            bool reconnects) {
  try {
    client::Broker broker(socket, {.reconnect = reconnects});
    client::Connection connection = broker.connect(host, port);
    ask(connection, words);
    if (!reconnects) return 0;
    try {
      std::byte nothing{};
      connection.recv(std::span(&nothing, 1));  // until the broker dies
    } catch (const std::system_error& error) {
      std::printf("%s\n", error.what());
      std::fflush(stdout);
    }
    client::Connection again = broker.connect(host, port);
    ask(again, words);
    return 0;
  } catch (const std::system_error& error) {
    std::printf("%s\n", error.what());
    return error.code() == std::errc::connection_refused ? 4 : 1;
  }
}
