#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <set>
#include <vector>

#include "base/json.hpp"
#include "base/text.hpp"
#include "ctl/exit_code.hpp"
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

WallTime now_of(const json::value& view) {
    return time_at(view, "now").value_or(WallTime{});
}

std::string head_line(const json::value& status, WallTime now) {
    const auto total =
        int_at(status, "campaigns_total").value_or(static_cast<std::int64_t>(list_at(status, "campaigns").size()));
    std::set<std::string> asking;
    for (const json::value& need : list_at(status, "needs")) asking.insert(text_at(need, "campaign"));
    std::string text = "campaignd " + text_at(status, "version") + "   " + date_text(now) + "   ";
    text += std::to_string(total) + (total == 1 ? " campaign, " : " campaigns, ");
    text += asking.empty() ? "nothing needs you"
                           : std::to_string(asking.size()) + (asking.size() == 1 ? " NEEDS YOU" : " NEED YOU");
    return text;
}

void production_lines(Sheet& sheet, const json::value& status, WallTime now) {
    const json::array& services = list_at(status, "production");
    sheet.line("PRODUCTION");
    if (services.empty()) sheet.line("  no service was looked at yet");
    std::size_t host_width = 0;
    std::size_t unit_width = 0;
    for (const json::value& service : services) {
        host_width = std::max(host_width, text_at(service, "host").size());
        unit_width = std::max(unit_width, unit_text(service).size());
    }
    std::set<std::string> over;
    for (const json::value& campaign : list_at(status, "campaigns")) {
        if (bool_at(campaign, "over").value_or(false)) over.insert(text_at(campaign, "name"));
    }
    for (const json::value& service : services) {
        const Standing is = production_standing(service, over.contains(text_at(service, "campaign")));
        const std::string plain = "  " + std::string(1, is.sign) + " " + pad(text_at(service, "host"), host_width) + " " +
                                  pad(unit_text(service), unit_width) + "   " + pad(is.word, 10) + " ";
        const std::string head = "  " + paint(sheet.style(), is.tone, std::string(1, is.sign)) + " " +
                                 pad(text_at(service, "host"), host_width) + " " + pad(unit_text(service), unit_width) +
                                 "   " + paint(sheet.style(), is.tone, is.word) +
                                 std::string(is.word.size() < 10 ? 11 - is.word.size() : 1, ' ');
        std::string detail = text_at(service, "detail");
        const std::string state = text_at(service, "state");
        if (const auto since = time_at(service, "since")) {
            const std::string when = clock_text(*since, now);
            if (state == "verified") {
                detail = "verified " + when;
            } else if (state == "as_found") {
                detail = detail.empty() ? "since " + when : detail;
            } else {
                detail = (is.sign == '~' ? "by plan since " : "since ") + when + (detail.empty() ? "" : "; " + detail);
            }
        }
        sheet.hang(head, plain.size(), detail);
    }
}

/// What a campaign's line says.
std::string campaign_words(const json::value& campaign, const json::value& status, WallTime now) {
    const std::string name = text_at(campaign, "name");
    for (const json::value& need : list_at(status, "needs")) {
        if (text_at(need, "campaign") == name) return text_at(need, "what");
    }
    const std::string waits = wait_text(campaign, now);
    if (!waits.empty()) return phase_text(campaign) + ": " + waits;
    const std::string detail = text_at(campaign, "detail");
    if (bool_at(campaign, "over").value_or(false)) return detail;
    const json::value* phase = member(campaign, "phase");
    if (phase == nullptr) return detail.empty() ? "begins" : detail;
    const std::string method = text_at(*phase, "method");
    return phase_text(campaign) + (method.empty() ? "" : ": " + method) + (detail.empty() ? "" : "; " + detail);
}

void campaign_lines(Sheet& sheet, const json::value& status, WallTime now) {
    const json::array& campaigns = list_at(status, "campaigns");
    sheet.line("CAMPAIGNS");
    if (campaigns.empty()) sheet.with_command(2, "none yet", "campaignctl submit PLAN.yaml");
    std::size_t name_width = 0;
    std::size_t host_width = 0;
    for (const json::value& campaign : campaigns) {
        name_width = std::max(name_width, text_at(campaign, "name").size());
        for (const json::value& host : list_at(campaign, "hosts")) {
            if (host.is_string()) host_width = std::max(host_width, ascii(host.get_string()).size());
        }
    }
    name_width = std::min<std::size_t>(name_width, 24);
    host_width = std::min<std::size_t>(host_width, 16);
    for (const json::value& campaign : campaigns) {
        const Standing is = standing_of(campaign);
        std::string host;
        const json::array& hosts = list_at(campaign, "hosts");
        if (!hosts.empty() && hosts.front().is_string()) host = ascii(hosts.front().get_string());
        if (hosts.size() > 1) host += "+" + std::to_string(hosts.size() - 1);
        const std::string who =
            pad(text_at(campaign, "name"), name_width) + "  " + (host_width == 0 ? "" : pad(host, host_width) + "  ");
        const std::size_t word_width = 9;
        const std::size_t head_width = 4 + who.size() + word_width + 1;
        const std::string head = "  " + paint(sheet.style(), is.tone, std::string(1, is.sign)) + " " + who +
                                 paint(sheet.style(), is.tone, is.word) +
                                 std::string(is.word.size() < word_width ? word_width + 1 - is.word.size() : 1, ' ');
        std::string words = campaign_words(campaign, status, now);
        const auto ended = time_at(campaign, "ended");
        if (ended) words += (words.empty() ? "" : ", ") + clock_text(*ended, now);
        sheet.hang(head, std::max(head_width, 4 + who.size() + is.word.size() + 1), words);
    }
}

