#include "plans/parse.hpp"

#include <algorithm>

#include "plans/check.hpp"
#include "plans/scan.hpp"
#include "plans/secrets.hpp"

namespace campaign::plans {
namespace {

/// One secret may be found by its form and by its place: the finding that tells more stays, wide enough to hide all of it.
/// `found` is in the order of the text.
void merge_secrets(Diagnostics& found) {
    Diagnostics kept;
    Diagnostic* before = nullptr;   // the last secret; one that overlaps it is the same
    kept.reserve(found.size());
    for (Diagnostic& next : found) {
        if (next.code != "P021") {
            kept.push_back(std::move(next));
        } else if (before != nullptr && before->line == next.line && next.column < before->column + before->width) {
            const int end = std::max(before->column + before->width, next.column + next.width);
            if (next.hint.find("write `{") != std::string::npos) before->hint = next.hint;
            before->width = end - before->column;
        } else {
            kept.push_back(std::move(next));
            before = &kept.back();
        }
    }
    found = std::move(kept);
}

}   // namespace

std::variant<Plan, Diagnostics> parse(std::string_view yaml) {
    Scan scanned = scan(yaml);
    Diagnostics found = std::move(scanned.found);
    Plan plan;
    if (scanned.readable) {
        bool whole = false;
        PlanNode root = read_tree(scanned.mended, found, !scanned.clean, whole);
        if (root.kind == PlanNode::Kind::null && found.empty()) {
            Diagnostic wrong;
            wrong.code = "P007";
            wrong.message = "the file holds no plan";
            wrong.hint = "see plans/examples/minimal.yaml";
            found.push_back(std::move(wrong));
        } else if (root.kind != PlanNode::Kind::null) {
            Findings findings{found};
            check(root, findings, whole);
            plan = build(root, findings, whole);
        }
    }
    if (found.empty()) return plan;
    std::ranges::stable_sort(found, [](const Diagnostic& a, const Diagnostic& b) {
        return std::pair{a.line, a.column} < std::pair{b.line, b.column};
    });
    merge_secrets(found);
    if (found.size() >= Findings::most) {
        found.resize(Findings::most);
        Diagnostic more;
        more.code = "P006";
        more.message = "too many errors: only the first " + std::to_string(Findings::most) + " are shown";
        found.push_back(std::move(more));
    }
    return found;
}

}   // namespace campaign::plans
