#include <fmt/core.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "greynic/agent/agent.h"

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

struct Identity {
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
Result<Identity> make_identity(const std::string& name, const Identity* issuer,
                               const std::vector<std::string>& hosts) {
  Identity made;
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

Result<File> create(const std::string& path, mode_t mode) {
  // Created with its mode: a key is at no time readable by others.
  const mode_t before = umask(static_cast<mode_t>(~mode & 0777));
  File file(fopen(path.c_str(), "wx"));
  umask(before);
  if (!file) return fail(ErrorCode::kIo, path + ": cannot be created");
  return file;
}

Result<void> write_identity(const std::string& directory, const std::string& name,
                            const Identity& identity, bool with_key) {
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

}  // namespace

Result<void> create_certificates(const std::string& directory,
                                 const std::vector<std::string>& agent_names) {
  for (const std::string& name : agent_names) {
    if (name.empty() || name.find_first_of(", \n") != std::string::npos) {
      return fail(ErrorCode::kBadInput, fmt::format("'{}' is not a host name or address", name));
    }
  }
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return fail(ErrorCode::kIo, directory + ": " + error.message());
  for (const char* name : {"ca.pem", "agent.pem", "agent.key", "client.pem", "client.key"}) {
    if (std::filesystem::exists(directory + "/" + name)) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("{}/{} is there already; give an empty directory", directory, name));
    }
  }
  const auto ca = make_identity("greynic lab", nullptr, {});
  if (!ca) return pass_on(ca);
  const auto agent = make_identity("greynic agent", &*ca, agent_names);
  if (!agent) return pass_on(agent);
  const auto client = make_identity("greynic client", &*ca, {});
  if (!client) return pass_on(client);
  // The CA's key is not kept: nobody can add to this lab, a new one is made instead.
  if (auto done = write_identity(directory, "ca", *ca, false); !done) return done;
  if (auto done = write_identity(directory, "agent", *agent, true); !done) return done;
  return write_identity(directory, "client", *client, true);
}

}  // namespace greynic::agent
