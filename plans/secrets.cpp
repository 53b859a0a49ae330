#include "plans/secrets.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.hpp"

namespace campaign::plans {
namespace {

bool alnum(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

bool token_char(char c) {
    return alnum(c) || c == '_' || c == '-';
}

struct Prefix {
    std::string_view text;
    std::string_view what;
};

constexpr std::array prefixes{
    Prefix{"hf_", "a Hugging Face token"},   Prefix{"sk-", "an API key"},         Prefix{"nvapi-", "an NVIDIA API key"},
    Prefix{"ghp_", "a GitHub token"},        Prefix{"gho_", "a GitHub token"},    Prefix{"ghs_", "a GitHub token"},
    Prefix{"github_pat_", "a GitHub token"}, Prefix{"glpat-", "a GitLab token"},  Prefix{"xoxb-", "a Slack token"},
    Prefix{"xoxp-", "a Slack token"},        Prefix{"AKIA", "an AWS access key"}, Prefix{"eyJ", "a JSON web token"},
};

/// Real tokens are long, or at least mix in digits; `hf_models` and `sk-learn` are words.
bool random_enough(std::string_view rest) {
    const auto digits = std::count_if(rest.begin(), rest.end(), [](char c) { return c >= '0' && c <= '9'; });
    return rest.size() >= 20 || (rest.size() >= 6 && digits > 0);
}

void find_tokens(std::string_view line, std::vector<Span>& found) {
    for (std::size_t i = 0; i < line.size();) {
        if (!token_char(line[i])) {
            ++i;
            continue;
        }
        std::size_t end = i;
        while (end < line.size() && token_char(line[end])) ++end;
        const std::string_view word = line.substr(i, end - i);
        for (const Prefix& prefix : prefixes) {
            if (word.starts_with(prefix.text) && random_enough(word.substr(prefix.text.size()))) {
                if (prefix.text == "eyJ" && word.size() < 20) continue;
                if (prefix.text == "eyJ")
                    while (end < line.size() && (token_char(line[end]) || line[end] == '.')) ++end;
                found.push_back({i, end - i, std::string{prefix.what}});
                break;
            }
        }
        i = end;
    }
}

void find_bearer(std::string_view line, std::vector<Span>& found) {
    for (std::size_t at = line.find("earer "); at != std::string_view::npos; at = line.find("earer ", at + 1)) {
        if (at == 0 || (line[at - 1] != 'B' && line[at - 1] != 'b')) continue;
        std::size_t begin = at + 6;
        while (begin < line.size() && line[begin] == ' ') ++begin;
        std::size_t end = begin;
        while (end < line.size() && !std::isspace(static_cast<unsigned char>(line[end])) && line[end] != '"' &&
               line[end] != '\'')
            ++end;
        if (end - begin >= 6 && line[begin] != '$') found.push_back({begin, end - begin, "a bearer token"});
    }
}

void find_url_passwords(std::string_view line, std::vector<Span>& found) {
    for (std::size_t at = line.find("://"); at != std::string_view::npos; at = line.find("://", at + 3)) {
        const std::size_t begin = at + 3;
        const std::size_t end = std::min(line.find_first_of("/ \t\"'", begin), line.size());
        const std::string_view authority = line.substr(begin, end - begin);
        const std::size_t host = authority.rfind('@');
        const std::size_t colon = authority.find(':');
        if (host == std::string_view::npos || colon == std::string_view::npos || colon >= host) continue;
        if (host - colon > 1) found.push_back({begin + colon + 1, host - colon - 1, "a password in a URL"});
    }
}

void find_options(std::string_view line, std::vector<Span>& found) {
    std::size_t end = 0;
    for (std::size_t at = line.find("--"); at != std::string_view::npos; at = line.find("--", end)) {
        end = at + 2;
        while (end < line.size() && token_char(line[end])) ++end;
        if (!option_takes_secret(line.substr(at, end - at))) continue;
        std::size_t begin = end;   // over what separates arguments in a list, a shell text or an assignment
        while (begin < line.size() && std::string_view{" =,\"'\t"}.find(line[begin]) != std::string_view::npos) ++begin;
        if (begin == end || begin >= line.size()) continue;
        std::size_t stop = begin;
        while (stop < line.size() && std::string_view{" ,\"'\t]}"}.find(line[stop]) == std::string_view::npos) ++stop;
        if (stop > begin && line[begin] != '$' && line[begin] != '-')
            found.push_back({begin, stop - begin, "a secret after its option"});
    }
}

std::string upper(std::string_view text) {
    std::string out{text};
    for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return out;
}

}   // namespace

bool begins_private_key(std::string_view line) {
    const std::size_t at = line.find("-----BEGIN ");
    return at != std::string_view::npos && line.find("PRIVATE KEY", at) != std::string_view::npos;
}

bool ends_private_key(std::string_view line) {
    const std::size_t at = line.find("-----END ");
    return at != std::string_view::npos && line.find("PRIVATE KEY", at) != std::string_view::npos;
}

std::vector<Span> find_secrets(std::string_view line) {
    std::vector<Span> found;
    if (begins_private_key(line)) {
        const std::size_t begin = line.find("-----BEGIN ");
        found.push_back({begin, line.size() - begin, "a private key"});
    }
    find_tokens(line, found);
    find_bearer(line, found);
    find_url_passwords(line, found);
    find_options(line, found);
    std::ranges::stable_sort(found, {}, &Span::begin);
    std::vector<Span> apart;
    for (Span& span : found) {
        if (!apart.empty() && span.begin < apart.back().begin + apart.back().size) {
            apart.back().size = std::max(apart.back().size, span.begin + span.size - apart.back().begin);
        } else {
            apart.push_back(std::move(span));
        }
    }
    return apart;
}

std::vector<Span> find_assigned(std::string_view line) {
    std::vector<Span> found;
    for (std::size_t i = 0; i < line.size();) {
        if (!token_char(line[i])) {
            ++i;
            continue;
        }
        std::size_t end = i;
        while (end < line.size() && token_char(line[end])) ++end;
        const std::string_view word = line.substr(i, end - i);
        i = end;
        if (word.size() > 100 || !names_a_secret(word)) continue;
        std::size_t at = line.find_first_not_of("\"' ", end);
        if (at == std::string_view::npos || (line[at] != ':' && line[at] != '=')) continue;
        at = line.find_first_not_of(' ', at + 1);
        if (at == std::string_view::npos || line[at] == '{' || line[at] == '$') continue;
        const bool quoted = line[at] == '"' || line[at] == '\'';   // a quoted value may hold what ends a plain one
        end = std::min(quoted ? line.find(line[at], at + 1) : line.find_first_of(",}]", at), line.size());
        found.push_back({at, end - at, "a secret"});
        i = end;
    }
    return found;
}

bool names_a_secret(std::string_view variable) {
    const std::vector<std::string> parts = split(upper(variable), '_');
    if (parts.empty()) return false;
    if (parts.back() == "FILE" || parts.back() == "PATH" || parts.back() == "DIR") return false;
    static constexpr std::array<std::string_view, 7> ends{"TOKEN",  "KEY",        "SECRET",     "PASSWORD",
                                                          "PASSWD", "PASSPHRASE", "CREDENTIALS"};
    return std::ranges::any_of(parts, [](const std::string& part) {
        return std::ranges::any_of(ends, [&](std::string_view end) { return part.ends_with(end); });
    });
}

bool option_takes_secret(std::string_view argument) {
    if (!argument.starts_with("-")) return false;
    argument.remove_prefix(argument.find_first_not_of('-') == std::string_view::npos ? argument.size()
                                                                                     : argument.find_first_not_of('-'));
    std::string name = upper(argument.substr(0, argument.find('=')));
    std::ranges::replace(name, '-', '_');
    static constexpr std::array<std::string_view, 10> names{"API_KEY", "HF_TOKEN",   "TOKEN",  "PASSWORD",     "PASSWD",
                                                            "SECRET",  "AUTH_TOKEN", "APIKEY", "ACCESS_TOKEN", "SECRET_KEY"};
    return std::ranges::find(names, name) != names.end();
}

std::string shown(std::string_view text, std::size_t limit) {
    std::string masked{text.substr(0, 4096)};
    for (const Span& span : find_secrets(masked))
        std::fill_n(masked.begin() + static_cast<std::ptrdiff_t>(span.begin), span.size, '*');
    return printable(masked, limit);
}

}   // namespace campaign::plans
