#pragma once

/// The way to the agent of a host: its directory and the arenas that stand in it, as memory that can
/// be READ. What is behind it is not trusted.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "greynic/core/result.h"
#include "greynic/monitor/hosts_file.h"
#include "greynic/zero/source.h"

namespace greynic::monitor {

class HostLink {
 public:
  virtual ~HostLink() = default;
  /// Takes what the agent says meanwhile. kIo: it has gone, or says what it should not.
  [[nodiscard]] virtual Result<void> hear() { return {}; }
  /// A bit for each class that the agent lets this collector see.
  [[nodiscard]] virtual std::uint32_t classes() const { return 7; }
  /// The agent's directory; null: it is not here yet, ask again.
  [[nodiscard]] virtual Result<std::unique_ptr<zero::Source>> directory() = 0;
  /// The arena of that incarnation; null: this collector may not see it.
  [[nodiscard]] virtual Result<std::unique_ptr<zero::Source>> arena(std::uint64_t incarnation) = 0;
  /// Incarnations that arena() would give and that nobody has asked for, where the link knows them.
  [[nodiscard]] virtual std::vector<std::uint64_t> shown() const { return {}; }
  /// A look is over: what others may use until the next one is given back.
  virtual void rest() {}
};

/// To the agent of this machine, through its socket. `classes`: a bit for each that is asked for.
[[nodiscard]] Result<std::unique_ptr<HostLink>> local_link(const std::string& socket,
                                                           std::uint32_t classes);

/// Links to other hosts, by HostSpec::remote.
using RemoteLinks = std::function<Result<std::unique_ptr<HostLink>>(const HostSpec&)>;

}  // namespace greynic::monitor
