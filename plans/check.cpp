#include "plans/check.hpp"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/text.hpp"
#include "plans/forms.hpp"
#include "plans/scan.hpp"
#include "plans/secrets.hpp"

namespace campaign::plans {
namespace {

using Kind = PlanNode::Kind;

std::string quoted(std::string_view text) {
    std::string out{'`'};
    out += shown(text);
    return out += '`';
}

std::string listed(std::span<const std::string_view> words) {
    std::string out;
    for (const std::string_view word : words) out += (out.empty() ? "" : ", ") + std::string{word};
    return out;
}

std::string what_it_is(const PlanNode& node) {
    switch (node.kind) {
        case Kind::null: return "nothing";
        case Kind::list: return "a list";
        case Kind::map: return "a group of keys";
        case Kind::scalar: break;
    }
    switch (meaning(node)) {
        case Meaning::integer:
        case Meaning::real: return "a number";
        case Meaning::boolean: return "true or false";
        case Meaning::null: return "nothing";
        case Meaning::text: break;
    }
    return "text";
}

class Checker {
public:
    Checker(Findings& findings, bool whole) : findings_{findings}, whole_{whole} {}

    void section(PlanNode& node, const Section& section, const std::string& name, const PlanNode::Place& where) {
        if (node.kind == Kind::null && &section != &description()) {
            wrong_type(node, name, section.what == "the plan" ? "keys" : "keys and values");
            return;
        }
        if (node.kind != Kind::map) {
            wrong_type(node, name, "keys and values");
            if (node.kind == Kind::scalar && node.plain && node.text.find(':') != std::string::npos)
                last_->note = "a blank is needed after the colon of a key";
            return;
        }
        std::set<std::string> seen;
        std::set<std::string> meant;   // missing keys that an unknown one was probably meant to be
        for (auto& [label, value] : node.entries) {
            if (findings_.full()) return;
            if (!usable(label, value, seen)) continue;
            const Key* key = find(section, label.text);
            if (key == nullptr) {
                unknown(label, section, name, node, meant);
                secret_under(label, value);
                value.good = false;
                continue;
            }
            this->value(value, *key, label);
        }
        if (!whole_ || seen.contains("<<")) return;
        for (const Key& key : section.keys) {
            if (!key.required || node.find(key.name) != nullptr || meant.contains(std::string{key.name})) continue;
            Diagnostic& wrong = add("P011", where, "`" + std::string{key.name} + "` is missing in " + name);
            wrong.note = std::string{key.doc};
        }
        for (const Choice& choice : section.choices) choose(node, choice, name, where, meant);
    }

private:
    Diagnostic& add(std::string code, const PlanNode::Place& where, std::string message) {
        last_ = &findings_.add(std::move(code), where, std::move(message));
        return *last_;
    }

    static const Key* find(const Section& section, std::string_view name) {
        const auto found = std::ranges::find(section.keys, name, &Key::name);
        return found == section.keys.end() ? nullptr : &*found;
    }

    Diagnostic& wrong_type(PlanNode& node, const std::string& name, const std::string& wanted) {
        node.good = false;
        return add("P010", node.place, name + " is " + what_it_is(node) + "; it must be " + wanted);
    }

    /// A key can be used at all: text, once, and no merge key.
    bool usable(PlanNode& label, PlanNode& value, std::set<std::string>& seen) {
        if (label.kind != Kind::scalar) {
            value.good = false;
            if (label.good) add("P010", label.place, "a key must be text").hint = "a `,` or a quote too few?";
            return false;
        }
        if (label.text == "<<") {
            seen.insert(label.text);
            value.good = false;
            add("P009", label.place, "YAML merge keys are not used in plans").hint = "write the keys where they are needed";
            return false;
        }
        if (!seen.insert(label.text).second) {
            value.good = false;
            add("P008", label.place, "duplicate key " + quoted(label.text)).hint = "remove one of the two";
            return false;
        }
        return true;
    }

