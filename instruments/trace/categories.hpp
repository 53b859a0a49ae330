#pragma once
// The category of each piece of device work, found once a name.

#include <algorithm>
#include <string_view>
#include <vector>

#include "instruments/trace/recording.hpp"
#include "instruments/trace/taxonomy.hpp"

namespace campaign::trace {

class Categories {
public:
    Categories(const Recording& recording, const Taxonomy& taxonomy)
        : recording_{recording}, taxonomy_{taxonomy}, known_(recording.names.size()) {}

    [[nodiscard]] std::string_view of(const GpuEvent& event) {
        if (event.kind == Kind::memcpy) return "memcpy";
        if (event.kind == Kind::memset) return "memset";
        return of_kernel(event.name);
    }
    [[nodiscard]] std::string_view of_kernel(std::uint32_t name) {
        std::string_view& category = known_[name];
        if (category.empty()) category = taxonomy_.category(recording_.names.text(name));
        return category;
    }

private:
    const Recording& recording_;
    const Taxonomy& taxonomy_;
    std::vector<std::string_view> known_;
};

}   // namespace campaign::trace
