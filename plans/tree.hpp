#pragma once
// A plan's YAML as a tree in which every node knows where it stands.

#include <string>
#include <string_view>
#include <vector>

#include "plans/parse.hpp"

namespace campaign::plans {

struct Entry;

struct PlanNode {
    enum class Kind { null, scalar, list, map };

    struct Place {
        int line = 0;
        int column = 0;
        int width = 1;
    };

    Kind kind = Kind::null;
    std::string text;
    bool plain = true;   ///< a scalar without quotes: may be a number or a boolean
    bool good = true;    ///< false once something was found wrong with it
    Place place;
    std::vector<PlanNode> items;   ///< of a list
    std::vector<Entry> entries;    ///< of a map, in the order of the text

    /// The first entry of that name; null when absent.
    [[nodiscard]] PlanNode* find(std::string_view key);
    [[nodiscard]] const PlanNode* key(std::string_view key) const;
};

/// One key of a map with its value.
struct Entry {
    PlanNode key;
    PlanNode value;
};

/// What a plain scalar means in YAML 1.2, as strictly as a plan reads it: `010`, `0x1f` and `1_000` are text, and so is
/// `yes`.
enum class Meaning { text, integer, real, boolean, null };
[[nodiscard]] Meaning meaning(const PlanNode& scalar);

/// Reads one document. What is wrong is added to `found`; a tree comes back even so, as far as it was read. `explained`: the
/// text has faults on record that make it unreadable, so that a failure to read it says nothing new. `whole`: it was read to
/// its end.
[[nodiscard]] PlanNode read_tree(const std::string& yaml, Diagnostics& found, bool explained, bool& whole);

}   // namespace campaign::plans
