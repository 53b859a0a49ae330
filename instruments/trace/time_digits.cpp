#include "instruments/trace/time_digits.hpp"

#include <charconv>

namespace campaign::trace {
namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

}   // namespace

std::optional<Nanoseconds> nanoseconds_from_microseconds(std::string_view digits) {
    std::size_t at = 0;
    const bool negative = digits.starts_with('-');
    if (negative || digits.starts_with('+')) ++at;

    std::size_t end = digits.find_first_of("eE", at);
    int exponent = 3;   // micro to nano
    if (end != std::string_view::npos) {
        std::string_view power = digits.substr(end + 1);
        if (power.starts_with('+')) power.remove_prefix(1);
        int read = 0;
        const auto [stop, error] = std::from_chars(power.data(), power.data() + power.size(), read);
        if (error != std::errc{} || stop != power.data() + power.size() || read > 30 || read < -30) return std::nullopt;
        exponent += read;
    } else {
        end = digits.size();
    }

    Nanoseconds value = 0;
    bool any = false;
    bool fraction = false;
    const auto take = [&value](int digit) {
        return !__builtin_mul_overflow(value, Nanoseconds{10}, &value) &&
               !__builtin_add_overflow(value, Nanoseconds{digit}, &value);
    };
    for (; at < end; ++at) {
        const char c = digits[at];
        if (c == '.' && !fraction) {
            fraction = true;
            continue;
        }
        if (!is_digit(c)) return std::nullopt;
        any = true;
        if (fraction && exponent <= 0) continue;   // beyond nanoseconds
        if (!take(c - '0')) return std::nullopt;
        if (fraction) --exponent;
    }
    if (!any) return std::nullopt;
    for (; exponent > 0; --exponent)
        if (!take(0)) return std::nullopt;
    for (; exponent < 0; ++exponent) value /= 10;
    return negative ? -value : value;
}

}   // namespace campaign::trace
