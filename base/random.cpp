#include "base/random.hpp"

#include <sys/random.h>

#include <cstdlib>

namespace campaign {

std::string Random::hex(std::size_t bytes) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string text;
    text.reserve(bytes * 2);
    std::uint64_t pool = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
        if (i % 8 == 0) pool = next();
        text += digits[(pool >> 4) & 0xf];
        text += digits[pool & 0xf];
        pool >>= 8;
    }
    return text;
}

double Random::unit() {
    return static_cast<double>(next() >> 11) * 0x1.0p-53;
}

std::uint64_t SystemRandom::next() {
    std::uint64_t value = 0;
    // 8 bytes are never cut short once the pool is seeded; without randomness no nonce is safe, so there is no going on.
    if (::getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) std::abort();
    return value;
}

}   // namespace campaign
