#pragma once
// The time that a line of a log begins with. Read only when somebody asks: most lines are never asked.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace campaign::startup {

/// As written, by its form. Times without a zone are those of the server's clock, whatever its zone.
class Stamp {
public:
    enum class Form : std::uint8_t {
        none,
        dated,      ///< "2026-08-18T14:11:37.123456789+00:00", "2026-07-14 08:14:02", "2025-12-12 22:28:54,573"
        american,   ///< "12/01/2026-10:10:10", trtllm-serve's
        classic,    ///< "Aug 18 14:11:37", syslog's: no year
        yearless,   ///< "08-18 14:11:41", vLLM's
        relative    ///< "1.02.466.031", llama-server's: minutes, seconds, milliseconds, microseconds since its start
    };

    Stamp() = default;
    Stamp(Form form, std::string_view text);

    [[nodiscard]] Form form() const { return form_; }
    [[nodiscard]] bool empty() const { return form_ == Form::none; }
    /// Since the server's start, not since 1970?
    [[nodiscard]] bool relative() const { return form_ == Form::relative; }
    /// Unix seconds (or seconds since the start, for relative ones); `year` is taken where none is written. nullopt: no
    /// time.
    [[nodiscard]] std::optional<double> seconds(int year) const;

private:
    Form form_ = Form::none;
    std::uint8_t size_ = 0;
    std::array<char, 36> text_{};
};

/// Seconds from one stamp to a later one; without a year on them, a later one that seems earlier is of the next year.
/// nullopt where one has no time or they are of two kinds.
[[nodiscard]] std::optional<double> seconds_between(const Stamp& from, const Stamp& to, int year);

}   // namespace campaign::startup
