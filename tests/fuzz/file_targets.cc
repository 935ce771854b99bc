/// Readers that take a file: each input is written to one in memory.

#include "fuzz.h"
#include "greynic/core/text.h"
#include "greynic/model/workload.h"
#include "greynic/results/export.h"
#include "greynic/results/store.h"
#include "greynic/sharing/sharing.h"
#include "greynic/testgen/plan.h"
#include "greynic/zero/reader.h"
#include "greynic/zero/region.h"

namespace greynic::fuzz {
namespace {

Target plan() {
  return {
      "plan",
      {R"({"version":1,"seed":1,"campaign":{"version":1,"name":"c","factors":{"qp_count":{"type":"numeric","levels":[1,4]}},"design":"full","wall":{"metric":"bandwidth_gbps","below_baseline_by":0.2}},"configurations":[{"qp_count":1},{"qp_count":4}]})"},
      [](std::string_view text) {
        const auto read = testgen::read_plan(file_of(text, "plan.json"));
        claim_sound(read);
        if (read) (void)testgen::plan_to_json_text(*read);
      }};
}

Target workload() {
  return {"workload", {tree_file("configs/examples/workload.json")}, [](std::string_view text) {
            claim_sound(model::read_workload(file_of(text, "workload.json")));
          }};
}

/// What `optimize --connections` reads, and what a broker reads of its answer.
Target sharing_files() {
  return {
      "sharing_files",
      {tree_file("configs/examples/connections.json"),
       R"({"version":1,"choice":"share","latency_qps":1,"bulk_qps":0,"bulk_bytes":8192,"in_flight_bytes":131072,"gain":{"value":2,"low":1.5,"high":2.5}})"},
      [](std::string_view text) {
        claim_sound(sharing::read_matrix(file_of(text, "connections.json")));
        claim_sound(sharing::read_advice(file_of(text, "advice.json")));
      }};
}

results::RunHeader header() {
  return {.campaign_text = tree_file("configs/campaigns/qp_wall.json"),
          .campaign_name = "qp_wall",
          .target = "twin:cx6",
          .settings = {{"measure.repeats", "2"}}};
}

std::string small_run() {
  auto store = results::RunStore::create_in_memory(header());
  claim(store.has_value(), "a run can be made");
  for (int i = 0; i < 4; ++i) {
    Observation observation;
    observation.asked = {{"qp_count", static_cast<double>(i)}, {"transport", std::string("RC")}};
    observation.outcome = i == 3 ? Outcome::kRefused : Outcome::kMeasured;
    observation.reason = i == 3 ? "no" : "";
    observation.measures["bandwidth_gbps"] = {91.0 - i, 0.5};
    observation.counters_after["rx"] = 1e9;
    observation.latency.record(3100, 7);
    observation.environment["host"] = "h";
    claim(store->append(observation).has_value(), "an observation is stored");
  }
  claim(store->keep("model", "{}").has_value(), "a document is kept");
  const std::string path = folder() + "/seed.db";
  claim(store->save_as(path).has_value(), "a run is saved");
  return contents_of(path);
}

Target run_file() {
  // All that can be done with a file takes a millisecond: each gets some of it.
  std::minstd_rand random(1);
  return {"run_file", {small_run()}, [random](std::string_view bytes) mutable {
            const std::string path = file_of(bytes, "run.db");
            {
              const auto store = results::RunStore::open_to_read(path);
              claim_sound(store);
              if (store) {
                const auto observations = store->observations();
                claim_sound(observations);
                claim_sound(store->keys());
                claim_sound(store->documents());
                claim_sound(store->campaign());
                if (observations) {
                  for (const Observation& observation : *observations) claim_sound(observation);
                  static constexpr const char* kFormats[] = {"jsonl", "csv", "markdown",
                                                             "openmetrics", "influx"};
                  const char* format = kFormats[random() % std::size(kFormats)];
                  (void)results::export_text(store->header(), *observations,
                                             *results::export_format_named(format));
                }
              }
            }
            if (random() % 4 != 0) return;
            auto again = results::RunStore::open_to_append(path, header());
            claim_sound(again);
            Observation next;
            next.asked = {{"qp_count", 77.0}};
            next.outcome = Outcome::kMeasured;
            next.measures["bandwidth_gbps"] = {1.0, 0.1};
            if (again) claim_sound(again->append(next));
          }};
}

Target region() {
  const std::string path = folder() + "/seed.region";
  {
    auto writer = zero::RegionWriter::create(
        path, {{"link", {{"rx_bytes", "B"}}}, {"counters", {{"a", "1/s"}, {"b", ""}, {"c", ""}}}});
    claim(writer.has_value(), "a region can be made");
    const double values[] = {1.0, 2.0, 3.0};
    writer->publish(1, 5, values);
  }
  return {"region", {contents_of(path)}, [](std::string_view bytes) {
            auto source = zero::map_region(file_of(bytes, "region"));
            claim_sound(source);
            if (!source) return;
            auto reader = zero::ArenaReader::open(std::move(*source));
            claim_sound(reader);
            if (!reader) return;
            for (int i = 0; i < 2; ++i) claim_sound(reader->look());
          }};
}

}  // namespace

std::vector<Target> file_targets() {
  return {plan(), workload(), sharing_files(), run_file(), region()};
}

}  // namespace greynic::fuzz
