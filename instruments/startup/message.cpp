#include "instruments/startup/message.hpp"

#include <cctype>

#include "base/text.hpp"

namespace campaign::startup {
namespace {

bool is_digit(char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

void note(Message& message, Stamp::Form form, std::string_view text) {
    if (message.stamp.empty()) message.stamp = Stamp{form, text};
}

bool is_dated(std::string_view text) {
    return text.size() > 19 && is_digit(text[0]) && is_digit(text[3]) && text[4] == '-' && text[7] == '-' &&
           (text[10] == 'T' || text[10] == ' ') && text[13] == ':' && text[16] == ':';
}

/// "2026-08-18T14:11:37+00:00 gpu-node python3[30112]: ", "Aug 18 14:11:37 gpu-node python3[30112]: ", "... gpu-node kernel:
/// ". Also what docker and Kubernetes put in front: "2026-08-18T14:11:37.123456789Z ", "... stderr F ".
bool strip_journal(Message& message) {
    std::string_view& text = message.text;
    const bool iso = is_dated(text) && text[10] == 'T';
    const bool classic = text.size() > 16 && std::isupper(static_cast<unsigned char>(text[0])) != 0 && text[3] == ' ' &&
                         text[9] == ':' && text[12] == ':' && text[15] == ' ';
    if (!iso && !classic) return false;
    const std::size_t host = iso ? text.find(' ') : 15;
    if (host == std::string_view::npos || host > 40) return false;
    const std::size_t program = text.find(' ', host + 1);
    const std::size_t end = program == std::string_view::npos ? program : text.find(": ", program);
    const std::size_t last = program == std::string_view::npos ? program : text.find_first_of(" ", program + 1);
    const std::string_view name = program == std::string_view::npos ? std::string_view{} : text.substr(program + 1);
    const bool journal =
        end != std::string_view::npos && end + 1 == last && (text[end - 1] == ']' || name.starts_with("kernel:"));
    const bool bare =
        !journal && last == std::string_view::npos && name.size() > 2 && name.ends_with("]:");   // an empty line
    if (journal || bare) {
        note(message, iso ? Stamp::Form::dated : Stamp::Form::classic, text.substr(0, host));
        message.by_systemd = name.starts_with("systemd[");
        message.by_kernel = name.starts_with("kernel:");
        text = journal ? trim(text.substr(end + 2)) : std::string_view{};
        return true;
    }
    const std::string_view stamp = text.substr(0, host);
    if (!iso || !stamp.ends_with('Z')) return false;
    note(message, Stamp::Form::dated, stamp);
    text = trim(text.substr(host + 1));
    for (const std::string_view stream : {"stdout F ", "stderr F ", "stdout P ", "stderr P "})
        if (text.starts_with(stream)) text = trim(text.substr(stream.size()));
    return true;
}

/// "vllm-1     | ".
bool strip_container(std::string_view& text, std::string_view& container) {
    const std::size_t bar = text.find(" | ");
    if (bar == std::string_view::npos || bar > 64) return false;
    const std::string_view name = trim(text.substr(0, bar));
    for (const char c : name)
        if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_' && c != '.') return false;
    const std::size_t dash = name.rfind('-');   // compose numbers its containers; a bar of "5% Completed | 1/9" is none
    if (dash == std::string_view::npos || dash + 1 == name.size() || !is_digit(name.back())) return false;
    container = name;
    text = trim(text.substr(bar + 3));
    return true;
}

/// "(Worker_TP0 pid=260) ", "[2026-07-14 08:14:02 TP0] ", "[12/01/2026-10:10:10] [TRT-LLM] [I] ", "0.13.230.736 W ".
bool strip_process(Message& message) {
    std::string_view& text = message.text;
    if (text.starts_with('(')) {
        const std::size_t close = text.find(") ");
        const std::size_t pid = text.find(" pid=");
        if (close == std::string_view::npos || pid == std::string_view::npos || pid > close) return false;
        text = trim(text.substr(close + 1));
        return true;
    }
    if (text.size() > 21 && text[0] == '[' && is_dated(text.substr(1))) {
        const std::size_t close = text.find("] ");
        if (close == std::string_view::npos || close > 60) return false;
        note(message, Stamp::Form::dated, text.substr(1, 19));
        text = trim(text.substr(close + 1));
        return true;
    }
    if (text.size() > 21 && text[0] == '[' && is_digit(text[1]) && text[3] == '/' && text[6] == '/' && text[11] == '-' &&
        text[20] == ']') {
        note(message, Stamp::Form::american, text.substr(1, 19));
        text = trim(text.substr(21));
        return true;
    }
    if (text.starts_with("[TRT-LLM] [") || text.starts_with("[TensorRT-LLM][")) {
        const std::size_t close = text.find("] ", 10);
        if (close == std::string_view::npos || close > 40) return false;
        text = trim(text.substr(close + 1));
        return true;
    }
    // llama-server since 2026: minutes.seconds.milliseconds.microseconds LEVEL.
    if (text.size() > 14 && is_digit(text[0])) {
        const std::size_t blank = text.find(' ');
        if (blank == std::string_view::npos || blank < 10 || blank > 18 || text.size() < blank + 3 ||
            text[blank + 2] != ' ' || std::string_view{"DIWE"}.find(text[blank + 1]) == std::string_view::npos)
            return false;
        if (text[blank - 4] != '.' || text[blank - 8] != '.' || text[blank - 11] != '.' || blank < 12) return false;
        note(message, Stamp::Form::relative, text.substr(0, blank));
        text = trim(text.substr(blank + 2));
        return true;
    }
    return false;
}

/// "INFO 08-18 14:11:41 [api_utils.py:345] " and uvicorn's "INFO:     ".
void strip_level(Message& message) {
    std::string_view& text = message.text;
    for (const std::string_view level : {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}) {
        if (!text.starts_with(level)) continue;
        const std::string_view rest = text.substr(level.size());
        if (rest.starts_with(':')) {
            text = trim(rest.substr(1));
        } else if (rest.size() > 16 && rest[0] == ' ' && is_digit(rest[1]) && rest[3] == '-') {
            note(message, Stamp::Form::yearless, rest.substr(1, 14));
            const std::size_t bracket = rest.find(']');
            text = trim(rest[15] == ' ' && rest.substr(16).starts_with('[') && bracket != std::string_view::npos
                            ? rest.substr(bracket + 1)
                            : rest.substr(15));
        }
        return;
    }
}

}   // namespace

Message message_of(std::string_view line) {
    Message message;
    message.text = trim(line);
    while (strip_journal(message) || strip_container(message.text, message.container) || strip_process(message)) {
    }
    strip_level(message);
    // Ray and Python's own logging.
    if (message.stamp.empty() && is_dated(message.text)) note(message, Stamp::Form::dated, message.text.substr(0, 23));
    return message;
}

}   // namespace campaign::startup
