// The verbs that stay: watch, wait, logs.

#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <optional>

#include "base/text.hpp"
#include "ctl/render.hpp"
#include "ctl/verbs.hpp"

namespace campaign::ctl {
namespace {

using Steady = std::chrono::steady_clock;
using std::chrono::milliseconds;

volatile std::sig_atomic_t interrupted = 0;

extern "C" void on_interrupt(int) {
    interrupted = 1;
}

/// Ctrl-C ends the loop instead of the process, so that the terminal can be put back.
class Interruptible {
public:
    Interruptible() {
        struct sigaction action {};
        action.sa_handler = on_interrupt;
        sigemptyset(&action.sa_mask);
        for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
    }
};

/// Keys one at a time, without an echo.
class Keys {
public:
    explicit Keys(bool wanted) : active_{wanted && ::tcgetattr(STDIN_FILENO, &before_) == 0} {
        if (!active_) return;
        termios now = before_;
        now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
        ::tcsetattr(STDIN_FILENO, TCSANOW, &now);
    }
    Keys(const Keys&) = delete;
    Keys& operator=(const Keys&) = delete;
    ~Keys() {
        if (active_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
    }
    [[nodiscard]] int fd() const { return active_ ? STDIN_FILENO : -1; }
    /// Whether q was among the keys that wait to be read.
    [[nodiscard]] bool quit() {
        if (!active_) return false;
        pollfd wait{STDIN_FILENO, POLLIN, 0};
        while (::poll(&wait, 1, 0) > 0) {
            char key = 0;
            if (::read(STDIN_FILENO, &key, 1) != 1) {   // its input is gone: no key will come
                ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
                active_ = false;
                return false;
            }
            if (key == 'q' || key == 'Q') return true;
        }
        return false;
    }

private:
    termios before_{};
    bool active_;
};

/// The lines at the bottom that are drawn again; everything above stays, to be copied and scrolled.
class LiveLines {
public:
    explicit LiveLines(bool active) : active_{active} {}
    void erase() {
        if (shown_ > 0) put("\x1b[" + std::to_string(shown_) + "A\r\x1b[J");
        shown_ = 0;
    }
    void draw(const std::string& text) {
        if (!active_) return;
        erase();
        put(text);
        shown_ = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    }

private:
    bool active_;
    std::size_t shown_ = 0;
};

std::string events_target(const std::string& name, std::int64_t after) {
    return campaign_target(name, "/events?follow=1&after=" + std::to_string(after));
}

/// Whether an event can change what wait_over says.
bool matters(const json::value& event) {
    const std::string kind = string_at(event, "kind").value_or("");
    return kind == "campaign" || kind == "production" || kind == "need" || member(event, "resync") != nullptr;
}

/// A daemon that is restarted comes back: how long it is waited for.
constexpr std::chrono::seconds daemon_patience{60};

struct Following {
    std::string name;
    std::int64_t after = 0;
    json::value view;
};

Result<Following> begin(Session& session) {
    Result<json::value> view = session.client.get(campaign_target(session.options.campaign));
    if (!view) return view.error();
    Following following;
    following.name = string_at(*view, "name").value_or(session.options.campaign);
    following.after = int_at(*view, "seq").value_or(0);
    following.view = std::move(*view);
    return following;
}

/// Follows until `line` or `idle` ends it; over a restart of the daemon too. The error is the last one when it stays away.
Result<void> follow(Session& session, Following& following, const std::function<Client::Go(const json::value&)>& line,
                    const std::function<Client::Go()>& idle, milliseconds every, int also_fd) {
    bool stopped = false;
    std::optional<Steady::time_point> away_since;
    const auto counted = [&](const json::value& event) {
        away_since.reset();
        if (const auto seq = int_at(event, "seq")) following.after = *seq;
        if (const auto resync = int_at(event, "resync")) following.after = *resync;
        const Client::Go go = line(event);
        stopped = go == Client::Go::stop;
        return go;
    };
    const auto quiet = [&] {
        const Client::Go go = idle();
        stopped = go == Client::Go::stop;
        return go;
    };
    for (;;) {
        const Result<void> streamed =
            session.client.stream(events_target(following.name, following.after), counted, quiet, every, also_fd);
        if (stopped) return {};
        if (!streamed && streamed.error().kind != ErrorKind::unreachable) return streamed.error();
        const auto now = Steady::now();
        if (!away_since) {
            away_since = now;
            put_error("campaignctl: the daemon broke off; trying again for " +
                      span_text(static_cast<double>(daemon_patience.count())) + "\n");
        }
        if (now - *away_since > daemon_patience) {
            return streamed ? Error{ErrorKind::unreachable, "the daemon broke off and did not come back", "", "",
                                    "systemctl status campaignd"}
                            : streamed.error();
        }
        if (quiet() == Client::Go::stop) return {};
        ::poll(nullptr, 0, 500);
    }
}

}   // namespace

Exit wait(Session& session) {
    const Interruptible interruptible;
    const Options& options = session.options;
    const WaitFor what = options.wait_for == "restored"   ? WaitFor::restored
                         : options.wait_for == "decision" ? WaitFor::decision
                                                          : WaitFor::done;
    const auto limit = options.timeout.empty() ? std::nullopt : parse_duration(options.timeout);
    const auto began = Steady::now();
    Result<Following> following = begin(session);
    if (!following) return fail(session, following.error());
    std::optional<Exit> over = wait_over(following->view, what);
    bool late = false;
    std::optional<Error> trouble;
    if (!over) {
        const auto idle = [&] {
            late = limit && Steady::now() - began >= *limit;
            return late || interrupted != 0 ? Client::Go::stop : Client::Go::on;
        };
        const auto line = [&](const json::value& event) {
            if (matters(event)) {
                Result<json::value> view = session.client.get(campaign_target(following->name));
                if (!view) return idle();   // the daemon goes away: the stream will tell
                following->view = std::move(*view);
                over = wait_over(following->view, what);
                if (over) return Client::Go::stop;
            }
            return idle();
        };
        const Result<void> followed = follow(session, *following, line, idle, milliseconds{200}, -1);
        if (!followed) trouble = followed.error();
    }
    if (interrupted != 0) return Exit::detached;
    if (trouble) return fail(session, *trouble);
    if (late && !over) {
        Error error;
        error.kind = ErrorKind::timed_out;
        error.what = following->name + " has not ended within " + options.timeout;
        error.next = "campaignctl status " + following->name;
        return fail(session, error);
    }
    const Exit shown = answer(session, following->view, [](const json::value& view, const Style& style) {
        const Standing is = standing_of(view);
        const std::string detail = string_at(view, "detail").value_or("");
        Sheet sheet{style};
        sheet.hang("", 0,
                   string_at(view, "name").value_or("") + " " + std::string(1, is.sign) + " " + is.word +
                       (detail.empty() ? "" : ": " + detail));
        return sheet.text();
    });
    return shown == Exit::as_asked ? *over : shown;
}

Exit logs(Session& session) {
    const Interruptible interruptible;
    const Options& options = session.options;
    const Style style = session.terminal.out;
    bool written = true;
    const auto line = [&](const json::value& event) {
        written = put(options.json ? json::serialize(event) + "\n" : render_event(event, style) + "\n");
        return written && interrupted == 0 ? Client::Go::on : Client::Go::stop;
    };
    const auto idle = [] { return interrupted != 0 ? Client::Go::stop : Client::Go::on; };
    Result<void> read;
    if (options.follow) {
        Following following;
        following.name = options.campaign;
        const Result<Following> there = begin(session);
        if (!there) return fail(session, there.error());
        following.name = there->name;
        read = follow(session, following, line, idle, milliseconds{200}, -1);
    } else {
        read = session.client.stream(campaign_target(options.campaign, "/events?after=0"), line, idle, milliseconds{200});
    }
    if (interrupted != 0) return Exit::detached;
    if (!read) return fail(session, read.error());
    return written ? Exit::as_asked : Exit::bug;
}

Exit watch(Session& session) {
    const Interruptible interruptible;
    const Options& options = session.options;
    const bool live = session.terminal.out_is_tty && !options.json;
    Keys keys{live && session.terminal.in_is_tty};
    LiveLines lines{live};
    const Style style = session.terminal.out;
    Result<Following> following = begin(session);
    if (!following) return fail(session, following.error());
    if (!options.json) put(render_campaign(following->view, style));
    bool left = false;
    std::optional<Exit> end;
    if (bool_at(following->view, "over").value_or(false)) end = exit_of_campaign(following->view);
    std::optional<Steady::time_point> drawn;
    std::optional<Steady::time_point> wait_shown;
    std::string wait_line;
    bool stale = true;
    const auto refresh = [&] {
        Result<json::value> view = session.client.get(campaign_target(following->name));
        if (view) following->view = std::move(*view);
        stale = false;
        if (bool_at(following->view, "over").value_or(false)) end = exit_of_campaign(following->view);
    };
    const auto redraw = [&] {
        if (!live || end) return;
        const auto now = Steady::now();
        if (drawn && now - *drawn < milliseconds{250}) return;
        refresh();
        lines.draw(render_live(following->view, style));
        drawn = now;
    };
    const auto idle = [&] {
        left = keys.quit() || interrupted != 0;
        if (left) return Client::Go::stop;
        redraw();
        return end ? Client::Go::stop : Client::Go::on;
    };
    const auto show = [&](const json::value& event) {
        if (options.json) return put(json::serialize(event) + "\n");
        if (string_at(event, "kind") == "wait") {
            if (live) return true;   // the live lines say it
            // A line where the words change, at most one a minute: a log is no flood.
            std::string text = render_event(event, style);
            const auto now = Steady::now();
            if (wait_shown && now - *wait_shown < std::chrono::minutes{1}) return true;
            if (text.size() > 9 && text.substr(9) == wait_line) return true;
            wait_line = text.size() > 9 ? text.substr(9) : "";
            wait_shown = now;
            return put(text + "\n");
        }
        wait_shown.reset();
        lines.erase();
        drawn.reset();
        return put(render_event(event, style) + "\n");
    };
    const auto line = [&](const json::value& event) {
        if (!show(event)) {
            left = true;
            return Client::Go::stop;
        }
        if (matters(event)) refresh();
        return idle();
    };
    if (!end) {
        const Result<void> followed = follow(session, *following, line, idle, milliseconds{500}, keys.fd());
        lines.erase();
        if (!followed) return fail(session, followed.error());
        if (end && !options.json) put(render_campaign(following->view, style));
    }
    if (left) {
        if (live) put_error(ascii(following->name) + " goes on     campaignctl watch " + ascii(following->name) + "\n");
        return Exit::detached;
    }
    return end.value_or(Exit::as_asked);
}

}   // namespace campaign::ctl
