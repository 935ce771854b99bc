// Random READs of 64 KiB on two ConnectX-3 of the twin, one open READ a connection: one QP for each
// connection, against the broker with two shared QPs and with six. Virtual time; nothing is
// asserted. Beyond 1,000 connections a QP each is left out: it takes long, and has fallen by then.
//
// usage: broker_bench [connections...]

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "greynic/broker/fabric_node.h"
#include "perftest_program.h"

namespace greynic::broker {
namespace {

constexpr std::uint64_t kBytes = 65536, kPieces = 255;
constexpr twin::Time kWarmUp = 10e6, kUntil = 20e6;

/// Serves its memory, or reads from the other's as fast as it is answered.
class Reader : public FabricClient {
 public:
  explicit Reader(FabricNode& node) : node_(node), segment_((kPieces + 1) * kBytes) {
    app = *node.attach(*this, segment_);
  }
  [[nodiscard]] Rings rings() const {
    return {.send = {0, 4096}, .receive = {4096, 4096}, .exposed = {kBytes, kPieces * kBytes}};
  }
  void on_incoming(std::uint16_t, VirtualQpn number) override {
    (void)node_.core().accept(app, number, rings());
  }
  void on_open(VirtualQpn number) override { ask(number); }
  void on_transferred(VirtualQpn number, std::uint64_t) override {
    ++done;
    ask(number);
  }
  AppId app = 0;
  std::uint64_t done = 0;

 private:
  void ask(VirtualQpn number) {
    const std::uint64_t place = kBytes * random_.below(kPieces);
    (void)node_.core().transfer(app, number, Verb::kRead, kBytes, place, kBytes, 0);
  }
  FabricNode& node_;
  std::vector<std::byte> segment_;
  statistics::Random random_{1};
};

twin::FabricSpec two_cx3() {
  twin::FabricSpec spec;
  spec.host.rnic = "cx3";
  return spec;
}

double shared_gbps(std::uint32_t count, std::uint16_t lanes) {
  auto fabric = std::move(*twin::Fabric::create(two_cx3()));
  FabricNodeOptions options;
  options.core.backlog = count;
  options.core.latency_lanes = options.core.bulk_lanes = lanes;
  auto a = std::move(*FabricNode::create(*fabric, 0, options));
  auto b = std::move(*FabricNode::create(*fabric, 1, options));
  if (!FabricNode::meet(*a, *b)) return 0;
  Reader server(*b), client(*a);
  b->act([&](Core& core) { (void)core.listen(server.app, 7); });
  fabric->run_until(1e5);
  a->act([&](Core& core) {
    VirtualQpn number = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      (void)core.connect(client.app, 1, 7, client.rings(), number);
    }
  });
  fabric->run_until(kWarmUp);
  const std::uint64_t before = client.done;
  fabric->run_until(kUntil);
  return static_cast<double>((client.done - before) * kBytes * 8) / (kUntil - kWarmUp);
}

double naive_gbps(std::uint32_t count) {
  twin::FabricSpec spec = two_cx3();
  spec.bytes = twin::FabricSpec::Bytes::kCounted;
  twin::PerftestLoad load;
  load.operation = Operation::kRead;
  load.qp_count = count;
  load.send_depth = 1;
  load.message_bytes = kBytes;
  return twin::run_perftest(spec, load, kWarmUp, kUntil).messages_per_second * kBytes * 8e-9;
}

}  // namespace
}  // namespace greynic::broker

int main(int argc, char** argv) {
  constexpr std::uint32_t kMostQps = 1000;
  std::vector<std::uint32_t> counts = {1, 10, 100, 200, 400, 600, 1000, 4000, 10000};
  if (argc > 1) counts.clear();
  for (int i = 1; i < argc; ++i) counts.push_back(static_cast<std::uint32_t>(std::atoi(argv[i])));
  fmt::print("connections  a QP each, Gbit/s  two shared  six shared\n");
  for (const std::uint32_t count : counts) {
    const std::string own =
        count > kMostQps ? "-" : fmt::format("{:.2f}", greynic::broker::naive_gbps(count));
    fmt::print("{:11}  {:>17}  {:10.2f}  {:10.2f}\n", count, own,
               greynic::broker::shared_gbps(count, 1), greynic::broker::shared_gbps(count, 3));
    std::fflush(stdout);
  }
}
