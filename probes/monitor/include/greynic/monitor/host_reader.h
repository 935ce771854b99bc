#pragma once

/// One host, READ whenever its caller wants: for who needs the values of now, and no store.

#include <functional>
#include <memory>
#include <span>

#include "greynic/core/result.h"
#include "greynic/monitor/host_link.h"
#include "greynic/monitor/hosts_file.h"
#include "greynic/zero/reader.h"

namespace greynic::monitor {

class HostReader {
 public:
  explicit HostReader(HostSpec spec, RemoteLinks remote_links = {});
  ~HostReader();
  HostReader(const HostReader&) = delete;
  HostReader& operator=(const HostReader&) = delete;

  using Visit = std::function<void(std::span<const zero::Reading> readings)>;
  /// Reads all arenas, one visit for each. Connects where it has to, at most twice a second. kIo: the
  /// host is not read now, and why.
  [[nodiscard]] Result<void> look(const Visit& visit);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace greynic::monitor
