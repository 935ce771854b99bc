#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <ostream>
#include <set>

#include "greynic/files/json_file.h"
#include "greynic/twin/validation.h"

namespace greynic::twin {
namespace {

using nlohmann::json;

/// A model that is wrong on purpose: parameters by name, and what they are set to.
using Change = std::map<std::string, double>;

/// In the model and in each profile that sets the parameter itself.
void set(json& model, const std::string& name, double value) {
  const auto put = [&](json& fact) {
    fact["value"] = value;
    fact.erase("by_operation");
  };
  put(model["parameters"][name]);
  for (auto& [profile, own] : model["profiles"].items()) {
    json& facts = own.contains("parameters") ? own["parameters"] : own;
    if (facts.contains(name)) put(facts[name]);
  }
}

ValidationReport report_of(const std::string& id, const Change& change) {
  std::ifstream in(std::string(GREYNIC_SOURCE_DIR) + "/configs/rnics/" + id + ".json");
  json model = json::parse(in);
  for (const auto& [name, value] : change) set(model, name, value);
  std::string folder = (std::filesystem::temp_directory_path() / "perturbed-XXXXXX").string();
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/" + id + ".json";
  std::ofstream(path) << model.dump();
  auto report = validate(path, /*seed=*/20260102);
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(report) << report.error().message;
  return report ? *report : ValidationReport{};
}

struct Subject {
  std::string id;
  bool by_day = false;
  std::vector<Change> changes;
};

/// Its name among the tests' is the same in each run.
void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.id; }

class Perturbed : public testing::TestWithParam<Subject> {};

// Claim:  no row of docs/twin/validation.md passes whatever the twin does.
// Oracle: the model itself, with parameters that the rows are about set to wrong values.
// Method: each row must fail under one of the changes at least. Models with many rows by night.
TEST_P(Perturbed, ModelsLoseEveryRow) {
  const auto& [id, by_day, changes] = GetParam();
  if (!by_day && std::getenv("GREYNIC_NIGHTLY") == nullptr) {
    GTEST_SKIP() << "by night: set GREYNIC_NIGHTLY";
  }
  std::set<std::string> kept;
  for (const CheckRow& row : report_of(id, {}).rows) {
    EXPECT_TRUE(row.passed()) << row.curve << ": " << row.twin;
    kept.insert(row.curve);
  }
  for (const Change& change : changes) {
    for (const CheckRow& row : report_of(id, change).rows) {
      if (!row.passed()) kept.erase(row.curve);
    }
  }
  for (const std::string& curve : kept) ADD_FAILURE() << "no change makes this row fail: " << curve;
}

/// Surfaces and the forms fitted to them; PCIe.
std::vector<Change> of_surfaces(std::vector<Change> more = {}) {
  std::vector<Change> all = {{{"pcie_max_payload_bytes", 128}},
                             {{"loop_window_packets", 8}},
                             {{"loop_window_packets", 0}, {"hops_per_group", 400}},
                             {{"encap_per_group_ns", 0}, {"decap_per_group_ns", 0}}};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

INSTANTIATE_TEST_SUITE_P(
    Models, Perturbed,
    testing::Values(
        Subject{"cx3",
                true,
                {{{"pcie_max_payload_bytes", 128}},
                 {{"context_entry_count", 12}},
                 {{"context_entry_count", 100}},
                 {{"context_entry_count", 2000}},
                 {{"link_rate_gbps", 4}},
                 // QPs that cannot fill the link, unless there are many.
                 {{"processing_unit_count", 64}, {"qp_packet_rate_cap_mpps", 0.2}},
                 {{"qp_lock_ns", 0}, {"qp_contention_ns", 0}, {"lock_transfer_ns", 0}}}},
        Subject{"cx4", false, of_surfaces()},
        Subject{"cx5", false,
                of_surfaces({{{"context_fetch_ns", 400}},
                             {{"base_hops_per_packet", 5}},
                             {{"chip_clock_mhz", 300}}})},
        Subject{"cx6", false,
                of_surfaces({{{"base_half_rtt_us", 5}},
                             {{"link_rate_gbps", 40}},
                             {{"peak_read_mops", 11}, {"peak_write_mops", 9}},
                             {{"atomic_rate_mops", 1}},
                             {{"qp_packet_rate_cap_mpps", 1}},
                             {{"doorbell_lock_ns", 4200}},
                             {{"doorbell_lock_ns", 0}, {"doorbell_contention_ns", 0}},
                             {{"qp_lock_ns", 0}, {"qp_contention_ns", 0}, {"lock_transfer_ns", 0}},
                             {{"context_entry_count", 100}},
                             {{"mtt_entry_count", 100}},
                             {{"wqe_cache_entry_count", 50}},
                             {{"wqe_cache_entry_count", 2000}},
                             {{"wqe_cache_entry_count", 100000}},
                             {{"base_hops_per_packet", 8}},
                             {{"chip_clock_mhz", 200}}})},
        Subject{"cx7", false, of_surfaces({{{"context_fetch_ns", 16000}}})},
        Subject{"bf3", false, of_surfaces()}, Subject{"e810", false, of_surfaces()}),
    [](const auto& test) { return test.param.id; });

}  // namespace
}  // namespace greynic::twin
