#include "instruments/load/stats.hpp"

#include <algorithm>
#include <cmath>

#include "instruments/load/ranks.hpp"

namespace campaign::load {

std::optional<double> percentile(std::span<const double> ascending, double q) {
    if (ascending.empty()) return std::nullopt;
    const double rank = std::clamp(q, 0.0, 100.0) / 100.0 * static_cast<double>(ascending.size() - 1);
    const auto below = static_cast<std::size_t>(std::floor(rank));
    const std::size_t above = std::min(below + 1, ascending.size() - 1);
    return ascending[below] + (ascending[above] - ascending[below]) * (rank - static_cast<double>(below));
}

std::optional<Summary> summarize(std::vector<double> values) {
    if (values.empty()) return std::nullopt;
    std::sort(values.begin(), values.end());
    Summary out;
    out.n = values.size();
    double sum = 0;
    for (const double value : values) sum += value;
    out.mean = sum / static_cast<double>(out.n);
    double squares = 0;
    for (const double value : values) squares += (value - out.mean) * (value - out.mean);
    out.sd = std::sqrt(squares / static_cast<double>(out.n));
    out.min = values.front();
    out.max = values.back();
    out.p50 = *percentile(values, 50);
    out.p90 = *percentile(values, 90);
    out.p95 = *percentile(values, 95);
    out.p99 = *percentile(values, 99);
    constexpr std::array quantiles{0.5, 0.9, 0.95, 0.99};
    for (std::size_t i = 0; i < quantiles.size(); ++i) {
        const RankInterval ranks = rank_interval(out.n, quantiles[i]);
        if (ranks.low) out.sure[i].low = values[*ranks.low - 1];
        if (ranks.high) out.sure[i].high = values[*ranks.high - 1];
        out.sure[i].certified = certifiable(out.n, quantiles[i]);
    }
    return out;
}

std::optional<Plateau> find_plateau(std::vector<LevelPoint> levels) {
    std::erase_if(levels, [](const LevelPoint& level) { return level.output_throughput <= 0; });
    std::sort(levels.begin(), levels.end(),
              [](const LevelPoint& a, const LevelPoint& b) { return a.concurrency < b.concurrency; });
    for (std::size_t i = 0; i < levels.size(); ++i) {
        const double enough = levels[i].output_throughput * plateau_growth;
        const auto from = levels.begin() + static_cast<std::ptrdiff_t>(i) + 1;
        if (std::any_of(from, levels.end(), [&](const LevelPoint& later) { return later.output_throughput >= enough; }))
            continue;
        return Plateau{levels[i].concurrency, levels[i].output_throughput, levels.size() - i > 2};
    }
    return std::nullopt;
}

std::optional<std::uint32_t> next_level(std::span<const LevelPoint> done, std::uint32_t max) {
    if (done.empty()) return max == 0 ? std::nullopt : std::optional<std::uint32_t>{1};
    if (done.back().concurrency >= max) return std::nullopt;
    const auto flat = [&](std::size_t i) {
        return done[i].output_throughput < done[i - 1].output_throughput * plateau_growth;
    };
    if (done.size() >= 3 && flat(done.size() - 1) && flat(done.size() - 2)) return std::nullopt;
    if (done.back().output_throughput <= 0) return std::nullopt;   // nothing succeeded: more load tells nothing
    return std::min(done.back().concurrency * 2, max);
}

}   // namespace campaign::load
