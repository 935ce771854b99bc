#include "dpdk/rte_calls.h"

#include <rte_errno.h>

namespace greynic::flows {

const RteCalls& dpdk_calls() {
  static constexpr RteCalls calls = {
      .validate = rte_flow_validate,
      .create = rte_flow_create,
      .destroy = rte_flow_destroy,
      .flush = rte_flow_flush,
      .query = rte_flow_query,
      .info_get = rte_flow_info_get,
      .configure = rte_flow_configure,
      .pattern_template_create = rte_flow_pattern_template_create,
      .pattern_template_destroy = rte_flow_pattern_template_destroy,
      .actions_template_create = rte_flow_actions_template_create,
      .actions_template_destroy = rte_flow_actions_template_destroy,
      .template_table_create = rte_flow_template_table_create,
      .template_table_destroy = rte_flow_template_table_destroy,
      .async_create = rte_flow_async_create,
      .async_destroy = rte_flow_async_destroy,
      .push = rte_flow_push,
      .pull = rte_flow_pull,
  };
  return calls;
}

std::string words_of(const rte_flow_error& error) {
  return error.message != nullptr ? error.message : rte_strerror(rte_errno);
}

}  // namespace greynic::flows
