#pragma once
// One campaign changes a unit at a time, whichever daemon it belongs to: a file on the host that says who and until when.
//
// The host keeps it, so it outlives the daemon; in /run it goes with a reboot, as our drop-ins do. A time that is over does
// not free it: only its holder, or a person who gives a reason, takes it away.

#include <optional>
#include <string>
#include <string_view>

#include "adapters/host/host.hpp"

namespace campaign::host {

/// Where leases on systemd units lie; 0755, so that anybody may see who works on what.
inline constexpr const char* unit_leases = "/run/campaign-leases";

struct Lease {
    std::string token;      ///< of the one campaign that may give it back: [A-Za-z0-9.-]
    std::string holder;     ///< "campaignd on mon1"
    std::string campaign;   ///< "k25"
    std::string unit;       ///< "vllm-k25.service"
    std::string why;        ///< "deep, how-fast"
    std::string since;      ///< RFC 3339
    std::string until;      ///< when its holder means to be done at the latest
};

/// The file: the token, a line feed, the rest as one line of JSON.
[[nodiscard]] std::string lease_text(const Lease& lease);
/// Never fails: what cannot be read is a lease of somebody unknown, and is held all the same.
[[nodiscard]] Lease parse_lease(std::string_view text);
/// "campaign k24 of campaignd on mon1 (how-fast), since 22:14, until 23:50 at the latest": for people; made printable.
[[nodiscard]] std::string in_words(const Lease& lease);
/// The file's name in its folder, for a unit or service of any name.
[[nodiscard]] std::string lease_name(std::string_view unit);

/// Takes it, or takes it anew when the token has it already. The value: nothing when it is ours now, else the lease that
/// stands in the way. Errors as of write_file; safe to repeat.
Async<Result<std::optional<Lease>>> take_lease(Host& host, std::string folder, Lease lease, bool as_root);
/// Who holds it; nothing when it is free.
Async<Result<std::optional<Lease>>> read_lease(Host& host, std::string folder, std::string unit);
/// Removes it if this token has it. false: nobody, or somebody else, has it, and nothing was touched.
Async<Result<bool>> release_lease(Host& host, std::string folder, std::string unit, std::string token, bool as_root);

}   // namespace campaign::host
