// Files that verbs read and write, and the artifacts they fetch.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/sha256.hpp"
#include "base/text.hpp"
#include "ctl/render.hpp"
#include "ctl/verbs.hpp"

namespace campaign::ctl {
namespace {

constexpr std::size_t plan_limit = 10 * 1024 * 1024;

Error file_error(const std::string& what, int code) {
    const ErrorKind kind = code == ENOENT                                              ? ErrorKind::not_found
                           : code == EACCES                                            ? ErrorKind::refused
                           : code == ENOSPC                                            ? ErrorKind::disk_full
                           : code == EISDIR || code == ENOTDIR || code == ENAMETOOLONG ? ErrorKind::usage
                                                                                       : ErrorKind::io;
    return Error{kind, what, std::strerror(code), "", ""};
}

bool write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(fd, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
}

/// A file that appears whole or not at all.
class NewFile {
public:
    explicit NewFile(std::string path) : path_{std::move(path)}, part_{path_ + ".part"} {}
    NewFile(const NewFile&) = delete;
    NewFile& operator=(const NewFile&) = delete;
    ~NewFile() {
        if (fd_) ::unlink(part_.c_str());
    }
    Result<void> open() {
        fd_ = Fd{::open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
        if (!fd_) return file_error("cannot write " + part_, errno);
        return {};
    }
    Result<void> write(std::string_view bytes) {
        if (!write_all(fd_.get(), bytes)) return file_error("cannot write " + part_, errno);
        return {};
    }
    Result<void> finish() {
        if (::fsync(fd_.get()) != 0 && errno != EINVAL) return file_error("cannot write " + part_, errno);
        if (::rename(part_.c_str(), path_.c_str()) != 0) return file_error("cannot write " + path_, errno);
        fd_.reset();
        return {};
    }

private:
    std::string path_;
    std::string part_;
    Fd fd_;
};

struct Wanted {
    std::string sha256;
    std::string name;
};

/// The one artifact that a SHA-256, its beginning (8 digits or more), an ID or a name means.
Result<Wanted> choose(const json::value& list, const std::string& what) {
    std::vector<Wanted> found;
    const json::value* all = member(list, "artifacts");
    if (all != nullptr && all->is_array()) {
        for (const json::value& artifact : all->get_array()) {
            const std::string sha = string_at(artifact, "sha256").value_or("");
            const std::string name = string_at(artifact, "name").value_or("");
            const bool meant =
                name == what || string_at(artifact, "id") == what || (what.size() >= 8 && sha.starts_with(what));
            if (!meant) continue;
            bool known = false;
            for (const Wanted& earlier : found) known = known || earlier.sha256 == sha;
            if (!known) found.push_back(Wanted{sha, name});
        }
    }
    if (found.size() == 1) return found.front();
    const std::string campaign = string_at(list, "campaign").value_or("");
    Error error{ErrorKind::not_found, "no artifact of " + campaign + " is " + printable(what, 200), "", "",
                "campaignctl artifacts " + campaign};
    if (found.size() > 1) {
        error.kind = ErrorKind::usage;
        error.what = std::to_string(found.size()) + " artifacts of " + campaign + " are called " + printable(what, 200);
        for (const Wanted& one : found) error.why += (error.why.empty() ? "" : ", ") + one.sha256.substr(0, 12);
        error.next = "campaignctl artifacts " + campaign + " get SHA256";
    }
    return error;
}

/// A name that a host gave, safe to make a file of here.
std::string local_name(const std::string& name) {
    std::string safe = ascii(name);
    for (char& c : safe) {
        if (c == '/' || c == '\\') c = '_';
    }
    while (!safe.empty() && (safe.front() == '.' || safe.front() == '-')) safe.erase(0, 1);
    return safe.empty() ? "artifact" : safe;
}

Exit get_artifact(Session& session, const json::value& list) {
    const Result<Wanted> wanted = choose(list, session.options.what);
    if (!wanted) return fail(session, wanted.error());
    std::string file = session.options.output;
    if (file.empty()) {
        file = local_name(wanted->name);
        if (::access(file.c_str(), F_OK) == 0) {
            return fail(session, Error{ErrorKind::usage, file + " is here already",
                                       "it is not overwritten unless -o names it", "", ""});
        }
    }
    const bool to_stdout = file == "-";
    NewFile out{file};
    if (!to_stdout) {
        if (const Result<void> opened = out.open(); !opened) return fail(session, opened.error());
    }
    Sha256 hash;
    std::uint64_t size = 0;
    const Result<void> got = session.client.download("/v1/artifacts/" + percent_encode(wanted->sha256),
                                                     [&](std::string_view bytes) -> Result<void> {
                                                         hash.update(bytes);
                                                         size += bytes.size();
                                                         if (!to_stdout) return out.write(bytes);
                                                         if (!put(std::string{bytes}))
                                                             return file_error("cannot write to stdout", errno);
                                                         return {};
                                                     });
    if (!got) return fail(session, got.error());
    if (const std::string seen = hash.finish(); seen != wanted->sha256) {
        return fail(session, Error{ErrorKind::failed, "the bytes that came are not the artifact", "their SHA-256 differs",
                                   seen + " instead of " + wanted->sha256, ""});
    }
    if (to_stdout) return Exit::as_asked;
    if (const Result<void> finished = out.finish(); !finished) return fail(session, finished.error());
    json::object view;
    view["schema"] = "campaignctl.artifact/1";
    view["file"] = file;
    view["sha256"] = wanted->sha256;
    view["size"] = size;
    return answer(session, view, [&](const json::value&, const Style&) {
        return ascii(file) + " " + format_bytes(size) + ", sha256 " + wanted->sha256.substr(0, 8) + " checked\n";
    });
}

}   // namespace

Result<std::string> read_text(const std::string& file) {
    const bool from_stdin = file == "-";
    const Fd opened{from_stdin ? -1 : ::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
    if (!from_stdin && !opened) return file_error("cannot read " + printable(file, 400), errno);
    const int fd = from_stdin ? STDIN_FILENO : opened.get();
    std::string text;
    std::vector<char> piece(64 * 1024);
    for (;;) {
        const ssize_t got = ::read(fd, piece.data(), piece.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return file_error("cannot read " + printable(file, 400), errno);
        if (got == 0) return text;
        text.append(piece.data(), static_cast<std::size_t>(got));
        if (text.size() > plan_limit)
            return Error{ErrorKind::invalid, printable(file, 400) + " is larger than " + format_bytes(plan_limit), "", "",
                         ""};
    }
}

Result<void> write_text(const std::string& file, const std::string& text) {
    if (file.empty() || file == "-") {
        if (!put(text)) return file_error("cannot write to stdout", errno);
        return {};
    }
    NewFile out{file};
    if (const Result<void> opened = out.open(); !opened) return opened.error();
    if (const Result<void> written = out.write(text); !written) return written.error();
    return out.finish();
}

std::string find_program(const std::string& name) {
    std::error_code ignored;
    const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ignored);
    const std::string beside = (self.parent_path() / name).string();
    if (!self.empty() && ::access(beside.c_str(), X_OK) == 0) return beside;
    const std::string packaged = (self.parent_path().parent_path() / "libexec/campaignd" / name).string();
    if (!self.empty() && ::access(packaged.c_str(), X_OK) == 0) return packaged;
    const char* path = std::getenv("PATH");
    for (const std::string& folder : split(path == nullptr ? "" : path, ':')) {
        const std::string candidate = folder + "/" + name;
        if (!folder.empty() && ::access(candidate.c_str(), X_OK) == 0) return candidate;
    }
    return "";
}

Exit artifacts(Session& session) {
    const Result<json::value> list = session.client.get(campaign_target(session.options.campaign, "/artifacts"));
    if (!list) return fail(session, list.error());
    if (session.options.action == "get") return get_artifact(session, *list);
    return answer(session, *list, render_artifacts);
}

Exit report(Session& session) {
    std::string text;
    const Result<void> got = session.client.download(campaign_target(session.options.campaign, "/report"),
                                                     [&text](std::string_view bytes) -> Result<void> {
                                                         text += bytes;
                                                         return {};
                                                     });
    if (!got) return fail(session, got.error());
    if (session.options.json) {
        json::object view;
        view["schema"] = "campaignctl.report/1";
        view["markdown"] = text;
        if (!session.options.output.empty()) view["file"] = session.options.output;
        if (!session.options.output.empty() && session.options.output != "-") {
            if (const Result<void> written = write_text(session.options.output, text); !written)
                return fail(session, written.error());
            view.erase("markdown");
        }
        return put(json::serialize(view) + "\n") ? Exit::as_asked : Exit::bug;
    }
    if (const Result<void> written = write_text(session.options.output, text); !written)
        return fail(session, written.error());
    if (!session.options.output.empty() && session.options.output != "-")
        put(ascii(session.options.output) + " " + format_bytes(text.size()) + "\n");
    return Exit::as_asked;
}

}   // namespace campaign::ctl
