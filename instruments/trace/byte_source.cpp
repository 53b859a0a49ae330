#include "instruments/trace/byte_source.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace campaign::trace {

struct ByteSource::State {
    static constexpr std::size_t piece = std::size_t{1} << 18U;
    static constexpr std::size_t smallest_member = 18;   // header and trailer

    int fd = -1;
    bool gzip = false;
    bool inflating = false;
    bool within = false;          // a member's data
    bool ended = false;           // nothing more comes out
    bool file_done = false;       // nothing more comes in
    std::uint32_t checksum = 0;   // of the member so far
    std::uint32_t length = 0;     // of the member so far, modulo 2^32
    z_stream stream{};
    std::vector<unsigned char> in = std::vector<unsigned char>(piece);
    std::vector<std::string> notes;

    State() = default;
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() {
        if (inflating) inflateEnd(&stream);
        if (fd >= 0) ::close(fd);
    }

    std::size_t from_file(void* into, std::size_t size) {
        for (;;) {
            const ssize_t got = ::read(fd, into, size);
            if (got > 0) return static_cast<std::size_t>(got);
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) notes.emplace_back("read_error");
            file_done = true;
            return 0;
        }
    }
    /// More compressed bytes behind those that are left.
    void fill() {
        if (file_done) return;
        std::copy_n(stream.next_in, stream.avail_in, in.data());
        stream.next_in = in.data();
        stream.avail_in += static_cast<uInt>(from_file(in.data() + stream.avail_in, in.size() - stream.avail_in));
    }
    /// At least `count` bytes lie ready, unless the file ends before.
    bool ready(std::size_t count) {
        while (stream.avail_in < count && !file_done) fill();
        return stream.avail_in >= count;
    }
    int next_byte() {
        if (!ready(1)) return -1;
        --stream.avail_in;
        return *stream.next_in++;
    }
    void stop(std::string_view note) {
        notes.emplace_back(note);
        ended = true;
    }
    bool skip(std::size_t count) {
        while (count-- > 0)
            if (next_byte() < 0) return false;
        return true;
    }
    bool skip_text() {
        for (int byte = next_byte(); byte != 0; byte = next_byte())
            if (byte < 0) return false;
        return true;
    }
    /// A member's header (RFC 1952): its optional fields are passed over.
    bool header() {
        const unsigned flags = stream.next_in[3];
        if (!skip(10)) return false;
        if ((flags & 4U) != 0) {
            const int low = next_byte();
            const int high = next_byte();
            if (high < 0 || !skip(static_cast<std::size_t>(low) + 256U * static_cast<std::size_t>(high))) return false;
        }
        if ((flags & 8U) != 0 && !skip_text()) return false;
        if ((flags & 16U) != 0 && !skip_text()) return false;
        return (flags & 2U) == 0 || skip(2);
    }
    /// Before a member: another one, padding of zeros, or something that does not belong here.
    void begin_member() {
        if (ready(smallest_member) && stream.next_in[0] == 0x1f && stream.next_in[1] == 0x8b) {
            if (!header()) return stop("gzip_truncated");
            inflateReset(&stream);
            checksum = 0;
            length = 0;
            within = true;
            return;
        }
        ended = true;
        for (;;) {
            const auto* const last = stream.next_in + stream.avail_in;
            if (std::any_of(static_cast<const unsigned char*>(stream.next_in), static_cast<const unsigned char*>(last),
                            [](unsigned char c) { return c != 0; })) {
                notes.emplace_back("gzip_trailing_garbage");
                return;
            }
            stream.avail_in = 0;
            fill();
            if (stream.avail_in == 0) return;
        }
    }
    /// Behind a member stand its checksum and length. What they accuse is kept all the same, and the next member may be
    /// whole.
    void end_member() {
        within = false;
        std::uint32_t sums[2] = {0, 0};
        for (std::uint32_t& sum : sums) {
            for (unsigned shift = 0; shift < 32; shift += 8) {
                const int byte = next_byte();
                if (byte < 0) return stop("gzip_truncated");
                sum |= static_cast<std::uint32_t>(byte) << shift;
            }
        }
        if (sums[0] != checksum || sums[1] != length) notes.emplace_back("gzip_bad_crc");
    }
    std::size_t inflated(char* into, std::size_t size) {
        stream.next_out = reinterpret_cast<unsigned char*>(into);
        stream.avail_out = static_cast<uInt>(size);
        while (!ended && stream.avail_out == size) {
            if (!within) {
                begin_member();
                continue;
            }
            if (stream.avail_in == 0) fill();
            const int code = inflate(&stream, Z_NO_FLUSH);
            const std::size_t got = size - stream.avail_out;
            checksum =
                static_cast<std::uint32_t>(::crc32(checksum, reinterpret_cast<const Bytef*>(into), static_cast<uInt>(got)));
            length += static_cast<std::uint32_t>(got);
            if (code == Z_STREAM_END) {
                end_member();
            } else if (code != Z_OK && code != Z_BUF_ERROR) {
                stop("gzip_corrupt");
            } else if (stream.avail_in == 0 && file_done && stream.avail_out != 0) {
                stop("gzip_truncated");
            }
        }
        return size - stream.avail_out;
    }
};

ByteSource::ByteSource(std::unique_ptr<State> state) : state_{std::move(state)} {}
ByteSource::~ByteSource() = default;
ByteSource::ByteSource(ByteSource&&) noexcept = default;
ByteSource& ByteSource::operator=(ByteSource&&) noexcept = default;

Result<ByteSource> ByteSource::open(const std::filesystem::path& file) {
    auto state = std::make_unique<State>();
    state->fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (state->fd < 0) {
        const int code = errno;
        return Error{code == ENOENT ? ErrorKind::not_found : ErrorKind::io, "cannot read " + file.string(),
                     std::strerror(code), "", ""};
    }
    std::array<unsigned char, 2> magic{};
    state->gzip = ::pread(state->fd, magic.data(), magic.size(), 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
    if (state->gzip) {
        constexpr int bare = -15;   // the members' frames are read here: behind a wrong checksum zlib would not go on
        state->stream.next_in = state->in.data();
        if (inflateInit2(&state->stream, bare) != Z_OK)
            return Error{ErrorKind::io, "cannot inflate " + file.string(), "zlib has no memory", "", ""};
        state->inflating = true;
    }
    return ByteSource{std::move(state)};
}

std::size_t ByteSource::read(char* into, std::size_t size) {
    if (state_->ended || size == 0) return 0;
    return state_->gzip ? state_->inflated(into, size) : state_->from_file(into, size);
}

bool ByteSource::compressed() const {
    return state_->gzip;
}
const std::vector<std::string>& ByteSource::notes() const {
    return state_->notes;
}

}   // namespace campaign::trace
