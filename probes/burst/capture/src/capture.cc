#include "greynic/capture/capture.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "greynic/core/text.h"

#ifdef GREYNIC_CAPTURE_WITH_PCAP
#include <pcap/pcap.h>
#include <stdio_ext.h>
#include <sys/stat.h>
#endif

namespace greynic::capture {

#ifdef GREYNIC_CAPTURE_WITH_PCAP

namespace {

struct CloseCapture {
  void operator()(pcap_t* capture) const { ::pcap_close(capture); }
};

struct Capture {
  std::unique_ptr<pcap_t, CloseCapture> pcap;
  double bytes = 0.0;  ///< of the file; 0: unknown
};

Result<Capture> open_capture(const std::string& path) {
  std::FILE* file = path == "-" ? stdin : std::fopen(path.c_str(), "rbe");
  struct stat status {};
  const bool known = file != nullptr && ::fstat(::fileno(file), &status) == 0;
  if (known && S_ISDIR(status.st_mode)) {
    std::fclose(file);
    file = nullptr;
    errno = EISDIR;
  }
  if (file == nullptr) {
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  }
  ::__fsetlocking(file,
                  FSETLOCKING_BYCALLER);  // nobody else reads it; locks cost a third of a packet
  std::setvbuf(file, nullptr, _IOFBF, std::size_t{1} << 20);
  char reason[PCAP_ERRBUF_SIZE] = "";
  pcap_t* const pcap =
      ::pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, reason);
  if (pcap == nullptr) {
    if (file != stdin) std::fclose(file);
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: no pcap or pcapng capture: {}; write one with tcpdump -w", path,
                            printable(reason)));
  }
  return Capture{std::unique_ptr<pcap_t, CloseCapture>(pcap),
                 S_ISREG(status.st_mode) ? static_cast<double>(status.st_size) : 0.0};
}

/// Nanoseconds since 1970; false when they do not fit. Times before 1970 count as 1970.
bool time_of(const pcap_pkthdr& header, std::uint64_t& ns) {
  std::int64_t sum = 0;
  if (__builtin_mul_overflow(std::int64_t{header.ts.tv_sec}, 1'000'000'000, &sum) ||
      __builtin_add_overflow(sum, std::int64_t{header.ts.tv_usec}, &sum)) {
    return false;
  }
  ns = sum < 0 ? 0 : static_cast<std::uint64_t>(sum);
  return true;
}

}  // namespace

bool can_read_captures() { return true; }

Result<burst::Findings> replay_capture(const std::string& path, const burst::ReplayOptions& options,
                                       const burst::Replay::Marked& marked,
                                       const std::function<void(double)>& progress) {
  auto capture = open_capture(path);
  if (!capture) return pass_on(capture);
  const int link_type = ::pcap_datalink(capture->pcap.get());
  burst::Replay replay(options, marked);
  std::string incomplete;
  std::uint64_t number = 0;
  for (;; ++number) {
    pcap_pkthdr* header = nullptr;
    const u_char* bytes = nullptr;
    const int read = ::pcap_next_ex(capture->pcap.get(), &header, &bytes);
    std::uint64_t time = 0;
    if (read == PCAP_ERROR_BREAK) break;
    if (read != 1) {
      incomplete = printable(::pcap_geterr(capture->pcap.get()));
    } else if (!time_of(*header, time)) {
      incomplete = "its time is beyond the year 2262";
    } else if (const auto added = replay.add(
                   time, header->len, burst::parse_frame(link_type, {bytes, header->caplen}));
               !added) {
      incomplete = added.error().message;
    }
    if (!incomplete.empty()) break;
    if (progress && capture->bytes > 0 && number % 65536 == 0) {
      progress(static_cast<double>(std::ftell(::pcap_file(capture->pcap.get()))) / capture->bytes);
    }
  }
  burst::Findings findings = replay.finish();
  if (!incomplete.empty()) {
    findings.incomplete = fmt::format(
        "{}: packet {} (counted from 0): {}; what came before it was "
        "analysed",
        path, number, incomplete);
  }
  return findings;
}

#else

bool can_read_captures() { return false; }

Result<burst::Findings> replay_capture(const std::string&, const burst::ReplayOptions&,
                                       const burst::Replay::Marked&,
                                       const std::function<void(double)>&) {
  return fail(ErrorCode::kMissing,
              "captures are read by libpcap, which this greynic was built without; install "
              "libpcap-dev (scripts/setup.sh does) and build again");
}

#endif

}  // namespace greynic::capture
