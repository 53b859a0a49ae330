#include "ctl/verbs.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/text.hpp"
#include "ctl/complete.hpp"
#include "ctl/confirm.hpp"
#include "ctl/render.hpp"

namespace campaign::ctl {
namespace {

/// The answer of an act, as its text.
Exit told(Session& session, const Result<json::value>& done) {
    if (!done) return fail(session, done.error());
    return answer(session, *done, [](const json::value& value, const Style&) {
        return ascii(string_at(value, "text").value_or("done")) + "\n";
    });
}

Exit status(Session& session) {
    const Options& options = session.options;
    if (options.campaign.empty()) {
        const Result<json::value> view = session.client.get("/v1/status");
        return view ? answer(session, *view, render_status) : fail(session, view.error());
    }
    if (options.decision.empty()) {
        const Result<json::value> view = session.client.get(campaign_target(options.campaign));
        return view ? answer(session, *view, render_campaign) : fail(session, view.error());
    }
    Result<json::value> view =
        session.client.get(campaign_target(options.campaign, "/decisions/" + percent_encode(options.decision)));
    if (!view) return fail(session, view.error());
    return answer(session, *view, [](json::value decision, const Style& style) {
        decision.as_object()["now"] = format_time(SystemClock{}.wall());
        return render_decision(decision, style);
    });
}

Exit approve(Session& session) {
    json::object body;
    body["decision"] = session.options.decision;
    body["candidate"] = session.options.candidate;
    return told(session, session.client.post(campaign_target(session.options.campaign, "/approve"), body));
}

/// cancel, restore, resume --as: the cost first, then the name.
Exit confirmed(Session& session, const json::object& body) {
    const Options& options = session.options;
    const Result<json::value> view = session.client.get(campaign_target(options.campaign));
    if (!view) return fail(session, view.error());
    const std::string name = string_at(*view, "name").value_or("");
    const bool can_ask = session.terminal.in_is_tty && session.terminal.err_is_tty && options.yes.empty();
    if (!can_ask) {
        if (const auto refused = without_terminal(options.verb, name, options.yes)) return fail(session, *refused);
    } else {
        Sheet sheet{session.terminal.err};
        sheet.hang("", 0, cost_of(options.verb, options.as, *view));
        put_error(sheet.text() + question(options.verb, ascii(name)));
        std::array<char, 512> typed{};
        if (std::fgets(typed.data(), static_cast<int>(typed.size()), stdin) == nullptr) typed[0] = '\0';
        if (!typed_right(typed.data(), name)) {
            Error error;
            error.kind = ErrorKind::usage;
            error.what = options.verb + " was not confirmed";
            error.why = "nothing was done";
            return fail(session, error);
        }
    }
    return told(session, session.client.post(campaign_target(name, "/" + options.verb), body));
}

Exit resume(Session& session) {
    json::object body;
    body["as"] = nullptr;
    if (session.options.as.empty())
        return told(session, session.client.post(campaign_target(session.options.campaign, "/resume"), body));
    body["as"] = session.options.as;
    return confirmed(session, body);
}

Exit version(Session& session) {
    const Result<json::value> daemon = session.client.get("/v1/version");
    json::object view;
    view["schema"] = "campaignctl.version/1";
    view["campaignctl"] = CAMPAIGN_VERSION;
    view["daemon"] = daemon ? *daemon : json::value(nullptr);
    return answer(session, view, [&session](const json::value& value, const Style&) {
        std::string text = std::string{"campaignctl "} + CAMPAIGN_VERSION + "\n";
        const json::value* there = member(value, "daemon");
        text += there == nullptr ? "campaignd   does not answer on " + ascii(session.client.path()) + "\n"
                                 : "campaignd   " + ascii(string_at(*there, "version").value_or("")) + ", pid " +
                                       std::to_string(int_at(*there, "pid").value_or(0)) + ", since " +
                                       ascii(string_at(*there, "started").value_or("")) + "\n";
        return text;
    });
}

/// The members `key` of the objects in `list` of an answer; nothing where there is no answer.
std::vector<std::string> members_of(const Result<json::value>& view, std::string_view list, std::string_view key) {
    std::vector<std::string> found;
    const json::value* all = view ? member(*view, list) : nullptr;
    if (all == nullptr || !all->is_array()) return found;
    for (const json::value& one : all->get_array()) {
        const std::string name = ascii(string_at(one, key).value_or(""));
        if (!name.empty() && std::find(found.begin(), found.end(), name) == found.end()) found.push_back(name);
    }
    return found;
}

/// What the shell's completion asks. It says nothing about failures: a person is typing.
Exit completions(Session& session) {
    Client& client = session.client;
    const Names names = [&client](Takes takes, const std::string& campaign, const std::string& decision) {
        if (takes == Takes::campaign) return members_of(client.get("/v1/status"), "campaigns", "name");
        if (campaign.empty()) return std::vector<std::string>{};
        if (takes == Takes::artifact)
            return members_of(client.get(campaign_target(campaign, "/artifacts")), "artifacts", "name");
        if (takes == Takes::decision) return members_of(client.get(campaign_target(campaign)), "decisions", "label");
        return members_of(client.get(campaign_target(campaign, "/decisions/" + percent_encode(decision))), "candidates",
                          "method");
    };
    const Completion completion = complete(session.options.rest, names);
    std::string text;
    for (const std::string& word : completion.words) text += word + "\n";
    put(text + (completion.files ? ":files\n" : ""));
    return Exit::as_asked;
}

}   // namespace

std::string campaign_target(const std::string& name, const std::string& rest) {
    return "/v1/campaigns/" + percent_encode(name) + rest;
}

Exit fail(const Session& session, const Error& error, bool about_plan) {
    if (session.options.json) {
        json::object view;
        view["schema"] = "campaignctl.error/1";
        view["error"] = to_json(error);
        put(json::serialize(view) + "\n");
    } else {
        put_error(render_error(error, session.terminal.err));
    }
    return exit_of(error, about_plan);
}

Exit run(Session& session) {
    const std::string& verb = session.options.verb;
    if (verb == "status") return status(session);
    if (verb == "submit") return submit(session);
    if (verb == "approve") return approve(session);
    if (verb == "cancel" || verb == "restore") return confirmed(session, json::object{});
    if (verb == "resume") return resume(session);
    if (verb == "watch") return watch(session);
    if (verb == "wait") return wait(session);
    if (verb == "logs") return logs(session);
    if (verb == "artifacts") return artifacts(session);
    if (verb == "report") return report(session);
    if (verb == "plan check") return plan_check(session);
    if (verb == "plan explain") return plan_explain(session);
    if (verb == "plan schema") return plan_schema(session);
    if (verb == "explain") return explain_code(session);
    if (verb == "adapt") return adapt_unit(session);
    if (verb == "version") return version(session);
    if (verb == complete_verb) return completions(session);
    return instrument(session);
}

}   // namespace campaign::ctl
