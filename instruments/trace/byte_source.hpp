#pragma once
// The bytes of a trace file, inflated where it is gzip, in pieces.

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace campaign::trace {

class ByteSource {
public:
    /// Opens the file; whether it is gzip is seen from its first two bytes, not from its name.
    [[nodiscard]] static Result<ByteSource> open(const std::filesystem::path& file);
    ~ByteSource();
    ByteSource(ByteSource&&) noexcept;
    ByteSource& operator=(ByteSource&&) noexcept;

    /// Up to `size` bytes; 0 at the end, also where a damaged gzip stream can be read no further.
    [[nodiscard]] std::size_t read(char* into, std::size_t size);

    [[nodiscard]] bool compressed() const;
    /// What was wrong so far: "gzip_truncated", "gzip_bad_crc", "gzip_corrupt", "gzip_trailing_garbage", "read_error".
    [[nodiscard]] const std::vector<std::string>& notes() const;

private:
    struct State;
    explicit ByteSource(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}   // namespace campaign::trace
