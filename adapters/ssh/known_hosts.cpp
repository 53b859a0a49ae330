#include "adapters/ssh/known_hosts.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.hpp"

namespace campaign::ssh {

namespace {

std::string lower(std::string_view text) {
    std::string result{text};
    std::transform(result.begin(), result.end(), result.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return result;
}

/// '*' and '?' as in ssh_config(5). Linear: goes back to the last star only.
bool matches_pattern(std::string_view pattern, std::string_view name) {
    std::size_t p = 0;
    std::size_t n = 0;
    std::size_t star = std::string_view::npos;
    std::size_t resume = 0;
    while (n < name.size()) {
        if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n]) && pattern[p] != '*') {
            ++p;
            ++n;
        } else if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            resume = n;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            n = ++resume;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

/// Exactly 20 bytes in base64, as salts and HMAC-SHA1 values are; empty if it is anything else.
std::string decode_20(std::string_view text) {
    std::array<unsigned char, 24> bytes{};
    if (text.size() != 28 || text.back() != '=') return {};
    const int size =
        EVP_DecodeBlock(bytes.data(), reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
    if (size != 21) return {};
    return std::string{reinterpret_cast<const char*>(bytes.data()), 20};
}

bool matches_hashed(std::string_view field, std::string_view name) {
    const std::vector<std::string> parts = split(field.substr(3), '|');
    if (parts.size() != 2) return false;
    const std::string salt = decode_20(parts[0]);
    const std::string wanted = decode_20(parts[1]);
    if (salt.empty() || wanted.empty()) return false;
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    HMAC(EVP_sha1(), salt.data(), static_cast<int>(salt.size()), reinterpret_cast<const unsigned char*>(name.data()),
         name.size(), digest.data(), &size);
    return std::string_view{reinterpret_cast<const char*>(digest.data()), size} == wanted;
}

bool covers(std::string_view hosts, const std::string& name) {
    if (hosts.starts_with("|1|")) return matches_hashed(hosts, name);
    bool matched = false;
    for (const std::string& pattern : split(hosts, ',')) {
        const bool negated = pattern.starts_with('!');
        if (!matches_pattern(lower(std::string_view{pattern}.substr(negated ? 1 : 0)), name)) continue;
        if (negated) return false;
        matched = true;
    }
    return matched;
}

std::string_view word(std::string_view& line) {
    const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
    const std::string_view first = line.substr(0, end);
    line.remove_prefix(end);
    line = trim(line);
    return first;
}

}   // namespace

std::string known_name(std::string_view host, int port) {
    const std::string name = lower(host);
    return port == 22 ? name : "[" + name + "]:" + std::to_string(port);
}

TrustVerdict judge(const std::vector<KnownHostsFile>& files, std::string_view name, std::string_view type,
                   std::string_view key) {
    // What a line can say, strongest last.
    const auto weight = [](Trust trust) {
        switch (trust) {
            case Trust::unknown: return 0;
            case Trust::other_type: return 1;
            case Trust::changed: return 2;
            case Trust::known: return 3;
            case Trust::certificate: return 4;
            case Trust::revoked: return 5;
        }
        return 0;
    };
    const std::string looked_up = lower(name);
    TrustVerdict verdict;
    for (std::size_t file = 0; file < files.size(); ++file) {
        std::size_t number = 0;
        for (const std::string& text : split(files[file].text, '\n')) {
            ++number;
            std::string_view line = trim(text);
            if (line.empty() || line.front() == '#') continue;
            std::string_view marker;
            if (line.front() == '@') marker = word(line);
            const std::string_view hosts = word(line);
            const std::string_view line_type = word(line);
            const std::string_view line_key = word(line);
            if (line_key.empty() || !covers(hosts, looked_up)) continue;
            const bool same = line_type == type && line_key == key;
            Trust says = Trust::unknown;
            if (marker == "@revoked") {
                if (same) says = Trust::revoked;
            } else if (marker == "@cert-authority") {
                says = Trust::certificate;
            } else if (marker.empty()) {
                says = same ? Trust::known : line_type == type ? Trust::changed : Trust::other_type;
                if (std::find(verdict.known_types.begin(), verdict.known_types.end(), line_type) ==
                    verdict.known_types.end()) {
                    verdict.known_types.emplace_back(line_type);
                }
            }
            if (weight(says) > weight(verdict.trust)) {
                verdict.trust = says;
                verdict.file = file;
                verdict.line = number;
            }
        }
    }
    return verdict;
}

}   // namespace campaign::ssh
