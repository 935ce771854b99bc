/// What comes to daemons over sockets. Each target has one daemon of this process; whatever an input
/// does to it, a good caller is answered after it.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "directory.h"
#include "fuzz.h"
#include "greynic/monitor/agent.h"
#include "greynic_zero.h"
#include "link.h"
#ifdef GREYNIC_FUZZ_REMOTE
#include "keys.h"
#include "sessions.h"
#include "zero.pb.h"
#endif

namespace greynic::fuzz {
namespace {

/// A memfd of these bytes.
int memory_file(std::string_view bytes, bool sealed) {
  const int file = ::memfd_create("greynic.zero.fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  claim(file >= 0 && ::write(file, bytes.data(), bytes.size()) >= 0, "there is memory");
  if (sealed) (void)::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
  return file;
}

std::string example_arena() {
  struct Pair {
    std::uint64_t a, b;
  };
  static const zero_field fields[] = {{"a", ZERO_U64, ZERO_COUNTER, 0, 1, 0, "", "", ""},
                                      {"b", ZERO_U64, ZERO_COUNTER, 8, 1, 0, "", "", ""}};
  static const zero_schema schema = {"pair", "", fields, 2, sizeof(Pair), ZERO_PLAIN};
  const zero_arena_options options = {ZERO_TIDAL, 16 << 10, 4, 0, "fuzz"};
  zero_arena* const arena = zero_arena_create(&options);
  claim(arena != nullptr, "an arena can be made");
  void* const row = zero_arena_malloc(arena, sizeof(Pair));
  claim(zero_arena_publish(arena, row, &schema, "x=\"1\"") == 0, "a row can be published");
  std::string bytes(static_cast<const char*>(zero_arena_memory(arena)), 16 << 10);
  zero_arena_destroy(arena);
  return bytes;
}

/// An agent of `greynic zero` in a thread of its own.
class HostAgent {
 public:
  HostAgent() {
    // Programs of this process must not find another agent.
    monitor::AgentOptions options;
    options.socket = folder() + "/agent";
    options.linger = std::chrono::milliseconds(0);
    auto agent = monitor::Agent::start(options);
    claim(agent.has_value(), "an agent starts");
    agent_ = std::move(*agent);
    thread_ = std::thread([this] { agent_->serve(stop_); });
  }
  ~HostAgent() {
    stop_ = true;
    thread_.join();
  }
  HostAgent(const HostAgent&) = delete;
  HostAgent& operator=(const HostAgent&) = delete;

 private:
  std::unique_ptr<monitor::Agent> agent_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

void begin_agent() { static const HostAgent agent; }

/// Says one thing to the agent, and waits until it has answered or hung up. The first byte: a file
/// comes along (1), it is sealed (2), the message names the arena that it is (4), it is cut (8).
void speak_to_agent(std::string_view text) {
  if (text.size() < 1 + sizeof(zero_link_message)) return;
  const int how = text[0];
  zero_link_message message;
  std::memcpy(&message, text.data() + 1, sizeof message);
  const std::string_view arena = text.substr(1 + sizeof message);
  if ((how & 4) != 0 && arena.size() >= sizeof(zero_header)) {
    zero_header header;
    std::memcpy(&header, arena.data(), sizeof header);
    message.incarnation = header.incarnation;
    message.metric_class = header.metric_class;
  }
  const int socket = monitor::connect_to(folder() + "/agent");
  claim(socket >= 0, "the agent takes a connection");
  const int file = (how & 1) != 0 ? memory_file(arena, (how & 2) != 0) : -1;
  if ((how & 8) != 0) {
    (void)::send(socket, &message, text.size() % sizeof message, MSG_NOSIGNAL);
  } else {
    monitor::send_message(socket, message, file);
  }
  if (file >= 0) ::close(file);
  claim(readable(socket), "the agent answers, or hangs up");
  bool gone = false;
  while (const auto answer = monitor::receive_message(socket, gone)) {
    if (answer->file >= 0) ::close(answer->file);
    claim(answer->message.kind == ZERO_LINK_ANSWER || answer->message.kind == ZERO_LINK_SHOWN,
          "an agent answers or shows");
  }
  ::close(socket);
}

Target zero_link() {
  const auto said = [](char how, zero_link_kind kind, const std::string& arena) {
    const zero_link_message message = monitor::make_message(kind, "fuzz");
    return how + std::string(reinterpret_cast<const char*>(&message), sizeof message) + arena;
  };
  const std::string arena = example_arena();
  return {"zero_link",
          {said(7, ZERO_LINK_ARENA, arena), said(3, ZERO_LINK_ARENA, arena),
           said(0, ZERO_LINK_COLLECT, ""), said(7, ZERO_LINK_COLLECT, arena),
           said(8, ZERO_LINK_SHOWN, "")},
          [](std::string_view text) {
            begin_agent();
            speak_to_agent(text);
          }};
}

/// What an agent shows a collector.
Target zero_directory() {
  auto directory = monitor::Directory::create();
  claim(directory.has_value(), "a directory can be made");
  (void)(*directory)->add({0, 17, 4096, 0, 0, ZERO_TIDAL, 1, 0, ZERO_ARENA_LIVE, 0, 0});
  std::string bytes(sizeof(zero_header) + 64 * sizeof(zero_directory_row), '\0');
  claim(::pread((*directory)->file(), bytes.data(), bytes.size(), 0) > 0, "it can be read");
  return {"zero_directory", {bytes}, [](std::string_view text) {
            // As long as it says, so that what lies behind its rows is reached.
            std::string whole(text);
            whole.resize(sizeof(zero_header) +
                         std::size_t{monitor::Directory::kRows} * sizeof(zero_directory_row));
            auto reader = monitor::DirectoryReader::open(memory_file(whole, true));
            claim_sound(reader);
            if (!reader) return;
            const auto rows = reader->look();
            claim_sound(rows);
            if (!rows) return;
            for (const auto& row : *rows) {
              claim(row.row.incarnation != 0 && row.row.metric_class < ZERO_CLASSES,
                    "rows are whole");
            }
          }};
}

#ifdef GREYNIC_FUZZ_REMOTE
/// A collector of another host, with a session at the agent's door.
struct RemoteCollector {
  RemoteCollector() {
    begin_agent();
    const auto opened =
        sessions.open(caller, 7, std::chrono::hours(4), [](const auto&) { return true; });
    claim(opened.has_value(), "a collector is served");
    session = opened->session;
  }
  remote::DoorOptions options{
      .socket = folder() + "/agent", .listen = {}, .certificates = {}, .allowed = {}, .tell = {}};
  remote::Sessions sessions{options};
  agent::Caller caller{.owner = "fuzz", .common_name = "fuzz", .connection = {}, .name = {}};
  std::uint64_t session = 0;
};

/// READs of a collector of another host; session 0 stands for its own.
Target zero_read() {
  remote::wire::ReadRequest whole;
  whole.add_offsets(0);
  whole.add_sizes(sizeof(zero_header));
  whole.add_offsets(sizeof(zero_header));
  whole.add_sizes(sizeof(zero_directory_row));
  remote::wire::ReadRequest arena = whole;
  arena.set_arena(17);
  arena.set_session(3);
  return {"zero_read",
          {whole.SerializeAsString(), arena.SerializeAsString()},
          [](std::string_view bytes) {
            static RemoteCollector collector;
            remote::wire::ReadRequest request;
            if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
            const std::uint64_t session =
                request.session() == 0 ? collector.session : request.session();
            std::string values;
            const auto seen = collector.sessions.read(
                collector.caller, session,
                {request.arena(),
                 {request.offsets().data(), static_cast<std::size_t>(request.offsets_size())},
                 {request.sizes().data(), static_cast<std::size_t>(request.sizes_size())}},
                values);
            claim_sound(seen);
            std::uint64_t asked = 0;
            for (const std::uint32_t size : request.sizes()) asked += size;
            if (seen && *seen) claim(values.size() == asked, "a READ gives what was asked for");
          }};
}

/// Where a host says that its arenas are: a table that is READ of it.
Target zero_keys() {
  remote::KeyTable table{.epoch = 2, .row_count = 2};
  std::memcpy(table.magic, remote::kKeyMagic, sizeof table.magic);
  const remote::KeyRow rows[] = {
      {.generation = 2, .address = 4096, .bytes = 4096, .key = 7, .is_there = 1},
      {.generation = 4,
       .incarnation = 17,
       .address = 65536,
       .bytes = 8192,
       .key = 8,
       .is_there = 1}};
  std::string seed(reinterpret_cast<const char*>(&table), sizeof table);
  seed.append(reinterpret_cast<const char*>(rows), sizeof rows);
  return {
      "zero_keys", {seed}, [](std::string_view text) {
        const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
        const remote::KeysReader::Read read =
            [&](const remote::Place&, std::span<const zero::Piece> pieces) -> Result<void> {
          for (const zero::Piece& piece : pieces) {
            if (piece.offset > bytes.size() || piece.into.size() > bytes.size() - piece.offset) {
              return fail(ErrorCode::kIo, "the table is shorter than it says");
            }
            const auto from = bytes.subspan(piece.offset, piece.into.size());
            std::copy(from.begin(), from.end(), piece.into.begin());
          }
          return {};
        };
        remote::KeysReader keys({0, 0, bytes.size()});
        for (const std::uint64_t incarnation : {0, 17}) {
          const auto place = keys.find(incarnation, read);
          claim_sound(place);
          if (!place || !*place) continue;
          claim((*place)->bytes > 0 && (*place)->bytes <= UINT64_MAX - (*place)->address,
                "what may be READ is a range");
        }
      }};
}
#endif

}  // namespace

std::vector<Target> socket_targets() {
  std::vector<Target> targets = {zero_link(), zero_directory()};
#ifdef GREYNIC_FUZZ_REMOTE
  targets.push_back(zero_read());
  targets.push_back(zero_keys());
#endif
  return targets;
}

}  // namespace greynic::fuzz
