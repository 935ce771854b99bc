#pragma once

/// The functions of rte_flow that greynic calls, as a table: production fills it with DPDK's own, a
/// test with a port that is strict about their contract. DPDK has no port in software that offers
/// templates and asynchronous queues, and Debian's package no header to write one as a driver.

#include <rte_flow.h>

#include <string>

namespace greynic::flows {

/// Each member is the function of DPDK 22.11 whose name it has, behind "rte_flow_".
struct RteCalls {
  decltype(&rte_flow_validate) validate;
  decltype(&rte_flow_create) create;
  decltype(&rte_flow_destroy) destroy;
  decltype(&rte_flow_flush) flush;
  decltype(&rte_flow_query) query;

  decltype(&rte_flow_info_get) info_get;
  decltype(&rte_flow_configure) configure;
  decltype(&rte_flow_pattern_template_create) pattern_template_create;
  decltype(&rte_flow_pattern_template_destroy) pattern_template_destroy;
  decltype(&rte_flow_actions_template_create) actions_template_create;
  decltype(&rte_flow_actions_template_destroy) actions_template_destroy;
  decltype(&rte_flow_template_table_create) template_table_create;
  decltype(&rte_flow_template_table_destroy) template_table_destroy;
  decltype(&rte_flow_async_create) async_create;
  decltype(&rte_flow_async_destroy) async_destroy;
  decltype(&rte_flow_push) push;
  decltype(&rte_flow_pull) pull;
};

[[nodiscard]] const RteCalls& dpdk_calls();

/// The port's own words, else those of rte_errno.
[[nodiscard]] std::string words_of(const rte_flow_error& error);

}  // namespace greynic::flows
