#include "ctl/confirm.hpp"

#include "base/json.hpp"
#include "base/text.hpp"
#include "ctl/render.hpp"

namespace campaign::ctl {
namespace {

/// The first service that is not as it was found.
const json::value* away(const json::value& campaign) {
    const json::value* production = member(campaign, "production");
    if (production == nullptr || !production->is_array()) return nullptr;
    for (const json::value& service : production->get_array()) {
        const std::string state = string_at(service, "state").value_or("unknown");
        if (state != "as_found" && state != "verified") return &service;
    }
    return nullptr;
}

/// "serving again about 23:26", from how long loads take here; "" when that is unknown.
std::string serving_again(const json::value& campaign) {
    const json::value* wait = member(campaign, "wait");
    const auto now = time_at(campaign, "now");
    if (wait == nullptr || !now) return "";
    const json::value* expected = member(*wait, "expected_s");
    if (expected == nullptr || !expected->is_array() || expected->get_array().empty() ||
        !expected->get_array()[0].is_number())
        return "";
    const auto load = std::chrono::duration<double>(expected->get_array()[0].to_number<double>());
    return "serving again about " + clock_text(*now + std::chrono::duration_cast<std::chrono::microseconds>(load), *now);
}

}   // namespace

std::string cost_of(const std::string& verb, const std::string& as, const json::value& campaign) {
    const std::string name = ascii(string_at(campaign, "name").value_or(""));
    const json::value* service = away(campaign);
    const std::string unit =
        service == nullptr ? "" : unit_text(*service) + " on " + ascii(string_at(*service, "host").value_or("its host"));
    const std::string again = serving_again(campaign);
    const json::value* wait = member(campaign, "wait");
    const bool loading = wait != nullptr && string_at(*wait, "for") == "model ready";
    if (verb == "resume") {
        if (as == "done")
            return "The step in doubt counts as carried out, and is not sent again. If it was not, what follows works on a "
                   "host in another state than is believed.";
        return "The step in doubt is sent once more. If it was carried out already, it happens twice.";
    }
    if (verb == "restore") {
        if (service == nullptr)
            return "Production of " + name +
                   " is as it was found: there is nothing to bring back, and it is only verified again.";
        return "To restore removes what the campaign put on the host and restarts " + unit +
               " where it differs from what was found: production is down for one model load" +
               (again.empty() ? "" : ", " + again) + ".";
    }
    std::string text = name + " " + (loading ? "is loading a model" : "is " + standing_of(campaign).word) + ". ";
    if (service == nullptr)
        return text +
               "Nothing on a host is changed now, so to cancel costs no production: the step that runs is ended, what was "
               "gathered is kept.";
    text += "To cancel restores " + unit + " now: production is down for one more model load";
    return text + (again.empty() ? "" : ", " + again) + ". What was gathered is kept.";
}

std::string question(const std::string& verb, const std::string& name) {
    return "Type " + name + " to " + verb + ": ";
}

std::optional<Error> without_terminal(const std::string& verb, const std::string& name, const std::string& yes) {
    if (yes == name) return std::nullopt;
    Error error;
    error.kind = ErrorKind::usage;
    error.what = verb + " needs a confirmation, and there is no terminal to type it in";
    if (!yes.empty()) {
        error.what = verb + " was not confirmed";
        error.why = "--yes=" + printable(yes, 100) + " is not the campaign's whole name";
    }
    error.next = "campaignctl " + verb + " " + name + " --yes=" + name;
    return error;
}

bool typed_right(std::string_view typed, std::string_view name) {
    return !name.empty() && trim(typed) == name;
}

}   // namespace campaign::ctl
