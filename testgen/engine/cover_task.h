#pragma once

/// What every attempt at a space shares: values, which of them go together, what is to be covered.

#include <atomic>
#include <chrono>
#include <mutex>
#include <vector>

#include "engine/engine_bits.h"
#include "engine/engine_values.h"
#include "engine/local_search.h"
#include "engine/lower_bound.h"
#include "greynic/testgen/cover.h"

namespace greynic::testgen {

using ValueRow = std::vector<Value>;

struct CoverTask {
  const Space& space;
  const CoverOptions& options;
  ValueIndex index;
  double start;               ///< by now()
  Words compatible;           ///< see OpenTuples
  Words wanted;               ///< values that take part in tuples
  std::vector<Layer> layers;  ///< tuples to cover
  std::vector<ValueRow> already;
  std::vector<ValueRow> seeds;

  [[nodiscard]] static double now(const CoverOptions& options) {
    if (options.clock) return options.clock();
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  [[nodiscard]] double seconds() const { return now(options) - start; }
  [[nodiscard]] bool late() const {
    return options.deadline_seconds > 0 && seconds() > options.deadline_seconds;
  }
  /// Whether so many steps, which cannot be broken off, are worth beginning: they end well before
  /// the deadline, or in a few seconds when there is none.
  [[nodiscard]] bool affords(double steps) const {
    constexpr double kStepsPerSecond = 5e8;
    constexpr double kMostSeconds = 20.0;
    const double needed = steps / kStepsPerSecond;
    const double left = options.deadline_seconds - seconds();
    return needed < (options.deadline_seconds > 0 ? left / 2 : kMostSeconds);
  }
};

/// The smallest array that any thread has: with a deadline, threads take it over from each other.
class SharedBest {
 public:
  /// Offers rows; keeps them if there are fewer than so far.
  void offer(const std::vector<ValueRow>& rows) {
    const std::scoped_lock lock(mutex_);
    if (size_ == 0 || rows.size() < size_) {
      rows_ = rows;
      size_ = rows.size();
    }
  }
  [[nodiscard]] std::size_t size() const { return size_; }  ///< 0: none yet
  [[nodiscard]] std::vector<ValueRow> rows() const {
    const std::scoped_lock lock(mutex_);
    return rows_;
  }

 private:
  mutable std::mutex mutex_;
  std::atomic<std::size_t> size_ = 0;
  std::vector<ValueRow> rows_;
};

}  // namespace greynic::testgen
