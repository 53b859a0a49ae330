// Plans: checked and explained before anything is done.

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <variant>

#include "base/text.hpp"
#include "ctl/render.hpp"
#include "ctl/verbs.hpp"
#include "plans/parse.hpp"

namespace campaign::ctl {
namespace {

json::object check_view(const std::string& file, const plans::Diagnostics& diagnostics) {
    json::object view;
    view["schema"] = "campaignctl.plan-check/1";
    view["file"] = printable(file);
    view["ok"] = diagnostics.empty();
    json::array list;
    for (const plans::Diagnostic& one : diagnostics) {
        json::object entry;
        entry["code"] = one.code;
        entry["message"] = printable(one.message);
        entry["line"] = one.line;
        entry["column"] = one.column;
        entry["width"] = one.width;
        entry["hint"] = printable(one.hint);
        entry["note"] = printable(one.note);
        list.push_back(std::move(entry));
    }
    view["diagnostics"] = std::move(list);
    return view;
}

/// The plan's text when it is valid; else the errors are told and the code is given.
std::variant<std::string, Exit> valid_plan(Session& session, const std::string& file) {
    Result<std::string> text = read_text(file);
    if (!text) return fail(session, text.error(), true);
    const auto parsed = plans::parse(*text);
    const auto* diagnostics = std::get_if<plans::Diagnostics>(&parsed);
    if (diagnostics == nullptr) return std::move(*text);
    if (session.options.json) {
        json::object view = check_view(file, *diagnostics);
        view["schema"] = "campaignctl.error/1";
        view["error"] =
            to_json(Error{ErrorKind::invalid, "the plan is refused", std::to_string(diagnostics->size()) + " errors", "",
                          "campaignctl plan check " + file});
        put(json::serialize(view) + "\n");
    } else {
        put_error(plans::render(*diagnostics, file, *text));
    }
    return Exit::plan_refused;
}

/// Runs a program and takes what it writes to stdout, at most 64 MiB; its stderr is ours.
Result<std::string> output_of(const std::vector<std::string>& argv, int& status) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0)
        return Error{ErrorKind::io, "cannot make a pipe", std::strerror(errno), "", ""};
    Fd reading{ends[0]};
    Fd writing{ends[1]};
    std::vector<char*> words;
    for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    const pid_t child = ::fork();
    if (child < 0) return Error{ErrorKind::io, "cannot start " + argv.front(), std::strerror(errno), "", ""};
    if (child == 0) {
        ::dup2(writing.get(), STDOUT_FILENO);
        ::execv(words[0], words.data());
        ::_exit(127);
    }
    writing.reset();
    std::string text;
    std::vector<char> piece(64 * 1024);
    bool whole = true;
    for (;;) {
        const ssize_t got = ::read(reading.get(), piece.data(), piece.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        text.append(piece.data(), static_cast<std::size_t>(got));
        if (text.size() > 64U * 1024 * 1024) {
            whole = false;
            break;
        }
    }
    reading.reset();
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (!whole) return Error{ErrorKind::protocol, argv.front() + " wrote more than an explanation can be", "", "", ""};
    return text;
}

Result<json::value> explain_offline(const std::string& file) {
    const std::string program = find_program("campaignd");
    if (program.empty())
        return Error{ErrorKind::unavailable, "campaignd is neither beside campaignctl nor in PATH",
                     "plan explain --offline runs it", "", "without --offline the daemon explains"};
    int status = 0;
    const std::vector<std::string> argv{program, "explain", "--offline", file, "--json"};
    const Result<std::string> text = output_of(argv, status);
    if (!text) return text.error();
    Result<json::value> value = parse_json(*text, "what campaignd explain wrote");
    if (!value) return value.error();
    if (const json::value* error = member(*value, "error")) return error_from_json(*error);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return Error{ErrorKind::failed, "campaignd explain failed", "", "", ""};
    return value;
}

}   // namespace

