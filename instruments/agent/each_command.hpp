#pragma once
// One function a command; `words` are what follows the command's name.

#include <atomic>
#include <iosfwd>
#include <span>
#include <string>

namespace campaign::agent {

using Words = std::span<const std::string>;

[[nodiscard]] int load_command(Words words, std::ostream& out, std::ostream& err, const std::atomic<bool>& stop);
[[nodiscard]] int analyze_command(Words words, std::ostream& out, std::ostream& err);
[[nodiscard]] int check_command(Words words, std::ostream& out, std::ostream& err);
[[nodiscard]] int startup_command(Words words, std::ostream& out, std::ostream& err);
[[nodiscard]] int micro_command(Words words, std::ostream& out, std::ostream& err);

[[nodiscard]] int wrong_usage(std::ostream& err, const std::string& why);

}   // namespace campaign::agent