    void unknown(const PlanNode& label, const Section& section, const std::string& name, const PlanNode& node,
                 std::set<std::string>& meant) {
        std::vector<std::string> candidates;
        for (const Key& key : section.keys) candidates.emplace_back(key.name);
        Diagnostic& wrong = add("P012", label.place, "unknown key " + quoted(label.text) + " in " + name);
        const std::optional<std::string> near = did_you_mean(label.text, candidates);
        if (const Key* holder = below(section, label.text); holder != nullptr && !near) {
            wrong.hint = "it belongs into `" + std::string{holder->name} + "`";
            return;
        }
        if (!near) {
            std::string all;
            for (const std::string& candidate : candidates) all += (all.empty() ? "" : ", ") + candidate;
            wrong.note = "keys of " + std::string{section.what} + ": " + all;
            return;
        }
        wrong.hint = "did you mean `" + *near + "`?";
        if (node.key(*near) != nullptr) return;
        meant.insert(*near);
        wrong.note = std::string{find(section, *near)->without};
    }

    /// The key whose section would take that name, or one that is nearly it.
    static const Key* below(const Section& section, const std::string& name) {
        for (const Key& key : section.keys) {
            if (key.type != Type::section) continue;
            std::vector<std::string> candidates;
            for (const Key& inner : key.section->keys) candidates.emplace_back(inner.name);
            if (did_you_mean(name, candidates)) return &key;
        }
        return nullptr;
    }

    /// An unknown key that seems to name a secret must not show its value, nor leave it unremarked.
    void secret_under(const PlanNode& label, const PlanNode& value) {
        const std::vector<std::string> known{"api_key"};
        const bool named_so = names_a_secret(label.text) || did_you_mean(label.text, known).has_value();
        if (!named_so || value.kind != Kind::scalar || meaning(value) == Meaning::null) return;
        Diagnostic& wrong = add("P021", value.place, "a secret is written in the plan");
        wrong.hint = "plans hold no secrets";
        wrong.note = "whoever reads the plan has it now: replace the secret, and refer to a file or credential";
    }

    static bool given(PlanNode& node, std::string_view key) {
        const PlanNode* found = node.find(key);
        return found != nullptr && !(found->kind == Kind::scalar && found->plain && found->text == "false");
    }

    void choose(PlanNode& node, const Choice& choice, const std::string& name, const PlanNode::Place& where,
                const std::set<std::string>& meant) {
        const std::string one = "`" + std::string{choice.first} + "`";
        const std::string other = "`" + std::string{choice.second} + "`";
        const bool first = given(node, choice.first);
        const bool second = given(node, choice.second);
        if (first && second) {
            add("P020", node.key(choice.second)->place, "both " + one + " and " + other + " in " + name).hint = "keep one";
        } else if (choice.required && !first && !second && !meant.contains(std::string{choice.first}) &&
                   !meant.contains(std::string{choice.second})) {
            add("P020", where, "neither " + one + " nor " + other + " in " + name).hint = "give one of them";
        }
    }

    // Names a place in a message: `restart` in a sentence, never a value.
    static std::string named(const PlanNode& label) { return quoted(label.text); }

    void value(PlanNode& node, const Key& key, const PlanNode& label) {
        if (!node.good) return;
        const std::string name = named(label);
        const bool empty = node.kind == Kind::null || (node.kind == Kind::scalar && meaning(node) == Meaning::null);
        if (key.section != nullptr && key.section->what == "a reference to a secret" && node.kind == Kind::scalar &&
            !empty) {
            node.good = false;
            Diagnostic& wrong = add("P021", node.place, "a secret is written in the plan");
            wrong.hint = "write `{file: PATH}` or `{credential: NAME}`";
            wrong.note = "whoever reads the plan has it now: replace the secret";
            return;
        }
        if (empty) {
            node.good = false;
            add("P010", label.place, name + " has no value").hint =
                key.fallback.empty() ? "give one, or remove the key"
                                     : "give one, or remove the key: the default is `" + std::string{key.fallback} + "`";
            return;
        }
        switch (key.type) {
            case Type::text: text(node, *key.form, name); break;
            case Type::word: word(node, key.words, name); break;
            case Type::boolean: boolean(node, name); break;
            case Type::integer: integer(node, key, name); break;
            case Type::duration: duration(node, name); break;
            case Type::levels: levels(node, key, name); break;
            case Type::words: words(node, key, name); break;
            case Type::arguments: arguments(node, name, label); break;
            case Type::table: table(node, *key.form, name, label); break;
            case Type::section: section(node, *key.section, name, label.place); break;
            case Type::named: named_sections(node, key, name, label); break;
            case Type::list: list(node, key, name, label); break;
        }
    }

