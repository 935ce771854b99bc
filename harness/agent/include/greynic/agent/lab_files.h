#pragma once

/// A lab's directory of certificates (docs/formats/agent_certificates.md): reading it with care,
/// and seeing when it has changed.

#include <set>
#include <string>

#include "greynic/core/result.h"

namespace greynic::agent {

struct Identity {
  std::string ca;           ///< PEM: one authority or, while a lab is replaced, two
  std::string certificate;  ///< PEM
  std::string key;          ///< PEM
};

/// ca.pem, WHO.pem and WHO.key. Errors: kMissing names the file that cannot be read; kBadInput one
/// that is out of date, a key that others may read, and a key that is not its certificate's.
[[nodiscard]] Result<Identity> read_identity(const std::string& directory, const std::string& who);

/// What is in such a file; kBadInput where it cannot be read.
[[nodiscard]] Result<std::string> read_certificate(const std::string& path);

/// SHA-256 of a certificate in PEM, as 64 digits; empty when it is none.
[[nodiscard]] std::string fingerprint_of(const std::string& pem);

/// The fingerprints in the file `revoked`, one a line, what follows a # apart; nothing when there
/// is no such file. kBadInput names a line that is no fingerprint, for it may be one that was meant,
/// and a file that cannot be read.
[[nodiscard]] Result<std::set<std::string>> read_revoked(const std::string& directory);

/// These change when an agent's certificates in the directory do, or the file `revoked`.
[[nodiscard]] std::string stamp_of_identity(const std::string& directory);
[[nodiscard]] std::string stamp_of_revoked(const std::string& directory);

}  // namespace greynic::agent
