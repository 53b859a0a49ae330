#include "instruments/load/ranks.hpp"

#include <math.h>

#include <algorithm>
#include <cmath>

namespace campaign::load {
namespace {

double log_factorial(double k) {
    int sign = 0;
    return ::lgamma_r(k + 1, &sign);   // std::lgamma writes a global
}

/// How many of the smallest outcomes of Bin(n, p) together have at most `share` of the probability: the largest k with
/// P(X < k) <= share. The sum begins 12 standard deviations below the mean, where nothing is left out that could count.
std::uint64_t outcomes_within(std::uint64_t n, double p, double share) {
    const double size = static_cast<double>(n);
    const double spread = std::sqrt(size * p * (1 - p));
    const double from = std::max(0.0, std::floor(size * p - 12 * spread - 12));
    double log_mass = log_factorial(size) - log_factorial(from) - log_factorial(size - from) + from * std::log(p) +
                      (size - from) * std::log1p(-p);
    const double log_odds = std::log(p) - std::log1p(-p);
    double sum = 0;
    for (double k = from; k <= size; ++k) {
        sum += std::exp(log_mass);
        if (sum > share) return static_cast<std::uint64_t>(k);
        log_mass += std::log((size - k) / (k + 1)) + log_odds;
    }
    return n;
}

}   // namespace

RankInterval rank_interval(std::uint64_t n, double quantile, double confidence) {
    RankInterval out;
    if (n == 0) return out;
    const double tail = (1 - confidence) / 2;
    // The l-th sample lies above the quantile only if fewer than l samples lie below it; and the same from the other end.
    const std::uint64_t below = outcomes_within(n, quantile, tail);
    const std::uint64_t above = outcomes_within(n, 1 - quantile, tail);
    if (below >= 1) out.low = below;
    if (above >= 1) out.high = n + 1 - above;
    return out;
}

bool certifiable(std::uint64_t n, double quantile) {
    return n > 0 && outcomes_within(n, 1 - quantile, 1 - certified_confidence) >= 2;
}

}   // namespace campaign::load
