#pragma once
// Between the tree and the typed plan: each node against the description, then what only several nodes together can say.

#include <string>
#include <vector>

#include "plans/description.hpp"
#include "plans/tree.hpp"

namespace campaign::plans {

/// Gathers what is wrong, up to a bound: nobody mends more than that before the next try.
class Findings {
public:
    static constexpr std::size_t most = 200;

    explicit Findings(Diagnostics& out) : out_{out} {}
    /// The diagnostic stays valid until the next call.
    Diagnostic& add(std::string code, const PlanNode::Place& where, std::string message);
    [[nodiscard]] bool full() const { return out_.size() >= most; }

private:
    Diagnostics& out_;
    Diagnostic dropped_;
};

/// Checks the root of a plan against the description; marks what it refuses as not good. `whole`: the file was read to its
/// end, so what is missing is missing.
void check(PlanNode& root, Findings& findings, bool whole);

/// The typed plan from what is good in the tree, and the contradictions and dangling names in it.
[[nodiscard]] Plan build(PlanNode& root, Findings& findings, bool whole);

}   // namespace campaign::plans
