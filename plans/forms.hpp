#pragma once
// Texts against the forms of the description.

#include <map>
#include <memory>
#include <string>

#include "plans/description.hpp"

namespace campaign::plans {

/// Compiles each pattern when it is first needed, and once.
class Forms {
public:
    Forms();
    ~Forms();
    Forms(const Forms&) = delete;
    Forms& operator=(const Forms&) = delete;

    [[nodiscard]] bool match(const std::string& text, const Form& form);

private:
    struct Pattern;
    std::map<const char*, std::unique_ptr<Pattern>> patterns_;
};

}   // namespace campaign::plans
