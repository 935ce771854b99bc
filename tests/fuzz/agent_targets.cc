/// What the two ends of a run on different hosts say to each other.

#include "fuzz.h"
#include "wire_messages.h"

namespace greynic::fuzz {
namespace {

namespace wire = agent::wire;

template <typename Message>
Target message(const char* name, const Message& seed) {
  return {name, {seed.SerializeAsString()}, [](std::string_view bytes) {
            Message read;
            if (!read.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
            (void)agent::read(read);
          }};
}

wire::Endpoint endpoint() {
  wire::Endpoint endpoint;
  endpoint.set_gid(std::string(16, '\1'));
  endpoint.set_psn(7);
  for (std::uint32_t i = 0; i < 3; ++i) {
    endpoint.add_qp_numbers(i);
    endpoint.add_target_addresses(i);
    endpoint.add_target_keys(i);
  }
  return endpoint;
}

wire::Plan plan() {
  wire::Plan plan;
  plan.set_qp_count(4);
  plan.set_send_depth(128);
  plan.add_sizes(65536);
  plan.set_seed(1);
  return plan;
}

wire::FinishReply reply() {
  wire::FinishReply reply;
  reply.set_received(5);
  reply.mutable_requests()->add_completed_by_lane(3);
  (*reply.mutable_counters_after())["rx"] = 1e9;
  return reply;
}

}  // namespace

std::vector<Target> agent_targets() {
  return {message("agent_plan", plan()), message("agent_endpoint", endpoint()),
          message("agent_reply", reply())};
}

}  // namespace greynic::fuzz
