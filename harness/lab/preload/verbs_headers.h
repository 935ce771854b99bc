#pragma once

/// Declarations of libibverbs and librdmacm, visible to the programs that we are loaded into. All else is hidden.

#pragma GCC visibility push(default)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include <infiniband/verbs.h>
#include <rdma/rdma_verbs.h>
#pragma GCC diagnostic pop
#pragma GCC visibility pop

// Wrappers for callers; we define what is behind them.
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova
