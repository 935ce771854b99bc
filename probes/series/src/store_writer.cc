#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "lease.h"
#include "store_files.h"

namespace greynic::series {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kSealAgain{30};

tl::unexpected<Error> refused(const std::string& path, std::string_view what) {
  return fail(ErrorCode::kIo, fmt::format("{}: {}: {}", path, what, std::strerror(errno)));
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(file, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
  return true;
}

void sync_directory(const std::string& directory) {
  const int file = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;
  ::fsync(file);
  ::close(file);
}

/// A file that has its name only when it is whole.
Result<void> write_whole(const std::string& path, std::string_view bytes) {
  const std::string unfinished = path + ".new";
  ::unlink(unfinished.c_str());  // of a writer that was killed, or a link to what is not ours
  const int file = ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) return refused(path, "cannot be made");
  const bool written = write_all(file, bytes) && ::fsync(file) == 0;
  const int error = errno;
  ::close(file);
  if (written && std::rename(unfinished.c_str(), path.c_str()) == 0) return {};
  if (!written) errno = error;
  auto why = refused(path, "cannot be written");
  ::unlink(unfinished.c_str());
  return why;
}

/// The segment and the tiers of what a log holds.
class Segments {
 public:
  explicit Segments(std::uint64_t number) {
    texts_.push_back(file_head(FileKind::kSamples, number, 0));
    for (const std::int64_t step : kTierSteps) {
      texts_.push_back(file_head(FileKind::kTier, number, step));
    }
  }
  void groups(const std::map<std::uint64_t, const Group*>& groups) {
    const std::string payload = encode_groups(groups);
    for (std::string& text : texts_) put_frame(text, FrameKind::kGroups, payload);
  }
  void gap(const Gap& gap) { put_frame(texts_[0], FrameKind::kGap, encode_gap(gap)); }
  void rows(std::uint64_t number, const Group& group, const LogContent::Rows& rows) {
    const std::size_t width = std::max<std::size_t>(1, group.width());
    const std::size_t most = std::clamp<std::size_t>(kMostChunkValues / width, 1, kMostChunkRows);
    for (std::size_t begin = 0; begin < rows.times.size(); begin += most) {
      const std::size_t end = std::min(rows.times.size(), begin + most);
      put_frame(texts_[0], FrameKind::kChunk,
                encode_chunk(number, group, rows.times, rows.values, begin, end));
      Chunk chunk{&group,
                  {rows.times.begin() + static_cast<long>(begin),
                   rows.times.begin() + static_cast<long>(end)},
                  {}};
      chunk.columns.assign(group.width(), std::vector<std::uint64_t>(end - begin));
      for (std::size_t c = 0; c < group.width(); ++c) {
        for (std::size_t i = begin; i < end; ++i) {
          chunk.columns[c][i - begin] = rows.values[i * width + c];
        }
      }
      for (std::size_t i = 0; i < std::size(kTierSteps); ++i) {
        put_frame(texts_[i + 1], FrameKind::kTierChunk,
                  encode_tier(number, tier_of(chunk, kTierSteps[i])));
      }
    }
  }
  /// Tiers first: with the segment all is there, and the log may go. Gives the segment's bytes.
  Result<std::uint64_t> write(const std::string& directory, std::uint64_t number) {
    for (std::size_t i = texts_.size(); i-- > 0;) {
      put_frame(texts_[i], FrameKind::kEnd, "");
      const char* const ending = i == 0 ? kRawEnding : kTierEndings[i - 1];
      auto done = write_whole(file_name(directory, number, ending), texts_[i]);
      if (!done) return pass_on(done);
    }
    sync_directory(directory);
    return texts_[0].size();
  }

 private:
  std::vector<std::string> texts_;
};

/// What a writer that was killed left behind: unfinished files go, logs become segments.
Result<void> finish_others(const std::string& directory, const StoreFiles& files) {
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() == ".new") std::filesystem::remove(entry.path());
  }
  for (const std::uint64_t number : files.logs) {
    const std::string path = file_name(directory, number, kLogEnding);
    if (!std::filesystem::exists(file_name(directory, number, kRawEnding))) {
      const auto log = read_log(path);
      if (!log) return pass_on(log);
      if (!log->rows.empty() || !log->gaps.empty()) {
        Segments segments(number);
        std::map<std::uint64_t, const Group*> groups;
        for (const auto& [id, group] : log->groups) groups[id] = &group;
        segments.groups(groups);
        for (const Gap& gap : log->gaps) segments.gap(gap);
        for (const auto& [id, rows] : log->rows) segments.rows(id, log->groups.at(id), rows);
        if (auto done = segments.write(directory, number); !done) return pass_on(done);
      }
    }
    ::unlink(path.c_str());
  }
  return {};
}