    bool is_text(PlanNode& node, const std::string& name, const std::string& wanted) {
        if (node.kind != Kind::scalar) {
            wrong_type(node, name, wanted);
            return false;
        }
        if (meaning(node) != Meaning::text) {
            wrong_type(node, name, wanted);
            return false;
        }
        return true;
    }

    void text(PlanNode& node, const Form& form, const std::string& name) {
        if (!is_text(node, name, std::string{form.words})) {
            if (node.kind == Kind::scalar && forms_.match(node.text, form))
                last_->hint = "as text: \"" + shown(node.text) + "\"";
            return;
        }
        if (forms_.match(node.text, form)) return;
        node.good = false;
        const bool address = form.pattern.starts_with("^https?");
        Diagnostic& wrong = add(address ? "P022" : "P016", node.place, name + " must be " + std::string{form.words});
        if (form.words.find("`NAME.service`") != std::string_view::npos && node.text.find('.') == std::string::npos)
            wrong.hint = "did you mean `" + shown(node.text) + ".service`?";
        if (!address) return;
        const std::size_t scheme = node.text.find("://");
        if (scheme == std::string::npos || !node.text.starts_with("http")) {
            wrong.hint = "it begins with http:// or https://";
        } else if (node.text.find('@') != std::string::npos) {
            wrong.hint = "no user or password here: use `api_key`";
        } else if (node.text.find('/', scheme + 3) != std::string::npos) {
            wrong.hint = "the address alone: " + shown(node.text.substr(0, node.text.find('/', scheme + 3)));
        }
    }

    void word(PlanNode& node, std::span<const std::string_view> words, const std::string& name) {
        if (!is_text(node, name, "one of " + listed(words))) return;
        if (std::ranges::find(words, node.text) != words.end()) return;
        node.good = false;
        const std::vector<std::string> candidates{words.begin(), words.end()};
        Diagnostic& wrong = add("P013", node.place, name + " cannot be " + quoted(node.text));
        if (const auto near = did_you_mean(node.text, candidates)) {
            wrong.hint = "did you mean `" + *near + "`?";
        } else {
            wrong.hint = "one of " + listed(words);
        }
    }

    void boolean(PlanNode& node, const std::string& name) {
        if (node.kind == Kind::scalar && meaning(node) == Meaning::boolean) return;
        wrong_type(node, name, "true or false");
        static const std::set<std::string_view> yes{"yes", "on", "Yes", "On", "YES", "ON", "True", "TRUE", "y", "Y"};
        static const std::set<std::string_view> no{"no", "off", "No", "Off", "NO", "OFF", "False", "FALSE", "n", "N"};
        if (node.kind != Kind::scalar) return;
        if (yes.contains(node.text) || node.text == "true") last_->hint = "write `true`, without quotes";
        if (no.contains(node.text) || node.text == "false") last_->hint = "write `false`, without quotes";
    }

    bool integer(PlanNode& node, const Key& key, const std::string& name, const std::string& or_else = "") {
        const std::string range = std::to_string(key.least) + " to " + std::to_string(key.most);
        if (node.kind != Kind::scalar || meaning(node) != Meaning::integer) {
            Diagnostic& wrong = wrong_type(node, name, or_else + "a whole number from " + range);
            if (node.kind != Kind::scalar || node.text.empty()) return false;
            std::string digits;
            const bool odd = std::ranges::all_of(node.text, [](char c) { return (c >= '0' && c <= '9') || c == '_'; });
            for (const char c : node.text)
                if (c != '_' && !(digits.empty() && c == '0')) digits += c;
            if (odd && !digits.empty())
                wrong.hint = "write " + shown(digits, 20) + ": decimal, without leading zeros, `_` or quotes";
            return false;
        }
        long long number = 0;
        const auto [end, fault] = std::from_chars(node.text.data(), node.text.data() + node.text.size(), number);
        if (fault == std::errc{} && number >= key.least && number <= key.most) return true;
        node.good = false;
        add("P014", node.place, name + " is out of range").hint = "from " + range;
        return false;
    }

