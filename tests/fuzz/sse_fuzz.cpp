// The bytes of one response: any bytes are survived, and any split of the same bytes at one time gives the same record.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "instruments/load/recorder.hpp"

namespace {

using campaign::load::RequestRecord;

std::string read_in_pieces(std::string_view bytes, std::uint32_t seed, bool reset) {
    campaign::load::Recorder recorder{true};
    while (!bytes.empty() && !recorder.finished()) {
        std::size_t piece = bytes.size();
        if (seed != 0) {
            seed = seed * 1664525U + 1013904223U;
            piece = 1U + (seed >> 16U) % 23U;
        }
        const std::string_view now = bytes.substr(0, piece);
        recorder.bytes(now, 1000);
        bytes.remove_prefix(now.size());
    }
    if (!recorder.finished()) recorder.closed(1000, reset);
    if (!recorder.finished()) std::abort();
    RequestRecord record = recorder.take();
    record.connection_reusable = false;   // bytes after [DONE] are drained by whoever reads, not here
    return boost::json::serialize(campaign::load::to_json(record));
}

}   // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const bool reset = (data[0] & 1U) != 0;
    const bool body_only = (data[0] & 2U) != 0;
    std::string bytes = body_only ? "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" : "";
    bytes.append(reinterpret_cast<const char*>(data) + 2, size - 2);
    const std::string whole = read_in_pieces(bytes, 0, reset);
    const std::string pieces = read_in_pieces(bytes, data[1] + 1U, reset);
    if (whole != pieces) std::abort();
    return 0;
}
