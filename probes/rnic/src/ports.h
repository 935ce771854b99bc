#pragma once

/// The counters of one folder of sysfs, or of one network interface: read together, published
/// together.

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "greynic/os/ethtool.h"
#include "greynic/rnic/selection.h"
#include "row.h"

namespace greynic::rnic {

/// What a folder holds, by name; nothing when it is not there.
[[nodiscard]] std::vector<std::string> sorted_names(const std::filesystem::path& folder);

/// Files of numbers that stay open.
class NumberFiles {
 public:
  NumberFiles() = default;
  NumberFiles(NumberFiles&& other) noexcept : files_(std::exchange(other.files_, {})) {}
  NumberFiles& operator=(NumberFiles&& other) noexcept {
    std::swap(files_, other.files_);
    return *this;
  }
  ~NumberFiles();
  /// False when it cannot be opened, or holds no number.
  bool add(const std::filesystem::path& path, std::uint64_t times);
  void read(std::vector<std::uint64_t>& into) const;

 private:
  struct File {
    int file;
    std::uint64_t times;
  };
  std::vector<File> files_;
};

/// Counters of one place under one label set.
class CounterGroup {
 public:
  /// A folder of sysfs: prefix "port" or "hw". Nothing when none of its files is selected.
  [[nodiscard]] static std::optional<CounterGroup> of_folder(const std::filesystem::path& folder,
                                                             const std::string& prefix,
                                                             const std::string& labels,
                                                             const Selection& selection);
  /// An interface: its statistics in sysfs, and what its driver says.
  [[nodiscard]] static std::optional<CounterGroup> of_interface(const std::filesystem::path& sysfs,
                                                                const std::string& interface,
                                                                const std::string& labels,
                                                                const Selection& selection,
                                                                bool ask_driver);

  void sample();
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

 private:
  void publish(const std::string& name, const std::string& help, const std::string& labels);

  NumberFiles files_;
  std::optional<os::EthtoolStats> driver_;
  std::vector<std::size_t> of_driver_;  ///< indices of what was selected
  std::vector<std::string> names_;      ///< "hw.out_of_sequence"
  std::vector<Counter> counters_;
  std::unique_ptr<RowSchema> schema_;
  std::optional<PublishedRow> row_;
  std::vector<std::uint64_t> values_;
};

}  // namespace greynic::rnic
