#pragma once
// What each verb does. One function a verb; main picks.

#include "ctl/client.hpp"
#include "ctl/options.hpp"
#include "ctl/terminal.hpp"

namespace campaign::ctl {

struct Session {
    const Options& options;
    Terminal terminal;
    Client client;
};

/// Runs the verb that the options name; its exit code.
[[nodiscard]] Exit run(Session& session);

// The families, each in a file of its own.
[[nodiscard]] Exit submit(Session& session);
[[nodiscard]] Exit plan_check(Session& session);
[[nodiscard]] Exit plan_explain(Session& session);
[[nodiscard]] Exit plan_schema(Session& session);
[[nodiscard]] Exit explain_code(Session& session);
[[nodiscard]] Exit adapt_unit(Session& session);
[[nodiscard]] Exit watch(Session& session);
[[nodiscard]] Exit wait(Session& session);
[[nodiscard]] Exit logs(Session& session);
[[nodiscard]] Exit artifacts(Session& session);
[[nodiscard]] Exit report(Session& session);
/// load, analyze, startup, check: campaign-agent's own commands.
[[nodiscard]] Exit instrument(Session& session);

/// Says what went wrong (to stderr; with --json one object to stdout) and gives the exit code.
Exit fail(const Session& session, const Error& error, bool about_plan = false);
/// The JSON, or the text that `render` makes of it.
template <class Render>
Exit answer(const Session& session, const json::value& value, Render render) {
    const std::string text = session.options.json ? json::serialize(value) + "\n" : render(value, session.terminal.out);
    return put(text) ? Exit::as_asked : Exit::bug;
}

[[nodiscard]] std::string campaign_target(const std::string& name, const std::string& rest = "");

/// A program beside this one, or in PATH; "" when it is nowhere.
[[nodiscard]] std::string find_program(const std::string& name);

/// Reads a file or "-" for stdin, at most 10 MiB.
[[nodiscard]] Result<std::string> read_text(const std::string& file);
/// Writes a file as a whole: a new file beside it, renamed. "-" or "" is stdout.
[[nodiscard]] Result<void> write_text(const std::string& file, const std::string& text);

}   // namespace campaign::ctl