void last_decision_lines(Sheet& sheet, const json::value& status, WallTime now) {
    const json::value* decision = member(status, "last_decision");
    if (decision == nullptr) return;
    sheet.line("LAST DECISION");
    const std::string when = clock_text(time_at(*decision, "at").value_or(now), now);
    const std::string chosen = text_at(*decision, "chosen");
    std::string text = text_at(*decision, "campaign") + ": " + (chosen.empty() ? "nothing can be done" : chosen) + " for " +
                       text_at(*decision, "phase");
    std::string losers;
    for (const json::value& candidate : list_at(*decision, "candidates")) {
        if (text_at(candidate, "verdict") == "chosen") continue;
        losers +=
            (losers.empty() ? ", over " : ", ") + text_at(candidate, "method") + " (" + text_at(candidate, "verdict") + ")";
    }
    text += losers;
    const json::array& approvals = list_at(*decision, "approvals");
    if (!approvals.empty()) text += "; approved by " + text_at(approvals.front(), "by");
    sheet.hang("  " + when + "  ", when.size() + 4, text);
}

}   // namespace

Standing standing_of(const json::value& campaign) {
    const std::string state = string_at(campaign, "state").value_or("");
    if (state == "running") return {'>', "running", Tone::runs};
    if (state == "queued") return {'>', "queued", Tone::runs};
    if (state == "restoring") return {'>', "restoring", Tone::runs};
    if (state == "waiting") return {'!', "waiting", Tone::you};
    if (state == "in_doubt") return {'!', "in doubt", Tone::you};
    const bool away = !production_as_found(campaign);
    if (state == "done") return away ? Standing{'x', "DONE", Tone::failed} : Standing{'=', "done", Tone::fine};
    if (state == "failed") return {'x', "FAILED", Tone::failed};
    if (state == "cancelled")
        return away ? Standing{'x', "CANCELLED", Tone::failed} : Standing{'~', "cancelled", Tone::by_plan};
    return {'!', ascii(state), Tone::you};
}

Standing production_standing(const json::value& production, bool campaign_over) {
    const std::string state = string_at(production, "state").value_or("unknown");
    if (state == "as_found" || state == "verified") return {'=', "AS WAS", Tone::fine};
    if (campaign_over) {
        if (state == "changed") return {'x', "CHANGED", Tone::failed};
        if (state == "down") return {'x', "DOWN", Tone::failed};
        if (state == "restoring") return {'x', "NOT BACK", Tone::failed};
        return {'x', "UNKNOWN", Tone::failed};
    }
    if (state == "changed") return {'~', "CHANGED", Tone::by_plan};
    if (state == "down") return {'~', "DOWN", Tone::by_plan};
    if (state == "restoring") return {'~', "RESTORING", Tone::by_plan};
    return {'!', "UNKNOWN", Tone::you};
}

std::string phase_text(const json::value& campaign) {
    const json::value* phase = member(campaign, "phase");
    if (phase == nullptr) return "";
    return std::to_string(int_at(*phase, "ordinal").value_or(0)) + "/" + std::to_string(int_at(*phase, "of").value_or(0)) +
           " " + text_at(*phase, "name");
}

std::string unit_text(const json::value& production) {
    std::string unit = text_at(production, "unit");
    if (unit.empty()) unit = text_at(production, "service");
    if (unit.ends_with(".service")) unit.erase(unit.size() - 8);
    return unit;
}

std::string wait_text(const json::value& campaign, WallTime now) {
    const json::value* wait = member(campaign, "wait");
    if (wait == nullptr) return "";
    std::string text = text_at(*wait, "for");
    if (text == "model ready") text = "model loading";
    if (const auto percent = number_at(*wait, "percent")) text += " " + std::to_string(std::lround(*percent)) + " %";
    const json::array& expected = list_at(*wait, "expected_s");
    const auto elapsed = number_at(*wait, "elapsed_s");
    const auto at = time_at(*wait, "at");
    if (expected.size() == 2 && expected[0].is_number() && elapsed && at) {
        const auto left = std::chrono::duration<double>(expected[0].to_number<double>() - *elapsed);
        const WallTime ready = *at + std::chrono::duration_cast<std::chrono::microseconds>(left);
        if (ready > now) text += ", ready about " + clock_text(ready, now);
    }
    return text;
}

std::string render_status(const json::value& status, const Style& style) {
    Sheet sheet{style};
    const WallTime now = now_of(status);
    sheet.hang("", 0, head_line(status, now));
    production_lines(sheet, status, now);
    campaign_lines(sheet, status, now);
    const json::array& needs = list_at(status, "needs");
    sheet.line(paint(style, needs.empty() ? Tone::plain : Tone::you, "NEEDS YOU"));
    if (needs.empty()) sheet.line("  nothing");
    for (const json::value& need : needs) {
        const std::string name = text_at(need, "campaign");
        std::string command = text_at(need, "command");
        for (const json::value& campaign : list_at(status, "campaigns")) {   // its own screen shows the choices
            if (text_at(campaign, "name") == name && text_at(campaign, "state") == "in_doubt")
                command = "campaignctl status " + name;
        }
        sheet.with_command(2, name + ": " + text_at(need, "what"), command);
    }
    last_decision_lines(sheet, status, now);
    return sheet.text();
}

}   // namespace campaign::ctl
