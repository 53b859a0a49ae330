#include "plans/tree.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>

#include "base/text.hpp"
#include "plans/scan.hpp"

namespace campaign::plans {
namespace {

constexpr std::size_t most_nodes = 20'000;

struct TooMuch {};

class Builder final : public YAML::EventHandler {
public:
    Builder(std::string_view yaml, Diagnostics& found) : lines_{lines_of(yaml)}, found_{found} {}

    void OnDocumentStart(const YAML::Mark& mark) override {
        if (++documents == 2) {
            Diagnostic wrong = at(place(mark));
            wrong.code = "P007";
            wrong.message = "a second document: a file holds exactly one plan";
            wrong.hint = "what follows would be lost";
            wrong.note = "either a `---`, or a line that does not belong to what stands above it";
            found_.push_back(std::move(wrong));
        }
    }
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
        PlanNode node;
        node.place = place(mark);
        add(std::move(node));
    }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
        PlanNode node;
        node.place = place(mark);
        node.good = false;   // refused by the scan
        add(std::move(node));
    }
    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, const std::string& value) override {
        PlanNode node;
        node.kind = PlanNode::Kind::scalar;
        node.text = value;
        node.plain = tag == "?" || tag.empty();
        node.place = place(mark);
        if (node.place.line >= 1 && node.place.line <= static_cast<int>(lines_.size())) {
            const std::string_view line = lines_[static_cast<std::size_t>(node.place.line - 1)];
            const auto byte = static_cast<std::size_t>(mark.column);
            if (byte < line.size() && (line[byte] == '"' || line[byte] == '\'')) {
                const std::size_t end = std::min(quote_end(line, byte), line.size());
                node.place.width = characters(line.substr(byte, end - byte));
            } else if (node.plain) {
                const std::string_view rest = trim(line.substr(std::min(byte, line.size()), value.size()));
                node.place.width = std::max(1, characters(rest));
            }
        }
        add(std::move(node));
    }
    void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
        open(PlanNode::Kind::list, mark);
    }
    void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
        open(PlanNode::Kind::map, mark);
    }
    void OnSequenceEnd() override { close(); }
    void OnMapEnd() override { close(); }

    /// What was read, also when reading broke off.
    PlanNode take() {
        while (!stack_.empty()) close();
        return std::move(root_);
    }

    int documents = 0;

private:
    struct Frame {
        PlanNode node;
        std::vector<PlanNode> key;   // of a map: the key that waits for its value
    };

    PlanNode::Place place(const YAML::Mark& mark) {
        PlanNode::Place where;
        where.line = mark.line + 1;
        where.column = mark.column + 1;
        if (mark.line < 0 || where.line > static_cast<int>(lines_.size())) return where;
        const std::string_view line = lines_[static_cast<std::size_t>(mark.line)];
        const std::size_t byte = std::min(static_cast<std::size_t>(std::max(0, mark.column)), line.size());
        // Marks mostly go forward: counting goes on from the last one, or a long line would cost its square.
        if (where.line != last_.line || byte < last_byte_) {
            last_byte_ = 0;
            last_.column = 1;
        }
        last_.line = where.line;
        last_.column += characters(line.substr(last_byte_, byte - last_byte_));
        last_byte_ = byte;
        where.column = last_.column;
        return where;
    }

    static Diagnostic at(const PlanNode::Place& where) {
        Diagnostic wrong;
        wrong.line = where.line;
        wrong.column = where.column;
        wrong.width = where.width;
        return wrong;
    }

    [[noreturn]] void too_much(const PlanNode::Place& where, std::string message) {
        Diagnostic wrong = at(where);
        wrong.code = "P006";
        wrong.message = std::move(message);
        found_.push_back(std::move(wrong));
        throw TooMuch{};
    }

    void open(PlanNode::Kind kind, const YAML::Mark& mark) {
        if (stack_.size() >= deepest_plan)
            too_much(place(mark), "nested more than " + std::to_string(deepest_plan) + " levels deep");
        Frame frame;
        frame.node.kind = kind;
        frame.node.place = place(mark);
        stack_.push_back(std::move(frame));
    }

    void close() {
        PlanNode node = std::move(stack_.back().node);
        stack_.pop_back();
        add(std::move(node));
    }

    void add(PlanNode node) {
        if (documents > 1) return;
        if (++nodes_ > most_nodes) {
            const PlanNode::Place where = node.place;
            nodes_ = 0;   // take() closes what is open
            too_much(where, "more than " + std::to_string(most_nodes) + " values");
        }
        if (stack_.empty()) {
            root_ = std::move(node);
            return;
        }
        Frame& top = stack_.back();
        if (top.node.kind == PlanNode::Kind::list) {
            top.node.items.push_back(std::move(node));
        } else if (top.key.empty()) {
            top.key.push_back(std::move(node));
        } else {
            // The mark of a value that is not there lies on some later line.
            if (node.kind == PlanNode::Kind::null) node.place = top.key.front().place;
            top.node.entries.push_back({std::move(top.key.front()), std::move(node)});
            top.key.clear();
        }
    }

    std::vector<std::string_view> lines_;
    Diagnostics& found_;
    std::vector<Frame> stack_;
    PlanNode root_;
    std::size_t nodes_ = 0;
    PlanNode::Place last_;
    std::size_t last_byte_ = 0;
};

