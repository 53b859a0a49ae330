#pragma once
// Is this the host we know? known_hosts files, read as sshd(8) describes them ("SSH_KNOWN_HOSTS FILE FORMAT"), with what
// libssh leaves out: @revoked, negated patterns and certificate authorities.

#include <string>
#include <string_view>
#include <vector>

namespace campaign::ssh {

struct KnownHostsFile {
    std::string path;
    std::string text;   ///< empty when there is no such file
};

enum class Trust {
    known,         ///< a line for this name has this very key
    unknown,       ///< no line for this name
    changed,       ///< a line for this name has another key of this type
    other_type,    ///< lines for this name have only keys of other types
    revoked,       ///< a @revoked line has this key
    certificate,   ///< a @cert-authority line covers this name: we cannot check certificates
};

struct TrustVerdict {
    Trust trust = Trust::unknown;
    std::size_t file = 0;                   ///< index into the files, of the line that decided
    std::size_t line = 0;                   ///< from 1; 0: no line decided
    std::vector<std::string> known_types;   ///< key types that lines for this name have, in order
};

/// The name under which a host's key is looked up: "host", or "[host]:port" where the port is not 22.
[[nodiscard]] std::string known_name(std::string_view host, int port);

/// `type` as in the file ("ssh-ed25519"), `key` in base64. Revocation wins over all, then a certificate line, then a match.
[[nodiscard]] TrustVerdict judge(const std::vector<KnownHostsFile>& files, std::string_view name, std::string_view type,
                                 std::string_view key);

}   // namespace campaign::ssh
