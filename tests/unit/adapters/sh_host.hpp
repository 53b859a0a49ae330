#pragma once
// A host that really runs commands, with its own folder standing for /run/systemd/system and first in its PATH: the programs
// that a test puts there (systemctl, busctl, ...) answer in place of the machine's.

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "adapters/host/host.hpp"

namespace campaign::test {

inline std::string slurp(const std::filesystem::path& file) {
    std::ifstream in{file, std::ios::binary};
    std::stringstream all;
    all << in.rdbuf();
    return all.str();
}

inline void spill(const std::filesystem::path& file, const std::string& text) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream{file, std::ios::binary} << text;
}

class TempFolder {
public:
    TempFolder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "adapters-XXXXXX").string();
        path_ = ::mkdtemp(pattern.data());
    }
    TempFolder(const TempFolder&) = delete;
    TempFolder& operator=(const TempFolder&) = delete;
    ~TempFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

class ShHost final : public host::Host {
public:
    explicit ShHost(std::filesystem::path root) : root_{std::move(root)} {
        std::filesystem::create_directories(root_ / "bin");
        std::filesystem::create_directories(units());
    }

    [[nodiscard]] std::filesystem::path units() const { return root_ / "units"; }
    /// An executable for the commands of this host.
    void program(const std::string& name, const std::string& script) {
        const auto file = root_ / "bin" / name;
        spill(file, script);
        std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    }

    std::vector<host::Command> ran;                                    ///< everything, in order
    std::function<void(const host::Command&)> before;                  ///< told of each command first
    std::function<std::optional<Error>(const host::Command&)> fault;   ///< an answer in place of running it

    const std::string& name() const override { return name_; }
    std::string shown(const host::Command& command) const override { return command.argv.front(); }

    Async<Result<host::Finished>> run(host::Command command) override {
        if (before) before(command);
        ran.push_back(command);
        if (fault) {
            if (auto error = fault(command)) co_return *error;
        }
        co_return execute(command, nullptr);
    }

    Async<Result<bool>> follow(host::Command command, host::OnLine on_line) override {
        ran.push_back(command);
        const host::Finished done = execute(command, &on_line);
        co_return done.exit_code == stopped;
    }

    Async<Result<host::Fetched>> fetch(std::string, std::filesystem::path, host::OnBytes) override { co_return unused(); }
    Async<Result<host::Fetched>> send(std::filesystem::path, std::string, int, bool) override { co_return unused(); }
    Async<Result<host::Reach>> reach(std::string, int) override { co_return host::Reach{}; }
    void disconnect() override {}

private:
    static constexpr int stopped = -7;
    static Error unused() { return Error{ErrorKind::unavailable, "not in this test", "", "", ""}; }

    std::string here(std::string word) const { return replaced(std::move(word), "/run/systemd/system", units().string()); }
    static std::string replaced(std::string text, const std::string& from, const std::string& to) {
        for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
            text.replace(at, from.size(), to);
        return text;
    }

    host::Finished execute(const host::Command& command, const host::OnLine* on_line) {
        const auto in = root_ / "stdin";
        const auto err = root_ / "stderr";
        spill(in, command.input);
        int out[2];
        if (::pipe2(out, O_CLOEXEC) != 0) std::abort();
        std::vector<std::string> words;
        for (const std::string& word : command.argv) words.push_back(here(word));
        std::vector<char*> argv;
        for (std::string& word : words) argv.push_back(word.data());
        argv.push_back(nullptr);
        const std::string path = (root_ / "bin").string() + ":" + std::getenv("PATH");
        const pid_t child = ::fork();
        if (child == 0) {
            ::setpgid(0, 0);
            ::setenv("PATH", path.c_str(), 1);
            ::setenv("FAKE", root_.c_str(), 1);
            ::dup2(::open(in.c_str(), O_RDONLY), 0);
            ::dup2(out[1], 1);
            ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
            ::execvp(argv[0], argv.data());
            ::_exit(127);
        }
        ::close(out[1]);
        host::Finished done;
        std::string pending;
        bool ended_by_us = false;
        char buffer[8192];
        for (ssize_t got = 0; !ended_by_us && (got = ::read(out[0], buffer, sizeof buffer)) > 0;) {
            done.output.append(buffer, static_cast<std::size_t>(got));
            if (on_line == nullptr) continue;
            pending.append(buffer, static_cast<std::size_t>(got));
            for (std::size_t end = 0; !ended_by_us && (end = pending.find('\n')) != std::string::npos;) {
                const std::string line = pending.substr(0, end);
                pending.erase(0, end + 1);
                ended_by_us = !(*on_line)(line);
            }
        }
        if (ended_by_us) ::kill(-child, SIGKILL);
        ::close(out[0]);
        int status = 0;
        ::waitpid(child, &status, 0);
        done.exit_code = ended_by_us ? stopped : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        done.output = replaced(std::move(done.output), units().string(), "/run/systemd/system");
        done.errors = slurp(err);
        done.output_bytes = done.output.size();
        done.errors_bytes = done.errors.size();
        return done;
    }

    std::filesystem::path root_;
    std::string name_ = "gpu1";
};

/// Runs a coroutine to its end on a loop of its own.
template <class T>
T await(Async<T> operation) {
    boost::asio::io_context loop;
    std::optional<T> result;
    std::exception_ptr failure;
    boost::asio::co_spawn(loop, std::move(operation), [&](std::exception_ptr error, T value) {
        failure = error;
        if (!error) result.emplace(std::move(value));
    });
    loop.run();
    if (failure) std::rethrow_exception(failure);
    return std::move(*result);
}

}   // namespace campaign::test
