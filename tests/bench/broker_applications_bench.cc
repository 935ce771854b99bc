// Memory and processors against the number of applications, each with ten connections to one other
// host: with QPs of their own, and over a broker. What the broker holds is asked of its core on the
// twin's fabric; what own QPs need is counted from the same provisions: as many receives for each
// connection as a broker keeps for each peer. Nothing is asserted.
//
// Left out on both sides: the buffers that an application sends from and reads out of.

#include <fmt/core.h>

#include <memory>
#include <vector>

#include "greynic/broker/fabric_node.h"
#include "greynic/broker/local.h"

namespace greynic::broker {
namespace {

constexpr std::uint32_t kConnections = 10;
constexpr std::uint64_t kRing = 4096;
/// Of mlx5: a send request, a receive with one element, a completion.
constexpr std::uint64_t kSendWqe = 64, kReceiveWqe = 16, kCqe = 64;

class Application : public FabricClient {
 public:
  explicit Application(FabricNode& node) : node_(node), segment_(2 * kRing) {
    app = *node.attach(*this, segment_);
  }
  [[nodiscard]] static Rings rings() { return {.send = {0, kRing}, .receive = {kRing, kRing}}; }
  void on_incoming(std::uint16_t, VirtualQpn number) override {
    (void)node_.core().accept(app, number, rings());
  }
  AppId app = 0;

 private:
  FabricNode& node_;
  std::vector<std::byte> segment_;
};

std::uint64_t queue_bytes(const CoreOptions& options) {
  return options.send_depth * (kSendWqe + kCqe) + options.receive_credits * (kReceiveWqe + kCqe);
}

void print_row(std::uint32_t applications) {
  auto fabric = std::move(*twin::Fabric::create({}));
  auto a = std::move(*FabricNode::create(*fabric, 0, {}));
  auto b = std::move(*FabricNode::create(*fabric, 1, {}));
  if (!FabricNode::meet(*a, *b)) return;
  Application server(*b);
  b->act([&](Core& core) { (void)core.listen(server.app, 7); });
  fabric->run_until(1e5);
  std::vector<std::unique_ptr<Application>> programs;
  for (std::uint32_t i = 0; i < applications; ++i) {
    programs.push_back(std::make_unique<Application>(*a));
    a->act([&, app = programs.back()->app](Core& core) {
      VirtualQpn number = 0;
      for (std::uint32_t c = 0; c < kConnections; ++c) {
        (void)core.connect(app, 1, 7, Application::rings(), number);
      }
    });
  }
  fabric->run_until(1e7);
  const CoreOptions options;
  const std::uint64_t own_qps = std::uint64_t{applications} * kConnections;
  const std::uint64_t own =
      own_qps *
      (queue_bytes(options) + std::uint64_t{options.receive_credits} * options.receive_bytes);
  const std::uint64_t shared = a->core().own_bytes() + a->core().qp_count() * queue_bytes(options) +
                               applications * local::kDataAt;
  fmt::print("{:12}  {:11}  {:8}  {:8.2f}  {:11}  {:10.2f}  {:11}  {:14}\n", applications,
             a->core().connection_count(), own_qps, static_cast<double>(own) / (1 << 20),
             a->core().qp_count(), static_cast<double>(shared) / (1 << 20), applications, 1);
}

}  // namespace
}  // namespace greynic::broker

int main() {
  fmt::print(
      "applications  connections  own QPs   own MiB   shared QPs  shared MiB  "
      "own pollers  shared pollers\n");
  for (const std::uint32_t count : {1U, 2U, 4U, 8U, 16U, 32U, 64U}) {
    greynic::broker::print_row(count);
  }
}
