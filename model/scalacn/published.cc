#include "greynic/model/published.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "greynic/core/check.h"
#include "greynic/core/embedded.h"
#include "greynic/core/units.h"

namespace greynic::model {

std::span<const EmbeddedFile> embedded_reference();

double ScalacnCoefficients::bandwidth_gbps(double local_masks, double remote_masks) const {
  const double l = local_masks - m;
  const double r = remote_masks - n;
  return BitRate::from_scalacn(u * std::exp(-(l * l + r * r) / (2.0 * v * v)) + w).gbps();
}

double ScalacnCoefficients::latency_us(double local_masks, double remote_masks) const {
  return a * local_masks + b * remote_masks + c;
}

std::span<const PublishedRow> published_rows() {
  static const std::vector<PublishedRow> rows = [] {
    GREYNIC_CHECK(!embedded_reference().empty());
    const auto document = nlohmann::json::parse(embedded_reference().front().text);
    std::vector<PublishedRow> all;
    for (const char* key : {"cx4", "cx5", "cx6", "cx7", "bf3", "e810"}) {
      const auto& row = document.at("rows").at(key);
      const auto number = [&](const char* field) { return row.at(field).get<double>(); };
      all.push_back({.key = key,
                     .name = row.at("name").get<std::string>(),
                     .coefficients = {.u = number("u"),
                                      .v = number("v"),
                                      .m = number("m"),
                                      .n = number("n"),
                                      .w = number("w"),
                                      .a = number("a"),
                                      .b = number("b"),
                                      .c = number("c")},
                     .goodness = number("goodness"),
                     .line_rate_gbps = number("line_rate_gbps")});
    }
    return all;
  }();
  return rows;
}

const PublishedRow* find_published(std::string_view key) {
  for (const PublishedRow& row : published_rows()) {
    if (row.key == key) return &row;
  }
  return nullptr;
}

}  // namespace greynic::model
