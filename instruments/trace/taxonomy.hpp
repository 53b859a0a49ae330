#pragma once
// What sort of work a kernel is, from its name alone: under CUDA graphs there is nothing else to go by.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <memory>

namespace campaign::trace {

inline constexpr std::string_view taxonomy_version = "1";

/// The first rule whose pattern is found in the name, whatever its case, gives the category.
struct Rule {
    std::string_view category;
    std::string_view pattern;   ///< Perl syntax
};
[[nodiscard]] std::span<const Rule> taxonomy_rules();

class Taxonomy {
public:
    Taxonomy();
    ~Taxonomy();
    Taxonomy(Taxonomy&&) noexcept;
    Taxonomy& operator=(Taxonomy&&) noexcept;

    /// "comm.allreduce", "gemm", ...; "other" when no rule knows the name.
    [[nodiscard]] std::string_view category(std::string_view kernel) const;

private:
    struct Compiled;
    std::unique_ptr<Compiled> compiled_;
};

/// Work between devices or nodes: its duration holds the wait for the slowest rank.
[[nodiscard]] inline bool is_communication(std::string_view category) {
    return category.starts_with("comm.");
}

/// What people call it: "all-reduce" for comm.allreduce, "expert gemm" for moe.gemm.
[[nodiscard]] std::string_view plain_name(std::string_view category);

}   // namespace campaign::trace
