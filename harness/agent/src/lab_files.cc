#include "greynic/agent/lab_files.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <sstream>

namespace greynic::agent {
namespace {

using ReadCertificate = std::unique_ptr<X509, decltype(&X509_free)>;
using ReadKey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using TextBytes = std::unique_ptr<BIO, decltype(&BIO_free)>;

constexpr std::size_t kMostFileBytes = 1 << 20;
constexpr std::size_t kFingerprintDigits = 64;

TextBytes bytes_of(const std::string& text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free};
}

ReadCertificate certificate_of(const std::string& pem) {
  return {PEM_read_bio_X509(bytes_of(pem).get(), nullptr, nullptr, nullptr), X509_free};
}

/// A password is never asked for: a daemon has nobody to ask.
int no_password(char*, int, int, void*) { return 0; }

ReadKey key_of(const std::string& pem) {
  return {PEM_read_bio_PrivateKey(bytes_of(pem).get(), nullptr, no_password, nullptr),
          EVP_PKEY_free};
}

/// What is in a file; nothing, with errno, where it cannot be read, or is longer than any of ours.
std::optional<std::string> bytes_in(const std::string& path, struct stat& status) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return std::nullopt;
  std::string text(kMostFileBytes, '\0');
  const ssize_t length = ::fstat(file, &status) == 0 ? ::read(file, text.data(), text.size()) : -1;
  const int error = length == static_cast<ssize_t>(kMostFileBytes) ? EFBIG : errno;
  ::close(file);
  errno = error;
  if (length < 0 || error == EFBIG) return std::nullopt;
  text.resize(static_cast<std::size_t>(length));
  return text;
}

Result<std::string> read_file(const std::string& path, bool secret) {
  struct stat status {};
  auto text = bytes_in(path, status);
  if (!text || text->empty()) {
    return fail(ErrorCode::kMissing,
                fmt::format("{}: cannot be read; make the lab's certificates with `greynic agent "
                            "init DIR` and copy them to every host",
                            path));
  }
  if (secret && (status.st_mode & 077) != 0) {
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: other users of this host may read the key (mode {:04o}); `chmod "
                            "600 {}`, and make a new lab if they may have",
                            path, status.st_mode & 07777, path));
  }
  return std::move(*text);
}

/// Out of date, or not yet in force: a certificate that no peer would take.
Result<void> check_dates(const std::string& path, const std::string& pem) {
  const ReadCertificate certificate = certificate_of(pem);
  if (certificate == nullptr) {
    return fail(ErrorCode::kBadInput,
                path + ": is no certificate; make the lab's anew with `greynic agent init`");
  }
  if (X509_cmp_current_time(X509_get0_notAfter(certificate.get())) < 0) {
    return fail(ErrorCode::kBadInput,
                path +
                    ": is out of date; make the lab's certificates anew with `greynic agent "
                    "init` (or set this host's clock)");
  }
  if (X509_cmp_current_time(X509_get0_notBefore(certificate.get())) > 0) {
    return fail(
        ErrorCode::kBadInput,
        path + ": is not yet valid; set the clock of this host, or of the one that made it");
  }
  return {};
}

std::string stamp_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) status = {};
  return fmt::format("{}:{}:{}.{} ", status.st_ino, status.st_size, status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec);
}

Result<void> check_key(const std::string& path, const Identity& identity) {
  const ReadKey key = key_of(identity.key);
  if (key == nullptr) {
    return fail(ErrorCode::kBadInput, path + ".key: is no private key, or is one with a password");
  }
  if (X509_check_private_key(certificate_of(identity.certificate).get(), key.get()) != 1) {
    return fail(
        ErrorCode::kBadInput,
        fmt::format("{}.key: is not the key of {}.pem; copy both from one lab", path, path));
  }
  return {};
}

}  // namespace

Result<Identity> read_identity(const std::string& directory, const std::string& who) {
  Identity identity;
  const std::string own = directory + "/" + who;
  const std::string ca = directory + "/ca.pem";
  for (const auto& [path, text, secret] :
       {std::tuple{ca, &identity.ca, false}, std::tuple{own + ".pem", &identity.certificate, false},
        std::tuple{own + ".key", &identity.key, true}}) {
    auto read = read_file(path, secret);
    if (!read) return pass_on(read);
    *text = std::move(*read);
  }
  if (auto good = check_dates(ca, identity.ca); !good) return pass_on(good);
  if (auto good = check_dates(own + ".pem", identity.certificate); !good) return pass_on(good);
  if (auto good = check_key(own, identity); !good) return pass_on(good);
  return identity;
}

std::string fingerprint_of(const std::string& pem) {
  const ReadCertificate certificate = certificate_of(pem);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned length = 0;
  if (certificate == nullptr ||
      X509_digest(certificate.get(), EVP_sha256(), digest.data(), &length) != 1) {
    return {};
  }
  std::string digits;
  for (unsigned i = 0; i < length; ++i) digits += fmt::format("{:02x}", digest[i]);
  return digits;
}

Result<std::string> read_certificate(const std::string& path) {
  struct stat status {};
  auto text = bytes_in(path, status);
  if (!text) {
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  }
  return std::move(*text);
}

Result<std::set<std::string>> read_revoked(const std::string& directory) {
  std::set<std::string> revoked;
  struct stat status {};
  const auto text = bytes_in(directory + "/revoked", status);
  if (!text && errno == ENOENT) return revoked;
  if (!text) {
    return fail(ErrorCode::kBadInput,
                fmt::format("{}/revoked: cannot be read: {}; without it nobody can be trusted",
                            directory, std::strerror(errno)));
  }
  std::istringstream lines(*text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    line.erase(std::min(line.find('#'), line.size()));
    line.erase(
        std::remove_if(line.begin(), line.end(),
                       [](char c) { return c == ' ' || c == '\t' || c == ':' || c == '\r'; }),
        line.end());
    if (line.empty()) continue;
    std::transform(line.begin(), line.end(), line.begin(),
                   [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c; });
    if (line.size() != kFingerprintDigits ||
        line.find_first_not_of("0123456789abcdef") != std::string::npos) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("{}/revoked: line {}: is not the SHA-256 fingerprint of a "
                              "certificate (64 hexadecimal digits)",
                              directory, number));
    }
    revoked.insert(line);
  }
  return revoked;
}

std::string stamp_of_identity(const std::string& directory) {
  return stamp_of(directory + "/ca.pem") + stamp_of(directory + "/agent.pem") +
         stamp_of(directory + "/agent.key");
}

std::string stamp_of_revoked(const std::string& directory) {
  return stamp_of(directory + "/revoked");
}

}  // namespace greynic::agent