Exit submit(Session& session) {
    auto plan = valid_plan(session, session.options.file);
    if (const Exit* refused = std::get_if<Exit>(&plan)) return *refused;
    json::object body;
    body["plan"] = std::get<std::string>(plan);
    body["file"] = session.options.file;
    const Result<json::value> submitted = session.client.post("/v1/campaigns", body);
    if (!submitted) return fail(session, submitted.error(), true);
    return answer(session, *submitted, [](const json::value& value, const Style& style) {
        const std::string id = ascii(string_at(value, "id").value_or(""));
        Sheet sheet{style};
        sheet.with_command(0, id + " submitted", "campaignctl watch " + id);
        return sheet.text();
    });
}

Exit plan_check(Session& session) {
    const std::string& file = session.options.file;
    const Result<std::string> text = read_text(file);
    if (!text) return fail(session, text.error(), true);
    const auto parsed = plans::parse(*text);
    const auto* diagnostics = std::get_if<plans::Diagnostics>(&parsed);
    if (session.options.json) {
        const json::object view = check_view(file, diagnostics == nullptr ? plans::Diagnostics{} : *diagnostics);
        put(json::serialize(view) + "\n");
    } else if (diagnostics != nullptr) {
        put(plans::render(*diagnostics, file, *text));
    } else {
        const plans::Plan& plan = std::get<plans::Plan>(parsed);
        Sheet sheet{session.terminal.out};
        const std::size_t phases = plan.phases.size();
        sheet.with_command(
            0, ascii(plan.name) + ": no errors, " + std::to_string(phases) + (phases == 1 ? " phase" : " phases"),
            "campaignctl plan explain " + file);
        put(sheet.text());
    }
    return diagnostics == nullptr ? Exit::as_asked : Exit::plan_refused;
}

Exit plan_explain(Session& session) {
    auto plan = valid_plan(session, session.options.file);
    if (const Exit* refused = std::get_if<Exit>(&plan)) return *refused;
    json::object body;
    body["plan"] = std::get<std::string>(plan);
    body["offline"] = false;
    const Result<json::value> explained =
        session.options.offline ? explain_offline(session.options.file) : session.client.post("/v1/explain", body);
    if (!explained) {
        Error error = explained.error();
        if (error.kind == ErrorKind::unreachable && !session.options.offline)
            error.next += "; campaignctl plan explain --offline " + session.options.file + " needs no daemon";
        return fail(session, error, true);
    }
    const bool all = session.options.commands;
    return answer(session, *explained,
                  [all](const json::value& value, const Style& style) { return render_explain(value, style, all); });
}

Exit plan_schema(Session& session) {
    std::string schema = plans::json_schema();
    if (!schema.ends_with('\n')) schema += '\n';
    const Result<void> written = write_text(session.options.file, schema);
    return written ? Exit::as_asked : fail(session, written.error());
}

Exit explain_code(Session& session) {
    const std::string text = plans::explain_code(session.options.file);
    if (text.empty()) {
        return fail(session, Error{ErrorKind::not_found, "no error code is called " + printable(session.options.file, 100),
                                   "codes look like P012", "", "campaignctl plan check FILE shows them"});
    }
    json::object view;
    view["schema"] = "campaignctl.code/1";
    view["code"] = session.options.file;
    view["text"] = text;
    return answer(session, view,
                  [&text](const json::value&, const Style&) { return text.ends_with('\n') ? text : text + "\n"; });
}

Exit instrument(Session& session) {
    const std::string program = find_program("campaign-agent");
    if (program.empty())
        return fail(session, Error{ErrorKind::unavailable, "campaign-agent is neither beside campaignctl nor in PATH",
                                   session.options.verb + " is its command", "", ""});
    std::vector<std::string> argv{program, session.options.verb};
    argv.insert(argv.end(), session.options.rest.begin(), session.options.rest.end());
    std::vector<char*> words;
    for (std::string& word : argv) words.push_back(word.data());
    words.push_back(nullptr);
    ::execv(words[0], words.data());
    return fail(session, Error{ErrorKind::io, "cannot run " + program, std::strerror(errno), "", ""});
}

}   // namespace campaign::ctl