/// yaml-cpp's words for people who do not know its inside.
std::string in_words(const std::string& message) {
    if (message.find("illegal map value") != std::string::npos) return "a `:` where no key can be";
    if (message.find("end of map not found") != std::string::npos) return "this line does not belong to the keys above it";
    if (message.find("end of sequence not found") != std::string::npos)
        return "this line does not belong to the list above it";
    if (message.find("end of map flow") != std::string::npos || message.find("end of sequence flow") != std::string::npos)
        return "a `,` or a closing bracket is missing before this";
    if (message.find("illegal flow end") != std::string::npos) return "a closing bracket that closes nothing";
    return "not readable as YAML: " + printable(message, 120);
}

}   // namespace

PlanNode* PlanNode::find(std::string_view name) {
    for (auto& [label, value] : entries)
        if (label.kind == Kind::scalar && label.text == name) return &value;
    return nullptr;
}

const PlanNode* PlanNode::key(std::string_view name) const {
    for (const auto& [label, value] : entries)
        if (label.kind == Kind::scalar && label.text == name) return &label;
    return nullptr;
}

Meaning meaning(const PlanNode& scalar) {
    if (!scalar.plain) return Meaning::text;
    const std::string& text = scalar.text;
    if (text == "true" || text == "false") return Meaning::boolean;
    if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return Meaning::null;
    std::string_view rest = text;
    if (rest.starts_with('-')) rest.remove_prefix(1);
    const auto digits = [](std::string_view part) {
        return !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    };
    const auto whole = [&](std::string_view part) { return digits(part) && (part == "0" || part[0] != '0'); };
    if (whole(rest)) return Meaning::integer;
    const std::size_t dot = rest.find('.');
    if (dot != std::string_view::npos && whole(rest.substr(0, dot)) && digits(rest.substr(dot + 1))) return Meaning::real;
    return Meaning::text;
}

PlanNode read_tree(const std::string& yaml, Diagnostics& found, bool explained, bool& whole) {
    whole = false;
    Builder builder{yaml, found};
    try {
        std::istringstream in{yaml};
        YAML::Parser parser{in};
        while (builder.documents < 2 && parser.HandleNextDocument(builder)) {
        }
        whole = builder.documents == 1;
        if (builder.documents == 0) {
            Diagnostic wrong;
            wrong.code = "P007";
            wrong.message = "the file holds no plan";
            found.push_back(std::move(wrong));
        }
    } catch (const TooMuch&) {
        // on record
    } catch (const YAML::Exception& broken) {
        if (!explained) {
            Diagnostic wrong;
            wrong.code = "P001";
            wrong.message = in_words(broken.msg);
            const std::vector<std::string_view> lines = lines_of(yaml);
            const int last = std::max(1, static_cast<int>(lines.size()));
            wrong.line = std::clamp(broken.mark.line + 1, 1, last);
            wrong.column = 1;
            if (!lines.empty() && broken.mark.column > 0)
                wrong.column =
                    column_at(lines[static_cast<std::size_t>(wrong.line - 1)], static_cast<std::size_t>(broken.mark.column));
            wrong.note = "what stands below it was not checked";
            found.push_back(std::move(wrong));
        }
    }
    return builder.take();
}

}   // namespace campaign::plans
