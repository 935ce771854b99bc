#include <fcntl.h>
#include <fmt/core.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "greynic/agent/agent.h"
#include "greynic/agent/lab_files.h"
#include "greynic/daemon/leases.h"
#include "greynic/daemon/log.h"

namespace greynic::agent {
namespace {

constexpr long kLifetimeSeconds = 10L * 365 * 24 * 3600;  // a lab's, not the public web's

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Deleter<X509_free>>;
using File = std::unique_ptr<FILE, Deleter<fclose>>;

struct Made {
  Key key;
  Certificate certificate;
};

tl::unexpected<Error> openssl_error(std::string_view what) {
  char text[256] = "no reason given";
  if (const unsigned long code = ERR_get_error()) ERR_error_string_n(code, text, sizeof text);
  return fail(ErrorCode::kInternal, fmt::format("OpenSSL: {}: {}", what, text));
}

bool add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, Deleter<X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool is_ip_address(const std::string& name) {
  const std::unique_ptr<ASN1_OCTET_STRING, Deleter<ASN1_OCTET_STRING_free>> octets(
      a2i_IPADDRESS(name.c_str()));
  return octets != nullptr;
}

/// A key on P-256 and a certificate for it; `issuer` null makes a CA that signs itself.
Result<Made> make_identity(const std::string& name, const Made* issuer,
                           const std::vector<std::string>& hosts) {
  Made made;
  made.key.reset(EVP_EC_gen("P-256"));
  made.certificate.reset(X509_new());
  if (!made.key || !made.certificate) return openssl_error("making a key");
  X509* certificate = made.certificate.get();
  X509_set_version(certificate, X509_VERSION_3);
  unsigned char serial[16];
  if (RAND_bytes(serial, sizeof serial) != 1) return openssl_error("making a serial number");
  serial[0] &= 0x7f;  // a serial number is positive
  const std::unique_ptr<BIGNUM, Deleter<BN_free>> number(BN_bin2bn(serial, sizeof serial, nullptr));
  BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate));
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);  // clocks of a lab differ
  X509_gmtime_adj(X509_getm_notAfter(certificate), kLifetimeSeconds);
  X509_NAME* subject = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509* signer = issuer == nullptr ? certificate : issuer->certificate.get();
  X509_set_issuer_name(certificate, X509_get_subject_name(signer));
  X509_set_pubkey(certificate, made.key.get());

  bool good = add_extension(certificate, signer, NID_basic_constraints,
                            issuer == nullptr ? "critical,CA:TRUE" : "critical,CA:FALSE");
  good = good &&
         add_extension(certificate, signer, NID_key_usage,
                       issuer == nullptr ? "critical,keyCertSign" : "critical,digitalSignature");
  if (issuer != nullptr) {
    good = good && add_extension(certificate, signer, NID_ext_key_usage,
                                 hosts.empty() ? "clientAuth" : "serverAuth");
  }
  std::string alternatives;
  for (const std::string& host : hosts) {
    if (!alternatives.empty()) alternatives += ",";
    alternatives += (is_ip_address(host) ? "IP:" : "DNS:") + host;
  }
  if (!alternatives.empty()) {
    good = good && add_extension(certificate, signer, NID_subject_alt_name, alternatives);
  }
  EVP_PKEY* signing = issuer == nullptr ? made.key.get() : issuer->key.get();
  if (!good || X509_sign(certificate, signing, EVP_sha256()) == 0) {
    return openssl_error("signing the certificate of " + name);
  }
  return made;
}

/// A new file with this mode from its first moment on, whatever the umask; never through a link.
Result<File> create(const std::string& path, mode_t mode) {
  const int descriptor =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    return fail(ErrorCode::kIo, fmt::format("{}: cannot be created: {}", path, strerror(errno)));
  }
  File file(fdopen(descriptor, "w"));
  if (!file || ::fchmod(descriptor, mode) != 0) {
    return fail(ErrorCode::kIo, path + ": cannot be written");
  }
  return file;
}

Result<void> write_identity(const std::string& directory, const std::string& name,
                            const Made& identity, bool with_key) {
  auto file = create(directory + "/" + name + ".pem", 0644);
  if (!file) return pass_on(file);
  if (PEM_write_X509(file->get(), identity.certificate.get()) != 1 || fflush(file->get()) != 0) {
    return fail(ErrorCode::kIo, directory + "/" + name + ".pem: cannot be written");
  }
  if (!with_key) return {};
  auto key = create(directory + "/" + name + ".key", 0600);
  if (!key) return pass_on(key);
  if (PEM_write_PrivateKey(key->get(), identity.key.get(), nullptr, nullptr, 0, nullptr, nullptr) !=
          1 ||
      fflush(key->get()) != 0) {
    return fail(ErrorCode::kIo, directory + "/" + name + ".key: cannot be written");
  }
  return {};
}

Result<void> check_names(const std::vector<std::string>& agents,
                         const std::vector<std::string>& clients) {
  for (const std::string& name : agents) {
    if (name.empty() || name.find_first_of(", \n") != std::string::npos) {
      return fail(ErrorCode::kBadInput, fmt::format("'{}' is not a host name or address", name));
    }
  }
  for (const std::string& name : clients) {
    constexpr std::string_view kLetters =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    constexpr std::size_t kLongest = 64;  // of a common name in a certificate
    if (name.empty() || name.size() > kLongest ||
        name.find_first_not_of(kLetters) != std::string::npos) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("'{}' is not a client's name: letters, digits, - and _",
                              daemon::plain(name)));
    }
  }
  return {};
}

