// Files between here and a host: proven prefix, part file, hash on both sides, fsync, rename.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <system_error>

#include "adapters/host/file_errors.hpp"
#include "adapters/host/scripts.hpp"
#include "adapters/host/stream_host.hpp"
#include "base/fd.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"

namespace campaign::host {

namespace asio = boost::asio;

namespace {

constexpr std::size_t piece = 256u << 10;
constexpr Millis no_progress = std::chrono::seconds{120};
constexpr int most_attempts = 4;

Error local_error(const std::string& doing, const std::filesystem::path& file, int code) {
    ErrorKind kind = ErrorKind::io;
    if (code == ENOSPC || code == EDQUOT) kind = ErrorKind::disk_full;
    if (code == EACCES || code == EPERM || code == EROFS) kind = ErrorKind::refused;
    if (code == ENOENT) kind = ErrorKind::not_found;
    return Error{kind, "cannot " + doing + " " + file.string() + " here", std::generic_category().message(code), "", ""};
}

/// A local file read once: its bytes and its hash so far.
struct Prefix {
    std::uint64_t bytes = 0;
    Sha256 hash;
};

/// Hashes at most `limit` bytes of an open file from its start.
Result<Prefix> hash_prefix(int fd, const std::filesystem::path& file, std::uint64_t limit) {
    Prefix prefix;
    std::string buffer(piece, '\0');
    while (prefix.bytes < limit) {
        const std::size_t wanted = std::min<std::uint64_t>(buffer.size(), limit - prefix.bytes);
        const ssize_t got = ::pread(fd, buffer.data(), wanted, static_cast<off_t>(prefix.bytes));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return local_error("read", file, errno);
        if (got == 0) break;
        prefix.hash.update(std::string_view{buffer}.substr(0, static_cast<std::size_t>(got)));
        prefix.bytes += static_cast<std::uint64_t>(got);
    }
    return prefix;
}

/// fsync, rename, fsync of the folder.
Result<void> settle(int fd, const std::filesystem::path& part, const std::filesystem::path& to) {
    if (::fsync(fd) != 0) return local_error("sync", part, errno);
    if (::rename(part.c_str(), to.c_str()) != 0) return local_error("rename to", to, errno);
    const std::filesystem::path parent = to.has_parent_path() ? to.parent_path() : std::filesystem::path{"."};
    const Fd folder{::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (!folder || ::fsync(folder.get()) != 0) return local_error("sync the folder of", to, errno);
    return {};
}

/// Runs blocking work beside the loop.
template <class Work>
auto beside_the_loop(Work& work) -> Async<decltype(work())> {
    asio::thread_pool pool{1};
    const auto task = [](Work* given) -> Async<decltype(work())> { co_return (*given)(); };
    Async<decltype(work())> running = task(&work);
    auto executor = pool.get_executor();
    auto result = co_await asio::co_spawn(executor, std::move(running), asio::use_awaitable);
    co_return result;
}

Command file_script(std::string_view text, std::vector<std::string> operands, bool as_root) {
    Command command;
    command.argv = {"sh", "-c", std::string{text}, "sh"};
    for (std::string& operand : operands) command.argv.push_back(std::move(operand));
    command.as_root = as_root;
    return command;
}

/// Hashing goes at 500 MB/s or so; slow disks at a tenth of it.
Millis hashing_time(std::uint64_t bytes) {
    return std::chrono::seconds{60} + Millis{bytes / 20'000};
}

bool link_went(const Error& error) {
    return error.kind == ErrorKind::in_doubt || error.kind == ErrorKind::unreachable;
}

}   // namespace

Async<Result<Fetched>> StreamHost::fetch(std::string from, std::filesystem::path to, OnBytes progress) {
    if (const auto bad = bad_path(from)) co_return *bad;
    bool as_root = false;
    std::uint64_t reached = 0;
    for (int attempt = 1;; ++attempt) {
        const std::uint64_t before = reached;
        Result<Fetched> fetched = co_await fetch_once(from, to, progress, as_root, reached);
        if (fetched) co_return fetched;
        Error error = fetched.error();
        if (error.kind == ErrorKind::refused && sudo_ && !as_root) {
            as_root = true;
            continue;
        }
        // Reading again does no harm: as long as the file grows here, a lost link is no reason to give up.
        const bool moved = reached > before;
        if (link_went(error) && (moved || attempt == 1) && attempt < most_attempts) continue;
        if (error.kind == ErrorKind::in_doubt) error.kind = ErrorKind::unreachable;
        co_return error;
    }
}

Async<Result<Fetched>> StreamHost::fetch_once(const std::string& from, const std::filesystem::path& to,
                                              const OnBytes& progress, bool as_root, std::uint64_t& reached) {
    const Command ask = file_script(scripts::size, {from}, as_root);
    const Result<Finished> sized = co_await run(ask);
    if (!sized) co_return sized.error();
    if (sized->exit_code != 0) co_return file_error(name_, "read " + from, *sized);
    std::uint64_t size = 0;
    const std::string_view digits = trim(sized->output);
    if (std::from_chars(digits.data(), digits.data() + digits.size(), size).ec != std::errc{}) {
        co_return Error{ErrorKind::protocol, name_ + " does not say how long " + from + " is", "", printable(digits, 100),
                        ""};
    }

    std::filesystem::path part = to;
    part += ".part";
    const Fd file{::open(part.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)};
    if (!file) co_return local_error("write", part, errno);

    const auto work = [&] { return hash_prefix(file.get(), part, size); };
    Result<Prefix> have = co_await beside_the_loop(work);
    if (!have) co_return have.error();
    if (have->bytes > 0) {
        // Its length proves nothing: the prefix counts only if the host's own has the same hash.
        const std::uint64_t held = have->bytes;
        const std::string ours = have->hash.finish();
        Command compare = file_script(scripts::prefix_hash, {from, std::to_string(held)}, as_root);
        compare.deadline = hashing_time(held);
        const Result<Finished> theirs = co_await run(compare);
        if (!theirs) co_return theirs.error();
        const bool same = theirs->exit_code == 0 && theirs->output.substr(0, 64) == ours;
        const std::uint64_t proven = same ? held : 0;
        const auto rehash = [&] { return hash_prefix(file.get(), part, proven); };
        have = co_await beside_the_loop(rehash);
        if (!have) co_return have.error();
    }
    if (::ftruncate(file.get(), static_cast<off_t>(have->bytes)) != 0) co_return local_error("write", part, errno);

    std::uint64_t done = have->bytes;
    reached = std::max(reached, done);
    int write_error = 0;
    const Sink sink = [&](std::string_view bytes) {
        have->hash.update(bytes);
        while (!bytes.empty()) {
            const ssize_t put = ::pwrite(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(done));
            if (put < 0 && errno == EINTR) continue;
            if (put <= 0) {
                write_error = put < 0 ? errno : EIO;
                return false;
            }
            bytes.remove_prefix(static_cast<std::size_t>(put));
            done += static_cast<std::uint64_t>(put);
        }
        reached = std::max(reached, done);
        if (progress) progress(done, size);
        return true;
    };
    if (done < size) {
        const Command command =
            file_script(scripts::stream, {from, std::to_string(done + 1), std::to_string(size - done)}, as_root);
        Result<std::unique_ptr<Exchange>> prepared = prepare(command, sink);
        if (!prepared) co_return prepared.error();
        Exchange& streaming = **prepared;
        streaming.deadline = no_progress;
        streaming.idle = true;
        const Result<Finished> streamed = co_await exchange(streaming);
        if (write_error != 0) co_return local_error("write", part, write_error);
        if (!streamed) co_return streamed.error();
        if (streamed->exit_code != 0) co_return file_error(name_, "read " + from, *streamed);
    }

    Command whole = file_script(scripts::prefix_hash, {from, std::to_string(size)}, as_root);
    whole.deadline = hashing_time(size);
    const Result<Finished> theirs = co_await run(whole);
    if (!theirs) co_return theirs.error();
    const std::string ours = have->hash.finish();
    if (theirs->exit_code != 0) co_return file_error(name_, "hash " + from, *theirs);
    if (done != size || theirs->output.substr(0, 64) != ours) {
        ::unlink(part.c_str());
        co_return Error{ErrorKind::conflict, name_ + ": " + from + " changed while it was copied",
                        "its hash there is not that of the bytes that came",
                        std::to_string(done) + " of " + std::to_string(size) + " bytes came",
                        "fetch it once nobody writes it"};
    }
    const auto finish = [&] { return settle(file.get(), part, to); };
    const Result<void> settled = co_await beside_the_loop(finish);
    if (!settled) co_return settled.error();
    co_return Fetched{size, ours};
}

Async<Result<Fetched>> StreamHost::send(std::filesystem::path from, std::string to, int mode, bool as_root) {
    if (const auto bad = bad_path(to)) co_return *bad;
    const Fd file{::open(from.c_str(), O_RDONLY | O_CLOEXEC)};
    if (!file) co_return local_error("read", from, errno);
    const auto work = [&] { return hash_prefix(file.get(), from, UINT64_MAX); };
    Result<Prefix> content = co_await beside_the_loop(work);
    if (!content) co_return content.error();
    const std::uint64_t size = content->bytes;
    const std::string ours = content->hash.finish();
    char octal[16];
    std::snprintf(octal, sizeof octal, "%o", static_cast<unsigned>(mode) & 07777u);

    Command look = file_script(scripts::look, {to}, as_root);
    look.deadline = hashing_time(size);
    const Result<Finished> there = co_await run(look);
    if (!there) co_return there.error();
    const std::string wanted = std::string{octal} + " " + std::to_string(size) + " " + ours;
    if (there->exit_code == 0 && trim(there->output) == wanted) co_return Fetched{size, ours};

    Command command = file_script(scripts::write, {to, octal, std::to_string(size), ours}, as_root);
    command.input = "-";   // says that there is input; next_input below gives it
    Result<std::unique_ptr<Exchange>> prepared = prepare(command, Sink{});
    if (!prepared) co_return prepared.error();
    Exchange& streaming = **prepared;
    streaming.deadline = no_progress;
    streaming.idle = true;
    std::uint64_t sent = 0;
    streaming.next_input = [&]() -> Result<std::string> {
        std::string next(piece, '\0');
        const ssize_t got = ::pread(file.get(), next.data(), next.size(), static_cast<off_t>(sent));
        if (got < 0) return local_error("read", from, errno);
        next.resize(static_cast<std::size_t>(got));
        sent += static_cast<std::uint64_t>(got);
        return next;
    };
    const Result<Finished> written = co_await exchange(streaming);
    if (!written) co_return written.error();
    if (written->exit_code != 0) co_return file_error(name_, "write " + to, *written);
    co_return Fetched{size, ours};
}

}   // namespace campaign::host
