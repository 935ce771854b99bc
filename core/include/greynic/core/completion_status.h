#pragma once

/// Names of work completion statuses. A run without libibverbs still reads them in perftest's logs.

#include <string>

namespace greynic {

/// "IBV_WC_RETRY_EXC_ERR" for 12, as in ibv_wc_status of rdma-core 44; a number that it does not
/// know stays a number: "ibv_wc_status 99".
[[nodiscard]] std::string completion_status_name(int status);

}  // namespace greynic
