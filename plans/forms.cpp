#include "plans/forms.hpp"

#include <regex>

namespace campaign::plans {

struct Forms::Pattern {
    std::regex regex;
};

Forms::Forms() = default;
Forms::~Forms() = default;

bool Forms::match(const std::string& text, const Form& form) {
    if (text.size() > longest_text) return false;   // std::regex needs stack for each character
    std::unique_ptr<Pattern>& pattern = patterns_[form.pattern.data()];
    if (pattern == nullptr)
        pattern = std::make_unique<Pattern>(Pattern{std::regex{form.pattern.begin(), form.pattern.end()}});
    return std::regex_match(text, pattern->regex);
}

}   // namespace campaign::plans
