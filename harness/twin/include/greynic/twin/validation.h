#pragma once

/// Holds a twin against the curves that were published for its RNIC: runs the experiment behind
/// each and compares. `greynic validate twin:cx6` prints it; tests/twin asks for the same; the
/// curves, what was accepted and why stand in docs/twin/validation.md.

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "greynic/core/result.h"

namespace greynic::twin {

/// One comparison. Where a curve has many points, one row judges a figure of merit of all of them.
struct CheckRow {
  int item = 0;       ///< number of the curve in docs/twin/validation.md
  std::string curve;  ///< "8 MiB SEND, masks 0/0/0/20"
  std::string unit;
  double published = 0;  ///< what the literature has, or the middle of the accepted range
  double twin = 0;
  double low = 0, high = 0;  ///< accepted
  [[nodiscard]] double error() const { return published != 0 ? twin / published - 1 : twin; }
  [[nodiscard]] bool passed() const { return twin >= low && twin <= high; }
};

/// One line of a picture, published or simulated.
struct Series {
  std::string name;
  bool published = false;
  std::vector<std::pair<double, double>> points;
};
struct Picture {
  std::string file;  ///< without folder and ending: "item08_read"
  std::string title;
  std::string x_label, y_label;
  bool log_x = false, log_y = false;
  std::vector<Series> series;
  [[nodiscard]] std::string to_svg() const;
};

struct ValidationReport {
  std::string id;     ///< "cx6"
  std::string model;  ///< "ConnectX-6"
  std::vector<CheckRow> rows;
  std::vector<Picture> pictures;
  std::vector<std::string> notes;         ///< what the model lacks, where it clamps
  std::size_t free_parameter_count = 0;   ///< fitted to published curves of this RNIC
  std::size_t published_point_count = 0;  ///< points that they explain
  [[nodiscard]] bool passed() const;
  /// A section of docs/twin/validation.md; pictures are looked for as pictures/ID_FILE.svg.
  [[nodiscard]] std::string to_markdown() const;
};

/// Runs every experiment that was published for a built-in model ("cx6") or a model file.
/// `progress` is told the share done, 0..1. kBadInput as create().
[[nodiscard]] Result<ValidationReport> validate(const std::string& model, std::uint64_t seed = 1,
                                                const std::function<void(double)>& progress = {});

}  // namespace greynic::twin