    void duration(PlanNode& node, const std::string& name) {
        if (node.kind == Kind::scalar && meaning(node) == Meaning::integer) {
            node.good = false;
            const bool fits = node.text.size() < 10 && node.text[0] != '-';
            add("P015", node.place, name + " has no unit").hint =
                fits ? "write " + node.text + "s, " + node.text + "m or " + node.text + "h" : "as in 90m";
            return;
        }
        if (!is_text(node, name, "a duration such as 90m")) return;
        const auto span = parse_duration(node.text);
        if (span && span->count() >= 0 && node.text.size() <= 24 && *span <= std::chrono::days{366}) return;
        node.good = false;
        add("P015", node.place, name + " is not a duration").hint = "as in 250ms, 30s, 90m, 2h or 1h30m; at most 366d";
    }

    void levels(PlanNode& node, const Key& key, const std::string& name) {
        if (node.kind == Kind::scalar && node.text == "auto") return;
        if (node.kind != Kind::list) {
            integer(node, key, name, "auto, a list, or ");
            return;
        }
        if (!filled(node, name)) return;
        for (PlanNode& item : node.items)
            if (!integer(item, key, "a level of " + name)) node.good = false;
    }

    bool filled(PlanNode& node, const std::string& name, const PlanNode* label = nullptr) {
        const PlanNode::Place where = label == nullptr ? node.place : label->place;
        if (node.items.empty()) {
            node.good = false;
            add("P023", where, name + " is empty").hint = "give at least one";
        } else if (node.items.size() > longest_list) {
            node.good = false;
            add("P006", where, name + " has more than " + std::to_string(longest_list) + " entries");
        }
        return node.good;
    }

    bool bounded(PlanNode& node, const std::string& name, const PlanNode& label) {
        if (node.entries.size() <= longest_list) return true;
        node.good = false;
        add("P006", label.place, name + " has more than " + std::to_string(longest_list) + " entries");
        return false;
    }

    void words(PlanNode& node, const Key& key, const std::string& name) {
        if (node.kind != Kind::list) {
            wrong_type(node, name, "a list").hint = node.kind == Kind::scalar ? "write [" + shown(node.text) + "]" : "";
            return;
        }
        if (!filled(node, name)) return;
        std::set<std::string> seen;
        for (PlanNode& item : node.items) {
            word(item, key.words, "an entry of " + name);
            if (item.good && !seen.insert(item.text).second) {
                item.good = false;
                add("P008", item.place, quoted(item.text) + " is in " + name + " twice").hint = "remove one of the two";
            }
            if (!item.good) node.good = false;
        }
    }

    void secret_after(PlanNode& item, std::string_view what) {
        item.good = false;
        Diagnostic& wrong = add("P021", item.place, "a secret is written in the plan: " + std::string{what});
        wrong.hint = "let the server read it from a file";
        wrong.note = "whoever reads the plan has it now: replace the secret";
    }

    bool as_written(PlanNode& item, const std::string& name) {
        if (item.kind == Kind::scalar && meaning(item) != Meaning::null) {
            if (item.text.size() <= 8 * longest_text && item.text.find('\0') == std::string::npos) return true;
            item.good = false;
            add("P016", item.place, name + " is too long").hint = "at most 8000 characters";
            return false;
        }
        if (item.good)
            wrong_type(item, name, "text or a number").hint = item.kind == Kind::null ? "an empty argument is \"\"" : "";
        return false;
    }

