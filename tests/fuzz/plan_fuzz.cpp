// Any bytes at all: a plan or diagnostics that can be printed, never a crash, and never an empty list of what is wrong.
#include <cstdint>
#include <cstdlib>

#include "plans/parse.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view yaml{reinterpret_cast<const char*>(data), size};
    const auto result = campaign::plans::parse(yaml);
    if (const auto* wrong = std::get_if<campaign::plans::Diagnostics>(&result)) {
        if (wrong->empty()) std::abort();
        if (campaign::plans::render(*wrong, "fuzz.yaml", yaml).empty()) std::abort();
    }
    return 0;
}
