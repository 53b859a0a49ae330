#pragma once
// The one description of what may stand in a plan. The validator, the JSON Schema and the hints all read it, so none of them
// can say something that the others do not.

#include <span>
#include <string_view>

namespace campaign::plans {

enum class Type {
    text,        ///< a YAML string; `pattern` says which
    word,        ///< one of `words`
    boolean,     ///< true or false
    integer,     ///< within least and most
    duration,    ///< "36m"
    levels,      ///< auto, an integer, or a list of integers within least and most
    words,       ///< a list of `words`
    arguments,   ///< a list of scalars, each kept as written
    table,       ///< names (matching `pattern`) to scalars, each kept as written
    section,     ///< the keys of `section`
    named,       ///< names (matching `pattern`) to `section`
    list         ///< a list of `section`
};

/// A form of text: an ECMAScript pattern, which std::regex and JSON Schema read alike, and the same in words.
struct Form {
    std::string_view pattern;
    std::string_view words;
};

struct Section;

struct Key {
    std::string_view name;
    Type type = Type::text;
    bool required = false;
    std::string_view fallback{};   ///< the default as it would be written; empty: none
    std::string_view doc{};
    std::string_view without{};   ///< what follows when the key is missing, where that may surprise
    const Form* form = nullptr;
    std::span<const std::string_view> words{};
    int least = 0;
    int most = 0;
    const Section* section = nullptr;
};

/// Keys of which exactly one (or at most one) may be given. A boolean counts as given when it is true.
struct Choice {
    std::string_view first;
    std::string_view second;
    bool required = true;
};

struct Section {
    std::string_view what;   ///< "a host"
    std::span<const Key> keys;
    std::span<const Choice> choices;
};

inline constexpr std::size_t longest_text = 1000;   ///< characters of any text in a plan
inline constexpr std::size_t longest_list = 1000;   ///< entries of any list or table

/// The plan itself.
[[nodiscard]] const Section& description();

}   // namespace campaign::plans
