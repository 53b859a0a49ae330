#include "adapters/process/log.hpp"

#include <charconv>

#include "base/text.hpp"

namespace campaign::process {

namespace {

std::uint64_t to_number(std::string_view text) {
    std::uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

}   // namespace

std::optional<host::LogLine> TailReader::feed(std::string_view line) {
    host::LogLine result;
    if (line.starts_with("T ")) {
        at_.offset += line.size() - 1;   // "T " against the line's own end
        result.text = line.substr(2, 64u << 10);
        result.cursor = to_text(at_);
        return result;
    }
    const std::vector<std::string> fields = split(line, ' ');
    if (fields.size() != 6) return std::nullopt;
    at_ = LogPosition{fields[1], fields[2], to_number(fields[3]), fields[5], to_number(fields[4])};
    if (fields[0] != "gap") return std::nullopt;
    result.text = "the log was cut off or replaced here; lines may be missing";
    result.cursor = to_text(at_);
    result.from_manager = true;
    return result;
}

std::optional<LogPosition> parse_place(std::string_view output) {
    const std::vector<std::string> fields = split(trim(output), ' ');
    if (fields.size() != 5) return std::nullopt;
    return LogPosition{fields[0], fields[1], to_number(fields[2]), fields[4].substr(0, 16), to_number(fields[3])};
}

}   // namespace campaign::process
