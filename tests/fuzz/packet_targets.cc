/// Readers of captures and packets.

#include <unistd.h>

#include <cstdio>

#include "../burst/packets.h"
#include "fuzz.h"
#include "greynic/capture/capture.h"
#include "greynic/core/text.h"

namespace greynic::fuzz {
namespace {

void claim_sound(const burst::Findings& findings) {
  std::uint64_t packets = 0;
  for (const burst::Burst& one : findings.bursts) {
    std::uint64_t bytes = 0;
    for (const burst::FlowShare& flow : one.flows) {
      bytes += flow.bytes;
      claim(!to_string(flow.flow).empty(), "a flow has a name");
    }
    claim(bytes == one.bytes, "flows make up a burst");
    claim(one.start_ns <= one.end_ns, "a burst ends after it begins");
    claim(one.incast_degree >= 1 && one.incast_degree <= one.flows.size(), "senders have flows");
    claim(one.victims < one.flows.size(), "a burst has a culprit");
    packets += one.packets;
  }
  claim(packets + findings.records_lost == findings.packets_marked, "bursts hold what is marked");
  claim(findings.packets_marked <= findings.packets_seen, "marked packets were seen");
  claim(!bad_utf8(findings.incomplete), "a reason can be printed");
}

Target capture_file() {
  statistics::Random random(1);
  const auto arrivals = burst::random_arrivals(60, 10'000'000'000, random);
  return {"capture",
          {burst::pcap_file(arrivals, true), burst::pcap_file(arrivals, false, 40),
           burst::pcapng_file(arrivals, 1'700'000'000'000'000'000)},
          [](std::string_view text) {
            const std::string path = "/dev/shm/greynic_fuzz_capture_" + std::to_string(::getpid());
            std::ofstream(path, std::ios::binary) << text;
            burst::ReplayOptions options;
            options.allowance.share_e8 = 3'000'000;
            options.most_queued = 1 << 16;
            std::uint64_t next = 0;
            const auto findings =
                capture::replay_capture(path, options, [&next](std::uint64_t number) {
                  claim(number >= next, "marks rise");
                  next = number + 1;
                });
            std::remove(path.c_str());
            if (!findings) return fuzz::claim_sound(findings.error());
            claim_sound(*findings);
          }};
}

Target frame() {
  std::vector<std::string> seeds;
  for (const char link : {'\x01', '\x65', '\x71', '\x00'}) {
    for (const std::size_t tags : {0U, 2U}) seeds.push_back(link + burst::udp_frame(3, tags));
  }
  return {"frame", seeds, [](std::string_view text) {
            if (text.empty()) return;
            const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
            for (const int link : {static_cast<int>(bytes[0]), 1, 276}) {
              // A copy as long as the frame: a sanitizer sees whoever reads beyond.
              const std::vector<std::uint8_t> exact(bytes + 1, bytes + text.size());
              claim(!to_string(burst::parse_frame(link, exact)).empty(), "a flow has a name");
            }
          }};
}

}  // namespace

std::vector<Target> packet_targets() { return {capture_file(), frame()}; }

}  // namespace greynic::fuzz
