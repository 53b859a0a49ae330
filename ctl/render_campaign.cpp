#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "base/json.hpp"
#include "base/text.hpp"
#include "ctl/exit_code.hpp"
#include "ctl/render.hpp"

namespace campaign::ctl {
namespace {

constexpr std::size_t steps_in_a_phase = 6;

const json::array& list_at(const json::value& object, std::string_view key) {
    static const json::array empty;
    const json::value* found = member(object, key);
    return found != nullptr && found->is_array() ? found->get_array() : empty;
}

std::string text_at(const json::value& object, std::string_view key) {
    return ascii(string_at(object, key).value_or(""));
}

std::string tenths(double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.1f", value);
    return text;
}

std::string minutes_or_seconds(double seconds) {
    return seconds < 120 ? tenths(seconds) + " s" : tenths(seconds / 60) + " min";
}

void head(Sheet& sheet, const json::value& campaign, WallTime now) {
    const Standing is = standing_of(campaign);
    const std::string name = text_at(campaign, "name");
    std::string rest;
    const std::string phase = phase_text(campaign);
    if (!phase.empty()) rest += "   " + phase;
    const json::array& production = list_at(campaign, "production");
    if (!production.empty()) rest += "   " + text_at(production.front(), "host") + " " + unit_text(production.front());
    const auto submitted = time_at(campaign, "submitted");
    if (submitted) {
        const auto ended = time_at(campaign, "ended");
        rest += "   " + std::string{ended ? "" : "began "} + clock_text(*submitted, now);
        rest += ended ? "-" + clock_text(*ended, now)
                      : ", " + span_text(std::chrono::duration<double>(now - *submitted).count()) + " ago";
    }
    const std::size_t width = name.size() + 6 + is.word.size();
    sheet.hang(name + " " + paint(sheet.style(), is.tone, std::string(1, is.sign) + " " + is.word) + "   ", width, rest);
    const std::string detail = text_at(campaign, "detail");
    if (!detail.empty()) sheet.field("", detail);
    const std::string by = text_at(campaign, "cancel_by");
    if (bool_at(campaign, "cancel_requested").value_or(false))
        sheet.field("cancelled", "by " + (by.empty() ? std::string{"an operator"} : by));
}

void production(Sheet& sheet, const json::value& campaign, WallTime now) {
    const bool over = bool_at(campaign, "over").value_or(false);
    for (const json::value& service : list_at(campaign, "production")) {
        const Standing is = production_standing(service, over);
        const std::string state = text_at(service, "state");
        std::string text =
            list_at(campaign, "production").size() > 1 ? text_at(service, "host") + " " + unit_text(service) + " " : "";
        const auto since = time_at(service, "since");
        const std::string when = since ? clock_text(*since, now) : "";
        const double down = number_at(service, "downtime_s").value_or(0);
        if (state == "verified") {
            text += "RESTORED " + when + ", verified";
        } else {
            text += is.word + (is.sign == '~' ? " by plan since " : " since ") + when;
        }
        if (down > 0) text += "; down " + span_text(down) + " in all";
        if (const auto undos = int_at(service, "undos"); undos && *undos > 0)
            text += "; " + std::to_string(*undos) + (*undos == 1 ? " undo" : " undos") + " on record";
        const std::string detail = text_at(service, "detail");
        sheet.field("production", text);
        if (!detail.empty()) sheet.field("", detail);
    }
}

char step_sign(const std::string& state) {
    if (state == "done") return '=';
    if (state == "intent") return '>';
    if (state == "in_doubt") return '!';
    return 'x';
}

/// "s41 drop-in =", "s42 restart =", "s43 ready >": the newest of a phase.
std::vector<std::string> last_steps(const json::value& campaign, const std::string& phase) {
    std::vector<std::string> words;
    for (const json::value& step : list_at(campaign, "steps")) {
        if (text_at(step, "phase") != phase) continue;
        const std::string path = text_at(step, "path");
        words.push_back(text_at(step, "label") + " " + path.substr(path.rfind('/') + 1) + " " +
                        step_sign(text_at(step, "state")));
    }
    if (words.size() > steps_in_a_phase) words.erase(words.begin(), words.end() - steps_in_a_phase);
    return words;
}

void phases(Sheet& sheet, const json::value& campaign, WallTime now) {
    const json::array& list = list_at(campaign, "phases");
    if (list.empty()) return;
    sheet.line("PHASES");
    std::size_t name_width = 4;
    std::size_t method_width = 4;
    for (const json::value& phase : list) {
        name_width = std::max(name_width, text_at(phase, "name").size());
        method_width = std::max(method_width, text_at(phase, "method").size());
    }
    name_width = std::min<std::size_t>(name_width, 22);
    int ordinal = 0;
    for (const json::value& phase : list) {
        const std::string state = text_at(phase, "state");
        Standing is{'.', state, Tone::plain};
        if (state == "running") is = {'>', state, Tone::runs};
        if (state == "done") is = {'=', state, Tone::fine};
        if (state == "pivoted") is = {'~', state, Tone::by_plan};
        if (state == "deferred") is = {'!', state, Tone::you};
        if (state == "failed") is = {'x', state, Tone::failed};
        const auto began = time_at(phase, "began");
        const auto ended = time_at(phase, "ended");
        std::string when;
        if (began) when = clock_text(*began, now) + "-" + (ended ? clock_text(*ended, now) : "");
        const std::string middle = " " + std::to_string(++ordinal) + " " + pad(text_at(phase, "name"), name_width) + "  " +
                                   pad(when, 11) + "  " + pad(text_at(phase, "method"), method_width) + "  ";
        const std::string head = "  " + paint(sheet.style(), is.tone, std::string(1, is.sign)) + middle;
        const std::size_t head_width = 3 + middle.size();
        std::string words = text_at(phase, "detail");
        if (state == "running") {
            const std::vector<std::string> steps = last_steps(campaign, text_at(phase, "name"));
            if (!words.empty() || steps.empty()) sheet.hang(head, head_width, words);
            sheet.hang_items(words.empty() ? head : std::string(head_width, ' '), head_width, steps);
            continue;
        }
        if (words.empty() || state != "done") words = state + (words.empty() ? "" : ": " + words);
        const json::array& steps = list_at(phase, "steps");
        if (steps.size() == 2 && steps[0].is_string() && steps[1].is_string())
            words += "  " + ascii(steps[0].get_string()) + "-" + ascii(steps[1].get_string());
        sheet.hang(head, head_width, words);
    }
}

void waits(Sheet& sheet, const json::value& campaign, WallTime now) {
    const json::value* wait = member(campaign, "wait");
    if (wait == nullptr) return;
    std::string what = text_at(*wait, "for");
    const std::string phase = text_at(*wait, "phase");
    if (!phase.empty()) what += ": " + phase;
    const json::array& shards = list_at(*wait, "shards");
    if (shards.size() == 2 && shards[0].is_int64() && shards[1].is_int64())
        what += ", shard " + std::to_string(shards[0].get_int64()) + " of " + std::to_string(shards[1].get_int64());
    sheet.field("WAITS FOR", what);

    const auto at = time_at(*wait, "at");
    const double since = at ? std::max(0.0, std::chrono::duration<double>(now - *at).count()) : 0;
    const auto elapsed_then = number_at(*wait, "elapsed_s");
    const json::array& expected = list_at(*wait, "expected_s");
    const bool known = expected.size() == 2 && expected[0].is_number() && expected[1].is_number();
    const auto percent = number_at(*wait, "percent");
    std::string progress;
    if (elapsed_then) {
        progress = span_text(*elapsed_then + since);
        if (known) progress += " of about " + span_text(expected[0].to_number<double>());
    }
    if (percent) {
        char share[24];
        std::snprintf(share, sizeof share, "%4ld %%   ", std::lround(*percent));
        const std::size_t cells = sheet.style().width > 60 ? 42 : 16;
        sheet.line("  " + bar(*percent, cells) + share + progress);
    } else if (!progress.empty()) {
        sheet.line("  elapsed  " + progress);
    }
    if (elapsed_then && at) {
        const auto later = [&](double total) {
            return *at + std::chrono::duration_cast<std::chrono::microseconds>(
                             std::chrono::duration<double>(total - *elapsed_then));
        };
        if (!known) {
            if (text_at(*wait, "for") == "model ready")
                sheet.field("  expect", "unknown: no load of this model is on record here", 11);
        } else if (const double slow = expected[1].to_number<double>(); *elapsed_then + since > slow) {
            sheet.field("  expect",
                        "late by " + span_text(*elapsed_then + since - slow) + " (p90 of loads here is " +
                            minutes_or_seconds(slow) + ")",
                        11);
        } else {
            const double usual = expected[0].to_number<double>();
            const auto history = int_at(*wait, "history").value_or(0);
            sheet.field("  expect",
                        clock_text(later(usual), now) + "-" + clock_text(later(slow), now) + "  from " +
                            std::to_string(history) + (history == 1 ? " load here" : " loads here") + " (p50 " +
                            minutes_or_seconds(usual) + ", p90 " + minutes_or_seconds(slow) + ")",
                        11);
        }
    }
    std::string next;
    if (const auto probe = time_at(*wait, "next_probe")) next = "health probe " + clock_seconds(*probe, now);
    if (const auto quiet = number_at(*wait, "last_log_s"))
        next += (next.empty() ? "" : "; ") + ("last log line " + span_text(*quiet + since) + " ago");
    if (!next.empty()) sheet.field("  next", next, 11);
    if (const auto until = time_at(*wait, "gives_up"))
        sheet.field("  gives up",
                    "stalled if no progress by " + clock_text(*until, now) + ", failed at once if the unit dies", 11);
    if (const std::string line = text_at(*wait, "line"); !line.empty()) sheet.field("  log", line, 11);
}

void decided(Sheet& sheet, const json::value& campaign, WallTime now) {
    const json::array& list = list_at(campaign, "decisions");
    const std::size_t from = list.size() > 2 ? list.size() - 2 : 0;
    for (std::size_t i = from; i < list.size(); ++i) {
        const json::value& decision = list[i];
        const std::string chosen = text_at(decision, "chosen");
        std::string text = text_at(decision, "label") + " " + clock_text(time_at(decision, "at").value_or(now), now) + " ";
        text += chosen.empty() ? "nothing that may run" : chosen;
        text += " for " + text_at(decision, "phase");
        std::string losers;
        for (const json::value& candidate : list_at(decision, "candidates")) {
            const std::string method = text_at(candidate, "method");
            if (method == chosen) {
                const std::string down = downtime_text(member(candidate, "downtime_s"));
                text += down == "0" ? ", no downtime" : ", down " + down;
            } else if (text_at(candidate, "verdict") != "not needed") {
                losers += (losers.empty() ? "not " : "; not ") + method + ": " + text_at(candidate, "why");
            }
        }
        for (const json::value& approval : list_at(decision, "approvals"))
            text += ", " + (text_at(approval, "candidate") == chosen ? "" : text_at(approval, "candidate") + " ") +
                    "approved by " + text_at(approval, "by") + " " + clock_text(time_at(approval, "at").value_or(now), now);
        sheet.field(i == from ? "DECIDED" : "", text);
        if (!losers.empty()) sheet.field("", losers);
        if (const std::string lacks = text_at(decision, "cannot_show"); !lacks.empty())
            sheet.field("", "cannot show: " + lacks);
    }
}

void doubt(Sheet& sheet, const json::value& campaign, WallTime now) {
    for (const json::value& step : list_at(campaign, "steps")) {
        if (text_at(step, "state") != "in_doubt") continue;
        const std::string host = text_at(step, "host");
        sheet.field("IN DOUBT", text_at(step, "label") + " " + text_at(step, "title") + (host.empty() ? "" : " on " + host));
        if (const auto sent = time_at(step, "began")) {
            sheet.field("  sent", clock_seconds(*sent, now) + ", " +
                                      span_text(std::chrono::duration<double>(now - *sent).count()) + " ago");
        }
        if (const json::value* error = member(step, "error"))
            sheet.field("  lost",
                        text_at(*error, "what") + (text_at(*error, "why").empty() ? "" : ": " + text_at(*error, "why")));
        const std::string evidence = text_at(step, "evidence");
        sheet.field("  evidence", evidence.empty() ? "none" : evidence);
    }
}

void failure(Sheet& sheet, const json::value& campaign, WallTime now) {
    for (const json::value& step : list_at(campaign, "steps")) {
        if (text_at(step, "state") != "failed" || text_at(campaign, "state") != "failed") continue;
        const auto began = time_at(step, "began");
        const auto ended = time_at(step, "ended");
        std::string when;
        if (began && ended) when = ", " + clock_text(*began, now) + "-" + clock_text(*ended, now);
        sheet.field("failed step", text_at(step, "label") + " " + text_at(step, "path") + when);
        if (const json::value* error = member(step, "error")) {
            sheet.field("  why",
                        text_at(*error, "what") + (text_at(*error, "why").empty() ? "" : ": " + text_at(*error, "why")));
            if (const std::string seen = text_at(*error, "evidence"); !seen.empty()) sheet.field("  seen", seen);
        }
    }
    const json::value* error = member(campaign, "error");
    if (error == nullptr || !error->is_object()) return;
    sheet.field("why", text_at(*error, "what") + (text_at(*error, "why").empty() ? "" : ": " + text_at(*error, "why")));
    if (const std::string seen = text_at(*error, "evidence"); !seen.empty()) sheet.field("seen", seen);
    if (const std::string next = text_at(*error, "next"); !next.empty()) sheet.field("next", next);
}

/// A command in its column, and what it does.
void choice(Sheet& sheet, const std::string& command, const std::string& meaning) {
    constexpr std::size_t column = 46;
    if (command.size() + 4 > column) {
        sheet.line("  " + command);
        sheet.field("", meaning, 6);
    } else {
        sheet.hang("  " + pad(command, column - 2), column, meaning);
    }
}

void needs(Sheet& sheet, const json::value& campaign) {
    const json::array& list = list_at(campaign, "needs");
    const std::string name = text_at(campaign, "name");
    const std::string state = text_at(campaign, "state");
    const bool over = bool_at(campaign, "over").value_or(false);
    const std::string label = "NEEDS YOU";
    if (list.empty() && !over) {
        sheet.field(label, "nothing");
        return;
    }
    for (const json::value& need : list) {
        sheet.hang(paint(sheet.style(), Tone::you, label) + "   ", 12, text_at(need, "what"));
        if (state == "in_doubt") continue;
        sheet.line("  " + text_at(need, "command"));
    }
    if (state == "in_doubt") {
        sheet.field("", "nothing is sent again until the host or you answer. If you know:");
        choice(sheet, "campaignctl resume " + name, "look again now");
        choice(sheet, "campaignctl resume " + name + " --as done", "it was carried out; go on");
        choice(sheet, "campaignctl resume " + name + " --as not-done", "it was not; send it once more");
        choice(sheet, "campaignctl cancel " + name, "stop; restore once reachable");
    } else if (over) {
        if (!production_as_found(campaign)) {
            sheet.hang(paint(sheet.style(), Tone::failed, "PRODUCTION") + "  ", 12, "is not as it was found");
            choice(sheet, "campaignctl restore " + name, "bring it back, and verify it");
        }
        const auto kept = int_at(campaign, "artifacts").value_or(0);
        if (kept > 0)
            sheet.field("kept", std::to_string(kept) + (kept == 1 ? " artifact" : " artifacts") +
                                    "     campaignctl artifacts " + name);
        choice(sheet, "campaignctl report " + name, "what was measured");
    }
}

}   // namespace

std::string render_campaign(const json::value& campaign, const Style& style) {
    Sheet sheet{style};
    const WallTime now = time_at(campaign, "now").value_or(WallTime{});
    head(sheet, campaign, now);
    failure(sheet, campaign, now);
    doubt(sheet, campaign, now);
    production(sheet, campaign, now);
    phases(sheet, campaign, now);
    waits(sheet, campaign, now);
    decided(sheet, campaign, now);
    needs(sheet, campaign);
    return sheet.text();
}

std::string render_live(const json::value& campaign, const Style& style) {
    const WallTime now = time_at(campaign, "now").value_or(WallTime{});
    const Standing is = standing_of(campaign);
    std::string first = ascii(string_at(campaign, "name").value_or("")) + " " + std::string(1, is.sign) + " " + is.word;
    const std::string phase = phase_text(campaign);
    if (!phase.empty()) first += "   " + phase;
    std::string second;
    if (const json::value* wait = member(campaign, "wait")) {
        const auto percent = number_at(*wait, "percent");
        second = wait_text(campaign, now);
        if (percent && second.size() + 36 <= style.width) second = bar(*percent, 30) + "  " + second;
    }
    Sheet sheet{style};
    sheet.hang("", 0, first);
    if (!second.empty()) sheet.hang("  ", 2, second);
    return sheet.text();
}

}   // namespace campaign::ctl
