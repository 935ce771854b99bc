#pragma once

/// A run: one SQLite file that holds the campaign as it was, the settings as used, and one row for
/// each observation. Rows are written in transactions and keyed by (configuration, repeat), so a
/// killed run resumes where it stopped and nothing is stored twice. Readable with the sqlite3 shell
/// through the views of docs/formats/run.md.
///
/// One process appends to a run at a time (a second is told so); any number read it meanwhile.
/// After a kill at any moment every observation whose append had returned is there, and no other.
/// Each has a checksum: a run that was damaged is neither read nor gone on with, and the message
/// says which observations are lost.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "greynic/core/campaign.h"
#include "greynic/core/observation.h"
#include "greynic/core/result.h"

namespace greynic::results {

/// In a run's environment: the topology that its campaign named, as found when it was run.
inline constexpr const char* kTopologyFile = "topology_file";

/// What is kept with a run beside its observations. `settings` are name/value pairs as used.
/// `command`, `version` and `made` tell people where a run came from; they are empty in runs that
/// were made before they were kept, and a run goes on whatever they say.
struct RunHeader {
  std::string campaign_text;  ///< the campaign file, word for word; empty for imports
  std::string campaign_name;
  std::string target;
  std::uint64_t seed = 0;
  std::map<std::string, std::string> settings;
  std::map<std::string, std::string> environment;
  std::string command;  ///< as typed, quoted for a shell: "greynic run qp_wall.json ..."
  std::string version;  ///< of the greynic that began the run; filled in by the store
  std::string made;     ///< UTC, "2026-03-14 15:09:26"; filled in by the store
};

/// Kinds of kept documents. An explanation's causes were tested on a device; hypotheses come from
/// stored observations alone.
inline constexpr const char* kExplanation = "explanation";
inline constexpr const char* kHypotheses = "hypotheses";

/// (canonical configuration name, repeat)
using ObservationKey = std::pair<std::string, int>;

class RunStore {
 public:
  /// Creates the file, or opens it to go on when its header is the same (the environment may
  /// differ: every observation carries its own). kBadInput when the file is another run's (says
  /// what differs and what to do), no run at all, or being written by another process.
  [[nodiscard]] static Result<RunStore> open_to_append(const std::string& path,
                                                       const RunHeader& header);
  /// A run that is made in one piece: in memory until save_as() writes it as a file, or as what
  /// files::OutputFile makes of `path`.
  [[nodiscard]] static Result<RunStore> create_in_memory(const RunHeader& header);
  [[nodiscard]] Result<void> save_as(const std::string& path) const;
  /// Whether it is there, and no run was ever written to it: who is killed while it makes one leaves
  /// such a file. open_to_append() begins in it.
  [[nodiscard]] static Result<bool> is_blank(const std::string& path);
  /// Opens an existing run for reading only, also when the process that wrote it was killed.
  [[nodiscard]] static Result<RunStore> open_to_read(const std::string& path);

  RunStore(RunStore&&) noexcept;
  RunStore& operator=(RunStore&&) noexcept;
  ~RunStore();

  [[nodiscard]] const RunHeader& header() const;
  /// The campaign kept in the header, read again, with the settings "set.FACTOR" applied to it as
  /// `--set` did; kBadInput when the run holds none (an import).
  [[nodiscard]] Result<Campaign> campaign() const;

  /// Stores one observation, durable when it returns. Storing a key again is kInternal, and so is a
  /// number that is not finite or an observation that did not run.
  [[nodiscard]] Result<void> append(const Observation& observation);
  /// Stores several in one transaction: all of them or, with an error, none.
  [[nodiscard]] Result<void> append_all(std::span<const Observation> observations);
  /// Keys stored so far, so that a resumed run asks only for the rest.
  [[nodiscard]] Result<std::set<ObservationKey>> keys() const;
  /// All observations in the order they were stored.
  [[nodiscard]] Result<std::vector<Observation>> observations() const;

  /// Keeps a document made from this run (kind "explanation", "model", "layout"...), replacing it.
  /// Works on a run opened for reading too, when the file can be written.
  [[nodiscard]] Result<void> keep(const std::string& kind, const std::string& json_text);
  /// Empty text when nothing of that kind is kept.
  [[nodiscard]] Result<std::string> kept(const std::string& kind) const;
  /// The kept explanation, or the hypotheses where no cause was tested yet; empty text when neither
  /// is kept.
  [[nodiscard]] Result<std::string> best_explanation() const;
  /// Every kept document by kind.
  [[nodiscard]] Result<std::map<std::string, std::string>> documents() const;

 private:
  struct State;
  explicit RunStore(std::unique_ptr<State> state);
  static Result<RunStore> ready(std::unique_ptr<State> state, const RunHeader& header);
  static Result<void> check_soundness(State& state);
  std::unique_ptr<State> state_;
};

}  // namespace greynic::results
