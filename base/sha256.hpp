#pragma once
// SHA-256, the name of every artifact.

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace campaign {

class Sha256 {
public:
    Sha256();
    ~Sha256();
    Sha256(Sha256&&) noexcept;
    Sha256& operator=(Sha256&&) noexcept;

    void update(std::string_view bytes);
    /// 64 lower-case hexadecimal digits. The object is spent afterwards.
    [[nodiscard]] std::string finish();

private:
    struct State;
    std::unique_ptr<State> state_;
};

[[nodiscard]] std::string sha256(std::string_view bytes);
/// Of a file's content; fails with io or not_found.
[[nodiscard]] Result<std::string> sha256_file(const std::filesystem::path& file);

}   // namespace campaign