std::string key_of(const Group& group) { return encode_groups({{0, &group}}); }

}  // namespace

struct StoreWriter::State {
  State(std::string where, const StoreOptions& asked, Lease held)
      : directory(std::move(where)), options(asked), lease(std::move(held)) {}
  ~State() {
    if (log >= 0) ::close(log);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  std::string directory;
  StoreOptions options;
  Lease lease;
  Counts counts;

  std::uint64_t number = 0;  ///< of the log
  int log = -1;
  std::uint64_t log_bytes = 0;  ///< that are synced
  Clock::time_point log_begin, seal_again;
  std::uint64_t generation = 0;
  std::map<std::string, std::uint64_t> numbers;
  std::vector<std::unique_ptr<Group>> groups;
  std::vector<bool> defined;  ///< in this log
  std::map<std::uint64_t, const Group*> to_define;
  std::vector<LogContent::Rows> rows;  ///< of this log
  std::vector<std::size_t> synced;     ///< rows of each that are
  std::vector<std::uint64_t> touched;  ///< groups with rows that are not
  std::vector<Gap> gaps, new_gaps;
  SampleWriter samples;
  std::uint64_t waiting = 0, uncommitted = 0;  ///< samples

  Result<void> begin_log();
  Result<void> write_log(const std::string& bytes);
  void drop_uncommitted();
  void remove_old() const;
};

Result<void> StoreWriter::State::begin_log() {
  ++number;
  const std::string path = file_name(directory, number, kLogEnding);
  log = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (log < 0) return refused(path, "cannot be made");
  const std::string head = file_head(FileKind::kLog, number, 0);
  log_bytes = 0;
  log_begin = Clock::now();
  defined.assign(groups.size(), false);
  return write_log(head);
}

Result<void> StoreWriter::State::write_log(const std::string& bytes) {
  if (write_all(log, bytes) && ::fdatasync(log) == 0) {
    log_bytes += bytes.size();
    return {};
  }
  auto why = refused(file_name(directory, number, kLogEnding), "cannot be written");
  // What came of it must not stand before what comes later.
  if (::ftruncate(log, static_cast<off_t>(log_bytes)) == 0) {
    (void)::lseek(log, static_cast<off_t>(log_bytes), SEEK_SET);
  }
  return why;
}

void StoreWriter::State::drop_uncommitted() {
  for (const std::uint64_t id : touched) {
    rows[id].times.resize(synced[id]);
    rows[id].values.resize(synced[id] * groups[id]->width());
  }
  for (const auto& [id, group] : to_define) defined[id] = false;
  counts.dropped += uncommitted;
}

void StoreWriter::State::remove_old() const {
  const auto too_old = [&](const std::string& path, std::chrono::seconds keep) {
    struct stat status {};
    return keep.count() > 0 && ::stat(path.c_str(), &status) == 0 &&
           std::time(nullptr) - status.st_mtim.tv_sec > keep.count();
  };
  const auto files = list_store(directory);
  if (!files) return;
  for (const std::uint64_t one : files->segments) {
    const std::string raw = file_name(directory, one, kRawEnding);
    if (too_old(raw, options.keep_raw)) ::unlink(raw.c_str());
    for (const char* ending : kTierEndings) {
      const std::string tier = file_name(directory, one, ending);
      if (too_old(tier, options.keep_tiers)) ::unlink(tier.c_str());
    }
  }
}

StoreWriter::StoreWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
StoreWriter::~StoreWriter() = default;

Result<std::unique_ptr<StoreWriter>> StoreWriter::open(const std::string& directory,
                                                       const StoreOptions& options) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  auto files = list_store(directory);
  if (!files) return pass_on(files);
  auto lease = Lease::take(directory, options.lease);
  if (!lease) return pass_on(lease);
  files = list_store(directory);
  if (!files) return pass_on(files);
  if (auto done = finish_others(directory, *files); !done) return pass_on(done);
  auto state = std::make_unique<State>(directory, options, std::move(*lease));
  state->number = files->last();
  if (auto done = state->begin_log(); !done) return pass_on(done);
  return std::unique_ptr<StoreWriter>(new StoreWriter(std::move(state)));
}

