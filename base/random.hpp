#pragma once
// The seam to randomness: nonces, names and jitter come from here, so that a simulation can replay them.

#include <cstdint>
#include <string>

namespace campaign {

class Random {
public:
    virtual ~Random() = default;
    virtual std::uint64_t next() = 0;

    /// 2*bytes hexadecimal digits.
    std::string hex(std::size_t bytes);
    /// Uniform in [0, 1).
    double unit();
};

/// getrandom(2).
class SystemRandom final : public Random {
public:
    std::uint64_t next() override;
};

}   // namespace campaign
