#include "instruments/startup/message.hpp"

#include <cctype>

#include "base/text.hpp"

namespace campaign::startup {
namespace {

bool is_digit(char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

/// "2026-08-18T14:11:37+00:00 gpu-node python3[30112]: " or "Aug 18 14:11:37 gpu-node python3[30112]: ".
bool strip_journal(std::string_view& text, bool& by_systemd) {
    const bool iso = text.size() > 20 && is_digit(text[0]) && text[4] == '-' && text[10] == 'T';
    const bool classic = text.size() > 16 && std::isupper(static_cast<unsigned char>(text[0])) != 0 && text[3] == ' ' &&
                         text[9] == ':' && text[12] == ':' && text[15] == ' ';
    if (!iso && !classic) return false;
    const std::size_t host = iso ? text.find(' ') : 15;
    const std::size_t program = text.find(' ', host + 1);
    if (host == std::string_view::npos || program == std::string_view::npos) return false;
    const std::size_t end = text.find("]:", program);
    if (end == std::string_view::npos || text.find(' ', program + 1) < end) return false;
    by_systemd = text.substr(program + 1).starts_with("systemd[");
    text = trim(text.substr(end + 2));
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

/// "(Worker_TP0 pid=260) " and "[2026-07-14 08:14:02 TP0] ".
bool strip_process(std::string_view& text) {
    if (text.starts_with('(')) {
        const std::size_t close = text.find(") ");
        const std::size_t pid = text.find(" pid=");
        if (close == std::string_view::npos || pid == std::string_view::npos || pid > close) return false;
        text = trim(text.substr(close + 1));
        return true;
    }
    if (text.size() > 21 && text[0] == '[' && is_digit(text[1]) && text[5] == '-' && text[11] == ' ') {
        const std::size_t close = text.find("] ");
        if (close == std::string_view::npos || close > 40) return false;
        text = trim(text.substr(close + 1));
        return true;
    }
    return false;
}

/// "INFO 08-18 14:11:41 [api_utils.py:345] " and uvicorn's "INFO:     ".
void strip_level(std::string_view& text) {
    for (const std::string_view level : {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}) {
        if (!text.starts_with(level)) continue;
        const std::string_view rest = text.substr(level.size());
        if (rest.starts_with(':')) {
            text = trim(rest.substr(1));
        } else if (rest.size() > 16 && rest[0] == ' ' && is_digit(rest[1]) && rest[3] == '-') {
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
    Message message{trim(line), {}, false};
    while (strip_journal(message.text, message.by_systemd) || strip_container(message.text, message.container) ||
           strip_process(message.text)) {
    }
    strip_level(message.text);
    return message;
}

}   // namespace campaign::startup
