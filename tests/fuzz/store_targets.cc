/// Readers of stores of series. Frames have checksums: one target changes what lies under them.

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "encoding.h"
#include "frames.h"
#include "fuzz.h"
#include "greynic/core/text.h"
#include "greynic/series/query.h"
#include "greynic/series/store.h"
#include "store_files.h"

namespace greynic::fuzz {
namespace {

namespace fs = std::filesystem;

series::Group example_group() {
  return {"host",
          "program",
          1,
          {{"requests", "a=\"b\"", "B", "Help", 1, false, false, 3, 0},
           {"load", "", "ratio", "", 2, true, false, 1, 0},
           {"delay", "", "ns", "", 3, false, false, 20, 2}}};
}

/// A store in a folder of its own; gives the bytes of its files by their endings.
std::map<std::string, std::string> example_store() {
  const std::string path = folder() + "/seed_store";
  fs::remove_all(path);
  auto store = series::StoreWriter::open(path);
  claim(store.has_value(), "a store can be made");
  std::map<std::string, std::string> files;
  const auto keep = [&](const char* ending) {
    for (const auto& entry : fs::directory_iterator(path)) {
      if (entry.path().extension() != ending) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      files[ending] = {std::istreambuf_iterator<char>(file), {}};
    }
  };
  const series::Group group = example_group();
  for (std::uint64_t i = 0; i < 9; ++i) {
    std::vector<std::uint64_t> values(group.width(), i);
    const double load = 0.5;
    std::memcpy(&values[3], &load, sizeof load);
    (*store)->add((*store)->group(group), static_cast<std::int64_t>(i * 4'000'000'000), values);
  }
  (*store)->add(series::Gap{"host", 5, 9, "away"});
  claim((*store)->commit().has_value(), "samples are kept");
  keep(".log");
  claim((*store)->seal().has_value(), "a log becomes a segment");
  for (const char* ending : {".raw", ".10s", ".10m"}) keep(ending);
  claim(files.size() == 4, "there is a file of each kind");
  return files;
}

void read_all(const std::string& path) {
  for (const std::int64_t step : {std::int64_t{0}, series::kTierSteps[0]}) {
    series::Query query;
    query.step_ns = step;
    claim_sound(series::visit_points(path, query, [](const series::Point& point) {
      claim(point.index < point.field->count, "an index lies in its array");
      (void)series::text_of(*point.field, point.value);
    }));
  }
  claim_sound(series::summarize(path, {}));
  const auto gaps = series::gaps_of(path, {});
  claim_sound(gaps);
  if (!gaps) return;
  for (const series::Gap& gap : *gaps)
    claim(printable(gap.reason) == gap.reason, "a reason is text");
}

/// The store with this file alone.
std::string store_of(const std::string& ending, const std::string& bytes) {
  static const std::string path = folder() + "/store";
  fs::create_directory(path);
  std::ofstream(path + "/lease").flush();
  for (const char* other : {".log", ".raw", ".10s", ".10m"}) {
    if (ending != other) ::unlink((path + "/00000001" + other).c_str());
  }
  std::ofstream(path + "/00000001" + ending, std::ios::binary) << bytes;
  return path;
}

Target store_file() {
  std::vector<std::string> seeds;
  for (const auto& [ending, bytes] : example_store()) seeds.push_back(ending + bytes);
  return {"store_file", seeds, [](std::string_view text) {
            if (text.size() < 4) return;
            const std::string ending(text.substr(0, 4));
            for (const char* known : {".log", ".raw", ".10s", ".10m"}) {
              if (ending == known) read_all(store_of(ending, std::string(text.substr(4))));
            }
          }};
}

/// Frames whose checksums are right: what decodes them sees every change.
Target store_frames() {
  const series::Group group = example_group();
  const std::string groups = series::encode_groups({{0, &group}});
  const std::vector<std::int64_t> times = {1, 2'000'000'000, 30'000'000'000};
  const std::vector<std::uint64_t> values(times.size() * group.width(), 7);
  const std::string chunk = series::encode_chunk(0, group, times, values, 0, times.size());
  series::SampleWriter samples;
  samples.add(0, 5, std::span(values).first(group.width()));
  samples.add(0, 9, std::span(values).first(group.width()));
  series::Groups known = {{0, group}};
  const auto decoded = series::decode_chunk(chunk, known);
  claim(decoded.has_value(), "a chunk reads back");
  const auto seed = [](series::FileKind kind, series::FrameKind frame, const std::string& payload) {
    return std::string{static_cast<char>(kind), static_cast<char>(frame)} + payload;
  };
  using File = series::FileKind;
  using Frame = series::FrameKind;
  return {"store_frames",
          {seed(File::kSamples, Frame::kChunk, chunk), seed(File::kLog, Frame::kGroups, groups),
           seed(File::kLog, Frame::kSamples, samples.payload()),
           seed(File::kSamples, Frame::kGap, series::encode_gap({"h", 1, 2, "why"})),
           seed(File::kTier, Frame::kTierChunk,
                series::encode_tier(0, series::tier_of(*decoded, series::kTierSteps[0])))},
          [groups](std::string_view text) {
            if (text.size() < 2 || text[0] < 0 || text[0] > 2) return;
            const auto kind = static_cast<File>(text[0]);
            std::string bytes = series::file_head(
                kind, 1, kind == File::kTier ? series::kTierSteps[0] : std::int64_t{0});
            series::put_frame(bytes, Frame::kGroups, groups);
            series::put_frame(bytes, static_cast<Frame>(text[1]), text.substr(2));
            series::put_frame(bytes, Frame::kEnd, "");
            const char* const endings[] = {".log", ".raw", ".10s"};
            read_all(store_of(endings[static_cast<std::size_t>(text[0])], bytes));
          }};
}

}  // namespace

std::vector<Target> store_targets() { return {store_file(), store_frames()}; }

}  // namespace greynic::fuzz
