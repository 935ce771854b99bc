#pragma once

/// What `greynic explain` reads beside a run: a witness or a baseline, and the log of a campaign.

#include <string>
#include <vector>

#include "greynic/core/campaign.h"
#include "greynic/core/observation.h"
#include "greynic/core/result.h"

namespace greynic::loop {

/// The first thing in the file is a brace: a campaign, and no run.
[[nodiscard]] bool is_json(const std::string& path);

/// An object factor -> level. kBadInput with file and place: a factor that the campaign lacks, or a
/// level that the factor has not.
[[nodiscard]] Result<Configuration> read_levels(const Campaign& campaign, const std::string& path);

/// The observations of a run whose factors the campaign has. kBadInput names one that it lacks.
[[nodiscard]] Result<std::vector<Observation>> observations_of(const Campaign& campaign,
                                                               const std::string& run);

/// A folder under the system's temporary one, gone with this object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace greynic::loop