/// The directory, for its owner only; one that is there already keeps what its owner gave it.
Result<void> make_directory(const std::string& path) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (::mkdir(path.c_str(), 0700) == 0) {
    // A umask of 0777 would leave nothing of it.
    if (::chmod(path.c_str(), 0700) == 0) return {};
  } else if (errno == EEXIST && std::filesystem::is_directory(path, error)) {
    return {};
  }
  return fail(ErrorCode::kIo, path + ": " + strerror(errno));
}

/// What one host or person needs: the authority, and a key with its certificate.
Result<void> write_client(const std::string& directory, const Made& ca, const std::string& name) {
  const auto client = make_identity(name, &ca, {});
  if (!client) return pass_on(client);
  return write_identity(directory, "client", *client, true);
}

Result<void> write_lab(const std::string& directory, const std::vector<std::string>& agent_names,
                       const std::vector<std::string>& client_names) {
  const auto ca = make_identity("greynic lab", nullptr, {});
  if (!ca) return pass_on(ca);
  const auto agent = make_identity("greynic agent", &*ca, agent_names);
  if (!agent) return pass_on(agent);
  // The CA's key is not kept: nobody can add to this lab, a new one is made instead.
  if (auto done = write_identity(directory, "ca", *ca, false); !done) return done;
  if (auto done = write_identity(directory, "agent", *agent, true); !done) return done;
  if (auto done = write_client(directory, *ca, "greynic client"); !done) return done;
  for (const std::string& name : client_names) {
    const std::string own = directory + "/" + name;
    if (auto done = make_directory(own); !done) return done;
    if (auto done = write_identity(own, "ca", *ca, false); !done) return done;
    if (auto done = write_client(own, *ca, name); !done) return done;
  }
  return {};
}

/// A directory beside this one, which takes its place when it is whole: who is killed meanwhile
/// leaves nothing that is in the way of the next.
std::string place_beside(const std::string& directory) {
  const std::filesystem::path parent = std::filesystem::path(directory).parent_path();
  return (parent / fmt::format(".greynic-{:016x}.tmp", daemon::unguessable_id())).string();
}

/// False where that cannot be: at a mount point, say.
bool moved_into_place(const std::string& made, const std::string& directory) {
  struct stat there {};
  return ::stat(directory.c_str(), &there) == 0 &&
         ::chmod(made.c_str(), there.st_mode & 07777) == 0 &&
         ::chown(made.c_str(), there.st_uid, there.st_gid) == 0 &&
         ::rename(made.c_str(), directory.c_str()) == 0;
}

}  // namespace

Result<void> create_certificates(const std::string& path,
                                 const std::vector<std::string>& agent_names,
                                 const std::vector<std::string>& client_names) {
  if (auto good = check_names(agent_names, client_names); !good) return good;
  std::string directory = path;
  while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  if (auto done = make_directory(directory); !done) return done;
  std::vector<std::string> made = {"ca.pem", "agent.pem", "agent.key", "client.pem", "client.key"};
  made.insert(made.end(), client_names.begin(), client_names.end());
  for (const std::string& name : made) {
    if (std::filesystem::exists(directory + "/" + name)) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("{}/{} is there already; give an empty directory", directory, name));
    }
  }
  std::error_code none;
  const bool replaceable = std::filesystem::is_empty(directory, none) &&
                           !std::filesystem::is_symlink(directory, none) &&
                           !std::filesystem::equivalent(directory, ".", none);
  if (!replaceable) return write_lab(directory, agent_names, client_names);
  const std::string beside = place_beside(directory);
  if (auto done = make_directory(beside); !done) return done;
  auto done = write_lab(beside, agent_names, client_names);
  if (done && moved_into_place(beside, directory)) return {};
  std::filesystem::remove_all(beside, none);
  return done ? write_lab(directory, agent_names, client_names) : done;
}

Result<void> revoke_certificate(const std::string& directory, const std::string& pem) {
  const auto text = read_certificate(pem);
  if (!text) return pass_on(text);
  const std::string fingerprint = fingerprint_of(*text);
  if (fingerprint.empty()) {
    return fail(ErrorCode::kBadInput,
                pem + ": is no certificate; give the client.pem or agent.pem of whom to turn away");
  }
  if (!std::filesystem::exists(directory + "/ca.pem")) {
    return fail(ErrorCode::kBadInput, directory + ": is no directory of `greynic agent init`");
  }
  const auto revoked = read_revoked(directory);
  if (!revoked) return pass_on(revoked);
  if (revoked->contains(fingerprint)) return {};
  // One write of a whole line: an agent that reads meanwhile sees it whole or not at all.
  const std::string path = directory + "/revoked";
  const std::string line = fmt::format("{}  # {}\n", fingerprint, daemon::plain(pem));
  const int out =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0644);
  const bool written =
      out >= 0 && ::write(out, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  if (out >= 0) ::close(out);
  if (!written) return fail(ErrorCode::kIo, path + ": cannot be written: " + strerror(errno));
  return {};
}

}  // namespace greynic::agent
