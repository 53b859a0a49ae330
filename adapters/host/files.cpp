#include "adapters/host/files.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <set>

#include "adapters/host/file_errors.hpp"
#include "adapters/host/scripts.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"

namespace campaign::host {

namespace {

constexpr std::size_t largest_read = 1u << 20;

Command script(std::string_view text, std::vector<std::string> operands, bool as_root) {
    Command command;
    command.argv = {"sh", "-c", std::string{text}, "sh"};
    for (std::string& operand : operands) command.argv.push_back(std::move(operand));
    command.as_root = as_root;
    return command;
}

std::string octal(int mode) {
    char text[16];
    std::snprintf(text, sizeof text, "%04o", static_cast<unsigned>(mode) & 07777u);
    return text;
}

/// Takes the text up to a blank off the front.
std::string_view word(std::string_view& text) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view first = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return first;
}

template <class T>
std::optional<T> number(std::string_view text) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

Result<std::vector<FileFact>> parse_list(const std::string& host, const std::string& folder, std::string_view text) {
    std::vector<FileFact> files;
    std::vector<std::string> ids;
    std::set<std::string, std::less<>> written;
    while (!text.empty()) {
        const std::size_t end = text.find('\0');
        std::string_view entry = text.substr(0, end);
        if (end == std::string_view::npos) {
            return Error{ErrorKind::protocol, host + " gave an incomplete list of " + folder, "", printable(entry, 200), ""};
        }
        text.remove_prefix(end + 1);
        const std::string_view kind = word(entry);
        if (kind == "W") {
            written.emplace(entry);
            continue;
        }
        const auto size = number<std::uint64_t>(word(entry));
        const auto modified = number<double>(word(entry));
        const std::string id{word(entry)};
        if (kind != "F" || !size || !modified || entry.empty()) {
            return Error{ErrorKind::protocol, host + " gave a list of " + folder + " that cannot be read", "",
                         printable(entry, 200), ""};
        }
        const std::string path = folder + (folder.back() == '/' ? "" : "/") + std::string{entry};
        files.push_back(FileFact{path, *size, *modified, false});
        ids.push_back(id);
    }
    for (std::size_t i = 0; i < files.size(); ++i) files[i].open_for_writing = written.contains(ids[i]);
    std::sort(files.begin(), files.end(), [](const FileFact& a, const FileFact& b) { return a.path < b.path; });
    return files;
}

}   // namespace

std::optional<Error> bad_path(const std::string& path) {
    if (!path.empty() && path.front() == '/' && path.find('\0') == std::string::npos) return std::nullopt;
    return Error{ErrorKind::usage, "not an absolute path: " + printable(path, 300), "", "", ""};
}

Error file_error(const std::string& host, const std::string& doing, const Finished& finished) {
    const std::string seen = printable(trim(finished.errors), 500);
    const auto says = [&](std::string_view words) { return finished.errors.find(words) != std::string::npos; };
    ErrorKind kind = ErrorKind::io;
    std::string why = "exit " + std::to_string(finished.exit_code);
    std::string next;
    if (finished.exit_code == 74 || says("No space left on device") || says("Disk quota exceeded")) {
        kind = ErrorKind::disk_full;
        why = "there is too little space";
        next = "make room on " + host;
    } else if (says("Permission denied") || says("Operation not permitted") || says("Read-only file system")) {
        kind = ErrorKind::refused;
        why = "the right is missing there";
    } else if (says("No such file or directory") || says("Not a directory")) {
        kind = ErrorKind::not_found;
        why = "there is no such file";
    } else if (finished.exit_code == 75) {
        why = "other bytes arrived than were sent";
    }
    return Error{kind, host + ": cannot " + doing, why, seen, next};
}

Async<Result<WrittenFile>> write_file(Host& host, std::string path, std::string content, int mode, bool as_root) {
    if (const auto bad = bad_path(path)) co_return *bad;
    const std::string sum = sha256(content);
    Command command = script(scripts::write, {path, octal(mode), std::to_string(content.size()), sum}, as_root);
    command.input = std::move(content);
    const Result<Finished> finished = co_await host.run(command);
    if (!finished) co_return finished.error();
    if (finished->exit_code != 0) co_return file_error(host.name(), "write " + path, *finished);
    if (trim(finished->output) != sum) {
        co_return Error{ErrorKind::io, host.name() + ": " + path + " does not read back as it was written", "",
                        printable(finished->output, 200), ""};
    }
    co_return WrittenFile{path, sum};
}

Async<Result<std::string>> read_file(Host& host, std::string path, bool as_root) {
    if (const auto bad = bad_path(path)) co_return *bad;
    const Command command = script(scripts::read, {path, std::to_string(largest_read + 1)}, as_root);
    const Result<Finished> finished = co_await host.run(command);
    if (!finished) co_return finished.error();
    if (finished->exit_code != 0) co_return file_error(host.name(), "read " + path, *finished);
    if (finished->output.size() > largest_read) {
        co_return Error{ErrorKind::invalid, host.name() + ": " + path + " is larger than 1 MiB", "", "", ""};
    }
    co_return finished->output;
}

Async<Result<bool>> remove_file(Host& host, std::string path, std::string sha256, bool as_root) {
    if (const auto bad = bad_path(path)) co_return *bad;
    const Command command = script(scripts::remove, {path, sha256}, as_root);
    const Result<Finished> finished = co_await host.run(command);
    if (!finished) co_return finished.error();
    if (finished->exit_code == 0) co_return true;
    if (finished->exit_code == 75) {
        co_return Error{ErrorKind::conflict, host.name() + ": " + path + " is not the file that we wrote; left as it is", "",
                        printable(trim(finished->output), 200), "look at it, and remove it by hand if it is not wanted"};
    }
    Error error = file_error(host.name(), "remove " + path, *finished);
    if (error.kind == ErrorKind::not_found) co_return false;
    co_return error;
}

Async<Result<void>> remove_empty_dir(Host& host, std::string path, bool as_root) {
    if (const auto bad = bad_path(path)) co_return *bad;
    const Command command = script(scripts::remove_empty, {path}, as_root);
    const Result<Finished> finished = co_await host.run(command);
    if (!finished) co_return finished.error();
    co_return Result<void>{};
}

Async<Result<std::vector<FileFact>>> list_files(Host& host, std::string folder, bool as_root) {
    if (const auto bad = bad_path(folder)) co_return *bad;
    const Command command = script(scripts::list, {folder}, as_root);
    const Result<Finished> finished = co_await host.run(command);
    if (!finished) co_return finished.error();
    if (finished->exit_code != 0) {
        Error error = file_error(host.name(), "list " + folder, *finished);
        if (error.kind == ErrorKind::not_found) co_return std::vector<FileFact>{};
        co_return error;
    }
    if (finished->output.size() < finished->output_bytes) {
        co_return Error{ErrorKind::invalid, host.name() + ": the list of " + folder + " is too long", "", "", ""};
    }
    co_return parse_list(host.name(), folder, finished->output);
}

}   // namespace campaign::host
