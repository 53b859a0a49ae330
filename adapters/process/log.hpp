#pragma once
// Turns the lines of the tail script into log lines with their positions.

#include <optional>
#include <string_view>

#include "adapters/process/facts.hpp"

namespace campaign::process {

/// Fed with each line of the script; gives a log line for each line of the log, and one of its own, `from_manager`, where
/// lines may be missing.
class TailReader {
public:
    [[nodiscard]] std::optional<host::LogLine> feed(std::string_view line);

private:
    LogPosition at_;
};

/// The answer of the position script: the place at the end of the file.
[[nodiscard]] std::optional<LogPosition> parse_place(std::string_view output);

}   // namespace campaign::process
