/// Ports in a code, of which prefixes are ranges.

#include "src/ranged/port_code.h"

#include <gtest/gtest.h>

#include <random>

#include "sized.h"

namespace greynic::optimizer::ranged {
namespace {

// Claim:  the prefixes of a range have the codes of its ports and no others, and each says which ports it has.
// Oracle: every port there is, of up to 8 bits.
TEST(PortCode, HasPrefixesForTheRangesThatAreAskedFor) {
  std::mt19937_64 random(5);
  for (std::size_t round = 0; round < sized(2'000, 300); ++round) {
    const std::size_t bits = 1 + random() % 8;
    const std::uint32_t ports = 1U << bits;
    PortCode code;
    std::vector<Span> asked = {{0, ports - 1}};
    for (std::size_t i = random() % (round % 10 == 0 ? 300 : 8); i > 0; --i) {
      const auto low = static_cast<std::uint32_t>(random() % ports);
      const auto width =
          static_cast<std::uint32_t>(random() % (random() % 2 == 0 ? 1 : ports - low));
      asked.push_back({low, low + width});
    }
    for (const Span& span : asked) code.ask(span);
    code.close(bits);
    for (const Span& span : asked) {
      const std::vector<Prefix> prefixes = code.prefixes_of(span);
      for (std::uint32_t port = 0; port < ports; ++port) {
        std::size_t having = 0;
        for (const Prefix& prefix : prefixes) {
          const bool has = ((code.code_of(port) ^ prefix.value) & prefix.mask) == 0;
          const Span said = code.span_of(prefix);
          ASSERT_EQ(has, said.low <= port && port <= said.high) << round << ", port " << port;
          having += has ? 1 : 0;
        }
        ASSERT_EQ(having, span.low <= port && port <= span.high ? 1U : 0U)
            << round << ", port " << port;
      }
    }
  }
}

// Claim:  what most units ask for is asked first, so 1024:65535 is one prefix of one bit.
// Oracle: by hand; of 100 single ports none takes that range apart but those above 1023.
TEST(PortCode, AsksForWhatTakesFewRangesApartFirst) {
  PortCode code;
  code.ask({1024, 65535}, 50);
  code.ask({0, 1023}, 20);
  for (std::uint32_t port = 5; port < 10'000; port += 100) code.ask({port, port});
  code.close(16);
  const std::vector<Prefix> prefixes = code.prefixes_of({1024, 65535});
  ASSERT_EQ(prefixes.size(), 1U);
  EXPECT_EQ(prefixes.front(), (Prefix{0x8000, 0x8000}));
  EXPECT_EQ(code.prefixes_of({5, 5}).front().mask, 0xffffU);
}

}  // namespace
}  // namespace greynic::optimizer::ranged
