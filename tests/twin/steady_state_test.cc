#include <gtest/gtest.h>

#include "greynic/twin/twin.h"

namespace greynic::twin {
namespace {

// Claim:  closed loops settle, whatever the length of the messages and the number of QPs: QPs that
//         began together complete together, and that is no warm-up.
// Oracle: a closed loop without losses or defects has a steady state.
TEST(TwinSteadyState, IsReachedOverAGridOfSizesAndQps) {
  const auto twin = create("twin:cx6?threads=1").value();
  for (const char* operation : {"SEND", "WRITE", "READ"}) {
    for (const double bytes : {4096.0, 65536.0, 1048576.0, 8388608.0}) {
      for (const double qps : {1.0, 4.0, 16.0, 64.0, 256.0}) {
        target::MeasureRequest request;
        request.seed = 11;
        request.configuration.set("operation", std::string(operation));
        request.configuration.set("message_bytes", bytes);
        request.configuration.set("qp_count", qps);
        const Observation seen = target::measure_one(*twin, request).value();
        ASSERT_TRUE(seen.steady.has_value());
        EXPECT_TRUE(seen.steady->settled)
            << operation << " of " << bytes << " bytes over " << qps << " QPs";
      }
    }
  }
}

}  // namespace
}  // namespace greynic::twin
