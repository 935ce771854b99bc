#include "greynic/capture/capture.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>

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

/// Hands the packets of a capture to a replay. libpcap calls back for many packets at a time, which costs less than
/// asking it for each; what our own code throws waits until libpcap has returned.
class Packets {
 public:
  Packets(pcap_t* pcap, burst::Replay& replay)
      : pcap_(pcap), link_type_(::pcap_datalink(pcap)), replay_(replay) {}

  /// Some more packets. False: none are left, or one was refused.
  bool read() {
    constexpr int kAtATime = 65536;
    const int read =
        ::pcap_dispatch(pcap_, kAtATime, &Packets::take, reinterpret_cast<u_char*>(this));
    if (thrown_) std::rethrow_exception(thrown_);
    if (read == PCAP_ERROR) refused_ = printable(::pcap_geterr(pcap_));
    return read > 0 && refused_.empty();
  }
  [[nodiscard]] std::uint64_t number() const { return number_; }  ///< packets that were taken
  [[nodiscard]] const std::string& refused() const { return refused_; }  ///< why the next was not

 private:
  static void take(u_char* self, const pcap_pkthdr* header, const u_char* bytes) noexcept {
    auto& packets = *reinterpret_cast<Packets*>(self);
    try {
      packets.refused_ = packets.add(*header, bytes);
    } catch (...) {
      packets.thrown_ = std::current_exception();
    }
    if (packets.thrown_ || !packets.refused_.empty()) ::pcap_breakloop(packets.pcap_);
  }
  /// Why not; empty: taken.
  std::string add(const pcap_pkthdr& header, const u_char* bytes) {
    std::uint64_t time = 0;
    if (!time_of(header, time)) return "its time is beyond the year 2262";
    const auto added =
        replay_.add(time, header.len, burst::parse_frame(link_type_, {bytes, header.caplen}));
    if (!added) return added.error().message;
    ++number_;
    return {};
  }

  pcap_t* pcap_;
  int link_type_;
  burst::Replay& replay_;
  std::uint64_t number_ = 0;
  std::string refused_;
  std::exception_ptr thrown_;
};

}  // namespace

bool can_read_captures() { return true; }

Result<burst::Findings> replay_capture(const std::string& path, const burst::ReplayOptions& options,
                                       const burst::Replay::Marked& marked,
                                       const std::function<void(double)>& progress) {
  auto capture = open_capture(path);
  if (!capture) return pass_on(capture);
  burst::Replay replay(options, marked);
  Packets packets(capture->pcap.get(), replay);
  while (packets.read()) {
    if (progress && capture->bytes > 0) {
      progress(static_cast<double>(std::ftell(::pcap_file(capture->pcap.get()))) / capture->bytes);
    }
  }
  burst::Findings findings = replay.finish();
  if (!packets.refused().empty()) {
    findings.incomplete = fmt::format(
        "{}: packet {} (counted from 0): {}; what came before it was "
        "analysed",
        path, packets.number(), packets.refused());
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
