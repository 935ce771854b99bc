// Runs where the kernel has an RDMA device, such as Soft-RoCE in the small machine.

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>

#include "greynic/rnic/sampler.h"
#include "greynic/verbs/device.h"
#include "greynic/zero/reader.h"
#include "rdma.h"

namespace greynic::rnic {
namespace {

/// Labels of all queue pairs that this process publishes.
std::set<std::string> published_qps() {
  std::set<std::string> labels;
  const auto arenas = zero::find_arenas(getpid());
  for (const zero::FoundArena& arena : *arenas) {
    auto reader = zero::ArenaReader::open(zero::process_source(getpid(), arena));
    if (!reader) continue;
    const auto readings = reader->look();
    if (!readings) continue;
    for (const zero::Reading& reading : *readings) {
      if (!reading.row->ended && reading.row->schema->name == "rdma_qp") {
        labels.insert(reading.row->labels);
      }
    }
  }
  return labels;
}

// Claim:  a queue pair is a row with its number, its process and its program for as long as it lives,
//         beside the counters of its port.
// Oracle: the queue pairs that the test makes and destroys.
TEST(CountersOfTheKernel, NameEachQueuePairWithItsProcess) {
  const auto names = verbs::device_names();
  if (names.empty()) GTEST_SKIP() << "no RDMA device; run in tests/vm/run --setup soft-roce";
  SamplerOptions options;
  options.device = names.front();
  auto sampler = Sampler::open(options);
  if (!sampler) GTEST_SKIP() << "the kernel knows no such device: " << sampler.error().message;
  sampler->sample_ports();
  sampler->sample_qps();
  const auto before = published_qps();
  const auto device = remote::shared_device(names.front());
  ASSERT_TRUE(device) << device.error().message;
  {
    auto one = remote::RdmaQueue::create(**device, 4);
    auto two = remote::RdmaQueue::create(**device, 4);
    ASSERT_TRUE(one && two);
    sampler->sample_qps();
    std::set<std::string> added;
    for (const std::string& labels : published_qps()) {
      if (!before.contains(labels)) added.insert(labels);
    }
    ASSERT_EQ(added.size(), 2U);
    for (const std::uint32_t number : {one->end().at.qp_number, two->end().at.qp_number}) {
      const auto named = std::count_if(added.begin(), added.end(), [&](const std::string& labels) {
        return labels.find(fmt::format("qp=\"{}\",type=\"RC\"", number)) != std::string::npos &&
               labels.find(fmt::format("pid=\"{}\"", getpid())) != std::string::npos &&
               labels.find("program=\"zero_rdma_tests\"") != std::string::npos;
      });
      EXPECT_EQ(named, 1) << number << ": " << *added.begin();
    }
  }
  sampler->sample_qps();
  EXPECT_EQ(published_qps(), before);
}

}  // namespace
}  // namespace greynic::rnic
