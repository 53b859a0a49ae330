#include <algorithm>
#include <string>

#include "base/json.hpp"
#include "base/text.hpp"
#include "ctl/render.hpp"

namespace campaign::ctl {
namespace {

const json::array& list_at(const json::value& object, std::string_view key) {
    static const json::array empty;
    const json::value* found = member(object, key);
    return found != nullptr && found->is_array() ? found->get_array() : empty;
}

std::string text_at(const json::value& object, std::string_view key) {
    return ascii(string_at(object, key).value_or(""));
}

/// The strings of a list, joined.
std::string joined(const json::array& list, std::string_view between) {
    std::string text;
    for (const json::value& entry : list) {
        if (!entry.is_string()) continue;
        if (!text.empty()) text += between;
        text += ascii(entry.get_string());
    }
    return text;
}

}   // namespace

std::string render_decision(const json::value& decision, const Style& style) {
    Sheet sheet{style};
    const WallTime at = time_at(decision, "at").value_or(WallTime{});
    const WallTime now = time_at(decision, "now").value_or(at);
    const std::string name = text_at(decision, "campaign");
    const std::string label = text_at(decision, "label");
    const std::string state = text_at(decision, "state");
    sheet.hang("", 0,
               label + "  " + clock_text(at, now) + "  " + text_at(decision, "question") +
                   "   policy: " + text_at(decision, "policy") +
                   (state == "open"                     ? "   OPEN: waits for an approval"
                    : state.empty() || state == "final" ? ""
                                                        : "   " + state));
    std::size_t method_width = 6;
    std::size_t down_width = 4;
    for (const json::value& candidate : list_at(decision, "candidates")) {
        method_width = std::max(method_width, text_at(candidate, "method").size());
        down_width = std::max(down_width, downtime_text(member(candidate, "downtime_s")).size());
    }
    sheet.line("  " + pad("METHOD", method_width) + "  " + pad("DOWN", down_width) + "  VERDICT");
    for (const json::value& candidate : list_at(decision, "candidates")) {
        std::string verdict = text_at(candidate, "verdict");
        const bool chosen = verdict == "chosen";
        if (chosen) verdict = "CHOSEN";
        const std::string why = text_at(candidate, "why");
        const std::string evidence = text_at(candidate, "evidence");
        std::string text = verdict + (why.empty() ? "" : ": " + why) + (evidence.empty() ? "" : " (" + evidence + ")");
        const std::string front = "  " + pad(text_at(candidate, "method"), method_width) + "  " +
                                  pad(downtime_text(member(candidate, "downtime_s")), down_width) + "  ";
        sheet.hang(paint(style, chosen ? Tone::fine : Tone::plain, front), front.size(), text);
        const std::string shows = text_at(candidate, "shows");
        if (!shows.empty()) sheet.hang(std::string(front.size(), ' '), front.size(), "shows " + shows);
    }
    if (const std::string lacks = text_at(decision, "cannot_show"); !lacks.empty()) sheet.field("cannot show", lacks, 13);
    for (const json::value& approval : list_at(decision, "approvals")) {
        const auto expires = time_at(approval, "expires");
        sheet.field("approved",
                    text_at(approval, "candidate") + " by " + text_at(approval, "by") + " " +
                        clock_text(time_at(approval, "at").value_or(at), now) +
                        (expires ? ", void if not begun by " + clock_text(*expires, now) : ""),
                    13);
    }
    for (const json::value& candidate : list_at(decision, "candidates")) {
        if (text_at(candidate, "verdict") != "deferred" || state == "superseded") continue;
        sheet.field("go deeper", "campaignctl approve " + name + " " + label + " " + text_at(candidate, "method"), 13);
    }
    return sheet.text();
}

std::string render_artifacts(const json::value& artifacts, const Style& style) {
    Sheet sheet{style};
    const json::array& list = list_at(artifacts, "artifacts");
    if (list.empty()) {
        sheet.line("no artifacts yet");
        return sheet.text();
    }
    std::size_t id = 2;
    std::size_t step = 4;
    std::size_t kind = 4;
    for (const json::value& artifact : list) {
        id = std::max(id, text_at(artifact, "id").size());
        step = std::max(step, text_at(artifact, "step").size());
        kind = std::max(kind, text_at(artifact, "kind").size());
    }
    sheet.line(pad("ID", id) + "  " + pad("STEP", step) + "  " + pad("KIND", kind) + "  " + pad("SIZE", 8) +
               "  SHA256    NAME");
    for (const json::value& artifact : list) {
        const std::string size =
            format_bytes(static_cast<std::uint64_t>(std::max<std::int64_t>(0, int_at(artifact, "size").value_or(0))));
        const std::string front = pad(text_at(artifact, "id"), id) + "  " + pad(text_at(artifact, "step"), step) + "  " +
                                  pad(text_at(artifact, "kind"), kind) + "  " + pad(size, 8) + "  " +
                                  text_at(artifact, "sha256").substr(0, 8) + "  ";
        sheet.hang(front, front.size(), text_at(artifact, "name"));
    }
    return sheet.text();
}

std::string render_explain(const json::value& explained, const Style& style, bool all_commands) {
    Sheet sheet{style};
    const bool read = bool_at(explained, "facts_read").value_or(false);
    sheet.hang("", 0,
               text_at(explained, "campaign") + ":     " +
                   (read ? "facts read from the hosts, nothing changed"
                         : "offline: no host was asked, so every fact is the plan's own"));
    const json::array& phases = list_at(explained, "phases");
    std::size_t name = 5;
    std::size_t method = 6;
    std::size_t down = 4;
    for (const json::value& phase : phases) {
        name = std::max(name, text_at(phase, "name").size());
        method = std::max(method, text_at(phase, "method").size());
        down = std::max(down, downtime_text(member(phase, "downtime_s")).size());
    }
    name = std::min<std::size_t>(name, 24);
    sheet.line("  " + pad("PHASE", name) + "  " + pad("METHOD", method) + "  " + pad("DOWN", down) + "  CHANGES ON HOST");
    for (const json::value& phase : phases) {
        const std::string front = "  " + pad(text_at(phase, "name"), name) + "  " + pad(text_at(phase, "method"), method) +
                                  "  " + pad(downtime_text(member(phase, "downtime_s")), down) + "  ";
        std::string changes = joined(list_at(phase, "changes"), ", ");
        if (changes.empty()) changes = "none";
        sheet.hang(front, front.size(), changes);
        if (const std::string otherwise = text_at(phase, "if_impossible"); !otherwise.empty())
            sheet.field("", "if impossible: " + otherwise, 6);
        const bool restarts = downtime_text(member(phase, "downtime_s")) != "0";
        if (const std::string source = text_at(phase, "downtime_source"); restarts && !source.empty())
            sheet.field("", "downtime: " + source, 6);
        for (const json::value& candidate : list_at(phase, "candidates")) {
            if (text_at(candidate, "method") == text_at(phase, "method")) continue;
            const std::string why = text_at(candidate, "why");
            sheet.field("",
                        "not " + text_at(candidate, "method") + ": " + text_at(candidate, "verdict") +
                            (why.empty() ? "" : ", " + why),
                        6);
        }
    }
    const double allowed = number_at(explained, "allowed_s").value_or(0);
    sheet.field("total",
                "down " + downtime_text(member(explained, "total_downtime_s")) + " of " +
                    (allowed > 0 ? span_text(allowed) : "0") + " allowed",
                7);
    for (const json::value& ask : list_at(explained, "asks"))
        sheet.field("asks", ask.is_string() ? std::string{ask.get_string()} : "", 7);
    for (const json::value& unknown : list_at(explained, "unknown"))
        sheet.field("unknown", unknown.is_string() ? std::string{unknown.get_string()} : "", 9);
    for (const json::value& warning : list_at(explained, "warnings"))
        sheet.field("warning", warning.is_string() ? std::string{warning.get_string()} : "", 9);
    const json::array& commands = list_at(explained, "commands");
    const json::array& drop_ins = list_at(explained, "drop_ins");
    if (!all_commands) {
        if (!commands.empty())
            sheet.hang("", 0,
                       "--commands lists all " + std::to_string(commands.size()) + " remote commands, as they will be sent");
        return sheet.text();
    }
    sheet.line("COMMANDS   (* changes production)");
    for (const json::value& command : commands) {
        const bool changes = bool_at(command, "changes_production").value_or(false);
        sheet.hang(changes ? "* " : "  ", 2,
                   text_at(command, "phase") + " / " + text_at(command, "step") + "   " + text_at(command, "host") + "   " +
                       text_at(command, "effect"));
        // As it will be sent: one line, however long.
        if (const std::string typed = text_at(command, "command"); !typed.empty()) sheet.line("      " + typed);
    }
    for (const json::value& drop_in : drop_ins) {
        sheet.line("DROP-IN    " + text_at(drop_in, "host") + ":" + text_at(drop_in, "path"));
        for (const std::string& line : split(trim(string_at(drop_in, "content").value_or("")), '\n'))
            sheet.line("      " + ascii(line));
    }
    return sheet.text();
}

std::string render_error(const Error& error, const Style& style) {
    Sheet sheet{style};
    sheet.hang(paint(style, Tone::failed, "error") + ": ", 7, error.what + (error.why.empty() ? "" : ": " + error.why));
    if (error.evidence.find('\n') != std::string::npos) {
        for (const std::string& line : split(error.evidence, '\n')) sheet.line("  " + ascii(line));
    } else if (!error.evidence.empty()) {
        constexpr std::string_view safe = "what is safe: ";
        const bool calms = error.evidence.starts_with(safe);
        sheet.field(calms ? "  safe" : "  seen", calms ? error.evidence.substr(safe.size()) : error.evidence, 10);
    }
    if (!error.next.empty()) sheet.field("  next", error.next, 10);
    return sheet.text();
}

}   // namespace campaign::ctl
