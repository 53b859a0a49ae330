#pragma once
// YAML to Plan, with every error at once.

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "plans/plan.hpp"

namespace campaign::plans {

/// One thing wrong with a plan.
struct Diagnostic {
    std::string code;      ///< "P012"; campaignctl explain P012 tells more
    std::string message;   ///< "unknown key `max_downtme` in `policy`"
    int line = 0;          ///< from 1; 0: the file as a whole
    int column = 0;        ///< from 1, in characters as an editor counts them
    int width = 1;         ///< how many characters the caret line underlines
    std::string hint;      ///< "did you mean `max_downtime`?"
    std::string note;      ///< "without it the limit is 0: no restart would be allowed"
};

using Diagnostics = std::vector<Diagnostic>;

/// The plan, or everything that is wrong with the text. Never throws, whatever the bytes are.
[[nodiscard]] std::variant<Plan, Diagnostics> parse(std::string_view yaml);

/// The diagnostics as compilers print them: file, line, column, the line itself with a caret, the hint; and a last line with
/// the count. Plain ASCII beside what the plan itself holds (made printable).
[[nodiscard]] std::string render(const Diagnostics& diagnostics, std::string_view file, std::string_view yaml);

/// The JSON Schema (draft 2020-12) of plans, made from the description that `parse` validates with.
[[nodiscard]] std::string json_schema();

/// What a diagnostic code means, with an example and its mend; empty for an unknown code.
[[nodiscard]] std::string explain_code(std::string_view code);

}   // namespace campaign::plans
