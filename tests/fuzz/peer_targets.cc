/// What one broker says to another, in band and out of band.

#include <cstring>

#include "../broker/talkers.h"
#include "core/wire.h"
#include "fuzz.h"

namespace greynic::fuzz {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string lane_call(broker::LaneCall::Kind kind) {
  broker::LaneCall call;
  call.kind = kind;
  call.lane_count = 2;
  call.credits = 32;
  return text_of(broker::encode(call));
}

Target broker_records() {
  broker::Control control;
  control.kind = broker::Control::Kind::kOpen;
  control.ring = {4096, 4096, 7};
  std::array<std::byte, broker::kControlBytes> record{};
  broker::encode(control, record);
  return {"broker_records",
          {text_of(record), lane_call(broker::LaneCall::Kind::kDown)},
          [](std::string_view text) {
            if (const auto read = broker::decode(bytes_of(text))) {
              std::array<std::byte, broker::kControlBytes> again{};
              broker::encode(*read, again);
              claim(text_of(again) == text, "a record is written as it was read");
            }
            if (const auto read = broker::decode_lane_call(bytes_of(text))) {
              claim(read->lane < read->lane_count, "a lane is one of its lanes");
              (void)broker::encode(*read);
            }
          }};
}

/// Calls of a peer, at any moment of a transfer; 56 bytes each. They end that peer alone.
Target broker_calls() {
  using Kind = broker::LaneCall::Kind;
  return {
      "broker_calls",
      {lane_call(Kind::kDown), lane_call(Kind::kReady),
       lane_call(Kind::kDown) + lane_call(Kind::kReady) + "x"},
      [](std::string_view text) {
        twin::FabricSpec spec;
        spec.host_count = 3;
        auto fabric = std::move(*twin::Fabric::create(spec));
        broker::FabricNodeOptions options;
        options.core.latency_lanes = options.core.bulk_lanes = 1;
        options.core.receive_credits = 32;
        options.core.receive_bytes = 1024;
        options.core.segment_bytes = 4096;
        options.core.send_depth = 16;
        std::array<std::unique_ptr<broker::FabricNode>, 3> nodes;
        for (twin::HostId host = 0; host < nodes.size(); ++host) {
          nodes[host] = std::move(*broker::FabricNode::create(*fabric, host, options));
        }
        for (const std::size_t other : {1U, 2U}) {
          claim(broker::FabricNode::meet(*nodes[0], *nodes[other]).has_value(), "they meet");
        }
        broker::Talker opener(*nodes[0], 2, 1024, 5000, 1), bad(*nodes[1], 1, 1024, 5000, 2),
            good(*nodes[2], 1, 1024, 5000, 3);
        bad.listen(7);
        good.listen(7);
        opener.open(1, 7, 5);
        double now = 0;
        for (std::size_t at = 0; at < text.size() && at < 8 * broker::kLaneCallBytes;
             at += broker::kLaneCallBytes) {
          fabric->run_until(now += 3000);
          const auto call = bytes_of(text.substr(at, broker::kLaneCallBytes));
          nodes[0]->act([call](broker::Core& core) { core.on_peer_call(1, call); });
        }
        opener.open(2, 7, 99);
        for (double until = now; until < 1e8 && (good.outcomes.empty() || !good.all_closed());) {
          fabric->run_until(until += 20000);
        }
        claim(good.outcomes.size() == 1 && good.all_closed(), "the good peer is served");
        claim(good.outcomes[0].received == good.outcomes[0].wanted && good.outcomes[0].wrong == 0,
              "and gets every byte");
      }};
}

}  // namespace

std::vector<Target> peer_targets() { return {broker_records(), broker_calls()}; }

}  // namespace greynic::fuzz
