#pragma once
// systemd's own ways of writing: unit names, quoted words, key=value answers, spans of time.
//
// The quoting rules are those of systemd.service(5), systemd.syntax(7) and systemd.exec(5), checked against systemd 252:
// quotes count anywhere in a word, C escapes work in both kinds of quotes, '%' starts a specifier, '$' a variable.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace campaign::systemd {

/// Letters, digits and ":_.@-\" with the suffix .service, at most 255 bytes, not beginning with '-' or '.'.
[[nodiscard]] bool valid_unit(std::string_view unit);

/// The unit's D-Bus object: everything but letters and digits becomes _XX.
[[nodiscard]] std::string object_path(std::string_view unit);

/// One word of an ExecStart= or Environment= line that systemd reads back as exactly these bytes, with '%' doubled and '$'
/// left alone: a word that came from D-Bus keeps the variables that its writer meant.
[[nodiscard]] std::string quote_word(std::string_view word);

/// The words joined by blanks.
[[nodiscard]] std::string quote_words(std::span<const std::string> words);

/// Each '$' doubled, for words that systemd must not expand.
[[nodiscard]] std::string literal_dollars(std::string_view word);

/// The words that systemd makes of a line: quotes removed, C escapes resolved, "%%" halved. nullopt where systemd would
/// refuse the line (unbalanced quote) and for any specifier other than "%%", whose value only systemd knows.
[[nodiscard]] std::optional<std::vector<std::string>> split_words(std::string_view line);

/// `systemctl show`: KEY=VALUE lines; of a key that comes several times (ExecStart, EnvironmentFiles) the values are
/// joined by newlines.
using Properties = std::map<std::string, std::string>;
[[nodiscard]] Properties parse_show(std::string_view text);
/// The value, or "" when there is none.
[[nodiscard]] std::string property(const Properties& properties, const std::string& key);
[[nodiscard]] std::uint64_t number(const Properties& properties, const std::string& key);

/// "1min 30s", "infinity", "100ms" in microseconds; infinity and what cannot be read are UINT64_MAX and nullopt.
[[nodiscard]] std::optional<std::uint64_t> parse_span(std::string_view text);

/// One command of a unit as D-Bus gives it: exact words, specifiers expanded, '$' as written.
struct ExecCommand {
    std::string path;
    std::vector<std::string> argv;
    std::vector<std::string> flags;   ///< ignore-failure, no-env-expand, privileged, no-setuid, ambient
};
/// The answer of `busctl --json=short get-property ... ExecStartEx`.
[[nodiscard]] Result<std::vector<ExecCommand>> parse_exec(std::string_view busctl_json);

/// "-", ":", "+", "!", "!!" and "@" as they stand before the program in the unit file.
[[nodiscard]] std::string exec_prefix(const std::vector<std::string>& flags, bool own_argv0);

}   // namespace campaign::systemd
