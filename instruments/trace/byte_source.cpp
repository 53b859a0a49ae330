#include "instruments/trace/byte_source.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace campaign::trace {

struct ByteSource::State {
    static constexpr std::size_t piece = std::size_t{1} << 18U;

    int fd = -1;
    bool gzip = false;
    bool inflating = false;
    bool ended = false;       // nothing more comes out
    bool file_done = false;   // nothing more comes in
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
    void stop(std::string_view note) {
        notes.emplace_back(note);
        ended = true;
    }
    /// After a member: another one, padding of zeros, or something that does not belong here.
    void between_members() {
        while (stream.avail_in < 2 && !file_done) fill();
        if (stream.avail_in >= 2 && stream.next_in[0] == 0x1f && stream.next_in[1] == 0x8b) {
            inflateReset(&stream);
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
    std::size_t inflated(char* into, std::size_t size) {
        stream.next_out = reinterpret_cast<unsigned char*>(into);
        stream.avail_out = static_cast<uInt>(size);
        while (!ended && stream.avail_out == size) {
            if (stream.avail_in == 0) fill();
            const int code = inflate(&stream, Z_NO_FLUSH);
            if (code == Z_STREAM_END) {
                between_members();
            } else if (code == Z_DATA_ERROR) {
                const std::string_view why = stream.msg == nullptr ? "" : stream.msg;
                stop(why == "incorrect data check" || why == "incorrect length check" ? "gzip_bad_crc" : "gzip_corrupt");
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
        constexpr int with_gzip_header = 15 + 16;
        state->stream.next_in = state->in.data();
        if (inflateInit2(&state->stream, with_gzip_header) != Z_OK)
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
