#pragma once
// The commands of campaign-agent (docs/agent-files.md), apart from its main().

#include <atomic>
#include <iosfwd>
#include <span>
#include <string>

namespace campaign::agent {

inline constexpr int as_asked = 0;
inline constexpr int failed = 1;
inline constexpr int usage = 2;

/// Runs one command: `arguments` are the words after the program's name. Returns the exit status. A load run ends early,
/// with what it has, once `stop` is set.
[[nodiscard]] int run(std::span<const std::string> arguments, std::ostream& out, std::ostream& err,
                      const std::atomic<bool>& stop);
[[nodiscard]] int run(std::span<const std::string> arguments, std::ostream& out, std::ostream& err);

}   // namespace campaign::agent