    void arguments(PlanNode& node, const std::string& name, const PlanNode& label) {
        if (node.kind != Kind::list) {
            wrong_type(node, name, "a list of arguments").hint = "write [program, argument, ...]: no shell splits it";
            return;
        }
        if (!filled(node, name, &label)) return;
        const PlanNode* before = nullptr;
        for (PlanNode& item : node.items) {
            if (!as_written(item, "an entry of " + name)) {
                node.good = false;
                before = nullptr;
                continue;
            }
            const std::size_t assigned = item.text.find('=');
            const bool inline_value =
                option_takes_secret(item.text) && assigned != std::string::npos && assigned + 1 < item.text.size();
            if (before != nullptr && before->text.find('=') == std::string::npos && option_takes_secret(before->text)) {
                secret_after(item, "the value of " + shown(before->text));
            } else if (inline_value || !find_secrets(item.text).empty()) {
                secret_after(item, "an argument of the command");
            }
            if (!item.good) node.good = false;
            before = &item;
        }
    }

    void table(PlanNode& node, const Form& form, const std::string& name, const PlanNode& label) {
        if (node.kind != Kind::map) {
            wrong_type(node, name, "names and values");
            return;
        }
        if (!bounded(node, name, label)) return;
        std::set<std::string> seen;
        for (auto& [variable, item] : node.entries) {
            if (findings_.full()) return;
            if (!usable(variable, item, seen)) continue;
            if (!forms_.match(variable.text, form)) {
                item.good = false;
                add("P016", variable.place, "a name in " + name + " must be " + std::string{form.words});
                continue;
            }
            if (!as_written(item, quoted(variable.text))) {
                if (item.kind == Kind::null) last_->line = variable.place.line, last_->column = variable.place.column;
                continue;
            }
            if (!item.text.empty() && (names_a_secret(variable.text) || !find_secrets(item.text).empty()))
                secret_after(item, "the value of " + shown(variable.text));
        }
    }

    void named_sections(PlanNode& node, const Key& key, const std::string& name, const PlanNode& label) {
        if (node.kind != Kind::map) {
            wrong_type(node, name, "names, each with keys of its own");
            return;
        }
        if (node.entries.empty()) {
            node.good = false;
            add("P023", label.place, name + " is empty").hint = "give at least one";
            return;
        }
        if (!bounded(node, name, label)) return;
        std::set<std::string> seen;
        for (auto& [inner, value] : node.entries) {
            if (findings_.full()) return;
            if (!usable(inner, value, seen)) continue;
            if (!forms_.match(inner.text, *key.form) || (inner.plain && meaning(inner) == Meaning::null)) {
                value.good = false;
                add("P016", inner.place, "a name in " + name + " must be " + std::string{key.form->words});
                continue;
            }
            if (!value.good) continue;
            if (value.kind == Kind::null) {
                value.good = false;
                add("P010", inner.place, quoted(inner.text) + " has no value");
                continue;
            }
            section(value, *key.section, quoted(inner.text), inner.place);
        }
    }

    void list(PlanNode& node, const Key& key, const std::string& name, const PlanNode& label) {
        if (node.kind != Kind::list) {
            wrong_type(node, name, "a list").hint = "begin each entry with `- `";
            return;
        }
        if (!filled(node, name, &label)) return;
        for (PlanNode& item : node.items) {
            if (findings_.full()) return;
            if (item.good) section(item, *key.section, "an entry of " + name, item.place);
        }
    }

    Findings& findings_;
    bool whole_;
    Diagnostic* last_ = nullptr;
    Forms forms_;
};

}   // namespace

Diagnostic& Findings::add(std::string code, const PlanNode::Place& where, std::string message) {
    if (full()) return dropped_;
    Diagnostic wrong;
    wrong.code = std::move(code);
    wrong.message = std::move(message);
    wrong.line = where.line;
    wrong.column = where.column;
    wrong.width = std::max(1, where.width);
    out_.push_back(std::move(wrong));
    return out_.back();
}

void check(PlanNode& root, Findings& findings, bool whole) {
    PlanNode::Place top;
    top.line = 0;
    Checker{findings, whole}.section(root, description(), "the plan", top);
}

}   // namespace campaign::plans