std::uint64_t StoreWriter::group(const Group& group) {
  State& s = *state_;
  const auto [place, is_new] = s.numbers.emplace(key_of(group), s.groups.size());
  if (is_new) {
    s.groups.push_back(std::make_unique<Group>(group));
    s.defined.push_back(false);
    s.rows.emplace_back();
    s.synced.push_back(0);
  }
  return place->second;
}

void StoreWriter::add(std::uint64_t id, std::int64_t time_ns,
                      std::span<const std::uint64_t> values) {
  State& s = *state_;
  if (!s.defined[id]) {
    s.to_define[id] = s.groups[id].get();
    s.defined[id] = true;
  }
  LogContent::Rows& rows = s.rows[id];
  if (rows.times.size() == s.synced[id]) s.touched.push_back(id);
  rows.times.push_back(time_ns);
  rows.values.insert(rows.values.end(), values.begin(), values.end());
  s.samples.add(id, time_ns, values);
  s.uncommitted += values.size();
}

void StoreWriter::add(const Gap& gap) { state_->new_gaps.push_back(gap); }

Result<void> StoreWriter::commit() {
  State& s = *state_;
  if (!s.lease.renew()) {
    return fail(ErrorCode::kRefused,
                fmt::format("{}: another collector has taken this store over", s.directory));
  }
  std::string bytes;
  if (!s.to_define.empty()) put_frame(bytes, FrameKind::kGroups, encode_groups(s.to_define));
  for (const Gap& gap : s.new_gaps) put_frame(bytes, FrameKind::kGap, encode_gap(gap));
  if (!s.samples.empty()) put_frame(bytes, FrameKind::kSamples, s.samples.payload());
  const Result<void> written = bytes.empty() ? Result<void>() : s.write_log(bytes);
  if (written) {
    s.counts.samples += s.uncommitted;
    s.waiting += s.uncommitted;
    for (const std::uint64_t id : s.touched) s.synced[id] = s.rows[id].times.size();
    s.gaps.insert(s.gaps.end(), s.new_gaps.begin(), s.new_gaps.end());
    s.new_gaps.clear();
  } else {
    s.drop_uncommitted();
  }
  s.to_define.clear();
  s.touched.clear();
  s.samples.clear();
  s.uncommitted = 0;
  if (!written) return written;
  const auto now = Clock::now();
  const bool is_long = s.waiting >= s.options.most_waiting_samples;
  const bool is_old = s.waiting > 0 && now - s.log_begin > s.options.longest_wait;
  if ((is_long || is_old) && now >= s.seal_again) {
    // Where there is no room for a segment the log is kept, and grows on.
    if (auto sealed = seal(); !sealed) s.seal_again = now + kSealAgain;
  }
  return {};
}

Result<void> StoreWriter::seal() {
  State& s = *state_;
  if (s.uncommitted > 0 || !s.new_gaps.empty()) {
    if (auto done = commit(); !done) return done;
  }
  if (s.waiting == 0 && s.gaps.empty()) return {};
  Segments segments(s.number);
  std::map<std::uint64_t, const Group*> used;
  for (std::uint64_t id = 0; id < s.rows.size(); ++id) {
    if (!s.rows[id].times.empty()) used[id] = s.groups[id].get();
  }
  segments.groups(used);
  for (const Gap& gap : s.gaps) segments.gap(gap);
  for (const auto& [id, group] : used) segments.rows(id, *group, s.rows[id]);
  const auto bytes = segments.write(s.directory, s.number);
  if (!bytes) return pass_on(bytes);  // the log stays, and grows on
  s.counts.segment_bytes += *bytes;
  s.counts.sealed_samples += s.waiting;
  ::close(s.log);
  s.log = -1;
  ::unlink(file_name(s.directory, s.number, kLogEnding).c_str());
  // Groups that come and go must not pile up: numbers are given anew.
  s.numbers.clear();
  s.groups.clear();
  s.rows.clear();
  s.synced.clear();
  ++s.generation;
  s.gaps.clear();
  s.waiting = 0;
  s.remove_old();
  return s.begin_log();
}

std::uint64_t StoreWriter::generation() const { return state_->generation; }

StoreWriter::Counts StoreWriter::counts() const { return state_->counts; }

}  // namespace greynic::series
