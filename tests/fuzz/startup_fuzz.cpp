// Any bytes at all, fed whole and in pieces: the same state.
#include <cstdint>
#include <cstdlib>

#include "instruments/startup/startup.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view log{reinterpret_cast<const char*>(data), size};
    campaign::startup::Reader whole;
    whole.feed(log);
    whole.finish();
    campaign::startup::Reader pieces;
    const std::size_t piece = size == 0 ? 1 : 1 + data[0] % 37;
    for (std::size_t at = 0; at < size; at += piece) pieces.feed(log.substr(at, piece));
    pieces.finish();
    const auto& a = whole.progress();
    const auto& b = pieces.progress();
    if (a.phase != b.phase || a.outcome != b.outcome || a.percent != b.percent || a.evidence != b.evidence ||
        a.failure_kind != b.failure_kind || a.warnings != b.warnings || whole.activity() != pieces.activity())
        std::abort();
    if (a.percent && (*a.percent < 0 || *a.percent > 100)) std::abort();
    return 0;
}
