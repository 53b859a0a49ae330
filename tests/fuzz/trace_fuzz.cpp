// Any bytes at all as a trace file: Kineto JSON, gzip, an nsys export. Whatever it is, what is kept obeys its own rules, and
// JSON means the same whole, in windows of a few bytes, and as gzip.
//
// In CMakeLists.txt: fuzz_target(trace USES trace base)
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "instruments/trace/kineto.hpp"
#include "instruments/trace/nsys.hpp"
#include "instruments/trace/steps.hpp"
#include "instruments/trace/summary.hpp"
#include "instruments/trace/trace.hpp"

namespace {

using namespace campaign::trace;

void must(bool holds) {
    if (!holds) std::abort();
}

/// A file in memory, for what is read by path.
class MemoryFile {
public:
    explicit MemoryFile(std::string_view content) : fd_{::memfd_create("trace", MFD_CLOEXEC)} {
        must(fd_ >= 0);
        while (!content.empty()) {
            const ssize_t written = ::write(fd_, content.data(), content.size());
            must(written > 0);
            content.remove_prefix(static_cast<std::size_t>(written));
        }
    }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;
    ~MemoryFile() { ::close(fd_); }
    [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

private:
    int fd_;
};

Recording read_in(const MemoryFile& file, std::size_t window) {
    campaign::Result<ByteSource> source = ByteSource::open(file.path());
    must(source.has_value());
    return read_kineto(*source, window);
}

std::string gzip(std::string_view content) {
    z_stream stream{};
    constexpr int with_gzip_header = 15 + 16;
    must(deflateInit2(&stream, 1, Z_DEFLATED, with_gzip_header, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    std::string out(deflateBound(&stream, content.size()) + 64, '\0');
    std::string in{content};
    stream.next_in = reinterpret_cast<unsigned char*>(in.data());
    stream.avail_in = static_cast<uInt>(in.size());
    stream.next_out = reinterpret_cast<unsigned char*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    must(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

void must_be_same(const Recording& a, const Recording& b) {
    must(a.events == b.events && a.kernels == b.kernels && a.bad_events == b.bad_events);
    must(a.negative == b.negative && a.without_time == b.without_time);
    must(a.rank == b.rank && a.world_size == b.world_size);
    must(a.notes == b.notes && a.faults == b.faults);
    must(a.gpu.size() == b.gpu.size() && a.launches.size() == b.launches.size());
    for (std::size_t i = 0; i < a.gpu.size(); ++i) must(a.gpu[i].start == b.gpu[i].start && a.gpu[i].end == b.gpu[i].end);
}

void must_hold(const Recording& recording, const Taxonomy& taxonomy) {
    for (const GpuEvent& event : recording.gpu) must(event.end >= event.start);
    const Steps steps = assign_steps(recording);
    must(steps.of_event.size() == recording.gpu.size());
    for (const DeviceSummary& device : summarize(recording, steps, taxonomy)) {
        must(device.busy >= 0 && device.busy <= device.span);
        for (const Share& share : device.categories) must(share.covered <= device.busy && share.in_decode >= 0);
    }
}

}   // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const Taxonomy taxonomy;
    const std::string_view content{reinterpret_cast<const char*>(data), size};
    const MemoryFile file{content};
    if (is_sqlite(file.path())) {
        if (const campaign::Result<Recording> recording = read_nsys(file.path())) must_hold(*recording, taxonomy);
        return 0;
    }
    const Recording whole = read_in(file, Document::usual_window);
    must_hold(whole, taxonomy);
    const std::size_t few = size == 0 ? 1 : 1 + data[size / 2] % 61;
    must_be_same(whole, read_in(file, few));
    if (!content.starts_with("\x1f\x8b")) must_be_same(whole, read_in(MemoryFile{gzip(content)}, Document::usual_window));
    return 0;
}
