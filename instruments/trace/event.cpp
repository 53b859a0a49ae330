#include "instruments/trace/event.hpp"

#include <charconv>

namespace campaign::trace {
namespace {

Token* wanted(EventFacts& facts, std::string_view key) {
    switch (key.size()) {
        case 2: return key == "ph" ? &facts.phase : key == "ts" ? &facts.start : nullptr;
        case 3:
            return key == "cat"   ? &facts.category
                   : key == "dur" ? &facts.duration
                   : key == "pid" ? &facts.process
                   : key == "tid" ? &facts.thread
                                  : nullptr;
        case 4: return key == "name" ? &facts.name : nullptr;
        default: return nullptr;
    }
}

Token* wanted_argument(EventFacts& facts, std::string_view key) {
    if (key.size() == 6) return key == "device" ? &facts.device : key == "stream" ? &facts.stream : nullptr;
    return key == "correlation" ? &facts.correlation : nullptr;
}

Scan read_arguments(JsonScan& scan, EventFacts& facts);

Scan read_member(JsonScan& scan, EventFacts& facts, bool outer) {
    Token key;
    if (const Scan got = scan.key(key); got != Scan::ok) return got;
    std::string resolved;
    std::string_view name = key.raw;
    if (key.escaped) name = resolved = meaning(key);
    if (outer && name == "args") {
        facts.device = facts.stream = facts.correlation = Token{};
        if (scan.peek() == '{') return read_arguments(scan, facts);
    }
    Token other;
    Token* const token = outer ? wanted(facts, name) : wanted_argument(facts, name);
    return scan.value(token == nullptr ? other : *token);
}

Scan read_object(JsonScan& scan, EventFacts& facts, bool outer) {
    if (const Scan got = scan.take('{'); got != Scan::ok) return got;
    if (scan.peek() == '}') return scan.take('}');
    for (;;) {
        if (const Scan got = read_member(scan, facts, outer); got != Scan::ok) return got;
        if (scan.peek() != ',') return scan.take('}');
        if (const Scan got = scan.take(','); got != Scan::ok) return got;
    }
}

Scan read_arguments(JsonScan& scan, EventFacts& facts) {
    return read_object(scan, facts, false);
}

}   // namespace

Scan read_event(JsonScan& scan, EventFacts& facts) {
    facts = EventFacts{};
    return read_object(scan, facts, true);
}

std::optional<Nanoseconds> time_of(const Token& token) {
    switch (token.kind) {
        case Token::Kind::integer:
        case Token::Kind::decimal: return nanoseconds_from_microseconds(token.raw);
        case Token::Kind::text: {
            const std::string text = meaning(token);
            std::string_view digits = text;
            while (!digits.empty() && std::string_view{" \t\n\r\v\f"}.find(digits.front()) != std::string_view::npos)
                digits.remove_prefix(1);
            while (!digits.empty() && std::string_view{" \t\n\r\v\f"}.find(digits.back()) != std::string_view::npos)
                digits.remove_suffix(1);
            return nanoseconds_from_microseconds(digits);
        }
        default: return std::nullopt;
    }
}

std::string label(const Token& token) {
    switch (token.kind) {
        case Token::Kind::absent:
        case Token::Kind::null: return "None";
        case Token::Kind::yes: return "True";
        case Token::Kind::no: return "False";
        case Token::Kind::nonfinite: return "nan";
        case Token::Kind::integer: return token.raw == "-0" ? "0" : std::string{token.raw};
        case Token::Kind::text: return meaning(token);
        case Token::Kind::decimal:
        case Token::Kind::nested: return std::string{token.raw};
    }
    return {};
}

std::string identity(const Token& token) {
    switch (token.kind) {
        case Token::Kind::absent:
        case Token::Kind::null: return {};
        case Token::Kind::yes: return "1";
        case Token::Kind::no: return "0";
        case Token::Kind::integer: return label(token);
        default: return "'" + label(token);   // text and what is kept as text
    }
}

std::optional<std::int64_t> integer(const Token& token) {
    if (token.kind == Token::Kind::yes || token.kind == Token::Kind::no) return token.kind == Token::Kind::yes ? 1 : 0;
    if (token.kind != Token::Kind::integer) return std::nullopt;
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(token.raw.data(), token.raw.data() + token.raw.size(), number);
    if (error != std::errc{} || end != token.raw.data() + token.raw.size()) return std::nullopt;
    return number;
}

}   // namespace campaign::trace
