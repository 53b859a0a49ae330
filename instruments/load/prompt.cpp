#include "instruments/load/prompt.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace campaign::load {
namespace {

constexpr std::array<std::string_view, 64> words = {
    "the",     "time",   "year",    "people", "way",     "day",      "man",     "thing",      "woman",  "life",  "child",
    "world",   "school", "state",   "family", "student", "group",    "country", "problem",    "hand",   "part",  "place",
    "case",    "week",   "company", "system", "program", "question", "work",    "government", "number", "night", "point",
    "home",    "water",  "room",    "mother", "area",    "money",    "story",   "fact",       "month",  "lot",   "right",
    "study",   "book",   "eye",     "job",    "word",    "business", "issue",   "side",       "kind",   "head",  "house",
    "service", "friend", "father",  "power",  "hour",    "game",     "line",    "end",        "member"};

/// splitmix64 (Steele, Lea, Flood 2014): a few cycles a word, and any state is a good one.
std::uint64_t mix(std::uint64_t& state) {
    std::uint64_t z = (state += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31U);
}

}   // namespace

std::string make_prompt(std::uint64_t seed, std::uint64_t index, std::uint32_t tokens, double ratio) {
    const double wanted = std::round(static_cast<double>(tokens) / std::clamp(ratio, 0.1, 10.0));
    const auto count = static_cast<std::uint32_t>(std::max(1.0, wanted));
    std::string text;
    text.reserve(count * 6UL);
    std::uint64_t state = seed;
    state = mix(state) ^ index;
    // The index itself, in base 64, is the beginning: unique for any two indices, however many, where the length allows it.
    std::uint64_t rest = index;
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::size_t pick = rest > 0 || i == 0 ? rest % words.size() : mix(state) % words.size();
        rest /= words.size();
        if (i > 0) text += ' ';
        text += words[pick];
    }
    return text;
}

double tokens_per_word(std::uint32_t words_sent, std::int64_t counted) {
    if (words_sent == 0 || counted <= 0) return 1.0;
    return std::clamp(static_cast<double>(counted) / static_cast<double>(words_sent), 0.1, 10.0);
}

std::string make_body(const Spec& spec, const std::string& prompt) {
    json::object body;
    body["model"] = spec.model;
    if (spec.route == Route::chat) {
        body["messages"] = json::array{json::object{{"role", "user"}, {"content", prompt}}};
    } else {
        body["prompt"] = prompt;
    }
    body["max_tokens"] = spec.output_tokens;
    body["stream"] = true;
    body["stream_options"] = json::object{{"include_usage", true}};
    body["temperature"] = 0;
    if (spec.ignore_eos) {
        body["ignore_eos"] = true;
        body["min_tokens"] = spec.output_tokens;
    }
    return json::serialize(body);
}

std::string make_request(const Spec& spec, const std::string& body, const std::string& api_key) {
    std::string out =
        "POST " + spec.url.base_path + (spec.route == Route::chat ? "/v1/chat/completions" : "/v1/completions");
    out += " HTTP/1.1\r\nHost: " + spec.url.authority;
    out += "\r\nContent-Type: application/json\r\nAccept: text/event-stream\r\nAccept-Encoding: identity\r\n";
    if (!api_key.empty()) out += "Authorization: Bearer " + api_key + "\r\n";
    out += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    return out + body;
}

}   // namespace campaign::load
